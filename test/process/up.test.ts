/** `twinpost up` with real processes: restarts what dies, stops in order, leaves no orphan. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, describe, test } from 'node:test';
import { ENTRY } from './entry.js';
import { twinpost } from './twinpost.js';
import { EMBEDDED_UP_YAML } from '../../src/config/embedded.js';
import type { StatusAnswer } from '../../src/admin-api/gateway-answers.js';
import type { SinkCounts } from '../../src/sink/options.js';
import { HARMLESS_SIGNALS } from './harmless-signals.js';
import { freeRow } from './free-ports.js';

const WAIT_MS = 30_000;
/** Those of the built-in file, and the sink's admin HTTP. */
const PORTS = ['2525', '2526', '9400', '8025', '7401', '7402', '7411', '7412', '9401', '9402'];
/** A second gateway takes the next but one for SMTP, the next one for its admin HTTP. */
const ROW = 3;
const TWO_MINUTES = { timeout: 240_000 };

/** One `up` of this test, on ports that were free a moment ago. */
class UpRun {
  readonly child: ChildProcess;
  output = '';
  error = '';
  readonly exited: Promise<number | null>;
  #look: (() => void) | undefined;

  constructor(config: string, more: readonly string[] = []) {
    const args = [ENTRY, 'up', '--config', config, ...more];
    this.child = spawn(process.execPath, args, { cwd: os.tmpdir(), stdio: ['ignore', 'pipe', 'pipe'] });
    this.child.stdout?.on('data', (bytes: Buffer) => {
      this.output += bytes.toString();
      this.#look?.();
    });
    this.child.stderr?.on('data', (bytes: Buffer) => { this.error += bytes.toString(); });
    this.exited = new Promise((resolve) => {
      this.child.once('close', (code) => {
        resolve(code);
        this.#look?.();
      });
    });
  }

  /** Resolves with the first match in what `up` has said since `from`. */
  said(pattern: RegExp, from = 0): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => { reject(new Error(`up did not say ${String(pattern)} but:\n${this.output}${this.error}`)); }, WAIT_MS);
      this.#look = () => {
        const match = pattern.exec(this.output.slice(from));
        if (match === null) return;
        clearTimeout(timer);
        this.#look = undefined;
        resolve(match);
      };
      this.#look();
    });
  }

  pidOf(name: string): number {
    const match = new RegExp(`^ +${name} +(\\d+) `, 'm').exec(this.output);
    return Number(match?.[1] ?? 0);
  }

  get pids(): readonly number[] {
    const names = ['store-a', 'store-b', 'sink', 'gateway', 'gateway-1', 'gateway-2'];
    return names.map((name) => this.pidOf(name)).filter((pid) => pid > 0);
  }
}

let runs: UpRun[] = [];
const pidsSeen = new Set<number>();

interface StartedUp {
  readonly run: UpRun;
  readonly config: string;
  /** What stands for a port of the built-in file. */
  readonly port: (known: string) => number;
}

/** `words` of the file are replaced by others; `more`: arguments of the command. */
async function startUp(
  words: Readonly<Record<string, string>> = {}, more: readonly string[] = [],
): Promise<StartedUp> {
  const ports = new Map<string, number>();
  for (const known of PORTS) ports.set(known, await freeRow(ROW));
  const port = (known: string): number => ports.get(known) ?? 0;
  let text = EMBEDDED_UP_YAML;
  for (const [from, to] of Object.entries(words)) text = text.replace(from, to);
  // In one go: a port that stands for one of them may begin like another one.
  text = text.replace(new RegExp(`:(${PORTS.join('|')})\\b`, 'g'), (_all, known: string) => `:${String(port(known))}`);
  const config = path.join(mkdtempSync(path.join(os.tmpdir(), 'up-')), 'up.yaml');
  writeFileSync(config, text);
  return { run: await begun(config, more), config, port };
}

async function begun(config: string, more: readonly string[]): Promise<UpRun> {
  const run = new UpRun(config, more);
  runs.push(run);
  await run.said(/accepted \S+ \(\S+\/s\) .* store-a SYNC {2}store-b SYNC/);
  for (const pid of run.pids) pidsSeen.add(pid);
  return run;
}

