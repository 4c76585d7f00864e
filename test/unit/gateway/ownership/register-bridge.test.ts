/**
 * The register as partitions use it: each kind of answer, the process's key, and who else lives; simulated.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Prng } from '../../../../src/base/prng.js';
import type { RegisterSink } from '../../../../src/gateway/ownership/ownership-register.js';
import type { PartitionRecord, PastTerm } from '../../../../src/protocol/partition-record.js';
import type { RegisterPort, Stamped } from '../../../../src/recovery/ownership/ports.js';
import { encodePartition } from '../../../../src/register/records.js';
import type { EndedCopy } from '../../../../src/register/records.js';
import { KeptLog } from '../../../scenario/ports.js';
import { Scheduler } from '../../../scenario/scheduler.js';
import { WorldRegister } from '../../../scenario/world-register.js';
import type { WorldProcess, WorldProcessOptions } from '../../../scenario/world-register.js';

const PARTITION = 'gw-1/0';
const WAIT_MS = 60_000;

class Sink implements RegisterSink {
  readonly told: string[] = [];
  stamped: Stamped | undefined;
  revision = '';
  sessionId = 0;
  newsCount = 0;

  onRecord(ticket: number, stamped: Stamped): void {
    this.stamped = stamped;
    this.told.push(`record ${String(ticket)}`);
  }

  onApplied(ticket: number, revision: string): void {
    this.revision = revision;
    this.told.push(`applied ${String(ticket)}`);
  }

  onNoAnswer(ticket: number): void {
    this.told.push(`no answer ${String(ticket)}`);
  }

  onSessionTied(ticket: number, sessionId: number): void {
    this.sessionId = sessionId;
    this.told.push(`tied ${String(ticket)}`);
  }

  onRules(ticket: number): void {
    this.told.push(`rules ${String(ticket)}`);
  }

  onNews(): void {
    this.newsCount += 1;
  }
}

class Gateway {
  readonly process: WorldProcess;
  readonly taken: string[] = [];
  heldCount = 0;

  constructor(world: TestWorld, options: Partial<WorldProcessOptions>) {
    const gatewayId = options.gatewayId ?? 'gw-1';
    this.process = world.register.start({
      gatewayId,
      incarnation: options.incarnation ?? world.register.draw(gatewayId).incarnation,
      ...options,
      onHeld: () => { this.heldCount += 1; },
      onTaken: (why) => { this.taken.push(why); },
    });
  }

  get bridge(): WorldProcess['bridge'] {
    return this.process.bridge;
  }

  port(partition = PARTITION): { readonly port: RegisterPort; readonly sink: Sink } {
    const sink = new Sink();
    return { port: this.bridge.portOf(partition, sink), sink };
  }
}

class TestWorld {
  readonly scheduler = new Scheduler();
  readonly log = new KeptLog(() => this.scheduler.nowMs, () => {});
  readonly register: WorldRegister;

  constructor(seed = 7) {
    this.register = new WorldRegister(this.scheduler, new Prng(seed), this.log);
  }

  run(ms: number): void {
    this.scheduler.runUntil(this.scheduler.nowMs + ms);
  }

  until(isTrue: () => boolean, what: string): void {
    const endMs = this.scheduler.nowMs + WAIT_MS;
    while (!isTrue()) assert.ok(this.scheduler.step() && this.scheduler.nowMs < endMs, what);
  }

  gateway(options: Partial<WorldProcessOptions> = {}): Gateway {
    const gateway = new Gateway(this, options);
    this.until(() => gateway.bridge.isHeld, 'the key of the process stands');
    return gateway;
  }

  /** Waits for the answer, which does not come inside the call. */
  ask(sink: Sink, call: () => void): string {
    const before = sink.told.length;
    call();
    assert.equal(sink.told.length, before, 'an answer never comes inside the call');
    this.until(() => sink.told.length > before, 'a question is answered');
    return sink.told.at(-1) ?? '';
  }

  key(key: string): string | undefined {
    return this.register.register.host.map.get(key)?.value;
  }
}

function record(gatewayId: string, incarnation: number, epoch = 1): PartitionRecord {
  const members = [{ storeId: 'store-a', bootId: 'b1' }];
  return { epoch, term: { number: epoch, nonce: 9 }, holder: { gatewayId, incarnation }, members, gaveUp: [], left: [], line: [] };
}

