/** Real etcd processes on ports of the test's own, and how they are hurt. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import type { EventLog } from '../../../src/platform/ports.js';
import { connectEtcdRegister } from '../../../src/register/etcd/etcd-register.js';
import type { EtcdLineOptions } from '../../../src/register/etcd/etcd-line.js';
import type { Register } from '../../../src/register/port.js';
import { freePorts } from '../../process/free-ports.js';
import { QUIET, RealWorld, makeFolder, removeFolder, until } from '../../unit/register/real-world.js';
import { mustRun, runProgram } from '../support.js';

const HOST = '127.0.0.1';
const START_MS = 30_000;

/** PEM files for the client port; with `clientCa` clients have to show a certificate. */
export interface ServerTls {
  readonly cert: string;
  readonly key: string;
  readonly clientCa?: string;
}

/** Nodes that run: they end with this process, also when the runner ends it. */
const running = new Set<ChildProcess>();
process.once('SIGTERM', () => process.exit(1));
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

class EtcdNode {
  readonly name: string;
  readonly clientUrl: string;
  readonly peerUrl: string;
  readonly dataDir: string;
  #process: ChildProcess | undefined;

  constructor(name: string, clientUrl: string, peerUrl: string, dataDir: string) {
    this.name = name;
    this.clientUrl = clientUrl;
    this.peerUrl = peerUrl;
    this.dataDir = dataDir;
  }

  start(initialCluster: string, tls: ServerTls | undefined): void {
    const urls = [
      '--listen-client-urls',
      this.clientUrl,
      '--advertise-client-urls',
      this.clientUrl,
      '--listen-peer-urls',
      this.peerUrl,
      '--initial-advertise-peer-urls',
      this.peerUrl,
    ];
    const secure = tls === undefined
      ? []
      : [
        '--cert-file',
        tls.cert,
        '--key-file',
        tls.key,
        ...(tls.clientCa === undefined ? [] : ['--client-cert-auth', '--trusted-ca-file', tls.clientCa]),
      ];
    this.#process = spawn('etcd', [
      '--name',
      this.name,
      '--data-dir',
      this.dataDir,
      '--initial-cluster',
      initialCluster,
      ...urls,
      ...secure,
    ], { stdio: 'ignore' });
    const child = this.#process;
    running.add(child);
    child.once('exit', () => running.delete(child));
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  /** It stands still: on a busy machine it may work on for a while after the signal. */
  get isStopped(): boolean {
    const stat = readFileSync(`/proc/${String(this.#process?.pid)}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).startsWith('T');
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  }
}

export class EtcdCluster {
  readonly nodes: readonly EtcdNode[];
  readonly #folder: string;
  readonly #tls: ServerTls | undefined;
  #count = 0;

  private constructor(nodes: readonly EtcdNode[], folder: string, tls: ServerTls | undefined) {
    this.nodes = nodes;
    this.#folder = folder;
    this.#tls = tls;
  }

  static async start(count: number, tls?: ServerTls): Promise<EtcdCluster> {
    const folder = makeFolder();
    const ports = await freePorts(2 * count);
    const scheme = tls === undefined ? 'http' : 'https';
    const nodes = Array.from(
      { length: count },
      (_, i) =>
        new EtcdNode(
          `n${String(i)}`,
          `${scheme}://${HOST}:${String(ports[2 * i])}`,
          `http://${HOST}:${String(ports[2 * i + 1])}`,
          join(folder, `n${String(i)}`),
        ),
    );
    const cluster = new EtcdCluster(nodes, folder, tls);
    for (const node of nodes) cluster.startNode(node);
    return cluster;
  }

  get endpoints(): readonly string[] {
    return this.nodes.map(({ clientUrl }) => clientUrl);
  }

  startNode(node: EtcdNode): void {
    node.start(this.nodes.map(({ name, peerUrl }) => `${name}=${peerUrl}`).join(','), this.#tls);
  }

  /** A world of its own prefix in this cluster. `options` besides endpoints. */
  world(options: Partial<EtcdLineOptions> = {}, log: EventLog = QUIET): RealWorld {
    this.#count += 1;
    const cluster = `test ${String(this.#count)}/ä`;
    const client = (): Register =>
      connectEtcdRegister({ endpoints: this.endpoints, cluster, ...options }, log);
    return new RealWorld(client, () => Promise.resolve());
  }

  /** Until a client has reached it. */
  async isReady(options: Partial<EtcdLineOptions> = {}): Promise<void> {
    const client = connectEtcdRegister({ endpoints: this.endpoints, cluster: 'ready', ...options }, QUIET);
    try {
      await until(() => client.state.isUp, `etcd answers (${client.state.why})`, START_MS);
    } finally {
      client.close();
    }
  }

  ctl(...args: readonly string[]): Promise<string> {
    return mustRun('etcdctl', ['--endpoints', this.endpoints.join(','), ...args], '');
  }

  async leader(): Promise<EtcdNode> {
    for (const node of this.nodes) {
      const { code, output } = await runProgram('etcdctl', [
        '--endpoints',
        node.clientUrl,
        '--command-timeout',
        '2s',
        'endpoint',
        'status',
        '-w',
        'json',
      ]);
      if (code !== 0) continue;
      const [status] = JSON.parse(output.slice(output.indexOf('['))) as {
        Status: { leader: number; header: { member_id: number; }; };
      }[];
      if (status?.Status.leader === status?.Status.header.member_id) return node;
    }
    return assert.fail('no node says that it leads');
  }

  /** Copies the data of a stopped node, and puts it back. */
  backup(node: EtcdNode, how: 'make' | 'restore'): void {
    const aside = join(this.#folder, `backup-${node.name}`);
    const [from, to] = how === 'make' ? [node.dataDir, aside] : [aside, node.dataDir];
    rmSync(to, { recursive: true, force: true });
    cpSync(from, to, { recursive: true });
  }

  async stop(): Promise<void> {
    for (const node of this.nodes) await node.kill();
    removeFolder(this.#folder);
  }
}
