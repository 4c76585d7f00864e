/** Going on without a store, over the admin HTTP and by `rescue --force`: what is done is said and warned of, and so is that nothing was. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fastify } from 'fastify';
import { runCli } from '../../../../src/cli/main.js';
import { addRescue } from '../../../../src/gateway/admin/rescue-api.js';
import type { RescueControl, RescueView, WaitingPartition } from '../../../../src/gateway/admin/rescue-api.js';
import { statusRow } from '../../../../src/gateway/admin/rows.js';
import type { MemberView, TableRowView, StatusView, StoreView } from '../../../../src/gateway/admin/view.js';
import type { ForceRequest, ForcedPartition } from '../../../../src/recovery/force.js';
import { contextFor } from '../../cli/played-context.js';

const STORE: StoreView = {
  id: 'store-a', host: 'box-2', protocol: 2, up: true, drained: false, drainedSinceWallMs: undefined, paths: [], partitionsSync: 1, partitionsResync: 0, partitionsNg: 0, lagMessages: 0, lagBytes: 0, refillMessages: 0, refillBytes: 0, creditBytes: 5, leaseLeftMs: 0, failovers: 0, cause: '', causeSinceWallMs: undefined,
};
const ROW: TableRowView = {
  partition: 'p1', owner: 'gw-1', birth: 7, serial: 1, store: 'store-a', networkA: 'RUN', networkS: 'READY', sync: 'SYNC', progress: undefined, member: true, epoch: 1,
  transactions: 0, lastTransaction: 0, digest: undefined, messages: 0, lagMessages: 0, lagBytes: 0, sinceWallMs: 0, cause: '',
};
const STATUS: StatusView = {
  gateway: 'gw-1', host: 'box-1', version: '', incarnation: 7, pid: 42, startedWallMs: 0, ready: true, notReadyReason: '', routes: 0, routesRefused: [], degradedSinceWallMs: undefined, degradedCause: '', insecure: false, received: 0, delivered: 0, deferred: 0, bounced: 0, expired: 0, rejected: 0,
  queues: 1, partitions: 1, partitionsRecovering: 0, partitionsShort: 0, partitionsHeld: 2, heldPartitions: [], partitionsRescued: 0, takeovers: 0, handedBack: 0, takenAway: 0, repairs: { tails: 0, tailBytes: 0, refills: 0, refillBytes: 0 }, queuedMessages: 0, queuedBytes: 0, memoryUsedBytes: 0, memoryKeptBytes: 0, memoryLimitBytes: 1,
  connectionsIn: 0, connectionsOut: 0, dotsInFlight: 0, stores: [STORE, { ...STORE, id: 'store-b' }],
};
const GROUP: readonly MemberView[] = [{ id: 'gw-1', kind: 'gateway', admin: undefined, self: true }, { id: 'store-a', kind: 'store', admin: undefined, self: false }];
const VIEW: RescueView = { status: () => STATUS, mirrors: () => ({ rows: [ROW], nextCursor: undefined }), group: () => GROUP };
const HELD: readonly WaitingPartition[] = [
  { partition: 'p3', owner: 'gw-1', stores: ['store-b'], why: 'a store is missing' },
  { partition: 'p8', owner: 'gw-2', stores: ['store-gone'], why: 'only a file of this machine tells of it' },
];

const FORCED: readonly ForcedPartition[] = [
  { partition: 'p3', owner: 'gw-1', outcome: 'taken', needed: [], exportable: [] },
  { partition: 'p4', owner: 'gw-1', outcome: 'later', needed: [], exportable: [] },
  { partition: 'p5', owner: 'gw-1', outcome: 'waiting', needed: ['store-a', 'store-c'], exportable: [] },
  { partition: 'p6', owner: 'gw-1', outcome: 'gone', needed: [], exportable: ['store-d'] },
  { partition: 'p7', owner: 'gw-2', outcome: 'taken', needed: [], exportable: [] },
];

class PlayedRescue implements RescueControl {
  readonly done: ForceRequest[] = [];

  /** Of what waits only these can be taken, without this store. */
  force(request: ForceRequest): readonly ForcedPartition[] {
    const forced = request.missing === 'store-b' ? FORCED.filter(({ partition, owner }) => partition === request.partition || owner === request.owner) : [];
    if (forced.length > 0) this.done.push(request);
    return forced;
  }

  held(): readonly WaitingPartition[] {
    return HELD;
  }
}

