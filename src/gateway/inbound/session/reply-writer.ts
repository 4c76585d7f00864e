/**
 * Gathers the replies to pipelined commands: those made while one chunk is worked on leave in one write, all
 * others at once (RFC 2920 3.2 lets a server do so; one system call instead of one a command). Gathering
 * nests.
 */
import type { ServerConnection } from '../../../platform/transport.js';

export class ReplyWriter {
  readonly #connection: ServerConnection;
  #depth = 0;
  #gathered = '';

  constructor(connection: ServerConnection) {
    this.#connection = connection;
  }

  /** One whole reply without its last line end. */
  line(text: string): void {
    if (this.#depth > 0) this.#gathered += text + '\r\n';
    else this.#connection.writeText(text + '\r\n');
  }

  begin(): void {
    this.#depth++;
  }

  end(): void {
    this.#depth--;
    if (this.#depth === 0) this.flush();
  }

  flush(): void {
    if (this.#gathered === '') return;
    const text = this.#gathered;
    this.#gathered = '';
    this.#connection.writeText(text);
  }
}
