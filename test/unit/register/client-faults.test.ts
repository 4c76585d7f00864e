/**
 * Clients of a simulated register that fails in every way it can, by seeds: what was told has to be so,
 * whatever was lost, late, away or restored.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Prng } from '../../../src/base/prng.js';
import { DEFAULT_CLIENT_OPTIONS, RegisterClient } from '../../../src/register/client/register-client.js';
import type { Line, LineHandlers } from '../../../src/register/line.js';
import type { Outcome } from '../../../src/register/port.js';
import { KeptLog } from '../../scenario/ports.js';
import { Hand, Lease, Watcher } from './contract.js';
import { SimulatedWorld } from './simulated-world.js';

const SEEDS = 150;
const FAULTY_MS = 60_000;
/** A deadline, a tick, and what the seconds of a round take. */
const LATEST_MS = DEFAULT_CLIENT_OPTIONS.callTimeoutMs + 200;
const KEYS = 6;

interface Sent {
  readonly value: string;
  readonly key: string;
  readonly sentMs: number;
  outcome: Outcome | undefined;
}

class Storm {
  readonly world: SimulatedWorld;
  readonly prng: Prng;
  readonly sent: Sent[] = [];
  /** Values in the order in which the register took them. */
  readonly applied: string[] = [];
  readonly counts = {
    done: 0,
    stale: 0,
    unknown: 0,
    refused: 0,
    appliedLater: 0,
    snapshots: 0,
    reads: 0,
    lost: 0,
  };
  readonly clients: {
    readonly register: RegisterClient;
    watcher: Watcher;
    lease: Lease;
    isClosed: boolean;
  }[] = [];
  readonly revisions = new Map<string, number>();
  rollBacks = 0;

  constructor(seed: number) {
    this.world = new SimulatedWorld(seed);
    this.prng = new Prng(seed + 77);
    this.follow();
    for (let i = 0; i < 3; i++) this.#join();
  }

