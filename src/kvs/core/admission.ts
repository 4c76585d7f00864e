/**
 * Who may fill how much of the memory, decided before a change gets its number: by credit.
 *
 *   0 ......................... accept ............... refill ............... end ................. limit
 *     new mail, within grants      reserve for resync     changes that end mail   requests being read
 *
 *   used      the larger of what the entries are charged (bytes + overhead each) and what the segments occupy
 *   granted   promised to gateways and not used yet; never taken back while the gateway lives. A refill uses
 *             up its sender's grant too: else mail that fits once would not fit again, beside grants of an
 *             empty store
 *             beside them the rings of changes and frames that have come in part: within the grants, or below
 *             the end mark; bodies that find no room there are passed over, and refused
 *   rule      used + sum of grants ≤ accept whenever a grant is raised: so a STORE within credit always fits
 *
 * The sender counts bytes + 128 for an entry (CREDIT_OVERHEAD_BYTES), an entry is charged bytes + 96: what is
 * stored is never more than what was granted for it. docs/PROTOCOL.md "Acknowledgement and credit"; marks of
 * the design: the last 18% of the limit take no new mail, 15% of it for refills, 3% for changes that end
 * mail, half of that to read them. Those changes store nothing: a note stands in the room that its entry was
 * stored with.
 */

import type { Segments } from '../../base/segments.js';
import type { TextPool } from '../../base/text-pool.js';
import { REPORTS_BEYOND_CREDIT_BYTES_MAX, UNPAID_BYTES_MAX } from '../../protocol/messages/changes.js';
import type { RingMemory } from './applied-changes.js';
import type { StoredEntries } from './stored-entries.js';
import { ENTRY_OVERHEAD_BYTES } from './stored-entries.js';

export interface AdmissionOptions {
  readonly memoryLimitBytes: number;
  /** Part of the limit kept for refills. */
  readonly reserveShare: number;
  /** Part of the limit kept for changes that end mail. */
  readonly endShare: number;
  /** Most that one gateway holds unused: a few byte windows. */
  readonly grantMaxBytes: number;
}

/** Of what is kept for changes that end mail: to read them. Else a full store could not be told to delete. */
const REQUESTS_SHARE = 1 / 2;
/**
 * With many gateways it is more, and the other marks stand lower: what one frame of each brings that is not
 * paid for. In a store far too small for them, no more than this.
 */
const REQUESTS_SHARE_MAX = 1 / 8;

/**
 * Of the reserve, what refills leave for reports that come beyond credit, of all gateways: a report stands in
 * one section with the end of its message, so one that is refused would stand before every delete behind it.
 * Each is here twice while it is read. With very many gateways, or in a very small store, no more than a part
 * of the reserve.
 */
const REPORT_BYTES_PER_GATEWAY = 2 * REPORTS_BEYOND_CREDIT_BYTES_MAX;
const REPORTS_SHARE_MAX = 1 / 4;

/** All rings together: with many gateways each gets less than one alone would. */
const RINGS_SHARE = 1 / 8;

/** One gateway's part. */
export interface Grantee {
  granted: number;
  /** What its frames that have come in part hold: within its grant first. */
  heldBytes: number;
}

export class Admission implements RingMemory {
  readonly limitBytes: number;
  readonly #grantMaxBytes: number;
  readonly #options: AdmissionOptions;
  readonly #segments: Segments;
  readonly #entries: StoredEntries;
  readonly #texts: TextPool;
  readonly #sharers: () => Iterable<Grantee>;
  #acceptBytes = 0;
  #refillBytes = 0;
  #endBytes = 0;
  #reportBytes = 0;
  #granted = 0;
  #ringBytes = 0;
  /** Held for frames that have come in part, and for buffers of blocks. */
  frameBytes = 0;

  /** `sharers`: all gateways among which what is free is shared. */
  constructor(options: AdmissionOptions, parts: {
    readonly segments: Segments; readonly entries: StoredEntries; readonly texts: TextPool;
    readonly sharers: () => Iterable<Grantee>;
  }) {
    this.#options = options;
    this.limitBytes = options.memoryLimitBytes;
    this.#grantMaxBytes = options.grantMaxBytes;
    this.#segments = parts.segments;
    this.#entries = parts.entries;
    this.#texts = parts.texts;
    this.#sharers = parts.sharers;
    this.share(0);
  }

