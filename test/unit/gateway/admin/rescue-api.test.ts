/** Going on without a store, over the admin HTTP and by `rescue --force`: what is done is said and warned of, and so is that nothing was. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fastify } from 'fastify';
import { runCli } from '../../../../src/cli/main.js';
import { addRescue } from '../../../../src/gateway/admin/rescue-api.js';
import type { RescueControl, RescueView, WaitingQueue } from '../../../../src/gateway/admin/rescue-api.js';
import { statusRow } from '../../../../src/gateway/admin/rows.js';
import type { MemberView, QueueView, StatusView, StoreView } from '../../../../src/gateway/admin/view.js';
import type { ForceRequest, ForcedQueue } from '../../../../src/recovery/force.js';
import { contextFor } from '../../cli/played-context.js';

const STORE: StoreView = {
  id: 'store-a', host: 'box-2', protocol: 2, up: true, drained: false, drainedSinceWallMs: undefined, paths: [], queuesSync: 1, queuesResync: 0, queuesNg: 0, lagMessages: 0, lagBytes: 0, refillMessages: 0, refillBytes: 0, creditBytes: 5, leaseLeftMs: 0, failovers: 0, cause: '', causeSinceWallMs: undefined,
};
const QUEUE: QueueView = {
  name: 'here.example', queueClass: 'mail', owner: 'gw-1', nextHop: 'smtp://mx:25', ordering: 'fifo', messages: 0, bytes: 0, active: 0, deferred: 0, held: 0, inSync: 2, epoch: 1, lagMessages: 0, lagBytes: 0, refillShare: undefined, oldestArrivalWallMs: undefined, lastError: '',
};
const STATUS: StatusView = {
  gateway: 'gw-1', host: 'box-1', version: '', incarnation: 7, pid: 42, startedWallMs: 0, ready: true, notReadyReason: '', routes: 0, routesRefused: [], degradedSinceWallMs: undefined, degradedCause: '', insecure: false, received: 0, delivered: 0, deferred: 0, bounced: 0, expired: 0, rejected: 0,
  queues: 1, queuesRecovering: 0, queuesShort: 0, queuesHeld: 2, heldQueues: [], queuesRescued: 0, takeovers: 0, handedBack: 0, takenAway: 0, repairs: { tails: 0, tailBytes: 0, refills: 0, refillBytes: 0 }, queuedMessages: 0, queuedBytes: 0, memoryUsedBytes: 0, memoryKeptBytes: 0, memoryLimitBytes: 1,
  connectionsIn: 0, connectionsOut: 0, dotsInFlight: 0, stores: [STORE, { ...STORE, id: 'store-b' }],
};
const GROUP: readonly MemberView[] = [{ id: 'gw-1', kind: 'gateway', admin: undefined, self: true }, { id: 'store-a', kind: 'store', admin: undefined, self: false }];
const VIEW: RescueView = { status: () => STATUS, queues: () => ({ queues: [QUEUE], nextCursor: undefined }), group: () => GROUP };
const HELD: readonly WaitingQueue[] = [
  { queue: 'late.example', owner: 'gw-1', stores: ['store-b'], why: 'a store is missing' },
  { queue: 'old.example', owner: 'gw-2', stores: ['store-gone'], why: 'only a file of this machine tells of it' },
];

const FORCED: readonly ForcedQueue[] = [
  { queue: 'late.example', owner: 'gw-1', outcome: 'taken', needed: [], exportable: [] },
  { queue: 'filling.example', owner: 'gw-1', outcome: 'later', needed: [], exportable: [] },
  { queue: 'short.example', owner: 'gw-1', outcome: 'waiting', needed: ['store-a', 'store-c'], exportable: [] },
  { queue: 'gone.example', owner: 'gw-1', outcome: 'gone', needed: [], exportable: ['store-d'] },
  { queue: 'theirs.example', owner: 'gw-2', outcome: 'taken', needed: [], exportable: [] },
];

class PlayedRescue implements RescueControl {
  readonly done: ForceRequest[] = [];

  /** Of what waits only these can be taken, without this store. */
  force(request: ForceRequest): readonly ForcedQueue[] {
    const forced = request.missing === 'store-b' ? FORCED.filter(({ queue, owner }) => queue === request.queue || owner === request.owner) : [];
    if (forced.length > 0) this.done.push(request);
    return forced;
  }

  held(): readonly WaitingQueue[] {
    return HELD;
  }
}

