/**
 * A network that is worse than TCP promises, on the links of real processes under load: the fault proxy
 * damages one path of one store by a seed. Bit flips, repeated bytes and streams that end early are noticed
 * by checksums and sequence numbers; the link ends with a named reason and heals. A slow, trembling,
 * splitting or joining network is no fault at all. Nothing is lost, altered, or promised early.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';
import type { Direction, FaultProxy } from './fault-proxy.js';
import { LinkJudge } from './link-judge.js';
import type { StreamFaults } from './stream-faults.js';
import { judgeRun } from './witnesses.js';

const DOMAINS = ['a.example', 'b.example', 'c.example'];
const CONCURRENCY = 20;
const COUNT = 3000;
const RATE = 1500;
/** What the log of the gateway calls it: the rule that a frame broke, at either end, or a refused checksum … */
const BROKEN = /"rule":"|"close":"(MALFORMED|SEQUENCE)"|CHECKSUM/;
/** … or why the path was lost. */
const ENDED = /path to the store is lost/;

interface World {
  readonly cluster: Cluster;
  readonly judge: LinkJudge;
  /** Path A of the first store. */
  readonly proxy: FaultProxy;
}

/** Sends COUNT messages; `strike` comes when a quarter was accepted, and is over before the verdict. */
async function survive(seed: number, strike: (world: World) => Promise<void> | void): Promise<string> {
  const judge = await LinkJudge.start(2, 1, seed);
  try {
    const cluster = await startCluster({ domains: DOMAINS, gateway: { delivery: { concurrency: CONCURRENCY } }, mapStorePort: judge.mapStorePort, arrivalLog: true, sinkArguments: ['--latency', '2ms'] });
    try {
      const [proxy] = judge.proxies({ store: 0, path: 'A' });
      assert.ok(proxy !== undefined);
      await sendAndJudge({ cluster, judge, proxy }, strike);
      return cluster.gateway.log();
    } finally {
      await cluster.stop();
    }
  } finally {
    await judge.close();
  }
}

async function sendAndJudge(world: World, strike: (world: World) => Promise<void> | void): Promise<void> {
  const { cluster, judge } = world;
  const log = join(cluster.folder, 'send.log');
  let struck: Promise<void> | undefined;
  const sent = await runSend({
    host: HOST, port: cluster.smtpPort, count: COUNT, connections: 20, rate: RATE, domains: DOMAINS, mix: [{ bytes: 1000, weight: 70 }, { bytes: 10_000, weight: 30 }], resend: true, nameEnvelopes: true, log,
    onProgress: ({ accepted }) => {
      if (accepted >= COUNT / 4) struck ??= Promise.resolve(strike(world));
    },
  });
  await struck;
  for (const proxy of judge.proxies()) {
    proxy.faults('up', {});
    proxy.faults('down', {});
  }
  assert.equal(sent.accepted, COUNT, JSON.stringify(sent));
  await cluster.inSync(DOMAINS.length);
  await cluster.drained();
  await cluster.verify(log);
  const verdict = await judgeRun(judge, cluster, { arrivalLog: cluster.arrivalLog, sendLogs: [log], concurrency: CONCURRENCY });
  assert.ok(verdict.ok && verdict.arrived === COUNT, JSON.stringify(verdict, undefined, 1));
  // No process died: nothing may come twice.
  assert.equal(verdict.repeated, 0, JSON.stringify(verdict, undefined, 1));
}

const DAMAGE: readonly (readonly [what: string, faults: StreamFaults, named: RegExp])[] = [
  ['flipped bits', { flipEveryBytes: 60_000 }, BROKEN],
  ['repeated bytes', { repeatEveryBytes: 60_000 }, BROKEN],
  ['connections that end in the middle of a frame', { truncateWithinBytes: 60_000 }, ENDED],
  ['connections that end one way', { halfCloseWithinBytes: 60_000 }, ENDED],
];

describe('a damaged stream is noticed, named and healed', { timeout: 600_000 }, () => {
  for (const [number, [what, faults, named]] of DAMAGE.entries()) {
    for (const direction of ['up', 'down'] as readonly Direction[]) {
      test(`${what}, ${direction === 'up' ? 'to' : 'from'} a store`, { timeout: 120_000 }, async () => {
        let damaged = 0;
        const log = await survive(10 * number + 1, async ({ proxy, cluster }) => {
          // Little comes back from a store: its stream is damaged sooner.
          proxy.faults(direction, direction === 'up' ? faults : scaled(faults, 0.02));
          const before = proxy.connectionsSeen;
          await until('the stream is damaged', () => proxy.damage.length > 2 || proxy.damage.length > 0 && proxy.connectionsSeen > before, 20_000, cluster.gateway);
          damaged = proxy.damage.length;
        });
        assert.ok(damaged > 0);
        assert.match(log, named);
      });
    }
  }
});

function scaled(faults: StreamFaults, by: number): StreamFaults {
  return Object.fromEntries(Object.entries(faults).map(([key, value]) => [key, Math.ceil((value as number) * by)]));
}

describe('a slow network is no fault', { timeout: 240_000 }, () => {
  const SLOW: StreamFaults = { delayMs: 5, jitterMs: 20, splitBytesMax: 3000 };
  test('delay, jitter and any cut of the stream isolate nobody', { timeout: 120_000 }, async () => {
    const log = await survive(3, ({ judge }) => {
      for (const proxy of judge.proxies()) {
        proxy.faults('up', SLOW);
        proxy.faults('down', { ...SLOW, joinMs: 10 });
      }
    });
    assert.doesNotMatch(log, /"to":"NG"|is isolated/);
  });

  test('a line of 2 MB/s to one store slows mail down and isolates nobody', { timeout: 120_000 }, async () => {
    const log = await survive(4, ({ proxy }) => { proxy.faults('up', { bytesPerSecond: 2_000_000 }); });
    assert.doesNotMatch(log, /"to":"NG"|is isolated/);
  });
});
