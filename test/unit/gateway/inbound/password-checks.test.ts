/** Checks of passwords: how many at once, who waits behind whom, what is remembered and for how long. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PasswordChecks } from '../../../../src/gateway/inbound/auth/password-checks.js';
import type { Verdict } from '../../../../src/gateway/inbound/auth/password-checks.js';
import { Verifiers } from '../../../../src/gateway/inbound/auth/verifiers.js';
import type { ScryptVerifier, User } from '../../../../src/gateway/inbound/auth/users.js';
import { SystemSecrets } from '../../../../src/platform/node/secrets.js';

const USUAL: ScryptVerifier = { kind: 'scrypt', logCost: 1, blockSize: 1, parallelization: 1, salt: new Uint8Array(8), hash: new Uint8Array(32) };

/** Hashes that end when the test says so; the hash of a password is its text. */
class Kit {
  nowMs = 0;
  readonly users = new Map<string, User>();
  readonly running: { readonly password: string; readonly end: () => void }[] = [];
  readonly said: string[] = [];
  hashes = 0;
  readonly checks = new PasswordChecks({
    directory: new Verifiers({ find: (name) => this.users.get(name), haveScram: false, usual: USUAL }, {
      deriveKey: (password) => new Promise((resolve) => {
        this.hashes++;
        this.running.push({ password, end: () => { resolve(hashOf(password)); } });
      }),
      secrets: new SystemSecrets(),
    }),
    secrets: new SystemSecrets(),
    clock: { nowMs: () => this.nowMs, wallMs: () => 0 },
  });

  add(name: string, password: string): void {
    const verifier: ScryptVerifier = { kind: 'scrypt', logCost: 1, blockSize: 1, parallelization: 1, salt: new Uint8Array(8), hash: hashOf(password) };
    this.users.set(name, { name, verifier, addresses: [] });
  }

  ask(name: string, password: string, client = 'client'): void {
    this.checks.check(name, password, client, (verdict: Verdict) => { this.said.push(`${password} ${verdict}`); });
  }

  /** The one that runs longest ends. */
  async end(): Promise<void> {
    this.running.shift()?.end();
    for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  }
}

function hashOf(password: string): Uint8Array {
  return Uint8Array.from({ length: 32 }, (_none, index) => password.charCodeAt(index) || 0);
}

