/**
 * What becomes of an entry whose time is up, or that an operator holds or deletes: each cell of the table in
 * src/gateway/queue/interruptions.ts; and that the head of a strict queue is freed by what happens to itself only (G3).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import type { Ordering } from '../../src/gateway/mail-types.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { doById } from './by-id.js';
import { checkAll } from './checks.js';
import { coreOf, stateOf, onlyQueue } from './inspect.js';
import type { Letter } from './letters.js';
import { World } from './world.js';

const S = EntryState;
const LIFE_MS = 3000;
type Verb = 'hold' | 'delete';

function holdAnswers(world: World, held: boolean): void {
  for (const store of world.stores) world.holdAnswers(store, held);
}

function why(world: World, verb: Verb, id: number): string {
  const [only, ...others] = doById(coreOf(world), verb, id).whys;
  assert.ok(only !== undefined && others.length === 0, 'one queue has it');
  return only;
}

function attemptsOf(made: World, { id }: Letter): number {
  const { entries: { table }, registry } = coreOf(made);
  const [row] = [...registry.queues()].map(({ handle }) => table.index.find(id, handle)).filter((found) => found !== 0);
  return row === undefined ? 0 : table.attempts.get(row);
}

/** A world with one message in `q1` in this state, and what lets it leave the state by itself. */
interface Placed {
  readonly world: World;
  readonly letter: Letter;
  letGo(): void;
}

function world(ordering: Ordering = 'fifo'): World {
  const made = World.started({ lifetimeMs: LIFE_MS, bounceLifetimeMs: LIFE_MS, queues: [{ name: 'q1', ordering }, { name: 'q2' }] });
  made.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'defer');
  return made;
}

const PLACE: Readonly<Record<'STORING' | 'READY' | 'IN_FLIGHT' | 'DEFERRED' | 'REPORTING' | 'HELD', (ordering?: Ordering) => Placed>> = {
  STORING: () => {
    const made = world();
    holdAnswers(made, true);
    return { world: made, letter: made.submit(['q1']), letGo: () => { holdAnswers(made, false); } };
  },
  READY: () => {
    const made = world();
    made.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'unreachable');
    const letter = made.submit(['q1']);
    made.run(100);
    return { world: made, letter, letGo: () => {} };
  },
  IN_FLIGHT: (ordering) => {
    const made = world(ordering);
    made.hops.replyMs = 2 * LIFE_MS;
    const letter = made.submit(['q1']);
    made.run(100);
    return { world: made, letter, letGo: () => { made.hops.replyMs = 2; } };
  },
  DEFERRED: () => {
    const made = world();
    const letter = made.submit(['q1']);
    made.run(100);
    return { world: made, letter, letGo: () => {} };
  },
  REPORTING: (ordering) => {
    const made = world(ordering);
    made.hops.script = ({ queueName, address }) => (queueName === 'senders' ? 'accept' : address.startsWith('0') ? 'reject' : 'defer');
    const letter = made.submit(['q1'], { recipients: 2 });
    made.until(() => letter.attempts.get('q1') === 1);
    holdAnswers(made, true);
    made.run(100);
    return { world: made, letter, letGo: () => { holdAnswers(made, false); } };
  },
  HELD: () => {
    const made = world();
    const letter = made.submit(['q1']);
    made.run(100);
    assert.equal(why(made, 'hold', letter.id), '');
    return { world: made, letter, letGo: () => {} };
  },
};
type Place = keyof typeof PLACE;

