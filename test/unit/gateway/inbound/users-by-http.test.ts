/** Users whom an HTTP server knows: what its answers mean, how long they hold, and that nothing it does harms. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Authenticator } from '../../../../src/gateway/inbound/auth/authenticator.js';
import type { Account } from '../../../../src/gateway/inbound/auth/directory.js';
import { PasswordChecks } from '../../../../src/gateway/inbound/auth/password-checks.js';
import type { Verdict } from '../../../../src/gateway/inbound/auth/password-checks.js';
import { LoginExchange, PlainExchange } from '../../../../src/gateway/inbound/auth/sasl.js';
import { maySendFrom, senderKeyOf } from '../../../../src/gateway/inbound/auth/users.js';
import type { RateLimits } from '../../../../src/gateway/inbound/limits/rate-limits.js';
import { UsersByHttp } from '../../../../src/gateway/inbound/users-by-http.js';
import { toAscii } from '../../../../src/platform/node/idna.js';
import { SystemSecrets } from '../../../../src/platform/node/secrets.js';
import { openSession, testDesk } from '../../../inbound/desk.js';
import { limits } from '../../../inbound/rates.js';
import { MemoryConnection } from '../../../scenario/memory-connection.js';
import { HttpKit, UNCLEAR } from './http-kit.js';
import type { Answer } from './http-kit.js';

/** For hundreds of large answers, on a machine that does other things too. */
const MANY_MS = 30_000;

type Story = (kit: HttpKit, directory: UsersByHttp, check: (name: string, password: string) => Promise<Verdict>) => Promise<void>;

function withUsers(story: Story, timeoutMs = 500): Promise<void> {
  const kit = new HttpKit((_request, body, response) => {
    const { user, password } = JSON.parse(body) as { readonly user: string; readonly password: string };
    response.writeHead(password === 'secret' ? 200 : 401).end(user === 'app1' ? JSON.stringify({ addresses: ['@Example.com', 'x@y.example'] }) : '{}');
  });
  return kit.run(async () => {
    const directory = new UsersByHttp({ url: kit.url, timeoutMs, token: 'letmein' }, kit.ports);
    const checks = new PasswordChecks({ directory, secrets: new SystemSecrets(), clock: kit.ports.clock });
    await story(kit, directory, (name, password) => new Promise((resolve) => { checks.check(name, password, 'client', resolve); }));
  });
}

function submitter(authenticator: Authenticator, user: string, rates?: RateLimits): { readonly login: (password?: string) => Promise<string>; readonly mail: (from: string) => string } {
  const connection = new MemoryConnection();
  const { desk } = testDesk({ isSubmission: true }, { authenticator, rates });
  const session = openSession(desk, connection);
  const said = (text: string): string => {
    connection.text = '';
    session.onData(Buffer.from(text));
    return connection.text;
  };
  said('STARTTLS\r\n');
  connection.secured();
  said('EHLO a\r\n');
  return {
    login: async (password = 'secret') => {
      said(`AUTH PLAIN ${Buffer.from(`\0${user}\0${password}`).toString('base64')}\r\n`);
      while (!connection.text.endsWith('\r\n')) await new Promise(setImmediate);
      return connection.text;
    },
    mail: (from) => said(`MAIL FROM:<${from}>\r\nRSET\r\n`).split('\r\n')[0] ?? '',
  };
}

function authenticatorBy(directory: UsersByHttp, kit: HttpKit): Authenticator {
  return new Authenticator(directory, new Uint8Array(32), { secrets: new SystemSecrets(), clock: kit.ports.clock });
}

