/**
 * What every register has to keep, whoever keeps the map: run against the simulated one, the file, the file
 * over its socket, and etcd with one node and three (test/thirdparty/etcd). A world says how to get a client
 * and how time goes.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { VALUE_BYTES_MAX, WRITES_MAX } from '../../../src/register/limits.js';
import type {
  Entry,
  Outcome,
  Range,
  ReadResult,
  Register,
  Session,
  Watch,
  WatchListener,
  Write,
} from '../../../src/register/port.js';

export interface World {
  /** A new client, as of another process. */
  client(): Register;
  /** Lets time go on until `isTrue`, or fails with `what`. */
  until(isTrue: () => boolean, what: string): Promise<void>;
  nowMs(): number;
  stop(): Promise<void>;
}

const TTL_MS = 3_000;

/** A register with its answers as promises. */
export class Hand {
  readonly register: Register;
  readonly #world: World;

  constructor(world: World, register = world.client()) {
    this.#world = world;
    this.register = register;
  }

  async write(...writes: readonly Write[]): Promise<readonly Outcome[]> {
    const outcomes: Outcome[] = [];
    let count = 0;
    this.register.write(writes, (index, outcome) => {
      assert.equal(outcomes[index], undefined, 'a write is settled once');
      outcomes[index] = outcome;
      count += 1;
    });
    assert.equal(count, 0, 'nothing is called from inside the call');
    await this.#world.until(() => count === writes.length, `${String(writes.length)} writes are settled`);
    return outcomes;
  }

  async one(write: Write): Promise<Outcome> {
    const [outcome] = await this.write(write);
    assert.ok(outcome !== undefined);
    return outcome;
  }

  /** Must be done; answers the revision. */
  async put(key: string, value: string | null, ifRevision = 0, more: Partial<Write> = {}): Promise<number> {
    const outcome = await this.one({ key, value, ifRevision, ...more });
    assert.ok(outcome.kind === 'done', `${key}: ${JSON.stringify(outcome)}`);
    return outcome.revision;
  }

  async read(range: Range): Promise<ReadResult> {
    const results: ReadResult[] = [];
    this.register.read(range, (result) => {
      results.push(result);
    });
    assert.equal(results.length, 0, 'nothing is called from inside the call');
    await this.#world.until(() => results.length > 0, 'a read is answered');
    return results[0] as ReadResult;
  }

  async list(prefix: string): Promise<readonly Entry[]> {
    const result = await this.read({ prefix });
    assert.ok(result.kind === 'entries', JSON.stringify(result));
    return result.entries;
  }

  async get(key: string): Promise<Entry | undefined> {
    const result = await this.read({ key });
    assert.ok(result.kind === 'entries', JSON.stringify(result));
    return result.entries[0];
  }