describe('an attempt that goes on', () => {
  for (const ordering of ['fifo', 'strict'] as const) {
    test(`${ordering}: is not counted, keeps its place, and waits for nothing`, () => {
      const made = world(ordering);
      made.hops.script = ({ address, earlier }) => (earlier === 0 && address.startsWith('1') ? 'untried' : earlier === 0 ? 'accept' : 'defer');
      const letter = made.submit(['q1'], { recipients: 2 });
      made.until(() => letter.attempts.get('q1') === 2, 100, 'the rest is tried at once');
      assert.equal(attemptsOf(made, letter), 0);
      made.until(() => attemptsOf(made, letter) === 1, 100, 'which is the first attempt');
      assert.equal(letter.arrivals.get('0@q1.example'), 1);
      made.untilQuiet();
      assert.equal(letter.reports.get('failure 1@q1.example')?.size, 1);
    });

    for (const verb of ['hold', 'delete'] as const) {
      test(`${ordering}: rests for an operator who could not ${verb} it`, () => {
        const made = world(ordering);
        made.hops.replyMs = 200;
        made.hops.script = () => 'untried';
        const letter = made.submit(['q1'], { recipients: 2 });
        made.run(1000);
        assert.equal(why(made, verb, letter.id), 'it is being delivered at this moment');
        made.run(300);
        assert.equal(why(made, verb, letter.id), '');
      });
    }
  }

  test('ends with its time', () => {
    const made = world();
    made.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'untried');
    const letter = made.submit(['q1'], { recipients: 2 });
    made.run(LIFE_MS + 2000);
    assert.equal(letter.reports.get('failure 0@q1.example')?.size, 1);
  });
});

describe('the time of an entry is up while it is', () => {
  test('HELD by an operator: its lifetime stands still, and goes on when it is released', () => {
    const { world: made, letter } = PLACE.HELD();
    made.run(3 * LIFE_MS);
    assert.deepEqual([stateOf(coreOf(made), 'q1', letter), letter.reports.size], [S.HELD, 0]);
    assert.deepEqual(doById(coreOf(made), 'release', letter.id).whys, ['']);
    made.run(LIFE_MS - 700);
    assert.equal(letter.reports.size, 0, 'the time that it was held does not count');
    made.run(2000);
    assert.equal(letter.reports.get('failure 0@q1.example')?.size, 1);
    made.untilQuiet();
    checkAll(made.letters, made.queueNames);
  });

  for (const name of ['READY', 'DEFERRED'] as const) {
    test(`${name}: it fails, and is reported`, () => {
      const { world: made, letter } = PLACE[name]();
      assert.equal(stateOf(coreOf(made), 'q1', letter), S[name]);
      made.run(LIFE_MS - 500);
      assert.equal(letter.reports.size, 0);
      made.run(2000);
      assert.equal(letter.reports.get('failure 0@q1.example')?.size, 1);
      made.untilQuiet();
      checkAll(made.letters, made.queueNames);
    });
  }

  test('STORING: it waits for its commit', () => {
    const { world: made, letter, letGo } = PLACE.STORING();
    made.run(LIFE_MS + 1000);
    assert.equal(stateOf(coreOf(made), 'q1', letter), S.STORING);
    letGo();
    made.untilQuiet();
    assert.equal(letter.outcome, COMMITTED);
    checkAll(made.letters, made.queueNames);
    assert.equal(letter.reports.size, 1);
  });

  for (const ordering of ['fifo', 'strict'] as const) {
    test(`IN_FLIGHT, ${ordering}: the attempt ends first; what it did not deliver has failed and is not tried again`, () => {
      const { world: made, letter, letGo } = PLACE.IN_FLIGHT(ordering);
      made.run(LIFE_MS + 1000);
      assert.equal(stateOf(coreOf(made), 'q1', letter), S.IN_FLIGHT);
      letGo();
      made.untilQuiet();
      assert.equal(letter.attempts.get('q1'), 1);
      assert.equal(letter.reports.get('failure 0@q1.example')?.size, 1);
      checkAll(made.letters, made.queueNames);
    });

    test(`REPORTING, ${ordering}: the report is made, then what is still to be tried fails and is reported in its turn`, () => {
      const { world: made, letter, letGo } = PLACE.REPORTING(ordering);
      made.run(LIFE_MS + 1000);
      assert.equal(stateOf(coreOf(made), 'q1', letter), S.REPORTING);
      letGo();
      // Other mail wakes the queue meanwhile.
      made.hops.script = ({ messageId }) => (messageId === letter.id ? 'defer' : 'accept');
      for (let i = 0; i < 50; i++) {
        made.submit(['q1']);
        made.run(5);
      }
      made.untilQuiet();
      assert.equal(letter.attempts.get('q1'), 1);
      assert.deepEqual([...letter.reports.keys()].sort(), ['failure 0@q1.example', 'failure 1@q1.example']);
      checkAll(made.letters, made.queueNames);
    });
  }
});

