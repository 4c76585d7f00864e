/**
 * The users of submission, as their file says them: one a line, "#" begins a comment.
 *
 *   NAME:VERIFIER[:ADDRESS,ADDRESS…]
 *   verifier   {SCRYPT}logN,r,p,SALT,HASH              for PLAIN and LOGIN
 *              {SCRAM-SHA-256}iterations,SALT,STOREDKEY,SERVERKEY   for all mechanisms (RFC 5802, RFC 7677)
 *   address    what the user may send from: an address, "@example.com" for its whole domain, "*" for any;
 *              without any: NAME itself
 *
 * Salts and keys are base64. `twinpost user` makes such lines. Pure: who reads the file is users-file.ts.
 */
import type { Account } from './directory.js';
import { base64Bytes } from '../../../base/base64.js';

export interface ScryptVerifier {
  readonly kind: 'scrypt';
  readonly logCost: number;
  readonly blockSize: number;
  readonly parallelization: number;
  readonly salt: Uint8Array;
  readonly hash: Uint8Array;
}

export interface ScramVerifier {
  readonly kind: 'scram';
  readonly iterations: number;
  readonly salt: Uint8Array;
  readonly storedKey: Uint8Array;
  readonly serverKey: Uint8Array;
}

export interface User {
  readonly name: string;
  readonly verifier: ScryptVerifier | ScramVerifier;
  /** Lower case. */
  readonly addresses: readonly string[];
}

const NAME_CHARACTERS_MAX = 255;
const KEY_BYTES = 32;
/** scrypt with N = 2^17 and r = 8 takes 128 MiB. */
const LOG_COST = [10, 17] as const;
const BLOCK_SIZE = [1, 16] as const;
const PARALLELIZATION = [1, 4] as const;
/** RFC 7677 4: at least 4,096. */
const ITERATIONS = [4096, 1_000_000] as const;
const SALT_BYTES = [8, 64] as const;

export class Users {
  readonly #byName: ReadonlyMap<string, User>;
  /** Users without a verifier for SCRAM: it is offered only while there are none. */
  readonly withoutScram: number;
  /** With what most users have in common: an unknown name looks and costs like theirs. */
  readonly usual: ScryptVerifier | ScramVerifier | undefined;

  constructor(users: readonly User[]) {
    this.#byName = new Map(users.map((user) => [user.name, user]));
    this.withoutScram = users.filter(({ verifier }) => verifier.kind !== 'scram').length;
    this.usual = usualOf(users.map(({ verifier }) => verifier));
  }

  get count(): number {
    return this.#byName.size;
  }

  get haveScram(): boolean {
    return this.withoutScram === 0;
  }

  /** '' unless some have one and others keep the mechanism from all. */
  get whyNoScram(): string {
    const { withoutScram, count } = this;
    if (withoutScram === 0 || withoutScram === count) return '';
    return `${String(withoutScram)} of ${String(count)} users have no verifier for SCRAM-SHA-256, so nobody `
      + 'is offered it: twinpost user NAME --scram makes one';
  }

  find(name: string): User | undefined {
    return this.#byName.get(name);
  }
}

function usualOf(
  verifiers: readonly (ScryptVerifier | ScramVerifier)[],
): ScryptVerifier | ScramVerifier | undefined {
  const counts = new Map<string, number>();
  let usual: ScryptVerifier | ScramVerifier | undefined;
  let most = 0;
  for (const verifier of verifiers) {
    const cost = verifier.kind === 'scram' ? [verifier.iterations]
      : [verifier.logCost, verifier.blockSize, verifier.parallelization];
    const key = `${verifier.kind} ${cost.join()} ${String(verifier.salt.length)}`;
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    if (count <= most) continue;
    most = count;
    usual = verifier;
  }
  return usual;
}