describe('checks of passwords', () => {
  test('run two at a time; a line of a hundred waits, the next hears later', async () => {
    const kit = new Kit();
    kit.add('a', 'right');
    for (let count = 0; count < 102; count++) kit.ask('a', `p${String(count)}`, `client${String(count)}`);
    assert.deepEqual([kit.running.map(({ password }) => password), kit.said], [['p0', 'p1'], []]);
    kit.ask('a', 'one-more');
    assert.deepEqual(kit.said, ['one-more later']);
    await kit.end();
    assert.deepEqual(kit.running.map(({ password }) => password), ['p1', 'p2']);
    assert.deepEqual(kit.said, ['one-more later', 'p0 no']);
  });

  test('who was wrong lately stands behind all others, and never takes the last place', async () => {
    const kit = new Kit();
    kit.add('good', 'right');
    kit.ask('x', 'guess', 'attacker');
    await kit.end();
    for (let count = 0; count < 10; count++) kit.ask('x', `guess${String(count)}`, 'attacker');
    assert.deepEqual(kit.running.map(({ password }) => password), ['guess0']);
    for (const one of ['a', 'b', 'c']) kit.ask('good', `right-${one}`, `somebody-${one}`);
    kit.ask('good', 'right', 'another');
    assert.deepEqual(kit.running.map(({ password }) => password), ['guess0', 'right-a']);
    await kit.end();
    assert.deepEqual(kit.running.map(({ password }) => password), ['right-a', 'right-b']);
    await kit.end();
    await kit.end();
    assert.deepEqual(kit.running.map(({ password }) => password), ['right-c', 'right']);
    await kit.end();
    await kit.end();
    assert.ok(kit.said.includes('right yes'));
    assert.deepEqual(kit.running.map(({ password }) => password), ['guess1']);
  });

  test('who was wrong stands behind the others for ten minutes, and no longer', async () => {
    for (const [nowMs, next] of [[599_999, 'other'], [600_000, 'again']] as const) {
      const kit = new Kit();
      kit.ask('x', 'guess', 'attacker');
      await kit.end();
      kit.nowMs = nowMs;
      for (const count of ['1', '2']) kit.ask('x', `before${count}`, `somebody${count}`);
      kit.ask('x', 'again', 'attacker');
      kit.ask('x', 'other', 'somebody-else');
      await kit.end();
      assert.deepEqual(kit.running.map(({ password }) => password), ['before2', next]);
    }
  });

  test('a client that was right in the last day stands in front of all, unless it was wrong lately too', async () => {
    const kit = new Kit();
    kit.add('good', 'right');
    kit.ask('good', 'right', 'home');
    await kit.end();
    kit.add('other', 'secret');
    for (let count = 0; count < 10; count++) kit.ask('x', `guess${String(count)}`, `attacker${String(count)}`);
    kit.ask('other', 'secret', 'home');
    await kit.end();
    assert.deepEqual(kit.running.map(({ password }) => password), ['guess1', 'secret']);
    await kit.end();
    await kit.end();
    // From the same address.
    kit.ask('other', 'typo', 'home');
    while (kit.running.length > 0) await kit.end();
    for (let count = 0; count < 4; count++) kit.ask('x', `again${String(count)}`, `stranger${String(count)}`);
    kit.ask('other', 'typo2', 'home');
    await kit.end();
    await kit.end();
    assert.deepEqual(kit.running.map(({ password }) => password), ['again2', 'again3']);
    while (kit.running.length > 0) await kit.end();
    kit.nowMs = 86_400_000;
    for (let count = 0; count < 4; count++) kit.ask('x', `late${String(count)}`, `visitor${String(count)}`);
    kit.ask('other', 'typo3', 'home');
    await kit.end();
    assert.deepEqual(kit.running.map(({ password }) => password), ['late1', 'late2']);
  });

  test('guesses that one client has in line cost one hash before it stands behind the others', async () => {
    const kit = new Kit();
    kit.add('good', 'right');
    for (let count = 0; count < 20; count++) kit.ask('x', `guess${String(count)}`, 'attacker');
    kit.ask('good', 'right', 'somebody');
    await kit.end();
    assert.deepEqual(kit.running.map(({ password }) => password), ['guess1', 'right']);
    while (kit.running.length > 0) await kit.end();
    assert.equal(kit.said.length, 21);
  });

  test('those whom a proxy did not tell stand behind who has not been wrong, before who has, and never take the last place', async () => {
    const kit = new Kit();
    kit.add('good', 'right');
    kit.add('other', 'secret');
    const running = (): string[] => kit.running.map(({ password }) => password);
    kit.ask('x', 'guess', 'attacker');
    await kit.end();
    kit.ask('x', 'guess0', 'attacker');
    kit.ask('x', 'guess1', 'attacker');
    for (let count = 0; count < 150; count++) kit.ask('x', `hidden${String(count)}`, '');
    assert.equal(kit.said.filter((each) => each.endsWith(' later')).length, 50);
    kit.ask('good', 'right', 'somebody');
    kit.ask('x', 'first', 'another');
    assert.deepEqual(running(), ['guess0', 'right'], 'their line is not full for others, and one place is free');
    await kit.end();
    assert.deepEqual(running(), ['right', 'first']);
    await kit.end();
    await kit.end();
    assert.deepEqual(running(), ['hidden0']);
    await kit.end();
    assert.deepEqual(running(), ['hidden1'], 'one that was wrong puts none of them behind');
    for (let count = 2; count < 100; count++) await kit.end();
    kit.ask('other', 'secret', '');
    await kit.end();
    assert.deepEqual(running(), ['secret']);
    await kit.end();
    assert.deepEqual(running(), ['guess1']);
    // Nor does a right one put them in front.
    kit.ask('x', 'hidden', '');
    assert.equal(kit.checks.check('x', 'gone', '', () => assert.fail())(), true, 'who goes leaves it');
    kit.ask('x', 'second', 'one-more');
    kit.ask('x', 'third', 'one-more');
    await kit.end();
    assert.deepEqual(running(), ['second', 'third']);
    while (kit.running.length > 0) await kit.end();
    assert.equal(kit.said.at(-1), 'hidden no');
  });

  test('one who is known and checked all the time takes one place, and the others go on in the next one', async () => {
    const kit = new Kit();
    kit.add('good', 'right');
    const running = (): string[] => kit.running.map(({ password }) => password);
    kit.ask('good', 'right-a', 'home');
    for (let count = 0; count < 3; count++) kit.ask('x', `hidden${String(count)}`, '');
    assert.deepEqual(running(), ['right-a', 'hidden0']);
    for (const one of ['b', 'c']) {
      kit.ask('good', `right-${one}`, `home-${one}`);
      await kit.end();
      await kit.end();
    }
    assert.deepEqual(running(), ['right-c', 'hidden2']);
    await kit.end();
    assert.deepEqual(running(), ['hidden2'], 'one place is never theirs');
  });

  test('a line full of those who were wrong is not full for others', async () => {
    const kit = new Kit();
    kit.add('good', 'right');
    kit.ask('x', 'guess', 'attacker');
    await kit.end();
    for (let count = 0; count < 150; count++) kit.ask('x', `guess${String(count)}`, 'attacker');
    assert.equal(kit.said.filter((each) => each.endsWith(' later')).length, 49);
    kit.ask('good', 'right', 'somebody');
    assert.equal(kit.running.at(-1)?.password, 'right');
  });

  test('what was good is remembered for ten minutes, unless the verifier changes', async () => {
    const kit = new Kit();
    kit.add('a', 'right');
    kit.ask('a', 'right');
    await kit.end();
    kit.ask('a', 'right');
    assert.deepEqual([kit.said, kit.hashes], [['right yes', 'right yes'], 1]);
    kit.ask('a', 'wrong');
    assert.equal(kit.hashes, 2);
    await kit.end();
    kit.nowMs = 599_999;
    kit.ask('a', 'right');
    assert.equal(kit.hashes, 2);
    kit.nowMs = 600_001;
    kit.ask('a', 'right');
    assert.equal(kit.hashes, 3);
    await kit.end();
    kit.add('a', 'new');
    kit.ask('a', 'right');
    assert.equal(kit.hashes, 4);
    await kit.end();
    assert.equal(kit.said.at(-1), 'right no');
    kit.users.clear();
    kit.ask('a', 'right');
    await kit.end();
    assert.equal(kit.said.at(-1), 'right no', 'a user that is gone costs a hash as others do');
  });

  test('a client that was wrong elsewhere stands behind the others too', () => {
    const kit = new Kit();
    kit.checks.onWrong('guesser');
    for (let count = 0; count < 3; count++) kit.ask('x', `guess${String(count)}`, 'guesser');
    assert.deepEqual(kit.running.map(({ password }) => password), ['guess0'], 'one place is never theirs');
  });

  test('name and password do not run into one another', async () => {
    const kit = new Kit();
    kit.add('ab', 'c');
    kit.add('a', 'bc-not');
    kit.ask('ab', 'c');
    await kit.end();
    kit.ask('a', 'bc');
    assert.equal(kit.hashes, 2);
    await kit.end();
    assert.equal(kit.said.at(-1), 'bc no');
  });

  test('a hash that fails is no verdict', async () => {
    const said: Verdict[] = [];
    const checks = new PasswordChecks({
      directory: new Verifiers({ find: () => undefined, haveScram: false, usual: USUAL }, {
        deriveKey: () => Promise.reject(new Error('no memory')), secrets: new SystemSecrets(),
      }),
      secrets: new SystemSecrets(),
      clock: { nowMs: () => 0, wallMs: () => 0 },
    });
    await new Promise<void>((resolve) => {
      checks.check('a', 'b', 'c', (verdict) => {
        said.push(verdict);
        resolve();
      });
    });
    assert.deepEqual(said, ['later']);
  });
});
