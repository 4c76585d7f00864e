/** Files that an operator replaces while a process runs: what they hold, and whether they have changed. */
import { readFileSync, statSync } from 'node:fs';
import { errorText } from '../../base/error-text.js';

/** Throws an Error that names the file. */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(`'${file}' can't be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
}

/** Changes when one of the files is replaced, has other rights or another owner, or is gone. */
export function stampOf(...files: readonly (string | undefined)[]): string {
  return files.map((file) => (file === undefined ? 'none' : stampOfOne(file))).join();
}

function stampOfOne(file: string): string {
  try {
    const { mtimeMs, ctimeMs, ino, size } = statSync(file);
    return `${String(mtimeMs)} ${String(ctimeMs)} ${String(ino)} ${String(size)}`;
  } catch {
    // Who reads it says why.
    return 'none';
  }
}

/** What one or more files say, read again when they change. A bad one never replaces a good one. */
export class FollowedFile<T> {
  readonly #files: readonly (string | undefined)[];
  readonly #read: () => T;
  #stamp: string;
  #current: T;
  #why = '';

  /** Throws as `read` does, whose Errors name the file. */
  constructor(files: readonly (string | undefined)[], read: () => T) {
    this.#files = files;
    this.#read = read;
    this.#stamp = stampOf(...files);
    this.#current = read();
  }

  get current(): T {
    return this.#current;
  }

  /** Why what is on disk can't be used, and what was read before stays; '' while it is in force. */
  get why(): string {
    return this.#why;
  }

  /** What is on disk is in force. */
  get isCurrent(): boolean {
    return this.#why === '' && stampOf(...this.#files) === this.#stamp;
  }

  /** Whether the files have changed since the last look; then they are read. */
  look(): boolean {
    const stamp = stampOf(...this.#files);
    if (stamp === this.#stamp) return false;
    this.#stamp = stamp;
    try {
      this.#current = this.#read();
      this.#why = '';
    } catch (error) {
      this.#why = errorText(error);
    }
    return true;
  }
}
