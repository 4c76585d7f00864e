/**
 * The "simple" canonicalization of a body (RFC 6376 3.4.3): as it is, without empty lines at its end, with a
 * CRLF behind its last line; an empty body is one CRLF. In one pass over pieces, of which nothing is kept.
 * Lines end with CRLF (inbound/content/content-scan.ts). Pure.
 */
const LF = 0x0a;
const CR = 0x0d;

/** Of empty lines that waited, one update hands out so much: a message may have millions of them. */
export const EMPTY_LINES_OCTETS_MAX = 1024 * 1024;
/** To be handed out, never written to. */
export const LINE_ENDS = Uint8Array.from({ length: 8192 }, (_none, at) => (at % 2 === 0 ? CR : LF));

export class SimpleBody {
  readonly #take: (octets: Uint8Array) => void;
  /** Of line ends that count only if something follows them. */
  #waitingOctets = 0;

  /** `take` must be done with the octets when it returns. */
  constructor(take: (octets: Uint8Array) => void) {
    this.#take = take;
  }

  /** Takes piece[from .. to), or less where many empty lines are in front; returns where it stopped. */
  update(piece: Uint8Array, from: number, to: number): number {
    let end = to;
    while (end > from && isOfLineEnd(piece[end - 1] as number)) end--;
    if (end > from) {
      let start = from;
      // They begin with what the piece before has left of one.
      while (isOfLineEnd(piece[start] as number)) start++;
      this.#waitingOctets += start - from;
      this.#putWaiting();
      if (this.#waitingOctets > 0) return start;
      this.#take(piece.subarray(start, end));
    }
    this.#waitingOctets += to - end;
    return to;
  }

  /** Nothing more comes. */
  end(): void {
    this.#take(LINE_ENDS.subarray(0, 2));
  }

  #putWaiting(): void {
    let octets = Math.min(this.#waitingOctets, EMPTY_LINES_OCTETS_MAX);
    this.#waitingOctets -= octets;
    for (; octets > 0; octets -= LINE_ENDS.length) {
      this.#take(LINE_ENDS.subarray(0, Math.min(octets, LINE_ENDS.length)));
    }
  }
}

function isOfLineEnd(octet: number): boolean {
  return octet === CR || octet === LF;
}