describe('a record', () => {
  test('is absent, made, read with its holder, changed and found stale', () => {
    const world = new TestWorld();
    const { port, sink } = world.gateway().port();
    assert.equal(world.ask(sink, () => { port.read(1); }), 'record 1');
    assert.deepEqual(sink.stamped as unknown, { revision: '0', record: undefined, hasSession: false });
    assert.equal(world.ask(sink, () => { port.change(2, '0', record('gw-1', 1)); }), 'applied 2');
    assert.equal(world.ask(sink, () => { port.read(3); }), 'record 3');
    assert.deepEqual(
      sink.stamped as unknown,
      { revision: sink.revision, record: record('gw-1', 1), hasSession: true, isDoubted: false },
    );
    assert.equal(world.ask(sink, () => { port.change(4, '0', record('gw-1', 1, 5)); }), 'record 4');
    assert.deepEqual(sink.stamped?.record, record('gw-1', 1), 'stale: what stands there');
    assert.equal(world.ask(sink, () => { port.change(5, sink.revision, record('gw-1', 7, 2)); }), 'applied 5');
    world.ask(sink, () => { port.read(6); });
    assert.equal(sink.stamped.hasSession, false, 'another incarnation of the holder is no session of it');
  });

  test('of a file that was made elsewhere is doubted until it is changed', () => {
    const world = new TestWorld();
    const before = world.gateway({ gatewayId: 'gw-1' }).port();
    world.ask(before.sink, () => { before.port.change(1, '0', record('gw-1', 1)); });
    const { map } = world.register.register.host;
    map.apply({ key: 'moved', value: '{}', ifRevision: 0, session: '', guards: [] }, []);
    const { port, sink } = world.gateway({ gatewayId: 'gw-2' }).port();
    world.ask(sink, () => { port.read(1); });
    assert.equal(sink.stamped?.isDoubted, true);
    const { revision } = sink.stamped;
    assert.equal(world.ask(sink, () => { port.change(2, revision, record('gw-1', 1, 2)); }), 'applied 2');
    world.ask(sink, () => { port.read(3); });
    assert.equal(sink.stamped.isDoubted, false);
  });

  test('of another value is news though it has the same revision: the register was put back', () => {
    const world = new TestWorld();
    const gateway = world.gateway();
    const { port, sink } = gateway.port();
    world.run(1_000);
    const backup = world.register.snapshot().copy();
    assert.equal(world.ask(sink, () => { port.change(1, '0', record('gw-1', 1, 5)); }), 'applied 1');
    world.run(1_000);
    backup.apply({ key: 'partitions/gw-1/0', value: encodePartition({ ...record('gw-1', 1, 2), members: [] }), ifRevision: 0, session: '', guards: [] }, []);
    assert.equal(String(backup.get('partitions/gw-1/0')?.revision), sink.revision.split(' ')[0]);
    const { newsCount } = sink;
    world.register.restore(backup);
    world.run(5_000);
    assert.ok(sink.newsCount > newsCount, 'it is told');
    assert.deepEqual(gateway.process.bridge.partition(PARTITION)?.stores, []);
  });

  for (const how of ['its own change', 'reading']) test(`is news when it is put back to what the watch told last, and the process knew a later one by ${how}`, () => {
    const world = new TestWorld();
    const gateway = world.gateway();
    const { port, sink } = gateway.port();
    world.run(1_000);
    assert.equal(world.ask(sink, () => { port.change(1, '0', record('gw-1', 1, 5)); }), 'applied 1');
    world.run(1_000);
    const backup = world.register.snapshot().copy();
    gateway.process.deafen('partitions/');
    const changer = how === 'reading' ? world.gateway({ gatewayId: 'gw-2' }).port() : { port, sink };
    assert.equal(world.ask(changer.sink, () => { changer.port.change(2, sink.revision, record('gw-1', 1, 6)); }), 'applied 2');
    if (how === 'reading') assert.equal(world.ask(sink, () => { port.read(3); }), 'record 3');
    world.run(1_000);
    gateway.process.deafen('nothing/');
    const { newsCount } = sink;
    world.register.restore(backup);
    world.run(5_000);
    assert.ok(sink.newsCount > newsCount, 'it is told');
  });

  test('of another value is neither changed nor tied to, though it has the revision that was read', () => {
    const world = new TestWorld();
    const gateway = world.gateway();
    const { port, sink } = gateway.port();
    world.run(1_000);
    const backup = world.register.snapshot().copy();
    assert.equal(world.ask(sink, () => { port.change(1, '0', record('gw-1', 1, 5)); }), 'applied 1');
    const { revision } = sink;
    const theirs = record('gw-2', 1, 6);
    const key = 'partitions/gw-1/0';
    backup.apply({ key, value: encodePartition(theirs), ifRevision: 0, session: '', guards: [] }, []);
    assert.equal(String(backup.get(key)?.revision), revision.split(' ')[0], 'the number came back');
    world.register.restore(backup);
    world.run(5_000);
    assert.equal(world.ask(sink, () => { port.tieSession(2, revision); }), 'record 2');
    assert.equal(world.ask(sink, () => { port.change(3, revision, record('gw-1', 1, 7)); }), 'record 3');
    assert.deepEqual(sink.stamped?.record, theirs);
    assert.equal(world.key(key), encodePartition(theirs));
  });

  test('that is gone counts as ended, as long as a store that was given up may have a copy', () => {
    const world = new TestWorld();
    const gateway = world.gateway();
    const { port, sink } = gateway.port();
    const { bridge } = gateway.process;
    const by = { who: 'ann', reason: 'burnt', wallMs: 1 };
    const answers: string[] = [];
    const add = (storeId: string, epoch: number): void => {
      bridge.addGivenUp(storeId, by, [{ partition: PARTITION, epoch, nonce: epoch + 1, line: [{ term: { number: 3, nonce: 4 }, epoch: epoch - 1 }] }], (why) => { answers.push(why); });
      world.run(1_000);
    };
    add('store-a', 9);
    add('store-b', 12);
    add('store-a', 8);
    assert.deepEqual(answers, ['', '', '']);
    world.ask(sink, () => { port.read(1); });
    const ended = { epoch: 12, term: { number: 12, nonce: 13 }, holder: { gatewayId: 'gw-1', incarnation: 0 }, members: [], gaveUp: [], left: [], line: [{ term: { number: 3, nonce: 4 }, epoch: 11 }] };
    assert.deepEqual(sink.stamped as unknown, { revision: '0', record: ended, hasSession: false, isDoubted: false });
    assert.deepEqual([...bridge.givenUp()].map(([storeId, copies]) => [storeId, copies.map(({ epoch }) => epoch)]), [['store-a', [9]], ['store-b', [12]]]);
    // It may be begun anew.
    assert.equal(world.ask(sink, () => { port.change(2, '0', record('gw-1', 1, 13)); }), 'applied 2');
    for (const [storeId, copies] of bridge.givenUp()) bridge.removeGivenUp(storeId, copies);
    world.run(1_000);
    assert.equal(bridge.givenUp().size, 0);
    world.ask(sink, () => { port.read(3); });
    assert.equal(sink.stamped?.record?.epoch, 13);
  });

  test('as many as a key may hold are written, the others are told; so is one that can\'t be read', () => {
    const world = new TestWorld();
    const { bridge } = world.gateway().process;
    const by = { who: 'ann', reason: 'burnt', wallMs: 1 };
    const answers: (readonly [string, number])[] = [];
    const line = Array.from({ length: 16 }, (_, n) => ({ term: { number: 1_795_994_900 - 2 * n, nonce: 2_718_281_828 }, epoch: 1_795_994_901 - 2 * n }));
    const copies = (count: number, of: readonly PastTerm[]): EndedCopy[] => Array.from({ length: count }, (_, n) => ({ partition: `gw-9/${String(n)}`, epoch: 2, nonce: 1, line: [...of] }));
    world.register.register.host.map.apply({ key: 'rules/given-up/store-c', value: '{}', ifRevision: 0, session: '', guards: [] }, []);
    for (const [storeId, of] of [['store-a', copies(258, [])], ['store-b', copies(100, line)], ['store-c', copies(3, [])]] as const) {
      bridge.addGivenUp(storeId, by, of, (why, left) => { answers.push([why, left.length]); });
      world.run(1_000);
    }
    const written = bridge.givenUp().get('store-b')?.length ?? 0;
    assert.ok(written >= 45 && written < 60, String(written));
    assert.equal(bridge.givenUp().get('store-a')?.length, 256);
    const noRoom = (left: number): readonly [string, number] => [`the register has no room for ${String(left)} of them, which wait on`, left];
    assert.deepEqual(answers, [noRoom(2), noRoom(100 - written), ["the key rules/given-up/store-c of the register can't be read: no version", 3]]);
  });

  test('whose answer is lost is not known, and was changed all the same', () => {
    const world = new TestWorld();
    const { port, sink } = world.gateway().port();
    world.register.lose({ replies: 1 });
    assert.equal(world.ask(sink, () => { port.change(1, '0', record('gw-1', 1)); }), 'no answer 1');
    world.register.lose({});
    world.run(3_000);
    world.ask(sink, () => { port.read(2); });
    assert.deepEqual(sink.stamped?.record, record('gw-1', 1));
  });

  test('gets no answer while the register is away, or the process is cut off', () => {
    for (const how of ['refusing', 'silent', 'cut'] as const) {
      const world = new TestWorld();
      const gateway = world.gateway();
      const { port, sink } = gateway.port();
      if (how === 'cut') gateway.process.cutOff();
      else world.register.goAway(how);
      assert.equal(world.ask(sink, () => { port.read(1); }), 'no answer 1', how);
      assert.equal(world.ask(sink, () => { port.change(2, '0', record('gw-1', 1)); }), 'no answer 2', how);
      assert.equal(world.ask(sink, () => { port.readRules(3, '0'); }), 'no answer 3', how);
      assert.notEqual(gateway.bridge.away, '', how);
      if (how === 'cut') gateway.process.mend();
      else world.register.comeBack();
      world.until(() => gateway.bridge.away === '', 'it is back');
      world.until(() => gateway.bridge.isHeld, 'and the key stands');
      assert.equal(world.ask(sink, () => { port.read(4); }), 'record 4', how);
    }
  });

  test('that can not be read is no answer, and is named once', () => {
    const world = new TestWorld();
    const gateway = world.gateway();
    const { port, sink } = gateway.port();
    gateway.process.client.write([{ key: 'partitions/gw-1/0', ifRevision: 0, value: '{}' }], () => {});
    world.run(100);
    assert.equal(world.ask(sink, () => { port.read(1); }), 'no answer 1');
    assert.equal(world.ask(sink, () => { port.read(2); }), 'no answer 2');
    assert.equal(world.log.count('can not be read'), 1);
  });
});

