/**
 * Two at once: a gateway and a store get SIGKILL in the same moment, under load and with mail queued that the
 * next hop does not take, and come back one after the other. The store that lives has all that was accepted;
 * the gateway goes on from it, and the copies are doubled again (G2b). Likewise both stores while the gateway
 * lives, and a gateway whose register is lost or rolled back when it comes back.
 *
 *   sink stands still ─► mail comes in ─► a quarter accepted: both are killed ─► restarted, in this order
 *     and in that ─► all mail accepted ─► two copies of everything, nobody was asked ─► sink goes on
 *     ─► all delivered, judged
 *
 * The sink stands still from before on, so no final dot is sent before the kill: nothing may come twice, but
 * what a client sent again because it never saw our reply.
 */
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { readSendLog } from '../../src/load/send-log.js';
import { HOST, pause, startCluster, until, type Cluster, type Daemon } from './cluster.js';
import { LinkJudge } from './link-judge.js';
import { judgeRun } from './witnesses.js';

const DOMAINS = ['a.example', 'b.example', 'c.example'];
const CONCURRENCY = 20;
const COUNT = 1500;
const RATE = 1000;
const STORES = 3;
/** Of a gateway, by default. */
const PARTITIONS = 16;
const ROUNDS = 10;
/** Of a restart after the kill. */
const DELAY_MAX_MS = 3_000;
const BOUND_MS = 60_000;
/** Short, but by the rule: 3 × failover + 2 × heartbeat + 3 s. */
const MIRROR = { lease: '4s', failover_timeout: '200ms', heartbeat: '50ms', replace_after: '10s' };

/** The same numbers in each run, so that a failure can be looked at again. */
class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  below(bound: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * bound);
  }
}

class World {
  readonly cluster: Cluster;
  readonly judge: LinkJudge;
  readonly #logs: string[] = [];

  private constructor(cluster: Cluster, judge: LinkJudge) {
    this.cluster = cluster;
    this.judge = judge;
  }

  static async with(stores: number, story: (world: World) => Promise<void>): Promise<void> {
    const judge = await LinkJudge.start(stores);
    try {
      const cluster = await startCluster({
        stores, domains: DOMAINS, mapStorePort: judge.mapStorePort, arrivalLog: true,
        store: { lease: MIRROR.lease },
        gateway: {
          mirror: MIRROR, delivery: { concurrency: CONCURRENCY, retry: { first: '100ms', max: '1s' } },
        },
      });
      try {
        const world = new World(cluster, judge);
        await story(world);
        await world.#judgeAll();
      } finally {
        await cluster.stop();
      }
    } finally {
      await judge.close();
    }
  }

  store(index: number): Daemon {
    const store = this.cluster.stores[index];
    assert.ok(store !== undefined);
    return store;
  }

  /** Mail into a sink that stands still, `blow` when a quarter was accepted; then all is delivered. */
  async round(name: string, blow: () => Promise<void>): Promise<void> {
    const { cluster } = this;
    cluster.sink.freeze();
    const log = join(cluster.folder, `${name}.log`);
    this.#logs.push(log);
    let struck: Promise<void> | undefined;
    const sent = await runSend({
      host: HOST, port: cluster.smtpPort, count: COUNT, connections: 10, rate: RATE, domains: DOMAINS,
      run: name, resend: true, nameEnvelopes: true, log,
      onProgress: ({ accepted }) => {
        if (accepted >= COUNT / 4) struck ??= blow();
      },
    });
    await struck;
    assert.equal(sent.accepted, COUNT, JSON.stringify(sent));
    await this.#doubled(name);
    cluster.sink.thaw();
    await cluster.drained(BOUND_MS);
    const report = await cluster.verify(log, CONCURRENCY - 1);
    const { lost, altered, resurrected, arrived } = report;
    const counts = [lost.count, altered.count, resurrected.count, arrived];
    assert.deepEqual(counts, [0, 0, 0, COUNT], `${name}: ${JSON.stringify(report, undefined, 1)}`);
  }

  async kill(...daemons: readonly Daemon[]): Promise<void> {
    if (daemons.includes(this.cluster.gateway)) this.judge.noteGatewayKill();
    await Promise.all(daemons.map((each) => each.kill()));
  }

  /** One after the other, each after its delay. */
  async restart(...daemons: readonly (readonly [daemon: Daemon, afterMs: number])[]): Promise<void> {
    for (const [daemon, afterMs] of daemons) {
      await pause(afterMs);
      daemon.start();
    }
    await Promise.all(daemons.map(([daemon]) => daemon.ready()));
  }

