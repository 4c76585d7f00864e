/** The file of users: what a line may be, and what is said of one that is none. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { maySendFrom, parseUsers } from '../../../../src/gateway/inbound/auth/users.js';
import { followUsers } from '../../../../src/gateway/inbound/users-file.js';
import { scramLine, scryptLine } from '../../../dialog/people.js';
import { NO_LOG, quiet } from '../../../inbound/desk.js';

describe('the file of users', () => {
  test('has a user a line, with the addresses that are his', async () => {
    const users = parseUsers(['# people', '', await scramLine('alice@example.org', 'x'), await scryptLine('app', 'y', 'App@Example.org, @example.net')].join('\r\n'));
    assert.equal(users.count, 2);
    assert.equal(users.haveScram, false);
    const [alice, app] = [users.find('alice@example.org'), users.find('app')];
    assert.ok(alice !== undefined && app !== undefined);
    const mine = (user: typeof alice, list: readonly string[]): boolean[] => list.map((address) => maySendFrom(user, address));
    assert.deepEqual(mine(alice, ['alice@example.org', 'ALICE@example.org', 'bob@example.org', '']), [true, true, false, true]);
    assert.deepEqual(mine(app, ['app@example.org', 'any@example.net', 'any@sub.example.net', '"x@example.net"@evil.test']), [true, true, false, false]);
    assert.equal(parseUsers(await scramLine('a@b.example', 'x')).haveScram, true);
    assert.equal(maySendFrom(parseUsers(await scramLine('root', 'x', '*')).find('root') ?? alice, 'x@anywhere.example'), true);
  });

  test('some of whom keep SCRAM from all is told, once it is in force', async (t) => {
    const [scram, scrypt] = [await scramLine('a@b.example', 'x'), await scryptLine('c@b.example', 'x')];
    assert.deepEqual([scram, scrypt].map((line) => parseUsers(line).whyNoScram), ['', '']);
    const file = path.join(mkdtempSync(path.join(os.tmpdir(), 'twinpost-users-')), 'users');
    t.after(() => { rmSync(path.dirname(file), { recursive: true }); });
    writeFileSync(file, `${scram}\n${scrypt}\n`);
    const said: string[] = [];
    const log = { ...NO_LOG, warn: (_event: string, text: string, fields: Readonly<Record<string, unknown>> = {}): void => { said.push(`${text}: ${String(fields['why'])}`); } };
    followUsers(file, new Uint8Array(16), { clock: { nowMs: () => 0, wallMs: () => 0 }, log, onRead: quiet }).close();
    assert.deepEqual(said, ['SCRAM-SHA-256 is not offered: 1 of 2 users have no verifier for SCRAM-SHA-256, so nobody is offered it: twinpost user NAME --scram makes one']);
  });

  test('without users is none', () => {
    for (const text of ['', '\n', '# nobody yet\n']) assert.throws(() => parseUsers(text), /it has no users/);
  });

  test('says what most users have in common', async () => {
    const many = [await scramLine('a@b.example', 'x'), await scryptLine('c@b.example', 'x'), await scramLine('d@b.example', 'x')];
    assert.equal(parseUsers(many.join('\n')).usual?.kind, 'scram');
    const costly = (await scramLine('e@b.example', 'x')).replace('}4096', '}16384');
    const costlier = (await scramLine('f@b.example', 'x')).replace('}4096', '}16384');
    const { usual } = parseUsers([many[0], costly, costlier].join('\n'));
    assert.equal(usual?.kind === 'scram' ? usual.iterations : 0, 16384);
  });

  test('that has a mistake says where', async () => {
    const good = await scryptLine('a@b.example', 'x');
    const cases: readonly (readonly [string, RegExp])[] = [
      ['nobody', /^line 1: expected \{SCRYPT\}… or/], ['a b:{SCRYPT}x', /^line 1: expected a name/],
      [':{SCRYPT}x', /expected a name/], [`${good}\n${good}`, /^line 2: 'a@b.example' is there twice/],
      [good.replace('a@b.example', 'app'), /expected addresses that 'app' may send from/],
      [`${good}:nowhere`, /expected an address, @DOMAIN or \*, found 'nowhere'/], [`${good}:x@y:z`, /expected NAME:VERIFIER/],
      [good.replace('{SCRYPT}10', '{SCRYPT}40'), /expected \{SCRYPT\}/], [good.replace('{SCRYPT}', '{PLAIN}'), /expected \{SCRYPT\}/],
      [good.slice(0, -4), /expected \{SCRYPT\}/], [(await scramLine('a@b.example', 'x')).replace('4096', '1'), /expected \{SCRYPT\}/],
    ];
    for (const [text, error] of cases) assert.throws(() => parseUsers(text), (thrown: Error) => error.test(thrown.message), text);
  });
});
