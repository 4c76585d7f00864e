/**
 * The last changes of all partitions as they were sealed, so that a mirror which was away for a moment gets
 * only what it lacks: after a change of path, after a lost link, after a recovery (docs/PROTOCOL.md
 * "Digest").
 *
 *   order      oldest ─► p1 p3 p1 p2 … ─► newest  one first-in first-out for all partitions, bounded in bytes
 *   partition  base (number, digest) │ section │ section │ section    contiguous up to the last sealed number
 *
 * A mirror that stands at (n, digest) can go on from here when n is not below the base and the digest at n is
 * the same: at the end of a section it is known, inside one it is rolled forward over the rows.
 *
 * While memory is short, the bound falls to what the reserve leaves: these changes save a refill, and what
 * ends mail needs the room. What a mirror in use has not acknowledged is never let go, nor what the last
 * copies of a partition lack: such a one is passed over and looked at again later, so that one slow store
 * does not hold the others' memory. Sections share slabs (payload-slabs.ts), which are used in the same
 * order: what is kept here is what is counted.
 */
import { CHANGE_ROW_BYTES, changeDigested } from '../../../protocol/change-rows.js';
import { Digest } from '../../../protocol/digest.js';
import { SECTION_OVERHEAD_BYTES } from './turn-section.js';
import type { SealedSection } from './turn-section.js';

/** Sections looked at for each that comes: more than one, so that what was held up is let go again. */
const LOOKS_PER_ADD = 8;
/**
 * Slots behind a head are dropped when this many have gone by and they are the larger half: of the order of
 * all, and of each partition.
 */
const COMPACT_AT = 256;
const QUEUE_COMPACT_AT = 8;

export interface ChangeRingOptions {
  readonly bytesMax: number;
}

export interface ChangeRingPorts {
  /** Highest number of the partition that no mirror will ask for any more. */
  releasableThrough(handle: number): number;
  /** What memory leaves for all that is kept here; may be below 0. */
  roomBytes(): number;
  /** A section is let go: its slabs may be used again when no frame has it any more. */
  onReleased(section: SealedSection): void;
}

/** Where what is kept of a partition begins. */
export interface RingBase {
  readonly number: number;
  readonly digestA: number;
  readonly digestB: number;
}

/** The changes of one partition that are kept. */
class QueueChanges {
  readonly handle: number;
  baseNumber: number;
  baseA: number;
  baseB: number;
  sections: SealedSection[] = [];
  /** Index of the oldest section that is still here. */
  head = 0;

  constructor(handle: number, number: number, a: number, b: number) {
    this.handle = handle;
    this.baseNumber = number;
    this.baseA = a;
    this.baseB = b;
  }

  get oldest(): SealedSection | undefined {
    return this.sections[this.head];
  }

  /** Index of the section with this number in it; the length when none has. */
  indexOf(number: number): number {
    let low = this.head;
    let high = this.sections.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.sections[middle]?.lastNumber ?? 0) < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  release(section: SealedSection): void {
    this.baseNumber = section.lastNumber;
    this.baseA = section.digestA;
    this.baseB = section.digestB;
    this.head += 1;
    // What is behind the head is still in memory: with thousands of partitions a few of each are soon more
    // than the ring.
    if (this.head < QUEUE_COMPACT_AT || this.head * 2 < this.sections.length) return;
    this.sections = this.sections.slice(this.head);
    this.head = 0;
  }
}

export class ChangeRing {
  usedBytes = 0;
  readonly #bytesMax: number;
  readonly #ports: ChangeRingPorts;
  readonly #byHandle: (QueueChanges | undefined)[] = [];
  /** One element for each section, oldest first: which partition's oldest goes next. */
  #order: QueueChanges[] = [];
  #orderHead = 0;
  readonly #digest = new Digest();

  constructor(options: ChangeRingOptions, ports: ChangeRingPorts) {
    this.#bytesMax = options.bytesMax;
    this.#ports = ports;
  }

  /** The partition stands at this number; what was kept of it before is let go. */
  begin(handle: number, number: number, digestA: number, digestB: number): void {
    this.forget(handle);
    this.#byHandle[handle] = new QueueChanges(handle, number, digestA, digestB);
  }

