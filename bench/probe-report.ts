/**
 * What turn-probe.ts and memory-probe.ts tell of a daemon, and how a bench asks for it.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { until } from '../test/process/cluster.js';

/** Environment of a daemon: where its reports go. */
export const TURN_PROBE_FOLDER = 'TWINPOST_BENCH_PROBE';

/** The same, of memory-probe.ts. */
export const MEMORY_PROBE_FOLDER = 'TWINPOST_BENCH_MEMORY';

/** What V8 counts: its heap, and what objects of it hold outside of it, buffers above all. */
export interface CountedMemory {
  readonly heapBytes: number;
  readonly outsideBytes: number;
}

/** Since the report before. */
export interface TurnReport {
  readonly turns: number;
  /** CPU time of the process in one turn of the event loop. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly maxMs: number;
  readonly heapUsedBytes: number;
  readonly heapTotalBytes: number;
  readonly residentBytes: number;
}

/** Daemons started between open() and close() with `nodeArguments` can be asked. */
export class Probes {
  readonly #folder = mkdtempSync(join(tmpdir(), 'twinpost-probe-'));
  readonly nodeArguments = ['--import', pathToFileURL(join(dirname(fileURLToPath(import.meta.url)), 'turn-probe.js')).href];

  constructor() {
    process.env[TURN_PROBE_FOLDER] = this.#folder;
  }

  async read(pid: number): Promise<TurnReport> {
    const file = join(this.#folder, `${pid}.json`);
    rmSync(file, { force: true });
    process.kill(pid, 'SIGUSR2');
    await until(`process ${pid} tells of its turns`, () => existsSync(file));
    return JSON.parse(readFileSync(file, 'utf8')) as TurnReport;
  }

  close(): void {
    Reflect.deleteProperty(process.env, TURN_PROBE_FOLDER);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Of daemons started between open() and close() with `nodeArguments`. */
export class MemoryProbes {
  readonly #folder = mkdtempSync(join(tmpdir(), 'twinpost-memory-'));
  readonly nodeArguments = ['--import', pathToFileURL(join(dirname(fileURLToPath(import.meta.url)), 'memory-probe.js')).href];

  constructor() {
    process.env[MEMORY_PROBE_FOLDER] = this.#folder;
  }

  /** What it told last; undefined while it has not. */
  read(pid: number): CountedMemory | undefined {
    const file = join(this.#folder, `${pid}.json`);
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as CountedMemory) : undefined;
  }

  close(): void {
    Reflect.deleteProperty(process.env, MEMORY_PROBE_FOLDER);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
