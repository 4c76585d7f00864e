/**
 * What clients see when etcd fails: real processes stopped and killed, connections held half-open, changes
 * compacted, data restored from an older backup.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { connectEtcdRegister } from '../../../src/register/etcd/etcd-register.js';
import type { Outcome } from '../../../src/register/port.js';
import { Hand } from '../../unit/register/contract.js';
import { QUIET, RealWorld, until } from '../../unit/register/real-world.js';
import { EtcdCluster } from './etcd-cluster.js';
import { TcpProxy } from './tcp-proxy.js';

const one = EtcdCluster.start(1);
const three = EtcdCluster.start(3);
after(async () => {
  await (await one).stop();
  await (await three).stop();
});

/** Writes `prefix`N one after the other until `isEnough`; answers what each became. Stops at none. */
async function writeOn(hand: Hand, prefix: string, isEnough: () => boolean): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  while (!isEnough()) {
    outcomes.push(await hand.one({ key: `${prefix}${String(outcomes.length)}`, value: 'x', ifRevision: 0 }));
  }
  return outcomes;
}

/** Each done write stands, each refused one does not; of the unknown ones nothing is said. */
async function holdsTrue(hand: Hand, prefix: string, outcomes: readonly Outcome[]): Promise<void> {
  const keys = new Set((await hand.list(prefix)).map(({ key }) => key));
  for (const [index, { kind }] of outcomes.entries()) {
    if (kind === 'done') {
      assert.ok(keys.has(`${prefix}${String(index)}`), `write ${String(index)} was done and is lost`);
    }
    if (kind === 'refused') {
      assert.ok(!keys.has(`${prefix}${String(index)}`), `write ${String(index)} was refused and is applied`);
    }
    assert.notEqual(kind, 'stale', 'no other wrote these keys: nothing may be sent twice');
  }
}

for (const [what, signal] of [['stopped', 'SIGSTOP'], ['killed', 'SIGKILL']] as const) {
  test(`the leader in use is ${what}: another endpoint goes on, session and watch are whole`, async () => {
    const cluster = await three;
    await cluster.isReady();
    const leader = await cluster.leader();
    const others = cluster.endpoints.filter((url) => url !== leader.clientUrl);
    const world = cluster.world({ endpoints: [leader.clientUrl, ...others] });
    try {
      const hand = new Hand(world);
      const lease = await hand.session(5_000);
      await hand.put('s', 'x', 0, { session: lease.session });
      const watcher = hand.watch('k/');
      await watcher.sees('snapshot ');
      leader.signal(signal);
      const started = performance.now();
      let doneAfter = 0;
      const outcomes = await writeOn(
        hand,
        'k/',
        () =>
          doneAfter >= 20
          || (performance.now() - started > 500 && hand.register.state.isUp && ++doneAfter >= 20),
      );
      const awayMs = performance.now() - started;
      assert.ok(awayMs < 12_000, `away for ${String(awayMs)} ms`);
      assert.ok(outcomes.at(-1)?.kind === 'done', JSON.stringify(outcomes.at(-1)));
      assert.ok(
        outcomes.filter(({ kind }) => kind === 'unknown').length <= 3,
        'only what was under way is unknown',
      );
      assert.notEqual(hand.register.state.endpoint, leader.clientUrl);
      await holdsTrue(hand, 'k/', outcomes);
      await world.until(
        () =>
          watcher.isCurrent
          && outcomes.every(({ kind }, i) => kind !== 'done' || watcher.map.has(`k/${String(i)}`)),
        'the watch has all that was done',
      );
      assert.ok(watcher.news.includes('away'));
      assert.equal(lease.lost, '');
      await world.until(() => lease.session.validUntilMs > world.nowMs(), 'the session goes on');
      assert.equal((await hand.get('s'))?.session, lease.session.id);
    } finally {
      leader.signal('SIGCONT');
      await world.stop();
      if (signal === 'SIGKILL') cluster.startNode(leader);
    }
  });
}

