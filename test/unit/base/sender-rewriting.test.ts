/** Addresses that stand for a sender: they lead back, are made here only, and end. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';

import { SenderRewriting } from '../../../src/base/sender-rewriting.js';
import type { Hmac } from '../../../src/base/signed-text.js';

const DAY_MS = 86_400_000;
const hmac: Hmac = (key, text) => createHmac('sha256', key).update(text).digest();

class World {
  wallMs = 20_000 * DAY_MS;
  make(domain = 'ours.example', ...secrets: readonly string[]): SenderRewriting {
    const keys = (secrets.length === 0 ? ['a secret of ours'] : secrets).map((secret) => Buffer.from(secret));
    return new SenderRewriting(domain, keys, hmac, () => this.wallMs);
  }
}

function localOf(address: string): string {
  return address.slice(0, address.lastIndexOf('@'));
}

describe('sender rewriting', () => {
  test('an address is written so that it leads back', () => {
    const ours = new World().make();
    for (const address of ['alice@example.org', 'Al.Ice+tag=x@Example.ORG', 'dörte@bücher.example', 'a=b=c@d.example', 'x@y']) {
      const rewritten = ours.rewritten(address);
      assert.match(rewritten, /^SRS0=[a-z2-7]{8}=[a-z2-7]{2}=.*@ours\.example$/);
      assert.ok(ours.isRewritten(localOf(rewritten)));
      assert.equal(ours.original(localOf(rewritten)), address);
    }
  });

  test('what servers on the way do to letters does not matter', () => {
    const ours = new World().make();
    const local = localOf(ours.rewritten('Alice@Example.org'));
    assert.equal(ours.original(local.toLowerCase()), 'alice@example.org');
    assert.equal(ours.original(local.toUpperCase()), 'ALICE@EXAMPLE.ORG');
    assert.equal(ours.original(local.replace('SRS0=', 'SRS0+')), 'Alice@Example.org');
  });

  test('nobody else makes one: no character of it may be another', () => {
    const ours = new World().make();
    const local = localOf(ours.rewritten('alice@example.org'));
    for (let at = 'SRS0='.length; at < local.length; at++) {
      const other = `${local.slice(0, at)}${local[at] === 'q' ? 'r' : 'q'}${local.slice(at + 1)}`;
      assert.equal(ours.original(other), undefined, other);
    }
    assert.equal(new World().make('ours.example', 'another secret').original(local), undefined);
    for (const text of ['SRS0=', 'SRS0==', 'SRS0=x=y', 'SRS1=', 'SRS0=aaaaaaaa=aa=b', 'alice']) assert.equal(ours.original(text), undefined, text);
  });

  test('it holds for 21 days, over the turn of the days too, and for a clock that is a day behind', () => {
    for (const day of [20_000, 1023, 1024 * 19 - 3]) {
      const world = new World();
      world.wallMs = day * DAY_MS;
      const ours = world.make();
      const local = localOf(ours.rewritten('alice@example.org'));
      for (const [days, isGood] of [[-2, false], [-1, true], [0, true], [21, true], [22, false], [500, false]] as const) {
        world.wallMs = (day + days) * DAY_MS;
        assert.equal(ours.original(local) !== undefined, isGood, `${String(days)} days after day ${String(day)}`);
      }
    }
  });

  test('a new secret signs, the old one is known for as long as it is named', () => {
    const world = new World();
    const before = localOf(world.make('ours.example', 'old').rewritten('alice@example.org'));
    const both = world.make('ours.example', 'new', 'old');
    assert.equal(both.original(before), 'alice@example.org');
    assert.equal(world.make('ours.example', 'new').original(localOf(both.rewritten('alice@example.org'))), 'alice@example.org');
    assert.equal(world.make('ours.example', 'new').original(before), undefined);
  });

  test('what others rewrote leads back to the first of them, however many there were', () => {
    const world = new World();
    const [first, second, third] = ['first', 'second', 'third'].map((name) => world.make(`${name}.example`, `the secret of ${name}`));
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    const once = first.rewritten('alice@example.org');
    const twice = second.rewritten(once);
    assert.match(twice, /^SRS1=[a-z2-7]{8}=first\.example==[a-z2-7]{8}=[a-z2-7]{2}=example\.org=alice@second\.example$/);
    const thrice = third.rewritten(twice);
    assert.match(thrice, /^SRS1=[a-z2-7]{8}=first\.example==.*@third\.example$/);
    for (const [by, address] of [[second, twice], [third, thrice]] as const) {
      assert.equal(by.original(localOf(address)), once);
      assert.equal(by.original(localOf(address).replace('first', 'other')), undefined);
    }
    assert.equal(first.original(localOf(once)), 'alice@example.org');
    // The first host knows its own separator.
    for (const separator of ['+', '-']) {
      const theirs = `SRS0${separator}abcd${separator}yf=example.org=alice@first.example`;
      assert.equal(third.original(localOf(third.rewritten(second.rewritten(theirs)))), theirs);
    }
  });

  test('what can not be written so stays as it is', () => {
    const ours = new World().make();
    for (const address of ['', 'postmaster', '"a b"@example.org', 'alice@[192.0.2.1]', `${'x'.repeat(240)}@example.org`]) {
      assert.equal(ours.rewritten(address), address);
    }
  });
});