describe('users by HTTP', () => {
  test('who sends stays known; one who is forgotten is told to authenticate anew, not that the address is another\'s', () => withUsers(async (kit, directory) => {
    const addresses = Array.from({ length: 1000 }, (_none, i) => `${'x'.repeat(40)}${String(i)}@d.example`);
    kit.answer = (_request, body, response) => { response.writeHead(200).end(body.includes('many') ? JSON.stringify({ addresses }) : '{}'); };
    const authenticator = authenticatorBy(directory, kit);
    const [anna, bob] = [submitter(authenticator, 'anna@d.example'), submitter(authenticator, 'bob@d.example')];
    for (const client of [anna, bob]) assert.match(await client.login(), /^235 /);
    const many: Account[] = [];
    // Some 100,000 characters each, of 32 Mi.
    for (let i = 0; i < 400; i++) {
      many.push(await directory.check(`many${String(i)}`, 'secret', undefined) ?? assert.fail());
      if (i % 100 === 0) assert.match(anna.mail('anna@d.example'), /^250 /);
    }
    assert.deepEqual(many.filter((account) => directory.addressesOf(account) !== undefined).slice(0, 1).map(({ name }) => many.findIndex((each) => each.name === name) > 0), [true], 'the longest ago has gone');
    assert.equal(directory.addressesOf(many.at(-1) ?? assert.fail())?.length, 1000);
    assert.match(anna.mail('anna@d.example'), /^250 /);
    assert.match(anna.mail('bob@d.example'), /^550 5\.7\.1 /);
    assert.match(bob.mail('bob@d.example'), /^451 4\.7\.0 .*authenticate anew/);
    const again = submitter(authenticator, 'bob@d.example');
    assert.match(await again.login(), /^235 /);
    assert.match(again.mail('bob@d.example'), /^250 /);
  }, MANY_MS));

  test('a session sends by its password for ten minutes; then only if that was asked for again, and is right still', () => withUsers(async (kit, directory) => {
    const authenticator = authenticatorBy(directory, kit);
    const user = 'alice@example.org';
    const open = submitter(authenticator, user);
    assert.match(await open.login(), /^235 /);
    kit.nowMs = 599_999;
    assert.match(open.mail(user), /^250 /);
    kit.nowMs = 600_000;
    assert.match(open.mail(user), /^451 4\.7\.0 /);
    const [next, late] = [submitter(authenticator, user), submitter(authenticator, user)];
    assert.match(await next.login(), /^235 /);
    assert.match(open.mail(user), /^250 /, 'the same password was asked for again');
    kit.nowMs += 300_000;
    assert.match(await late.login(), /^235 /);
    assert.equal(kit.asked, 2, 'as it is remembered');
    // The account is deleted.
    kit.answer = (_request, _body, response) => { response.writeHead(401).end(); };
    kit.nowMs += 300_000;
    for (const session of [open, next, late]) assert.match(session.mail(user), /^451 4\.7\.0 /);
    assert.match(await submitter(authenticator, user).login(), /^535 /);
  }));

  test('a password that is wrong now ends the sessions that stand by it at once, and those by another go on', () => withUsers(async (kit, directory) => {
    kit.answer = (_request, body, response) => { response.writeHead(/first|second/.test(body) ? 200 : 401).end('{}'); };
    const authenticator = authenticatorBy(directory, kit);
    const user = 'alice@example.org';
    const [first, second] = [submitter(authenticator, user), submitter(authenticator, user)];
    assert.match(await first.login('first'), /^235 /);
    kit.nowMs = 200_000;
    assert.match(await second.login('second'), /^235 /);
    kit.answer = (_request, body, response) => { response.writeHead(body.includes('second') ? 200 : 401).end('{}'); };
    kit.nowMs = 550_000;
    assert.match(first.mail(user), /^250 /);
    assert.match(await submitter(authenticator, user).login('first'), /^535 /, 'asked anew a minute before it ends');
    assert.match(first.mail(user), /^451 4\.7\.0 /);
    assert.match(second.mail(user), /^250 /);
  }));

  test('an answer that names the account counts all of its names as one; without it case is none', () => withUsers(async (kit, directory) => {
    const authenticator = authenticatorBy(directory, kit);
    const rates = limits(['user', 'messages', 2]);
    const mails = async (names: readonly string[]): Promise<string> => {
      const codes: string[] = [];
      for (const name of names) {
        const client = submitter(authenticator, name, rates);
        assert.match(await client.login(), /^235 /);
        codes.push(client.mail('').slice(0, 3));
      }
      return codes.join(' ');
    };
    assert.equal(await mails(['carl@example.org', 'Carl@Example.org', 'CARL@example.org']), '250 250 450');
    kit.answer = (_request, _body, response) => { response.writeHead(200).end('{"user": "bob@example.org"}'); };
    assert.equal(await mails(['bob@example.org', 'b.builder', 'bob']), '250 250 450');
    const named = submitter(authenticator, 'b.builder');
    assert.match(await named.login(), /^235 /);
    assert.match(named.mail('bob@example.org'), /^250 /, 'by its name, which is an address');
  }));

  test('a password goes there with all of its emoji, by either mechanism', () => withUsers(async (kit, directory) => {
    const passwords: unknown[] = [];
    kit.answer = (_request, body, response) => {
      passwords.push((JSON.parse(body) as { readonly password: string }).password);
      response.writeHead(200).end('{}');
    };
    const word = 'I❤\ufe0fmail 👨\u200d👩\u200d👧 soft\u00adhyphen';
    const plain = new PlainExchange().next(Buffer.from(`\0anna@d.example\0${word}`));
    const login = new LoginExchange();
    login.next(undefined);
    login.next(Buffer.from('anna@d.example'));
    for (const step of [plain, login.next(Buffer.from(word))]) {
      assert.ok(step.kind === 'password');
      await directory.check(step.user, step.password, undefined);
    }
    assert.deepEqual(passwords, [word, word]);
  }));

  test('a right password is asked for once in ten minutes, a wrong one each time', () => withUsers(async (kit, _directory, check) => {
    for (let i = 0; i < 3; i++) assert.equal(await check('alice@example.org', 'secret'), 'yes');
    assert.equal(kit.asked, 1);
    assert.equal(await check('alice@example.org', 'guess'), 'no');
    assert.equal(await check('alice@example.org', 'guess'), 'no');
    assert.equal(kit.asked, 3);
    kit.nowMs += 601_000;
    assert.equal(await check('alice@example.org', 'secret'), 'yes');
    assert.equal(kit.asked, 4);
  }));

  test('the answer says what a user may send from', () => withUsers(async (_kit, directory) => {
    const account = await directory.check('app1', 'secret', undefined);
    const addresses = directory.addressesOf(account ?? assert.fail()) ?? [];
    assert.deepEqual(['a@example.com', 'X@Y.example', 'a@y.example'].map((address) => maySendFrom(addresses, senderKeyOf(address, toAscii))), [true, true, false]);
    const own = await directory.check('alice@example.org', 'secret', undefined);
    assert.deepEqual(directory.addressesOf(own ?? assert.fail()), ['alice@example.org']);
    assert.equal(directory.addressesOf({ name: 'alice@example.org' }), undefined, 'of another directory');
  }));

  test('what it says is kept as senders are compared with it', () => withUsers(async (kit, directory) => {
    kit.answer = (_request, body, response) => {
      response.writeHead(200).end(body.includes('app') ? JSON.stringify({ addresses: ['"John"@Example.com', '@B\u00fccher.example'] }) : '{}');
    };
    for (const [name, addresses] of [['app', ['john@example.com', '@xn--bcher-kva.example']], ['"Anna"@b\u00fccher.example', ['anna@xn--bcher-kva.example']]] as const) {
      assert.deepEqual(directory.addressesOf(await directory.check(name, 'secret', undefined) ?? assert.fail()), addresses);
    }
  }));

  test('a name that is a domain, or everything, grants nothing by itself', () => withUsers(async (_kit, directory) => {
    for (const name of ['*', '@example.com', 'app2']) {
      const account = await directory.check(name, 'secret', undefined);
      assert.deepEqual(directory.addressesOf(account ?? assert.fail()), []);
    }
  }));

  test('the token goes with it, and nothing but a POST of name and password', () => withUsers(async (kit, _directory, check) => {
    kit.answer = (request, body, response) => {
      assert.deepEqual([request.method, request.headers.authorization, request.headers['content-type']], ['POST', 'Bearer letmein', 'application/json']);
      assert.deepEqual(JSON.parse(body), { user: 'a"b', password: 'p\u0000\u2028' });
      response.writeHead(200).end('{}');
    };
    assert.equal(await check('a"b', 'p\u0000\u2028'), 'yes');
  }));

  const unclear: readonly (readonly [string, Answer])[] = [
    ...UNCLEAR, ['a name that is none', (_request, _body, response) => { response.writeHead(200).end('{"user": "two words"}'); }],
    ['addresses that are none', (_request, _body, response) => { response.writeHead(200).end('{"addresses": [1]}'); }],
  ];
  for (const [what, answer] of unclear) {
    test(`${what} is no verdict, and told once a minute`, () => withUsers(async (kit, _directory, check) => {
      kit.answer = answer;
      assert.equal(await check('alice@example.org', 'secret'), 'later');
      assert.equal(await check('alice@example.org', 'secret'), 'later');
      assert.equal(kit.told.length, 1);
    }));
  }
});
