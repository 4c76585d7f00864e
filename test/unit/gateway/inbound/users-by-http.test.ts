/** Users whom an HTTP server knows: what its answers mean, how long they hold, and that nothing it does harms. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Authenticator } from '../../../../src/gateway/inbound/auth/authenticator.js';
import { PasswordChecks } from '../../../../src/gateway/inbound/auth/password-checks.js';
import type { Verdict } from '../../../../src/gateway/inbound/auth/password-checks.js';
import { LoginExchange, PlainExchange } from '../../../../src/gateway/inbound/auth/sasl.js';
import { maySendFrom } from '../../../../src/gateway/inbound/auth/users.js';
import { UsersByHttp } from '../../../../src/gateway/inbound/users-by-http.js';
import { SystemSecrets } from '../../../../src/platform/node/secrets.js';
import { openSession, testDesk } from '../../../inbound/desk.js';
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

describe('users by HTTP', () => {
  test('what is known of them is bounded in characters: the longest ago goes', () => withUsers(async (kit, directory, check) => {
    const addresses = Array.from({ length: 1000 }, (_none, i) => `${'x'.repeat(40)}${String(i)}@d.example`);
    kit.answer = (_request, _body, response) => { response.writeHead(200).end(JSON.stringify({ addresses })); };
    // Some 100,000 characters each, of 32 Mi.
    for (let i = 0; i < 400; i++) assert.equal(await check(`user${String(i)}`, 'secret'), 'yes');
    assert.equal(directory.find('user0'), undefined);
    assert.equal(directory.find('user399')?.addresses.length, 1000);
    assert.equal(directory.find('user200')?.addresses.length, 1000);
  }, MANY_MS));

  test('who sends stays known; one who is forgotten is told to authenticate anew, not that the address is another\'s', () => withUsers(async (kit, directory) => {
    const addresses = Array.from({ length: 1000 }, (_none, i) => `${'x'.repeat(40)}${String(i)}@d.example`);
    kit.answer = (_request, body, response) => { response.writeHead(200).end(body.includes('many') ? JSON.stringify({ addresses }) : '{}'); };
    const authenticator = new Authenticator(directory, new Uint8Array(32), { secrets: new SystemSecrets(), clock: kit.ports.clock });
    const opened = ['anna@d.example', 'bob@d.example'].map((user) => {
      const connection = new MemoryConnection();
      const { desk } = testDesk({ isSubmission: true }, { authenticator });
      const session = openSession(desk, connection);
      session.onData(Buffer.from('EHLO a\r\n'));
      session.user = user;
      const mail = (from: string): string => {
        connection.text = '';
        session.onData(Buffer.from(`MAIL FROM:<${from}>\r\nRSET\r\n`));
        return connection.text.split('\r\n')[0] ?? '';
      };
      return { user, mail };
    });
    const [anna, bob] = opened;
    assert.ok(anna !== undefined && bob !== undefined);
    for (const { user } of opened) await directory.check(user, 'secret');
    const account = await directory.check('carl@d.example', 'secret');
    assert.ok(account !== undefined);
    // Some 100,000 characters each, of 32 Mi.
    for (let i = 0; i < 400; i++) {
      await directory.check(`many${String(i)}`, 'secret');
      if (i % 100 === 0) assert.match(anna.mail('anna@d.example'), /^250 /);
      if (i % 100 === 0) assert.equal(directory.isStill(account), true);
    }
    assert.equal(directory.isStill(account), true);
    assert.match(anna.mail('anna@d.example'), /^250 /);
    assert.match(anna.mail('bob@d.example'), /^550 5\.7\.1 /);
    assert.match(bob.mail('bob@d.example'), /^451 4\.7\.0 .*authenticate anew/);
    await directory.check('bob@d.example', 'secret');
    assert.match(bob.mail('bob@d.example'), /^250 /);
  }, MANY_MS));

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
      await directory.check(step.user, step.password);
    }
    assert.deepEqual(passwords, [word, word]);
  }));

  test('a right password is asked for once in ten minutes, a wrong one each time', () => withUsers(async (kit, directory, check) => {
    for (let i = 0; i < 3; i++) assert.equal(await check('alice@example.org', 'secret'), 'yes');
    assert.equal(kit.asked, 1);
    assert.equal(await check('alice@example.org', 'guess'), 'no');
    assert.equal(await check('alice@example.org', 'guess'), 'no');
    assert.equal(kit.asked, 3);
    kit.nowMs += 601_000;
    assert.equal(await check('alice@example.org', 'secret'), 'yes');
    assert.equal(kit.asked, 4);
    assert.deepEqual(directory.find('alice@example.org')?.addresses, ['alice@example.org']);
    assert.equal(directory.find('mallory@example.org'), undefined);
    assert.equal(directory.scramUsers, undefined);
  }));

  test('the answer says what a user may send from', () => withUsers(async (_kit, directory, check) => {
    assert.equal(await check('app1', 'secret'), 'yes');
    const account = directory.find('app1');
    assert.ok(account !== undefined);
    assert.deepEqual(['a@example.com', 'X@Y.example', 'a@y.example'].map((address) => maySendFrom(account, address)), [true, true, false]);
  }));

  test('a name that is a domain, or everything, grants nothing by itself', () => withUsers(async (_kit, directory, check) => {
    for (const name of ['*', '@example.com', 'app2']) {
      assert.equal(await check(name, 'secret'), 'yes');
      assert.deepEqual(directory.find(name)?.addresses, []);
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
    ...UNCLEAR, ['addresses that are none', (_request, _body, response) => { response.writeHead(200).end('{"addresses": [1]}'); }],
  ];
  for (const [what, answer] of unclear) {
    test(`${what} is no verdict, and told once a minute`, () => withUsers(async (kit, directory, check) => {
      kit.answer = answer;
      assert.equal(await check('alice@example.org', 'secret'), 'later');
      assert.equal(await check('alice@example.org', 'secret'), 'later');
      assert.equal(kit.told.length, 1);
      assert.equal(directory.find('alice@example.org'), undefined);
    }));
  }
});