  /** So many gateways may come: each can have the start of a frame here that ends mail. The marks follow. */
  share(gatewayCount: number): void {
    const { memoryLimitBytes: limit, endShare, reserveShare } = this.#options;
    const requestsShare = Math.max(
      endShare * REQUESTS_SHARE, Math.min(REQUESTS_SHARE_MAX, gatewayCount * UNPAID_BYTES_MAX / limit),
    );
    const refillShare = 1 - requestsShare - endShare * (1 - REQUESTS_SHARE);
    this.#endBytes = Math.floor(limit * (1 - requestsShare));
    this.#refillBytes = Math.floor(limit * refillShare);
    this.#acceptBytes = Math.floor(limit * (refillShare - reserveShare));
    this.#reportBytes = Math.floor(
      Math.min(REPORTS_SHARE_MAX * reserveShare * limit, gatewayCount * REPORT_BYTES_PER_GATEWAY),
    );
  }

  get acceptBytes(): number {
    return this.#acceptBytes;
  }

  get refillBytes(): number {
    return this.#refillBytes;
  }

  /** Past this only control parts are read: deletions among them. */
  get endBytes(): number {
    return this.#endBytes;
  }

  /** What the entries are charged: exact, and given back with each of them. */
  get chargedBytes(): number {
    return this.#segments.liveBytes + this.#overheadBytes;
  }

  get usedBytes(): number {
    const segmentBytes = Math.max(this.#segments.liveBytes, this.#segments.usedBytes);
    return segmentBytes + this.#overheadBytes + this.#ringBytes + this.frameBytes;
  }

  get #overheadBytes(): number {
    return this.#entries.count * ENTRY_OVERHEAD_BYTES + this.#texts.bookkeepingBytes;
  }

  get ringBytes(): number {
    return this.#ringBytes;
  }

  /** Rings take what mail leaves, and never what was promised to it. */
  mayKeep(bytes: number): boolean {
    return this.#ringBytes + bytes <= this.limitBytes * RINGS_SHARE && this.mayLend(bytes);
  }

  /** Of what mail leaves, and was not promised: buffers that spare work only. */
  mayLend(bytes: number): boolean {
    return this.usedBytes + this.#granted + bytes <= this.acceptBytes;
  }

  keep(bytes: number): void {
    this.#ringBytes += bytes;
  }

  letGo(bytes: number): void {
    this.#ringBytes -= bytes;
  }

  /** Sum of all grants not used yet. */
  get grantedBytes(): number {
    return this.#granted;
  }

  /**
   * Raises the gateway's grant, never lowers it; answers what it may still send. While not everyone can have
   * the most, each has half a share, and the rest is for who `asks`, having refused mail for want of it:
   * another half with each question, up to half of what is free, while half a share stays for every other
   * one, and for the rings. Else those that came first would keep, idle, what a later one needs for a large
   * message.
   */
  grant(grantee: Grantee, asks = false): number {
    const room = this.acceptBytes - this.usedBytes;
    let sharers = 1;
    for (const other of this.#sharers()) if (other !== grantee) sharers += 1;
    const halfShare = Math.min(this.#grantMaxBytes, Math.floor(room / (sharers + 1))) / 2;
    let pledged = halfShare;
    for (const other of this.#sharers()) {
      if (other !== grantee) pledged += Math.max(0, halfShare - other.granted);
    }
    const isScarce = sharers > 1 && sharers * this.#grantMaxBytes > room;
    const fair = asks ? grantee.granted + halfShare : halfShare;
    const most = Math.min(isScarce ? fair : Infinity, this.#grantMaxBytes, room / 2);
    const add = Math.floor(Math.min(most - grantee.granted, room - this.#granted - pledged));
    if (add > 0) {
      grantee.granted += add;
      this.#granted += add;
    }
    return grantee.granted;
  }

  /**
   * May the gateway store this much? Within its grant always; beyond it (a report, a repeat after its grant
   * lapsed) while the reserve lasts.
   */
  mayStore(grantee: Grantee, costBytes: number): boolean {
    return this.#fits(grantee, costBytes, this.refillBytes);
  }

  /** As mayStore, for a copy that is being filled, live changes too: it leaves the part that reports have. */
  mayRefill(grantee: Grantee, costBytes: number): boolean {
    return this.#fits(grantee, costBytes, this.refillBytes - this.#reportBytes);
  }

  #fits(grantee: Grantee, costBytes: number, mark: number): boolean {
    if (costBytes <= grantee.granted) return true;
    return this.usedBytes + this.#granted + costBytes - grantee.granted <= mark;
  }

  spend(grantee: Grantee, costBytes: number): void {
    const spent = Math.min(costBytes, grantee.granted);
    grantee.granted -= spent;
    this.#granted -= spent;
  }

  /**
   * May the gateway's frames that come in part hold so much in all, `bodyBytes` of it bodies of the one in
   * work? Bodies within its grant always: they are what was promised room for. And what no credit pays for,
   * within what a frame brings of it: a note is never refused, and no section behind it. While one frame is
   * applied it stands here twice, its bytes and what is stored of them; the larger buffers go back with the
   * same call (frame-reader.ts), so that between two calls all is within the limit.
   */
  mayHold(grantee: Grantee, bytes: number, bodyBytes: number): boolean {
    const { heldBytes, granted } = grantee;
    if (bodyBytes === 0) return bytes <= heldBytes || this.usedBytes - heldBytes + bytes <= this.limitBytes;
    return bodyBytes <= granted + UNPAID_BYTES_MAX || this.#promisedBytes(grantee, bytes) <= this.endBytes;
  }

  /** May a buffer stay for the next frame of its gateway? */
  mayRetain(): boolean {
    return this.#promisedBytes(undefined, 0) <= this.acceptBytes;
  }

  /** All that is used or granted, if the frames of this gateway held so much; frames take of the grants. */
  #promisedBytes(grantee: Grantee | undefined, bytes: number): number {
    let promised = this.usedBytes;
    for (const other of this.#sharers()) {
      const heldBytes = other === grantee ? bytes : other.heldBytes;
      promised += Math.max(other.granted, heldBytes) - other.heldBytes;
    }
    return promised;
  }

  /** The gateway is gone for good or began anew: nothing it was promised is on its way any more. */
  forget(grantee: Grantee): void {
    this.#granted -= grantee.granted;
    grantee.granted = 0;
  }
}
