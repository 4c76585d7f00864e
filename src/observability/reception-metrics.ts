/**
 * Metrics of what clients do before their mail, and of who is asked about them: TLS, AUTH, look-ups by HTTP,
 * DNS blocklists, and files that are read again when they change. Counted once a handshake, an AUTH, a
 * question or a change of a file: without those nothing is done here.
 *
 * Labels are words of this program. What is refused is in twinpost_rejected_total (gateway-metrics.ts).
 */
import type { ReceptionAnswer } from '../admin-api/gateway-answers.js';
import type { HandshakeResult } from '../platform/transport.js';
import { ExportedHistogram, FixedHistogram } from './fixed-histogram.js';
import type { Series } from './series.js';

/**
 * `later`: too many wait, or nobody can tell; `cancelled`: by the client, which may just go, or it said what
 * is no AUTH.
 */
export type AuthResult = 'ok' | 'failed' | 'later' | 'cancelled';
/** What is read again when it changes. */
export type FollowedKind = 'ca' | 'certificate' | 'dkim' | 'passwords' | 'recipients' | 'users';

/** Seconds until an answer; `timeout` is a minute at most. */
const LOOKUP_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** Questions to one server. What is asked and has neither answer nor failure is on its way. */
export class LookupMeter {
  asked = 0;
  answered = 0;
  failed = 0;
  /** Of answers and failures. */
  readonly seconds = new FixedHistogram(LOOKUP_BUCKETS);

  ended(hasAnswer: boolean, ms: number): void {
    if (hasAnswer) this.answered += 1;
    else this.failed += 1;
    this.seconds.observe(ms / 1000);
  }
}

/** `refused`: the list will not say; `unasked`: too many clients were being asked about. */
export type BlocklistAnswer = 'listed' | 'clear' | 'refused' | 'failed' | 'unasked';

/** One answer may get lost. */
const FAILURES_IN_A_ROW = 3;

/** What DNS blocklists say of clients; their names are those of the configuration. */
export class BlocklistMeter {
  readonly #answers = new Map<string, Map<BlocklistAnswer, number>>();
  /** Answers in a row that said nothing, by list. */
  readonly #failures = new Map<string, number>();

  answered(list: string, answer: BlocklistAnswer): void {
    const answers = this.#answers.get(list) ?? new Map<BlocklistAnswer, number>();
    this.#answers.set(list, answers);
    answers.set(answer, (answers.get(answer) ?? 0) + 1);
    if (answer === 'unasked') return;
    const isFailure = answer === 'failed' || answer === 'refused';
    this.#failures.set(list, isFailure ? (this.#failures.get(list) ?? 0) + 1 : 0);
  }

  get answers(): ReadonlyMap<string, ReadonlyMap<BlocklistAnswer, number>> {
    return this.#answers;
  }

  get failing(): string[] {
    return [...this.#failures].filter(([, count]) => count >= FAILURES_IN_A_ROW).map(([list]) => list);
  }
}

export class ReceptionMetrics {
  readonly userLookups = new LookupMeter();
  readonly recipientLookups = new LookupMeter();
  readonly blocklists = new BlocklistMeter();
  readonly #handshakes = new Map<HandshakeResult, number>();
  readonly #auths = new Map<string, Map<AuthResult, number>>();
  readonly #files = new Map<FollowedKind, boolean>();
  /** Why no table of recipients can be used, neither what is on disk nor the old one; '' where one can. */
  recipientsDeferredBy = '';
  /** Unix time in milliseconds at which certificates of this process end, by use. */
  certificateEnds: ReadonlyMap<string, number> = new Map();

  handshake(result: HandshakeResult): void {
    this.#handshakes.set(result, (this.#handshakes.get(result) ?? 0) + 1);
  }

  /** `mechanism` is one of those that are offered. */
  auth(mechanism: string, result: AuthResult): void {
    const results = this.#auths.get(mechanism) ?? new Map<AuthResult, number>();
    this.#auths.set(mechanism, results);
    results.set(result, (results.get(result) ?? 0) + 1);
  }

