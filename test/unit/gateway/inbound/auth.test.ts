/**
 * AUTH on a session that stands within TLS: what each mechanism comes to, what is refused when, and that what a client
 * sends ahead waits for the check of its password.
 */
import assert from 'node:assert/strict';
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';
import { before, describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Authenticator } from '../../../../src/gateway/inbound/auth/authenticator.js';
import type { Directory } from '../../../../src/gateway/inbound/auth/directory.js';
import type { Verdict } from '../../../../src/gateway/inbound/auth/password-checks.js';
import { PlainExchange } from '../../../../src/gateway/inbound/auth/sasl.js';
import type { InboundOptions } from '../../../../src/gateway/inbound/options.js';
import type { MailTransaction } from '../../../../src/gateway/inbound/session/transaction.js';
import type { ServerSession } from '../../../../src/gateway/inbound/session/session.js';
import type { MemoryReception } from '../../../dialog/memory-reception.js';
import type { RateLimits } from '../../../../src/gateway/inbound/limits/rate-limits.js';
import { limits } from '../../../inbound/rates.js';
import { NO_METRICS, openSession, testDesk } from '../../../inbound/desk.js';
import type { RefusalRecord } from '../../../inbound/desk.js';
import { MemoryConnection } from '../../../scenario/memory-connection.js';
import { toAscii } from '../../../../src/platform/node/idna.js';
import { parseUsers } from '../../../../src/gateway/inbound/auth/users.js';
import { Verifiers } from '../../../../src/gateway/inbound/auth/verifiers.js';
import { SystemSecrets } from '../../../../src/platform/node/secrets.js';
import { authenticatorOf, scramLine, scryptLine, verifiersOf } from '../../../dialog/people.js';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const textOf = (word: string): string => Buffer.from(word, 'base64').toString();

interface Tap {
  isOn: boolean;
  said(peer: string, port: number, who: string, text: string): void;
}

class Kit {
  readonly reception: MemoryReception;
  readonly connection: MemoryConnection;
  readonly rejections: readonly string[];
  readonly refused: readonly RefusalRecord[];
  readonly auths: string[] = [];
  /** What somebody who follows is told, while it is on. */
  readonly told: string[] = [];
  readonly tap: Tap = { isOn: false, said: (_peer, _port, who, text) => { this.told.push(`${who}: ${text}`); } };
  readonly session: ServerSession;

  constructor(authenticator: Authenticator, options: Partial<InboundOptions> = {}, isSecure = true, address = '198.51.100.7', rates?: RateLimits) {
    this.connection = new MemoryConnection(address);
    const { desk, reception, rejections, refused } = testDesk({ isSubmission: true, ...options }, {
      rates, authenticator, tap: this.tap, metrics: { ...NO_METRICS, authEnded: (mechanism, result) => { this.auths.push(`${mechanism} ${result}`); } },
    });
    this.reception = reception;
    this.rejections = rejections;
    this.refused = refused;
    this.session = openSession(desk, this.connection);
    if (!isSecure) return;
    this.send('STARTTLS');
    this.connection.secured();
  }

  send(line: string): void {
    this.connection.text = '';
    this.session.onData(Buffer.from(`${line}\r\n`));
  }

  /** The last line of the next reply. */
  async say(line: string): Promise<string> {
    this.send(line);
    while (!/(^|\n)\d{3} .*\r\n$/.test(this.connection.text)) await new Promise(setImmediate);
    return this.connection.text.slice(0, -2).split('\r\n').at(-1) ?? '';
  }
}

/** RFC 5802 3, as a client. */
class ScramClient {
  readonly #password: string;
  readonly first: string;
  readonly #bare: string;
  readonly #header: string;
  #signature = '';

