/**
 * What came of TLS and is not reported yet, in a file of state_dir: the next process goes on with it.
 *
 *   tls-counts           a line (local/sealed-lines.ts) a day and domain: {"day": days since 1970,
 *                        "counts": DomainCounts (tls-counts.ts)}. Written whole, aside, then renamed
 *   tls-counts.damaged   the last one of which a line could not be read; the other lines of it count
 *
 * Written every few minutes when something was counted, and at a clean stop. A crash loses what was counted
 * since, and has told anew what was reported since.
 */
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { errorText } from '../../../base/error-text.js';
import { BrokenRule, listOf, readJson } from '../../../base/json-shape.js';
import type { EventLog } from '../../../platform/ports.js';
import { eachLine, sealedLine, unsealed } from '../../local/sealed-lines.js';
import { writeStateFile } from '../../local/state-file.js';
import { RESULT_TYPES } from '../pure/tls-results.js';
import { DETAILS_MAX, POLICIES_MAX, POLICY_TYPES } from './tls-counts.js';
import type { DomainCounts } from './tls-counts.js';

export type CountsOfDay = readonly [day: number, counts: DomainCounts];

const FILE = 'tls-counts';
/** Twice what is counted of all domains at most (tls-counts.ts), with its names of fields. */
const FILE_BYTES_MAX = 64 * 1024 * 1024;
/** A domain with all that is kept of one has half of it. */
const LINE_CHARACTERS_MAX = 1024 * 1024;
const PIECE_CHARACTERS = 64 * 1024;

/** Of one gateway in a day, many times over; sums of them stay whole numbers. */
const sessions = z.int().min(0).max(1e12);
const word = z.string().max(1024);
const words = listOf(z.string().max(8192), 128);
const failure = z.strictObject({
  type: z.enum(RESULT_TYPES), mxHost: word, address: word, source: word, reason: word, count: sessions,
});
const policy = z.strictObject({
  type: z.enum(POLICY_TYPES), domain: word, text: z.strictObject({ strings: words, mxHosts: words }),
  successes: sessions, failures: sessions, details: z.array(failure).max(DETAILS_MAX),
});
const line = z.strictObject({
  day: z.int(),
  counts: z.strictObject({ domain: word, policies: z.array(policy).max(POLICIES_MAX) }),
});

export class CountsFile {
  readonly #stateDir: string;
  readonly #log: EventLog;

  constructor(stateDir: string, log: EventLog) {
    this.#stateDir = stateDir;
    this.#log = log;
  }

  /** `take` hears of each. */
  async read(take: (day: number, counts: DomainCounts) => void): Promise<void> {
    const file = join(this.#stateDir, FILE);
    let damaged = 0;
    const onLine = (text: string): void => {
      const rest = unsealed(text);
      const read = rest === undefined ? undefined : readJson(line, rest);
      if (read === undefined || read instanceof BrokenRule) damaged++;
      else take(read.day, read.counts);
    };
    const bounds = { lineCharactersMax: LINE_CHARACTERS_MAX, fileBytesMax: FILE_BYTES_MAX };
    try {
      if (await eachLine(file, bounds, onLine)) damaged++;
      if (damaged === 0) return;
      await rename(file, `${file}.damaged`);
      this.#tell('is damaged in places, and was put aside', file, `${String(damaged)} lines`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
      this.#tell('can not be read', file, errorText(error));
    }
  }

  async write(all: Iterable<CountsOfDay>): Promise<void> {
    try {
      await writeStateFile(this.#stateDir, FILE, pieces(all));
    } catch (error) {
      const file = join(this.#stateDir, FILE);
      this.#tell('can not be written; they are known until this process ends', file, errorText(error));
    }
  }

  #tell(what: string, file: string, why: string): void {
    this.#log.warn('tlsrpt', `the file of sessions with TLS that were counted ${what}`, { file, why });
  }
}

/** A turn of the loop each. */
function * pieces(all: Iterable<CountsOfDay>): Generator<string> {
  let piece = '';
  for (const [day, counts] of all) {
    piece += sealedLine(asAscii(JSON.stringify({ day, counts })));
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