  /** `isStale`: what is on disk can't be used, what was read before stays in force; undefined: no file. */
  followed(file: FollowedKind, isStale: boolean | undefined): void {
    if (isStale === undefined) this.#files.delete(file);
    else this.#files.set(file, isStale);
  }

  get handshakes(): ReadonlyMap<HandshakeResult, number> {
    return this.#handshakes;
  }

  get auths(): ReadonlyMap<string, ReadonlyMap<AuthResult, number>> {
    return this.#auths;
  }

  get files(): ReadonlyMap<FollowedKind, boolean> {
    return this.#files;
  }

  answer(): ReceptionAnswer {
    const { userLookups, recipientLookups } = this;
    const all = sum(this.#handshakes.values());
    const results = [...this.#auths.values()];
    return {
      tls_handshakes: all, tls_failed: all - (this.#handshakes.get('ok') ?? 0),
      auth: sum(results.flatMap((each) => [...each.values()])),
      auth_failed: sum(results.flatMap((each) => [...each.values()])) - sum(results.map(okOf)),
      lookups: userLookups.asked + recipientLookups.asked,
      lookups_failed: userLookups.failed + recipientLookups.failed,
      blocklists_failing: this.blocklists.failing,
      stale_files: [...this.#files].filter(([, isStale]) => isStale).map(([file]) => file),
      ...(this.recipientsDeferredBy === '' ? {} : { recipients_deferred_by: this.recipientsDeferredBy }),
      certificates: Array.from(this.certificateEnds, ([use, endsMs]) =>
        ({ use, ends: Math.floor(endsMs / 1000) })),
    };
  }
}

export function exportReception(series: Series, metrics: ReceptionMetrics): void {
  series.counters('tls_handshakes', 'TLS handshakes of clients, by how they ended', ['result'], () =>
    [...metrics.handshakes].map(([result, count]) => [{ result }, count]));
  series.counters('auth', 'Ends of AUTH of clients', ['mechanism', 'result'], () =>
    [...metrics.auths].flatMap(([mechanism, results]) =>
      [...results].map(([result, count]) => [{ mechanism, result }, count] as const)));
  series.counters('blocklist_answers', 'What DNS blocklists said of clients', ['list', 'answer'], () =>
    [...metrics.blocklists.answers].flatMap(([list, answers]) =>
      [...answers].map(([answer, count]) => [{ list, answer }, count] as const)));
  exportLookups(series, 'user', 'about a password', metrics.userLookups);
  exportLookups(series, 'recipient', 'about a recipient', metrics.recipientLookups);
  const staleHelp = '1 while what is on disk can not be used, and what was read before stays in force';
  series.gauges('stale_files', staleHelp, ['file'], () =>
    [...metrics.files].map(([file, isStale]) => [{ file }, Number(isStale)]));
  exportCertificateEnds(series, () => metrics.certificateEnds);
}

/** Of gateways and stores. */
export function exportCertificateEnds(series: Series, ends: () => ReadonlyMap<string, number>): void {
  series.gauges(
    'certificate_expiry_timestamp_seconds',
    'When the certificate in force for smtp, links, admin or register ends', ['use'],
    () => [...ends()].map(([use, endsMs]) => [{ use }, Math.floor(endsMs / 1000)]),
  );
}

function exportLookups(series: Series, of: string, about: string, meter: LookupMeter): void {
  series.counters(`${of}_lookups`, `Questions by HTTP ${about}, and how they ended`, ['what'], () =>
    [[{ what: 'asked' }, meter.asked], [{ what: 'answered' }, meter.answered],
      [{ what: 'failed' }, meter.failed]]);
  const help = `A question by HTTP ${about} until its answer or failure`;
  new ExportedHistogram(series.registry, `twinpost_${of}_lookup_seconds`, help, meter.seconds);
}

function okOf(results: ReadonlyMap<AuthResult, number>): number {
  return results.get('ok') ?? 0;
}

function sum(counts: Iterable<number>): number {
  let total = 0;
  for (const count of counts) total += count;
  return total;
}
