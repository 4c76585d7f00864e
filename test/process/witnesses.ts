/**
 * The verdict over a run with faults, by three witnesses: the senders' logs (what was promised, and when),
 * the sink (what came, in which order), and the links (link-judge.ts). Used by tests and the chaos harness.
 *
 *   lost, altered, resurrected, unknown   sink/verify.ts, over all arrivals
 *   out of order                          the same, within the part of a queue that stands in one partition: one that
 *                                         can't take mail is stood in for by another (G3)
 *   out of place                          the same by final dots: the next hops of these tests end no attempt
 *                                         before its dot, so one that ends there was put back in its place
 *   early, refused but kept, unexplained repeats   the links
 */
import { readFileSync } from 'node:fs';

import { readSendLog, type SendLogFile } from '../../src/load/send-log.js';
import { CUT, TAKEN, UNFINISHED, verifyRun, type Arrival, type VerifyReport } from '../../src/sink/verify.js';
import type { Cluster } from './cluster.js';
import type { Copy, LinkJudge } from './link-judge.js';

const LINE_FEED = 0x0a;

/** A line of the sink's arrival log, as far as it is used here. */
interface ArrivalLine extends Arrival {
  readonly us: number;
  readonly intact: boolean;
}

export interface Verdict {
  readonly ok: boolean;
  readonly accepted: number;
  readonly arrived: number;
  readonly lost: number;
  readonly altered: number;
  /** Refused at every try, yet delivered; or refused at one, and never withdrawn. */
  readonly refusedButDelivered: number;
  readonly outOfOrder: number;
  readonly outOfPlace: number;
  /** The most messages that one overtook in its queue, by the beginning of attempts or by final dots. */
  readonly displacement: number;
  /** Attempts that ended before their dot. */
  readonly unfinished: number;
  /** 2xx before the mirrors had it. */
  readonly early: number;
  readonly repeated: number;
  readonly explained: Readonly<Record<string, number>>;
  readonly unexplained: number;
  readonly malformedFrames: number;
  /** The first few of each fault, by name. */
  readonly examples: readonly string[];
}

export interface VerdictOptions {
  readonly arrivalLog: string;
  readonly sendLogs: readonly string[];
  /** Messages in flight from one queue; one overtakes fewer than that. */
  readonly concurrency: number;
  /**
   * Repeats that no window need explain: a process that is stopped between its look at the lease and the write of one
   * dot writes that dot when it goes on. It has one thread, so one for each time that it stood still; default 0.
   */
  readonly stoppedDots?: number;
}

/** The arrival log must be complete: ask the sink for a report first, or stop it. */
export async function judgeRun(judge: LinkJudge, cluster: Cluster, options: VerdictOptions): Promise<Verdict> {
  await judge.readLogs(cluster);
  const arrivals = readArrivals(options.arrivalLog);
  const examples: string[] = [];
  const sum = { accepted: 0, arrived: 0, lost: 0, altered: 0, refusedButDelivered: 0, outOfOrder: 0, outOfPlace: 0, early: 0 };
  let displacement = 0;
  for (const file of options.sendLogs) {
    const log = readSendLog(file);
    const report = verifyRun(log, arrivals);
    const queued = inQueues(judge, log);
    const displacementMax = options.concurrency - 1;
    const order = verifyRun(queued, arrivals, { displacementMax });
    const places = verifyRun(queued, arrivals, { displacementMax, orderBy: 'dot' });
    const replies = judge.earlyReplies(log);
    const refusals = judge.keptRefusals(log);
    sum.accepted += report.accepted;
    sum.arrived += report.arrived;
    sum.lost += report.lost.count;
    sum.altered += report.altered.count + report.unknown.count;
    sum.refusedButDelivered += report.resurrected.count + refusals.kept;
    sum.outOfOrder += order.outOfOrder.count;
    sum.outOfPlace += places.outOfOrder.count;
    sum.early += replies.early;
    displacement = Math.max(displacement, order.displacement, places.displacement);
    examples.push(...findings(report), ...order.outOfOrder.examples.map((each) => `${log.run}: out of order: ${each}`), ...places.outOfOrder.examples.map((each) => `${log.run}: out of place: ${each}`), ...replies.examples.map((each) => `${log.run}: early: ${each}`), ...refusals.examples.map((each) => `${log.run}: refused but kept: ${each}`));
  }
  const repeats = judge.duplicates(copiesOf(arrivals));
  examples.push(...repeats.examples.map((each) => `unexplained: ${each}`), ...judge.problems.slice(0, 10));
  const malformedFrames = judge.problems.length;
  const bad = sum.lost + sum.altered + sum.refusedButDelivered + sum.outOfOrder + sum.outOfPlace + sum.early + Math.max(0, repeats.unexplained - (options.stoppedDots ?? 0)) + malformedFrames;
  return { ok: bad === 0, ...sum, displacement, unfinished: arrivals.filter(({ kind }) => kind === UNFINISHED).length, repeated: repeats.repeated, explained: repeats.explained, unexplained: repeats.unexplained, malformedFrames, examples };
}

