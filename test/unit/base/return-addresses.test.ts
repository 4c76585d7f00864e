/** Variable reverse-paths: they say what they are about, are made here only, and fit into any local part. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';

import { ReturnAddresses } from '../../../src/base/return-addresses.js';
import type { ReturnAddressOptions } from '../../../src/base/return-addresses.js';
import { SenderRewriting } from '../../../src/base/sender-rewriting.js';
import type { Hmac } from '../../../src/base/signed-text.js';

const DAY_MS = 86_400_000;
const ID = 2 ** 52 + 4711;
const hmac: Hmac = (key, text) => createHmac('sha256', key).update(text).digest();

class World {
  wallMs = 20_000 * DAY_MS;
  make(options: Partial<ReturnAddressOptions> = {}, ...secrets: readonly string[]): ReturnAddresses {
    const keys = (secrets.length === 0 ? ['a secret of ours'] : secrets).map((secret) => Buffer.from(secret));
    const all = { route: 'default', domain: 'bounces.example', prefix: 'b', daysValid: 10, leadsBack: true, ...options };
    return new ReturnAddresses(all, keys, hmac, () => this.wallMs);
  }
}

function localOf(address: string): string {
  return address.slice(0, address.lastIndexOf('@'));
}

describe('variable reverse-paths', () => {
  test('these are the bytes, for ever: what was sent yesterday comes back tomorrow', () => {
    const world = new World();
    assert.equal(world.make().written(ID, 'bob@example.net', 'alice@example.org'), 'b+6aldu3d4ra400000004k73bn3=example.org=alice@bounces.example');
    assert.equal(world.make({ prefix: 'news', leadsBack: false }).written(1, 'bob@example.net', 'alice@example.org'), 'news+x6vmvqggra000000000016zze@bounces.example');
  });

  test('it says which message, to whom, from whom', () => {
    const ours = new World().make();
    for (const sender of ['alice@example.org', 'Al.Ice+tag=x@Example.ORG', 'a=b=c@d.example', 'x@y', "o'neill@example.org"]) {
      const written = ours.written(ID, 'Bob@Example.net', sender);
      assert.match(written, /^b\+[a-z2-7]{8}[a-z2-7]{2}[0-9a-hjkmnp-tv-z]{11}[a-z2-7]{4}=.*@bounces\.example$/);
      const token = ours.read(localOf(written));
      assert.ok(token !== undefined, written);
      assert.deepEqual([token.messageId, token.sender, token.ageDays], [ID, sender, 0]);
      assert.ok(token.isOf('bob@example.net'));
      assert.ok(!token.isOf('eve@example.net'));
    }
  });

  test('where no report goes on, any sender has one, and it does not name him', () => {
    const ours = new World().make({ leadsBack: false });
    for (const sender of ['alice@example.org', '"quo ted"@example.org', `${'a'.repeat(64)}@${'d'.repeat(60)}.example`, 'dörte@bücher.example']) {
      const written = ours.written(ID, 'bob@example.net', sender);
      assert.match(written, /^b\+[0-9a-z]{25}@bounces\.example$/);
      assert.equal(ours.read(localOf(written))?.sender, '');
    }
  });

  test('64 octets are the most; who does not fit, or is no plain address, keeps his own', () => {
    const ours = new World().make();
    const longest = `${'a'.repeat(24)}@example.org`;
    assert.equal(localOf(ours.written(ID, 'bob@example.net', longest)).length, 64);
    for (const sender of [`a${longest}`, '"quo ted"@example.org', 'x%y@example.org', 'x!y@example.org', 'x@[192.0.2.1]', 'dörte@bücher.example', 'nobody', '']) {
      assert.equal(ours.written(ID, 'bob@example.net', sender), sender);
    }
  });

  test('what servers on the way do to letters does not matter', () => {
    const ours = new World().make();
    const local = localOf(ours.written(ID, 'bob@example.net', 'Alice@Example.org'));
    assert.equal(ours.read(local.toLowerCase())?.sender, 'alice@example.org');
    assert.equal(ours.read(local.toUpperCase())?.messageId, ID);
    assert.ok(ours.read(local.toUpperCase())?.isOf('BOB@EXAMPLE.NET'));
  });

  test('nobody else makes one: no character of it may be another, none more, none less', () => {
    const ours = new World().make();
    for (const sender of ['alice@example.org']) {
      const local = localOf(ours.written(ID, 'bob@example.net', sender));
      for (let at = 0; at < local.length; at++) {
        const other = `${local.slice(0, at)}${local[at] === 'q' ? 'r' : 'q'}${local.slice(at + 1)}`;
        assert.equal(ours.read(other), undefined, other);
        assert.equal(ours.read(local.slice(0, at)), undefined, local.slice(0, at));
      }
      assert.equal(ours.read(`${local}x`), undefined);
    }
    const plain = localOf(new World().make({ leadsBack: false }).written(ID, 'bob@example.net', 'alice@example.org'));
    assert.equal(ours.read(`${plain}=evil.example=eve`), undefined);
    for (const text of ['b+', 'b+=', 'b+aaaaaaaa', `b+${'a'.repeat(62)}`, `b+${'a'.repeat(10_000)}`, 'b', '', 'alice']) assert.equal(ours.read(text), undefined, text);
  });

  test('that of another route, domain, secret or kind is none', () => {
    const world = new World();
    const local = localOf(world.make().written(ID, 'bob@example.net', 'alice@example.org'));
    assert.equal(world.make({ domain: 'other.example' }).read(local), undefined);
    assert.equal(world.make({}, 'another secret').read(local), undefined);
    assert.equal(world.make({ prefix: 'c' }).read(local.replace('b+', 'c+')), undefined);
    const rewriting = new SenderRewriting('bounces.example', [Buffer.from('a secret of ours')], hmac, () => world.wallMs);
    assert.equal(world.make().read(localOf(rewriting.rewritten('alice@example.org')).replace('SRS0=', 'b+').replace('=', '')), undefined);
  });

  test('it tells its age, over the turn of the days too, and a clock that is a day behind makes it none', () => {
    for (const day of [20_000, 1023, 1024 * 19 - 3]) {
      const world = new World();
      world.wallMs = day * DAY_MS;
      const local = localOf(world.make().written(ID, 'bob@example.net', 'alice@example.org'));
      for (const [days, age] of [[-1, 0], [0, 0], [1, 1], [10, 10], [11, 11], [500, 500], [-2, 1022]] as const) {
        world.wallMs = (day + days) * DAY_MS;
        assert.equal(world.make().read(local)?.ageDays, age, `${String(days)} days after day ${String(day)}`);
      }
    }
  });

  test('a new secret signs, the old one is known for as long as it is named', () => {
    const world = new World();
    const before = localOf(world.make({}, 'old').written(ID, 'bob@example.net', 'alice@example.org'));
    const both = world.make({}, 'new', 'old');
    assert.ok(both.read(before)?.isOf('bob@example.net'));
    assert.ok(world.make({}, 'new').read(localOf(both.written(ID, 'bob@example.net', 'alice@example.org'))) !== undefined);
    assert.equal(world.make({}, 'new').read(before), undefined);
  });
});
