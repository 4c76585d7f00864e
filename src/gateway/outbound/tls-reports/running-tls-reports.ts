/**
 * Reports on TLS of a running gateway: what is counted (tls-tally.ts), kept over a restart (counts-file.ts),
 * and told to domains (tls-reporter.ts), by the first of several workers for all (handover.ts).
 */
import type { Clock, EventLog } from '../../../platform/ports.js';
import type { StsPolicy } from '../pure/sts-policy.js';
import { CountsFile } from './counts-file.js';
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
}

export interface TlsReportsPorts extends Omit<TlsReporterPorts, 'counts' | 'isWhole'> {
  readonly clock: Clock;
  readonly log: EventLog;
  policyOf(domain: string): StsPolicy | undefined;
  /** Undefined: there are none. */
  readonly workers: CountingWorkers | undefined;
}

export interface CountingWorkers {
  /** It is the one that reports. */
  readonly isFirst: boolean;
  readonly others: number;
  tell(message: CountsMessage): void;
}

/** A report on an older day tells nobody anything. */
const DAYS_MAX = 7;

export class RunningTlsReports {
  readonly tally: TlsTally;
  readonly #counts = new TlsCounts();
  readonly #clock: Clock;
  readonly #file: CountsFile | undefined;
  /** Undefined: another worker reports. */
  readonly #reporter: TlsReporter | undefined;
  readonly #handover: Handover | undefined;
  readonly #takingOver: TakingOver | undefined;
  /** In whose name domains are told; undefined: nothing is counted, nobody told. */
  #inName: Reporter | undefined;
  #isLoaded = false;
  #isClosed = false;

  /** Off until renew() says in whose name it reports. */
  constructor({ id, stateDir }: TlsReportsOptions, ports: TlsReportsPorts) {
    const { clock, log, workers } = ports;
    const counts = this.#counts;
    this.#clock = clock;
    this.tally = new TlsTally(counts, clock, (domain) => ports.policyOf(domain));
    this.#file = stateDir === undefined ? undefined : new CountsFile(stateDir, log);
    const tell = (message: CountsMessage): void => { workers?.tell(message); };
    if (workers?.isFirst === false) {
      this.#handover = new Handover(id, clock.wallMs(), counts, tell);
      return;
    }
    if (workers !== undefined) this.#takingOver = new TakingOver(workers.others, counts, tell);
    const isWhole = (day: number): boolean => this.#takingOver?.isWhole(day, clock.nowMs()) ?? true;
    this.#reporter = new TlsReporter({ ...ports, counts, isWhole });
  }

  get #today(): number { return Math.floor(this.#clock.wallMs() / DAY_MS); }

  /** What the process before has left. Once; again it is nothing. */
  async load(): Promise<void> {
    if (this.#isLoaded) return;
    this.#isLoaded = true;
    const today = this.#today;
    await this.#file?.read((untold) => {
      const { day, to, counts } = untold;
      if (day > today || day <= today - DAYS_MAX) return;
      if (to === '') this.#counts.add(day, counts);
      else this.#reporter?.takeUp(untold);
    });
  }

  /** What was counted, and not told, waits where it is off; when it is on again, some of it is too old. */
  renew(inName: Reporter | undefined): void {
    const oldest = this.#today - DAYS_MAX;
    for (const day of this.#counts.days().filter((each) => each <= oldest)) {
      for (const domain of this.#counts.domains(day)) this.#counts.take(day, domain);
    }
    this.#reporter?.drop(oldest);
    this.#inName = inName;
    this.tally.isOn = inName !== undefined;
  }

  tick(nowMs: number): void {
    if (this.#isClosed || this.#inName === undefined) return;
    this.#reporter?.tick(nowMs, this.#inName);
    this.#handover?.tick(nowMs, this.#today);
  }

  /** Of another worker. */
  onMessage(message: CountsMessage): void {
    // What was taken before is not to be kept by both.
    if ('taken' in message) this.#handover?.onTaken(message.taken.from, message.taken.number);
    // Who hears no answer keeps it, and asks again: while this is off, what is in the file is not here.
    else if (!this.#isClosed && this.#inName !== undefined) this.#takingOver?.onHanded(message.handed);
  }

  /** Nobody is asked or told any more; what is under way is kept, unless it ends before keep(). */
  close(): void {
    this.#isClosed = true;
    this.#reporter?.close();
  }

  /** After close(); bounded, for nothing that a disk does may hold up a stop. */
  async keep(): Promise<void> {
    await this.#file?.write(() => [
      ...this.#counts.untold(), ...(this.#handover?.untold() ?? []), ...(this.#reporter?.untold() ?? []),
    ]);
  }
}
