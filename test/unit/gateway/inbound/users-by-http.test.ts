/** Users whom an HTTP server knows: what its answers mean, how long they hold, and that nothing it does harms. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';

import { PasswordChecks } from '../../../../src/gateway/inbound/auth/password-checks.js';
import type { Verdict } from '../../../../src/gateway/inbound/auth/password-checks.js';
import { maySendFrom } from '../../../../src/gateway/inbound/auth/users.js';
import { UsersByHttp } from '../../../../src/gateway/inbound/users-by-http.js';
import { SystemSecrets } from '../../../../src/platform/node/secrets.js';

type Answer = (request: IncomingMessage, body: string, response: ServerResponse) => void;

class Kit {
  nowMs = 0;
  asked = 0;
  answer: Answer = (_request, body, response) => {
    const { user, password } = JSON.parse(body) as { readonly user: string; readonly password: string };
    response.writeHead(password === 'secret' ? 200 : 401).end(user === 'app1' ? JSON.stringify({ addresses: ['@Example.com', 'x@y.example'] }) : '');
  };
  readonly told: string[] = [];
  readonly #server = createServer((request, response) => {
    let body = '';
    request.on('data', (bytes: Buffer) => { body += bytes.toString(); });
    request.on('end', () => {
      this.asked += 1;
      this.answer(request, body, response);
    });
  });

  static async with(story: (kit: Kit, directory: UsersByHttp, check: (name: string, password: string) => Promise<Verdict>) => Promise<void>): Promise<void> {
    const kit = new Kit();
    await new Promise<void>((resolve) => { kit.#server.listen(0, '127.0.0.1', resolve); });
    const clock = { nowMs: () => kit.nowMs, wallMs: () => 0 };
    const note = (_event: string, text: string): void => { kit.told.push(text); };
    const url = `http://127.0.0.1:${String((kit.#server.address() as AddressInfo).port)}/check`;
    const directory = new UsersByHttp({ url, timeoutMs: 500, token: 'letmein' }, { clock, log: { debug: note, info: note, warn: note, error: note } });
    const checks = new PasswordChecks({ directory, secrets: new SystemSecrets(), clock });
    try {
      await story(kit, directory, (name, password) => new Promise((resolve) => { checks.check(name, password, 'client', resolve); }));
    } finally {
      kit.#server.closeAllConnections();
      kit.#server.close();
    }
  }
}

describe('users by HTTP', () => {
  test('a right password is asked for once in ten minutes, a wrong one each time', () => Kit.with(async (kit, directory, check) => {
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

  test('the answer says what a user may send from', () => Kit.with(async (_kit, directory, check) => {
    assert.equal(await check('app1', 'secret'), 'yes');
    const account = directory.find('app1');
    assert.ok(account !== undefined);
    assert.deepEqual(['a@example.com', 'X@Y.example', 'a@y.example'].map((address) => maySendFrom(account, address)), [true, true, false]);
  }));

  test('a name that is a domain, or everything, grants nothing by itself', () => Kit.with(async (_kit, directory, check) => {
    for (const name of ['*', '@example.com', 'app2']) {
      assert.equal(await check(name, 'secret'), 'yes');
      assert.deepEqual(directory.find(name)?.addresses, []);
    }
  }));

  test('the token goes with it, and nothing but a POST of name and password', () => Kit.with(async (kit, _directory, check) => {
    kit.answer = (request, body, response) => {
      assert.deepEqual([request.method, request.headers.authorization, request.headers['content-type']], ['POST', 'Bearer letmein', 'application/json']);
      assert.deepEqual(JSON.parse(body), { user: 'a"b', password: 'p\u0000\u2028' });
      response.writeHead(200).end();
    };
    assert.equal(await check('a"b', 'p\u0000\u2028'), 'yes');
  }));

  const unclear: readonly (readonly [string, Answer])[] = [
    ['another status', (_request, _body, response) => { response.writeHead(500).end(); }],
    ['a redirect', (_request, _body, response) => { response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(); }],
    ['no answer in time', () => undefined],
    ['an answer that never ends', (_request, _body, response) => { response.writeHead(200).write('{'); }],
    ['a connection that breaks', (request) => { request.socket.destroy(); }],
    ['no JSON', (_request, _body, response) => { response.writeHead(200).end('yes'); }],
    ['addresses that are none', (_request, _body, response) => { response.writeHead(200).end('{"addresses": [1]}'); }],
    ['an answer that is too long', (_request, _body, response) => { response.writeHead(200).end(`{"addresses": ["${'x'.repeat(100_000)}"]}`); }],
  ];
  for (const [what, answer] of unclear) {
    test(`${what} is no verdict, and told once a minute`, () => Kit.with(async (kit, directory, check) => {
      kit.answer = answer;
      assert.equal(await check('alice@example.org', 'secret'), 'later');
      assert.equal(await check('alice@example.org', 'secret'), 'later');
      assert.equal(kit.told.length, 1);
      assert.equal(directory.find('alice@example.org'), undefined);
    }));
  }
});