describe('a change that is to fail while a process has a session', () => {
  test('is not made while it has', () => {
    const world = new TestWorld();
    const [own, other] = [world.gateway(), world.gateway({ gatewayId: 'gw-2' })];
    const { port, sink } = own.port('gw-2/3');
    const theirs = other.port('gw-2/3');
    world.ask(theirs.sink, () => { theirs.port.change(1, '0', record('gw-2', 1)); });
    const { revision } = theirs.sink;
    const taken = record('gw-1', 1, 2);
    const unless = { gatewayId: 'gw-2', incarnation: 1 };
    assert.equal(world.ask(sink, () => { port.change(1, revision, taken, unless); }), 'record 1');
    assert.deepEqual(sink.stamped, { revision, record: record('gw-2', 1), hasSession: true, isDoubted: false });
    assert.equal(
      world.ask(sink, () => { port.change(2, revision, taken, { ...unless, incarnation: 5 }); }),
      'applied 2',
      'another incarnation has none',
    );
  });

  test('is made once its key is gone, and not if it comes back just then', () => {
    const world = new TestWorld();
    const own = world.gateway();
    const other = world.gateway({ gatewayId: 'gw-2' });
    const { port, sink } = own.port('gw-2/3');
    world.until(() => own.bridge.living().has('gw-2'), 'it is seen');
    other.process.kill();
    world.until(() => !own.bridge.living().has('gw-2'), 'its session runs out');
    const unless = { gatewayId: 'gw-2', incarnation: 1 };
    const { client } = own.process;
    // What the bridge reads is overtaken before it writes: another process of gw-2 has come.
    const { host } = world.register.register;
    const range = host.range.bind(host);
    host.range = (ranges, done) => {
      range(ranges, (answer) => {
        host.range = range;
        client.write([{ key: 'gateways/gw-2', ifRevision: 0, value: '{"version":1}' }], () => { done(answer); });
      });
    };
    assert.equal(world.ask(sink, () => { port.change(1, '0', record('gw-1', 1), unless); }), 'record 1');
    assert.equal(sink.stamped?.record, undefined);
    assert.equal(world.ask(sink, () => { port.change(2, '0', record('gw-1', 1), unless); }), 'applied 2');
  });
});

