/**
 * Which process made a copy what it is: the one that wrote its set, also the one that left it out, or that began to fill it.
 * A takeover asks for it (docs/PROTOCOL.md "Claims"): a mirror that a set names is on its way to be a member only if the
 * process that wrote the set is the one that fills it, and nobody may have gone on from both since.
 *
 *   unknown ─ OPEN of a new queue, REFILL_BEGIN, SET_MEMBERS ─► written ─ CLAIM granted to another process ─► claimed since
 *   written ◄─ RELEASE of that claim, unused ───────────────────────────────────────────────┘
 *
 * To the process whose claim it is, its own claim hides nothing: it knows whether it served the queue by it. Nor does any
 * hide who fills a copy that is no member's: who took the queue over has gone on from the member beside it, too.
 */
import type { Writer } from '../../protocol/messages/claimed.js';

const NOBODY: Writer = { gatewayId: '', incarnation: 0 };

/** A process of a gateway, as its account shows it. */
interface Process {
  readonly id: string;
  readonly incarnation: number;
}

export class CopyWriter {
  #writer: Writer = NOBODY;
  #isClaimedSince = false;
  /** The last claim since, and whether there was one before it. */
  #claimant: Writer = NOBODY;
  #token = 0;
  #isNotTheFirst = false;

  write(process: Process): void {
    if (!is(this.#writer, process)) this.#writer = { gatewayId: process.id, incarnation: process.incarnation };
    this.#isClaimedSince = false;
    this.#claimant = NOBODY;
  }

  claimed(process: Process, token: number): void {
    if (is(this.#writer, process) || (is(this.#claimant, process) && this.#token === token)) return;
    this.#isNotTheFirst = this.#isClaimedSince;
    this.#isClaimedSince = true;
    this.#claimant = { gatewayId: process.id, incarnation: process.incarnation };
    this.#token = token;
  }

  /** The claim came to nothing: the queue was never served by it. */
  releasedUnused(process: Process, token: number): void {
    if (!is(this.#claimant, process) || this.#token !== token) return;
    this.#isClaimedSince = this.#isNotTheFirst;
    this.#claimant = NOBODY;
  }

  toldTo(process: Process, isMember: boolean): Writer {
    const isUnclaimed = !isMember || !this.#isClaimedSince || (is(this.#claimant, process) && !this.#isNotTheFirst);
    return isUnclaimed ? this.#writer : NOBODY;
  }
}

function is(writer: Writer, { id, incarnation }: Process): boolean {
  return writer.gatewayId === id && writer.incarnation === incarnation;
}
