/**
 * The judge: what a sink got, compared with what a sender was promised. One pure function over two lists:
 * the guarantees (docs/GUARANTEES.md) as they look from outside:
 *
 *   lost         accepted (2xx to the final dot), and neither delivered, refused by the sink nor reported by
 *                a DSN (G2). While deliveries go on, this counts what is still on its way.
 *   resurrected  refused at every try, yet delivered (G9)
 *   altered      its bytes do not have the hash that the sender noted
 *   duplicated   more copies than can be explained. One copy is due; one more may come from each try of the
 *                sender that got no reply, and from each time the sink cut the connection after the dot
 *                (RFC 1047). The rest must be deliveries in flight at a fault: `duplicatesMax`, 0 by default
 *                (G4).
 *   out of order x was accepted before y's final dot left the sender, one queue, yet y was attempted first
 *                (G3). `displacementMax` is how many such x may be overtaken by one y: 0 for `order: strict`,
 *                concurrency - 1 for `order: fifo`.
 *
 * An attempt begins with MAIL. That bound is exact, however slow an attempt is: whom y overtakes began before
 * y and had not come when y came, so it was in flight beside y. One that ends before its MAIL is seen (next
 * hop not reached, a kept connection found closed) goes back before all that never began, and adds nobody.
 * `orderBy: 'dot'` asks more: the same of first final dots. It holds as long as attempts end before their dot
 * for reasons of the gateway only (no right, its death, a closed connection): they cost no message its place.
 * Where the next hop defers before the dot it does not: what is deferred holds nobody.
 *
 * Without a send log, verifyBySerials takes the serials for the order and the gaps for the lost: right for
 * a sender with one connection a queue, a hint otherwise.
 */
import type { SendLogFile, SendRecord } from '../load/send-log.js';

/** What became of a message at the sink. */
export const TAKEN = 1; // answered 2xx
export const DEFERRED = 2; // answered 4xx
export const REJECTED = 3; // answered 5xx
export const CUT = 4; // kept, and the connection cut without a reply
export const REPORTED = 5; // a DSN came that quotes it
export const UNFINISHED = 6; // it ended before the final dot, or its content is too large to keep
export type ArrivalKind =
  typeof TAKEN | typeof DEFERRED | typeof REJECTED | typeof CUT | typeof REPORTED | typeof UNFINISHED;

/** One message at the sink, in the order in which transactions ended. */
export interface Arrival {
  readonly run: string;
  readonly id: number;
  readonly queue: string;
  readonly serial: number;
  readonly kind: ArrivalKind;
  /** Which mail transaction of this sink it was, counted from 1 by MAIL commands: the order of attempts. */
  readonly begun: number;
  /** CRC-32 computed from what arrived; for REPORTED that of the sender, for UNFINISHED none. */
  readonly hash: number;
}

export interface VerifyOptions {
  readonly displacementMax?: number;
  /** What is compared: the first MAIL of each message, or its first final dot. Default: start. */
  readonly orderBy?: 'start' | 'dot';
  readonly duplicatesMax?: number;
}

/** How many, and the first few by name: "queue#serial (id)". */
export interface Finding {
  readonly count: number;
  readonly examples: readonly string[];
}

export interface VerifyReport {
  readonly ok: boolean;
  readonly judgedBy: 'send log' | 'serials';
  readonly run: string;
  readonly accepted: number;
  /** Messages of the run whose content arrived at least once, and copies kept in all. */
  readonly arrived: number;
  readonly copies: number;
  readonly rejectedBySink: number;
  readonly reportedByDsn: number;
  readonly lost: Finding;
  readonly resurrected: Finding;
  readonly altered: Finding;
  /** Copies beyond what the sender's and the sink's own lost replies explain. */
  readonly duplicated: Finding;
  readonly explainedDuplicates: number;
  /** Messages that overtook more than displacementMax others. */
  readonly outOfOrder: Finding;
  /** The most messages that one message overtook. */
  readonly displacement: number;
  /** Arrivals of this run that the log does not know. */
  readonly unknown: Finding;
  /** False when the sink had to stop keeping records: then lost and order are not known. */
  readonly complete: boolean;
}

/** All tries and arrivals of one message. */
interface Fate {
  readonly queue: string;
  readonly serial: number;
  readonly id: number;
  accepted: number;
  unanswered: number;
  /** First 2xx, and earliest final dot of a try that may have been taken. */
  replyAt: number;
  dotAt: number;
  hash: number;
  /** Place of its first attempt, and of its first content, among all at the sink. */
  firstBegun: number;
  firstDot: number;
  copies: number;
  cuts: number;
  rejected: boolean;
  reported: boolean;
  altered: boolean;
}

