/**
 * What a client has sent and the session cannot work on yet: commands pipelined behind a message that is not
 * answered, or behind more commands than one turn obeys. Copies, because the read buffer is used again;
 * counted as memory in use. Without room for one it is dropped with all that comes behind it, and the client
 * is told once what came before is answered (isOverfull).
 */
import type { Reception } from '../../mail-types.js';

export class WaitingInput {
  readonly #memory: Pick<Reception, 'reserve' | 'release'>;
  readonly #chunks: Uint8Array[] = [];
  /** How far the first chunk has been worked on. */
  #at = 0;
  isOverfull = false;

  constructor(memory: Pick<Reception, 'reserve' | 'release'>) {
    this.#memory = memory;
  }

  get isEmpty(): boolean {
    return this.#chunks.length === 0;
  }

  get first(): Uint8Array | undefined {
    return this.#chunks[0];
  }

  get at(): number {
    return this.#at;
  }

  keep(bytes: Uint8Array, from: number): void {
    if (this.isOverfull || from === bytes.length) return;
    if (this.#memory.reserve(bytes.length - from)) this.#chunks.push(new Uint8Array(bytes.subarray(from)));
    else this.isOverfull = true;
  }

  /** The first chunk has been worked on up to `at`. */
  advance(at: number): void {
    const first = this.#chunks[0];
    if (first === undefined) return;
    this.#at = at;
    if (at < first.length) return;
    this.#chunks.shift();
    this.#at = 0;
    this.#memory.release(first.length);
  }

  /** Forgets all of it. */
  clear(): void {
    for (const chunk of this.#chunks) this.#memory.release(chunk.length);
    this.#chunks.length = 0;
    this.#at = 0;
    this.isOverfull = false;
  }
}
