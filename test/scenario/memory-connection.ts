/**
 * A ServerConnection without sockets: what the session writes is kept as text, and what it asks of the connection as a
 * list of calls. Closing is told in a turn of its own, as platform/transport.ts promises.
 */
import type { ServerConnection, ServerHandlers, TlsFacts } from '../../src/platform/transport.js';

export class MemoryConnection implements ServerConnection {
  readonly remote = '127.0.0.1:1025';
  readonly remoteAddress: string;
  readonly remotePort = 1025;
  bufferedBytes = 0;
  isFull = false;
  /** What the session has written. */
  text = '';
  /** pause, resume, secure, end, finish, destroy, in order. */
  readonly calls: string[] = [];
  isPaused = false;
  isOver = false;
  onText: (() => void) | undefined;
  readonly #later: (run: () => void) => void;
  #handlers: ServerHandlers | undefined;

  constructor(remoteAddress = '127.0.0.1', later: (run: () => void) => void = setImmediate) {
    this.remoteAddress = remoteAddress;
    this.#later = later;
  }

  attach(handlers: ServerHandlers): void {
    this.#handlers = handlers;
  }

  write(chunks: readonly Uint8Array[]): void {
    for (const chunk of chunks) this.writeText(Buffer.from(chunk).toString('latin1'));
  }

  writeText(text: string): void {
    if (this.isOver) return;
    this.text += text;
    this.onText?.();
  }

  pause(): void {
    this.isPaused = true;
    this.calls.push('pause');
  }

  resume(): void {
    this.isPaused = false;
    this.calls.push('resume');
  }

  secure(): void {
    this.calls.push('secure');
  }

  /** The handshake is through. */
  secured(facts: Partial<TlsFacts> = {}): void {
    this.#handlers?.onSecure({ version: 'TLSv1.3', cipher: '', peerNames: [], ...facts });
  }

  end(): void {
    this.#over('end');
  }

  finish(): void {
    this.#over('finish');
  }

  destroy(): void {
    this.#over('destroy');
  }

  /** The client has read all that was written. */
  drained(): void {
    this.isFull = false;
    this.#handlers?.onDrain();
  }

  #over(how: string): void {
    if (this.isOver) return;
    this.isOver = true;
    this.calls.push(how);
    this.#later(() => {
      this.#handlers?.onClose(how);
      this.onText?.();
    });
  }
}
