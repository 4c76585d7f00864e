/**
 * The gateway's side of the connections to one store: one path carries the requests, the other stands by.
 * Owns the pair of paths, the lease at this store, the record of unacknowledged requests, and with it what
 * may still be sent: byte window and credit.
 *
 *   request() ─► frames of the turn ─ flush(), one write ─► active path ─► store
 *       │                                                                   │
 *       └─► unacknowledged (bytes, credit) ◄── ACK, reply, BEAT ────────────┘ ──► StoreLinkEvents
 *
 *   the active path is lost:  the record is emptied: handles and sequences belong to one connection
 *     while the other one takes its part   still up, can't send; requests go nowhere; the credit stays, less
 *                                          what was used
 *     it has                               onSwitched: whoever has unacknowledged changes repeats them
 *     it has not                           onDown
 *
 * No state of its own: path-pair.ts has the machine of the two paths, path-connection.ts that of each.
 * docs/PROTOCOL.md, "Acknowledgement and credit".
 *
 * What is not here: what the requests change and what to do about a refusal (partition.ts).
 */
import { invariant } from '../../../base/invariant.js';
import { FRAME_BYTES_MAX, HEADER_BYTES } from '../../../protocol/frame.js';
import { isInvalid } from '../../../protocol/invalid.js';
import * as types from '../../../protocol/message-types.js';
import {
  ackCredit, ackHandle, ackNumber, ackCopyCount, ackSequence, decodeAck,
} from '../../../protocol/messages/ack.js';
import type { FenceNotice } from '../../../protocol/messages/beat.js';
import { decodeBeat } from '../../../protocol/messages/beat.js';
import type { Refusal } from '../../../protocol/messages/refusal.js';
import { decodeRefusal } from '../../../protocol/messages/refusal.js';
import type { Welcome } from '../../../protocol/messages/welcome.js';
import type { Reply, ReplyType } from '../../../protocol/replies.js';
import { decodeReply } from '../../../protocol/replies.js';
import type { StorePort } from './store-port.js';
import { CreditWish } from './credit-wish.js';
import { LinkLease } from '../../../recovery/ownership/link-lease.js';
import type { LinkOptions, LinkPorts, PathAddress, PathName } from './link-options.js';
import type { PathConnection } from './path-connection.js';
import type { PairOwner } from './path-pair.js';
import { PathPair } from './path-pair.js';
import { PathState } from './path-state.js';
import { Unacknowledged } from './unacknowledged.js';

/** What a link tells its mirror machine. None is called from inside request() or flush(). */
export interface StoreLinkEvents {
  /** The active path is welcomed: requests may be made. */
  onUp(link: StoreLink): void;
  /**
   * Another path carries the requests now, to the same boot: what was not acknowledged is to be repeated,
   * handles are gone.
   */
  onSwitched(link: StoreLink): void;
  /** The store is about to stop: its copies should move away while it still serves. */
  onStopping(link: StoreLink): void;
  /** The store is lost: no path carries requests. What was not acknowledged may have been applied, or not. */
  onDown(link: StoreLink, reason: string): void;
  /** A copy touched by acknowledged requests stands at `number` there. */
  onAcknowledged(link: StoreLink, handle: number, number: number): void;
  /** All requests up to `sequence` are applied or refused; after the calls for each copy. */
  onAckedThrough(link: StoreLink, sequence: number): void;
  onRefusal(link: StoreLink, refusal: Refusal): void;
  /**
   * An answer that carries something (protocol/replies.ts); rows and bodies are valid during the call only.
   * Instead of a malformed one comes onDown or onSwitched: the connection ends, and whoever waits for an
   * answer has failed.
   */
  onReply(link: StoreLink, reply: Reply): void;
  /** The answer to a heartbeat, on either path, tells of fences of this process at this boot. */
  onFenceNotices(link: StoreLink, bootId: string, notices: readonly FenceNotice[]): void;
  /** canSend was false because the window was full, and is true again. */
  onWritable(link: StoreLink): void;
  /** The store serves a newer process of this gateway, incarnation `highest`. After onDown; the link ends. */
  onFenced(link: StoreLink, text: string, highest: number): void;
}

