/**
 * The library's parser with both halves replaced. smtp-server 3.21.6 gives the content through a stream made for
 * each message, hands bare CR, bare LF and NUL on, spends a turn of the event loop and two objects on every
 * dot-stuffed line, and makes a string of each chunk and a buffer of each line to find the commands. Here the bytes
 * go to ContentScan, and lines to the session, as they come from the socket.
 *
 *   own read buffer ─▶ received ─┐
 *   TLS session ─────pipe────────┴▶ _write ── command mode ──▶ split at LF ──▶ oncommand(line)
 *                                     └───── data mode ────▶ _feedDataStream ──▶ scan ──▶ sink.onContent / onContentEnd
 *
 * After a command that takes its time (STARTTLS, a client that does not read) and after the end of DATA, until
 * resumeCommands(), the write stays unanswered, and what the client pipelined waits in order: the rest of the read,
 * copied out of the read buffer, and one read more at most, for the socket is then paused (or the pipe holds it back).
 * So does the end of what it sends: onInputEnd() comes when all that was received is answered. What waits counts as
 * memory in use; without room for it the client gets what it waits for, and then 421.
 *
 * Relies on these names inside the library, pinned by exact version and by test/dialog: _createParser (used by
 * connection.ts), _write, _feedDataStream, _dataMode, _flushData, isClosed (a parser that is retired at STARTTLS
 * drains what it holds unread), _maxCommandLength.
 */

import { SMTPStream } from 'smtp-server/lib/smtp-stream.js';
import type { Reception } from '../queue/types.js';
import type { ContentScan } from './content-scan.js';

type WriteDone = (error?: Error | null) => void;

/** Where bytes come from, as far as it can be told to wait. */
export interface ByteSource {
  pause(): unknown;
  resume(): unknown;
}

export interface ContentSink {
  readonly scan: ContentScan;
  /** Where what is kept of a read is counted. */
  readonly memory: Pick<Reception, 'reserve' | 'release'>;
  /** bytes[from .. to) is content, valid during the call and, when scan.ended, during the call of onContentEnd behind it. */
  onContent(bytes: Uint8Array, from: number, to: number): void;
  onContentEnd(): void;
  /** Replies made while one chunk is worked on may be gathered into one write. */
  beginChunk(): void;
  endChunk(): void;
  /** The client has ended its sending side, and what it sent is worked off. */
  onInputEnd(): void;
  /** What the client pipelined was dropped for want of memory; all before it is answered. */
  onOverfull(): void;
}

const NOTHING = Buffer.alloc(0);
const LF = 0x0a;
const CR = 0x0d;
/** Commands of one chunk obeyed in one turn, so that a chunk full of them holds nobody up. */
const COMMANDS_PER_TURN_MAX = 100;

export class ContentStream extends SMTPStream {
  readonly #sink: ContentSink;
  /** What stood behind the end of DATA, and the write to answer; undefined while none waits. */
  #rest: Buffer = NOTHING;
  #waiting: WriteDone | undefined;
  #inFeed = false;
  #depth = 0;
  /** A command line without its end, from earlier chunks. */
  #partial: Buffer = NOTHING;
  /** The chunk that is split into commands, how far, and the write to answer. */
  #commands: Buffer = NOTHING;
  #at = 0;
  #commandsDone: WriteDone | undefined;
  #isSplitting = false;
  /** Commands that were answered before oncommand() returned. */
  #obeyedAtOnce = 0;
  readonly #onObeyed = (): void => {
    if (this.#isSplitting) this.#obeyedAtOnce++;
    else this.#split();
  };
  /** What was received last is not used up. */
  #isBusy = false;
  /** Received since then, and who was paused for it. */
  #held: Buffer[] = [];
  #paused: ByteSource | undefined;
  /** Reserved for copies of what was received, until none is left. */
  #keptBytes = 0;
  /** There was no room for a copy. */
  #isOverfull = false;
  #isInputOver = false;
  readonly #onUsedUp = (error?: Error | null): void => { this.#usedUp(error); };

  constructor(sink: ContentSink, maxCommandLength: number) {
    super({ maxCommandLength });
    this.#sink = sink;
  }

  /** The next bytes are content. */
  startContent(): void {
    this.#sink.scan.reset();
    this._dataMode = true;
  }

