/**
 * Who may ask an admin port, by a file of tokens. A line each:
 *
 *   NAME ROLE[,ROLE] TOKEN                 read; content or operate, which include read
 *   NAME ROLE[,ROLE] sha256:HEX            the same with the hash of the token: it is not in the file
 *
 * Empty lines and lines that begin with "#" are passed over. The name of a token is who an order and a look
 * at content are by. Two tokens of one name are how one is changed without a gap.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Role } from '../../admin-api/route.js';
import { readSecretFile } from './secret-file.js';

export interface TokenOwner {
  readonly name: string;
  readonly roles: ReadonlySet<Role>;
}

interface KnownToken extends TokenOwner {
  readonly digest: Buffer;
}

export type Tokens = readonly KnownToken[];

/** A thousand lines. */
const FILE_BYTES_MAX = 256 * 1024;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$/;
/** What nobody guesses: 16 characters at least. Of the characters that a header takes (RFC 6750 2.1). */
const TOKEN = /^[A-Za-z0-9._~+/=-]{16,512}$/;
const HASH = /^sha256:([0-9a-f]{64})$/;
const ROLES: ReadonlyMap<string, readonly Role[]> = new Map([
  ['read', ['read']], ['content', ['read', 'content']], ['operate', ['read', 'operate']],
] as const);

/** Throws an Error that names the file and the line. */
export function readTokens(file: string): Tokens {
  const tokens = linesOf(file, 'tokens').map(({ line, at }) => {
    const [name = '', roles = '', token = '', ...more] = line.split(/\s+/);
    const digest = digestOf(token);
    const granted = roles.split(',').map((role) => ROLES.get(role) ?? []);
    const isWhole = NAME.test(name) && digest !== undefined && more.length === 0;
    if (!isWhole || granted.some((each) => each.length === 0)) {
      throw new Error(
        `line ${String(at)} of '${file}' is no NAME ROLE TOKEN: roles are read, content, operate, joined by `
        + 'commas; a token has 16 characters or more, or is sha256: and 64 hex digits',
      );
    }
    return { name, roles: new Set(granted.flat()), digest };
  });
  if (tokens.length === 0) throw new Error(`'${file}' has no token`);
  return tokens;
}

/** For who asks: the token in a file that has one alone, or a line as above. Throws an Error. */
export function readOwnToken(file: string): string {
  const [first, ...more] = linesOf(file, 'a token');
  const token = first?.line.split(/\s+/).at(-1) ?? '';
  if (more.length > 0 || !TOKEN.test(token)) {
    throw new Error(`'${file}' has not one token, of 16 characters or more, in one line`);
  }
  return token;
}

/** Whose it is. Takes as long for any token: it is compared with all of them, by digests of one length. */
export function ownerOf(tokens: Tokens, presented: string): TokenOwner | undefined {
  const digest = sha256(presented);
  let owner: TokenOwner | undefined;
  for (const known of tokens) if (timingSafeEqual(known.digest, digest)) owner = known;
  return owner;
}

function linesOf(file: string, what: string): readonly { readonly line: string; readonly at: number }[] {
  return readSecretFile(file, what, FILE_BYTES_MAX).split('\n')
    .map((line, index) => ({ line: line.trim(), at: index + 1 }))
    .filter(({ line }) => line !== '' && !line.startsWith('#'));
}

function digestOf(token: string): Buffer | undefined {
  const hex = HASH.exec(token)?.[1];
  if (hex !== undefined) return Buffer.from(hex, 'hex');
  return TOKEN.test(token) ? sha256(token) : undefined;
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
