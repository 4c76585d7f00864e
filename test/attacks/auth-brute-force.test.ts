/**
 * Fifty who guess passwords at once, by counts: how many hashes run, how many wait, who hears "later", and behind how many a
 * good user stands. Hashes end when the test says so; all else is the gateway's own.
 *
 * Elsewhere: the line itself, test/unit/gateway/inbound/password-checks.test.ts; what it costs in time is measured by
 * `node dist/bench/micro/auth-attack.js`; exchanges spoiled in any place, the target auth of test/fuzz.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Authenticator } from '../../src/gateway/inbound/auth/authenticator.js';
import { toAscii } from '../../src/platform/node/idna.js';
import { parseUsers } from '../../src/gateway/inbound/auth/users.js';
import { Verifiers } from '../../src/gateway/inbound/auth/verifiers.js';
import { State } from '../../src/gateway/inbound/session/session-states.js';
import { SystemSecrets } from '../../src/platform/node/secrets.js';
import { FAKE_KEY } from '../dialog/people.js';
import { limits } from '../inbound/rates.js';
import { VirtualDesk } from './virtual-desk.js';
import type { VirtualClient } from './virtual-desk.js';

const ATTACKERS = 50;
const USERS = 20;
const secrets = new SystemSecrets();
const base64 = (bytes: Uint8Array | string): string => Buffer.from(bytes).toString('base64');
const plain = (user: string, password: string): string => `AUTH PLAIN ${base64(`\0${user}\0${password}`)}`;
const hashOf = (password: string): Uint8Array => secrets.sha256(Buffer.from(password, 'utf8'));

/** Hashes that end one by one, in the order in which they began. */
class Hashing {
  readonly running: { readonly password: string; readonly end: () => void }[] = [];
  begun = 0;
  atOnce = 0;

  derive(password: string): Promise<Uint8Array> {
    this.begun++;
    return new Promise((resolve) => {
      this.running.push({ password, end: () => { resolve(hashOf(password)); } });
      this.atOnce = Math.max(this.atOnce, this.running.length);
    });
  }

  /** The oldest ends, and what hangs on it is done. */
  async endOne(): Promise<string> {
    const oldest = this.running.shift();
    assert.ok(oldest !== undefined, 'a hash runs');
    oldest.end();
    for (let step = 0; step < 10; step++) await Promise.resolve();
    return oldest.password;
  }
}

/** `errors`: of a client in a minute; 0: as many as it likes. */
class Siege {
  readonly hashing = new Hashing();
  readonly world: VirtualDesk;

  constructor(errors = 0) {
    const lines = Array.from({ length: USERS }, (_none, i) => `user${String(i)}@b.example:{SCRYPT}10,8,1,${base64(hashOf('salt').subarray(0, 16))},${base64(hashOf(`secret${String(i)}`))}`);
    const directory = new Verifiers(parseUsers(lines.join('\n'), toAscii), { secrets, deriveKey: (password) => this.hashing.derive(password) });
    const clock = { nowMs: (): number => this.world.nowMs, wallMs: (): number => 0 };
    const authenticator = new Authenticator(directory, FAKE_KEY, { secrets, clock });
    this.world = new VirtualDesk({ isSubmission: true, isTlsFirst: true, authenticator, rates: errors === 0 ? undefined : limits(['client', 'errors', errors]) });
  }

  client(address: string): VirtualClient {
    const client = this.world.connect(address).secured();
    client.send('EHLO client.example\r\n').heard();
    return client;
  }

  attacker(index: number): VirtualClient {
    return this.client(`203.0.113.${String(index + 1)}`);
  }

  guess(client: VirtualClient, guess: string): void {
    client.send(`${plain('user1@b.example', guess)}\r\n`);
  }

