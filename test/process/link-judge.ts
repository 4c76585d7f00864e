/**
 * Judges a gateway from outside, by what crossed its links to the stores: one recording proxy
 * (fault-proxy.ts) on every path of every store, all frames decoded. It knows the protocol and nothing of
 * the gateway's code.
 *
 *   gateway ─► proxy store-a/A, store-a/B, store-b/A, store-b/B ─► stores        (a set for each gateway)
 *
 *   early replies   a client's 2xx must be later than the moment at which the proxy handed the gateway the
 *                   ACK of the message's STORE from every member of a record that was in force between that
 *                   STORE and the reply (G1)
 *   refusals        a client's 4xx or 5xx to a final dot leaves no entry: what was stored between dot and reply
 *                   was withdrawn, or was never kept (G9)
 *   duplicates      a copy at the sink beyond one for each stored entry must fall into a named window: the
 *                   entry was in flight when its gateway was killed, or stood still past its lease: a copy
 *                   had just reached the sink, and no store ever acknowledged a DELETE of it to that
 *                   process (G4)
 *
 * A message is known by run and id in its body (load/marks.ts), an entry by the store's message id. Both stores
 * get the same numbered changes, so each is taken once for a reign: a process under one term. Numbers that a killed
 * gateway used and no store kept are used again by the next one: then the later entry counts. One that sends again
 * what the last one did (a tail) changes nothing. Who is a member is known from what members are told (TELL), and since
 * when from a watch of the register and the gateway's log, where these are read: on a busy machine each may come later
 * than the reply; but a
 * record whose only member is silent, or dies at once, is told to nobody: a member whose store was met in a later boot
 * may have left, and so may one that is not in the next record told, if an epoch between was not.
 */
import assert from 'node:assert/strict';

import { monotonicMicros, type SendLogFile, type SendRecord } from '../../src/load/send-log.js';
import type { PartitionRecord } from '../../src/protocol/partition-record.js';
import { gatewayId, storeId } from './cluster-config.js';
import type { Cluster } from './cluster.js';
import { FaultProxy, proxyNowMs, type FrameRecord } from './fault-proxy.js';
import { LinkRecord } from './link-record.js';
import { ackedMs, reignAt, setsInForce, wasAcked, wasHeardWithin, type Entry, type Partition, type SetInForce } from './link-story.js';

/** A copy that was on its way into the sink when the gateway died is counted as before the kill. */
const IN_KERNEL_MS = 1000;
/** A copy that came so long before the kill had all the time to be deleted at the stores. */
const SETTLED_MS = 2000;
/** A reply crosses loopback, and a busy machine adds to that. */
const READ_WITHIN_MS = 100;
/** Records told so long before and after a reply are named with it. */
const DESCRIBED_MS = 5000;
const EXAMPLES_MAX = 5;
/** A gateway knows that a change of a record was made: when, of which partition, its epoch and members. */
const RECORD_LINE = /"time":"([^"]+)".*"event":"partition","msg":"(\S+) record (\d+) (.*) at [\d.]+"/;
/** Looks at both clocks. */
const CLOCK_LOOKS = 100;

/** A message at the sink: which, and when, in microseconds of the machine's monotonic clock. */
export interface Copy {
  readonly run: string;
  readonly id: number;
  readonly us: number;
}

/** A time in which deliveries of a gateway in flight may be repeated, and why. */
export interface Window {
  readonly cause: string;
  readonly gateway: string;
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface DuplicateReport {
  /** Copies beyond one for each stored entry. */
  readonly repeated: number;
  /** Those that a window explains, by its cause. */
  readonly explained: Readonly<Record<string, number>>;
  /** Those that no window explains, and the first few by name. */
  readonly unexplained: number;
  readonly examples: readonly string[];
}

export class LinkJudge {
  readonly #record: LinkRecord;
  readonly #proxies: { readonly gateway: number; readonly store: number; readonly path: string; readonly proxy: FaultProxy }[] = [];
  readonly #windows: Window[] = [];
  readonly #sinkStood: { readonly fromMs: number; readonly untilMs: number }[] = [];

