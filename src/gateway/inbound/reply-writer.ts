/**
 * Gathers the replies to pipelined commands: those made while one chunk is worked on leave in one write, all
 * others at once (RFC 2920 3.2 lets a server do so; one system call instead of one a command).
 */

export class ReplyWriter {
  #gathering = false;
  #gathered = '';

  /** What `text` is to be written to; called by whoever may write, see InboundConnection. */
  readonly #write: (text: string) => void;

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  /** One whole reply line without its end. */
  line(text: string): void {
    if (this.#gathering) this.#gathered += text + '\r\n';
    else this.#write(text + '\r\n');
  }

  begin(): void {
    this.#gathering = true;
  }

  end(): void {
    this.#gathering = false;
    this.flush();
  }

  flush(): void {
    if (this.#gathered === '') return;
    const text = this.#gathered;
    this.#gathered = '';
    this.#write(text);
  }
}
