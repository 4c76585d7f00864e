/**
 * Whole exchanges of AUTH: PLAIN, LOGIN and SCRAM-SHA-256 by a client that knows the password and says all of it right, or
 * all but one thing, which is picked by the input. Passwords are hashed for cheap (the port of hashing): an input would
 * take milliseconds otherwise. What must hold:
 *
 *   said right                    235, and SCRAM's server has proven itself
 *   spoiled in any one place      never 235, and nobody is logged in
 *   whoever is logged in          sends from his own addresses only
 *
 * Noise as the other targets have it follows, and then all that they check.
 */
import assert from 'node:assert/strict';

import { Prng } from '../../src/base/prng.js';
import { Authenticator } from '../../src/gateway/inbound/auth/authenticator.js';
import { maySendFrom, parseUsers, senderKeyOf } from '../../src/gateway/inbound/auth/users.js';
import { Verifiers } from '../../src/gateway/inbound/auth/verifiers.js';
import type { DeriveKey } from '../../src/gateway/inbound/auth/verifiers.js';
import { State } from '../../src/gateway/inbound/session/session-states.js';
import { toAscii } from '../../src/platform/node/idna.js';
import { SystemSecrets } from '../../src/platform/node/secrets.js';
import type { VirtualClient } from '../attacks/virtual-desk.js';
import { FAKE_KEY } from '../dialog/people.js';
import { Field, piecesOf, tally } from './field.js';
import { smtpInput } from './inputs.js';

interface Person {
  readonly name: string;
  readonly password: string;
  readonly addresses: string;
}

const PEOPLE: readonly Person[] = [
  { name: 'anna@b.example', password: 'b', addresses: 'a@b.example' },
  { name: 'odd,=name', password: 'p\u00e4 ss', addresses: '@odd.example,odd@b.example' },
];
const ADDRESSES = ['a@b.example', 'odd@b.example', 'x@odd.example', 'x@sub.odd.example', 'anna@b.example', ''];

/** Chance of the input, so that an input follows from its number alone. */
class SeededSecrets extends SystemSecrets {
  random = new Prng(1);
  override randomBytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.random.below(256));
  }
}

const secrets = new SeededSecrets();
const utf8 = (text: string): Buffer => Buffer.from(text, 'utf8');
const base64 = (bytes: Uint8Array | string): string => Buffer.from(bytes).toString('base64');
const textOf = (word: string): string => Buffer.from(word, 'base64').toString();

/** Stands for scrypt, and for the salted password of RFC 5802 3. */
function salted(password: string, salt: Uint8Array): Uint8Array {
  return secrets.hmacSha256(salt, utf8(password));
}

function storedKeyOf(key: Uint8Array): Uint8Array {
  return secrets.sha256(secrets.hmacSha256(key, utf8('Client Key')));
}

const deriveKey: DeriveKey = (password, { kind, salt }) => {
  const key = salted(password, salt);
  return Promise.resolve(kind === 'scrypt' ? key : storedKeyOf(key));
};

function lineOf({ name, password, addresses }: Person, kind: 'SCRYPT' | 'SCRAM-SHA-256'): string {
  const salt = secrets.sha256(utf8(name)).slice(0, 16);
  const key = salted(password, salt);
  const fields = kind === 'SCRYPT' ? [10, 8, 1, base64(salt), base64(key)]
    : [4096, base64(salt), base64(storedKeyOf(key)), base64(secrets.hmacSha256(key, utf8('Server Key')))];
  return `${name}:{${kind}}${fields.join()}:${addresses}`;
}

/** Where a client says something else than it should; '' nowhere. */
const SPOILS = ['', '', '', 'password', 'user', 'authzid', 'base64', 'cancel', 'noise', 'binding', 'nonce', 'proof', 'extension', 'salt', 'replay', 'ending'] as const;
type Spoil = (typeof SPOILS)[number];
const OF_SCRAM: readonly Spoil[] = ['binding', 'nonce', 'proof', 'extension', 'salt', 'replay', 'ending'];

class AuthField extends Field {
  readonly #users;
  readonly #mechanisms: readonly string[];
  #said = '';
  #lastFinal = '';

  constructor(kinds: readonly ('SCRYPT' | 'SCRAM-SHA-256')[]) {
    const users = parseUsers(PEOPLE.map((person, index) => lineOf(person, kinds[index] ?? 'SCRYPT')).join('\n'), toAscii);
    const clock = { nowMs: (): number => this.world.nowMs, wallMs: (): number => 0 };
    const authenticator = new Authenticator(new Verifiers(users, { secrets, deriveKey }), FAKE_KEY, { secrets, clock });
    super({ isSubmission: true, offersTls: true, isTlsFirst: true, authenticator });
    this.#users = users;
    this.#mechanisms = authenticator.mechanisms;
  }