  watch(...prefixes: readonly string[]): Watcher {
    return new Watcher(this.register, prefixes, this.#world);
  }

  async session(ttlMs = TTL_MS): Promise<Lease> {
    const lease = new Lease(this.register, ttlMs, this.#world);
    await this.#world.until(() => lease.isOpen, 'a session opens');
    return lease;
  }
}

export class Lease {
  readonly session: Session;
  isOpen = false;
  lost = '';
  readonly #world: World;

  constructor(register: Register, ttlMs: number, world: World) {
    this.#world = world;
    this.session = register.openSession(ttlMs, {
      onOpen: () => {
        this.isOpen = true;
      },
      onLost: (why) => {
        this.lost = why;
      },
    });
    assert.equal(this.isOpen, false, 'nothing is called from inside the call');
  }

  async close(): Promise<boolean> {
    const known: boolean[] = [];
    this.session.close((isKnown) => {
      known.push(isKnown);
    });
    assert.equal(known.length, 0, 'nothing is called from inside the call');
    await this.#world.until(() => known.length > 0, 'a session is closed');
    return known[0] === true;
  }
}

/** Keeps what a watch told, as text, and the map that follows from it. */
export class Watcher implements WatchListener {
  readonly news: string[] = [];
  readonly map = new Map<string, string>();
  readonly watch: Watch;
  isCurrent = false;
  readonly #world: World;

  constructor(register: Register, prefixes: readonly string[], world: World) {
    this.#world = world;
    this.watch = register.watch(prefixes, this);
    assert.equal(this.news.length, 0, 'nothing is called from inside the call');
  }

  onSnapshot(entries: readonly Entry[], deleted: readonly string[]): void {
    assert.equal(this.isCurrent, false, 'a snapshot ends a gap');
    this.isCurrent = true;
    for (const key of deleted) {
      assert.ok(this.map.delete(key), `${key} is told to be gone, and was never told`);
    }
    for (const { key, value } of entries) this.map.set(key, value);
    assert.deepEqual(
      [...this.map.keys()].sort(),
      entries.map(({ key }) => key),
      'what was told and is not there is told to be gone',
    );
    this.news.push(
      `snapshot ${entries.map(({ key }) => key).join(' ')}${
        deleted.length > 0 ? ` without ${deleted.join(' ')}` : ''
      }`,
    );
  }

  onChange({ key, value }: Entry): void {
    assert.ok(this.isCurrent, 'changes come only behind a snapshot');
    this.map.set(key, value);
    this.news.push(`${key}=${value}`);
  }

  onDeleted(key: string): void {
    assert.ok(this.isCurrent && this.map.delete(key), `${key} is told to be deleted, and was never told`);
    this.news.push(`-${key}`);
  }

  onAway(): void {
    assert.ok(this.isCurrent, 'away is told once');
    this.isCurrent = false;
    this.news.push('away');
  }

  async sees(...news: readonly string[]): Promise<void> {
    await this.#world.until(
      () => this.news.length >= news.length,
      `a watch tells ${news.join(', ')}; told: ${this.news.join(', ')}`,
    );
    assert.deepEqual(this.news.splice(0), news);
  }
}

/** Registers the contract as tests under `name`. */
export function contract(name: string, open: () => Promise<World>): void {
  const check = (what: string, run: (world: World) => Promise<void>): void => {
    test(`${name}: ${what}`, async () => {
      const world = await open();
      try {
        await run(world);
      } finally {
        await world.stop();
      }
    });
  };
  for (const group of [WRITES, WATCHES, SESSIONS, BOUNDS]) {
    for (const [what, run] of Object.entries(group)) check(what, run);
  }
}

type Checks = Readonly<Record<string, (world: World) => Promise<void>>>;

const WRITES: Checks = {
  'a key is made only where none is, changed and deleted only at the revision named': async (world) => {
    const hand = new Hand(world);
    const first = await hand.put('a/1', 'x');
    assert.deepEqual(await hand.get('a/1'), { key: 'a/1', value: 'x', revision: first, session: '' });
    assert.deepEqual(await hand.one({ key: 'a/1', value: 'y', ifRevision: 0 }), {
      kind: 'stale',
      entry: { key: 'a/1', value: 'x', revision: first, session: '' },
      guard: '',
    });
    const second = await hand.put('a/1', 'y', first);
    assert.ok(second > first, 'revisions grow');
    assert.equal((await hand.one({ key: 'a/1', value: null, ifRevision: first })).kind, 'stale');
    await hand.put('a/1', null, second);
    assert.deepEqual(await hand.one({ key: 'a/1', value: 'z', ifRevision: second }), {
      kind: 'stale',
      entry: undefined,
      guard: '',
    });
    assert.equal(await hand.get('a/1'), undefined);
    assert.ok(await hand.put('a/1', 'z') > second, 'a key made anew has a newer revision');
  },

  'where a value is named, the key and each guard must have it beside the revision': async (world) => {
    const hand = new Hand(world);
    const first = await hand.put('v/1', 'x');
    const other = await hand.put('v/2', 'é');
    const entry = { key: 'v/1', value: 'x', revision: first, session: '' };
    const write = { key: 'v/1', value: 'y', ifRevision: first };
    assert.deepEqual(await hand.one({ ...write, ifValue: 'w' }), { kind: 'stale', entry, guard: '' });
    assert.deepEqual(await hand.one({ ...write, ifRevision: first - 1, ifValue: 'x' }), {
      kind: 'stale',
      entry,
      guard: '',
    });
    assert.deepEqual(await hand.one({ ...write, guards: [{ key: 'v/2', revision: other, value: 'e' }] }), {
      kind: 'stale',
      entry,
      guard: 'v/2',
    });
    assert.equal((await hand.one({ key: 'v/3', value: 'y', ifRevision: 0, ifValue: '' })).kind, 'stale');
    await hand.put('v/1', 'y', first, { ifValue: 'x', guards: [{ key: 'v/2', revision: other, value: 'é' }] });
  },

  'a stale write fails none beside it': async (world) => {
    const hand = new Hand(world);
    await hand.put('b/1', 'x');
    const outcomes = await hand.write({ key: 'b/0', value: 'x', ifRevision: 0 }, {
      key: 'b/1',
      value: 'y',
      ifRevision: 0,
    }, { key: 'b/2', value: 'x', ifRevision: 0 });
    assert.deepEqual(outcomes.map(({ kind }) => kind), ['done', 'stale', 'done']);
    assert.deepEqual((await hand.list('b/')).map(({ key, value }) => key + value), ['b/0x', 'b/1x', 'b/2x']);
  },

  'hundreds of keys read in one turn are each answered with their own': async (world) => {
    const hand = new Hand(world);
    const keys = Array.from({ length: 300 }, (_, i) => `r/${String(i).padStart(3, '0')}`);
    await hand.write(...keys.filter((_, i) => i % 3 > 0).map((key) => ({ key, value: key, ifRevision: 0 })));
    const asked = [...keys, ...keys.slice(0, 5)];
    const read = await Promise.all(asked.map((key) => hand.get(key)));
    assert.deepEqual(
      read.map((entry) => entry?.value),
      asked.map((key) => (Number(key.slice(2)) % 3 > 0 ? key : undefined)),
    );
  },

  'hundreds of writes of one call are all settled, each by itself': async (world) => {
    const hand = new Hand(world);
    const keys = Array.from({ length: 400 }, (_, i) => `c/${String(i).padStart(3, '0')}`);
    const made = await hand.write(...keys.map((key) => ({ key, value: key, ifRevision: 0 })));
    assert.ok(made.every(({ kind }) => kind === 'done'));
    const entries = await hand.list('c/');
    assert.deepEqual(entries.map(({ key }) => key), keys);
    for (const [i, outcome] of made.entries()) {
      assert.equal(
        outcome.kind === 'done' && outcome.revision,
        entries[i]?.revision,
        'done tells the revision that is read',
      );
    }
    const changed = await hand.write(
      ...entries.map(({ key, revision }, i) => ({
        key,
        value: 'new',
        ifRevision: i % 3 === 0 ? revision - 1 : revision,
      })),
    );
    assert.deepEqual(changed.map(({ kind }) => kind), keys.map((_, i) => (i % 3 === 0 ? 'stale' : 'done')));
  },

  'two writes of one key in one call go one after the other': async (world) => {
    const hand = new Hand(world);
    const outcomes = await hand.write({ key: 'd', value: '1', ifRevision: 0 }, {
      key: 'd',
      value: '2',
      ifRevision: 0,
    }, { key: 'd', value: '3', ifRevision: 0 });
    assert.deepEqual(outcomes.map(({ kind }) => kind), ['done', 'stale', 'stale']);
    assert.equal((await hand.get('d'))?.value, '1');
  },

  'a guard that does not hold keeps a write back, and is named': async (world) => {
    const hand = new Hand(world);
    const mine = await hand.put('e/mine', '1');
    const newer = await hand.put('e/mine', '2', mine);
    const guarded = (revision: number, absent: string): Promise<Outcome> =>
      hand.one({
        key: 'e/new',
        value: 'x',
        ifRevision: 0,
        guards: [{ key: 'e/mine', revision }, { key: absent, revision: 0 }],
      });
    assert.deepEqual(await guarded(mine, 'e/none'), { kind: 'stale', entry: undefined, guard: 'e/mine' });
    assert.deepEqual(await guarded(newer, 'e/mine'), { kind: 'stale', entry: undefined, guard: 'e/mine' });
    assert.equal(await hand.get('e/new'), undefined);
    assert.equal((await guarded(newer, 'e/none')).kind, 'done');
    // Both its own compare and a guard fail: what stands there is told all the same.
    const both = await hand.one({
      key: 'e/new',
      value: 'y',
      ifRevision: 0,
      guards: [{ key: 'e/mine', revision: mine }],
    });
    assert.equal(both.kind === 'stale' && both.entry?.value, 'x');
  },

  'of two writes of one call that each guard the key of the other, one is done': async (world) => {
    const hand = new Hand(world);
    const outcomes = await hand.write(
      { key: 'f/1', value: 'x', ifRevision: 0, guards: [{ key: 'f/2', revision: 0 }] },
      { key: 'f/2', value: 'x', ifRevision: 0, guards: [{ key: 'f/1', revision: 0 }] },
    );
    // They go as two transactions, which may overtake one another.
    assert.deepEqual(outcomes.map(({ kind }) => kind).sort(), ['done', 'stale']);
    assert.equal((await hand.list('f/')).length, 1);
  },

  'of many clients that change one key at one revision, one does': async (world) => {
    const hands = Array.from({ length: 4 }, () => new Hand(world));
    let revision = 0;
    for (let round = 0; round < 5; round++) {
      const outcomes = await Promise.all(
        hands.map((hand, i) =>
          hand.one({ key: 'g', value: `${String(round)}.${String(i)}`, ifRevision: revision })
        ),
      );
      const [winner, ...others] = outcomes.filter(({ kind }) => kind === 'done');
      assert.ok(winner?.kind === 'done' && others.length === 0, JSON.stringify(outcomes));
      revision = winner.revision;
      for (const hand of hands) {
        assert.equal((await hand.get('g'))?.revision, revision, 'every client reads what was settled');
      }
    }
  },

  'a range is one key, or all with a prefix, in their order; texts come back as they were': async (world) => {
    const hand = new Hand(world);
    const value = '{"a":"ä€😀\\n\\u0000"}';
    await hand.write(
      ...['h/b', 'h/a', 'h/a/1', 'h', 'h0', 'i'].map((key) => ({ key, value, ifRevision: 0 })),
    );
    assert.deepEqual((await hand.list('h/')).map(({ key }) => key), ['h/a', 'h/a/1', 'h/b']);
    assert.deepEqual((await hand.list('')).map(({ key }) => key), ['h', 'h/a', 'h/a/1', 'h/b', 'h0', 'i']);
    assert.deepEqual(await hand.list('none/'), []);
    assert.equal((await hand.get('h'))?.value, value);
  },
};

const WATCHES: Checks = {
  'a watch tells what is there, then each change of its prefixes in order': async (world) => {
    const hand = new Hand(world);
    const other = new Hand(world);
    const first = await hand.put('a/1', 'x');
    const watcher = hand.watch('a/', 'b/');
    await watcher.sees('snapshot a/1');
    const second = await other.put('a/1', 'y', first);
    await other.put('c/1', 'unseen');
    await other.put('a/1', null, second);
    await other.put('a/1', 'z');
    await watcher.sees('a/1=y', '-a/1', 'a/1=z');
    await other.put('b/1', 'x');
    await watcher.sees('b/1=x');
    watcher.watch.close();
    await other.put('b/2', 'x');
    await hand.get('b/2');
    await watcher.sees();
  },

  'two watches of one client hear the same': async (world) => {
    const hand = new Hand(world);
    const [one, two] = [hand.watch('a/'), hand.watch('a/')];
    await one.sees('snapshot ');
    await two.sees('snapshot ');
    for (let i = 0; i < 20; i++) await hand.put(`a/${String(i)}`, 'x');
    const news = Array.from({ length: 20 }, (_, i) => `a/${String(i)}=x`);
    await one.sees(...news);
    await two.sees(...news);
  },
};

const SESSIONS: Checks = {
  'keys of a session stand as long as it is kept alive, and end when it is closed': async (world) => {
    const hand = new Hand(world);
    const other = new Hand(world);
    const watcher = other.watch('s/');
    await watcher.sees('snapshot ');
    const before = world.nowMs();
    const lease = await hand.session();
    assert.ok(lease.session.validUntilMs > before && lease.session.validUntilMs < world.nowMs() + TTL_MS);
    const revision = await hand.put('s/1', 'x', 0, { session: lease.session });
    await hand.put('s/2', 'stays');
    assert.equal((await other.get('s/1'))?.session, lease.session.id);
    const until = world.nowMs() + TTL_MS * 1.5;
    await world.until(() => world.nowMs() > until, 'longer than its time goes by');
    assert.ok(lease.session.validUntilMs > world.nowMs() && lease.lost === '', 'it is renewed');
    assert.equal((await other.get('s/1'))?.revision, revision);
    const id = lease.session.id;
    assert.equal(await lease.close(), true);
    assert.deepEqual([lease.session.validUntilMs, lease.session.id], [0, ''], `${id} is over`);
    assert.deepEqual((await other.list('s/')).map(({ key }) => key), ['s/2']);
    await watcher.sees('s/1=x', 's/2=stays', '-s/1');
    assert.deepEqual(
      (await hand.one({ key: 's/3', value: 'x', ifRevision: 0, session: lease.session })).kind,
      'refused',
    );
  },

  'keys of a session end when its client is gone, not before their time': async (world) => {
    const hand = new Hand(world);
    const other = new Hand(world);
    const lease = await hand.session();
    await hand.put('s/1', 'x', 0, { session: lease.session });
    const { validUntilMs } = lease.session;
    hand.register.close();
    const watcher = other.watch('s/');
    await watcher.sees('snapshot s/1');
    await watcher.sees('-s/1');
    assert.ok(world.nowMs() > validUntilMs, 'what the holder counts on ends first');
  },

  'a write that comes without the session lets its key stay': async (world) => {
    const hand = new Hand(world);
    const lease = await hand.session();
    const first = await hand.put('s/1', 'x', 0, { session: lease.session });
    const second = await hand.put('s/1', 'y', first);
    await lease.close();
    assert.deepEqual(await hand.get('s/1'), { key: 's/1', value: 'y', revision: second, session: '' });
  },

  'with and without session in one call: each as it says': async (world) => {
    const hand = new Hand(world);
    const lease = await hand.session();
    const outcomes = await hand.write(
      ...[0, 1, 2, 3].map((i) => ({
        key: `s/${String(i)}`,
        value: 'x',
        ifRevision: 0,
        session: i % 2 === 0 ? lease.session : undefined,
      })),
    );
    assert.ok(outcomes.every(({ kind }) => kind === 'done'), JSON.stringify(outcomes));
    await lease.close();
    assert.deepEqual((await hand.list('s/')).map(({ key }) => key), ['s/1', 's/3']);
  },
};

const BOUNDS: Checks = {
  'what is past a limit is refused before it is sent': async (world) => {
    const hand = new Hand(world);
    const bad: Write[] = [
      { key: '', value: 'x', ifRevision: 0 },
      { key: 'a b', value: 'x', ifRevision: 0 },
      { key: 'x'.repeat(2_000), value: 'x', ifRevision: 0 },
      { key: 'a', value: 'x', ifRevision: -1 },
      { key: 'a', value: 'x', ifRevision: 0.5 },
      { key: 'a', value: '\ud800', ifRevision: 0 },
      { key: 'a', value: 'ä'.repeat(VALUE_BYTES_MAX / 2 + 1), ifRevision: 0 },
      { key: 'a', value: 'x', ifRevision: 0, guards: [{ key: '', revision: 0 }] },
      {
        key: 'a',
        value: 'x',
        ifRevision: 0,
        guards: Array.from({ length: 17 }, (_, i) => ({ key: `g${String(i)}`, revision: 0 })),
      },
    ];
    const outcomes = await hand.write(...bad, {
      key: 'good',
      value: 'ä'.repeat(VALUE_BYTES_MAX / 2),
      ifRevision: 0,
      guards: Array.from({ length: 16 }, (_, i) => ({ key: `g${String(i)}`, revision: 0 })),
    });
    for (const outcome of outcomes.slice(0, -1)) {
      assert.ok(outcome.kind === 'refused' && outcome.reason === 'limit', JSON.stringify(outcome));
    }
    assert.equal(outcomes.at(-1)?.kind, 'done');
    assert.deepEqual((await hand.list('')).map(({ key }) => key), ['good']);
    assert.equal((await hand.read({ key: 'a b' })).kind, 'unreachable');
  },

  'a closed register answers everything that was asked of it': async (world) => {
    const hand = new Hand(world);
    await hand.put('a', 'x');
    const lease = await hand.session();
    const answers: string[] = [];
    hand.register.write([{ key: 'b', value: 'x', ifRevision: 0 }], (_, outcome) => {
      answers.push(outcome.kind);
    });
    hand.register.read({ prefix: '' }, ({ kind }) => {
      answers.push(kind);
    });
    lease.session.close((isKnown) => {
      answers.push(String(isKnown));
    });
    hand.register.close();
    assert.deepEqual(answers, [], 'nothing is called from inside the call');
    await world.until(() => answers.length === 3, 'what was asked is answered');
    assert.deepEqual(answers.sort(), ['false', 'refused', 'unreachable']);
    assert.equal(hand.register.state.isUp, false);
    const late = await hand.one({ key: 'c', value: 'x', ifRevision: 0 });
    assert.ok(late.kind === 'refused' && late.reason === 'closed');
    assert.equal((await hand.read({ key: 'a' })).kind, 'unreachable');
    hand.register.close();
    const other = new Hand(world);
    assert.deepEqual(
      (await other.list('')).map(({ key }) => key),
      ['a'],
      'a write that was refused is not applied',
    );
  },

  'more writes than may wait are refused, none is forgotten': async (world) => {
    const hand = new Hand(world);
    const outcomes = await hand.write(
      ...Array.from(
        { length: WRITES_MAX + 10 },
        (_, i) => ({ key: `w/${String(i % 600)}`, value: 'x', ifRevision: 7 }),
      ),
    );
    const refused = outcomes.filter((outcome) => outcome.kind === 'refused' && outcome.reason === 'full');
    assert.equal(refused.length, 10);
    assert.equal(
      outcomes.filter(({ kind }) => kind === 'stale').length,
      WRITES_MAX,
      'all others were looked at',
    );
  },
};
