/**
 * The table of recipients at its largest: made, asked, and replaced while it is asked.
 *
 *   node dist/bench/micro/recipient-table.js [addresses] [processes]      10,000,000 and 4 unless told otherwise
 *
 * Prints the time of the build, bytes an address on the machine (the file, once, in the system's cache, and what all
 * processes grow by together when they open it), µs a look-up of addresses that are there and that are not, and the
 * longest turn of the event loop while a new table comes into force: its CPU time, which is what this process gave it,
 * and its time by the clock, which on a machine with fewer processors than processes has their turns in it too. Exit code
 * 1 when the processor time of one of them, or memory, is more than is asked for.
 */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { buildTable } from '../../src/cli/table/build.js';
import { checkTable, followTable } from '../../src/gateway/inbound/recipients-file.js';
import { SystemClock } from '../../src/platform/node/clock.js';
import { sayVerdicts } from '../verdicts.js';
import { addressOf, writeAddresses } from './recipient-addresses.js';

const LOOKUPS = 200_000;
const LOOKUPS_A_TURN = 20;
const BOUND_MS = 120_000;

interface Asked {
  readonly hitUs: number;
  readonly missUs: number;
}

interface LongestTurn {
  readonly cpuMs: number;
  readonly clockMs: number;
}

/** A worker: looks up when it is told to, and says what that took; grows by what `memoryBytes` says. */
async function serve(file: string, count: number): Promise<void> {
  const before = anonymousBytes();
  let replaced = 0;
  const log = { debug: nothing, info: (): void => { replaced += 1; }, warn: nothing, error: nothing };
  checkTable(file);
  const running = followTable(file, { clock: new SystemClock(), log, onRead: nothing });
  const timed = (name: (i: number) => string, isThere: boolean): number => {
    const keys = Array.from({ length: LOOKUPS }, () => name(Math.floor(Math.random() * count)));
    const startUs = process.cpuUsage();
    for (const key of keys) if ((running.table.find(key) !== undefined) !== isThere) throw new Error(`${key} is ${isThere ? 'not ' : ''}there`);
    const { user, system } = process.cpuUsage(startUs);
    return (user + system) / LOOKUPS;
  };
  for await (const [word] of on(process)) {
    if (word === 'ask') process.send?.({ hitUs: timed(addressOf, true), missUs: timed((i) => `x${addressOf(i)}`, false) } satisfies Asked);
    else if (word === 'memory') process.send?.(anonymousBytes() - before);
    else if (word === 'replaced') {
      let [cpuMs, clockMs] = [0, 0];
      for (let last = turn(); replaced === 0;) {
        for (let i = 0; i < LOOKUPS_A_TURN; i++) running.table.find(addressOf(i));
        await new Promise((resolve) => { setImmediate(resolve); });
        const now = turn();
        cpuMs = Math.max(cpuMs, now.cpuMs - last.cpuMs);
        clockMs = Math.max(clockMs, now.clockMs - last.clockMs);
        last = now;
      }
      process.send?.({ cpuMs, clockMs } satisfies LongestTurn);
    }
  }
}

function turn(): LongestTurn {
  const { user, system } = process.cpuUsage();
  return { cpuMs: (user + system) / 1000, clockMs: performance.now() };
}

async function* on(from: NodeJS.Process): AsyncGenerator<readonly [unknown]> {
  for (;;) yield [(await once(from, 'message'))[0]];
}

function nothing(): void {
  // Only what is replaced counts.
}

/** Of this process alone: pages of files are shared. */
function anonymousBytes(): number {
  const [, kib] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return Number(kib) * 1024;
}

async function ask<T>(child: ChildProcess, word: string): Promise<T> {
  const answer = once(child, 'message', { signal: AbortSignal.timeout(BOUND_MS) });
  child.send(word);
  return (await answer)[0] as T;
}

async function main(count: number, processes: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-table-'));
  const [text, file] = [join(folder, 'text'), join(folder, 'table')];
  const children: ChildProcess[] = [];
  try {
    writeAddresses(text, count);
    const startMs = performance.now();
    const { bytes } = buildTable(text, file, () => undefined);
    console.log(`built: ${String(count)} addresses in ${((performance.now() - startMs) / 1000).toFixed(1)} s, ${(bytes / 1e6).toFixed(1)} MB`);
    for (let i = 0; i < processes; i++) children.push(fork(fileURLToPath(import.meta.url), ['serve', file, String(count)]));
    const grown = await Promise.all(children.map((child) => ask<number>(child, 'memory')));
    const own = grown.reduce((sum, each) => sum + each, 0);
    console.log(`memory: ${(bytes / count).toFixed(1)} bytes an address in the cache of the machine; ${String(processes)} processes grew by ${(own / 1e6).toFixed(1)} MB together when they opened it`);
    let slowestUs = 0;
    for (const child of children) {
      const { hitUs, missUs } = await ask<Asked>(child, 'ask');
      slowestUs = Math.max(slowestUs, hitUs, missUs);
      console.log(`a look-up: ${hitUs.toFixed(2)} µs of CPU for one that is there, ${missUs.toFixed(2)} µs for one that is not`);
    }
    const next = join(folder, 'next');
    buildTable(text, next, () => undefined);
    const longest = children.map((child) => ask<LongestTurn>(child, 'replaced'));
    renameSync(next, file);
    const turns = await Promise.all(longest);
    const most = (of: (each: LongestTurn) => number): number => Math.max(...turns.map(of));
    console.log(`replaced: longest turn ${most((each) => each.clockMs).toFixed(1)} ms by the clock, in ${String(processes)} processes that all read it at once`);
    sayVerdicts([
      { what: 'a look-up, CPU', value: slowestUs, atMost: 5, unit: ' µs' },
      { what: 'an address on the machine', value: (bytes + own) / count, atMost: 32, unit: ' bytes' },
      { what: 'longest turn while the table is replaced, CPU', value: most((each) => each.cpuMs), atMost: 20, unit: ' ms' },
    ]);
  } finally {
    for (const child of children) child.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  }
}

const [role, file = '', count = ''] = process.argv.slice(2);
if (role === 'serve') await serve(file, Number(count));
else await main(Number(role ?? 10_000_000), Number(file === '' ? 4 : file));
