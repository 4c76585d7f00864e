/** The key of a process by itself: its arrows, and what it does as the register answers, forgets, or has another's. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { KeyState, PresenceKey, isValidKeyTransition } from '../../../src/register/presence-key.js';
import type { KeyStateValue, PresenceKeyOptions } from '../../../src/register/presence-key.js';
import { Hand } from './contract.js';
import { SimulatedWorld } from './simulated-world.js';

const { OPENING, LOOKING, WRITING, STANDING, REWRITING, CHECKING, WAITING, TAKEN, CLOSED } = KeyState;
const KEY = 'gateways/gw-1';

test('the arrows of a key', () => {
  const arrows: Readonly<Record<KeyStateValue, readonly KeyStateValue[]>> = {
    [OPENING]: [LOOKING],
    [LOOKING]: [WRITING, STANDING, WAITING, TAKEN, OPENING],
    [WRITING]: [STANDING, LOOKING, OPENING],
    [STANDING]: [REWRITING, CHECKING, OPENING],
    [REWRITING]: [STANDING, CHECKING, OPENING],
    [CHECKING]: [STANDING, OPENING],
    [WAITING]: [LOOKING, OPENING],
    [TAKEN]: [],
    [CLOSED]: [],
  };
  const states = Object.values(KeyState);
  for (const from of states) {
    for (const to of states) {
      const isArrow = arrows[from].includes(to) || (to === CLOSED && from !== CLOSED);
      assert.equal(isValidKeyTransition(from, to), isArrow, `${String(from)} to ${String(to)}`);
    }
  }
});

/** Its value is a number: that of the process, in its order of start; 0: of one that is known to be dead. */
class Keyed {
  readonly world: SimulatedWorld;
  readonly hand: Hand;
  readonly key: PresenceKey;
  readonly states: KeyStateValue[] = [];
  readonly standing: string[] = [];
  readonly taken: string[] = [];

  constructor(world = new SimulatedWorld(), yields: PresenceKeyOptions['yields'] = 'always') {
    this.world = world;
    this.hand = new Hand(world);
    const register = world.client();
    this.key = new PresenceKey({ key: KEY, owner: 'gateway gw-1', yields }, {
      register, clock: world.time, log: world.log,
      value: () => '3',
      writerOf: (value) => {
        if (value === '3') return 'we';
        return value === '0' ? 'nobody' : { where: `host box-${value}`, isLater: Number(value) > 3 };
      },
      onStanding: (value) => { this.standing.push(value); },
      onTaken: (why) => { this.taken.push(why); },
    });
    register.watch([KEY], {
      onSnapshot: () => undefined,
      onChange: (entry) => { this.key.onNews(entry); },
      onDeleted: () => { this.key.onNews(undefined); },
      onAway: () => undefined,
    });
    const tick = (): void => {
      if (this.key.state === CLOSED) return;
      this.key.tick(world.nowMs());
      if (this.states.at(-1) !== this.key.state) this.states.push(this.key.state);
      world.scheduler.after(1, tick);
    };
    world.scheduler.soon(tick);
  }

  async stands(): Promise<this> {
    await this.world.until(() => this.key.state === STANDING, 'it stands');
    return this;
  }

  /** Another process overwrites the key, with a session of its own. */
  async overwrite(value: string): Promise<{ close(done: () => void): void }> {
    const { session } = await this.hand.session();
    await this.hand.put(KEY, value, (await this.hand.get(KEY))?.revision, { session });
    return session;
  }
}

test('it is written, checked when news come, and written with another session when it is gone', async () => {
  const keyed = await new Keyed().stands();
  const { id } = keyed.key.session();
  keyed.states.length = 0;
  keyed.key.onNews(undefined);
  assert.equal(keyed.key.state, CHECKING);
  assert.deepEqual(keyed.key.session(), { id, endsMs: 0 }, 'nothing is done by it until it is known to stand');
  await keyed.stands();
  assert.equal(keyed.key.session().id, id);
  const entry = await keyed.hand.get(KEY);
  await keyed.hand.put(KEY, null, entry?.revision);
  await keyed.world.until(() => keyed.key.session().id === 0, 'it is gone');
  await keyed.stands();
  assert.notEqual(keyed.key.session().id, id);
  assert.ok([CHECKING, LOOKING, WRITING].every((state) => keyed.states.includes(state)), keyed.states.join());
  assert.deepEqual(keyed.standing, ['3', '3', '3']);
});

