/**
 * The CPU time of a peer with all its processes, those that come and go in between included. A control
 * group counts it exactly, in version 2 or 1, where one can be made; else the tree of processes is read
 * from /proc, where a process that has ended is counted by its parent once that has waited for it.
 */
import { mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

import { parseStat, ticksOfTree, type ProcessStat } from './proc-stat.js';
import { TICKS_PER_SECOND } from '../machine.js';

/** The shell enters the group, then becomes the program. */
const ENTER = 'echo $$ >"$0" && exec "$@"';
const REMOVE_TRIES = 50;
const REMOVE_WAIT_MS = 20;

interface Hierarchy {
  readonly root: string;
  readonly file: string;
  read(text: string): number;
}

const HIERARCHIES: readonly Hierarchy[] = [
  { root: '/sys/fs/cgroup', file: 'cpu.stat', read: cpuStatMicros },
  { root: '/sys/fs/cgroup/unified', file: 'cpu.stat', read: cpuStatMicros },
  { root: '/sys/fs/cgroup/cpuacct', file: 'cpuacct.usage', read: (text) => Number(text) / 1000 },
];

export class CpuGroup {
  readonly #folder: string | undefined;
  readonly #hierarchy: Hierarchy | undefined;

  constructor() {
    for (const hierarchy of HIERARCHIES) {
      const folder = join(hierarchy.root, `twinpost-bench-${process.pid}-${groups++}`);
      if (!made(folder, hierarchy)) continue;
      this.#folder = folder;
      this.#hierarchy = hierarchy;
      return;
    }
  }

  /** What to put before a command so that it and its children are counted. */
  get prefix(): readonly string[] {
    return this.#folder === undefined ? [] : ['/bin/sh', '-c', ENTER, join(this.#folder, 'cgroup.procs')];
  }

  get isExact(): boolean {
    return this.#folder !== undefined;
  }

  /** Used so far. `pid`: the process that all others descend from. */
  usedMicros(pid: number): number {
    if (this.#folder !== undefined && this.#hierarchy !== undefined) return this.#hierarchy.read(readFileSync(join(this.#folder, this.#hierarchy.file), 'latin1'));
    return (ticksOfTree(allStats(), pid) / TICKS_PER_SECOND) * 1e6;
  }

  /** When all its processes have ended. */
  async close(): Promise<void> {
    if (this.#folder === undefined) return;
    for (let tries = 1; ; tries += 1) {
      try {
        rmdirSync(this.#folder);
        return;
      } catch (error) {
        // The last processes are on their way out.
        if (tries >= REMOVE_TRIES) throw error;
        await new Promise((resolve) => setTimeout(resolve, REMOVE_WAIT_MS));
      }
    }
  }
}

let groups = 0;

function made(folder: string, hierarchy: Hierarchy): boolean {
  try {
    mkdirSync(folder);
  } catch {
    return false;
  }
  try {
    readFileSync(join(folder, hierarchy.file));
    readFileSync(join(folder, 'cgroup.procs'));
    return true;
  } catch {
    // Not a control group that counts: a plain folder, or one without this controller.
    rmdirSync(folder);
    return false;
  }
}

/** cpu.stat of version 2: lines of a name and a number. */
export function cpuStatMicros(text: string): number {
  return Number(/^usage_usec (\d+)$/m.exec(text)?.[1] ?? NaN);
}

function allStats(): ProcessStat[] {
  const stats: ProcessStat[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      stats.push(parseStat(readFileSync(`/proc/${name}/stat`, 'latin1')));
    } catch {
      // It ended meanwhile.
    }
  }
  return stats;
}
