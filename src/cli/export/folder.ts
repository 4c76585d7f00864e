/**
 * The folder that an export fills: for each message NAME.eml and NAME.json, sorted by name in queue order.
 *
 *   DIR/OWNER/QUEUE-CLASS-N/POSITION-QUEUEID.eml, .json   N: of the partition; none when a gateway was asked
 *
 * The .json is written last: one that is there has its .eml. Names of queues and gateways may hold any
 * visible character; names of files here hold letters, digits, dot, dash and percent only.
 */
import { createHash } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makeFolder } from '../../platform/node/make-folder.js';
import { CliError } from '../context.js';
import type { ExportSource, ExportedMessage } from './exported-message.js';

/** File systems take 255 bytes a name; the rest of it needs some. */
const NAME_CHARACTERS_MAX = 120;
const POSITION_DIGITS = 16;

export class ExportFolder {
  readonly #folder: string;
  readonly #isWanted: (source: ExportSource, message: ExportedMessage) => boolean;
  readonly #made = new Set<string>();
  messages = 0;
  bytes = 0;
  unreadable = 0;

  constructor(
    folder: string, force: boolean, isWanted: (source: ExportSource, message: ExportedMessage) => boolean,
  ) {
    this.#isWanted = isWanted;
    this.#folder = path.resolve(folder);
    try {
      makeFolder(this.#folder);
      if (!force && readdirSync(this.#folder).length > 0) {
        throw new CliError(`${folder} is not empty; name another folder, or --force`);
      }
    } catch (error) {
      if (error instanceof CliError) throw error;
      throw new CliError(
        `${folder} can't be made, or is no folder: ${(error as NodeJS.ErrnoException).code ?? String(error)}`,
      );
    }
  }

  /** Queues of which something was added. */
  get queues(): number {
    return this.#made.size;
  }

  /** Mail is private: for its owner's eyes only. */
  add(source: ExportSource, message: ExportedMessage, content: Uint8Array): void {
    if (!this.#isWanted(source, message)) return;
    const { owner, number } = source;
    const { queue_name: queue, queue_class: queueClass, queue_id: id } = message;
    const parts = [safeName(queue), safeName(queueClass), ...(number === undefined ? [] : [String(number)])];
    const folder = path.join(this.#folder, safeName(owner), parts.join('-'));
    const base = path.join(folder, `${String(message.position).padStart(POSITION_DIGITS, '0')}-${id}`);
    try {
      if (!this.#made.has(folder)) makeFolder(folder, 0o700);
      this.#made.add(folder);
      writeFileSync(`${base}.eml`, content, { mode: 0o600 });
      writeFileSync(`${base}.json`, `${JSON.stringify(message, undefined, 1)}\n`, { mode: 0o600 });
    } catch (error) {
      throw new CliError(`${base}: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
    }
    this.messages += 1;
    this.bytes += content.length;
    if (message.unreadable !== undefined) this.unreadable += 1;
  }
}

/** Any name as part of a file name; different names stay different. */
export function safeName(name: string): string {
  const safe = [...Buffer.from(name, 'utf8')].map(safeCharacter).join('').replace(/^\./, '%2e');
  if (safe.length <= NAME_CHARACTERS_MAX) return safe;
  const digest = createHash('sha256').update(name).digest('hex');
  return `${safe.slice(0, NAME_CHARACTERS_MAX)}%${digest.slice(0, 16)}`;
}

function safeCharacter(byte: number): string {
  return isPlain(byte) ? String.fromCharCode(byte) : `%${byte.toString(16).padStart(2, '0')}`;
}

/** Letters, digits, dot, dash. */
function isPlain(byte: number): boolean {
  return (byte >= 0x61 && byte <= 0x7a) || (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x30 && byte <= 0x39)
    || byte === 0x2d || byte === 0x2e;
}
