/**
 * What a result must name to mean anything: the machine, the versions, the commit; and the CPU time and
 * memory of a process, read from /proc (Linux).
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';

import type { Machine, ProcessCost } from './options.js';

export function describeMachine(): Machine {
  const processors = cpus();
  return {
    processor: processors[0]?.model ?? 'unknown',
    processors: processors.length,
    memoryBytes: totalmem(),
    system: `${type()} ${release()}`,
    node: process.version,
    commit: commit(),
    at: new Date().toISOString(),
  };
}

function commit(): string {
  const ask = (...args: string[]): string => spawnSync('git', args, { encoding: 'utf8' }).stdout.trim();
  const name = ask('rev-parse', '--short=12', 'HEAD');
  if (name === '') return 'unknown';
  return ask('status', '--porcelain', '--untracked-files=no') === '' ? name : `${name}, with local changes`;
}

/** Clock ticks of /proc/PID/stat in a second. */
export const TICKS_PER_SECOND = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' })) || 100;
const PAGE_BYTES = Number(execFileSync('getconf', ['PAGESIZE'], { encoding: 'utf8' })) || 4096;

interface Usage {
  readonly cpuMicros: number;
  readonly memoryBytes: number;
}

/** User and system time of a process so far (proc(5), fields 14, 15 and 24), in steps of 10 ms. */
export function usageOf(pid: number): Usage {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  // The name in parentheses may hold spaces: count from behind it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[11]) + Number(fields[12]);
  return { cpuMicros: (ticks / TICKS_PER_SECOND) * 1e6, memoryBytes: Number(fields[21]) * PAGE_BYTES };
}

/** Measures what some processes use between now and cost(). */
export class Meter {
  readonly #processes: readonly (readonly [name: string, pid: number])[];
  readonly #before: readonly Usage[];

  constructor(processes: readonly (readonly [name: string, pid: number])[]) {
    this.#processes = processes;
    this.#before = processes.map(([, pid]) => usageOf(pid));
  }

  /** Of all of them together, so far. */
  cpuMicros(): number {
    return this.#processes.reduce((sum, [, pid], index) => sum + usageOf(pid).cpuMicros - (this.#before[index]?.cpuMicros ?? 0), 0);
  }

  cost(messages: number): ProcessCost[] {
    return this.#processes.map(([name, pid], index) => {
      const now = usageOf(pid);
      const used = now.cpuMicros - (this.#before[index]?.cpuMicros ?? 0);
      return { process: name, cpuMicrosPerMessage: rounded(used / messages), memoryBytes: now.memoryBytes };
    });
  }
}

export function rounded(value: number, digits = 1): number {
  return Number(value.toFixed(digits));
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((x, y) => x - y);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}