const EXAMPLES_MAX = 10;

class Findings {
  count = 0;
  readonly examples: string[] = [];

  finding(): Finding {
    return { count: this.count, examples: this.examples };
  }

  add(fate: { queue: string; serial: number; id: number }, count = 1): void {
    this.count += count;
    if (this.examples.length < EXAMPLES_MAX) this.examples.push(`${fate.queue}#${fate.serial} (${fate.id})`);
  }
}

/** Judges `arrivals`, in order of arrival, by the log of the run that sent them. */
export function verifyRun(
  log: SendLogFile, arrivals: readonly Arrival[], options: VerifyOptions = {},
): VerifyReport {
  const fates = fatesOf(log.records);
  const unknown = new Findings();
  noteArrivals(fates, log.run, arrivals, unknown);
  return conclude('send log', log.run, fates, unknown, options);
}

/** Judges by serials alone: each queue of each run is taken to have been sent one message at a time. */
export function verifyBySerials(arrivals: readonly Arrival[], options: VerifyOptions = {}): VerifyReport {
  const ids = new Map<string, number>();
  const highest = new Map<string, number>();
  const renamed: Arrival[] = [];
  for (const arrival of arrivals) {
    // Its serial is not known.
    if (arrival.kind === UNFINISHED) continue;
    const queue = `${arrival.run}/${arrival.queue}`;
    const key = `${queue}#${arrival.serial}`;
    const id = ids.get(key) ?? ids.size + 1;
    ids.set(key, id);
    highest.set(queue, Math.max(highest.get(queue) ?? 0, arrival.serial));
    renamed.push({ ...arrival, run: '', queue, id });
  }
  const records: SendRecord[] = [];
  for (const [queue, most] of highest) {
    for (let serial = 1; serial <= most; serial++) {
      const id = ids.get(`${queue}#${serial}`) ?? -records.length - 1;
      records.push({ id, queue, serial, dot: serial, reply: serial + 0.5, code: 250, hash: -1 });
    }
  }
  const fates = fatesOf(records);
  noteArrivals(fates, '', renamed, new Findings());
  return conclude('serials', '*', fates, new Findings(), options);
}

function fatesOf(records: readonly SendRecord[]): Map<number, Fate> {
  const fates = new Map<number, Fate>();
  for (const record of records) {
    let fate = fates.get(record.id);
    if (fate === undefined) {
      fate = newFate(record);
      fates.set(record.id, fate);
    }
    const taken = record.code >= 200 && record.code < 300;
    if (taken) {
      fate.accepted++;
      fate.replyAt = Math.min(fate.replyAt, record.reply);
    }
    if (record.code === 0) fate.unanswered++;
    if (taken || record.code === 0) fate.dotAt = Math.min(fate.dotAt, record.dot);
    // A try refused before its content was made has no hash yet.
    if (record.dot > 0) fate.hash = record.hash;
  }
  return fates;
}

function newFate(record: SendRecord): Fate {
  return {
    queue: record.queue, serial: record.serial, id: record.id,
    accepted: 0, unanswered: 0, replyAt: Infinity, dotAt: Infinity, hash: record.hash,
    firstBegun: Infinity, firstDot: Infinity, copies: 0, cuts: 0,
    rejected: false, reported: false, altered: false,
  };
}

function noteArrivals(
  fates: Map<number, Fate>, run: string, arrivals: readonly Arrival[], unknown: Findings,
): void {
  for (const [index, arrival] of arrivals.entries()) {
    if (arrival.run !== run) continue;
    const fate = fates.get(arrival.id);
    if (fate === undefined) {
      unknown.add(arrival);
      continue;
    }
    if (arrival.kind === REPORTED) {
      fate.reported = true;
      continue;
    }
    fate.firstBegun = Math.min(fate.firstBegun, arrival.begun);
    if (arrival.kind === UNFINISHED) continue;
    fate.firstDot = Math.min(fate.firstDot, index);
    // -1: judged by serials, so the hash in the marks was compared when it arrived.
    if (fate.hash === -1 ? arrival.hash === -1 : arrival.hash !== fate.hash) fate.altered = true;
    if (arrival.kind === TAKEN || arrival.kind === CUT) fate.copies++;
    if (arrival.kind === CUT) fate.cuts++;
    if (arrival.kind === REJECTED) fate.rejected = true;
  }
}