describe('the session', () => {
  test('is tied to a record that is unchanged, by one write for all that ask in a turn', () => {
    const world = new TestWorld();
    const gateway = world.gateway();
    const ports = Array.from({ length: 20 }, (_, i) => gateway.port(`gw-1/${String(i)}`));
    for (const { port } of ports) port.change(1, '0', record('gw-1', 1));
    world.until(() => ports.every(({ sink }) => sink.told.length === 1), 'records are made');
    const { id, endsMs } = gateway.bridge.session();
    assert.ok(id > 0 && endsMs > world.scheduler.nowMs);
    const before = world.register.snapshot().revision;
    for (const [i, { port, sink }] of ports.entries()) port.tieSession(2, i === 3 ? '0' : sink.revision);
    world.until(() => ports.every(({ sink }) => sink.told.length === 2), 'ties are answered');
    for (const [i, { sink }] of ports.entries()) {
      assert.deepEqual([sink.told[1], sink.sessionId], i === 3 ? ['record 2', 0] : ['tied 2', id]);
    }
    assert.ok(world.register.snapshot().revision - before <= 3, 'twenty partitions, a few writes');
  });

  test('that is lost is followed by another, under another number, and the key is written again', () => {
    const world = new TestWorld();
    const gateway = world.gateway();
    const { port, sink } = gateway.port();
    world.ask(sink, () => { port.change(1, '0', record('gw-1', 1)); });
    const first = gateway.bridge.session();
    gateway.process.cutOff();
    world.until(() => world.key('gateways/gw-1') === undefined, 'its session runs out');
    assert.ok(first.endsMs < world.scheduler.nowMs, 'it ended here before it did there');
    gateway.process.mend();
    world.until(() => gateway.bridge.session().id !== first.id && gateway.bridge.isHeld, 'it has another one');
    assert.equal(gateway.heldCount, 1);
    world.ask(sink, () => { port.tieSession(2, sink.revision); });
    assert.equal(sink.sessionId, gateway.bridge.session().id);
    assert.deepEqual(gateway.taken, []);
  });

  test('whose key was deleted by hand is followed by another', () => {
    const world = new TestWorld();
    const gateway = world.gateway();
    const { id } = gateway.bridge.session();
    const revision = world.register.register.host.map.get('gateways/gw-1')?.revision ?? 0;
    gateway.process.client.write([{ key: 'gateways/gw-1', ifRevision: revision, value: null }], () => {});
    world.until(() => gateway.bridge.isHeld && gateway.bridge.session().id !== id, 'it has another one');
    assert.notEqual(world.key('gateways/gw-1'), undefined);
  });

  test('goes on where a snapshot is restored that has it, and begins anew where not', () => {
    const world = new TestWorld();
    const empty = world.register.snapshot();
    const gateway = world.gateway();
    const { id } = gateway.bridge.session();
    const full = world.register.snapshot();
    world.register.restore(full);
    world.run(10_000);
    assert.equal(gateway.bridge.session().id, id);
    world.register.restore(empty);
    world.until(() => gateway.bridge.session().id > 0 && gateway.bridge.session().id !== id, 'another one');
    assert.notEqual(world.key('gateways/gw-1'), undefined);
    assert.deepEqual(gateway.taken, []);
  });

  test('is closed at a stop: the key is gone at once', () => {
    const world = new TestWorld();
    const gateway = world.gateway();
    let isClosed = false;
    gateway.process.close(() => { isClosed = true; });
    world.until(() => isClosed, 'it is closed');
    assert.equal(world.key('gateways/gw-1'), undefined);
  });

  test('stands through lost and late answers, or is followed by another', () => {
    const world = new TestWorld();
    const gateway = world.gateway();
    const { port, sink } = gateway.port();
    world.ask(sink, () => { port.change(1, '0', record('gw-1', 1)); });
    world.register.lose({ requests: 0.2, replies: 0.2 });
    world.register.delay(0.2, 4_000);
    let answers = 0;
    for (let ticket = 2; ticket < 60; ticket++) {
      const told = world.ask(sink, () => { port.tieSession(ticket, sink.revision); });
      if (told !== `tied ${String(ticket)}`) continue;
      answers += 1;
      assert.notEqual(sink.sessionId, 0);
    }
    assert.ok(answers > 10, String(answers));
    world.register.lose({});
    world.register.delay(0, 0);
    world.run(10_000);
    assert.ok(gateway.bridge.isHeld);
    assert.deepEqual(gateway.taken, []);
  });
});