const WHO = { reason: 'disk burnt', who: 'ann@box' };
const REFUSED: readonly (readonly [wanted: { readonly partition?: string; readonly owner?: string; readonly missing: string }, code: number, error: string])[] = [
  [{ partition: 'p99', missing: 'store-9' }, 404, "this gateway knows no store 'store-9'; it knows store-a, store-b; nothing was done"],
  [{ partition: 'p99', missing: 'store-a' }, 404, "this gateway knows no partition 'p99'; nothing was done"],
  [{ owner: 'gw-9', missing: 'store-a' }, 404, "this gateway knows no gateway 'gw-9'; nothing was done"],
  [{ partition: 'p1', missing: 'store-a' }, 409, "partition 'p1' does not wait for 'store-a'; nothing was done"],
  [{ partition: 'p3', missing: 'store-a' }, 409, "'p3' can't be taken without 'store-a': a store is missing, store-b; nothing was done"],
  [{ owner: 'gw-2', missing: 'store-gone' }, 409, "'p8' can't be taken without 'store-gone': only a file of this machine tells of it, store-gone; nothing was done"],
];

describe('going on without a store', () => {
  test('names the partitions concerned, and hands on who and why for the log', async () => {
    const control = new PlayedRescue();
    const app = fastify({ logger: false });
    addRescue(app, control, VIEW);
    const answer = await app.inject({ method: 'POST', url: '/rescue', payload: { partition: 'p3', missing: 'store-b', ...WHO } });
    assert.deepEqual([answer.statusCode, answer.json()], [200, { partitions: ['p3'], later: [], waiting: [], elsewhere: [], gone: [] }]);
    assert.deepEqual(control.done, [{ partition: 'p3', owner: undefined, missing: 'store-b', ...WHO }]);
    const theirs = await app.inject({ method: 'POST', url: '/rescue', payload: { partition: 'p7', missing: 'store-b', ...WHO } });
    assert.deepEqual(theirs.json<{ readonly partitions: unknown }>().partitions, ['p7 of gw-2']);
    await app.inject({ method: 'POST', url: '/rescue', payload: { partition: 'p3', owner: 'gw-2', missing: 'store-b', ...WHO } });
    assert.deepEqual(control.done[2], { partition: 'p3', owner: 'gw-2', missing: 'store-b', ...WHO });
  });

  for (const [wanted, code, error] of REFUSED) {
    test(`is refused, and nothing is said to be done: ${JSON.stringify(wanted)}`, async () => {
      const app = fastify({ logger: false });
      addRescue(app, new PlayedRescue(), VIEW);
      const answer = await app.inject({ method: 'POST', url: '/rescue', payload: { ...wanted, ...WHO } });
      assert.deepEqual([answer.statusCode, answer.json()], [code, { error }]);
    });
  }
});

describe('twinpost rescue --force', () => {
  async function forced(partition: string, missing: string): Promise<readonly [number, readonly string[], string]> {
    const app = fastify({ logger: false });
    void app.register((api, _options, done) => {
      addRescue(api, new PlayedRescue(), VIEW);
      api.get('/status', () => statusRow(VIEW.status(), 0));
      done();
    }, { prefix: '/api/v1' });
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    try {
      const printed: string[] = [];
      return [await runCli(['rescue', '--force', '--partition', partition, '--missing', missing, '--reason', 'x', '--yes', '--gateway', url], contextFor(printed)), printed, url];
    } finally {
      await app.close();
    }
  }

  test('warns, and says what came of it', async () => {
    const [code, printed] = await forced('p3', 'store-b');
    assert.equal(code, 0);
    assert.deepEqual(printed.map((line) => line.slice(0, 9)), ['! WARNING', '! It may ', '1 partiti']);
    assert.match(printed[2] ?? '', /^1 partition taken without store-b: p3$/);
  });

  test('says what else is needed, and fails, when the partition still waits for other stores', async () => {
    const [code, printed] = await forced('p5', 'store-b');
    assert.deepEqual([code, printed.slice(2)], [1, ['1 partition not taken yet: p5; also needed: the same with --missing store-a, and with --missing store-c, or start what is silent']]);
  });

  test('says that a partition is taken later, when a mirror is to be filled first', async () => {
    const [code, printed] = await forced('p4', 'store-b');
    assert.deepEqual([code, printed.slice(2)], [0, ['1 partition to be taken as soon as a mirror is filled, unless one tells that another process has it: p4']]);
  });

  test('says where a copy is left that no set counts, and fails, when the partition is given up', async () => {
    const [code, printed] = await forced('p6', 'store-b');
    assert.deepEqual([code, printed.slice(2)], [1, ['1 partition given up, for no store that answers is in the set: p6; a copy that counts for nothing is at store-d: twinpost store export']]);
  });

  test('fails with one clear line after the warning when nobody knows the store or the partition', async () => {
    const [code, printed, url] = await forced('p99', 'store-9');
    assert.equal(code, 1);
    assert.deepEqual(printed.slice(2), [`! twinpost: ${url}: it refused: this gateway knows no store 'store-9'; it knows store-a, store-b; nothing was done`]);
  });
});