/** A row of the management table: the network state of one path (the paper's Table I). */
export interface PathStatus {
  readonly path: PathName;
  /** RUN: in use. READY: stands by. NG: in trouble. CONNECTING: coming up, no attempt has failed yet. */
  readonly state: 'RUN' | 'READY' | 'NG' | 'CONNECTING';
  readonly sinceMs: number;
}

/**
 * Requests on the way before canSend turns false, besides the bytes: 8,192 of the smallest (60 bytes) are
 * half a megabyte, and a store that is this far behind gains nothing from more.
 */
const REQUESTS_MAX = 8_192;

export class StoreLink implements StorePort, PairOwner {
  readonly storeId: string;
  readonly #options: LinkOptions;
  readonly #ports: LinkPorts;
  readonly #events: StoreLinkEvents;
  readonly #pair: PathPair;
  readonly #unacknowledged = new Unacknowledged();
  readonly #wish = new CreditWish();
  #welcome: Welcome | undefined;
  #bootId = '';
  #version = 0;
  #windowBytes = 0;
  /** What the store granted last, less what it had not seen then; below 0 only inside here. */
  #available = 0;
  #wasFull = false;
  #ackedThrough = 0;
  #leaseMs = 0;
  readonly lease: LinkLease;
  #started = false;

  constructor(options: LinkOptions, ports: LinkPorts, events: StoreLinkEvents) {
    this.storeId = options.storeId;
    this.#options = options;
    this.#ports = ports;
    this.#events = events;
    this.lease = new LinkLease(options);
    this.#pair = new PathPair(options, ports, this);
  }

  /** Boot id of the store at the last WELCOME on the active path, in hex; '' before the first. */
  get bootId(): string {
    return this.#bootId;
  }