describe('a second process of one gateway', () => {
  test('is not held, and is told who has the key, while the first one lives', () => {
    const world = new TestWorld();
    const first = world.gateway({ host: 'box-1' });
    const second = new Gateway(world, { host: 'box-2' });
    world.run(9_000);
    assert.deepEqual(second.taken, []);
    world.until(() => second.taken.length > 0, 'it is refused');
    assert.equal(second.taken.length, 1);
    assert.match(second.taken.join(), /^a process of gateway gw-1 runs on host box-1 \(incarnation 1\): stop that one/);
    assert.equal(second.heldCount, 0);
    assert.ok(first.bridge.isHeld);
    world.run(20_000);
    assert.equal(second.taken.length, 1);
  });

  test('goes on as soon as the session of one that died has run out', () => {
    const world = new TestWorld();
    world.gateway().process.kill();
    const second = world.gateway();
    assert.ok(world.scheduler.nowMs < 8_000, String(world.scheduler.nowMs));
    assert.deepEqual(second.taken, []);
    assert.deepEqual(second.bridge.living().get('gw-1')?.holder, { gatewayId: 'gw-1', incarnation: 2 });
  });

  test('goes on at once with the proof that the one before is dead, and only that one', () => {
    const world = new TestWorld();
    world.gateway().process.kill();
    const began = world.scheduler.nowMs;
    const second = world.gateway({ isProvenDead: (incarnation) => incarnation === 1 });
    assert.ok(world.scheduler.nowMs - began < 500);
    assert.ok(second.bridge.isProvenDead({ gatewayId: 'gw-1', incarnation: 1 }));
    assert.ok(!second.bridge.isProvenDead({ gatewayId: 'gw-2', incarnation: 1 }));
    assert.ok(!second.bridge.isProvenDead(second.bridge.self));
  });

  test('that came later ends the first one, which was away', () => {
    const world = new TestWorld();
    const first = world.gateway({ host: 'box-1' });
    first.process.cutOff();
    const second = world.gateway({ host: 'box-2' });
    first.process.mend();
    world.until(() => first.taken.length > 0, 'the first one is told');
    assert.match(first.taken[0] ?? '', /runs on host box-2 \(incarnation 2, started after this one\): stop that one/);
    assert.ok(second.bridge.isHeld);
    assert.equal(first.bridge.session().id, 0);
  });

  test('is not taken for alive while nobody could have told that it died', () => {
    const world = new TestWorld();
    world.gateway().process.kill();
    const second = new Gateway(world, {});
    world.run(1_000);
    world.register.goAway('silent');
    world.run(60_000);
    world.register.comeBack();
    world.until(() => second.bridge.isHeld, 'it goes on');
    assert.deepEqual(second.taken, []);
  });
});

