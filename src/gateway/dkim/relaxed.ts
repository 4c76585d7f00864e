/**
 * The "relaxed" canonicalization of DKIM (RFC 6376 3.4.2, 3.4.4): what a relay may do to blanks and line ends
 * on the way changes nothing of what was signed. Pure.
 *
 *   field   name in lower case, unfolded, runs of blanks one space, none at the ends nor around the colon
 *   body    runs of blanks one space, none at the end of a line, no empty lines at the end, a CRLF behind the
 *           last line; an empty body is nothing
 */
import { EMPTY_LINES_OCTETS_MAX, LINE_ENDS } from './simple-body.js';

/** Without its line end. Both in one character an octet. */
export function relaxedField(name: string, value: string): string {
  return `${name.toLowerCase()}:${value.replace(/\r\n/g, '').replace(/[ \t]+/g, ' ').replace(/^ | $/g, '')}`;
}

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

const LAST_LINE_END = LINE_ENDS.subarray(0, 2);
/** More of them leave without a copy. */
const FEW_LINE_ENDS = 32;
const LINE_ENDS_MAX = EMPTY_LINES_OCTETS_MAX / 2;
/** Below that a loop is faster than a call. */
const COPIED_AT_ONCE_MIN = 64;

/**
 * A body in one pass, piece by piece. Output is gathered in `scratch` and leaves through `take`, which must
 * be done with it when it returns; several bodies may share one scratch, for none of it outlives update().
 */
export class RelaxedBody {
  readonly #scratch: Uint8Array;
  readonly #take: (octets: Uint8Array) => void;
  /** Line ends that count only if something follows them. */
  #lineEnds = 0;
  /** Blanks likewise, of this line. */
  #hasBlank = false;
  /** The last octet was a CR, which belongs to a line end if a LF follows. */
  #hasCr = false;
  #isEmpty = true;
  #filled = 0;

  constructor(scratch: Uint8Array, take: (octets: Uint8Array) => void) {
    this.#scratch = scratch;
    this.#take = take;
  }

  /** Takes piece[from .. to), or less where many empty lines are in front; returns where it stopped. */
  update(piece: Uint8Array, from: number, to: number): number {
    let at = from;
    while (at < to) {
      if (this.#isPlain) {
        const end = passPlain(piece, at, to);
        if (end > at) this.#addAll(piece, at, end);
        if (end === to) break;
        at = end;
      }
      if (this.#lineEnds > LINE_ENDS_MAX && this.#isContent(piece[at] as number)) {
        this.#putLineEnds(LINE_ENDS_MAX);
        return at;
      }
      this.#onOther(piece[at++] as number);
    }
    this.#flush();
    return to;
  }

  /** Nothing more comes. */
  end(): void {
    if (this.#hasCr) this.#put(CR);
    this.#flush();
    if (!this.#isEmpty) this.#take(LAST_LINE_END);
  }

  /** Nothing waits for what comes next. */
  get #isPlain(): boolean {
    return !this.#hasBlank && !this.#hasCr && this.#lineEnds === 0;
  }

  /** What waits is no end of the body: this octet follows, or the CR in front of it. */
  #isContent(octet: number): boolean {
    return this.#hasCr ? octet !== LF : octet !== CR && octet !== SPACE && octet !== TAB;
  }

  /** A blank, a line end, or what comes behind one. */
  #onOther(octet: number): void {
    if (this.#hasCr) {
      this.#hasCr = false;
      if (octet === LF) {
        this.#hasBlank = false;
        this.#lineEnds += 1;
        return;
      }
      // A CR alone is an octet like others.
      this.#put(CR);
    }
    if (octet === CR) this.#hasCr = true;
    else if (octet === SPACE || octet === TAB) this.#hasBlank = true;
    else this.#put(octet);
  }

  /** An octet that counts, and with it all that waited for one. */
  #put(octet: number): void {
    if (this.#lineEnds > 0) this.#putLineEnds(this.#lineEnds);
    if (this.#hasBlank) this.#add(SPACE);
    this.#hasBlank = false;
    this.#add(octet);
  }

  #putLineEnds(count: number): void {
    this.#lineEnds -= count;
    if (count <= FEW_LINE_ENDS) {
      for (let i = 0; i < count; i++) {
        this.#add(CR);
        this.#add(LF);
      }
      return;
    }
    this.#flush();
    this.#isEmpty = false;
    for (let octets = 2 * count; octets > 0; octets -= LINE_ENDS.length) {
      this.#take(LINE_ENDS.subarray(0, Math.min(octets, LINE_ENDS.length)));
    }
  }

  #add(octet: number): void {
    if (this.#filled === this.#scratch.length) this.#flush();
    this.#scratch[this.#filled++] = octet;
  }

  #addAll(piece: Uint8Array, from: number, to: number): void {
    for (let at = from; at < to;) {
      if (this.#filled === this.#scratch.length) this.#flush();
      const scratch = this.#scratch;
      let filled = this.#filled;
      const end = Math.min(to, at + scratch.length - filled);
      if (end - at >= COPIED_AT_ONCE_MIN) {
        scratch.set(piece.subarray(at, end), filled);
        filled += end - at;
        at = end;
      } else {
        while (at < end) scratch[filled++] = piece[at++] as number;
      }
      this.#filled = filled;
    }
  }

  #flush(): void {
    if (this.#filled === 0) return;
    this.#isEmpty = false;
    this.#take(this.#scratch.subarray(0, this.#filled));
    this.#filled = 0;
  }
}

/**
 * The loop that sees nearly every octet of a body: text, single spaces within it, and line ends in front of
 * it stay as they are. Returns where something else begins, or may.
 */
function passPlain(piece: Uint8Array, from: number, to: number): number {
  let at = from;
  while (at < to) {
    const octet = piece[at] as number;
    if (octet > SPACE) {
      at += 1;
    } else if (octet === SPACE && at + 1 < to && (piece[at + 1] as number) > SPACE) {
      at += 2;
    } else if (octet === CR && at + 2 < to && piece[at + 1] === LF && (piece[at + 2] as number) > SPACE) {
      at += 3;
    } else {
      break;
    }
  }
  return at;
}
