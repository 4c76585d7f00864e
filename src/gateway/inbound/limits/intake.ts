/**
 * How many messages are in the gateway's hands at a time: submitted, and not answered yet. When they are
 * full, a connection whose message was just answered stands in a line before it is read on; its next message
 * waits in the system's buffer, where it is no object of ours. Pure.
 *
 *   READ ── answered while the hands are full ──▶ IN LINE ── a message of somebody else is answered ──▶ READ
 *                                                    └── a look: others take too long, or say nothing ───┘
 *
 * Without it thousands of clients that send at once are thousands of messages at once, for the stores answer
 * no sooner. All that belongs to a message has grown old then when the collector comes, is copied twice and
 * looked for in the whole heap; and memory for changes is made anew each turn instead of being used again.
 *
 * It never stops mail for long: a message that was submitted before the look before last does not count (its
 * store is far away, or stalls, and others' stores may not), nor does who was let in before the last one and
 * has sent nothing. And each look lets in some of the line however full the hands are: clients of one message
 * each never stand in it, and may be enough to keep them full.
 */

/**
 * Of the limit, let in at a look in any case: with 256 and 20 looks a second that is 2,560 connections a
 * second.
 */
const SHARE_AT_LOOK = 1 / 2;
/** Places in front that were left are dropped when there are so many, and they are half. */
const COMPACT_AT = 1024;

/** Whoever brings messages. */
export interface Reader {
  stopReading(): void;
  /** False: it has gone, or is read on already. */
  startReading(): boolean;
}

export class Intake {
  readonly #inHandMax: number;
  readonly #atLook: number;
  readonly #onWait: () => void;
  /** How many looks there have been. Messages are told apart by it. */
  #looks = 0;
  /** In hand, submitted since the last look, and between the two last: older ones do not count. */
  #sinceLook = 0;
  #beforeLook = 0;
  /** Let in since the last look, whose message has not come yet. */
  #expected = 0;
  #line: Reader[] = [];
  /** Who stands in front. */
  #first = 0;

  constructor(inHandMax: number, onWait: () => void) {
    this.#onWait = onWait;
    this.#inHandMax = inHandMax;
    this.#atLook = Math.ceil(inHandMax * SHARE_AT_LOOK);
  }

  /** A message is submitted; what this returns is to be told at its end. */
  begin(): number {
    this.#sinceLook++;
    if (this.#expected > 0) this.#expected--;
    return this.#looks;
  }

  /** It is answered, or will never be. */
  end(begun: number): void {
    if (begun === this.#looks) this.#sinceLook--;
    else if (begun === this.#looks - 1) this.#beforeLook--;
    if (this.#first < this.#line.length) this.#letIn(0);
  }

  /** Its message is answered: it is read on, or stands in line. */
  next(reader: Reader): void {
    if (!this.#isFull) return;
    reader.stopReading();
    this.#line.push(reader);
    this.#onWait();
  }

  get #isFull(): boolean {
    return this.#beforeLook + this.#sinceLook + this.#expected >= this.#inHandMax;
  }

  /** Some 20 times a second while connections are open. */
  look(): void {
    this.#looks++;
    this.#beforeLook = this.#sinceLook;
    this.#sinceLook = 0;
    this.#expected = 0;
    this.#letIn(this.#atLook);
  }

  #letIn(atLeast: number): void {
    for (let letIn = 0; letIn < atLeast || !this.#isFull;) {
      const reader = this.#line[this.#first];
      if (reader === undefined) break;
      this.#first++;
      if (!reader.startReading()) continue;
      this.#expected++;
      letIn++;
    }
    const isMostlyTaken = this.#first >= COMPACT_AT && this.#first * 2 >= this.#line.length;
    if (this.#first < this.#line.length && !isMostlyTaken) return;
    this.#line = this.#line.slice(this.#first);
    this.#first = 0;
  }
}
