/**
 * The users of submission, as their file says them: one a line, "#" begins a comment.
 *
 *   NAME:VERIFIER[:ADDRESS,ADDRESS…]
 *   verifier   {SCRYPT}logN,r,p,SALT,HASH              for PLAIN and LOGIN
 *              {SCRAM-SHA-256}iterations,SALT,STOREDKEY,SERVERKEY   for all mechanisms (RFC 5802, RFC 7677)
 *   address    what the user may send from: an address, "@example.com" for its whole domain, "*" for any;
 *              without any: NAME itself; 1,000 at most
 *
 * Salts and keys are base64. `twinpost user` makes such lines. A file may have 100,000 of them, and is read
 * in steps. Pure: who reads the file is users-file.ts.
 */
import { base64Bytes } from '../../../base/base64.js';
import { foldCase } from '../../../base/fold-case.js';
import { prepared } from './saslprep.js';
import { copyOfText } from '../../../base/text-copy.js';
import type { ToAscii } from '../../../platform/ports.js';
import { normalizeDomain } from '../../../smtp/address.js';
import { tableKey } from '../recipients/listing.js';

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
  /** As senderKeyOf() makes them. */
  readonly addresses: readonly string[];
}

const NAME_CHARACTERS_MAX = 255;
const KEY_BYTES = 32;
/** Some 1 KB each; more of them are asked for by HTTP (users-by-http.ts). */
const USERS_MAX = 100_000;
/** Of a user, here and by HTTP: senders, and addresses of a From that is signed, are compared with all. */
export const ADDRESSES_MAX = 1000;
/** Some 1 ms; a line without any counts as one. */
const ADDRESSES_A_STEP = 250;
/** scrypt with N = 2^17 and r = 8 takes 128 MiB. */
const LOG_COST = [10, 17] as const;
const BLOCK_SIZE = [1, 16] as const;
const PARALLELIZATION = [1, 4] as const;
/** RFC 7677 4: at least 4,096. */
const ITERATIONS = [4096, 1_000_000] as const;
const SALT_BYTES = [8, 64] as const;

export class Users {
  readonly #byName = new Map<string, User>();
  /** Verifiers by what they cost. */
  readonly #ofKind = new Map<string, number>();
  #mostOfKind = 0;
  #withoutScram = 0;
  #usual: ScryptVerifier | ScramVerifier | undefined;