test('an endpoint that is not the leader is stopped: the next one goes on', async () => {
  const cluster = await three;
  await cluster.isReady();
  const leader = await cluster.leader();
  const [follower] = cluster.nodes.filter((node) => node !== leader);
  assert.ok(follower !== undefined);
  const world = cluster.world({ endpoints: [follower.clientUrl, leader.clientUrl] });
  try {
    const hand = new Hand(world);
    const first = await hand.put('a', '1');
    follower.signal('SIGSTOP');
    await world.until(() => follower.isStopped, 'it stands still');
    const outcome = await hand.one({ key: 'a', value: '2', ifRevision: first });
    assert.ok(outcome.kind === 'unknown', JSON.stringify(outcome));
    await world.until(() => hand.register.state.endpoint === leader.clientUrl, 'the next endpoint is in use');
    assert.equal((await hand.get('a'))?.value, '1');
    // Rule 2: another change of the record settles what was unknown.
    await hand.put('a', '3', first);
    follower.signal('SIGCONT');
    await hand.put('b', 'x');
    assert.equal((await hand.get('a'))?.value, '3');
  } finally {
    follower.signal('SIGCONT');
    await world.stop();
  }
});

test('two of three are dead: nothing is read or done until one is back', async () => {
  const cluster = await three;
  await cluster.isReady();
  const world = cluster.world();
  const [first, second] = cluster.nodes;
  assert.ok(first !== undefined && second !== undefined);
  try {
    const hand = new Hand(world);
    await hand.put('a', '1');
    await first.kill();
    await second.kill();
    const outcome = await hand.one({ key: 'b', value: 'x', ifRevision: 0 });
    assert.ok(outcome.kind === 'unknown' || outcome.kind === 'refused', JSON.stringify(outcome));
    assert.equal((await hand.read({ key: 'a' })).kind, 'unreachable');
    await until(
      () => !hand.register.state.isUp && /etcd at http:.*: .*\?/.test(hand.register.state.why),
      `what is wrong is told: ${hand.register.state.why}`,
    );
    cluster.startNode(first);
    await until(() => hand.register.state.isUp, 'two of three are enough');
    assert.equal((await hand.get('a'))?.value, '1');
  } finally {
    await world.stop();
    cluster.startNode(second);
  }
});

test('etcd is stopped for 8 s: a session of 5 s is lost, its right ended before', async () => {
  const cluster = await one;
  await cluster.isReady();
  const [node] = cluster.nodes;
  const world = cluster.world();
  try {
    const hand = new Hand(world);
    const lease = await hand.session(5_000);
    await hand.put('s/1', 'x', 0, { session: lease.session });
    const watcher = hand.watch('s/');
    await watcher.sees('snapshot s/1');
    node?.signal('SIGSTOP');
    const stoppedMs = world.nowMs();
    const { validUntilMs } = lease.session;
    assert.ok(validUntilMs < stoppedMs + 5_000);
    await until(() => world.nowMs() > stoppedMs + 8_000, 'eight seconds');
    assert.ok(lease.session.validUntilMs < world.nowMs(), 'the holder knows that its right is over');
    assert.equal(lease.lost, '', 'silence is no verdict');
    node?.signal('SIGCONT');
    await until(() => lease.lost !== '', 'the loss is told');
    assert.equal(lease.session.validUntilMs, 0);
    await watcher.sees('away', 'snapshot  without s/1');
    assert.equal(
      (await hand.one({ key: 's/2', value: 'x', ifRevision: 0, session: lease.session })).kind,
      'refused',
    );
  } finally {
    node?.signal('SIGCONT');
    await world.stop();
  }
});

/** A world whose clients go through a proxy in front of the one node; then the others of `more`. */
async function proxied(
  cluster: EtcdCluster,
  more: readonly string[] = [],
): Promise<{ proxy: TcpProxy; world: RealWorld; direct: RealWorld; }> {
  await cluster.isReady();
  const proxy = await TcpProxy.start(Number(new URL(cluster.endpoints[0] ?? '').port));
  const options = { cluster: `proxied ${proxy.url}` };
  return {
    proxy,
    world: cluster.world({ ...options, endpoints: [proxy.url, ...more] }),
    direct: cluster.world(options),
  };
}

