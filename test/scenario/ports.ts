/**
 * Small ports of the scenario world: secrets that come from the seed, and a log that keeps its lines.
 */
import type { Prng } from '../../src/base/prng.js';
import { SystemSecrets } from '../../src/platform/node/secrets.js';
import type { EventLog, LogFields, Secrets } from '../../src/platform/ports.js';

/** The real HMAC; bytes from the seed, so that a run can be repeated. */
export class SeededSecrets implements Secrets {
  sha256(data: Uint8Array): Uint8Array {
    return new SystemSecrets().sha256(data);
  }

  private readonly real = new SystemSecrets();
  private readonly prng: Prng;

  constructor(prng: Prng) {
    this.prng = prng;
  }

  hmacSha256(key: Uint8Array, data: Uint8Array): Uint8Array {
    return this.real.hmacSha256(key, data);
  }

  randomBytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.prng.below(256));
  }

  equal(a: Uint8Array, b: Uint8Array): boolean {
    return this.real.equal(a, b);
  }
}

export interface LogLine {
  readonly atMs: number;
  readonly level: 'info' | 'warn' | 'error';
  readonly event: string;
  readonly text: string;
  readonly fields: LogFields;
}

/** Keeps what was logged; debug lines are dropped. */
export class KeptLog implements EventLog {
  readonly lines: LogLine[] = [];
  private readonly nowMs: () => number;
  private readonly onLine: (line: LogLine) => void;

  constructor(nowMs: () => number, onLine: (line: LogLine) => void) {
    this.nowMs = nowMs;
    this.onLine = onLine;
  }

  debug(): void {}

  info(event: string, text: string, fields: LogFields = {}): void {
    this.keep('info', event, text, fields);
  }

  warn(event: string, text: string, fields: LogFields = {}): void {
    this.keep('warn', event, text, fields);
  }

  error(event: string, text: string, fields: LogFields = {}): void {
    this.keep('error', event, text, fields);
  }

  /** How often a line with this text in it was written. */
  count(part: string): number {
    return this.lines.filter((line) => line.text.includes(part)).length;
  }

  private keep(level: LogLine['level'], event: string, text: string, fields: LogFields): void {
    const line: LogLine = { atMs: this.nowMs(), level, event, text, fields };
    this.lines.push(line);
    this.onLine(line);
  }
}