  async input(random: Prng): Promise<void> {
    secrets.random = random;
    // What inputs before it were remembered for is forgotten: a good password, a wrong one.
    this.world.nowMs += 1_200_000;
    const client = this.world.connect('198.51.100.7').secured();
    this.#said = '';
    await this.#say(client, 'EHLO client.example', random);
    for (let round = 1 + random.below(4); round > 0 && !client.connection.isOver && client.session.user === ''; round--) {
      await this.#round(client, random);
    }
    await this.#submits(client, random);
    for (const piece of piecesOf(smtpInput(random), random)) {
      client.send(piece);
      await this.#verdict(client);
      if (random.below(50) === 0) client.leave();
    }
    this.#judgeSenders(client);
    this.end(client, this.#said);
  }

  async #round(client: VirtualClient, random: Prng): Promise<void> {
    const mechanism = random.pick(this.#mechanisms);
    const person = random.pick(PEOPLE);
    let spoil: Spoil = random.pick(SPOILS);
    if (mechanism !== 'SCRAM-SHA-256' && OF_SCRAM.includes(spoil)) spoil = 'password';
    if (mechanism === 'LOGIN' && spoil === 'authzid') spoil = 'user';
    const from = this.#said.length;
    if (mechanism === 'PLAIN') await this.#plain(client, person, spoil, random);
    else if (mechanism === 'LOGIN') await this.#login(client, person, spoil, random);
    else await this.#scram(client, person, spoil, random);
    const said = this.#said.slice(from);
    const context = `${mechanism} of ${person.name}, spoiled: ${spoil}: ${JSON.stringify(said)}`;
    assert.equal(/^235 /m.test(said), spoil === '', context);
    assert.equal(client.session.user, spoil === '' ? person.name : '', context);
    tally(spoil === '' ? `${mechanism} logins` : 'wrong logins');
    if (!client.connection.isOver) await this.#say(client, random.pick(['NOOP', 'RSET', 'EHLO again', 'VRFY x']), random);
  }

  async #plain(client: VirtualClient, person: Person, spoil: Spoil, random: Prng): Promise<void> {
    const user = spoil === 'user' ? anotherUser(person, random) : person.name;
    const authzid = spoil === 'authzid' ? random.pick(['root', `${person.name} `, PEOPLE.find((one) => one !== person)?.name ?? '']) : random.pick(['', user]);
    const response = base64(`${authzid}\0${user}\0${spoil === 'password' ? anotherPassword(person, random) : person.password}`);
    await this.#responses(client, 'PLAIN', [() => response], spoil, random);
  }

