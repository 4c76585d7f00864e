/**
 * One host of configs/three-hosts as a group of processes on a loopback address of its own: etcd by the
 * example's own command line, store and gateway by its files. Addresses, ports and the next hop are replaced,
 * nothing else. It dies whole, as a machine does.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { StatusAnswer, TablePageAnswer } from '../../../src/admin-api/gateway-answers.js';
import type { TableRowAnswer } from '../../../src/admin-api/gateway-answers.js';
import { ask } from '../../../src/platform/node/admin-request.js';
import { Daemon, until } from '../../process/cluster.js';
import { ENTRY } from '../../process/entry.js';

const EXAMPLE_TOKEN = 'a-token-of-this-example';
const EXAMPLE = join(process.cwd(), 'configs', 'three-hosts');
/** Of each of its gateways: the default. */
export const EXAMPLE_PARTITIONS = 16;
/** Ports that the example names; each stands for the same one on all hosts. */
export const EXAMPLE_PORTS = [2525, 7401, 7411, 8025, 8026, 9401, 9402, 2379, 2380] as const;

/** Where the parts that all hosts share stand. */
export interface Group {
  readonly folder: string;
  /** What `make-test-ca.sh` made, and the secret of the links. */
  readonly tls: string;
  readonly secret: string;
  /** Of one who may do all. */
  readonly tokens: string;
  /** By the port in the example. */
  readonly ports: ReadonlyMap<number, number>;
  readonly sinkPort: number;
  /** Laid over that of its one route. */
  readonly order?: 'strict';
}

/** The certificates by the command of the example's README, and one secret. */
export function makeGroup(folder: string, ports: ReadonlyMap<number, number>, sinkPort: number): Group {
  const [tls, secret, tokens] = [join(folder, 'tls'), join(folder, 'mail.secret'), join(folder, 'admin.tokens')];
  // etcd compares the address that a member calls from, too: on loopback that is always the first one.
  const etcdName = (n: number): string => `etcd-${String(n)}=${addressOf(n)},${addressOf(1)}`;
  const names = [1, 2, 3].flatMap((n) => [...['gw', 'store'].map((role) => `${role}-${String(n)}=${addressOf(n)}`), etcdName(n)]);
  execFileSync(join(process.cwd(), 'configs', 'tls', 'make-test-ca.sh'), [tls, ...names], { stdio: 'pipe' });
  writeFileSync(secret, 'one secret for all links of this group, of this test alone\n', { mode: 0o600 });
  writeFileSync(tokens, `ops content,operate ${EXAMPLE_TOKEN}\n`, { mode: 0o600 });
  return { folder, tls, secret, tokens, ports, sinkPort };
}

/** Every gateway holds its own partitions, each with two copies in step. */
export function areWhole(hosts: readonly ExampleHost[], boundMs: number): Promise<void> {
  return until('each gateway holds its own partitions, with two copies', async () => {
    for (const host of hosts) {
      const rows = await host.table();
      const own = rows.filter(({ owner }) => owner === `gw-${String(host.number)}`);
      if (own.length !== 2 * EXAMPLE_PARTITIONS || own.length !== rows.length) return false;
      if (rows.some(({ sync }) => sync !== 'SYNC')) return false;
    }
    return true;
  }, boundMs);
}

export function addressOf(number: number): string {
  return `127.0.0.${String(number)}`;
}

export class ExampleHost {
  readonly number: number;
  readonly gateway: Daemon;
  readonly store: Daemon;
  readonly files: readonly string[];
  readonly #folder: string;
  readonly #group: Group;
  #etcd: ChildProcess | undefined;