  /** Every attacker has been wrong once. */
  async known(): Promise<VirtualClient[]> {
    const attackers = Array.from({ length: ATTACKERS }, (_none, index) => this.attacker(index));
    for (const attacker of attackers) this.guess(attacker, 'guess');
    while (this.hashing.running.length > 0) await this.hashing.endOne();
    for (const attacker of attackers) assert.equal(attacker.codes(), '535');
    return attackers;
  }
}

describe('fifty who guess', () => {
  test('have two hashes at a time and a hundred places in line; who finds none hears 454 4.7.0', async () => {
    const siege = new Siege();
    const attackers = Array.from({ length: 4 * ATTACKERS }, (_none, index) => siege.attacker(index % ATTACKERS));
    for (const [index, attacker] of attackers.entries()) siege.guess(attacker, `guess${String(index)}`);
    assert.equal(siege.hashing.running.length, 2);
    const later = attackers.filter((attacker) => attacker.session.state === State.COMMAND);
    assert.equal(later.length, 4 * ATTACKERS - 2 - 100);
    for (const attacker of later) assert.match(attacker.heard(), /^454 4\.7\.0 /);
    for (let checks = 2 + 100; checks > 0; checks--) await siege.hashing.endOne();
    assert.deepEqual([siege.hashing.atOnce, siege.hashing.begun], [2, 102]);
    for (const attacker of attackers.filter((each) => !later.includes(each))) assert.equal(attacker.codes(), '535');
  });

  test('fill no more than a hundred places behind the others, however many addresses take their turn', async () => {
    const siege = new Siege();
    let guesses = 0;
    let later = 0;
    let waiting: VirtualClient[] = [];
    for (let index = 0; index < 16; index++) {
      const clients = Array.from({ length: ATTACKERS }, () => siege.attacker(index));
      for (const client of clients) siege.guess(client, `guess${String(guesses++)}`);
      waiting.push(...clients);
      // Long enough for the first of them to be wrong: all others go behind.
      for (let ended = 0; ended < 3; ended++) await siege.hashing.endOne();
      const heard = waiting.filter(({ session }) => session.state === State.COMMAND);
      later += heard.filter((client) => client.codes() === '454').length;
      waiting = waiting.filter(({ session }) => session.state === State.CHECKING);
      assert.ok(waiting.length <= 2 + 2 * 100, `${String(waiting.length)} wait`);
    }
    assert.equal(guesses, 16 * ATTACKERS);
    assert.ok(later >= guesses - 16 * 3 - 202, `${String(later)} heard later`);
  });

  test('leave their places when they go: what nobody waits for costs no hash, and is told and counted', async () => {
    const siege = new Siege(12);
    const attackers = Array.from({ length: 10 }, () => siege.attacker(1));
    for (const [index, attacker] of attackers.entries()) siege.guess(attacker, `guess${String(index)}`);
    assert.equal(siege.hashing.begun, 2);
    for (const attacker of attackers.slice(0, 6)) attacker.leave();
    // Who ends its side may still read: it hears what became of its AUTH.
    for (const attacker of attackers.slice(6)) attacker.session.onEnd();
    for (const attacker of attackers.slice(6)) assert.match(attacker.heard(), /^501 5\.7\.0 /);
    assert.deepEqual(siege.world.rejections, Array.from({ length: 8 }, () => 'auth auth-cancelled'));
    while (siege.hashing.running.length > 0) await siege.hashing.endOne();
    assert.equal(siege.hashing.begun, 2);
    assert.deepEqual(siege.world.rejections.slice(8), ['auth auth-failed', 'auth auth-failed']);
    assert.match(siege.attacker(2).say('NOOP'), /^250 /);
    const next = siege.attacker(1);
    assert.equal(next.connection.isOver, false, 'ten errors of twelve');
    assert.match(next.say('NONSENSE'), /^500 /);
    assert.match(next.say('NONSENSE'), /^421 4\.7\.0 Too many errors/);
  });

  test('keep a good user waiting for one hash at most, however often they come', async () => {
    const siege = new Siege();
    const attackers = await siege.known();
    for (let user = 0; user < USERS; user++) {
      for (const attacker of attackers) {
        if (attacker.session.state === State.COMMAND && !attacker.connection.isOver) siege.guess(attacker, 'again');
      }
      const client = siege.client(`192.0.2.${String(user + 1)}`);
      client.send(`${plain(`user${String(user)}@b.example`, `secret${String(user)}`)}\r\n`);
      // A place is never theirs, and so its hash runs already.
      assert.ok(siege.hashing.running.some(({ password }) => password === `secret${String(user)}`), `user${String(user)}`);
      let ended = 0;
      while (client.session.user === '') {
        await siege.hashing.endOne();
        ended++;
      }
      assert.ok(ended <= 2, `behind ${String(ended - 1)} hashes`);
      assert.equal(client.codes(), '235');
    }
    assert.equal(siege.hashing.atOnce, 2);
  });

  test('do not fill the line of good users, who come all at once; those are in without a guess between them', async () => {
    const siege = new Siege();
    await siege.known();
    for (let index = 0; index < 150; index++) siege.guess(siege.attacker(index % ATTACKERS), 'again');
    const users = Array.from({ length: USERS }, (_none, index) => siege.client(`192.0.2.${String(index + 1)}`));
    for (const [index, user] of users.entries()) user.send(`${plain(`user${String(index)}@b.example`, `secret${String(index)}`)}\r\n`);
    const order: string[] = [];
    while (users.some((user) => user.session.user === '')) order.push(await siege.hashing.endOne());
    assert.ok(order.filter((password) => password === 'again').length <= 1, order.join());
    for (const user of users) assert.equal(user.codes(), '235');
    assert.equal(siege.hashing.atOnce, 2);
  });

  test('cost a user who is known nothing: no hash, and no place in line', async () => {
    const siege = new Siege();
    const first = siege.client('192.0.2.1');
    first.send(`${plain('user3@b.example', 'secret3')}\r\n`);
    await siege.hashing.endOne();
    assert.equal(first.codes(), '235');
    for (let index = 0; index < 200; index++) siege.guess(siege.attacker(index % ATTACKERS), 'guess');
    const { begun } = siege.hashing;
    const again = siege.client('192.0.2.1');
    assert.match(again.say(plain('user3@b.example', 'secret3')), /^235 /);
    assert.equal(siege.hashing.begun, begun);
    assert.equal(siege.client('192.0.2.2').say(plain('user3@b.example', 'secret4')), '454 4.7.0 Passwords can not be checked now; try again later', 'a guess at a known user is one like others');
    // Another user of a client that was right stands in front of them all.
    const colleague = siege.client('192.0.2.1');
    colleague.send(`${plain('user4@b.example', 'secret4')}\r\n`);
    for (let ended = 0; ended < 3; ended++) await siege.hashing.endOne();
    assert.equal(colleague.codes(), '235');
  });

  test('are sent away after three, hold nothing when they go while it is checked, and names tell nothing', async () => {
    const siege = new Siege();
    const client = siege.attacker(1);
    for (const [round, code] of ['535', '535', '421'].entries()) {
      client.send(`${plain(round === 1 ? 'nobody@b.example' : 'user1@b.example', 'guess')}\r\n`);
      await siege.hashing.endOne();
      assert.equal(client.codes(), code);
    }
    assert.equal(client.connection.isOver, true);
    assert.equal(siege.hashing.begun, 3, 'a name that nobody has costs a hash, too');
    const leaving = siege.attacker(2);
    leaving.send(`${plain('user1@b.example', 'secret1')}\r\nMAIL FROM:<user1@b.example>\r\n`);
    leaving.leave();
    await siege.hashing.endOne();
    assert.deepEqual([leaving.heard(), leaving.session.user, siege.world.reception.reservedBytes], ['', '', 0]);
  });
});