test('it is gone with its process, at once when that closes it', async () => {
  const keyed = await new Keyed().stands();
  keyed.key.close(() => undefined);
  keyed.world.run(2_000);
  assert.equal(await keyed.hand.get(KEY), undefined);
});

test('what it asked before it was closed is answered to nobody', async () => {
  const keyed = await new Keyed().stands();
  keyed.key.onNews(undefined);
  assert.equal(keyed.key.state, CHECKING);
  keyed.key.close(() => undefined);
  keyed.world.run(2_000);
  assert.deepEqual([keyed.key.state, keyed.standing], [CLOSED, ['3']]);
});

test('a session that a register forgot is followed by another', async () => {
  const keyed = await new Keyed().stands();
  const first = keyed.key.session().id;
  keyed.world.register.rollBack(1_000);
  await keyed.world.until(() => keyed.world.log.count('the session of this process is lost') > 0, 'it hears of it');
  await keyed.stands();
  assert.notEqual(keyed.key.session().id, first);
});

test('another process that took the key is waited for; it comes back when that has ended', async () => {
  const keyed = await new Keyed().stands();
  const session = await keyed.overwrite('2');
  await keyed.world.until(() => keyed.key.state === WAITING, 'it waits');
  assert.equal(keyed.key.session().id, 0);
  session.close(() => undefined);
  await keyed.stands();
  assert.deepEqual(keyed.taken, []);
});

test('a later process ends it at once, an older one after twice the time of a session', async () => {
  const later = await new Keyed().stands();
  await later.overwrite('9');
  const overwrittenMs = later.world.nowMs();
  await later.world.until(() => later.key.state === TAKEN, 'it is taken');
  assert.ok(later.world.nowMs() - overwrittenMs < 2_000);
  const why = 'a process of gateway gw-1 runs on host box-9: stop that one, or give one of the two another id';
  assert.deepEqual(later.taken, [why]);

  const world = new SimulatedWorld();
  await new Hand(world).put(KEY, '2');
  const startMs = world.nowMs();
  const older = new Keyed(world);
  await world.until(() => older.key.state === TAKEN, 'it is refused');
  assert.ok(world.nowMs() - startMs >= 10_000);
});

test('one of the dead, or of our own without our session, is overwritten', async () => {
  for (const value of ['0', '3']) {
    const world = new SimulatedWorld();
    await new Hand(world).put(KEY, value);
    const keyed = await new Keyed(world).stands();
    const entry = await keyed.hand.get(KEY);
    assert.deepEqual([entry?.value, Number(entry?.session)], ['3', keyed.key.session().id]);
  }
});

test('one that yields until its key stood is refused at its start, and never later; it overwrites nobody', async () => {
  const world = new SimulatedWorld();
  await new Hand(world).put(KEY, '2');
  const refused = new Keyed(world, 'until it stood');
  await world.until(() => refused.key.state === TAKEN, 'it is refused');

  const keyed = await new Keyed(new SimulatedWorld(), 'until it stood').stands();
  const session = await keyed.overwrite('9');
  keyed.world.run(60_000);
  assert.deepEqual([keyed.taken, (await keyed.hand.get(KEY))?.value], [[], '9']);
  assert.equal(keyed.world.log.lines.filter(({ level }) => level === 'error').length, 1);
  session.close(() => undefined);
  await keyed.stands();
});

test('a rewrite tells of the guard that failed, and of a session that ended before its answer', async () => {
  const keyed = await new Keyed().stands();
  const outcomes: unknown[] = [];
  const rewrite = (revision: number): void => {
    const guards = [{ key: 'partitions/gw-1/0', revision }];
    keyed.key.rewrite(guards, (outcome) => {
      outcomes.push(outcome?.kind === 'stale' ? outcome.guard : outcome?.kind);
    });
  };
  rewrite(0);
  await keyed.stands();
  rewrite(5);
  await keyed.stands();
  assert.deepEqual(outcomes, ['done', 'partitions/gw-1/0']);
  keyed.world.register.goAway('silent');
  rewrite(0);
  await keyed.world.until(() => outcomes.length > 2, 'it is answered');
  keyed.world.register.comeBack();
  await keyed.stands();
  assert.ok(outcomes[2] === 'unknown' || outcomes[2] === undefined, String(outcomes[2]));
});