  forget(handle: number): void {
    const queue = this.#byHandle[handle];
    if (queue === undefined) return;
    let section: SealedSection | undefined;
    while ((section = queue.oldest) !== undefined) this.#letGo(queue, section);
    queue.sections = [];
    queue.head = 0;
    this.#byHandle[handle] = undefined;
  }

  /** The next section of a partition. */
  add(section: SealedSection): void {
    const queue = this.#byHandle[section.handle];
    if (queue === undefined) return;
    queue.sections.push(section);
    this.#order.push(queue);
    this.usedBytes += costOf(section);
    this.trim(LOOKS_PER_ADD);
  }

  /** Where what is kept of it begins. */
  baseOf(handle: number): RingBase | undefined {
    const queue = this.#byHandle[handle];
    if (queue === undefined) return undefined;
    return { number: queue.baseNumber, digestA: queue.baseA, digestB: queue.baseB };
  }

  /**
   * What came before all that is kept, from these digests on; false, and nothing done, when it does
   * not lead to where that begins.
   */
  prepend(section: SealedSection, digestA: number, digestB: number): boolean {
    const queue = this.#byHandle[section.handle];
    if (queue === undefined || queue.baseNumber !== section.lastNumber) return false;
    this.#digest.reset(digestA, digestB);
    roll(this.#digest, section.rows, section.rows.length / CHANGE_ROW_BYTES);
    if (!this.#digest.equals(queue.baseA, queue.baseB)) return false;
    queue.baseNumber = section.firstNumber - 1;
    queue.baseA = digestA;
    queue.baseB = digestB;
    queue.sections.splice(queue.head, 0, section);
    this.#order.splice(this.#orderHead, 0, queue);
    this.usedBytes += costOf(section);
    return true;
  }

  /** Lets the oldest go while there is more than the bound; `looks` bounds the work. */
  trim(looks: number): void {
    const mostBytes = Math.min(this.#bytesMax, this.#ports.roomBytes());
    for (let left = looks; left > 0 && this.usedBytes > mostBytes; left--) {
      const queue = this.#order[this.#orderHead];
      if (queue === undefined) return;
      this.#orderHead += 1;
      const section = queue.oldest;
      // Undefined: the partition was forgotten, this is what is left of it.
      if (section !== undefined) {
        if (section.lastNumber > this.#ports.releasableThrough(queue.handle)) this.#order.push(queue);
        else this.#letGo(queue, section);
      }
      this.#compact();
    }
  }

  /** Whether a mirror at this number and digest can go on from what is kept. */
  stands(handle: number, number: number, digestA: number, digestB: number): boolean {
    const queue = this.#byHandle[handle];
    if (queue === undefined || number < queue.baseNumber) return false;
    const digest = this.#digest;
    const index = queue.indexOf(number);
    const before = queue.sections[index - 1];
    if (index === queue.head || before === undefined) digest.reset(queue.baseA, queue.baseB);
    else digest.reset(before.digestA, before.digestB);
    if (number === queue.baseNumber) return digest.equals(digestA, digestB);
    const section = queue.sections[index];
    if (section === undefined) return false;
    roll(digest, section.rows, number - section.firstNumber + 1);
    return digest.equals(digestA, digestB);
  }

  /** The sections with what follows `number`; the first may begin before it. The caller knows it stands(). */
  after(handle: number, number: number): readonly SealedSection[] {
    const queue = this.#byHandle[handle];
    return queue === undefined ? [] : queue.sections.slice(queue.indexOf(number + 1));
  }

  #letGo(queue: QueueChanges, section: SealedSection): void {
    this.usedBytes -= costOf(section);
    queue.release(section);
    this.#ports.onReleased(section);
  }

  #compact(): void {
    if (this.#orderHead < COMPACT_AT || this.#orderHead * 2 < this.#order.length) return;
    this.#order = this.#order.slice(this.#orderHead);
    this.#orderHead = 0;
  }
}

function costOf(section: SealedSection): number {
  return section.payloadBytes + section.keptBytes + section.rows.length + SECTION_OVERHEAD_BYTES;
}

/** The digest after `count` more rows. */
function roll(digest: Digest, rows: Uint8Array, count: number): void {
  const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
  for (let i = 0, at = 0; i < count; i++, at += CHANGE_ROW_BYTES) {
    digest.add(
      changeDigested(view, at), view.getUint32(at + 4, true), view.getUint32(at + 8, true),
      view.getUint32(at + 12, true), view.getFloat64(at + 16, true),
    );
  }
}
