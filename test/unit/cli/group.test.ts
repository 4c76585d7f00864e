/** A group is found whole from any of its members, whatever some of them know or whether they answer. */
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { NoAnswer } from '../../../src/cli/admin-client.js';
import { findGroup, missingText, partialLine, reportMissing } from '../../../src/cli/group.js';
import { TOKEN, tokensFile } from '../platform/node/token-file.js';
import { contextFor } from './played-context.js';
import { STORE_STATUS } from './sample-answers.js';

interface Known {
  readonly id: string;
  readonly kind: 'gateway' | 'store';
  readonly admin: string | null;
  readonly away?: boolean;
}

const servers: http.Server[] = [];
after(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

/** Answers /api/v1/group as one member would; its `knows` may be filled in later. Without `self` it never answers. It does so after `before`. `linked`: of a store, who has a link. */
async function member(self: Omit<Known, 'admin'> | undefined, knows: Known[], token?: string, linked: readonly string[] = [], retired: readonly string[] = [], before: () => Promise<void> | void = () => undefined): Promise<string> {
  const server = http.createServer((request, response) => {
    if (self === undefined) return;
    void Promise.resolve(before()).then(() => { answer(self, request, response); });
  });
  const answer = (self: Omit<Known, 'admin'>, request: http.IncomingMessage, response: http.ServerResponse): void => {
    const allowed = token === undefined || request.headers.authorization === `Bearer ${token}`;
    response.writeHead(allowed ? 200 : 401, { 'content-type': 'application/json' });
    const members = [{ ...self, admin: null, away: false, self: true }, ...knows.map((one) => ({ away: false, ...one, self: false }))];
    const gateways = ['gw-1', 'gw-2'].map((id) => ({ id, incarnation: 1, active: linked.includes(id), granted_bytes: 0, connections: [] }));
    const [, ofRetire] = /gateways\/(.*)\/retire$/.exec(request.url ?? '') ?? [];
    const told = request.url?.endsWith('/status') === true ? { ...STORE_STATUS, store_id: self.id, gateways }
      : ofRetire === undefined ? { members }
        : { told_by: self.id, gateway: ofRetire, retired: retired.includes(ofRetire), partitions: ofRetire === 'gw-4' ? 2 : 1, messages: 0, kept: 1, kept_for: [], living: [] };
    response.end(JSON.stringify(allowed ? told : { error: 'no' }));
  };
  servers.push(server);
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return `127.0.0.1:${String((server.address() as AddressInfo).port)}`;
}

function from(address: string, more: { readonly only?: boolean; readonly tokenFile?: string } = {}) {
  return { from: address, only: more.only, 'token-file': more.tokenFile, 'ca-file': undefined };
}

describe('a group', () => {
  test('is found through members that know only some of the others', async () => {
    const storeKnows: Known[] = [];
    const gatewayKnows: Known[] = [{ id: 'gw-2', kind: 'gateway', admin: null }];
    const store = await member({ id: 'store-a', kind: 'store' }, storeKnows);
    const first = await member({ id: 'gw-1', kind: 'gateway' }, gatewayKnows);
    const second = await member({ id: 'gw-2', kind: 'gateway' }, []);
    gatewayKnows.push({ id: 'store-a', kind: 'store', admin: store });
    storeKnows.push({ id: 'gw-1', kind: 'gateway', admin: first }, { id: 'gw-2', kind: 'gateway', admin: second });
    for (const address of [store, first]) {
      const group = await findGroup(from(address), contextFor([]));
      assert.deepEqual(group.members.map((one) => one.id).sort(), ['gw-1', 'gw-2', 'store-a']);
      assert.deepEqual(group.missing('gateway', 'store'), []);
    }
  });

  test('is asked as it is named: nobody is waited for before another is asked', async () => {
    let onAsked = (): void => undefined;
    const isAsked = new Promise<void>((resolve) => { onAsked = resolve; });
    const late = await member({ id: 'store-b', kind: 'store' }, [], undefined, [], [], () => { onAsked(); });
    const second = await member({ id: 'gw-2', kind: 'gateway' }, [{ id: 'store-b', kind: 'store', admin: late }]);
    const slow = await member({ id: 'store-a', kind: 'store' }, [], undefined, [], [], () => isAsked);
    const first = await member({ id: 'gw-1', kind: 'gateway' }, [{ id: 'store-a', kind: 'store', admin: slow }, { id: 'gw-2', kind: 'gateway', admin: second }]);
    const group = await findGroup(from(first), contextFor([]));
    assert.deepEqual([group.members.map(({ id }) => id).sort(), group.missing('gateway', 'store')], [['gw-1', 'gw-2', 'store-a', 'store-b'], []]);
  });

  test('names those that do not answer, hang, want a token, or have no address', async () => {
    const hanging = await member(undefined, []);
    const guarded = await member({ id: 'gw-4', kind: 'gateway' }, [], TOKEN);
    const first = await member({ id: 'gw-1', kind: 'gateway' }, [
      { id: 'gw-2', kind: 'gateway', admin: '127.0.0.1:1' }, { id: 'gw-3', kind: 'gateway', admin: hanging }, { id: 'gw-4', kind: 'gateway', admin: guarded }, { id: 'gw-5', kind: 'gateway', admin: null }, { id: 'gw-6', kind: 'gateway', admin: null, away: true }, { id: 'gw-6', kind: 'gateway', admin: null },
    ]);
    const group = await findGroup(from(first), contextFor([]), 300);
    assert.deepEqual(group.missing('gateway').filter(({ how }) => how === 'refused').map(({ id }) => id), ['gw-4'], 'the one that answers, and would not');
    assert.deepEqual(group.missing('gateway').map((one) => [one.id, one.why]), [
      ['gw-2', 'connection refused'], ['gw-3', 'nothing within 0.3 s'], ['gw-4', 'it wants a token (--token-file, or TWINPOST_TOKEN_FILE)'], ['gw-5', 'nobody that answers knows its admin address'], ['gw-6', 'no session at the register, no answer: dead, or cut off'],
    ]);
    assert.deepEqual(group.unheard.map(({ id }) => id), ['gw-2', 'gw-3', 'gw-4', 'gw-5'], 'who does not run can hear nothing');
    const dead = group.missing('gateway').at(-1) ?? assert.fail('it is named');
    assert.equal(partialLine(dead, false, true), 'PARTIAL: gw-6: no session at the register, no answer: dead, or cut off; mail of it that nobody has taken over is not in this');
    assert.equal(partialLine(dead, false, false), 'PARTIAL: gw-6: no session at the register, no answer: dead, or cut off', 'where no mail is looked at');
    const answers = await group.ask('gateway', () => Promise.resolve('here'));
    assert.deepEqual(answers.map((one) => one.id), ['gw-1']);
    const withToken = await findGroup(from(first, { tokenFile: tokensFile() }), contextFor([]), 300);
    assert.ok(!withToken.missing('gateway').some((one) => one.id === 'gw-4'));
  });

  test('knows who does not run by the register, though a file says an address, whoever is asked first', async () => {
    const named: Known = { id: 'gw-2', kind: 'gateway', admin: '127.0.0.1:1' };
    const storeKnows = [named];
    const store = await member({ id: 'store-a', kind: 'store' }, storeKnows);
    const first = await member({ id: 'gw-1', kind: 'gateway' }, [{ id: 'gw-2', kind: 'gateway', admin: null, away: true }, { id: 'store-a', kind: 'store', admin: store }]);
    storeKnows.push({ id: 'gw-1', kind: 'gateway', admin: first });
    for (const address of [first, store]) {
      const group = await findGroup(from(address), contextFor([]));
      assert.deepEqual([group.missing('gateway').map(missingText), group.unheard], [['gw-2: no session at the register, no answer: dead, or cut off'], []]);
    }
  });

  test('asks one that only lost its session; of one that says nothing stores tell whether it may deliver mail', async () => {
    const cut = await member({ id: 'gw-2', kind: 'gateway' }, []);
    const there = await member({ id: 'gw-1', kind: 'gateway' }, [{ id: 'gw-2', kind: 'gateway', admin: cut, away: true }]);
    const whole = await findGroup(from(there), contextFor([]));
    assert.deepEqual([whole.members.map(({ id }) => id), whole.missing('gateway')], [['gw-1', 'gw-2'], []], 'it answers');
    for (const [linked, text, unheard] of [
      [['gw-1', 'gw-2'], '; 1 store still has a link to it', ['gw-2']], [['gw-1'], '', []],
    ] as const) {
      const store = await member({ id: 'store-a', kind: 'store' }, [], undefined, linked);
      const first = await member({ id: 'gw-1', kind: 'gateway' }, [{ id: 'gw-2', kind: 'gateway', admin: '127.0.0.1:1', away: true }, { id: 'store-a', kind: 'store', admin: store }]);
      const group = await findGroup(from(first), contextFor([]));
      assert.deepEqual(group.missing('gateway').map(missingText), [`gw-2: no session at the register, no answer: dead, or cut off${text}`]);
      assert.deepEqual(group.unheard.map(({ id }) => id), unheard);
      const printed: string[] = [];
      reportMissing(group.missing('gateway'), 1, true, contextFor(printed).terminal);
      const { how, error, links } = JSON.parse(printed[0] ?? '') as Record<string, unknown>;
      assert.deepEqual([how, error, links], ['away', 'no session at the register, no answer: dead, or cut off; connection refused', linked.length - 1]);
    }
  });

  test('counts, where no store tells, those that ran once: not one that nobody has seen, nor one that is retired and has nothing left', async () => {
    const away = (id: string, admin: string | null = '127.0.0.1:1'): Known => ({ id, kind: 'gateway', admin, away: true });
    const first = await member({ id: 'gw-1', kind: 'gateway' }, [
      away('gw-2'), away('gw-3'), away('gw-4'), away('gw-never', null), { id: 'store-a', kind: 'store', admin: '127.0.0.1:1' },
    ], undefined, [], ['gw-3', 'gw-4']);
    const group = await findGroup(from(first), contextFor([]));
    assert.deepEqual(group.unheard.map(({ id }) => id), ['gw-2', 'gw-4']);
    const dead = 'no session at the register, no answer: dead, or cut off';
    const untold = `${dead}; whether it may deliver mail nobody tells (no store answers)`;
    assert.deepEqual(group.missing('gateway').map(missingText), [`gw-2: ${untold}`, `gw-3: ${dead}`, `gw-4: ${untold}`, `gw-never: ${dead}`]);
  });

  test('waits half a second for who is away where its questions are bounded, and says how long it did nothing else', async () => {
    const mute = await member(undefined, []);
    const first = await member({ id: 'gw-1', kind: 'gateway' }, [{ id: 'gw-2', kind: 'gateway', admin: mute, away: true }, { id: 'gw-3', kind: 'gateway', admin: '127.0.0.1:1' }]);
    const beganMs = performance.now();
    const { awaitedMs } = await findGroup(from(first), contextFor([]), 5_000);
    const lastedMs = performance.now() - beganMs;
    assert.ok(lastedMs < 1_500 && awaitedMs > 300 && awaitedMs < lastedMs, `${String(awaitedMs)} of ${String(lastedMs)} ms`);
  });

  test('whose questions are bounded waits a second for one that stands still, and takes none of that for asking', async () => {
    const still = await member(undefined, []);
    const first = await member({ id: 'gw-1', kind: 'gateway' }, [{ id: 'store-a', kind: 'store', admin: still }, { id: 'store-b', kind: 'store', admin: '127.0.0.1:1' }]);
    const beganMs = performance.now();
    const group = await findGroup(from(first), contextFor([]), 5_000);
    const lastedMs = performance.now() - beganMs;
    assert.ok(lastedMs < 3_000 && group.awaitedMs > 800, `${String(group.awaitedMs)} of ${String(lastedMs)} ms`);
    assert.equal(group.missing('store')[0]?.why, 'nothing within 1 s');
    const foundMs = group.awaitedMs;
    await group.ask('gateway', async ({ url }) => {
      await sleep(300);
      throw new NoAnswer(url, 'it fell silent');
    });
    assert.ok(group.awaitedMs >= foundMs + 250, 'what falls silent later is waited for, too');
    await assert.rejects(findGroup(from(still), contextFor([]), 5_000), /nothing within 1 s/);
  });

  test('is one member when told to keep to one', async () => {
    const first = await member({ id: 'gw-1', kind: 'gateway' }, [{ id: 'gw-2', kind: 'gateway', admin: '127.0.0.1:1' }]);
    const group = await findGroup(from(first, { only: true }), contextFor([]));
    assert.deepEqual([group.members.length, group.missing('gateway', 'store').length], [1, 0]);
  });

  test('that names itself in a circle, or names nonsense, is found all the same', async () => {
    const knows: Known[] = [{ id: 'gw-9', kind: 'gateway', admin: 'no address at all' }];
    const first = await member({ id: 'gw-1', kind: 'gateway' }, knows);
    knows.push({ id: 'gw-1', kind: 'gateway', admin: first });
    const group = await findGroup(from(first), contextFor([]));
    assert.deepEqual(group.members.map((one) => one.id), ['gw-1']);
    assert.deepEqual(group.missing('gateway').map((one) => one.id), ['gw-9']);
  });

  test('does not take another group for its own that answers at an address of its configuration', async () => {
    const theirStoreKnows: Known[] = [];
    const theirStore = await member({ id: 'store-a', kind: 'store' }, theirStoreKnows);
    const theirGateway = await member({ id: 'gw-7', kind: 'gateway' }, [{ id: 'store-a', kind: 'store', admin: theirStore }]);
    theirStoreKnows.push({ id: 'gw-7', kind: 'gateway', admin: theirGateway });
    const first = await member({ id: 'gw-1', kind: 'gateway' }, [{ id: 'st-1', kind: 'store', admin: theirStore }, { id: 'gw-7', kind: 'store', admin: theirGateway }]);
    const group = await findGroup(from(first), contextFor([]));
    assert.deepEqual(group.missing('gateway', 'store').map(missingText), [`gw-7: ${theirGateway} answers as the gateway gw-7`, `st-1: ${theirStore} answers as store-a`]);
    const answers = await Promise.all((['gateway', 'store'] as const).map((kind) => group.ask(kind, () => Promise.resolve('here'))));
    assert.deepEqual(answers.flat().map((one) => one.id), ['gw-1']);
  });

  test('of which somebody does not answer gives 3, of which nobody does 1', () => {
    const missing = [{ id: 'gw-2', kind: 'gateway', address: '127.0.0.1:1', why: 'connection refused', how: 'silent' }] as const;
    const printed: string[] = [];
    const { terminal } = contextFor(printed);
    assert.equal(reportMissing([], 1, false, terminal), 0);
    assert.equal(reportMissing(missing, 1, false, terminal), 3);
    assert.equal(missingText({ ...missing[0], why: "it refused: this gateway knows no store 'x'", how: 'refused' }), "gw-2 at 127.0.0.1:1: it refused: this gateway knows no store 'x'");
    assert.equal(reportMissing(missing, 0, true, terminal), 1);
    assert.deepEqual(printed, [
      'PARTIAL: gw-2: no answer from 127.0.0.1:1: connection refused',
      '{"partial":true,"member":"gw-2","kind":"gateway","address":"127.0.0.1:1","error":"connection refused","how":"silent"}',
      '! twinpost: nobody answered',
    ]);
    reportMissing([{ ...missing[0], why: 'it refused: not you', how: 'refused' }], 0, false, terminal);
    assert.deepEqual(printed.slice(3), ['PARTIAL: gw-2 at 127.0.0.1:1: it refused: not you', '! twinpost: it was refused']);
  });
});