  /** While they are read. False: there is one of the name. */
  add(user: User): boolean {
    const { name, verifier } = user;
    if (this.#byName.has(name)) return false;
    this.#byName.set(name, user);
    if (verifier.kind !== 'scram') this.#withoutScram++;
    const kind = kindOf(verifier);
    const ofKind = (this.#ofKind.get(kind) ?? 0) + 1;
    this.#ofKind.set(kind, ofKind);
    if (ofKind <= this.#mostOfKind) return true;
    this.#mostOfKind = ofKind;
    this.#usual = verifier;
    return true;
  }

  /** Users without a verifier for SCRAM: it is offered only while there are none. */
  get withoutScram(): number {
    return this.#withoutScram;
  }

  /** With what most users have in common: an unknown name looks and costs like theirs. */
  get usual(): ScryptVerifier | ScramVerifier | undefined {
    return this.#usual;
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

  /** Of addresses that users may send from; `*` is of none. */
  get domains(): ReadonlySet<string> {
    const domains = new Set<string>();
    for (const { addresses } of this.#byName.values()) {
      for (const each of addresses) if (each !== '*') domains.add(each.slice(each.lastIndexOf('@') + 1));
    }
    return domains;
  }

  find(name: string): User | undefined {
    return this.#byName.get(name);
  }
}

function kindOf(verifier: ScryptVerifier | ScramVerifier): string {
  const { kind, salt } = verifier;
  const cost = kind === 'scram' ? String(verifier.iterations)
    : `${verifier.logCost},${verifier.blockSize},${verifier.parallelization}`;
  return `${kind} ${cost} ${salt.length}`;
}

/** Throws an Error that names the line. */
export function parseUsers(text: string, toAscii: ToAscii): Users {
  const steps = usersIn(text, toAscii);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/**
 * Between two steps others may have their turn. Who is in the file as he was `before` is the same object:
 * what is known of him still holds (verifiers.ts). Throws an Error that names the line.
 */
export function* usersIn(text: string, toAscii: ToAscii, before?: Users): Generator<undefined, Users> {
  const users = new Users();
  let number = 0;
  let addresses = 0;
  // Behind a byte order mark, as editors of Windows write it.
  for (let at = text.startsWith('\ufeff') ? 1 : 0; at < text.length;) {
    const end = text.indexOf('\n', at);
    const next = end < 0 ? text.length : end + 1;
    const line = text.slice(at, end < 0 ? next : end).replace(/\r$/, '');
    const user = userOf(line, ++number, toAscii);
    if (user !== undefined) addUser(users, user, number, before);
    at = next;
    addresses += Math.max(1, user?.addresses.length ?? 0);
    if (addresses < ADDRESSES_A_STEP) continue;
    addresses = 0;
    yield undefined;
  }
  // A copy that is not whole yet, more often than a service without users.
  if (users.count === 0) throw new Error('it has no users');
  return users;
}

function userOf(line: string, number: number, toAscii: ToAscii): User | undefined {
  if (line.trim() === '' || line.startsWith('#')) return undefined;
  const user = parseUser(line, toAscii);
  if (typeof user === 'string') throw new Error(`line ${number}: ${user}`);
  return user;
}

function addUser(users: Users, user: User, number: number, before: Users | undefined): void {
  const known = before?.find(user.name);
  const isKnown = known !== undefined && isSame(known, user);
  if (!users.add(isKnown ? known : user)) throw new Error(`line ${number}: '${user.name}' is there twice`);
  if (users.count > USERS_MAX) {
    throw new Error(`it has more than ${USERS_MAX} users: let a directory be asked by HTTP instead`);
  }
}

function isSame(one: User, other: User): boolean {
  return one.addresses.join() === other.addresses.join() && kindOf(one.verifier) === kindOf(other.verifier)
    && keysOf(one.verifier).every((key, at) => isEqual(key, keysOf(other.verifier)[at]));
}

function keysOf(verifier: ScryptVerifier | ScramVerifier): readonly Uint8Array[] {
  return verifier.kind === 'scram' ? [verifier.salt, verifier.storedKey, verifier.serverKey]
    : [verifier.salt, verifier.hash];
}

function isEqual(one: Uint8Array, other: Uint8Array | undefined): boolean {
  return one.length === other?.length && one.every((byte, at) => byte === other[at]);
}

function parseUser(line: string, toAscii: ToAscii): User | string {
  const [name = '', verifierText = '', addressesText, ...more] = line.split(':');
  if (more.length > 0) return 'expected NAME:VERIFIER or NAME:VERIFIER:ADDRESS,ADDRESS';
  const isName = name !== '' && name.length <= NAME_CHARACTERS_MAX && !/[\s\0-\x1f\x7f]/.test(name);
  if (!isName) return 'expected a name without spaces';
  const verifier = parseVerifier(verifierText.trim());
  if (verifier === undefined) {
    return `expected {SCRYPT}… or {SCRAM-SHA-256}… for '${name}'; 'twinpost user ${name}' makes such a line`;
  }
  const listed = (addressesText ?? '').split(',').map((address) => address.trim())
    .filter((address) => address !== '');
  const addresses = addressesText === undefined ? [name] : listed;
  if (addresses.length > ADDRESSES_MAX) {
    return `expected at most ${ADDRESSES_MAX} addresses of '${name}', found ${addresses.length}`;
  }
  const odd = addresses.find((address) => address !== '*' && !address.includes('@'));
  if (odd === undefined) {
    const keys = addresses.map((address) => copyOfText(senderKeyOf(address, toAscii)));
    return { name: copyOfText(prepared(name)), verifier, addresses: keys };
  }
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

/** Whether a user of these may send from the address of this key; '' (a report of his own program) always. */
export function maySendFrom(addresses: readonly string[], senderKey: string): boolean {
  if (senderKey === '') return true;
  const domain = senderKey.slice(senderKey.lastIndexOf('@'));
  return addresses.some((each) => each === '*' || each === senderKey || each === domain);
}

/**
 * As in a table of recipients; in lower case what has no domain. What users may send from is kept so, for to
 * make A-labels costs some µs each time.
 */
export function senderKeyOf(address: string, toAscii: ToAscii): string {
  const at = address.lastIndexOf('@');
  const domain = at < 0 ? '' : normalizeDomain(address.slice(at + 1), toAscii);
  return domain === '' ? foldCase(address) : tableKey(address, domain);
}