describe('news', () => {
  test('of a record and of its holder reach its partition; partitions are met as they are', () => {
    const world = new TestWorld();
    const [own, other] = [world.gateway(), world.gateway({ gatewayId: 'gw-2' })];
    const met = (): unknown[] => [...own.bridge.partitions()];
    const { version } = own.bridge;
    const [mine, quiet] = [own.port('gw-2/3'), own.port('gw-3/3')];
    const theirs = other.port('gw-2/3');
    world.ask(theirs.sink, () => { theirs.port.change(1, '0', record('gw-2', 1)); });
    world.until(() => mine.sink.newsCount > 0, 'the record is news');
    world.ask(theirs.sink, () => { theirs.port.change(2, theirs.sink.revision, record('gw-2', 1, 2)); });
    world.run(100);
    const before = mine.sink.newsCount;
    world.ask(theirs.sink, () => { theirs.port.tieSession(3, theirs.sink.revision); });
    world.run(100);
    assert.equal(mine.sink.newsCount, before, 'a tie is none');
    other.process.kill();
    world.until(() => mine.sink.newsCount > before, 'the end of its session is news');
    assert.ok(own.bridge.version > version);
    assert.deepEqual(met(), [{ partition: 'gw-2/3', stores: ['store-a'], isEnded: false }]);
    assert.equal(quiet.sink.newsCount, 0);
  });

  for (const how of ['refusing', 'silent'] as const) {
    test(`of what others held, and when that was told, stay while the register is away (${how})`, () => {
      const world = new TestWorld();
      const [own, other] = [world.gateway(), world.gateway({ gatewayId: 'gw-2', addresses: ['10.1.0.2:9025'] })];
      const theirs = other.port('gw-2/3');
      world.ask(theirs.sink, () => { theirs.port.change(1, '0', record('gw-2', 1)); });
      world.until(() => own.bridge.heldByOthers().length > 0, 'it is told');
      const held = (isLiving: boolean): unknown => [{ holder: 'gw-2', isLiving, partitions: ['gw-2/3'] }];
      assert.deepEqual(own.bridge.heldByOthers(), held(true));
      assert.deepEqual(other.bridge.heldByOthers(), [], 'one own is none of others');
      other.process.kill();
      world.until(() => !own.bridge.living().has('gw-2'), 'the end of its session');
      assert.deepEqual([own.bridge.adminOf('gw-2'), own.bridge.adminOf('gw-3')], ['10.1.0.2:9025', null], 'it may live on there, cut off');
      world.register.goAway(how);
      world.until(() => own.bridge.away !== '', 'it is away');
      const { heardMs } = own.bridge;
      world.run(30_000);
      assert.deepEqual([own.bridge.heldByOthers(), own.bridge.heardMs], [held(false), heardMs]);
      world.register.comeBack();
      world.until(() => own.bridge.heardMs > heardMs, 'it is back');
    });
  }

  test('of what changed while the process was cut off come when it is back; nobody is dead meanwhile', () => {
    const world = new TestWorld();
    const [own, other] = [world.gateway(), world.gateway({ gatewayId: 'gw-2' })];
    const { sink } = own.port('gw-2/3');
    world.run(100);
    const sinceMs = own.bridge.living().get('gw-2')?.sinceMs ?? -1;
    const before = sink.newsCount;
    own.process.cutOff();
    const theirs = other.port('gw-2/3');
    world.ask(theirs.sink, () => { theirs.port.change(1, '0', record('gw-2', 1)); });
    world.run(10_000);
    assert.deepEqual([...own.bridge.living().keys()].sort(), ['gw-1', 'gw-2']);
    assert.equal(sink.newsCount, before);
    own.process.mend();
    world.until(() => sink.newsCount > before, 'it is told');
    world.until(() => own.bridge.isHeld, 'its key stands again');
    assert.equal(own.bridge.living().get('gw-2')?.sinceMs, sinceMs, 'the same session as before');
  });
});

test('rules are read once for all that ask in a turn', () => {
  const world = new TestWorld();
  const gateway = world.gateway();
  const other = world.gateway({ gatewayId: 'gw-2' });
  gateway.process.client.write([{ key: 'rules/retired/gw-9', ifRevision: 0, value: 'x' }], () => {});
  world.run(100);
  assert.deepEqual([[...gateway.bridge.retired()], [...other.bridge.retired()]], [['gw-9'], ['gw-9']], 'told by the watch');
  const ports = Array.from({ length: 16 }, (_, i) => gateway.port(`gw-1/${String(i)}`));
  const { host } = world.register.register;
  let reads = 0;
  const range = host.range.bind(host);
  host.range = (ranges, done) => {
    if (ranges.some((one) => 'prefix' in one)) reads += 1;
    range(ranges, done);
  };
  for (const { port } of ports) port.readRules(1, '0');
  world.until(() => ports.every(({ sink }) => sink.told[0] === 'rules 1'), 'all are answered');
  assert.equal(reads, 1);
  gateway.process.client.read({ key: 'rules/retired/gw-9' }, (result) => {
    const revision = result.kind === 'entries' ? (result.entries[0]?.revision ?? 0) : 0;
    gateway.process.client.write([{ key: 'rules/retired/gw-9', ifRevision: revision, value: null }], () => {});
  });
  world.run(100);
  assert.deepEqual([gateway.bridge.retired().size, other.bridge.retired().size], [0, 0]);
});