  constructor(number: number, group: Group) {
    this.number = number;
    this.#group = group;
    this.#folder = join(group.folder, `host-${String(number)}`);
    mkdirSync(this.#folder);
    symlinkSync(group.tls, join(this.#folder, 'tls'));
    symlinkSync(group.secret, join(this.#folder, 'mail.secret'));
    symlinkSync(group.tokens, join(this.#folder, 'admin.tokens'));
    for (const name of ['gateway.yaml', 'store.yaml', 'etcd.sh']) this.#write(name);
    this.files = ['gateway', 'store'].map((role) => join(this.#folder, `${role}.yaml`));
    this.gateway = this.#daemon('gateway', 8026);
    this.store = this.#daemon('store', 9402);
  }

  get name(): string {
    return `host-${String(this.number)}`;
  }

  start(): void {
    const log = openSync(join(this.#folder, 'etcd.log'), 'a');
    this.#etcd = spawn('sh', ['./etcd.sh'], { cwd: this.#folder, stdio: ['ignore', log, log] });
    closeSync(log);
    this.store.start();
    this.gateway.start();
  }

  async ready(): Promise<void> {
    await this.store.ready();
    await this.gateway.ready();
  }

  /** The signals leave in one turn. Resolves when all three are gone. */
  async die(): Promise<void> {
    const gone = this.#etcdGone('SIGKILL');
    this.killNow();
    await Promise.all([this.gateway.kill(), this.store.kill(), gone]);
  }

  /** As a shutdown does: SIGTERM to all at once. Exit codes of gateway and store. */
  async shutDown(): Promise<readonly number[]> {
    const gone = this.#etcdGone('SIGTERM');
    const codes = await Promise.all([this.gateway.stop(), this.store.stop()]);
    await gone;
    return codes;
  }

  async killEtcd(): Promise<void> {
    await this.#etcdGone('SIGKILL');
  }

  killNow(): void {
    this.gateway.killNow();
    this.store.killNow();
    this.#etcd?.kill('SIGKILL');
  }

  portOf(example: typeof EXAMPLE_PORTS[number]): number {
    return this.#group.ports.get(example) ?? 0;
  }

  async status(): Promise<StatusAnswer> {
    return (await this.#ask('status')) as StatusAnswer;
  }

  async table(): Promise<readonly TableRowAnswer[]> {
    return ((await this.#ask('table')) as TablePageAnswer).rows;
  }

  async #etcdGone(signal: NodeJS.Signals): Promise<void> {
    const etcd = this.#etcd;
    if (etcd === undefined || etcd.exitCode !== null || etcd.signalCode !== null) return;
    const gone = once(etcd, 'exit');
    etcd.kill(signal);
    await gone;
  }

  async #ask(what: string): Promise<unknown> {
    const access = { token: EXAMPLE_TOKEN, ca: readFileSync(join(this.#group.tls, 'ca.crt'), 'utf8') };
    const url = `https://${addressOf(this.number)}:${String(this.portOf(8025))}/api/v1/${what}`;
    const { body } = await ask({ method: 'GET', url, access, timeoutMs: 5_000, bytesMax: 16 * 1024 * 1024, body: undefined });
    return JSON.parse(body.toString('utf8'));
  }

  #daemon(role: 'gateway' | 'store', probesPort: 8026 | 9402): Daemon {
    const admin = `http://${addressOf(this.number)}:${String(this.portOf(probesPort))}/readyz`;
    const args = [ENTRY, role, '--config', join(this.#folder, `${role}.yaml`)];
    return new Daemon(`${role} of ${this.name}`, args, join(this.#folder, `${role}.log`), admin);
  }

  #write(name: string): void {
    let text = readFileSync(join(EXAMPLE, this.name, name), 'utf8')
      .replace('smarthost.example.org:25', `127.0.0.1:${String(this.#group.sinkPort)}`)
      // Its admin HTTP is on loopback: here each host has another address of that.
      .replaceAll(/10\.[012]\.0\.(?=[123])/g, '127.0.0.');
    if (this.#group.order !== undefined) text = text.replace("{domain: '*',", `{domain: '*', order: ${this.#group.order},`);
    for (const [known, port] of this.#group.ports) {
      text = text.replaceAll(`:${String(known)}`, `:${String(port)}`);
    }
    writeFileSync(join(this.#folder, name), text);
  }
}