  #join(): void {
    const register = this.world.client();
    this.clients.push({
      register,
      watcher: new Watcher(register, ['k/'], this.world),
      lease: new Lease(register, 5_000, this.world),
      isClosed: false,
    });
  }

  /** Sees what the register really does. */
  follow(): void {
    const { host } = this.world.register;
    host.watch([''], host.map.revision, {
      onChanges: (changes) => {
        for (const { entry } of changes) if (entry !== undefined) this.applied.push(entry.value);
      },
      onBroken: () => {
        this.follow();
      },
    });
  }

  write(): void {
    const client = this.prng.pick(this.clients);
    if (client.isClosed) return;
    const count = 1 + this.prng.below(4);
    const sent: Sent[] = Array.from(
      { length: count },
      () => ({
        value: `v${String(this.sent.length)}.${String(this.prng.below(1e9))}`,
        key: `k/${String(this.prng.below(KEYS))}`,
        sentMs: this.world.nowMs(),
        outcome: undefined,
      }),
    );
    this.sent.push(...sent);
    const session = this.prng.below(4) === 0 && client.lease.session.id !== ''
      ? client.lease.session
      : undefined;
    const writes = sent.map(({ key, value }) => ({
      key,
      value,
      ifRevision: this.revisions.get(key) ?? 0,
      session,
    }));
    client.register.write(writes, (index, outcome) => {
      const each = sent[index];
      assert.ok(each !== undefined && each.outcome === undefined, 'a write is settled once');
      assert.ok(
        this.world.nowMs() - each.sentMs <= LATEST_MS,
        `settled after ${String(this.world.nowMs() - each.sentMs)} ms`,
      );
      each.outcome = outcome;
      this.counts[outcome.kind] += 1;
      if (outcome.kind === 'done') this.revisions.set(each.key, outcome.revision);
      if (outcome.kind === 'stale') this.revisions.set(each.key, outcome.entry?.revision ?? 0);
      if (outcome.kind === 'unknown' && !this.applied.includes(each.value)) {
        this.world.scheduler.after(FAULTY_MS / 2, () => {
          if (this.applied.includes(each.value)) {
            this.counts.appliedLater += 1;
          }
        });
      }
    });
  }

  read(): void {
    const client = this.prng.pick(this.clients);
    if (client.isClosed) return;
    const { map } = this.world.register.host;
    const { rollBacks } = this;
    client.register.read({ prefix: 'k/' }, (result) => {
      if (result.kind !== 'entries') return;
      this.counts.reads += 1;
      if (rollBacks === this.rollBacks) {
        assert.ok(result.revision >= map.revision, 'a read shows what stood when it began');
      }
    });
  }

  fault(allowsRollBack: boolean): void {
    const { register } = this.world;
    const { faults } = register;
    switch (this.prng.below(allowsRollBack ? 9 : 8)) {
      case 0:
        register.goAway('refusing');
        break;
      case 1:
        register.goAway('silent');
        break;
      case 2:
      case 3:
        register.comeBack();
        break;
      case 4:
        faults.lostReplies = this.prng.next() * 0.3;
        break;
      case 5:
        faults.lostRequests = this.prng.next() * 0.2;
        break;
      case 6:
        Object.assign(faults, {
          lateRequests: this.prng.next() * 0.4,
          lateReplies: this.prng.next() * 0.2,
          lateMs: 20_000,
          delayMs: this.prng.next() * 800,
        });
        break;
      case 7: {
        const client = this.prng.pick(this.clients);
        client.isClosed = true;
        client.register.close();
        client.watcher.isCurrent = false;
        this.#join();
        break;
      }
      default:
        this.rollBacks += 1;
        register.rollBack(1 + this.prng.below(80));
    }
  }

  /** A right by a session is never longer than the session. */
  judgeSessions(): void {
    for (const { lease, isClosed } of this.clients) {
      const { id, validUntilMs } = lease.session;
      if (!isClosed && validUntilMs > this.world.nowMs()) {
        assert.ok(this.world.register.host.map.sessions.has(id), 'a session that is valid stands');
      }
      if (lease.lost !== '') this.counts.lost += 1;
    }
  }

  run(allowsRollBack: boolean): void {
    const endMs = this.world.nowMs() + FAULTY_MS;
    while (this.world.nowMs() < endMs) {
      if (this.prng.below(12) === 0) this.fault(allowsRollBack);
      this.write();
      if (this.prng.below(3) === 0) this.read();
      this.world.run(this.prng.below(500));
      if (this.rollBacks === 0) this.judgeSessions();
    }
    this.world.register.comeBack();
    Object.assign(this.world.register.faults, {
      lostRequests: 0,
      lostReplies: 0,
      lateRequests: 0,
      lateReplies: 0,
      delayMs: 2,
    });
    this.world.run(30_000);
  }

  judge(): void {
    const applied = new Set(this.applied);
    for (const { value, outcome } of this.sent) {
      if (outcome === undefined) assert.ok(false, `${value} is never settled`);
      if (outcome.kind === 'done') {
        assert.ok(applied.has(value), `${value} is said to be done, and was never applied`);
      }
      if (outcome.kind === 'stale' || outcome.kind === 'refused') {
        assert.ok(
          !applied.has(value),
          `${value} is said not to be applied (${JSON.stringify(outcome)}), and was`,
        );
      }
    }
    assert.equal(applied.size, this.applied.length, 'nothing is applied twice');
    const { map } = this.world.register.host;
    const expected = new Map(map.list([{ prefix: 'k/' }]).map(({ key, value }) => [key, value]));
    for (const { register, watcher, isClosed } of this.clients) {
      if (isClosed) continue;
      assert.ok(
        register.state.isUp && watcher.isCurrent,
        `all is well again: ${JSON.stringify(register.state)} ${String(watcher.isCurrent)} ${
          watcher.news.slice(-3).join('; ')
        } ${JSON.stringify(this.world.log.lines.slice(-6))} now ${this.world.nowMs()}`,
      );
      this.counts.snapshots += watcher.news.filter((news) => news.startsWith('snapshot')).length;
      assert.deepEqual(new Map([...watcher.map].sort()), expected, 'a watch ends with what stands there');
    }
  }
}

