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
import { ENTRIES_MAX, SESSION_TTL_MS_MAX } from '../limits.js';
import { RegisterMap } from './register-map.js';
import { BrokenRule, fieldsOf, isSessionId, isWhole, parseJson, readEntry, readList } from './shapes.js';

export const FILE_MAGIC = 'twinpost-register';
export const FILE_VERSION = 1;

const SESSIONS_MAX = 65_536;

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
  const entries = map.list([{ prefix: '' }]).map(({ key, value, revision, session }) =>
    JSON.stringify({ key, value, revision, session })
  );
  return `${head.slice(0, -1)},"entries":[\n${entries.join(',\n')}\n]}\n`;
}

export function decodeFileBody(text: string): FileContent | BrokenRule {
  const { machine, folder, revision, sessions, entries } = fieldsOf(parseJson(text)) ?? {};
  if (typeof machine !== 'string' || typeof folder !== 'string') {
    return new BrokenRule('no machine or folder');
  }
  if (!isWhole(revision)) return new BrokenRule('no revision');
  const ttls = readList(sessions, SESSIONS_MAX, 'sessions', readSession);
  if (ttls instanceof BrokenRule) return ttls;
  const list = readList(entries, ENTRIES_MAX, 'entries', readEntry);
  if (list instanceof BrokenRule) return list;
  const ids = new Set(ttls.map(([id]) => id));
  for (const entry of list) {
    if (entry.revision > revision) return new BrokenRule('entry is newer than the file');
    if (entry.session !== '' && !ids.has(entry.session)) return new BrokenRule('entry of no session');
  }
  const map = new RegisterMap(revision, list, ttls);
  return map.list([{ prefix: '' }]).length === list.length
    ? { origin: { machine, folder }, map }
    : new BrokenRule('a key stands twice');
}

function readSession(value: unknown): readonly [string, number] | BrokenRule {
  if (!Array.isArray(value) || value.length !== 2) return new BrokenRule('session is no pair');
  const [id, ttlMs] = value as unknown[];
  return isSessionId(id) && isWhole(ttlMs, SESSION_TTL_MS_MAX) && ttlMs > 0
    ? [id, ttlMs]
    : new BrokenRule('session has no id or time');
}
