/**
 * What goes to one store: sections gathered into CHANGES frames, and the few other requests that must keep
 * their place among them. What the byte window has no room for waits here, in order.
 *
 *   put(section) ─► open frame ─ close() ─► request, or backlog while the window is full or the path changes
 *   send(type)   ─────────────────────────► the same
 */
import type { Packer } from '../../../platform/ports.js';
import type { FlatElement } from '../../../protocol/flat-array.js';
import { CHANGES } from '../../../protocol/message-types.js';
import { encodeChanges, UNPAID_TARGET_BYTES, type Changes } from '../../../protocol/messages/changes.js';
import { JoinedPieces } from '../feed/joined-pieces.js';
import type { StorePort } from './store-port.js';
import type { SealedSection } from '../feed/turn-section.js';

/** The protocol takes 8,192 (docs/PROTOCOL.md): far more than partitions change in one turn. */
const SECTIONS_PER_FRAME_MAX = 4096;

export interface OutboxOptions {
  /** A CHANGES frame is closed when its payload has reached this. */
  readonly frameTargetBytes: number;
}

/** Control parts of CHANGES: two stores that get the same sections get the same bytes. */
export class ChangesEncoder {
  readonly #packer: Packer;
  #sections: readonly SealedSection[] = [];
  #control: Uint8Array | undefined;

  constructor(packer: Packer) {
    this.#packer = packer;
  }

  /** `changes`: the same sections, as the flat array that goes out. */
  encode(sections: readonly SealedSection[], changes: Changes): Uint8Array {
    if (this.#control !== undefined && sections.length === this.#sections.length) {
      let same = true;
      for (let i = 0; i < sections.length && same; i++) same = sections[i] === this.#sections[i];
      if (same) return this.#control;
    }
    const control = encodeChanges(this.#packer, changes);
    this.#control = control;
    this.#sections = sections;
    return control;
  }

  /** The turn is over: nothing will be the same again. */
  forget(): void {
    this.#control = undefined;
    this.#sections = [];
  }
}

interface Waiting {
  readonly type: number;
  readonly control: Uint8Array;
  readonly bodies: readonly Uint8Array[];
  readonly creditBytes: number;
}

export class Outbox {
  readonly store: StorePort;
  /** Bytes that only the backlog keeps in memory: control parts; sections are counted in the ring. */
  backlogBytes = 0;
  creditBytes = 0;
  readonly #options: OutboxOptions;
  readonly #encoder: ChangesEncoder;
  /** Flat CHANGES control: five elements a section. */
  #values: FlatElement[] = [];
  readonly #bodies = new JoinedPieces();
  #sections: SealedSection[] = [];
  #payloadBytes = 0;
  #unpaidBytes = 0;
  #openCreditBytes = 0;
  #backlog: Waiting[] = [];
  #sentSequence = 0;
  #ackedSequence = 0;
  #markedSequence = 0;

  constructor(options: OutboxOptions, encoder: ChangesEncoder, store: StorePort) {
    this.#options = options;
    this.#encoder = encoder;
    this.store = store;
  }

  get isBacklogged(): boolean {
    return this.#backlog.length > 0;
  }

  /** Notes what is on its way now; false while some of it has no sequence number yet. */
  mark(): boolean {
    if (this.#backlog.length > 0 || this.#sections.length > 0) return false;
    this.#markedSequence = this.#sentSequence;
    return true;
  }

  /** What was on its way at mark() is acknowledged, or its connection lost. */
  get isPastMark(): boolean {
    return this.#ackedSequence >= this.#markedSequence;
  }

  put(section: SealedSection): void {
    this.#sections.push(section);
    this.#values.push(section.handle, section.firstNumber, section.digestA, section.digestB, section.rows);
    for (const piece of section.pieces) this.#bodies.add(piece);
    this.#payloadBytes += section.payloadBytes + section.rows.length;
    this.#unpaidBytes += section.unpaidBytes;
    this.creditBytes += section.creditBytes;
    this.#openCreditBytes += section.creditBytes;
    const isLarge = this.#payloadBytes >= this.#options.frameTargetBytes
      || this.#unpaidBytes >= UNPAID_TARGET_BYTES;
    if (isLarge || this.#sections.length >= SECTIONS_PER_FRAME_MAX) this.close();
  }

  /** The frame is complete: it goes out, or waits for its turn. */
  close(): void {
    if (this.#sections.length === 0) return;
    const control = this.#encoder.encode(this.#sections, this.#values);
    const bodies = this.#bodies.take();
    const openCreditBytes = this.#openCreditBytes;
    this.#values = [];
    this.#sections = [];
    this.#payloadBytes = 0;
    this.#unpaidBytes = 0;
    this.#openCreditBytes = 0;
    this.#send(CHANGES, control, bodies, openCreditBytes);
  }

  /** Any other request, behind everything sealed so far. */
  request(type: number, control: Uint8Array): void {
    this.close();
    this.#send(type, control, [], 0);
  }

  /** Sends what waited, as far as the window goes; true when something went. */
  drain(): boolean {
    let sent = 0;
    while (this.store.canSend) {
      const frame = this.#backlog[sent];
      if (frame === undefined) break;
      this.backlogBytes -= frame.control.length;
      this.#write(frame.type, frame.control, frame.bodies, frame.creditBytes);
      sent += 1;
    }
    if (sent === 0) return false;
    this.#backlog.splice(0, sent);
    return true;
  }

  /** Everything up to this sequence is applied or refused. */
  onAckedThrough(sequence: number): void {
    this.#ackedSequence = sequence;
  }

  /** The connection is gone, and with it all that was on its way. */
  clear(): void {
    this.#values = [];
    this.#bodies.take();
    this.#sections = [];
    this.#payloadBytes = 0;
    this.#unpaidBytes = 0;
    this.#openCreditBytes = 0;
    this.creditBytes = 0;
    this.#backlog = [];
    this.backlogBytes = 0;
    this.#sentSequence = 0;
    this.#ackedSequence = 0;
    this.#markedSequence = 0;
  }

  #send(type: number, control: Uint8Array, bodies: readonly Uint8Array[], creditBytes: number): void {
    if (this.#backlog.length === 0 && this.store.canSend) {
      this.#write(type, control, bodies, creditBytes);
      return;
    }
    this.#backlog.push({ type, control, bodies, creditBytes });
    this.backlogBytes += control.length;
  }

  #write(type: number, control: Uint8Array, bodies: readonly Uint8Array[], creditBytes: number): void {
    const sequence = this.store.request(type, control, bodies, creditBytes);
    this.#sentSequence = Math.max(this.#sentSequence, sequence);
    this.creditBytes -= creditBytes;
  }
}
