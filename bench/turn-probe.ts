/**
 * Loaded into a daemon before its own program (node --import): measures the CPU time of the process in each
 * turn of its event loop. An unreferenced immediate runs once a turn, after the poll for sockets, and does
 * not keep the loop from sleeping; the CPU time between two of them is that of one turn, threads of the
 * collector included. On SIGUSR2 it writes what it has to FOLDER/PID.json and begins anew.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { Histogram } from '../src/load/histogram.js';
import { TURN_PROBE_FOLDER, type TurnReport } from './probe-report.js';

class TurnProbe {
  readonly #file: string;
  #turns = new Histogram();
  #before = 0;
  readonly #onTurn = (): void => {
    const now = cpuMicros();
    this.#turns.record(now - this.#before);
    this.#before = now;
    setImmediate(this.#onTurn).unref();
  };

  constructor(file: string) {
    this.#file = file;
  }

  start(): void {
    process.on('SIGUSR2', () => { this.#write(); });
    this.#before = cpuMicros();
    setImmediate(this.#onTurn).unref();
  }

  #write(): void {
    const turns = this.#turns;
    const ms = (share: number): number => turns.quantile(share) / 1000;
    const memory = process.memoryUsage();
    const report: TurnReport = {
      turns: turns.count, p50Ms: ms(0.5), p99Ms: ms(0.99), p999Ms: ms(0.999), maxMs: turns.max / 1000,
      heapUsedBytes: memory.heapUsed, heapTotalBytes: memory.heapTotal, residentBytes: memory.rss,
    };
    writeFileSync(`${this.#file}.new`, JSON.stringify(report));
    renameSync(`${this.#file}.new`, this.#file);
    this.#turns = new Histogram();
    this.#before = cpuMicros();
  }
}

function cpuMicros(): number {
  const used = process.cpuUsage();
  return used.user + used.system;
}

const folder = process.env[TURN_PROBE_FOLDER];
if (folder !== undefined) new TurnProbe(join(folder, `${process.pid}.json`)).start();