  /** Version of the protocol that the store speaks with us, as settled then; 0 before. */
  get version(): number { return this.#version; }

  get isUp(): boolean { return this.#pair.isUp; }

  /** Why it is not; '' before the first attempt has failed. */
  get trouble(): string { return this.#pair.trouble; }

  /**
   * Bytes of STORE that this store still takes from us; never below 0. While the path is changed it is
   * what was left: the store keeps a grant as long as the lease runs.
   */
  get credit(): number {
    if (this.#pair.active === undefined && this.#ports.clock.nowMs() >= this.lease.endsMs) return 0;
    return this.#available > 0 ? this.#available : 0;
  }

  /** Room in the byte window. Advice: what is numbered must go out, so request() works past it too. */
  get canSend(): boolean {
    return this.#pair.active !== undefined && !this.#isFull();
  }

  get unackedBytes(): number {
    return this.#unacknowledged.bytes;
  }

  get unackedRequests(): number {
    return this.#unacknowledged.count;
  }

  /** Longest frame that the store takes, header included. */
  get frameBytesMax(): number {
    return this.#welcome?.frameBytesMax ?? FRAME_BYTES_MAX;
  }

  /** Length of a lease, as the store said last. */
  get leaseMs(): number {
    return this.#leaseMs;
  }

  /** Connects at the next tick. */
  start(): void {
    invariant(!this.#started, 'a link is started once');
    this.#started = true;
    this.#pair.start();
  }

  /** Later connections go there. The store is the same one to all who use the link: it has to prove that. */
  moveTo(pathA: PathAddress, pathB: PathAddress | undefined): void {
    this.#pair.moveTo(pathA, pathB);
  }

  /**
   * Time passes: connects, sends heartbeats, judges silence. Between two calls the shell lets one full poll
   * of the sockets pass (platform/node/clock.ts, startTicker), a few times a heartbeat interval.
   */
  tick(nowMs: number): void {
    this.#pair.tick(nowMs);
  }

  /**
   * Queues a request for the next flush() and returns its sequence number. `creditBytes` is what its STOREs
   * cost (docs/PROTOCOL.md). The bodies are not copied: they stay as they are until acknowledged.
   * While the path is changed a request goes nowhere, and 0 is returned: it is among what onSwitched asks to
   * repeat.
   */
  request(type: number, control: Uint8Array, bodies: readonly Uint8Array[], creditBytes: number): number {
    const { active } = this.#pair;
    if (active === undefined) {
      invariant(this.#pair.isUp, 'requests are made while the link is up');
      return 0;
    }
    let bodyBytes = 0;
    for (let i = 0; i < bodies.length; i++) bodyBytes += bodies[i]?.length ?? 0;
    const sequence = active.outgoing.queue(type, control, bodies, bodyBytes);
    this.#unacknowledged.add(sequence, HEADER_BYTES + control.length + bodyBytes, creditBytes);
    this.#available -= creditBytes;
    if (this.#isFull()) this.#wasFull = true;
    return sequence;
  }

  askCredit(creditBytes: number): void {
    this.#wish.begin(creditBytes);
    this.#pair.active?.outgoing.repeatHeartbeat();
  }

  /** Sends what this turn queued in one write. */
  flush(): void {
    this.#pair.active?.outgoing.flush();
  }

  /** Ends both paths for good, after what was flushed. No event follows. */
  close(): void {
    this.#pair.close('the gateway stops');
    this.#forget();
  }

  pathStates(): PathStatus[] {
    const states = [statusOf(this.#pair.pathA)];
    if (this.#pair.pathB !== undefined) states.push(statusOf(this.#pair.pathB));
    return states;
  }

  fencesProcessedAt(bootId: string): number {
    return this.lease.fencesProcessedIn(bootId);
  }

  onPairUp(path: PathConnection, welcome: Welcome): void {
    this.#begin(path, welcome);
    this.#events.onUp(this);
  }

  onPairSwitching(): void {
    this.#forgetRequests();
  }

  onPairSwitched(path: PathConnection, welcome: Welcome): void {
    this.#begin(path, welcome);
    this.#events.onSwitched(this);
  }

  onPairStopping(): void {
    this.#events.onStopping(this);
  }

  onPairDown(reason: string): void {
    this.#forget();
    this.#events.onDown(this, reason);
  }

  onPairFenced(text: string, highest: number, wasUp: boolean): void {
    this.#forget();
    if (wasUp) this.#events.onDown(this, `FENCED: ${text}`);
    this.#events.onFenced(this, text, highest);
  }

  onPathFrame(
    path: PathConnection, type: number, sequence: number, control: Uint8Array, bodies: Uint8Array,
  ): void {
    switch (type) {
      case types.ACK:
        this.#onAck(path, control);
        return;
      case types.BEAT:
        this.#onBeat(path, sequence, control);
        return;
      case types.REFUSAL:
        this.#onRefusal(path, control);
        return;
      case types.FENCED:
      case types.DECLINED:
      case types.ASKED:
      case types.TOLD:
      case types.LISTED:
      case types.BLOCK:
      case types.TAILED:
      case types.FETCHED:
        this.#onReply(path, type, sequence, control, bodies);
        return;
      default:
        path.reject(`${types.messageTypeName(type)} from a store`);
    }
  }

  /** A connection begins to carry requests. */
  #begin(path: PathConnection, welcome: Welcome): void {
    this.#welcome = welcome;
    this.#bootId = path.bootId;
    this.#version = path.version;
    this.#leaseMs = welcome.leaseMs;
    this.#windowBytes = Math.min(this.#options.windowBytes, welcome.windowBytes);
    this.#forget();
    this.#available = welcome.credit;
    this.#ackedThrough = path.outgoing.lastSequence;
  }

  /** What was on its way stays used: it is repeated, and what of it was not spent the store grants again. */
  #forgetRequests(): void {
    this.#unacknowledged.clear();
    this.#wasFull = false;
  }

  #forget(): void {
    this.#forgetRequests();
    this.#available = 0;
  }

  #onAck(path: PathConnection, control: Uint8Array): void {
    const ack = decodeAck(this.#ports.packer, control);
    if (isInvalid(ack)) {
      path.reject(`ACK: ${ack.rule}`);
      return;
    }
    const sequence = ackSequence(ack);
    if (sequence > path.outgoing.lastSequence) {
      path.reject('ACK: of a request that was not made');
      return;
    }
    if (sequence < this.#ackedThrough) {
      path.reject('ACK: below the last one');
      return;
    }
    this.#ackedThrough = sequence;
    this.#unacknowledged.acknowledgeThrough(sequence);
    this.#available = ackCredit(ack) - this.#unacknowledged.credit;
    const events = this.#events;
    const copies = ackCopyCount(ack);
    // The mirror may give the link up inside any of these calls.
    for (let i = 0; i < copies && this.#pair.active === path; i++) {
      events.onAcknowledged(this, ackHandle(ack, i), ackNumber(ack, i));
    }
    if (this.#pair.active === path) events.onAckedThrough(this, sequence);
    this.#tellWritable(path);
  }

  #onBeat(path: PathConnection, sequence: number, control: Uint8Array): void {
    const beat = decodeBeat(this.#ports.packer, control);
    if (isInvalid(beat)) {
      path.reject(`BEAT: ${beat.rule}`);
      return;
    }
    if (sequence > path.outgoing.lastSequence) {
      path.reject('BEAT: of a heartbeat that was not sent');
      return;
    }
    if (!path.outgoing.takeAnswer(beat.token)) {
      path.reject('BEAT: token');
      return;
    }
    this.#leaseMs = beat.leaseMs;
    // What was fenced is stopped before the answer may renew anything (rule 6 of docs/model).
    const last = beat.fences.at(-1);
    if (last !== undefined) {
      this.#events.onFenceNotices(this, path.bootId, beat.fences);
      this.lease.onFencesProcessed(path.bootId, last.count);
    }
    this.lease.onAnswer(path.bootId, beat.token, beat.leaseMs, beat.fenceCount);
    // A standby's grant stands in no order to the requests of the active path.
    if (path !== this.#pair.active) return;
    this.#available = beat.credit - this.#unacknowledged.creditAfter(sequence);
    if (this.#wish.wantsMoreThan(this.#available)) path.outgoing.repeatHeartbeat();
  }

  #onRefusal(path: PathConnection, control: Uint8Array): void {
    const refusal = decodeRefusal(this.#ports.packer, control);
    if (isInvalid(refusal)) {
      path.reject(`REFUSAL: ${refusal.rule}`);
      return;
    }
    if (refusal.sequence > path.outgoing.lastSequence) {
      path.reject('REFUSAL: of a request that was not made');
      return;
    }
    this.#events.onRefusal(this, refusal);
  }

  #onReply(
    path: PathConnection, type: ReplyType, sequence: number, control: Uint8Array, bodies: Uint8Array,
  ): void {
    if (sequence > path.outgoing.lastSequence) {
      path.reject(`${types.messageTypeName(type)}: of a request that was not made`);
      return;
    }
    const reply = decodeReply(this.#ports.packer, type, sequence, control, bodies);
    if (isInvalid(reply)) {
      path.reject(`${types.messageTypeName(type)}: ${reply.rule}`);
      return;
    }
    // A large reply may come behind an ACK that covers it: then nothing is left to free.
    this.#unacknowledged.answer(sequence);
    this.#events.onReply(this, reply);
    this.#tellWritable(path);
  }

  #tellWritable(path: PathConnection): void {
    if (!this.#wasFull || this.#pair.active !== path || this.#isFull()) return;
    this.#wasFull = false;
    this.#events.onWritable(this);
  }

  #isFull(): boolean {
    return this.#unacknowledged.bytes >= this.#windowBytes || this.#unacknowledged.count >= REQUESTS_MAX;
  }
}

function statusOf(path: PathConnection): PathStatus {
  return { path: path.name, state: stateName(path), sinceMs: path.sinceMs };
}

function stateName(path: PathConnection): PathStatus['state'] {
  switch (path.state) {
    case PathState.RUN:
      return 'RUN';
    case PathState.READY:
      return 'READY';
    case PathState.STOPPED:
      return 'NG';
    default:
      return path.isFresh ? 'CONNECTING' : 'NG';
  }
}
