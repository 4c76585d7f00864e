/**
 * What came of TLS and nobody was told yet, in a file of state_dir: the next process goes on with it.
 *
 *   tls-counts           a line (local/sealed-lines.ts) for each: UntoldCounts (tls-counts.ts) as JSON
 *   tls-counts.damaged   the last one that could not be read, all or a line of it; its other lines count
 *
 * Written at a clean stop, whole, aside, then renamed; gone once it is read. So no line counts twice, and a
 * crash loses what its process has counted, or got from the file, and not told.
 */
import { rename, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { errorText } from '../../../base/error-text.js';
import { BrokenRule, listOf, readJson } from '../../../base/json-shape.js';
import type { EventLog } from '../../../platform/ports.js';
import { eachLine, sealedLine, unsealed } from '../../local/sealed-lines.js';
import { writeStateFile } from '../../local/state-file.js';
import { RESULT_TYPES, URI_CHARACTERS_MAX } from '../pure/tls-results.js';
import {
  DETAIL_CHARACTERS_MAX, FAILURE_WEIGHT, NAME_CHARACTERS_MAX, POLICIES_MAX, POLICY_TYPES, STRING_WEIGHT,
} from './tls-counts.js';
import type { UntoldCounts } from './tls-counts.js';

const FILE = 'tls-counts';
/** Twice what is counted of all domains in a day at most (tls-counts.ts), with its names of fields. */
const FILE_BYTES_MAX = 256 * 1024 * 1024;
/** A domain with all that is kept of one has half of it, though each character is escaped. */
const LINE_CHARACTERS_MAX = 256 * 1024;
const PIECE_CHARACTERS = 64 * 1024;
/** Of ordinary domains the disk takes 10,000 in a fifth of it. A stop waits no longer for it. */
const WRITE_MS = 5_000;

/** Of one gateway in a day, many times over; sums of them stay whole numbers. */
const sessions = z.int().min(0).max(1e12);
const name = z.string().max(NAME_CHARACTERS_MAX);
const word = z.string().max(DETAIL_CHARACTERS_MAX);
const words = listOf(word, DETAIL_CHARACTERS_MAX / STRING_WEIGHT);
const failure = z.strictObject({
  type: z.enum(RESULT_TYPES), mxHost: word, address: word, source: word, reason: word, count: sessions,
});
const policy = z.strictObject({
  type: z.enum(POLICY_TYPES), domain: name, text: z.strictObject({ strings: words, mxHosts: words }),
  successes: sessions, failures: sessions,
  details: z.array(failure).max(Math.floor(DETAIL_CHARACTERS_MAX / FAILURE_WEIGHT)),
});
const line = z.strictObject({
  day: z.int(), to: z.string().max(URI_CHARACTERS_MAX),
  counts: z.strictObject({ domain: name, policies: z.array(policy).max(POLICIES_MAX) }),
});

export class CountsFile {
  readonly #folder: string;
  readonly #file: string;
  readonly #log: EventLog;
  #reading: Promise<void> = Promise.resolve();

  constructor(stateDir: string, log: EventLog) {
    this.#folder = stateDir;
    this.#file = join(stateDir, FILE);
    this.#log = log;
  }

  /** `take` hears of each. */
  read(take: (untold: UntoldCounts) => void): Promise<void> {
    this.#reading = this.#read(take);
    return this.#reading;
  }

  async #read(take: (untold: UntoldCounts) => void): Promise<void> {
    let damaged = 0;
    const onLine = (text: string): void => {
      const rest = unsealed(text);
      const read = rest === undefined ? undefined : readJson(line, rest);
      if (read === undefined || read instanceof BrokenRule) damaged++;
      else take(read);
    };
    const bounds = { lineCharactersMax: LINE_CHARACTERS_MAX, fileBytesMax: FILE_BYTES_MAX };
    try {
      if (await eachLine(this.#file, bounds, onLine)) damaged++;
      if (damaged > 0) await this.#putAside(`${String(damaged)} lines are damaged`);
      else await unlink(this.#file);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') await this.#putAside(errorText(error));
    }
  }

  /**
   * What there is by the time that reading has ended. Resolves when the disk has it, or does not take it in
   * time: then the next process does without.
   */
  async write(untold: () => readonly UntoldCounts[]): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      const why = `the disk has not taken it within ${String(WRITE_MS)} ms`;
      timer = setTimeout(() => { reject(new Error(why)); }, WRITE_MS);
    });
    try {
      await Promise.race([this.#reading.then(() => this.#writeAll(untold())), late]);
    } catch (error) {
      this.#tell('can not be written: they are lost', errorText(error));
    } finally {
      clearTimeout(timer);
    }
  }

  async #writeAll(all: readonly UntoldCounts[]): Promise<void> {
    if (all.length > 0) await writeStateFile(this.#folder, FILE, pieces(all));
  }

  /** What could not be read is not to be written over. */
  async #putAside(why: string): Promise<void> {
    this.#tell('can not be read whole, and is put aside; lines that can be read count', why);
    await rename(this.#file, `${this.#file}.damaged`).catch((error: unknown) => {
      this.#tell('can not be put aside', errorText(error));
    });
  }

  #tell(what: string, why: string): void {
    const text = `the file of sessions with TLS that were counted ${what}`;
    this.#log.warn('tlsrpt', text, { file: this.#file, why });
  }
}

/** A turn of the loop each. */
function * pieces(all: readonly UntoldCounts[]): Generator<string> {
  let piece = '';
  for (const untold of all) {
    piece += sealedLine(asAscii(JSON.stringify(untold)));
    if (piece.length < PIECE_CHARACTERS) continue;
    yield piece;
    piece = '';
  }
  yield piece;
}

function asAscii(json: string): string {
  return json.replace(/[^ -~]/g, (character) =>
    `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
