/**
 * The body of the register's file: JSON that a person can read, one entry a line.
 * In front of it stands one line with the format's version, the body's bytes and their CRC-32,
 * which file/register-file.ts writes and checks.
 *
 *     twinpost-register VERSION BYTES CRC32
 *     {"machine":"…","folder":"…","revision":7,"sessions":[["17",5000]],"entries":[
 *     {"key":"incarnations/gw-1","value":"{\"version\":1,…}","revision":3,"session":""},
 *     …
 *     ]}
 */
import { z } from 'zod';
import { BrokenRule, listOf, readJson } from '../../base/json-shape.js';
import { ENTRIES_MAX, SESSION_TTL_MS_MAX } from '../limits.js';
import { RegisterMap } from './register-map.js';
import { entry, revision, session } from './shapes.js';

export const FILE_MAGIC = 'twinpost-register';
export const FILE_VERSION = 1;

const SESSIONS_MAX = 65_536;

const body = z.object({
  machine: z.string(),
  folder: z.string(),
  revision,
  sessions: listOf(z.tuple([session, z.int().min(1).max(SESSION_TTL_MS_MAX)]), SESSIONS_MAX),
  entries: listOf(entry, ENTRIES_MAX),
});

/** Where a file was made; '' for what the machine does not tell. */
export interface Origin {
  readonly machine: string;
  /** Inode of the folder: a copy of it has another. */
  readonly folder: string;
}

export interface FileContent {
  readonly origin: Origin;
  readonly map: RegisterMap;
}

export function encodeFileBody({ origin, map }: FileContent): string {
  const { machine, folder } = origin;
  const head = JSON.stringify({ machine, folder, revision: map.revision, sessions: [...map.sessions] });
  const entries = map.list([{ prefix: '' }]).map((each) =>
    JSON.stringify({ key: each.key, value: each.value, revision: each.revision, session: each.session })
  );
  return `${head.slice(0, -1)},"entries":[\n${entries.join(',\n')}\n]}\n`;
}

export function decodeFileBody(text: string): FileContent | BrokenRule {
  const read = readJson(body, text);
  if (read instanceof BrokenRule) return read;
  const { machine, folder, sessions, entries } = read;
  const ids = new Set(sessions.map(([id]) => id));
  for (const each of entries) {
    if (each.revision > read.revision) return new BrokenRule('entry is newer than the file');
    if (each.session !== '' && !ids.has(each.session)) return new BrokenRule('entry of no session');
  }
  const map = new RegisterMap(read.revision, entries, sessions);
  return map.list([{ prefix: '' }]).length === entries.length
    ? { origin: { machine, folder }, map }
    : new BrokenRule('a key stands twice');
}
