/** The file of users: what a line may be, and what is said of one that is none. */
import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { maySendFrom, parseUsers as parse, senderKeyOf, usersIn } from '../../../../src/gateway/inbound/auth/users.js';
import type { Users } from '../../../../src/gateway/inbound/auth/users.js';
import { followUsers } from '../../../../src/gateway/inbound/users-file.js';
import { toAscii } from '../../../../src/platform/node/idna.js';
import { scramLine, scryptLine } from '../../../dialog/people.js';
import { NO_LOG, quiet } from '../../../inbound/desk.js';

function parseUsers(text: string): Users {
  return parse(text, toAscii);
}

describe('the file of users', () => {
  test('has a user a line, with the addresses that are his', async () => {
    const users = parseUsers(['# people', '', await scramLine('alice@example.org', 'x'), await scryptLine('app', 'y', 'App@Example.org, @example.net')].join('\r\n'));
    assert.equal(users.count, 2);
    assert.equal(users.haveScram, false);
    assert.ok(parseUsers(`\ufeff${await scramLine('alice@example.org', 'x')}`).find('alice@example.org') !== undefined, 'behind a byte order mark');
    const [alice, app] = [users.find('alice@example.org'), users.find('app')];
    assert.ok(alice !== undefined && app !== undefined);
    const mine = (user: typeof alice, list: readonly string[]): boolean[] => list.map((address) => maySendFrom(user.addresses, senderKeyOf(address, toAscii)));
    assert.deepEqual(mine(alice, ['alice@example.org', 'ALICE@example.org', 'bob@example.org', '']), [true, true, false, true]);
    assert.deepEqual(mine(alice, ['"alice"@example.org', '"al\\ice"@example.org', '"alice "@example.org']), [true, true, false]);
    assert.deepEqual(mine(app, ['app@example.org', 'any@example.net', 'any@sub.example.net', '"x@example.net"@evil.test']), [true, true, false, false]);
    const kate = parseUsers(await scramLine('kate', 'x', 'Kate@x.example,\u212aay@x.example')).find('kate') ?? alice;
    assert.deepEqual(mine(kate, ['KATE@x.example', '\u212aate@x.example', 'kay@x.example', '\u212aAY@x.example']), [true, false, false, true], 'a sign is no letter');
    const dora = parseUsers(await scramLine('dora', 'x', 'd\u00f6@b\u00fccher.example,@B\u00dcRO.example,@xn--strae-oqa.example')).find('dora') ?? alice;
    assert.deepEqual(mine(dora, ['D\u00d6@xn--bcher-kva.example', 'd\u00f6@B\u00fccher.example', 'x@b\u00fccher.example', 'x@xn--bro-hoa.example', 'x@stra\u00dfe.example', 'x@\u2024']), [true, true, false, true, true, false], 'domains are compared as A-labels');
    assert.equal(parseUsers(await scramLine('a@b.example', 'x')).haveScram, true);
    assert.equal(maySendFrom((parseUsers(await scramLine('root', 'x', '*')).find('root') ?? alice).addresses, 'x@anywhere.example'), true);
  });

  test('is read into what senders are compared with: A-labels, lower case, no needless quotes', async () => {
    const of = async (name: string, addresses = ''): Promise<readonly string[]> => parseUsers(await scramLine(name, 'x', addresses)).find(name)?.addresses ?? [];
    assert.deepEqual(await of('"John"@b\u00fccher.example'), ['john@xn--bcher-kva.example']);
    const listed = await of('app', '"John"@Example.com, @B\u00fccher.example,"a b"@example.com,""@example.com,*');
    assert.deepEqual(listed, ['john@example.com', '@xn--bcher-kva.example', '"a b"@example.com', '""@example.com', '*']);
    const john = await of('"john"@example.com');
    const from = (address: string): boolean => maySendFrom(john, senderKeyOf(address, toAscii));
    assert.deepEqual(['john@example.com', '"John"@example.com', '"jo hn"@example.com'].map(from), [true, true, false]);
  });

  test('has a thousand addresses a user at most, and many are read in more steps', async () => {
    const listed = Array.from({ length: 1000 }, (_none, i) => `u${String(i)}@b\u00fccher.example`);
    const [first, second, third] = [await scramLine('a', 'x', listed.join()), await scramLine('b', 'x', listed.join()), await scramLine('c', 'x', [...listed, 'z@x.example'].join())];
    const steps = usersIn([first, second].join('\n'), toAscii);
    assert.deepEqual([steps.next().done, steps.next().done, steps.next().done], [false, false, true]);
    assert.throws(() => parseUsers([first, second, third].join('\n')), /^Error: line 3: expected at most 1000 addresses of 'c', found 1001$/);
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

  test('that is replaced while it is read for the first time is read again', async (t) => {
    const file = path.join(mkdtempSync(path.join(os.tmpdir(), 'twinpost-users-')), 'users');
    t.after(() => { rmSync(path.dirname(file), { recursive: true }); });
    writeFileSync(file, await scryptLine('gone@b.example', 'x'));
    const next = await scryptLine('new@b.example', 'x');
    let reads = 0;
    const users = followUsers(file, new Uint8Array(16), {
      clock: { nowMs: () => 0, wallMs: () => 0 }, log: NO_LOG,
      // What was read is in force, and its file another one already.
      onRead: () => {
        if (reads++ > 0) return;
        writeFileSync(`${file}.new`, next);
        renameSync(`${file}.new`, file);
      },
    });
    t.after(() => { users.close(); });
    assert.ok(users.authenticator.find('gone@b.example') !== undefined);
    while (reads < 2) await new Promise(setImmediate);
    assert.deepEqual([users.authenticator.find('gone@b.example'), users.authenticator.find('new@b.example')?.name], [undefined, 'new@b.example']);
  });

  test('that is read anew keeps who has not changed, and holds nothing of the file before', async () => {
    const [a, b, c, d] = [await scramLine('a@b.example', 'x'), await scryptLine('b@b.example', 'x'), await scramLine('c@b.example', 'x'), await scramLine('d@b.example', 'x')];
    const before = parseUsers([a, b, c, d].join('\n'));
    const steps = usersIn([`${d}:d@b.example,e@b.example`, 'new@b.example' + c.slice(c.indexOf(':')), b, '# gone: c', a.replace('4096', '8192')].join('\r\n'), toAscii, before);
    const step = steps.next();
    assert.ok(step.done === true);
    const now = step.value;
    const same = ['a', 'b', 'c', 'd'].map((name) => now.find(`${name}@b.example`) === before.find(`${name}@b.example`));
    assert.deepEqual([same, now.count], [[false, true, false, false], 4]);
    const again = usersIn([a, b, c, d].join('\n'), toAscii, before).next();
    assert.ok(again.done === true);
    for (const name of ['a', 'b', 'c', 'd']) assert.equal(again.value.find(`${name}@b.example`), before.find(`${name}@b.example`));
  });

  test('is read in steps, and has a bound', () => {
    const key = Buffer.alloc(32, 7).toString('base64');
    const lines = Array.from({ length: 100_000 }, (_none, i) => `u${String(i)}@x.example:{SCRAM-SHA-256}4096,${key},${key},${key}`);
    let steps = 0;
    for (const _step of usersIn(lines.join('\n'), toAscii)) steps++;
    assert.equal(steps, 400);
    assert.throws(() => parseUsers([...lines, `one${lines[0] ?? ''}`].join('\n')), /^Error: it has more than 100000 users: let a directory be asked by HTTP/);
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
