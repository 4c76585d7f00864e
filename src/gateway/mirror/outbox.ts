/**
 * What goes to one store: sections gathered into CHANGES frames, and the few other requests that must keep
 * their place among them. What the byte window has no room for waits here, in order.
 *
 *   put(section) ─► open frame ─ close() ─► request, or backlog while the window is full or the path changes
 *   send(type)   ─────────────────────────► the same
 *
 * An attachment (OPEN of a queue that the store knows) gives the queue its handle on a new connection, and
 * confirms our right to it in the present term of the lease: noted when its acknowledgement is there.
 */
import type { Packer } from '../../platform/ports.js';
import type { FlatElement } from '../../protocol/flat-array.js';
import { CHANGES } from '../../protocol/message-types.js';
import { encodeChanges, UNPAID_TARGET_BYTES, type Changes } from '../../protocol/messages/changes.js';
import { JoinedPieces } from './joined-pieces.js';
import type { Replica } from './replica.js';
import type { StorePort } from './store-port.js';
import type { SealedSection } from './turn-section.js';

/** The protocol takes 8,192 (docs/PROTOCOL.md): the loss of a store changes the set of every queue in one turn. */
const SECTIONS_PER_FRAME_MAX = 4096;

export interface OutboxOptions {
  /** A CHANGES frame is closed when its payload has reached this. */
  readonly frameTargetBytes: number;
}

/** Control parts of CHANGES: two stores that get the same sections get the same bytes. */
export class ChangesEncoder {
  private readonly packer: Packer;
  private sections: readonly SealedSection[] = [];
  private control: Uint8Array | undefined;

  constructor(packer: Packer) {
    this.packer = packer;
  }

  /** `changes`: the same sections, as the flat array that goes out. */
  encode(sections: readonly SealedSection[], changes: Changes): Uint8Array {
    if (this.control !== undefined && sections.length === this.sections.length) {
      let same = true;
      for (let i = 0; i < sections.length && same; i++) same = sections[i] === this.sections[i];
      if (same) return this.control;
    }
    const control = encodeChanges(this.packer, changes);
    this.control = control;
    this.sections = sections;
    return control;
  }

  /** The turn is over: nothing will be the same again. */
  forget(): void {
    this.control = undefined;
    this.sections = [];
  }
}

interface Waiting {
  readonly type: number;
  readonly control: Uint8Array;
  readonly bodies: readonly Uint8Array[];
  readonly creditBytes: number;
  readonly attached: Replica | undefined;
}

interface PendingAttachment {
  readonly replica: Replica;
  readonly sequence: number;
  readonly term: number;
}

export class Outbox {
  readonly store: StorePort;
  /** Boot id that our mirrors there are known by, and the last lease end seen for it: what a restart is judged by. */
  bootId = '';
  leaseEndsMs = -Infinity;
  /** Term of the lease in which the queues there were attached. */
  term = -1;
  /** Bytes that only the backlog keeps in memory: control parts; sections are counted in the ring. */
  backlogBytes = 0;
  creditBytes = 0;
  private readonly options: OutboxOptions;
  private readonly encoder: ChangesEncoder;
  /** Flat CHANGES control: five elements a section. */
  private values: FlatElement[] = [];
  private readonly bodies = new JoinedPieces();
  private sections: SealedSection[] = [];
  private payloadBytes = 0;
  private unpaidBytes = 0;
  private openCreditBytes = 0;
  private backlog: Waiting[] = [];
  private attachments: PendingAttachment[] = [];
  private sentSequence = 0;
  private ackedSequence = 0;
  private markedSequence = 0;

  constructor(options: OutboxOptions, encoder: ChangesEncoder, store: StorePort) {
    this.options = options;
    this.encoder = encoder;
    this.store = store;
  }

  /** A connection is there. True when the store has restarted and our lease at its old boot still ran now that we learn of it. */
  onConnected(nowMs: number): boolean {
    const { store } = this;
    // The lease that was seen last is the one at the old boot: later ones are of the new boot.
    const witnessed = this.bootId !== '' && this.bootId !== store.bootId && nowMs < this.leaseEndsMs;
    this.bootId = store.bootId;
    this.term = store.leaseTerm;
    this.leaseEndsMs = store.leaseEndsMs;
    return witnessed;
  }

  /** Looked at now and then: true when the lease has begun anew, and every right there must be confirmed again. */
  beganAnew(): boolean {
    const { store } = this;
    if (!store.isUp || store.bootId !== this.bootId) return false;
    this.leaseEndsMs = store.leaseEndsMs;
    if (store.leaseTerm === this.term || !store.canSend) return false;
    this.term = store.leaseTerm;
    return true;
  }