describe('an operator', () => {
  const REFUSED: readonly (readonly [Place, string])[] = [
    ['STORING', 'it is being stored at this moment'],
    ['IN_FLIGHT', 'it is being delivered at this moment'],
    ['REPORTING', 'it is being reported at this moment'],
  ];
  for (const verb of ['hold', 'delete'] as const) {
    for (const [name, text] of REFUSED) {
      test(`can not ${verb} what is ${name}: it goes on`, () => {
        const { world: made, letter, letGo } = PLACE[name]();
        assert.equal(why(made, verb, letter.id), text);
        assert.equal(stateOf(coreOf(made), 'q1', letter), S[name]);
        letGo();
        made.untilQuiet();
        checkAll(made.letters, made.queueNames);
      });
    }

    }

  for (const name of ['READY', 'DEFERRED'] as const) {
    test(`holds what is ${name}`, () => {
      const { world: made, letter } = PLACE[name]();
      assert.equal(stateOf(coreOf(made), 'q1', letter), S[name]);
      assert.equal(why(made, 'hold', letter.id), '');
      assert.equal(stateOf(coreOf(made), 'q1', letter), S.HELD);
    });
  }

  test('holds what is HELD: it stays as it is, and counts as done', () => {
    const { world: made, letter } = PLACE.HELD();
    assert.equal(why(made, 'hold', letter.id), '');
    assert.equal(onlyQueue(made.mirror('q1')).heldCount, 1);
  });

  for (const name of ['READY', 'DEFERRED', 'HELD'] as const) {
    test(`deletes what is ${name}: it ends, logged by recipient, unreported, for good`, () => {
      const { world: made, letter } = PLACE[name]();
      assert.equal(why(made, 'delete', letter.id), '');
      assert.equal(stateOf(coreOf(made), 'q1', letter), undefined);
      assert.equal(letter.ended.get('0@q1.example'), 'deleted by an operator');
      made.untilQuiet();
      assert.deepEqual(doById(coreOf(made), 'delete', letter.id).whys, [], 'nobody has it');
      const queue = made.gateway.core?.registry.byName('q1')[0];
      assert.ok(queue !== undefined);
      assert.deepEqual([queue.length, queue.heldCount, queue.deferredCount, queue.readyCount], [0, 0, 0, 0]);
      made.gateway.kill();
      made.gateway.start();
      made.untilQuiet();
      assert.equal(letter.reports.size + letter.arrivals.size, 0);
    });
  }

});

