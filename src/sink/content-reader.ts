/**
 * Finds the end of a message's content in a stream of chunks (RFC 5321 4.1.1.4: CRLF.CRLF and nothing else)
 * and takes away the dots that the sender doubled (4.5.2). A content that lies in one chunk and has no such
 * dot is handed out as a view of that chunk; else it is gathered in a buffer of its own, which is bounded.
 */

const LINE_DOT = Buffer.from('\r\n.', 'latin1');
const FIRST_BYTES = 16 * 1024;
/** A buffer larger than this is given back after each message. */
const KEEP_BYTES = 1024 * 1024;
const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;
const DOT = 0x2e;
/** The most of CR LF . CR LF that may stand at the end of one chunk, undecided. */
const TAIL_BYTES = 4;

export class ContentReader {
  done = false;
  readonly #bytesMax: number;
  #gathered: Buffer = Buffer.alloc(0);
  #length = 0;
  /** Where the search goes on when more bytes have come; set by #find. */
  #resume = 0;
  #tooLarge = false;
  #stuffed = false;
  #view: Buffer | undefined;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  start(): void {
    this.done = false;
    this.#tooLarge = false;
    this.#stuffed = false;
    this.#view = undefined;
    this.#length = 0;
  }

  /** Takes data from `at`; returns the offset behind what it took. Sets `done` behind the final dot. */
  read(data: Buffer, at: number): number {
    if (this.#length === 0) {
      // The CRLF of the DATA line counts as the one before the dot of an empty content.
      const end = this.#find(data, at, true);
      if (end >= 0) return this.#finish(data.subarray(at, end), end + 3);
      this.#append(data, at);
      this.#resume -= at;
    } else {
      const before = this.#length;
      this.#append(data, at);
      const gathered = this.#gathered.subarray(0, this.#length);
      const end = this.#find(gathered, this.#resume, this.#resume === 0 && !this.#tooLarge);
      if (end >= 0) return this.#finish(this.#gathered.subarray(0, end), at + (end + 3 - before));
    }
    if (this.#length > this.#bytesMax + TAIL_BYTES) this.#forget();
    return data.length;
  }

  /** The content with its last CRLF; undefined when it was too large. */
  content(): Buffer | undefined {
    if (this.#tooLarge || this.#view === undefined) return undefined;
    return this.#stuffed ? unstuffed(this.#view) : this.#view;
  }

  release(): void {
    this.#view = undefined;
    this.#length = 0;
    if (this.#gathered.length > KEEP_BYTES) this.#gathered = Buffer.alloc(0);
  }

  #finish(view: Buffer, behind: number): number {
    this.#view = view;
    this.#tooLarge ||= view.length > this.#bytesMax;
    this.done = true;
    return behind;
  }

  /** The offset of the final dot in data from `from` on, -1 if it is not there yet. */
  #find(data: Buffer, from: number, lineStart: boolean): number {
    this.#resume = from;
    if (lineStart && data[from] === DOT) {
      if (from + 3 > data.length) return -1;
      if (data[from + 1] === CARRIAGE_RETURN && data[from + 2] === LINE_FEED) return from;
      this.#stuffed = true;
    }
    for (let at = data.indexOf(LINE_DOT, from); at >= 0; at = data.indexOf(LINE_DOT, at + 3)) {
      this.#resume = at;
      if (at + TAIL_BYTES + 1 > data.length) return -1;
      if (data[at + 3] === CARRIAGE_RETURN && data[at + 4] === LINE_FEED) return at + 2;
      this.#stuffed = true;
    }
    // CR LF at the end may be the beginning of what is looked for.
    this.#resume = Math.max(this.#resume, data.length - 2);
    return -1;
  }

  #append(data: Buffer, at: number): void {
    const bytes = data.length - at;
    if (this.#gathered.length < this.#length + bytes) {
      const larger = Buffer.allocUnsafeSlow(Math.max(FIRST_BYTES, 2 * (this.#length + bytes)));
      this.#gathered.copy(larger, 0, 0, this.#length);
      this.#gathered = larger;
    }
    data.copy(this.#gathered, this.#length, at);
    this.#length += bytes;
  }

  /** Too large: only the last bytes are kept, to find the end. */
  #forget(): void {
    this.#tooLarge = true;
    this.#gathered.copyWithin(0, this.#length - TAIL_BYTES, this.#length);
    this.#length = TAIL_BYTES;
    this.#resume = 0;
  }
}

function unstuffed(content: Buffer): Buffer {
  const result = Buffer.allocUnsafe(content.length);
  let from = content[0] === DOT ? 1 : 0;
  let to = 0;
  for (;;) {
    const at = content.indexOf(LINE_DOT, from);
    const end = at < 0 ? content.length : at + 2;
    content.copy(result, to, from, end);
    to += end - from;
    if (at < 0) return result.subarray(0, to);
    from = at + 3;
  }
}
