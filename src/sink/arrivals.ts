/**
 * What a sink keeps of each marked message: a row of numbers in flat columns, in order of arrival, bounded;
 * and, if asked for, one NDJSON line each. Owned by sink/sink.ts, judged by sink/verify.ts.
 *
 *     {"n":1,"us":123.4,"kind":1,"begun":1,"run":"5f3a9c01","id":42,"queue":"a.example","serial":7,"hash":1,
 *      "intact":true,"bytes":1000,"from":"…","to":["…"]}                        (one line in the file)
 *
 * `us` is when the final dot came, or the transaction ended without one; `begun` counts MAIL commands. A
 * transaction without content is known by its envelope id (load/marks.ts), if it has one.
 */
import { closeSync, openSync, writeSync } from 'node:fs';

import type { Marks } from '../load/marks.js';
import type { Arrival, ArrivalKind } from './verify.js';

const FIRST_ROWS = 4096;
const FLUSH_CHARACTERS = 64 * 1024;

/** Rows of arrivals. Names are kept once. */
export class Arrivals {
  readonly #rowsMax: number;
  readonly #names: string[] = [];
  readonly #nameNumbers = new Map<string, number>();
  #ids = new Float64Array(FIRST_ROWS);
  #serials = new Float64Array(FIRST_ROWS);
  #begun = new Float64Array(FIRST_ROWS);
  #hashes = new Float64Array(FIRST_ROWS);
  #runs = new Uint32Array(FIRST_ROWS);
  #queues = new Uint32Array(FIRST_ROWS);
  #kinds = new Uint8Array(FIRST_ROWS);
  #rows = 0;
  #dropped = 0;

  constructor(rowsMax: number) {
    this.#rowsMax = rowsMax;
  }

  /** False once an arrival found no room. */
  get complete(): boolean {
    return this.#dropped === 0;
  }

  get length(): number {
    return this.#rows;
  }

  add(marks: Marks, kind: ArrivalKind, begun: number): void {
    if (this.#rows >= this.#rowsMax) {
      this.#dropped++;
      return;
    }
    if (this.#rows === this.#ids.length) this.#grow();
    const row = this.#rows++;
    this.#ids[row] = marks.id;
    this.#serials[row] = marks.serial;
    this.#begun[row] = begun;
    // A content that does not have the hash in its own marks is altered, whatever the log says.
    this.#hashes[row] = marks.actualHash === marks.hash ? marks.actualHash : -1;
    this.#runs[row] = this.#numberOf(marks.run);
    this.#queues[row] = this.#numberOf(marks.queue);
    this.#kinds[row] = kind;
  }

  list(): Arrival[] {
    const list: Arrival[] = [];
    for (let row = 0; row < this.#rows; row++) {
      list.push({
        run: this.#names[this.#runs[row] ?? 0] ?? '',
        id: this.#ids[row] ?? 0,
        queue: this.#names[this.#queues[row] ?? 0] ?? '',
        serial: this.#serials[row] ?? 0,
        kind: (this.#kinds[row] ?? 0) as ArrivalKind,
        begun: this.#begun[row] ?? 0,
        hash: this.#hashes[row] ?? -1,
      });
    }
    return list;
  }

  #numberOf(name: string): number {
    const known = this.#nameNumbers.get(name);
    if (known !== undefined) return known;
    this.#nameNumbers.set(name, this.#names.length);
    return this.#names.push(name) - 1;
  }

  #grow(): void {
    const rows = Math.min(this.#rowsMax, this.#rows * 2);
    this.#ids = grown(this.#ids, new Float64Array(rows));
    this.#serials = grown(this.#serials, new Float64Array(rows));
    this.#begun = grown(this.#begun, new Float64Array(rows));
    this.#hashes = grown(this.#hashes, new Float64Array(rows));
    this.#runs = grown(this.#runs, new Uint32Array(rows));
    this.#queues = grown(this.#queues, new Uint32Array(rows));
    this.#kinds = grown(this.#kinds, new Uint8Array(rows));
  }
}

function grown<Column extends Float64Array | Uint32Array | Uint8Array>(old: Column, larger: Column): Column {
  larger.set(old);
  return larger;
}

/** The arrival log. Written in pieces; flush() for the rest. */
export class ArrivalLog {
  readonly #file: number;
  #pending = '';
  #lines = 0;

  constructor(path: string) {
    this.#file = openSync(path, 'w');
  }

  record(
    micros: number, kind: ArrivalKind, begun: number, marks: Marks | undefined, bytes: number,
    from: string, to: readonly string[],
  ): void {
    const line = {
      n: ++this.#lines, us: micros, kind, begun,
      run: marks?.run ?? '', id: marks?.id ?? 0, queue: marks?.queue ?? '',
      serial: marks?.serial ?? 0, hash: marks?.actualHash ?? 0,
      intact: marks !== undefined && marks.actualHash === marks.hash, bytes, from, to,
    };
    this.#pending += `${JSON.stringify(line)}\n`;
    if (this.#pending.length >= FLUSH_CHARACTERS) this.flush();
  }

  flush(): void {
    if (this.#pending.length > 0) writeSync(this.#file, this.#pending);
    this.#pending = '';
  }

  close(): void {
    this.flush();
    closeSync(this.#file);
  }
}
