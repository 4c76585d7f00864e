/**
 * The library's parser with its DATA half replaced. smtp-server 3.21.6 splits command lines well, but gives the
 * content through a stream made for each message, hands bare CR, bare LF and NUL on, and spends a turn of the
 * event loop and two objects on every dot-stuffed line. Here the bytes go to ContentScan as they come from the
 * socket.
 *
 *   socket ─pipe─▶ _write ── command mode: library ──▶ oncommand
 *                     └───── data mode ──▶ _feedDataStream (ours) ──▶ scan ──▶ sink.onContent / onContentEnd
 *
 * After the end of DATA the write stays unanswered until resumeCommands(): the pipe then holds the client back,
 * and what it pipelined behind the message waits in order.
 *
 * Relies on these names inside the library, pinned by exact version and by test/dialog: _createParser (used by
 * connection.ts), _write, _feedDataStream, _dataMode, _flushData.
 */

import { SMTPStream } from 'smtp-server/lib/smtp-stream.js';
import type { ContentScan } from './content-scan.js';

type WriteDone = (error?: Error | null) => void;

export interface ContentSink {
  readonly scan: ContentScan;
  /** bytes[from .. to) is content; the sink owns it. */
  onContent(bytes: Uint8Array, from: number, to: number): void;
  onContentEnd(): void;
  /** Replies made while one chunk is worked on may be gathered into one write. */
  beginChunk(): void;
  endChunk(): void;
}

const NOTHING = Buffer.alloc(0);

export class ContentStream extends SMTPStream {
  readonly #sink: ContentSink;
  /** What stood behind the end of DATA, and the write to answer; undefined while none waits. */
  #rest: Buffer = NOTHING;
  #waiting: WriteDone | undefined;
  #inFeed = false;
  #depth = 0;

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

  override _write(chunk: Buffer, encoding: BufferEncoding | 'buffer', next: WriteDone): void {
    if (this.#depth++ === 0) this.#sink.beginChunk();
    try {
      super._write(chunk, encoding, next);
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
    this._remainder = '';
    this.#rest = chunk.subarray(next);
    this.#waiting = done;
    this.#inFeed = true;
    this.#sink.onContentEnd();
    this.#inFeed = false;
  }

  /** A command without its line end is no command: a cut connection must not look like one. */
  override _flushData(): void {
    this._remainder = '';
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
