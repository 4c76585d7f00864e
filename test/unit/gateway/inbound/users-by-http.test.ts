/** Users whom an HTTP server knows: what its answers mean, how long they hold, and that nothing it does harms. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { PasswordChecks } from '../../../../src/gateway/inbound/auth/password-checks.js';
import type { Verdict } from '../../../../src/gateway/inbound/auth/password-checks.js';
import { maySendFrom } from '../../../../src/gateway/inbound/auth/users.js';
import { UsersByHttp } from '../../../../src/gateway/inbound/users-by-http.js';
import { SystemSecrets } from '../../../../src/platform/node/secrets.js';
import { HttpKit, UNCLEAR } from './http-kit.js';
import type { Answer } from './http-kit.js';

type Story = (kit: HttpKit, directory: UsersByHttp, check: (name: string, password: string) => Promise<Verdict>) => Promise<void>;

function withUsers(story: Story): Promise<void> {
  const kit = new HttpKit((_request, body, response) => {
    const { user, password } = JSON.parse(body) as { readonly user: string; readonly password: string };
    response.writeHead(password === 'secret' ? 200 : 401).end(user === 'app1' ? JSON.stringify({ addresses: ['@Example.com', 'x@y.example'] }) : '');
  });
  return kit.run(async () => {
    const directory = new UsersByHttp({ url: kit.url, timeoutMs: 500, token: 'letmein' }, kit.ports);
    const checks = new PasswordChecks({ directory, secrets: new SystemSecrets(), clock: kit.ports.clock });
    await story(kit, directory, (name, password) => new Promise((resolve) => { checks.check(name, password, 'client', resolve); }));
  });
}

describe('users by HTTP', () => {
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
      response.writeHead(200).end();
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