  /** Judges by what is put into the record; the proxies of start() do that. */
  constructor(record = new LinkRecord()) {
    this.#record = record;
  }

  /** Starts a proxy for both paths of each store, for each gateway; give mapStorePort to startCluster. */
  static async start(stores: number, gateways = 1, seed = 1): Promise<LinkJudge> {
    const judge = new LinkJudge();
    for (let gateway = 0; gateway < gateways; gateway++) {
      for (let store = 0; store < stores; store++) {
        for (const path of ['A', 'B']) {
          const link = `${gateway} ${path}`;
          const onBodies = (frame: FrameRecord, bodies: Uint8Array): void => { judge.#record.onFrame(storeId(store), link, frame, bodies); };
          const proxy = await FaultProxy.start({ targetHost: '127.0.0.1', targetPort: 0, recordsMax: 0, seed: seed + judge.#proxies.length, onBodies });
          judge.#proxies.push({ gateway, store, path, proxy });
        }
      }
    }
    return judge;
  }

  readonly mapStorePort = (port: number, store: number, path: string, gateway: number): number => {
    const [proxy] = this.proxies({ gateway, store, path });
    assert.ok(proxy !== undefined, `no proxy for path ${path} of store ${store}`);
    proxy.retarget(port);
    return proxy.port;
  };

  /** Those of a gateway, a store, a path, or several of that. */
  proxies(which: { readonly gateway?: number; readonly store?: number; readonly path?: string } = {}): FaultProxy[] {
    const { gateway, store, path } = which;
    return this.#proxies
      .filter((each) => (gateway ?? each.gateway) === each.gateway && (store ?? each.store) === each.store && (path ?? each.path) === each.path)
      .map((each) => each.proxy);
  }

  /** The gateway is killed now. */
  noteGatewayKill(gateway = 0): void {
    const nowMs = proxyNowMs();
    this.noteWindow({ cause: 'gateway killed', gateway: gatewayId(gateway), fromMs: nowMs, untilMs: nowMs });
  }

  /** The register had the record of a partition at this moment. */
  noteRecord(partition: string, record: Pick<PartitionRecord, 'epoch' | 'members'>, atMs = proxyNowMs()): void {
    this.#record.noteRecord(partition, record, atMs);
  }

  /**
   * Reads when the gateways knew of their records: their logs say so before a reply goes out by them. On a busy machine,
   * and when the members die at once, what members are told says it later. Call it before replies are judged.
   */
  async readLogs({ gateways }: Pick<Cluster, 'gateways'>): Promise<void> {
    const aheadMs = Date.now() - proxyNowMs();
    for (const { gateway } of gateways) {
      for await (const line of gateway.logLines()) {
        const [, time = '', partition = '', epoch, text = ''] = RECORD_LINE.exec(line) ?? [];
        if (epoch === undefined) continue;
        const members = text.split(' ').filter((each) => each !== '').map((each) => {
          const [store = '', bootId = ''] = each.split('/');
          return { storeId: store, bootId };
        });
        this.noteRecord(partition, { epoch: Number(epoch), members }, Date.parse(time) - aheadMs);
      }
    }
  }

  noteWindow(window: Window): void {
    this.#windows.push(window);
  }

  /** The sink stood still: what lay in its kernel comes only now. */
  noteSinkStood(fromMs: number, untilMs: number): void {
    this.#sinkStood.push({ fromMs, untilMs });
  }

  /** What was wrong with frames as they were sent. */
  get problems(): readonly string[] {
    return [...this.#record.problems, ...this.#proxies.flatMap(({ proxy }) => proxy.malformed)];
  }

  async close(): Promise<void> {
    for (const { proxy } of this.#proxies) {
      await proxy.close();
    }
  }

  /** Each message of the log that was answered 2xx before its mirrors had it, the first few by name. */
  earlyReplies(log: SendLogFile): { readonly judged: number; readonly early: number; readonly examples: readonly string[] } {
    const behindMs = clockDifferenceMs();
    const inForce = new Map<Partition, SetInForce[]>();
    const examples: string[] = [];
    let judged = 0;
    let early = 0;
    for (const record of log.records) {
      if (record.code < 200 || record.code >= 300) continue;
      judged++;
      if (this.#committedBefore(log.run, record, behindMs, inForce)) continue;
      early++;
      if (examples.length < EXAMPLES_MAX) examples.push(this.#describe(log.run, record, behindMs));
    }
    return { judged, early, examples };
  }

  /** Tries that were refused after the final dot, of which an entry stayed; the first few by name. A retry's copy hides it at the sink. */
  keptRefusals(log: SendLogFile): { readonly kept: number; readonly examples: readonly string[] } {
    const behindMs = clockDifferenceMs();
    const examples: string[] = [];
    let kept = 0;
    for (const record of log.records) {
      if (record.code < 400 || record.dot === 0) continue;
      const isTry = (entry: Entry): boolean => entry.storedMs >= record.dot / 1000 + behindMs && entry.storedMs <= record.reply / 1000 + behindMs;
      if (!this.#record.entriesOf(log.run, record.id).some((entry) => isTry(entry) && !entry.withdrawn && !entry.vanished)) continue;
      kept++;
      if (examples.length < EXAMPLES_MAX) examples.push(`${record.code} ${this.#describe(log.run, record, behindMs)}`);
    }
    return { kept, examples };
  }

  /** `copies`: what the sink took, in order of arrival. */
  duplicates(copies: readonly Copy[]): DuplicateReport {
    const behindMs = clockDifferenceMs();
    const byMessage = new Map<string, { readonly of: Copy; readonly times: number[] }>();
    for (const copy of copies) {
      const key = `${copy.run} ${copy.id}`;
      const ms = copy.us / 1000 + behindMs;
      const known = byMessage.get(key);
      if (known === undefined) byMessage.set(key, { of: copy, times: [ms] });
      else known.times.push(ms);
    }
    const explained: Record<string, number> = {};
    const examples: string[] = [];
    let repeated = 0;
    let unexplained = 0;
    for (const [key, { of, times }] of byMessage) {
      const entries = this.#record.entriesOf(of.run, of.id).filter((entry) => !entry.vanished && !entry.withdrawn);
      const extra = times.length - entries.length;
      if (extra <= 0) continue;
      repeated += extra;
      const left = this.#explain(extra, entries, times, explained);
      unexplained += left;
      if (left > 0 && examples.length < EXAMPLES_MAX) examples.push(`message ${key}: ${times.length} copies of ${entries.length} entries, ${left} not in flight at a fault; at ${times.join(', ')} ${this.#story(entries)}`);
    }
    return { repeated, explained, unexplained, examples };
  }

  /** The partition that took a message for good: order is judged within a queue's part in one. */
  partitionOf(run: string, id: number): string {
    return this.#record.entriesOf(run, id).find((entry) => !entry.vanished && !entry.withdrawn)?.partition.key ?? '';
  }

  // What follows from it.

  #committedBefore(run: string, record: SendRecord, behindMs: number, inForce: Map<Partition, SetInForce[]>): boolean {
    const dotMs = record.dot / 1000 + behindMs;
    const replyMs = record.reply / 1000 + behindMs;
    // It was committed before the client read the reply: a copy that was met anew since then still counted.
    const moments = [replyMs, ...this.#record.metWithin(replyMs - READ_WITHIN_MS, replyMs).map((ms) => ms - 0.001)];
    for (const entry of this.#record.entriesOf(run, record.id)) {
      if (entry.storedMs < dotMs || entry.storedMs > replyMs) continue;
      let sets = inForce.get(entry.partition);
      if (sets === undefined) {
        sets = setsInForce(entry.partition);
        inForce.set(entry.partition, sets);
      }
      for (const { fromMs, untilMs, members, mayHaveLeft } of sets) {
        if (fromMs > replyMs || untilMs < entry.storedMs || members.length === 0) continue;
        const hasLeft = (member: string): boolean => mayHaveLeft.includes(member) && !wasHeardWithin(entry.partition, member, replyMs, untilMs);
        const isAcked = (member: string): boolean => ackedMs(entry.partition, member, entry.position, entry.reign, entry.storedMs) <= replyMs;
        for (const atMs of moments) {
          const left = members.filter((member) => !this.#record.isGone(member, atMs));
          if (left.some(isAcked) && left.every((member) => isAcked(member) || hasLeft(member))) return true;
        }
      }
    }
    return false;
  }

  /** How many of `extra` copies no window explains; the others are counted by cause. */
  #explain(extra: number, entries: readonly Entry[], copiesMs: readonly number[], causes: Record<string, number>): number {
    let left = extra;
    for (const window of this.#windows) {
      const readMs = this.#readByMs(window.untilMs);
      const arrived = copiesMs.filter((ms) => ms <= readMs && ms >= window.fromMs - SETTLED_MS).length;
      if (left === 0 || arrived === 0) continue;
      const inFlight = entries.filter((entry) => {
        const reign = reignAt(entry.partition, window.gateway, window.untilMs);
        return reign >= 0 && entry.storedMs <= window.untilMs && !entry.deletes.some((one) => one.reign <= reign && wasAcked(entry.partition, one.number, one.reign, one.sentMs));
      });
      const explained = Math.min(left, inFlight.length, arrived);
      if (explained > 0) causes[window.cause] = (causes[window.cause] ?? 0) + explained;
      left -= explained;
    }
    return left;
  }

  /** By when the sink has read what was on its way to it at a moment. */
  #readByMs(atMs: number): number {
    const thaws = this.#sinkStood.filter(({ fromMs, untilMs }) => fromMs <= atMs + IN_KERNEL_MS && untilMs >= atMs).map(({ untilMs }) => untilMs);
    return Math.max(atMs, ...thaws) + IN_KERNEL_MS;
  }

  #describe(run: string, record: SendRecord, behindMs: number): string {
    const replyMs = record.reply / 1000 + behindMs;
    const told = this.#record.entriesOf(run, record.id).map((entry) => {
      const passed = [...entry.partition.acks.keys()].map((store) => `${store} ${(ackedMs(entry.partition, store, entry.position, entry.reign, entry.storedMs) - replyMs).toFixed(1)}`);
      return `stored ${(entry.storedMs - replyMs).toFixed(1)}, acknowledged by ${passed.join(', ')}`;
    });
    const sets = this.#record.entriesOf(run, record.id).flatMap(({ partition }) => partition.records)
      .filter(({ toldMs }) => Math.abs(toldMs - replyMs) < DESCRIBED_MS)
      .map(({ epoch, members, toldMs }) => `${epoch}: ${members.join(', ')} told at ${(toldMs - replyMs).toFixed(1)}`);
    return `${record.queue}#${record.serial} (${record.id}); ms from its 2xx: ${told.join('; ')}; records ${sets.join('; ')}`;
  }

  #story(entries: readonly Entry[]): string {
    const one = (entry: Entry): string => `stored ${entry.storedMs}, deletes ${JSON.stringify(entry.deletes.map((each) => ({ ...each, acked: wasAcked(entry.partition, each.number, each.reign, each.sentMs) })))}`;
    return `${entries.map(one).join('; ')}; windows ${JSON.stringify(this.#windows)}`;
  }
}

/**
 * Milliseconds that the proxies' clock is ahead of the senders' and the sink's. The one is read before the other, and a
 * process that is preempted in between would have each reply come too early: so the largest of many looks, the one with
 * the least in between. A reply follows its acknowledgement by less than a tenth of a millisecond.
 */
function clockDifferenceMs(): number {
  let mostMs = -Infinity;
  for (let i = 0; i < CLOCK_LOOKS; i++) mostMs = Math.max(mostMs, proxyNowMs() - monotonicMicros() / 1000);
  return mostMs;
}