test('a half-open connection is given up, and the next endpoint goes on', async () => {
  const cluster = await one;
  const { proxy, world } = await proxied(cluster, cluster.endpoints);
  try {
    const hand = new Hand(world);
    const lease = await hand.session(5_000);
    await hand.put('s', 'x', 0, { session: lease.session });
    const watcher = hand.watch('s');
    await watcher.sees('snapshot s');
    assert.equal(hand.register.state.endpoint, proxy.url);
    proxy.holdsRequests = true;
    proxy.holdsReplies = true;
    // Nobody asks anything: it is found all the same.
    await until(
      () => hand.register.state.endpoint === cluster.endpoints[0],
      'the other endpoint is in use',
      5_000,
    );
    await watcher.sees('away', 'snapshot s');
    await until(() => lease.session.validUntilMs > world.nowMs() + 3_000, 'the session is renewed');
    assert.equal(lease.lost, '');
  } finally {
    await world.stop();
    proxy.close();
  }
});

test('a write whose reply is lost is unknown, and applied; sent again it is stale', async () => {
  const { proxy, world, direct } = await proxied(await one);
  try {
    const hand = new Hand(world);
    await hand.put('a', '1');
    proxy.holdsReplies = true;
    const outcome = await hand.one({ key: 'b', value: 'x', ifRevision: 0 });
    assert.equal(outcome.kind, 'unknown', JSON.stringify(outcome));
    assert.equal((await new Hand(direct).get('b'))?.value, 'x');
    proxy.letGo();
    proxy.cut();
    const again = await hand.one({ key: 'b', value: 'x', ifRevision: 0 });
    assert.ok(again.kind === 'stale' && again.entry?.value === 'x');
  } finally {
    await world.stop();
    await direct.stop();
    proxy.close();
  }
});

test('a write under way when its client dies is applied later, one never sent is not', async () => {
  const { proxy, world, direct } = await proxied(await one);
  try {
    const hand = new Hand(world);
    const other = new Hand(direct);
    const first = await hand.put('a', '1');
    proxy.holdsRequests = true;
    const outcome = await hand.one({ key: 'a', value: '2', ifRevision: first });
    assert.equal(outcome.kind, 'unknown', JSON.stringify(outcome));
    const late = await hand.one({ key: 'b', value: 'x', ifRevision: 0 });
    assert.ok(late.kind === 'refused' && late.reason === 'away', JSON.stringify(late));
    hand.register.close();
    assert.equal((await other.get('a'))?.value, '1', 'a read that shows the old one says nothing');
    const watcher = other.watch('');
    await watcher.sees('snapshot a');
    proxy.letGo();
    await watcher.sees('a=2');
    assert.equal(await other.get('b'), undefined);
  } finally {
    await world.stop();
    await direct.stop();
    proxy.close();
  }
});

test('changes are compacted while a watch is down: a snapshot tells what is gone', async () => {
  const cluster = await one;
  const { proxy, world, direct } = await proxied(cluster);
  try {
    const hand = new Hand(world);
    const other = new Hand(direct);
    const kept = await other.put('w/kept', '1');
    const gone = await other.put('w/gone', '1');
    const watcher = hand.watch('w/');
    await watcher.sees('snapshot w/gone w/kept');
    proxy.holdsRequests = true;
    proxy.holdsReplies = true;
    await other.put('w/gone', null, gone);
    const revision = await other.put('w/kept', '2', kept);
    await other.put('w/new', '1');
    await cluster.ctl('compact', String(revision + 1));
    await until(() => watcher.news.length > 0, 'the gap is told');
    proxy.letGo();
    proxy.cut();
    await watcher.sees('away', 'snapshot w/kept w/new without w/gone');
    assert.deepEqual([...watcher.map], [['w/kept', '2'], ['w/new', '1']]);
    await other.put('w/gone', '2');
    await watcher.sees('w/gone=2');
  } finally {
    await world.stop();
    await direct.stop();
    proxy.close();
  }
});