describe('the head of a strict queue holds it whatever becomes of others', () => {
  /** Its head is partly rejected and partly deferred, and being reported; two more wait behind it. */
  function reported(lifetimes: { lifetimeMs: number; bounceLifetimeMs: number }): { readonly made: World; readonly head: Letter; readonly second: Letter; readonly third: Letter } {
    const made = World.started({ queues: [{ name: 's', ordering: 'strict' }, { name: 'q2' }], ...lifetimes });
    made.hops.script = ({ queueName, address, messageId, earlier }) => {
      if (queueName !== 's' || messageId !== head.id) return queueName === 'q2' ? 'reject' : 'accept';
      return address.startsWith('0') ? 'reject' : earlier < 2 ? 'defer' : 'accept';
    };
    const head = made.submit(['s'], { recipients: 2 });
    const second = made.submit(['s']);
    const third = made.submit(['s'], { reversePath: '' });
    made.until(() => head.attempts.get('s') === 1);
    holdAnswers(made, true);
    made.run(100);
    assert.equal(stateOf(coreOf(made), 's', head), S.REPORTING);
    return { made, head, second, third };
  }

  function ends(made: World, head: Letter, second: Letter): void {
    made.run(1000);
    assert.equal(second.attempts.get('s') ?? 0, 0, 'nobody starts while the head is reported');
    holdAnswers(made, false);
    made.untilQuiet();
    assert.equal(made.hops.arrivals.find(({ queueName }) => queueName === 's')?.messageId, head.id);
    assert.equal(second.arrivals.size, 1);
  }

  for (const verb of ['hold', 'delete'] as const) {
    test(`another message is ${verb === 'hold' ? 'held' : 'deleted'} while the head is being reported`, () => {
      const { made, head, second, third } = reported({ lifetimeMs: 3_600_000, bounceLifetimeMs: 3_600_000 });
      assert.equal(why(made, verb, third.id), '');
      if (verb === 'hold') {
        made.run(1000);
        assert.equal(second.attempts.get('s') ?? 0, 0, 'nobody starts while the head is reported');
        assert.equal(why(made, 'delete', third.id), '');
      }
      ends(made, head, second);
    });
  }

  test('another message expires while the head is being reported', () => {
    const { made, head, second, third } = reported({ lifetimeMs: 3_600_000, bounceLifetimeMs: 1000 });
    made.run(2100);
    assert.equal(third.ended.get('0@s.example'), 'null reverse-path');
    ends(made, head, second);
  });

  test('another message is held while the head is deferred', () => {
    const made = World.started({ queues: [{ name: 's', ordering: 'strict' }] });
    made.hops.script = ({ messageId, earlier }) => (messageId === head.id && earlier < 1 ? 'defer' : 'accept');
    const head = made.submit(['s']);
    const second = made.submit(['s']);
    const third = made.submit(['s']);
    made.run(200);
    assert.equal(why(made, 'hold', third.id), '');
    made.run(600);
    assert.equal(second.attempts.get('s') ?? 0, 0);
    made.until(() => second.arrivals.size === 1, 2000);
    assert.deepEqual(made.hops.arrivals.map(({ messageId }) => messageId), [head.id, second.id]);
  });

  test('a head that was held comes back behind the one that is head now, also over a restart', () => {
    const made = World.started({ queues: [{ name: 's', ordering: 'strict' }] });
    const deferred = new Set<number>();
    made.hops.script = ({ messageId }) => (deferred.has(messageId) ? 'defer' : 'accept');
    const [first, second, third] = made.submitMany(3, ['s']);
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    for (const letter of [first, second]) deferred.add(letter.id);
    made.until(() => stateOf(coreOf(made), 's', first) === S.READY && first.attempts.get('s') === 1);
    assert.equal(why(made, 'hold', first.id), '');
    made.until(() => second.attempts.get('s') === 1);
    made.run(50);
    doById(coreOf(made), 'release', first.id);
    made.until(() => stateOf(coreOf(made), 's', first) === S.READY);
    made.run(100);
    deferred.delete(first.id);
    made.gateway.kill();
    made.gateway.start();
    made.until(() => second.attempts.get('s') === 2, 5000, 'the head is tried again');
    assert.equal(first.attempts.get('s'), 1, 'nobody overtakes the head');
    deferred.clear();
    made.untilQuiet();
    assert.equal(made.hops.arrivals[0]?.messageId, second.id);
    assert.equal(made.hops.arrivals.length, 3);
  });

  test('a released message stays behind a head that is deferred after it came back', () => {
    const made = World.started({ queues: [{ name: 's', ordering: 'strict' }] });
    const deferred = new Set<number>();
    made.hops.script = ({ messageId }) => (deferred.has(messageId) ? 'defer' : 'accept');
    made.hops.replyMs = 400;
    const [first, second] = made.submitMany(2, ['s']);
    assert.ok(first !== undefined && second !== undefined);
    for (const letter of [first, second]) deferred.add(letter.id);
    made.until(() => stateOf(coreOf(made), 's', first) === S.READY && first.attempts.get('s') === 1);
    assert.equal(why(made, 'hold', first.id), '');
    made.until(() => stateOf(coreOf(made), 's', second) === S.IN_FLIGHT);
    doById(coreOf(made), 'release', first.id);
    made.until(() => stateOf(coreOf(made), 's', first) === S.READY);
    assert.equal(stateOf(coreOf(made), 's', second), S.IN_FLIGHT);
    made.until(() => second.attempts.get('s') === 2, 5000, 'the head is tried again');
    assert.equal(first.attempts.get('s'), 1, 'nobody overtakes the head');
    deferred.clear();
    made.untilQuiet();
  });
});