  constructor(user: string, password: string, header = 'n,,') {
    this.#password = password;
    this.#header = header;
    this.#bare = `n=${user.replaceAll('=', '=3D').replaceAll(',', '=2C')},r=clientnonce`;
    this.first = base64(header + this.#bare);
  }

  final(serverFirst: string): string {
    const [, nonce = '', salt = '', iterations = ''] = /^r=([^,]+),s=([^,]+),i=(\d+)$/.exec(serverFirst) ?? [];
    const salted = pbkdf2Sync(this.#password, Buffer.from(salt, 'base64'), Number(iterations), 32, 'sha256');
    const clientKey = createHmac('sha256', salted).update('Client Key').digest();
    const withoutProof = `c=${base64(this.#header)},r=${nonce}`;
    const signed = [this.#bare, serverFirst, withoutProof].join();
    const signature = createHmac('sha256', createHash('sha256').update(clientKey).digest()).update(signed).digest();
    const proof = Buffer.from(clientKey.map((byte, index) => byte ^ (signature[index] ?? 0)));
    this.#signature = createHmac('sha256', createHmac('sha256', salted).update('Server Key').digest()).update(signed).digest('base64');
    return base64(`${withoutProof},p=${proof.toString('base64')}`);
  }

  knows(serverFinal: string): boolean {
    return serverFinal === `v=${this.#signature}`;
  }
}

describe('AUTH', () => {
  let verifiers: Verifiers;
  let people: Authenticator;
  let withScrypt: Authenticator;
  before(async () => {
    const lines = [await scramLine('alice@example.org', 'secret'), await scramLine('odd,=name', 'p\u00e4ss', 'odd@example.org,@odd.example')];
    verifiers = verifiersOf(lines);
    people = authenticatorOf(verifiers);
    withScrypt = authenticatorOf([...lines, await scryptLine('bob@example.org', 'builder')]);
  });

  test('each end of an exchange is counted, by mechanism', async () => {
    const kit = new Kit(people);
    await kit.say('EHLO a');
    await kit.say(`AUTH PLAIN ${base64('\0alice@example.org\0wrong')}`);
    await kit.say('AUTH LOGIN');
    await kit.say('*');
    await kit.say('AUTH PLAIN !');
    await kit.say('AUTH CRAM-MD5');
    await kit.say(`AUTH PLAIN ${base64('\0alice@example.org\0secret')}`);
    assert.deepEqual(kit.auths, ['PLAIN failed', 'LOGIN cancelled', 'PLAIN cancelled', 'PLAIN ok']);
    const scram = new Kit(people);
    await scram.say('EHLO a');
    const client = new ScramClient('alice@example.org', 'wrong');
    const first = Buffer.from((await scram.say(`AUTH SCRAM-SHA-256 ${client.first}`)).slice(4), 'base64').toString();
    await scram.say(client.final(first));
    assert.deepEqual(scram.auths, ['SCRAM-SHA-256 failed']);
  });

  test('is offered within TLS only, and SCRAM only where every user has it', async () => {
    const clear = new Kit(people, {}, false);
    await clear.say('EHLO a');
    assert.ok(!clear.connection.text.includes('AUTH'));
    assert.equal(await clear.say(`AUTH PLAIN ${base64('\0alice@example.org\0secret')}`), '538 5.7.11 Encryption required: STARTTLS first');
    const secure = new Kit(people);
    await secure.say('EHLO a');
    assert.ok(secure.connection.text.includes('250-AUTH SCRAM-SHA-256 PLAIN LOGIN\r\n'));
    const mixed = new Kit(withScrypt);
    await mixed.say('EHLO a');
    assert.ok(mixed.connection.text.includes('250-AUTH PLAIN LOGIN\r\n'));
    assert.match(await mixed.say('AUTH SCRAM-SHA-256'), /^504 5\.5\.4 /);
    const relay = new Kit(people, { isSubmission: false });
    await relay.say('EHLO a');
    assert.ok(!relay.connection.text.includes('AUTH'));
    assert.match(await relay.say('AUTH PLAIN'), /^502 5\.5\.1 /);
    assert.match(await relay.say('MAIL FROM:<a@example.org> AUTH=<>'), /^555 5\.5\.4 /);
  });

  test('is required before MAIL; then the user may send to anybody, from his addresses', async () => {
    const kit = new Kit(people, { relayNetworks: ['198.51.100.0/24'] });
    await kit.say('EHLO a');
    assert.equal(await kit.say('MAIL FROM:<alice@example.org>'), '530 5.7.0 Authentication required');
    assert.equal(await kit.say(`AUTH PLAIN ${base64('\0alice@example.org\0secret')}`), '235 2.7.0 Authentication succeeded');
    assert.match(await kit.say(`AUTH PLAIN ${base64('\0alice@example.org\0secret')}`), /^503 5\.5\.1 Already/);
    assert.equal(await kit.say('MAIL FROM:<mallory@example.org>'), '550 5.7.1 This sender address is not yours');
    assert.match(await kit.say('MAIL FROM:<Alice@Example.ORG> AUTH=alice+40example.org'), /^250 /);
    assert.match(await kit.say('RCPT TO:<b@anywhere.example>'), /^250 /);
    await kit.say('DATA');
    assert.match(await kit.say('x\r\n.'), /^250 /);
    assert.ok(kit.reception.kept[0]?.content.toString('latin1').includes('with ESMTPSA id '));
    assert.match(await kit.say('MAIL FROM:<>'), /^250 /);
    assert.match(await kit.say('AUTH PLAIN'), /^503 /);
    await kit.say('RSET');
  });

  test('ends in sessions that stand, by whatever mechanism, when the password is another one or the user has gone', async () => {
    const own = verifiersOf([await scramLine('alice@example.org', 'secret'), await scramLine('carl@example.org', 'x')]);
    const ours = authenticatorOf(own);
    const opened = async (): Promise<readonly Kit[]> => {
      const [plain, scram] = [new Kit(ours), new Kit(ours)];
      for (const kit of [plain, scram]) await kit.say('EHLO a');
      assert.match(await plain.say(`AUTH PLAIN ${base64('\0alice@example.org\0secret')}`), /^235 /);
      const client = new ScramClient('alice@example.org', 'secret');
      const first = textOf((await scram.say(`AUTH SCRAM-SHA-256 ${client.first}`)).slice(4));
      await scram.say(client.final(first));
      assert.match(await scram.say(''), /^235 /);
      return [plain, scram];
    };
    const { users } = own;
    for (const lines of [[await scramLine('alice@example.org', 'other')], [await scramLine('carl@example.org', 'x')], [await scramLine('alice@example.org', 'secret', 'else@example.org')]]) {
      own.users = users;
      const kits = await opened();
      for (const kit of kits) {
        assert.match(await kit.say('MAIL FROM:<alice@example.org>'), /^250 /);
        await kit.say('RSET');
      }
      own.users = verifiersOf(lines).users;
      for (const kit of kits) {
        for (const sender of ['alice@example.org', 'else@example.org', '']) {
          assert.equal(await kit.say(`MAIL FROM:<${sender}>`), '451 4.7.0 Your authentication is not valid any more; connect and authenticate anew');
        }
        assert.match(await kit.say('AUTH PLAIN'), /^503 /);
        assert.deepEqual(kit.rejections.slice(0, 3), Array(3).fill('mail auth-later'));
      }
    }
  });

  test('who guesses by SCRAM stands behind the others as who guesses by PLAIN', async () => {
    const wrong: string[] = [];
    const guessed = authenticatorOf([await scramLine('alice@example.org', 'secret')]);
    guessed.onWrong = (clientKey) => { wrong.push(clientKey); };
    for (const [user, password] of [['alice@example.org', 'guess'], ['nobody@example.org', 'secret'], ['alice@example.org', 'secret']] as const) {
      const kit = new Kit(guessed);
      await kit.say('EHLO a');
      const client = new ScramClient(user, password);
      const first = textOf((await kit.say(`AUTH SCRAM-SHA-256 ${client.first}`)).slice(4));
      assert.equal((await kit.say(client.final(first))).slice(0, 3), password === 'guess' || user.startsWith('nobody') ? '535' : '334');
    }
    assert.deepEqual(wrong, ['198.51.100.7', '198.51.100.7']);
  });

  test('and what is submitted gets the Date and Message-ID that it lacks, in front', async () => {
    for (const [header, added] of [
      ['', ['Date: Sat, 21 Nov 2026', 'Message-ID: <']], ['date: x\r\n', ['Message-ID: <']], ['MESSAGE-ID: <x>\r\n', ['Date: Sat']],
      ['Subject: date: \r\nDate: x\r\nMessage-Id:\r\n', []], ['Dates: x\r\nMessage-IDs: x\r\n', ['Date: Sat', 'Message-ID: <']],
    ] as const) {
      const kit = new Kit(people);
      await kit.say('EHLO a');
      await kit.say(`AUTH PLAIN ${base64('\0alice@example.org\0secret')}`);
      for (const line of ['MAIL FROM:<alice@example.org>', 'RCPT TO:<b@example.net>', 'DATA']) await kit.say(line);
      assert.match(await kit.say(`${header}\r\nDate: not in the header\r\nMessage-ID: neither\r\n.`), /^250 /);
      const content = kit.reception.kept[0]?.content.toString('latin1') ?? '';
      const prefix = content.slice(0, content.length - `${header}\r\nDate: not in the header\r\nMessage-ID: neither\r\n`.length);
      const lines = prefix.split('\r\n').filter((line) => /^(Date|Message-ID):/.test(line));
      assert.deepEqual(lines.map((line, index) => line.startsWith(added[index] ?? '-')), added.map(() => true), prefix);
      const made = /^Message-ID: (<.*>)\r$/m.exec(prefix)?.[1];
      const theirs = /^message-id: ?(.*)\r$/im.exec(`${header}\r\n`)?.[1] ?? '';
      const submission = kit.reception.kept[0]?.submission as MailTransaction | undefined;
      assert.equal(submission?.messageIdField, made ?? theirs, 'as the log has it');
      assert.ok(content.startsWith('Received: ') && content.endsWith(`${header}\r\nDate: not in the header\r\nMessage-ID: neither\r\n`));
    }
  });

  test('lets a user send from a whole domain that is his', async () => {
    const kit = new Kit(people);
    await kit.say('EHLO a');
    assert.match(await kit.say(`AUTH PLAIN ${base64('\0odd,=name\0p\u00e4ss')}`), /^235 /);
    for (const [from, code] of [['x@odd.example', 250], ['odd@example.org', 250], ['x@sub.odd.example', 550], ['x@example.org', 550]] as const) {
      assert.equal(Number((await kit.say(`MAIL FROM:<${from}>`)).slice(0, 3)), code, from);
      await kit.say('RSET');
    }
  });

  test('PLAIN and LOGIN go with and without an initial response', async () => {
    const plain = new Kit(withScrypt);
    await plain.say('EHLO a');
    assert.equal(await plain.say('AUTH plain'), '334 ');
    assert.match(await plain.say(base64('bob@example.org\0bob@example.org\0builder')), /^235 /);
    const login = new Kit(withScrypt);
    await login.say('EHLO a');
    assert.equal(textOf((await login.say('AUTH LOGIN')).slice(4)), 'Username:');
    assert.equal(textOf((await login.say(base64('bob@example.org'))).slice(4)), 'Password:');
    assert.match(await login.say(base64('builder')), /^235 /);
    const initial = new Kit(withScrypt);
    await initial.say('EHLO a');
    assert.equal(textOf((await initial.say(`AUTH LOGIN ${base64('bob@example.org')}`)).slice(4)), 'Password:');
    assert.match(await initial.say(base64('builder')), /^235 /);
  });

  for (const user of ['alice@example.org', 'odd,=name']) {
    test(`SCRAM proves both sides to one another (${user})`, async () => {
      const kit = new Kit(people);
      await kit.say('EHLO a');
      const client = new ScramClient(user, user.startsWith('a') ? 'secret' : 'p\u00e4ss', user.startsWith('a') ? 'n,,' : 'y,,');
      const serverFirst = textOf((await kit.say(`AUTH SCRAM-SHA-256 ${client.first}`)).slice(4));
      assert.match(serverFirst, /^r=clientnonce[\x21-\x2b\x2d-\x7e]{24},/);
      assert.ok(client.knows(textOf((await kit.say(client.final(serverFirst))).slice(4))));
      assert.match(await kit.say(''), /^235 /);
    });
  }

  test('who follows a session is told that it is SCRAM, and nothing to try passwords on', async () => {
    const kit = new Kit(people);
    kit.tap.isOn = true;
    await kit.say('EHLO a');
    const client = new ScramClient('alice@example.org', 'secret');
    await kit.say(client.final(textOf((await kit.say(`AUTH SCRAM-SHA-256 ${client.first}`)).slice(4))));
    assert.match(await kit.say(''), /^235 /);
    assert.deepEqual(kit.told.slice(-6, -1), ['client: AUTH SCRAM-SHA-256 ***', 'server: 334 ***', 'client: ***', 'server: 334 ***', 'client: ***']);
    assert.match(kit.told.at(-1) ?? '', /^server: 235 2\.7\.0 /);
  });

  test('SCRAM refuses a wrong password, a wrong nonce, channel binding, and another\'s name', async () => {
    for (const spoil of ['password', 'nonce', 'binding'] as const) {
      const kit = new Kit(people);
      await kit.say('EHLO a');
      const client = new ScramClient('alice@example.org', spoil === 'password' ? 'Secret' : 'secret');
      const serverFirst = textOf((await kit.say(`AUTH SCRAM-SHA-256 ${client.first}`)).slice(4));
      let final = textOf(client.final(serverFirst));
      if (spoil === 'nonce') final = final.replace('r=clientnonce', 'r=clientnoncf');
      if (spoil === 'binding') final = final.replace('c=biws', `c=${base64('y,,')}`);
      assert.match(await kit.say(base64(final)), /^535 5\.7\.8 /, spoil);
      assert.match(await kit.say('MAIL FROM:<alice@example.org>'), /^530 /);
    }
    const kit = new Kit(people);
    await kit.say('EHLO a');
    assert.match(await kit.say(`AUTH SCRAM-SHA-256 ${base64('p=tls-unique,,n=alice@example.org,r=x')}`), /^501 5\.5\.2 /);
    assert.match(await kit.say(`AUTH SCRAM-SHA-256 ${base64('n,a=root,n=alice@example.org,r=x')}`), /^535 /);
    assert.match(await kit.say(`AUTH PLAIN ${base64('root\0alice@example.org\0secret')}`), /^535 /);
  });

  test('does not tell a name that nobody has', async () => {
    const saltOf = async (user: string): Promise<string> => {
      const kit = new Kit(people);
      await kit.say('EHLO a');
      const client = new ScramClient(user, 'guess');
      const serverFirst = textOf((await kit.say(`AUTH SCRAM-SHA-256 ${client.first}`)).slice(4));
      assert.match(await kit.say(client.final(serverFirst)), /^535 5\.7\.8 Name or password is wrong/);
      return serverFirst.replace(/^r=[^,]*,/, '');
    };
    const [first, again, other, known] = [await saltOf('nobody'), await saltOf('nobody'), await saltOf('noone'), await saltOf('alice@example.org')];
    assert.equal(first, again);
    assert.notEqual(first, other);
    assert.equal(first.length, known.length);
    assert.equal(/i=\d+$/.exec(first)?.[0], /i=\d+$/.exec(known)?.[0]);
  });

  test('lets a name that nobody has cost what most others do', async () => {
    const derived: string[] = [];
    const lines = [await scramLine('a@b.example', 'x'), (await scramLine('c@b.example', 'x')).replace('}4096', '}9999'), (await scramLine('d@b.example', 'x')).replace('}4096', '}9999')];
    const directory = new Verifiers(parseUsers(lines.join('\n'), toAscii), {
      secrets: new SystemSecrets(),
      deriveKey: (_password, verifier) => {
        derived.push(verifier.kind === 'scram' ? String(verifier.iterations) : verifier.kind);
        // As if the password were the right one of whoever lent his verifier.
        return Promise.resolve(verifier.kind === 'scram' ? verifier.storedKey : verifier.hash);
      },
    });
    assert.equal(await directory.check('nobody', 'x'), undefined);
    assert.deepEqual(derived, ['9999']);
  });

  test('of what is refused the log has the name, as far as one was said, and never the password', async () => {
    const words = (line: string): readonly string[] => [line.split(' ')[2] ?? '', 'alice@example.org\0', 'secret'];
    const right = `AUTH PLAIN ${base64('\0alice@example.org\0secret')}`;
    const asRoot = `AUTH PLAIN ${base64('root\0alice@example.org\0secret')}`;
    const cases: readonly (readonly [Kit, readonly string[], string, string])[] = [
      [new Kit(people, {}, false), ['EHLO a', right], 'tls-needed', ''],
      [new Kit(people, { isSubmission: false }), ['EHLO a', right], 'command-absent', ''],
      [new Kit(people), [right], 'bad-sequence', ''],
      [new Kit(people), ['EHLO a', right, right], 'bad-sequence', 'alice@example.org'],
      [new Kit(people), ['EHLO a', `${right} x`], 'syntax', ''],
      [new Kit(people), ['EHLO a', right.replace('PLAIN', 'CRAM-MD5')], 'mechanism', ''],
      [new Kit(people), ['EHLO a', `${right}!`], 'syntax', ''],
      [new Kit(people), ['EHLO a', asRoot], 'auth-foreign', 'alice@example.org'],
      [new Kit(people), ['EHLO a', right.replace('PLAIN', 'SCRAM-SHA-256')], 'syntax', ''],
      [new Kit(people), ['EHLO a', right.slice(0, -4) + base64('no')], 'auth-failed', 'alice@example.org'],
    ];
    for (const [kit, lines, reason, user] of cases) {
      for (const line of lines) await kit.say(line);
      const last = kit.refused.at(-1);
      assert.deepEqual([last?.reason, last?.user], [reason, user], lines.at(-1));
      const all = JSON.stringify(kit.refused);
      for (const word of words(lines.at(-1) ?? '')) assert.ok(!all.includes(word), `${reason}: ${word} in ${all}`);
    }
  });

  test('three wrong passwords end the session', async () => {
    const kit = new Kit(people);
    await kit.say('EHLO a');
    const wrong = `AUTH PLAIN ${base64('\0alice@example.org\0guess')}`;
    assert.match(await kit.say(wrong), /^535 /);
    assert.match(await kit.say(wrong), /^535 /);
    assert.equal(await kit.say(wrong), '421 4.7.0 Too many wrong names or passwords');
    assert.deepEqual(kit.connection.calls.at(-1), 'end');
    assert.deepEqual(kit.rejections, ['auth auth-failed', 'auth auth-failed', 'auth auth-failed']);
  });

  test('a wrong password counts and has its line, also from a network that no limit is for', async () => {
    const of = async (address: string): Promise<readonly unknown[]> => {
      const kit = new Kit(people, {}, true, address, limits(['client', 'errors', 1]));
      await kit.say('EHLO a');
      const reply = await kit.say(`AUTH PLAIN ${base64('\0alice@example.org\0guess')}`);
      const [line] = kit.refused;
      return [kit.auths, kit.rejections[0], line?.client, line?.user, reply.slice(0, 3)];
    };
    const told = (client: string, code: string): readonly unknown[] => [['PLAIN failed'], 'auth auth-failed', client, 'alice@example.org', code];
    assert.deepEqual(await of('198.51.100.7'), told('198.51.100.7', '421'));
    assert.deepEqual(await of('233.252.0.9'), told('233.252.0.9', '535'), 'exempt');
  });

  test('an empty password is wrong, and nobody is asked about it', async () => {
    const asked: string[] = [];
    const directory: Directory = {
      checksAtOnce: 1, keptMs: 1000, scramUsers: undefined, addressesOf: ({ addresses }) => addresses, find: () => undefined,
      check: (name, password) => {
        asked.push(`${name} '${password}'`);
        return Promise.resolve({ name, addresses: [name] });
      },
    };
    const takesAll = new Authenticator(directory, new Uint8Array(32), { secrets: new SystemSecrets(), clock: { nowMs: () => 0, wallMs: () => 0 } });
    // Of the second and third SASLprep leaves nothing.
    for (const empty of ['', '\u00ad', '\u200b\ufeff']) {
      const kit = new Kit(takesAll);
      await kit.say('EHLO a');
      assert.match(await kit.say(`AUTH PLAIN ${base64(`\0alice@example.org\0${empty}`)}`), /^535 5\.7\.8 /);
      assert.match(await kit.say(`AUTH LOGIN ${base64('alice@example.org')}`), /^334 /);
      assert.match(await kit.say(empty === '' ? '' : base64(empty)), /^535 5\.7\.8 /);
      assert.deepEqual(kit.auths, ['PLAIN failed', 'LOGIN failed']);
      assert.match(await kit.say('MAIL FROM:<alice@example.org>'), /^530 /);
    }
    assert.deepEqual(asked, []);
    const kit = new Kit(takesAll);
    await kit.say('EHLO a');
    assert.match(await kit.say(`AUTH PLAIN ${base64('\0alice@example.org\0\u2168 pass\u00adword')}`), /^235 /);
    assert.deepEqual(asked, ['alice@example.org \'IX pass\u00adword\'']);
  });

  test('a password of a file is the same with and without what nobody sees', async () => {
    for (const line of [await scryptLine('bob@example.org', 'I❤mail'), await scramLine('bob@example.org', 'I❤mail')]) {
      for (const password of ['I❤mail', 'I❤\ufe0fmail', 'I❤\u00ad\ufe0f\u200dmail']) {
        const kit = new Kit(authenticatorOf([line]));
        await kit.say('EHLO a');
        assert.match(await kit.say(`AUTH PLAIN ${base64(`\0bob@example.org\0${password}`)}`), /^235 /);
      }
    }
  });

  test('a session holds no password any more when its check, or the session, is over', async () => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    const held: WeakRef<() => boolean>[] = [];
    const dones: ((verdict: Verdict) => void)[] = [];
    let isAtOnce = false;
    const checks = {
      mechanisms: ['PLAIN'], exchange: () => new PlainExchange(),
      check: (_name: string, _password: string, _client: string, done: (verdict: Verdict) => void) => {
        const giveUp = (): boolean => held.length < 0;
        held.push(new WeakRef(giveUp));
        if (isAtOnce) done('no');
        else dones.push(done);
        return giveUp;
      },
    };
    const sessions = Array.from({ length: 3 }, () => new Kit(checks as unknown as Authenticator));
    for (const kit of sessions) {
      await kit.say('EHLO a');
      isAtOnce = kit === sessions[2];
      kit.send(`AUTH PLAIN ${base64('\0bob@example.org\0builder')}`);
    }
    dones[0]?.('no');
    sessions[1]?.session.onClose('reset');
    // A WeakRef holds its object until the turn that made or read it is over.
    await new Promise((resolve) => { setImmediate(resolve); });
    gc();
    assert.deepEqual(held.map((giveUp) => giveUp.deref() !== undefined), [false, false, false]);
    assert.equal(sessions.length, 3);
  });

  test('a password whose check has not begun within a minute hears later, one that is being checked its verdict', async () => {
    const begun: ((account: undefined) => void)[] = [];
    const slow: Directory = {
      checksAtOnce: 1, keptMs: 1000, scramUsers: undefined, addressesOf: ({ addresses }) => addresses, find: () => undefined,
      check: () => new Promise((resolve) => { begun.push(resolve); }),
    };
    const authenticator = new Authenticator(slow, new Uint8Array(32), { secrets: new SystemSecrets(), clock: { nowMs: () => 0, wallMs: () => 0 } });
    const [checked, inLine] = [new Kit(authenticator), new Kit(authenticator)];
    for (const kit of [checked, inLine]) {
      await kit.say('EHLO a');
      kit.send(`AUTH PLAIN ${base64('\0bob@example.org\0builder')}\r\nNOOP`);
    }
    const laterMs = (seconds: number): number => performance.now() + seconds * 1000;
    for (const kit of [checked, inLine]) kit.session.tick(laterMs(58));
    assert.deepEqual([checked.connection.text, inLine.connection.text], ['', '']);
    for (const kit of [checked, inLine]) kit.session.tick(laterMs(61));
    assert.match(inLine.connection.text, /^454 4\.7\.0 .*\r\n250 .*\r\n$/);
    assert.deepEqual([checked.connection.text, inLine.auths], ['', ['PLAIN later']]);
    begun[0]?.(undefined);
    while (checked.connection.text === '') await new Promise(setImmediate);
    assert.match(checked.connection.text, /^535 /);
    assert.equal(begun.length, 1, 'it has left the line');
  });

  test('to act as another is refused, and no guess at a password', async () => {
    const kit = new Kit(people);
    await kit.say('EHLO a');
    const asRoot = `AUTH PLAIN ${base64('root\0alice@example.org\0secret')}`;
    for (let i = 0; i < 5; i++) assert.match(await kit.say(asRoot), /^535 5\.7\.8 To act as another/);
    assert.deepEqual(kit.auths, Array(5).fill('PLAIN cancelled'));
    assert.match(await kit.say(`AUTH PLAIN ${base64('alice@example.org\0alice@example.org\0secret')}`), /^235 /);
  });

  test('can be cancelled, and what is no response is refused', async () => {
    const kit = new Kit(people);
    await kit.say('EHLO a');
    await kit.say('AUTH LOGIN');
    assert.equal(await kit.say('*'), '501 5.7.0 Authentication cancelled');
    for (const line of ['AUTH', 'AUTH PLAIN a b', 'AUTH PLAIN not-base64', `AUTH PLAIN ${base64('\0alice@example.org')}`, `AUTH PLAIN ${base64('\0\0secret')}`, 'AUTH PLAIN =']) {
      assert.match(await kit.say(line), /^501 /, line);
    }
    assert.match(await kit.say('AUTH CRAM-MD5'), /^504 /);
    assert.match(await kit.say('AUTH PLA\u0131N'), /^504 /);
    await kit.say('AUTH LOGIN');
    assert.match(await kit.say('NOOP'), /^501 5\.5\.2 /);
    await kit.say('AUTH LOGIN');
    assert.match(await kit.say('\xff\xfe'), /^501 5\.5\.2 /);
    assert.match(await kit.say('NOOP'), /^250 /);
  });

  test('takes lines of 12,288 octets, and no longer ones', async () => {
    const kit = new Kit(people);
    await kit.say('EHLO a');
    await kit.say('AUTH PLAIN');
    assert.match(await kit.say('A'.repeat(12_288)), /^501 5\.5\.2 /);
    await kit.say('AUTH PLAIN');
    assert.match(await kit.say('A'.repeat(12_289)), /^421 4\.5\.0 /);
    assert.match(kit.connection.text, /^500 5\.5\.2 Command line too long\r\n421 /);
  });

  test('what is sent ahead of the verdict waits for it; a client that goes meanwhile is forgotten', async () => {
    // One whose passwords nobody has asked about.
    const fresh = authenticatorOf([await scryptLine('bob@example.org', 'builder')]);
    const kit = new Kit(fresh);
    await kit.say('EHLO a');
    kit.send(`AUTH PLAIN ${base64('\0bob@example.org\0builder')}\r\nMAIL FROM:<bob@example.org>\r\nRSET`);
    assert.equal(kit.connection.text, '');
    while (!kit.connection.text.includes('Flushed')) await new Promise(setImmediate);
    assert.deepEqual(kit.connection.text.trimEnd().split('\r\n').map((line) => line.slice(0, 3)), ['235', '250', '250']);
    const gone = new Kit(fresh);
    await gone.say('EHLO a');
    gone.send(`AUTH PLAIN ${base64('\0bob@example.org\0wrong')}\r\nNOOP`);
    gone.session.onClose('reset');
    assert.equal(gone.reception.reservedBytes, 0);
  });

  test('is forgotten by STARTTLS, as all that was said before', async () => {
    const kit = new Kit(people);
    kit.session.user = 'alice@example.org';
    kit.session.tlsVersion = '';
    await kit.say('EHLO a');
    assert.match(await kit.say('STARTTLS'), /^220 /);
    assert.equal(kit.session.user, '');
  });
});