test('an older backup is restored: the watch tells the difference, newer writes are stale', async () => {
  const cluster = await EtcdCluster.start(1);
  const [node] = cluster.nodes;
  assert.ok(node !== undefined);
  await cluster.isReady();
  const world = cluster.world();
  try {
    const hand = new Hand(world);
    const first = await hand.put('a', '1');
    await node.kill();
    cluster.backup(node, 'make');
    cluster.startNode(node);
    await cluster.isReady();
    const second = await hand.put('a', '2', first);
    await hand.put('b', '1');
    const watcher = hand.watch('');
    await watcher.sees('snapshot a b');
    await node.kill();
    cluster.backup(node, 'restore');
    cluster.startNode(node);
    await watcher.sees('away', 'snapshot a without b');
    assert.equal(watcher.map.get('a'), '1');
    const stale = await hand.one({ key: 'a', value: '3', ifRevision: second });
    assert.ok(stale.kind === 'stale' && stale.entry?.value === '1');
    await hand.put('a', '4', first);
    await watcher.sees('a=4');
  } finally {
    await world.stop();
    await cluster.stop();
  }
});

test('more than a page of keys is read whole, keys of others are passed over', async () => {
  const cluster = await one;
  await cluster.isReady();
  const world = cluster.world({ cluster: 'pages' });
  try {
    const hand = new Hand(world);
    const keys = Array.from({ length: 2_300 }, (_, i) => `p/${String(i).padStart(4, '0')}`);
    const outcomes = await hand.write(...keys.map((key) => ({ key, value: key, ifRevision: 0 })));
    assert.ok(outcomes.every(({ kind }) => kind === 'done'));
    await cluster.ctl('put', '/twinpost/pages/p/a key', 'no key of ours');
    assert.deepEqual((await hand.list('p/')).map(({ key }) => key), keys);
    assert.match(
      await cluster.ctl('get', '/twinpost/pages/p/0000'),
      /^\/twinpost\/pages\/p\/0000\np\/0000\n$/,
    );
  } finally {
    await world.stop();
  }
});

test('the wall clock of a client steps by a day, either way: nothing is noticed', async () => {
  const cluster = await one;
  await cluster.isReady();
  const world = cluster.world();
  const RealDate = Date;
  try {
    const hand = new Hand(world);
    const lease = await hand.session(3_000);
    const watcher = hand.watch('');
    await watcher.sees('snapshot ');
    for (const stepMs of [86_400_000, -86_400_000]) {
      globalThis.Date = class extends RealDate {
        constructor(value?: number | string | Date) {
          super(value ?? RealDate.now() + stepMs);
        }

        static override now(): number {
          return RealDate.now() + stepMs;
        }
      } as DateConstructor;
      const untilMs = world.nowMs() + 3_500;
      const key = `step${String(stepMs)}`;
      await hand.put(key, 'x', 0, { session: lease.session });
      await watcher.sees(`${key}=x`);
      await until(() => world.nowMs() > untilMs, 'longer than the session');
      assert.ok(lease.session.validUntilMs > world.nowMs() && lease.lost === '');
    }
    await watcher.sees();
  } finally {
    globalThis.Date = RealDate;
    await world.stop();
  }
});

test('nothing listens: endpoint, reason and advice are told; calls end in time', async () => {
  const register = connectEtcdRegister({ endpoints: ['http://127.0.0.1:1'], cluster: 'none' }, QUIET);
  const world = new RealWorld(() => register, () => Promise.resolve());
  try {
    const hand = new Hand(world);
    const startMs = performance.now();
    const outcome = await hand.one({ key: 'a', value: 'x', ifRevision: 0 });
    assert.ok(outcome.kind === 'refused' && outcome.reason === 'away');
    assert.match(outcome.why, /etcd at http:\/\/127\.0\.0\.1:1: .*ECONNREFUSED.*is etcd running there/);
    assert.ok(performance.now() - startMs < 6_500);
  } finally {
    await world.stop();
  }
});