function conclude(
  judgedBy: VerifyReport['judgedBy'], run: string, fates: Map<number, Fate>, unknown: Findings,
  options: VerifyOptions,
): VerifyReport {
  const lost = new Findings();
  const resurrected = new Findings();
  const altered = new Findings();
  const duplicated = new Findings();
  let accepted = 0;
  let arrived = 0;
  let copies = 0;
  let rejected = 0;
  let reported = 0;
  let explained = 0;
  for (const fate of fates.values()) {
    if (fate.accepted > 0) accepted++;
    if (fate.firstDot !== Infinity) arrived++;
    copies += fate.copies;
    if (fate.rejected) rejected++;
    if (fate.reported) reported++;
    if (fate.altered) altered.add(fate);
    if (fate.accepted > 0 && fate.copies === 0 && !fate.rejected && !fate.reported) lost.add(fate);
    if (fate.accepted + fate.unanswered === 0) {
      if (fate.copies > 0) resurrected.add(fate);
      continue;
    }
    const due = fate.accepted + fate.unanswered + fate.cuts;
    if (fate.copies > due) duplicated.add(fate, fate.copies - due);
    explained += Math.max(0, Math.min(fate.copies, due) - 1);
  }
  const placeOf = (fate: Fate): number => options.orderBy === 'dot' ? fate.firstDot : fate.firstBegun;
  const order = judgeOrder(fates, options.displacementMax ?? 0, placeOf);
  const bad = lost.count + resurrected.count + altered.count + order.late.count + unknown.count;
  return {
    ok: bad === 0 && duplicated.count <= (options.duplicatesMax ?? 0),
    judgedBy, run, accepted, arrived, copies, rejectedBySink: rejected, reportedByDsn: reported,
    lost: lost.finding(), resurrected: resurrected.finding(), altered: altered.finding(),
    duplicated: duplicated.finding(), explainedDuplicates: explained,
    outOfOrder: order.late.finding(), displacement: order.worst, unknown: unknown.finding(), complete: true,
  };
}

/**
 * For each y: how many x with x.replyAt < y.dotAt were first attempted after y. A sweep over time in which
 * each reply puts x's place into a Fenwick tree and each dot asks how many places lie behind y's.
 * At equal times the dot is asked first: only a strictly earlier reply binds.
 */
function judgeOrder(
  fates: Map<number, Fate>, displacementMax: number, placeOf: (fate: Fate) => number,
): { late: Findings; worst: number } {
  const late = new Findings();
  let worst = 0;
  for (const queue of byQueue(fates, placeOf).values()) {
    queue.sort((x, y) => placeOf(x) - placeOf(y));
    const dots = queue.map((_fate, place) => place).sort((x, y) => dotOf(queue, x) - dotOf(queue, y));
    const replies = queue.map((_fate, place) => place).sort((x, y) => replyOf(queue, x) - replyOf(queue, y));
    const tree = new Fenwick(queue.length);
    let replied = 0;
    for (const place of dots) {
      const dotAt = dotOf(queue, place);
      for (; replied < replies.length; replied++) {
        const earlier = replies[replied] ?? 0;
        if (replyOf(queue, earlier) >= dotAt) break;
        tree.add(earlier);
      }
      const overtaken = replied - tree.upTo(place);
      worst = Math.max(worst, overtaken);
      const fate = queue[place];
      if (overtaken > displacementMax && fate !== undefined) late.add(fate);
    }
  }
  return { late, worst };
}

function dotOf(queue: readonly Fate[], place: number): number {
  return queue[place]?.dotAt ?? Infinity;
}

/** Infinity (never accepted) sorts last and binds nobody. */
function replyOf(queue: readonly Fate[], place: number): number {
  return queue[place]?.replyAt ?? Infinity;
}

/** The attempted messages of each queue that may have been accepted. */
function byQueue(fates: Map<number, Fate>, placeOf: (fate: Fate) => number): Map<string, Fate[]> {
  const queues = new Map<string, Fate[]>();
  for (const fate of fates.values()) {
    if (placeOf(fate) === Infinity || fate.dotAt === Infinity) continue;
    const queue = queues.get(fate.queue);
    if (queue === undefined) queues.set(fate.queue, [fate]);
    else queue.push(fate);
  }
  return queues;
}

/** Prefix sums over places, both operations O(log n). */
class Fenwick {
  readonly #sums: Uint32Array;

  constructor(places: number) {
    this.#sums = new Uint32Array(places + 1);
  }

  add(place: number): void {
    for (let at = place + 1; at < this.#sums.length; at += at & -at) {
      this.#sums[at] = (this.#sums[at] ?? 0) + 1;
    }
  }

  /** How many were added at `place` or before it. */
  upTo(place: number): number {
    let sum = 0;
    for (let at = place + 1; at > 0; at -= at & -at) sum += this.#sums[at] ?? 0;
    return sum;
  }
}