test('a rule that was made and deleted while the watch told nothing is forgotten with the next snapshot', () => {
  const world = new TestWorld();
  const { host } = world.register.register;
  const watch = host.watch.bind(host);
  host.watch = () => ({ close: () => {} });
  const own = world.gateway();
  host.watch = watch;
  const other = world.gateway({ gatewayId: 'gw-2' });
  const key = 'rules/retired/gw-9';
  other.process.client.write([{ key, ifRevision: 0, value: 'x' }], () => {});
  world.run(100);
  const { port, sink } = own.port();
  world.ask(sink, () => { port.readRules(1, '0'); });
  assert.deepEqual([...own.bridge.retired()], ['gw-9']);
  other.process.client.read({ key }, (result) => {
    const revision = result.kind === 'entries' ? (result.entries[0]?.revision ?? 0) : 0;
    other.process.client.write([{ key, ifRevision: revision, value: null }], () => {});
  });
  world.run(100);
  own.process.cutOff();
  world.run(1000);
  own.process.mend();
  world.until(() => own.bridge.retired().size === 0, 'the rule is forgotten');
});

test('a rule that was read stays, though the watch begins with an older state; and is forgotten when it is deleted', () => {
  const world = new TestWorld();
  const { host } = world.register.register;
  const range = host.range.bind(host);
  const late: (() => void)[] = [];
  // A watch begins with all that stands below its prefixes.
  host.range = (ranges, done) => {
    if (ranges.length < 3) range(ranges, done);
    else range(ranges, (...answer) => { late.push(() => { done(...answer); }); });
  };
  const own = world.gateway();
  host.range = range;
  const other = world.gateway({ gatewayId: 'gw-2' });
  const rule = { verb: 'suspend', queue: 'out', untilWallMs: 0, who: 'ann', reason: 'down', wallMs: 5 } as const;
  const answers: string[] = [];
  other.bridge.setQueueRule('gw-2-1-1', rule, (why) => { answers.push(why); });
  world.until(() => answers.length === 1, 'it is written');
  const { port, sink } = own.port();
  world.ask(sink, () => { port.readRules(1, '0'); });
  assert.deepEqual([...own.bridge.queueRules()], [['gw-2-1-1', rule]]);
  assert.ok(late.length > 0, 'the watch has not begun');
  for (const tell of late) {
    tell();
    assert.equal(own.bridge.queueRules().size, 1);
  }
  for (let i = 0; i < 1000; i++) {
    world.scheduler.step();
    assert.equal(own.bridge.queueRules().size, 1, 'it is obeyed all the time');
  }
  other.bridge.setQueueRule('gw-2-1-1', undefined, (why) => { answers.push(why); });
  world.until(() => own.bridge.queueRules().size === 0 && answers.length === 2, 'it is cancelled');
  assert.deepEqual(answers, ['', '']);
});

test('rules over queues are told as the same map until one changes; one that can not be read is passed over and said once', () => {
  const world = new TestWorld();
  const { bridge, process } = world.gateway();
  const rule = { verb: 'refuse', queue: 'a*', untilWallMs: 9, who: 'ann', reason: 'full', wallMs: 5 } as const;
  process.client.write([{ key: 'rules/queues/odd', ifRevision: 0, value: '{"version":1,"verb":"explode"}' }], () => {});
  bridge.setQueueRule('gw-1-1-1', rule, () => undefined);
  world.run(200);
  const told = bridge.queueRules();
  assert.deepEqual([...told], [['gw-1-1-1', rule]]);
  const { port, sink } = world.gateway({ gatewayId: 'gw-2' }).port();
  world.ask(sink, () => { port.change(1, '0', record('gw-2', 1)); });
  world.run(200);
  assert.equal(bridge.queueRules(), told, 'news of a partition are none of rules');
  assert.equal(world.log.lines.filter(({ fields }) => fields['key'] === 'rules/queues/odd').length, 1);
  process.client.write([{ key: 'rules/queues/gw-1-1-2', ifRevision: 0, value: JSON.stringify({ version: 1, ...rule }) }], () => {});
  world.run(200);
  assert.deepEqual([...bridge.queueRules().keys()], ['gw-1-1-1', 'gw-1-1-2']);
  world.register.goAway('refusing');
  world.run(10_000);
  const answers: string[] = [];
  bridge.setQueueRule('gw-1-1-1', undefined, (why) => { answers.push(why); });
  world.until(() => answers.length === 1, 'an answer');
  assert.match(answers[0] ?? '', /the register does not answer/);
  assert.equal(bridge.queueRules().size, 2, 'what stood last is obeyed');
});