/** Messages that were answered 250. */
async function send(port: number, count: number): Promise<number> {
  const to = `127.0.0.1:${String(port)}`;
  const args = [ENTRY, 'send', '--to', to, '--count', String(count), '--resend', '--json'];
  const sent = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let report = '';
  sent.stdout.on('data', (bytes: Buffer) => { report += bytes.toString(); });
  await new Promise((resolve) => { sent.once('close', resolve); });
  return (JSON.parse(report) as { accepted: number }).accepted;
}

/** Asks the sink until it has so many. */
async function sinkHas(adminPort: number, messages: number, boundMs: number): Promise<void> {
  const endMs = performance.now() + boundMs;
  for (;;) {
    const counts = (await (await fetch(`http://127.0.0.1:${String(adminPort)}/counts`)).json()) as SinkCounts;
    const text = `the sink has ${String(counts.messages)} of ${String(messages)} messages`;
    assert.ok(counts.messages <= messages, text);
    if (counts.messages === messages) return;
    assert.ok(performance.now() < endMs, text);
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}

/** Until the file says so. */
async function linesIn(file: string, isThere: (text: string) => boolean): Promise<void> {
  const endMs = performance.now() + WAIT_MS;
  for (;;) {
    const text = existsSync(file) ? readFileSync(file, 'latin1') : '';
    if (isThere(text)) return;
    assert.ok(performance.now() < endMs, `${file} has:\n${text.slice(-4_000)}`);
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** The kernel tells the end of a process that is not our child by its pid alone. */
async function gone(pids: readonly number[]): Promise<void> {
  const endMs = performance.now() + WAIT_MS;
  while (pids.some(isAlive)) {
    assert.ok(performance.now() < endMs, `still alive: ${pids.filter(isAlive).join(', ')}`);
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
}

/** Until this gateway holds its own partitions again, all of them. */
async function handedBack(adminPort: number): Promise<void> {
  const endMs = performance.now() + WAIT_MS;
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${String(adminPort)}/api/v1/status`).catch(() => undefined);
    const status = (await answer?.json()) as StatusAnswer | undefined;
    if (status?.ready === true && status.partitions === 16) return;
    assert.ok(performance.now() < endMs, `not handed back: ${JSON.stringify(status)}`);
    await new Promise((resolve) => { setTimeout(resolve, 50); });
  }
}

afterEach(async () => {
  for (const run of runs) {
    run.child.kill('SIGKILL');
    await run.exited;
  }
  runs = [];
  await gone([...pidsSeen]);
  pidsSeen.clear();
});

describe('twinpost up', () => {
  test('shows where things are, restarts a killed process, and stops all on SIGINT with exit code 0', async () => {
    const { run, port } = await startUp();
    assert.match(run.output, new RegExp(`send mail to +127\\.0\\.0\\.1:${String(port('2525'))}`));
    assert.match(run.output, /swaks --server/);
    assert.ok(run.pids.every((pid) => pid > 0 && isAlive(pid)));
    for (const name of ['gateway', 'store-b', 'sink']) {
      const from = run.output.length;
      process.kill(run.pidOf(name), 'SIGKILL');
      const again = await run.said(new RegExp(`${name} runs again as pid (\\d+)`), from);
      pidsSeen.add(Number(again[1]));
      await run.said(/accepted \S+ \(\S+\/s\) .* store-a SYNC {2}store-b SYNC\n/, from + again.index);
    }
    assert.equal(await send(port('2525'), 20), 20);
    run.child.kill('SIGINT');
    assert.equal(await run.exited, 0, run.error);
    assert.match(run.output, /stopped\n$/);
    await gone([...pidsSeen]);
  });

  test('its processes write their logs by themselves, and go on in a new file past 32 MiB', TWO_MINUTES, async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-up-logs-'));
    const { run, port } = await startUp({}, ['--state-dir', folder]);
    const file = path.join(folder, 'gateway.log');
    assert.equal(await send(port('2525'), 20), 20);
    const events = (text: string, event: string): number => text.split('\n').filter((line) => line.includes(`"event":"${event}"`)).length;
    await linesIn(file, (text) => events(text, 'received') === 20 && events(text, 'delivered') === 20);
    // A hole in front of what comes next: as long as that, without the time to fill it.
    truncateSync(file, 33 * 1024 * 1024);
    await linesIn(file, (text) => text.includes('the log file was opened anew'));
    assert.equal(statSync(`${file}.1`).size >= 33 * 1024 * 1024, true);
    assert.equal(await send(port('2525'), 20), 20);
    await linesIn(file, (text) => events(text, 'received') === 20 && events(text, 'delivered') === 20);
    assert.equal(events(readFileSync(`${file}.1`, 'latin1'), 'received'), 20);
    run.child.kill('SIGTERM');
    assert.equal(await run.exited, 0, run.error);
    rmSync(folder, { recursive: true });
  });

  test('ends by no signal but SIGTERM and SIGINT, and passes SIGHUP on', TWO_MINUTES, async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-up-signals-'));
    const { run, port } = await startUp({}, ['--state-dir', folder]);
    assert.ok(run.child.pid !== undefined);
    for (const signal of HARMLESS_SIGNALS) {
      for (const pid of [run.child.pid, ...run.pids]) {
        process.kill(pid, signal);
        process.kill(pid, 'SIGCONT');
      }
    }
    const reloads = (text: string): number => text.split('"event":"reload"').length - 1;
    await linesIn(path.join(folder, 'gateway.log'), (text) => reloads(text) > 0);
    const before = reloads(readFileSync(path.join(folder, 'gateway.log'), 'latin1'));
    run.child.kill('SIGHUP');
    await linesIn(path.join(folder, 'gateway.log'), (text) => reloads(text) > before);
    await linesIn(path.join(folder, 'store-a.log'), (text) => reloads(text) > 0);
    assert.equal(await send(port('2525'), 20), 20);
    assert.doesNotMatch(run.output, /died/);
    assert.ok(run.pids.every(isAlive));
    run.child.kill('SIGTERM');
    assert.equal(await run.exited, 0, run.error);
    rmSync(folder, { recursive: true });
  });

  test('names a busy port and its role in one line', async () => {
    const { config } = await startUp();
    const second = new UpRun(config);
    runs.push(second);
    assert.equal(await second.exited, 1);
    assert.equal(second.output, '');
    assert.match(second.error, /^twinpost: ports .*\d+ \(gateway SMTP\).* in use\. [^\n]*\n$/);
  });

  test('one of two gateways delivers the mail of the other, which was killed', TWO_MINUTES, async () => {
    const { run, port } = await startUp({}, ['--gateways', '2']);
    const [first, second] = [port('2525'), port('2525') + 2];
    const banner = `send mail to +127\\.0\\.0\\.1:${String(first)} +127\\.0\\.0\\.1:${String(second)}`;
    assert.match(run.output, new RegExp(banner));
    // The next hop stands still: everything is queued when the gateway dies.
    process.kill(run.pidOf('sink'), 'SIGSTOP');
    assert.equal(await send(first, 500), 500);
    const from = run.output.length;
    process.kill(run.pidOf('gateway-1'), 'SIGKILL');
    process.kill(run.pidOf('sink'), 'SIGCONT');
    await run.said(/gateway-1 died \(SIGKILL\); started again in 20000 ms/, from);
    await sinkHas(port('9400'), 500, WAIT_MS);
    assert.doesNotMatch(run.output, /gateway-1 runs again/, 'the second gateway alone has delivered it');
    await run.said(/^accepted \d+\+ .*arrived 500 gaps 0 altered 0 repeated 0/m, from);
    const again = await run.said(/gateway-1 runs again as pid (\d+)/, from);
    pidsSeen.add(Number(again[1]));
    await handedBack(port('8025'));
    assert.equal(await send(second, 20), 20);
    run.child.kill('SIGTERM');
    assert.equal(await run.exited, 0, run.error);
    assert.match(run.output, /stopped\n$/);
  });

  test('keeps what arrived for `inbox`, and `queue top` shows what waits', TWO_MINUTES, async () => {
    const { run, port } = await startUp();
    const [sink, gateway] = [`127.0.0.1:${String(port('9400'))}`, `127.0.0.1:${String(port('8025'))}`];
    assert.match(run.output, new RegExp(`inbox --from ${sink}`));
    assert.deepEqual([(await twinpost(['inbox', '--from', sink])).code, (await twinpost(['queue', 'top', '--ticks', '1', '--from', gateway])).code], [1, 0]);
    assert.equal(await send(port('2525'), 30), 30);
    await run.said(/^accepted 30 .*arrived 30 gaps 0 altered 0 repeated 0/m);
    const listed = await twinpost(['inbox', '--from', sink, '--limit', '5']);
    assert.match(listed.out, /^Message +Arrived +Size +From +To +Subject\n(.*\n){5}-- 5 of 30\n$/);
    const rows = (await twinpost(['inbox', '--from', sink, '--json'])).out.trimEnd().split('\n').map((line) => JSON.parse(line) as { n: number; recipients: { address: string }[] });
    assert.deepEqual(rows.map(({ n }) => n), Array.from({ length: 20 }, (_none, i) => 11 + i));
    assert.match(rows[0]?.recipients[0]?.address ?? '', /@/);
    const content = await twinpost(['inbox', '30', '--from', sink]);
    assert.match(content.out, /^Received: .*\r\n[^]*\r\nX-Twinpost-Run: /);
    const none = await twinpost(['inbox', '31', '--from', sink]);
    assert.deepEqual([none.code, none.error], [1, 'twinpost: the sink has no message 31, or no more\n']);
    process.kill(run.pidOf('sink'), 'SIGSTOP');
    assert.equal(await send(port('2525'), 10), 10);
    const top = await twinpost(['queue', 'top', '--ticks', '2', '--json', '--from', gateway]);
    const looks = top.out.trimEnd().split('\n').map((line) => JSON.parse(line) as { queued_messages: number; received_per_second: number | null; queues: { messages: number; growth: number | null }[] });
    assert.deepEqual(looks.map((one) => [one.queued_messages, one.received_per_second, one.queues.reduce((sum, { messages }) => sum + messages, 0), one.queues[0]?.growth]), [[10, null, 10, null], [10, 0, 10, 0]]);
    assert.match((await twinpost(['queue', 'top', '--ticks', '1', '--from', gateway])).out, /queued 10 in \d+ queues? .*\n\nQueue +Messages +Growth\/s/);
    process.kill(run.pidOf('sink'), 'SIGCONT');
    await run.said(/arrived 40 gaps 0 altered 0 repeated 0/);
  });

  test('goes on with what it could not deliver before it stopped', TWO_MINUTES, async () => {
    const words = { 'delivery:': 'delivery:\n    stop_timeout: 1s' };
    const { run, port, config } = await startUp(words, ['--gateways', '2']);
    process.kill(run.pidOf('sink'), 'SIGSTOP');
    assert.equal(await send(port('2525'), 200), 200);
    assert.equal(await send(port('2525') + 2, 100), 100);
    run.child.kill('SIGTERM');
    assert.equal(await run.exited, 0, run.error);
    const said = /300 messages or more could not be delivered and wait in (\S+): go on with twinpost up/;
    const left = said.exec(run.output);
    const folder = left?.[1] ?? assert.fail(run.output);
    const next = await begun(config, ['--gateways', '2', '--state-dir', folder]);
    await sinkHas(port('9400'), 300, WAIT_MS);
    next.child.kill('SIGTERM');
    assert.equal(await next.exited, 0, next.error);
    assert.doesNotMatch(next.output, /could not be delivered/);
    rmSync(folder, { recursive: true });
  });

  test('adds up all workers of a gateway', TWO_MINUTES, async () => {
    const { run, port } = await startUp({ 'delivery:': 'workers: 2\n  delivery:' });
    assert.equal(await send(port('2525'), 30), 30);
    await run.said(/^accepted 30 .* queued gateway-1 0 {2}gateway-2 0 {3}arrived 30 gaps 0 /m);
    run.child.kill('SIGTERM');
    assert.equal(await run.exited, 0, run.error);
  });

  test('leaves no process behind when it is killed itself', async () => {
    const { run } = await startUp();
    run.child.kill('SIGKILL');
    await run.exited;
    await gone(run.pids);
  });
});