  /** The message is answered: goes on with the commands behind it. */
  resumeCommands(): void {
    if (this.#waiting === undefined) return;
    if (this.#inFeed) {
      // Answered within the feed. A client may pipeline thousands of refused messages in one chunk: going on
      // from here would nest a stack frame for each.
      setImmediate(() => this.#goOn());
      return;
    }
    this.#goOn();
  }

  /** All that came is worked on. */
  get isIdle(): boolean { return !this.#isBusy && this.#waiting === undefined && this.#commandsDone === undefined; }

  /** Nothing that was received stands behind the command that is obeyed now. */
  get isReadOff(): boolean { return this.#at >= this.#commands.length && this.#held.length === 0; }

  /** Takes bytes of a read buffer, which are valid during the call only; `source` waits while they can't be worked on. */
  received(bytes: Buffer, source: ByteSource): void {
    if (this.isClosed || (this.#isOverfull && !this.#isBusy)) return;
    if (this.#isBusy) {
      if (this.#keeps(bytes.length)) this.#held.push(Buffer.from(bytes));
      this.#paused = source;
      source.pause();
      return;
    }
    this.#isBusy = true;
    this._write(bytes, 'buffer', this.#onUsedUp);
    this.#leaveReadBuffer();
  }

  /** Its connection is gone, and what it has kept. */
  letGo(): void {
    this.#held = [];
    this.#rest = NOTHING;
    this.#commands = NOTHING;
    this.#at = 0;
    this.#release();
  }

  /** Nothing more is received; bytes that come by a pipe have its end() for that. */
  inputOver(): void {
    this.#isInputOver = true;
    if (!this.#isBusy) this.end();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding | 'buffer', next: WriteDone): void {
    if (this.#depth++ === 0) this.#sink.beginChunk();
    try {
      if (this.isClosed) next();
      else if (this._dataMode) this._feedDataStream(chunk, next);
      else this.#splitChunk(chunk, next);
    } finally {
      if (--this.#depth === 0) this.#sink.endChunk();
    }
  }

  override _feedDataStream(chunk: Buffer, done: WriteDone): void {
    const scan = this.#sink.scan;
    const next = scan.scan(chunk, 0);
    this.#sink.onContent(chunk, 0, scan.contentEnd);
    if (!scan.ended) {
      done();
      return;
    }
    this._dataMode = false;
    this.#rest = chunk.subarray(next);
    this.#waiting = done;
    this.#inFeed = true;
    this.#sink.onContentEnd();
    this.#inFeed = false;
  }

  /** Called after end(), when every write is answered. A command without its line end is no command: a cut connection must not look like one. */
  override _flushData(): void {
    this.#partial = NOTHING;
    if (!this.isClosed) this.#sink.onInputEnd();
  }

  /** The next read comes to where what waits still lies, if anything does. */
  #leaveReadBuffer(): void {
    const bytes = this.#rest.length + this.#commands.length - this.#at;
    if (bytes === 0) return;
    if (!this.#keeps(bytes)) {
      this.#rest = NOTHING;
      this.#commands = NOTHING;
    }
    if (this.#rest.length > 0) this.#rest = Buffer.from(this.#rest);
    if (this.#commands.length > 0) this.#commands = Buffer.from(this.#commands.subarray(this.#at));
    this.#at = 0;
  }

  /** Whether there is room for a copy. What comes behind one that was dropped is dropped, too. */
  #keeps(bytes: number): boolean {
    if (!this.#isOverfull && this.#sink.memory.reserve(bytes)) this.#keptBytes += bytes;
    else this.#isOverfull = true;
    return !this.#isOverfull;
  }

  #release(): void {
    if (this.#keptBytes > 0) this.#sink.memory.release(this.#keptBytes);
    this.#keptBytes = 0;
  }

  #usedUp(error: Error | null | undefined): void {
    this.#isBusy = false;
    if (this.#held.length === 0) this.#release();
    // Retired at STARTTLS or closed: what came in clear is not obeyed, and the socket is another's to pause.
    if (this.isClosed) this.letGo();
    else if (error instanceof Error) this.destroy(error);
    else this.#goOnReading();
  }

  #goOnReading(): void {
    const next = this.#held.shift();
    if (next !== undefined) {
      this.#isBusy = true;
      this._write(next, 'buffer', this.#onUsedUp);
      return;
    }
    if (this.#isOverfull) return this.#sink.onOverfull();
    const source = this.#paused;
    this.#paused = undefined;
    source?.resume();
    if (this.#isInputOver) this.end();
  }

  #splitChunk(chunk: Buffer, done: WriteDone): void {
    this.#commands = this.#partial.length === 0 ? chunk : Buffer.concat([this.#partial, chunk]);
    this.#partial = NOTHING;
    this.#at = 0;
    this.#commandsDone = done;
    this.#split();
  }

  /** Obeys command after command until the chunk ends, DATA begins, or one takes its time. */
  #split(): void {
    this.#isSplitting = true;
    try {
      for (let obeyed = 0; obeyed < COMMANDS_PER_TURN_MAX; obeyed++) {
        if (this.isClosed) return this.#answer();
        if (this._dataMode) {
          const rest = this.#commands.subarray(this.#at);
          const done = this.#takeDone();
          return rest.length === 0 ? done() : this._feedDataStream(rest, done);
        }
        const line = this.#nextLine();
        if (line === undefined) return this.#answer();
        if (line.length > this._maxCommandLength) return this.#answer(new Error('Command line too long'));
        const before = this.#obeyedAtOnce;
        this.oncommand(line, this.#onObeyed);
        if (this.#obeyedAtOnce === before) return;
      }
      setImmediate(this.#onObeyed);
    } finally {
      this.#isSplitting = false;
    }
  }

  /** Without its line end; undefined when the chunk has no whole line more. */
  #nextLine(): Buffer | undefined {
    const chunk = this.#commands;
    const from = this.#at;
    const end = chunk.indexOf(LF, from);
    if (end >= 0) {
      this.#at = end + 1;
      return chunk.subarray(from, end > from && chunk[end - 1] === CR ? end - 1 : end);
    }
    if (chunk.length - from > this._maxCommandLength) {
      this.#at = chunk.length;
      return chunk.subarray(from);
    }
    // Copied: a view would keep the whole chunk.
    if (from < chunk.length) this.#partial = Buffer.from(chunk.subarray(from));
    return undefined;
  }

  #answer(error?: Error): void {
    this.#takeDone()(error);
  }

  #takeDone(): WriteDone {
    const done = this.#commandsDone ?? nothing;
    this.#commandsDone = undefined;
    this.#commands = NOTHING;
    this.#at = 0;
    return done;
  }

  #goOn(): void {
    const done = this.#waiting;
    if (done === undefined) return;
    const rest = this.#rest;
    this.#waiting = undefined;
    this.#rest = NOTHING;
    if (rest.length === 0) done();
    else this._write(rest, 'buffer', done);
  }
}

function nothing(): void {
  // Nothing waits for this answer any more.
}