for (const allowsRollBack of [false, true]) {
  test(`${String(SEEDS)} storms${allowsRollBack ? ', older states restored' : ''}: what is told is so`, () => {
    const sums: Record<string, number> = {};
    for (let seed = 1; seed <= SEEDS; seed++) {
      const storm = new Storm(seed);
      try {
        storm.run(allowsRollBack);
        storm.judge();
      } catch (error) {
        throw new Error(`seed ${String(seed)}: ${String(error)}`, { cause: error });
      }
      for (const [name, count] of Object.entries(storm.counts)) sums[name] = (sums[name] ?? 0) + count;
    }
    // Each of these has to have happened, or the storms prove nothing.
    for (const [name, count] of Object.entries(sums)) {
      assert.ok(count > SEEDS / 10, `${name}: ${String(count)}`);
    }
  });
}

test('one seed gives one run', () => {
  const hash = (seed: number): number => {
    const storm = new Storm(seed);
    storm.run(true);
    return storm.world.scheduler.traceHash;
  };
  assert.equal(hash(5), hash(5));
  assert.notEqual(hash(5), hash(6));
});

test('the register is away for a minute: nothing is said of any key', async () => {
  const world = new SimulatedWorld();
  const hand = new Hand(world);
  const lease = await hand.session(5_000);
  await hand.put('k/1', 'x', 0, { session: lease.session });
  const watcher = hand.watch('k/');
  await watcher.sees('snapshot k/1');
  world.register.goAway('silent');
  world.run(60_000);
  assert.deepEqual(watcher.news, ['away']);
  assert.equal(lease.lost, '');
  assert.ok(lease.session.validUntilMs < world.nowMs());
  const outcome = await hand.one({ key: 'k/2', value: 'x', ifRevision: 0 });
  assert.ok(outcome.kind === 'refused' && outcome.reason === 'away');
  world.register.comeBack();
  await watcher.sees('away', 'snapshot k/1');
  await world.until(() => lease.session.validUntilMs > world.nowMs(), 'the session goes on');
});

/** A line that is up and answers nothing. */
class DumbLine implements Line {
  resets = 0;

  open(handlers: LineHandlers): void {
    handlers.onUp('dumb');
  }

  transact(): void {}

  range(): void {}

  watch(): { close(): void; } {
    return { close: () => {} };
  }

  grant(): void {}

  renew(): void {}

  revoke(): void {}

  reset(): void {
    this.resets += 1;
  }

  close(): void {}
}

test('a process that stood still does not take its own silence for that of the register', () => {
  let nowMs = 0;
  const line = new DumbLine();
  const clock = { nowMs: () => nowMs, wallMs: () => 0 };
  const log = new KeptLog(clock.nowMs, () => {});
  const client = new RegisterClient(DEFAULT_CLIENT_OPTIONS, {
    line,
    clock,
    soon: (run) => {
      run();
    },
    random: () => 0.5,
    log,
  });
  const tick = (byMs: number): void => {
    nowMs += byMs;
    client.tick();
  };
  client.read({ key: 'a' }, () => {});
  tick(100);
  // The answer may wait in the kernel: the silence counts from here.
  tick(2_000);
  for (let i = 0; i < 19; i++) tick(100);
  assert.equal(line.resets, 0);
  tick(100);
  assert.equal(line.resets, 1);
});

test('a connection that ends settles its writes at once as unknown, and asks its reads again', async () => {
  const world = new SimulatedWorld();
  const hand = new Hand(world);
  await hand.put('a', 'x');
  Object.assign(world.register.faults, { lateRequests: 1, lateMs: 4_000 });
  const outcomes: Outcome[] = [];
  const reads: string[] = [];
  const startMs = world.nowMs();
  hand.register.write([{ key: 'b', value: 'x', ifRevision: 0 }], (_, outcome) => {
    outcomes.push(outcome);
  });
  hand.register.read({ key: 'a' }, ({ kind }) => {
    reads.push(kind);
  });
  world.run(10);
  world.register.goAway('refusing');
  world.run(10);
  assert.deepEqual([outcomes.map(({ kind }) => kind), reads], [['unknown'], []]);
  Object.assign(world.register.faults, { lateRequests: 0 });
  world.register.comeBack();
  await world.until(() => reads.length > 0, 'the read is answered');
  assert.deepEqual(reads, ['entries']);
  assert.ok(world.nowMs() - startMs < 2_000, 'by the next connection, before its deadline');
});