const WHO = { reason: 'disk burnt', who: 'ann@box' };
const REFUSED: readonly (readonly [wanted: { readonly queue?: string; readonly owner?: string; readonly missing: string }, code: number, error: string])[] = [
  [{ queue: 'nosuch', missing: 'store-9' }, 404, "this gateway knows no store 'store-9'; it knows store-a, store-b; nothing was done"],
  [{ queue: 'nosuch', missing: 'store-a' }, 404, "this gateway knows no queue 'nosuch'; nothing was done"],
  [{ owner: 'gw-9', missing: 'store-a' }, 404, "this gateway knows no gateway 'gw-9'; nothing was done"],
  [{ queue: 'here.example', missing: 'store-a' }, 409, "queue 'here.example' does not wait for 'store-a'; nothing was done"],
  [{ queue: 'late.example', missing: 'store-a' }, 409, "'late.example' can't be taken without 'store-a': a store is missing, store-b; nothing was done"],
  [{ owner: 'gw-2', missing: 'store-gone' }, 409, "'old.example' can't be taken without 'store-gone': only a file of this machine tells of it, store-gone; nothing was done"],
];

describe('going on without a store', () => {
  test('names the queues concerned, and hands on who and why for the log', async () => {
    const control = new PlayedRescue();
    const app = fastify({ logger: false });
    addRescue(app, control, VIEW);
    const answer = await app.inject({ method: 'POST', url: '/rescue', payload: { queue: 'late.example', missing: 'store-b', ...WHO } });
    assert.deepEqual([answer.statusCode, answer.json()], [200, { queues: ['late.example'], later: [], waiting: [], elsewhere: [], gone: [] }]);
    assert.deepEqual(control.done, [{ queue: 'late.example', owner: undefined, missing: 'store-b', ...WHO }]);
    const theirs = await app.inject({ method: 'POST', url: '/rescue', payload: { queue: 'theirs.example', missing: 'store-b', ...WHO } });
    assert.deepEqual(theirs.json<{ readonly queues: unknown }>().queues, ['theirs.example of gw-2']);
    await app.inject({ method: 'POST', url: '/rescue', payload: { queue: 'late.example', owner: 'gw-2', missing: 'store-b', ...WHO } });
    assert.deepEqual(control.done[2], { queue: 'late.example', owner: 'gw-2', missing: 'store-b', ...WHO });
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
  async function forced(queue: string, missing: string): Promise<readonly [number, readonly string[], string]> {
    const app = fastify({ logger: false });
    void app.register((api, _options, done) => {
      addRescue(api, new PlayedRescue(), VIEW);
      api.get('/status', () => statusRow(VIEW.status(), 0));
      done();
    }, { prefix: '/api/v1' });
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
    try {
      const printed: string[] = [];
      return [await runCli(['rescue', '--force', '--queue', queue, '--missing', missing, '--reason', 'x', '--yes', '--gateway', url], contextFor(printed)), printed, url];
    } finally {
      await app.close();
    }
  }

  test('warns, and says what came of it', async () => {
    const [code, printed] = await forced('late.example', 'store-b');
    assert.equal(code, 0);
    assert.deepEqual(printed.map((line) => line.slice(0, 9)), ['! WARNING', '! It may ', '1 queue t']);
    assert.match(printed[2] ?? '', /^1 queue taken without store-b: late\.example$/);
  });

  test('says what else is needed, and fails, when the queue still waits for other stores', async () => {
    const [code, printed] = await forced('short.example', 'store-b');
    assert.deepEqual([code, printed.slice(2)], [1, ['1 queue not taken yet: short.example; also needed: the same with --missing store-a, and with --missing store-c, or start what is silent']]);
  });

  test('says that a queue is taken later, when a mirror is to be filled first', async () => {
    const [code, printed] = await forced('filling.example', 'store-b');
    assert.deepEqual([code, printed.slice(2)], [0, ['1 queue to be taken as soon as a mirror is filled, unless one tells that another process has it: filling.example']]);
  });

  test('says where a copy is left that no set counts, and fails, when the queue is given up', async () => {
    const [code, printed] = await forced('gone.example', 'store-b');
    assert.deepEqual([code, printed.slice(2)], [1, ['1 queue given up, for no store that answers is in the set: gone.example; a copy that counts for nothing is at store-d: twinpost store export']]);
  });

  test('fails with one clear line after the warning when nobody knows the store or the queue', async () => {
    const [code, printed, url] = await forced('nosuch', 'store-9');
    assert.equal(code, 1);
    assert.deepEqual(printed.slice(2), [`! twinpost: ${url}: it refused: this gateway knows no store 'store-9'; it knows store-a, store-b; nothing was done`]);
  });
});