test('an order that is left is changed by what stands there at that moment, and told as rules are', () => {
  const world = new TestWorld();
  const [own, other] = [world.gateway(), world.gateway({ gatewayId: 'gw-2' })];
  const order = {
    verb: 'delete', selector: { client: '192.0.2.7' }, who: 'ann', reason: 'flood', wallMs: 5, untilWallMs: 9, partitions: ['gw-3/0', 'gw-3/1', 'gw-3/2'],
  } as const;
  const answers: string[] = [];
  const done = (why: string): void => { answers.push(why); };
  own.bridge.changeLeftOrder('gw-1-1-1', () => order, done);
  world.until(() => other.bridge.leftOrders().size === 1, 'it is told');
  assert.deepEqual([...other.bridge.leftOrders()], [['gw-1-1-1', order]]);
  assert.equal(other.bridge.queueRules().size, 0);
  // Both are done with another part at the same time.
  for (const [{ bridge }, name] of [[own, 'gw-3/0'], [other, 'gw-3/2']] as const) {
    bridge.changeLeftOrder('gw-1-1-1', (known) => known && { ...known, partitions: known.partitions.filter((one) => one !== name) }, done);
  }
  world.until(() => answers.length === 3, 'answers');
  world.run(100);
  assert.deepEqual(own.bridge.leftOrders().get('gw-1-1-1')?.partitions, ['gw-3/1']);
  other.bridge.changeLeftOrder('gw-1-1-1', () => undefined, done);
  world.until(() => own.bridge.leftOrders().size === 0, 'it is gone');
  other.bridge.changeLeftOrder('gw-1-1-1', (known) => known, done);
  world.until(() => answers.length === 5, 'nothing is changed');
  assert.deepEqual(answers, ['', '', '', '', '']);
});

test('every question is answered once, and truly, whatever is lost, late, away or restored', () => {
  let [applied, tied, silent] = [0, 0, 0];
  for (let seed = 1; seed <= 40; seed++) {
    const world = new TestWorld(seed);
    const random = new Prng(seed + 99);
    const gateways = [world.gateway(), world.gateway({ gatewayId: 'gw-2' })];
    const parts = gateways.flatMap((gateway) => Array.from({ length: 4 }, (_, i) => {
      const partition = `gw-1/${String(i)}`;
      return { gateway, key: `partitions/${partition}`, epoch: 1, ticket: 0, asked: 0, ...gateway.port(partition) };
    }));
    /** Everything that ever stood there: a revision may come again once a snapshot is restored. */
    const stood = new Set<string>();
    const { host } = world.register.register;
    const follow = (): void => {
      host.watch(['partitions/'], host.map.revision, {
        onChanges: (changes) => {
          for (const { key, revision, entry } of changes) stood.add(`${key} ${String(revision)} ${entry?.value ?? ''}`);
        },
        onBroken: follow,
      });
    };
    follow();
    const snapshot = world.register.snapshot();
    for (let step = 0; step < 200; step++) {
      if (step === 20) world.register.lose({ requests: 0.05, replies: 0.05 });
      if (step === 20) world.register.delay(0.1, 3_000);
      if (random.below(60) === 0) world.register.goAway(random.below(2) === 0 ? 'silent' : 'refusing');
      else if (random.below(10) === 0) world.register.comeBack();
      if (random.below(100) === 0) world.register.restore(snapshot);
      if (random.below(30) === 0) gateways[random.below(2)]?.process.cutOff();
      else if (random.below(8) === 0) for (const { process } of gateways) process.mend();
      const part = random.pick(parts);
      if (part.sink.told.length === part.asked) {
        part.ticket += 1;
        part.asked += 1;
        part.epoch += 1;
        const { port, sink, ticket, gateway } = part;
        const { revision } = sink.stamped ?? { revision: '0' };
        const unless = random.below(2) === 0 ? undefined : { gatewayId: 'gw-1', incarnation: 1 };
        const made = record(gateway.bridge.self.gatewayId, 1, part.epoch);
        const calls = [
          () => { port.read(ticket); },
          () => { port.change(ticket, revision, made, unless); },
          () => { port.tieSession(ticket, revision); },
          () => { port.readRules(ticket, revision); },
        ];
        random.pick(calls)();
      }
      world.run(random.below(400));
    }
    world.register.comeBack();
    world.register.lose({});
    world.register.delay(0, 0);
    for (const { process } of gateways) process.mend();
    world.run(30_000);
    for (const { sink, asked, gateway } of parts) {
      assert.equal(sink.told.length, asked, `seed ${String(seed)}: ${sink.told.join(', ')}`);
      assert.equal(new Set(sink.told.map((text) => text.split(' ').at(-1))).size, asked, 'each ticket once');
      applied += sink.told.filter((text) => text.startsWith('applied')).length;
      tied += sink.told.filter((text) => text.startsWith('tied')).length;
      silent += sink.told.filter((text) => text.startsWith('no answer')).length;
      assert.ok(gateway.bridge.isHeld, 'the key stands at the end');
      assert.deepEqual(gateway.taken, []);
    }
    for (const { sink, key } of parts) {
      const { revision, record: read } = sink.stamped ?? { revision: '0', record: undefined };
      if (read === undefined) continue;
      const [number] = revision.split(' ');
      assert.ok(stood.has(`${key} ${String(number)} ${encodePartition(read)}`), 'what was read stood there at that revision');
    }
  }
  assert.ok(applied > 200 && tied > 200 && silent > 100, [applied, tied, silent].join());
});