  async #doubled(name: string): Promise<void> {
    const { cluster } = this;
    await until(`${name}: two copies of everything`, async () => {
      const rows = await cluster.table();
      const { partitions_recovering: recovering } = await cluster.status();
      const names = new Set(rows.map(({ partition }) => partition));
      const isSync = rows.every(({ sync }) => sync === 'SYNC');
      return recovering === 0 && names.size === PARTITIONS && rows.length === 2 * names.size && isSync;
    }, BOUND_MS, cluster.gateway);
    const { waiting, losses, queued_messages: queued } = await cluster.status();
    assert.deepEqual({ waiting, losses }, { waiting: [], losses: 0 }, name);
    assert.ok(queued >= COUNT, `${name}: ${queued} of ${COUNT} messages are queued`);
    assert.doesNotMatch(cluster.gateway.log(), /copies away/);
  }

  async #judgeAll(): Promise<void> {
    const { cluster, judge } = this;
    const { arrivalLog } = cluster;
    const verdict = await judgeRun(judge, cluster, { arrivalLog, sendLogs: this.#logs, concurrency: CONCURRENCY });
    assert.ok(verdict.ok, JSON.stringify(verdict, undefined, 1));
    assert.equal(verdict.repeated, 0, JSON.stringify(verdict, undefined, 1));
    const judged = this.#logs.reduce((sum, log) => sum + judge.earlyReplies(readSendLog(log)).judged, 0);
    assert.equal(judged, this.#logs.length * COUNT);
  }
}

describe('two die at once', { timeout: 1200_000 }, () => {
  test(`a gateway and a store, ${ROUNDS} times`, (t) => World.with(STORES, async (world) => {
    const dice = new Dice(20);
    const { gateway } = world.cluster;
    for (let round = 0; round < ROUNDS; round++) {
      const store = world.store(dice.below(STORES));
      const delays = [dice.below(DELAY_MAX_MS), dice.below(DELAY_MAX_MS)] as const;
      const isGatewayFirst = round % 2 === 0;
      const firstName = isGatewayFirst ? 'the gateway' : 'the store';
      t.diagnostic(`round ${round}: ${store.name}; ${firstName} comes back first; ${delays.join(', ')} ms`);
      await world.round(`pair-${round}`, async () => {
        await world.kill(gateway, store);
        const [first, second] = isGatewayFirst ? [gateway, store] : [store, gateway];
        await world.restart([first, delays[0]], [second, delays[1]]);
      });
    }
  }));

  test('both stores of two, while the gateway lives', () => World.with(2, async (world) => {
    const { pid } = world.cluster.gateway;
    const dice = new Dice(21);
    for (let round = 0; round < 4; round++) {
      const [first, second] = [world.store(round % 2), world.store(1 - (round % 2))];
      await world.round(`stores-${round}`, async () => {
        await world.kill(first, second);
        await world.restart([first, dice.below(DELAY_MAX_MS)], [second, dice.below(DELAY_MAX_MS)]);
      });
    }
    assert.equal(world.cluster.gateway.pid, pid);
  }));
});

describe('a gateway comes back', { timeout: 600_000 }, () => {
  /** What becomes of the files in its state_dir while it is down. */
  const stories: readonly (readonly [what: string, act: (folder: string) => void])[] = [
    ['without its register', (folder) => { rmSync(join(folder, 'register')); }],
    ['with a register of before', (folder) => {
      copyFileSync(join(folder, 'register.before'), join(folder, 'register'));
    }],
    ['without its register and what it knows of its processes', (folder) => {
      for (const file of ['register', 'processes']) rmSync(join(folder, file));
    }],
  ];
  for (const [what, act] of stories) {
    test(what, () => World.with(STORES, async (world) => {
      const { gateway, folder } = world.cluster;
      copyFileSync(join(folder, 'register'), join(folder, 'register.before'));
      await world.round('alone', async () => {
        // Copies move meanwhile: the register of before names one that is gone.
        await world.kill(world.store(0));
        await world.restart([world.store(0), 0]);
        await until('copies have moved', async () => {
          return (await world.cluster.table()).every(({ sync }) => sync === 'SYNC');
        }, BOUND_MS, gateway);
        await world.kill(gateway);
        act(folder);
        await world.restart([gateway, 0]);
      });
      assert.ok(existsSync(join(folder, 'register')));
      await world.round('with-a-store', async () => {
        await world.kill(gateway, world.store(1));
        act(folder);
        await world.restart([world.store(1), 0], [gateway, 500]);
      });
    }));
  }
});