/** Throws an Error that names the line. */
export function parseUsers(text: string): Users {
  const users: User[] = [];
  const names = new Set<string>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const user = parseUser(line);
    if (typeof user === 'string') throw new Error(`line ${index + 1}: ${user}`);
    if (names.has(user.name)) throw new Error(`line ${index + 1}: '${user.name}' is there twice`);
    names.add(user.name);
    users.push(user);
  }
  // A copy that is not whole yet, more often than a service without users.
  if (users.length === 0) throw new Error('it has no users');
  return new Users(users);
}

function parseUser(line: string): User | string {
  const [name = '', verifierText = '', addressesText, ...more] = line.split(':');
  if (more.length > 0) return 'expected NAME:VERIFIER or NAME:VERIFIER:ADDRESS,ADDRESS';
  const isName = name !== '' && name.length <= NAME_CHARACTERS_MAX && !/[\s\0-\x1f\x7f]/.test(name);
  if (!isName) return 'expected a name without spaces';
  const verifier = parseVerifier(verifierText.trim());
  if (verifier === undefined) {
    return `expected {SCRYPT}… or {SCRAM-SHA-256}… for '${name}'; 'twinpost user ${name}' makes such a line`;
  }
  const listed = (addressesText ?? '').toLowerCase().split(',').map((address) => address.trim())
    .filter((address) => address !== '');
  const addresses = addressesText === undefined ? [name.toLowerCase()] : listed;
  const odd = addresses.find((address) => address !== '*' && !address.includes('@'));
  if (odd === undefined) return { name: name.normalize('NFKC'), verifier, addresses };
  return addressesText === undefined
    ? `expected addresses that '${name}' may send from, as its name is none: NAME:VERIFIER:ADDRESS`
    : `expected an address, @DOMAIN or *, found '${odd}'`;
}

function parseVerifier(text: string): ScryptVerifier | ScramVerifier | undefined {
  const match = /^\{(SCRYPT|SCRAM-SHA-256)\}([^{}]*)$/.exec(text);
  const fields = (match?.[2] ?? '').split(',');
  return match?.[1] === 'SCRYPT' ? scryptOf(fields) : match?.[1] === undefined ? undefined : scramOf(fields);
}

function scryptOf(fields: readonly string[]): ScryptVerifier | undefined {
  const [logCost, blockSize, parallelization] = [Number(fields[0]), Number(fields[1]), Number(fields[2])];
  const [salt, hash] = [base64Bytes(fields[3] ?? ''), base64Bytes(fields[4] ?? '')];
  if (fields.length !== 5 || salt === undefined || hash?.length !== KEY_BYTES) return undefined;
  const isSound = within(logCost, LOG_COST) && within(blockSize, BLOCK_SIZE)
    && within(parallelization, PARALLELIZATION) && within(salt.length, SALT_BYTES);
  return isSound ? { kind: 'scrypt', logCost, blockSize, parallelization, salt, hash } : undefined;
}

function scramOf(fields: readonly string[]): ScramVerifier | undefined {
  const iterations = Number(fields[0]);
  const [salt, storedKey, serverKey] = [1, 2, 3].map((index) => base64Bytes(fields[index] ?? ''));
  if (fields.length !== 4 || salt === undefined || storedKey?.length !== KEY_BYTES) return undefined;
  if (serverKey?.length !== KEY_BYTES) return undefined;
  const isSound = within(iterations, ITERATIONS) && within(salt.length, SALT_BYTES);
  return isSound ? { kind: 'scram', iterations, salt, storedKey, serverKey } : undefined;
}

function within(value: number, [least, most]: readonly [number, number]): boolean {
  return Number.isInteger(value) && value >= least && value <= most;
}

/** Whether the user may send from this reverse-path; '' (a report of the user's own program) always. */
export function maySendFrom(user: Account, reversePath: string): boolean {
  if (reversePath === '') return true;
  const address = reversePath.toLowerCase();
  const domain = address.slice(address.lastIndexOf('@'));
  return user.addresses.some((each) => each === '*' || each === address || each === domain);
}
