/**
 * CPU a message of reception alone: this build beside another one of Twinpost, in turns, each in a process of its own
 * that commits whatever it is given. One client process sends 1 KB messages by eight connections.
 *
 *   node dist/bench/micro/inbound-server.js OTHER_BUILD [messages a connection] [messages a turn] [turns]
 *
 * With HOOK=module or HOOK=rspamd in the environment this build asks a hook about each message, which accepts: an empty
 * module in a thread, or a server of this process in rspamd's words. OTHER_BUILD may be this one then. With TLS=1 both
 * are spoken to by STARTTLS.
 *
 * OTHER_BUILD is the `dist` of another working copy. Prints the medians of µs of CPU (user + system) a message of both, and
 * the median of the turns' ratios, which counts.
 */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { makeHooks } from '../../src/gateway/inbound/hooks/node/make-hooks.js';
import type { HookOptions } from '../../src/gateway/inbound/hooks/node/make-hooks.js';
import { runSend } from '../../src/load/run.js';
import { selfSigned } from '../../test/dialog/self-signed.js';

const CONNECTIONS = 8;
const COMMITTED = 1;

interface Submitted {
  settle(outcome: number): void;
}

/** What both builds have of their test harness. */
interface HarnessModule {
  startHarness(options: object, ports?: object): Promise<{
    readonly inbound: { readonly port: number };
    readonly reception: { submit: (submission: Submitted) => void };
  }>;
}

/** `where`: the module, or the server in rspamd's words. */
function hooksOf(where: string): ReturnType<typeof makeHooks> {
  const common = { name: 'hook', timeoutMs: 5000, onFailure: 'defer' } as const;
  const hook: HookOptions = where.startsWith('http:')
    ? { ...common, kind: 'rspamd', url: where, password: '' }
    : { ...common, kind: 'module', file: where, threads: 1, heapBytes: 128 * 1024 * 1024 };
  const quiet = (): void => undefined;
  return makeHooks([hook], 'mx.test', {
    clock: { nowMs: () => performance.now(), wallMs: () => Date.now() }, metrics: { hookAnswered: quiet },
    log: { debug: quiet, info: quiet, warn: console.error, error: console.error }, memory: { reserve: () => true, release: quiet },
  });
}

/** In the environment of the servers: the files of their certificate. */
const TLS_FILES = 'BENCH_TLS_FILES';

async function serve(build: string, where: string): Promise<void> {
  const module = await import(pathToFileURL(join(build, 'test/dialog/harness.js')).href) as HarnessModule;
  const options = { idleCommandsMax: 1e9, connectionsPerClientMax: 1e5, connectionsMax: 1e5, ...tlsOptions() };
  const harness = where === '' ? await module.startHarness(options) : await module.startHarness(options, { hooks: hooksOf(where) });
  harness.reception.submit = (submission) => { setImmediate(() => { submission.settle(COMMITTED); }); };
  process.on('message', () => {
    const { user, system } = process.cpuUsage();
    process.send?.(user + system);
  });
  process.send?.(harness.inbound.port);
}

function tlsOptions(): object {
  const files = process.env[TLS_FILES];
  return files === undefined ? {} : { tls: JSON.parse(files) as unknown };
}

class Server {
  readonly #child: ChildProcess;
  port = 0;

  constructor(build: string, hook = '') {
    this.#child = fork(fileURLToPath(import.meta.url), ['serve', build, hook]);
  }

  async start(): Promise<void> {
    [this.port] = await once(this.#child, 'message') as [number];
  }

  async cpuUs(): Promise<number> {
    this.#child.send('cpu');
    return (await once(this.#child, 'message') as [number])[0];
  }

  stop(): void {
    this.#child.kill();
  }
}

/** Each envelope waits for the reply to the dot before it. */
async function send(port: number, count: number, messagesPerConnection: number): Promise<void> {
  const report = await runSend({
    host: '127.0.0.1', port, count, connections: CONNECTIONS, messagesPerConnection, nextBehindDot: false,
    from: 'sender@example.org', domains: ['example.net'], localPart: 'rcpt',
    ...(certificate === undefined ? {} : { tls: 'starttls', caFile: certificate.certFile } as const),
  });
  if (report.accepted !== count) throw new Error(`only ${String(report.accepted)} of ${String(count)} were accepted`);
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? NaN;
}

/** Runs `body` with whatever the environment asks for. */
async function withHook(body: (where: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-hook-'));
  const file = join(folder, 'accept.mjs');
  writeFileSync(file, "export const onMessage = () => ({ action: 'accept' });\n");
  const server = http.createServer((request, response) => {
    request.resume();
    request.on('end', () => { response.end('{"action": "no action"}'); });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const kind = process.env['HOOK'];
  await body(kind === 'module' ? file : kind === 'rspamd' ? `http://127.0.0.1:${String(port)}` : '');
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
}

async function compare(other: string, hook: string, aConnection: number, messages: number, turns: number): Promise<void> {
  const ours = resolve(fileURLToPath(import.meta.url), '../../..');
  const servers = [new Server(resolve(other)), new Server(ours, hook)] as const;
  await Promise.all(servers.map((server) => server.start()));
  for (const { port } of servers) await send(port, messages * 3, aConnection);
  const costs: readonly [number[], number[]] = [[], []];
  for (let turn = 0; turn < turns; turn++) {
    for (const index of turn % 2 === 0 ? [0, 1] as const : [1, 0] as const) {
      const before = await servers[index].cpuUs();
      await send(servers[index].port, messages, aConnection);
      costs[index].push((await servers[index].cpuUs() - before) / messages);
    }
  }
  const ratios = costs[1].map((cost, turn) => cost / (costs[0][turn] ?? NaN));
  console.log(`${other}: ${median(costs[0]).toFixed(1)} µs a message; this build: ${median(costs[1]).toFixed(1)}; `
    + `median of ${String(turns)} ratios ${median(ratios).toFixed(3)}`);
  for (const server of servers) server.stop();
}

const certificate = process.env['TLS'] === undefined || process.argv[2] === 'serve' ? undefined : selfSigned();
if (certificate !== undefined) process.env[TLS_FILES] = JSON.stringify(certificate);
const [first, ...rest] = process.argv.slice(2);
if (first === undefined) {
  console.error('inbound-server: name the dist folder of another build');
  process.exitCode = 2;
} else if (first === 'serve') await serve(rest[0] ?? '', rest[1] ?? '');
else await withHook((hook) => compare(first, hook, Number(rest[0] ?? 1e9), Number(rest[1] ?? 10_000), Number(rest[2] ?? 21)));