  get isBacklogged(): boolean {
    return this.backlog.length > 0;
  }

  /** Notes what is on its way now; false while some of it has no sequence number yet. */
  mark(): boolean {
    if (this.backlog.length > 0 || this.sections.length > 0) return false;
    this.markedSequence = this.sentSequence;
    return true;
  }

  /** What was on its way at mark() is acknowledged, or its connection lost. */
  get isPastMark(): boolean {
    return this.ackedSequence >= this.markedSequence;
  }

  put(section: SealedSection): void {
    this.sections.push(section);
    this.values.push(section.handle, section.firstNumber, section.digestA, section.digestB, section.rows);
    for (const piece of section.pieces) this.bodies.add(piece);
    this.payloadBytes += section.payloadBytes + section.rows.length;
    this.unpaidBytes += section.unpaidBytes;
    this.creditBytes += section.creditBytes;
    this.openCreditBytes += section.creditBytes;
    const isLarge = this.payloadBytes >= this.options.frameTargetBytes || this.unpaidBytes >= UNPAID_TARGET_BYTES;
    if (isLarge || this.sections.length >= SECTIONS_PER_FRAME_MAX) this.close();
  }

  /** The frame is complete: it goes out, or waits for its turn. */
  close(): void {
    if (this.sections.length === 0) return;
    const control = this.encoder.encode(this.sections, this.values);
    const bodies = this.bodies.take();
    const { openCreditBytes } = this;
    this.values = [];
    this.sections = [];
    this.payloadBytes = 0;
    this.unpaidBytes = 0;
    this.openCreditBytes = 0;
    this.send(CHANGES, control, bodies, openCreditBytes, undefined);
  }

  /** Any other request, behind everything closed so far. `attached`: it confirms the right to this replica's queue. */
  request(type: number, control: Uint8Array, attached?: Replica): void {
    this.send(type, control, [], 0, attached);
  }

  /** Sends what waited, as far as the window goes; true when something went. */
  drain(): boolean {
    let sent = 0;
    for (let frame = this.backlog[sent]; frame !== undefined && this.store.canSend; frame = this.backlog[sent]) {
      this.backlogBytes -= frame.control.length;
      this.write(frame.type, frame.control, frame.bodies, frame.creditBytes, frame.attached);
      sent += 1;
    }
    if (sent === 0) return false;
    this.backlog.splice(0, sent);
    return true;
  }

  /** Everything up to this sequence is applied or refused. */
  onAckedThrough(sequence: number): boolean {
    this.ackedSequence = sequence;
    let over = 0;
    for (let next = this.attachments[over]; next !== undefined && next.sequence <= sequence; next = this.attachments[over]) {
      // A refusal comes before the acknowledgement past it, and takes the expectation away.
      if (next.replica.attachSequence === next.sequence) {
        next.replica.attachSequence = 0;
        next.replica.confirmedTerm = next.term;
      }
      over += 1;
    }
    if (over === 0) return false;
    this.attachments.splice(0, over);
    return true;
  }

  /** The connection is gone, and with it all that was on its way. */
  clear(): void {
    this.values = [];
    this.bodies.take();
    this.sections = [];
    this.payloadBytes = 0;
    this.unpaidBytes = 0;
    this.openCreditBytes = 0;
    this.creditBytes = 0;
    this.backlog = [];
    this.backlogBytes = 0;
    this.attachments = [];
    this.sentSequence = 0;
    this.ackedSequence = 0;
    this.markedSequence = 0;
  }

  private send(type: number, control: Uint8Array, bodies: readonly Uint8Array[], creditBytes: number, attached: Replica | undefined): void {
    if (this.backlog.length === 0 && this.store.canSend) {
      this.write(type, control, bodies, creditBytes, attached);
      return;
    }
    this.backlog.push({ type, control, bodies, creditBytes, attached });
    this.backlogBytes += control.length;
  }

  private write(type: number, control: Uint8Array, bodies: readonly Uint8Array[], creditBytes: number, attached: Replica | undefined): void {
    const sequence = this.store.request(type, control, bodies, creditBytes);
    this.sentSequence = Math.max(this.sentSequence, sequence);
    this.creditBytes -= creditBytes;
    if (attached === undefined) return;
    attached.attachSequence = sequence;
    this.attachments.push({ replica: attached, sequence, term: this.store.leaseTerm });
  }
}
