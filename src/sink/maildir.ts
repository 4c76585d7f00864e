/**
 * Keeps mail as a Maildir: written whole under tmp/, then renamed into new/, so that a reader never sees
 * half a message. Files hold the content byte for byte as received, CRLF line ends included; the envelope
 * is in the arrival log (sink/arrivals.ts). Synchronous on purpose: the 250 follows the rename.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { makeFolder } from '../platform/node/make-folder.js';

export class Maildir {
  readonly #folder: string;
  readonly #host: string;
  #count = 0;

  constructor(folder: string) {
    this.#folder = folder;
    // "/" and ":" have a meaning in Maildir names.
    this.#host = hostname().replaceAll('/', '\\057').replaceAll(':', '\\072');
    for (const part of ['tmp', 'new', 'cur']) makeFolder(join(folder, part));
  }

  keep(content: Buffer): void {
    const name = `${Math.floor(Date.now() / 1000)}.P${process.pid}Q${++this.#count}.${this.#host}`;
    const temporary = join(this.#folder, 'tmp', name);
    writeFileSync(temporary, content);
    renameSync(temporary, join(this.#folder, 'new', name));
  }
}
