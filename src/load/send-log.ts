/**
 * The send log: one NDJSON line for each try to send a message, the evidence that a sink's arrivals are
 * judged by (sink/verify.ts). The writer builds lines by hand, because it runs once a message.
 *
 *     {"id":42,"queue":"a.example","serial":7,"dot":123456.789,"reply":123460.1,"code":250,"hash":3735928559}
 *
 * dot: when the final dot was handed to the socket, read *before* the write; reply: when its reply was read
 * (0: none came). Both in microseconds of the machine's monotonic clock, so that logs of several senders on
 * one machine compare. code: 0 without a reply; a message refused before its final dot has dot 0.
 */
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';

export interface SendRecord {
  readonly id: number;
  readonly queue: string;
  readonly serial: number;
  readonly dot: number;
  readonly reply: number;
  readonly code: number;
  readonly hash: number;
}

/** The first line of a log: whose it is. */
export interface SendLogHead {
  readonly run: string;
  readonly count: number;
}

export interface SendLogFile extends SendLogHead {
  readonly records: readonly SendRecord[];
}

/** Lines are handed to the file system in pieces of this size. */
const FLUSH_CHARACTERS = 256 * 1024;

export class SendLog {
  readonly #file: number;
  #pending: string;

  constructor(path: string, head: SendLogHead) {
    this.#file = openSync(path, 'w');
    this.#pending = `${JSON.stringify(head)}\n`;
  }

  /** `queue` must need no escaping in JSON: run.ts admits host names only. */
  record(
    id: number, queue: string, serial: number, dot: number, reply: number, code: number, hash: number,
  ): void {
    this.#pending +=
      '{"id":' + id + ',"queue":"' + queue + '","serial":' + serial + ',"dot":' + dot + ',"reply":' + reply +
      ',"code":' + code + ',"hash":' + hash + '}\n';
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

/** Reads a log whole. */
export function readSendLog(path: string): SendLogFile {
  return parseSendLog(readFileSync(path, 'latin1'));
}

/** A last line that is cut off (the sender was killed) is left out. */
export function parseSendLog(text: string): SendLogFile {
  const lines = text.split('\n');
  lines.pop();
  const head = JSON.parse(lines[0] ?? '{"run":"","count":0}') as SendLogHead;
  const records: SendRecord[] = [];
  for (let line = 1; line < lines.length; line++) records.push(JSON.parse(lines[line] ?? '') as SendRecord);
  return { run: head.run, count: head.count, records };
}

const originMicros = Number(process.hrtime.bigint()) / 1000 - performance.now() * 1000;

/** Microseconds of the monotonic clock that all processes of a machine share. */
export function monotonicMicros(): number {
  return Math.round((originMicros + performance.now() * 1000) * 10) / 10;
}