  async #login(client: VirtualClient, person: Person, spoil: Spoil, random: Prng): Promise<void> {
    const user = spoil === 'user' ? anotherUser(person, random) : person.name;
    const password = spoil === 'password' ? anotherPassword(person, random) : person.password;
    await this.#responses(client, 'LOGIN', [() => base64(user), () => base64(password)], spoil, random);
  }

  async #scram(client: VirtualClient, person: Person, spoil: Spoil, random: Prng): Promise<void> {
    const user = escaped(spoil === 'user' ? anotherUser(person, random) : person.name);
    const authzid = spoil === 'authzid' ? 'a=root' : random.pick(['', `a=${user}`]);
    const header = `${random.pick(['n', 'y'])},${authzid},`;
    const bare = `n=${user},r=nonce${String(random.below(1000))}${random.pick(['', ',x=1'])}`;
    let signature = '';
    const final = (challenge: string): string => {
      const serverFirst = textOf(challenge);
      const [, nonce = '', salt = ''] = /^r=([^,]+),s=([^,]+),i=\d+$/.exec(serverFirst) ?? [];
      const key = salted(spoil === 'password' ? anotherPassword(person, random) : person.password, Buffer.from(spoil === 'salt' ? base64('salt') : salt, 'base64'));
      const told = spoil === 'nonce' ? random.pick([nonce.slice(1), `${nonce}x`, nonce.slice(0, 8), `x${nonce.slice(1)}`]) : nonce;
      const binding = spoil === 'binding' ? random.pick(['p=tls-unique,,', 'n,,x', 'n', header.startsWith('n') ? 'y,,' : 'n,,']) : header;
      const withoutProof = `c=${base64(binding)},r=${told}${random.pick(['', ',y=2'])}`;
      const signed = utf8(`${bare},${serverFirst},${withoutProof}`);
      const mask = secrets.hmacSha256(storedKeyOf(key), signed);
      const proof = secrets.hmacSha256(key, utf8('Client Key')).map((byte, index) => byte ^ (mask[index] ?? 0));
      if (spoil === 'proof') flipBits(proof, random);
      signature = base64(secrets.hmacSha256(secrets.hmacSha256(key, utf8('Server Key')), signed));
      const text = base64(`${withoutProof}${spoil === 'extension' ? ',z=3' : ''},p=${base64(proof)}`);
      return spoil === 'replay' && this.#lastFinal !== '' ? this.#lastFinal : spoil === 'replay' ? base64('c=biws,r=x,p=AA==') : text;
    };
    const ending = (challenge: string): string => {
      if (spoil === '') assert.equal(textOf(challenge), `v=${signature}`, 'the server knows the password');
      return spoil === 'ending' ? base64('x') : '';
    };
    let sent = '';
    await this.#responses(client, 'SCRAM-SHA-256', [() => base64(header + bare), (challenge) => (sent = final(challenge)), ending], spoil, random);
    if (spoil === '') this.#lastFinal = sent;
  }

  /** The lines of an exchange, each made of the challenge before it, as long as the server asks. */
  async #responses(client: VirtualClient, mechanism: string, responses: readonly ((challenge: string) => string)[], spoil: Spoil, random: Prng): Promise<void> {
    const spoiledAt = random.below(responses.length);
    const isInitial = random.below(2) === 0;
    const cases = random.below(4) === 0 ? mechanism.toLowerCase() : mechanism;
    let reply = isInitial ? '334 ' : await this.#say(client, `AUTH ${cases}`, random);
    for (const [index, response] of responses.entries()) {
      if (!reply.startsWith('334 ')) return;
      let line = response(reply.slice(4));
      if (index === spoiledAt && ['base64', 'cancel', 'noise'].includes(spoil)) line = spoiledLine(line, spoil, random);
      const isFirst = isInitial && index === 0;
      reply = await this.#say(client, isFirst ? `AUTH ${cases} ${line === '' ? '=' : line}` : line, random);
    }
  }

  /** Says a line in pieces and, once a password is checked, what that came to; the last line of the reply. */
  async #say(client: VirtualClient, line: string, random: Prng): Promise<string> {
    const from = this.#said.length;
    for (const piece of piecesOf(utf8(`${line}\r\n`), random)) client.send(piece);
    await this.#verdict(client);
    return this.#said.slice(from).split('\r\n').at(-2) ?? '';
  }

  async #verdict(client: VirtualClient): Promise<void> {
    for (let step = 0; step < 20 && client.session.state === State.CHECKING; step++) await Promise.resolve();
    assert.notEqual(client.session.state, State.CHECKING, 'a verdict comes');
    this.world.turn();
    this.#said += client.heard();
  }

  async #submits(client: VirtualClient, random: Prng): Promise<void> {
    if (client.connection.isOver || random.below(2) === 0) return;
    const sender = random.pick(ADDRESSES);
    const account = this.#users.find(client.session.user);
    const reply = await this.#say(client, `MAIL FROM:<${sender}>`, random);
    const isAllowed = account !== undefined && maySendFrom(account.addresses, senderKeyOf(sender, toAscii));
    assert.equal(reply.slice(0, 3), account === undefined ? '530' : isAllowed ? '250' : '550', `${client.session.user} sends from ${sender}`);
    if (isAllowed) for (const line of ['RCPT TO:<b@example.net>', 'DATA', 'x: y\r\n\r\nz\r\n.']) await this.#say(client, line, random);
  }

  #judgeSenders(client: VirtualClient): void {
    for (const { submission } of this.world.reception.kept) {
      const account = this.#users.find(client.session.user);
      assert.ok(account !== undefined && maySendFrom(account.addresses, senderKeyOf(submission.reversePath, toAscii)), `${client.session.user} sent from ${submission.reversePath}`);
    }
  }
}

function anotherUser({ name }: Person, random: Prng): string {
  return random.pick(['nobody', `${name}x`, name.slice(1), name.toUpperCase(), ...PEOPLE.filter((one) => one.name !== name).map((one) => one.name)]);
}

function anotherPassword({ password }: Person, random: Prng): string {
  return random.pick([`${password}x`, password.slice(1), password.toUpperCase(), `${password} `, 'guess', ...PEOPLE.filter((one) => one.password !== password).map((one) => one.password)]);
}

function flipBits(bytes: Uint8Array, random: Prng): void {
  const at = random.below(bytes.length);
  bytes[at] = (bytes[at] ?? 0) ^ (1 + random.below(255));
}

/** A saslname (RFC 5802 5.1). */
function escaped(name: string): string {
  return name.replaceAll('=', '=3D').replaceAll(',', '=2C');
}

function spoiledLine(line: string, spoil: Spoil, random: Prng): string {
  if (spoil === 'cancel') return '*';
  if (spoil === 'noise') return random.pick(['!', 'NOOP', 'MAIL FROM:<a@b.example>', 'A'.repeat(1 + random.below(13_000)), '====', '\u00fc', 'AAA=', base64('\0\0\0')]);
  const at = random.below(Math.max(1, line.length));
  const letter = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=*'.charAt(random.below(66));
  const spoiled = random.below(2) === 0 ? line.slice(0, at) + line.slice(at + 1) : line.slice(0, at) + letter + line.slice(at + 1);
  return spoiled === line ? `${line}=` : spoiled;
}

const scram = new AuthField(['SCRAM-SHA-256', 'SCRAM-SHA-256']);
const mixed = new AuthField(['SCRAM-SHA-256', 'SCRYPT']);

export function authTarget(seed: number): Promise<void> {
  const random = new Prng(seed);
  return (random.below(4) === 0 ? mixed : scram).input(random);
}
