/**
 * Reports on TLS of a running gateway: what is counted (tls-tally.ts), kept over a restart (counts-file.ts),
 * and told to domains (tls-reporter.ts), by the first of several workers for all (handover.ts).
 */
import type { Clock, EventLog } from '../../../platform/ports.js';
import type { StsPolicy } from '../pure/sts-policy.js';
import { CountsFile } from './counts-file.js';
import type { CountsOfDay } from './counts-file.js';
import { Handover, TakingOver } from './handover.js';
import type { CountsMessage } from './handover.js';
import type { Reporter } from './report-document.js';
import { DAY_MS, TlsCounts } from './tls-counts.js';
import { TlsReporter } from './tls-reporter.js';
import type { TlsReporterPorts } from './tls-reporter.js';
import { TlsTally } from './tls-tally.js';

export interface TlsReportsOptions {
  /** Of this gateway, or worker. */
  readonly id: string;
  /** Undefined: what is counted is gone with the process. */
  readonly stateDir: string | undefined;
  readonly reporter: Reporter;
}

export interface TlsReportsPorts extends Omit<TlsReporterPorts, 'counts'> {
  readonly clock: Clock;
  readonly log: EventLog;
  policyOf(domain: string): StsPolicy | undefined;
  /** Undefined: there are none. */
  readonly workers: CountingWorkers | undefined;
}

export interface CountingWorkers {
  /** It is the one that reports. */
  readonly isFirst: boolean;
  tell(message: CountsMessage): void;
}

const WRITE_MS = 300_000;
/** At midnight others hand over what is left: some ten seconds of counts, or the file of one that starts. */
const SETTLE_MS = 60_000;
/** A report on an older day tells nobody anything. */
const DAYS_MAX = 7;

export class RunningTlsReports {
  readonly tally: TlsTally;
  readonly #counts = new TlsCounts();
  readonly #ports: TlsReportsPorts;
  readonly #file: CountsFile | undefined;
  /** Undefined: another worker reports. */
  readonly #reporter: TlsReporter | undefined;
  readonly #handover: Handover | undefined;
  readonly #takingOver: TakingOver | undefined;
  /** The file has all of it. */
  #writtenChanges = 0;
  #lookAtMs = -Infinity;
  #writing: Promise<void> | undefined;
  #isClosed = false;

  constructor({ id, stateDir, reporter }: TlsReportsOptions, ports: TlsReportsPorts) {
    const { clock, log, workers } = ports;
    const counts = this.#counts;
    this.#ports = ports;
    this.tally = new TlsTally(counts, clock, (domain) => ports.policyOf(domain));
    this.#file = stateDir === undefined ? undefined : new CountsFile(stateDir, log);
    const tell = (message: CountsMessage): void => { workers?.tell(message); };
    if (workers?.isFirst === false) {
      this.#handover = new Handover(id, clock.wallMs(), counts, tell);
      return;
    }
    this.#reporter = new TlsReporter(reporter, workers === undefined ? 0 : SETTLE_MS, { ...ports, counts });
    if (workers !== undefined) this.#takingOver = new TakingOver(counts, tell);
  }

  /** Before anything is counted: what the process before has left. */
  async load(): Promise<void> {
    const today = Math.floor(this.#ports.clock.wallMs() / DAY_MS);
    await this.#file?.read((day, counts) => {
      if (day <= today && day > today - DAYS_MAX) this.#counts.add(day, counts);
    });
    this.#writtenChanges = this.#counts.changes;
    this.#lookAtMs = this.#ports.clock.nowMs() + WRITE_MS;
  }

  tick(nowMs: number): void {
    if (this.#isClosed) return;
    this.#reporter?.tick(nowMs);
    this.#handover?.tick(nowMs);
    if (nowMs < this.#lookAtMs || this.#writing !== undefined) return;
    this.#lookAtMs = nowMs + WRITE_MS;
    this.#writing = this.#write().finally(() => { this.#writing = undefined; });
  }

  /** Of another worker. */
  onMessage(message: CountsMessage): void {
    if (this.#isClosed) return;
    if ('handed' in message) this.#takingOver?.onHanded(message.handed);
    else this.#handover?.onTaken(message.taken.from, message.taken.number, this.#ports.clock.nowMs());
  }

  /** Nothing is counted any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#writing;
    await this.#write();
  }

  async #write(): Promise<void> {
    const { changes } = this.#counts;
    if (changes === this.#writtenChanges) return;
    this.#writtenChanges = changes;
    await this.#file?.write(this.#all());
  }

  * #all(): Generator<CountsOfDay> {
    yield * this.#counts.all();
    const inHand = this.#handover?.inHand;
    if (inHand !== undefined) for (const counts of inHand.domains) yield [inHand.day, counts];
    if (this.#reporter !== undefined) yield * this.#reporter.unasked();
  }
}