/** Without a judge on the links: order and times of replies are not judged, and no repeat is explained. */
export function judgeFromOutside(options: VerdictOptions): Verdict {
  const arrivals = readArrivals(options.arrivalLog);
  const reports = options.sendLogs.map((file) => verifyRun(readSendLog(file), arrivals));
  const sum = (of: (report: VerifyReport) => number): number => {
    return reports.reduce((all, report) => all + of(report), 0);
  };
  const found = {
    lost: sum(({ lost }) => lost.count),
    altered: sum(({ altered, unknown }) => altered.count + unknown.count),
    refusedButDelivered: sum(({ resurrected }) => resurrected.count),
    unexplained: sum(({ duplicated }) => duplicated.count),
  };
  return {
    ok: Object.values(found).every((count) => count === 0),
    accepted: sum(({ accepted }) => accepted),
    arrived: sum(({ arrived }) => arrived),
    ...found,
    outOfOrder: 0, outOfPlace: 0, displacement: 0, early: 0, malformedFrames: 0,
    unfinished: arrivals.filter(({ kind }) => kind === UNFINISHED).length,
    repeated: found.unexplained,
    explained: {},
    examples: reports.flatMap((report) => findings(report)),
  };
}

/** The lines of an arrival log. */
export function readArrivals(file: string): ArrivalLine[] {
  // Of an hour's chaos it is larger than the longest string.
  const bytes = readFileSync(file);
  const arrivals: ArrivalLine[] = [];
  for (let from = 0; from < bytes.length;) {
    const end = bytes.indexOf(LINE_FEED, from);
    const until = end < 0 ? bytes.length : end;
    const line = bytes.toString('utf8', from, until);
    from = until + 1;
    if (line === '') continue;
    const arrival = JSON.parse(line) as ArrivalLine;
    arrivals.push(arrival.intact || arrival.kind === UNFINISHED ? arrival : { ...arrival, hash: -1 });
  }
  return arrivals;
}

function copiesOf(arrivals: readonly ArrivalLine[]): Copy[] {
  return arrivals.filter(({ kind }) => kind === TAKEN || kind === CUT).map(({ run, id, us }) => ({ run, id, us }));
}

/** The log with each message under the partition that took it beside the name of its queue. */
function inQueues(judge: LinkJudge, log: SendLogFile): SendLogFile {
  return { ...log, records: log.records.map((record) => ({ ...record, queue: `${record.queue} ${judge.partitionOf(log.run, record.id)}` })) };
}

function findings(report: VerifyReport): string[] {
  const named = { lost: report.lost, altered: report.altered, resurrected: report.resurrected, unknown: report.unknown };
  return Object.entries(named).flatMap(([name, finding]) => finding.examples.map((each) => `${report.run}: ${name}: ${each}`));
}
