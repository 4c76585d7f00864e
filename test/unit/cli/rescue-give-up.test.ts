/**
 * `twinpost rescue --give-up` asks before it does anything, and does nothing without a yes: what it prints, and what it
 * asks of a gateway, in their order.
 */
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, beforeEach, describe, test } from 'node:test';
import { ask } from '../../../src/bin/ask.js';
import type { UntoldEndsAnswer, WaitingPartitionAnswer } from '../../../src/admin-api/gateway-answers.js';
import { runCli } from '../../../src/cli/main.js';
import { AwayCause, awayText } from '../../../src/recovery/ownership/waiting.js';
import { contextFor } from './played-context.js';
import { STATUS } from './sample-answers.js';

const WAITING: WaitingPartitionAnswer = {
  partition: 'gw-1/3', owner: 'gw-1', waits_for: 'copies away', copies: ['store-a', 'store-b'], begins_empty: true, why: '', since: 0,
};
const MEMORY: WaitingPartitionAnswer = { ...WAITING, partition: 'gw-1/6', copies: [] };
const WHOSE = 'gw-2 gives up the copies at store-a, store-b';
const COST = 'mail that is nowhere else is LOST, and mail may be delivered twice. It is logged who did this and why.';
const WARNING = `! WARNING: ${WHOSE}: ${COST}`;
const EMPTY = '! 1 partition has no other copy and will begin EMPTY: gw-1/3';
const QUESTION = '? Type yes to go on: ';
const DONE = '1 partition begins empty: gw-1/3';
const ELSE = 'start that, or name it too if it never comes back';

/** Lines printed and orders given, as they came. */
const happened: string[] = [];
let waiting: readonly WaitingPartitionAnswer[] = [];
let more = 0;
let ends: readonly UntoldEndsAnswer[] = [];
let answer: { readonly code: number; readonly body: object } = { code: 200, body: {} };
const gateway = http.createServer((request, response) => {
  void (async () => {
    const posted = request.method === 'POST' ? await text(request) : '';
    if (posted !== '') {
      const { who, ...order } = JSON.parse(posted) as Readonly<Record<string, unknown>>;
      happened.push(`ORDER ${JSON.stringify(order)}${typeof who === 'string' && who.includes('@') ? '' : ' by nobody'}`);
    }
    const counts = { register: 0, lease: 0, stores: 0, copies_away: more + waiting.filter((one) => one.waits_for === 'copies away').length };
    const status = { ...STATUS, gateway: 'gw-2', partitions_waiting: waiting.length + more, waiting_for: counts, waiting, ends_untold: ends };
    response.writeHead(posted === '' ? 200 : answer.code, { 'content-type': 'application/json' });
    response.end(JSON.stringify(posted === '' ? status : answer.body));
  })();
});
await new Promise<void>((resolve) => { gateway.listen(0, '127.0.0.1', resolve); });
const ADDRESS = `127.0.0.1:${String((gateway.address() as AddressInfo).port)}`;
after(() => {
  gateway.closeAllConnections();
  gateway.close();
});
beforeEach(() => {
  happened.length = 0;
  waiting = [WAITING];
  more = 0;
  ends = [];
  answer = { code: 200, body: { partitions: ['gw-1/3'], ended: [] } };
});

/** As status prints it. */
function printed(stores: readonly string[]): readonly string[] {
  const why = awayText({ cause: stores.length === 0 ? AwayCause.MEMORY : AwayCause.COPIES, stores }, { gatewayId: 'gw-2', incarnation: 7 });
  return [...why.slice(why.indexOf('twinpost rescue')).split(' ').slice(1), '--from', ADDRESS];
}

const BOTH = printed(['store-a', 'store-b']);
const ORDERED = 'ORDER {"give_up":["store-a","store-b"],"reason":"TEXT"}';

function run(typed: string | undefined, args: readonly string[] = BOTH, ...others: readonly string[]): Promise<number> {
  return runCli([...args, ...others], contextFor(happened, {}, typed));
}

describe('twinpost rescue --give-up', () => {
  test('as it is printed warns, asks at the terminal, and then gives the order', async () => {
    assert.equal(await run('yes'), 0);
    assert.deepEqual(happened, [WARNING, EMPTY, QUESTION, ORDERED, DONE]);
  });

  test('does nothing at any other answer', async () => {
    for (const typed of ['', 'y', 'no', 'YES']) {
      happened.length = 0;
      assert.equal(await run(typed), 1);
      assert.deepEqual(happened, [WARNING, EMPTY, QUESTION, '! twinpost: rescue: not confirmed, nothing was done'], typed);
    }
  });

  test('asks nobody with --yes, and warns before it does it all the same', async () => {
    for (const typed of [undefined, 'no']) {
      happened.length = 0;
      assert.equal(await run(typed, BOTH, '--yes'), 0);
      assert.deepEqual(happened, [WARNING, EMPTY, ORDERED, DONE]);
    }
  });

  test('is refused in one line where nobody can be asked, without a reason, and with two orders in one', async () => {
    assert.equal(await run(undefined), 2);
    assert.equal(await run('yes', ['rescue', '--give-up', 'store-a', '--from', ADDRESS]), 2);
    assert.equal(await run('yes', BOTH, '--give-up-memory'), 2);
    assert.deepEqual(happened, [
      '! twinpost: rescue: mail may be lost or delivered twice, so it asks first: give it at a terminal, or with --yes',
      '! twinpost: rescue: say the --reason, which is logged',
      '! twinpost: rescue: --give-up and --give-up-memory are two orders: give one after the other',
    ]);
  });

  test('tells what begins empty from what has another copy, and is left as before', async () => {
    waiting = [WAITING, { ...WAITING, partition: 'gw-1/4', copies: ['store-a', 'store-c'] }, { ...WAITING, partition: 'gw-1/5', copies: ['store-d'] }, MEMORY];
    assert.equal(await run('yes'), 0);
    const other = `! 1 partition has another copy at store-c, and is left as before: gw-1/4; ${ELSE}`;
    assert.deepEqual(happened.slice(1), [EMPTY, other, QUESTION, ORDERED, DONE]);
  });

  test('says of a partition that only waits for what these may know that it goes on, not that it begins empty', async () => {
    waiting = [{ ...WAITING, begins_empty: false }];
    assert.equal(await run('yes'), 0);
    const GOES_ON = '1 partition waits for store-a, store-b no more, and goes on with the mail that the other stores have: gw-1/3';
    const OTHER = '! If gw-1 lives, it may wait for the same: status there asks for an order of its own.';
    assert.deepEqual(happened.slice(1), [`! ${GOES_ON}`, OTHER, QUESTION, ORDERED, GOES_ON]);
  });

  test('does not say of partitions that status did not name that they begin empty', async () => {
    answer = { code: 200, body: { partitions: ['gw-1/3', 'gw-1/9'], ended: [] } };
    assert.equal(await run('yes'), 0);
    assert.deepEqual(happened.slice(-2), [DONE, '1 more partition had it, too; status says which of them began empty: gw-1/9']);
  });

  test('prints a line of JSON for each partition', async () => {
    assert.equal(await run('yes', BOTH, '--json'), 0);
    assert.deepEqual(JSON.parse(happened.at(-1) ?? ''), { gateway: 'gw-2', partition: 'gw-1/3', gave_up: ['store-a', 'store-b'] });
  });

  test('ends with 3, asks nothing and does nothing when nothing waits for it', async () => {
    const NOTHING = '! twinpost: rescue: no partition at gw-2 waits for the copies at store-a, store-b; nothing was done';
    for (const others of [[], [{ ...WAITING, copies: ['store-c'] }], [MEMORY], [{ ...WAITING, waits_for: 'lease' }]]) {
      happened.length = 0;
      waiting = others;
      assert.equal(await run('yes'), 3);
      assert.deepEqual(happened, [NOTHING]);
    }
    happened.length = 0;
    waiting = [{ ...WAITING, copies: ['store-a', 'store-c'] }];
    assert.equal(await run('yes'), 3);
    assert.deepEqual(happened, [
      `! 1 partition has another copy at store-c, and is left as before: gw-1/3; ${ELSE}`,
      '! twinpost: rescue: no partition at gw-2 waits for the copies at store-a, store-b alone; nothing was done',
    ]);
  });

  test('ends with 3 when the gateway says so, and with 1 when it refuses', async () => {
    answer = { code: 409, body: { error: 'no partition waits; nothing was done' } };
    assert.equal(await run('yes'), 3);
    assert.equal(happened.at(-1), `! twinpost: http://${ADDRESS}: it refused: no partition waits; nothing was done`);
    answer = { code: 404, body: { error: 'no such store; nothing was done' } };
    assert.equal(await run('yes'), 1);
    assert.equal(happened.at(-1), `! twinpost: http://${ADDRESS}: it refused: no such store; nothing was done`);
  });

  test('says when it may be about more than status names', async () => {
    waiting = [];
    more = 20;
    assert.equal(await run('no'), 1);
    assert.deepEqual(happened.slice(0, 3), [WARNING, '! It may be about some of 20 more partitions that status does not name.', QUESTION]);
  });

  test('gives up what only a process had in memory, and no store, by an order of its own', async () => {
    waiting = [WAITING, MEMORY];
    answer = { code: 200, body: { partitions: ['gw-1/6'], ended: [] } };
    assert.equal(await run('yes', printed([])), 0);
    assert.deepEqual(happened, [
      `! WARNING: gw-2 gives up what only a process had in memory: ${COST}`,
      '! 1 partition has no other copy and will begin EMPTY: gw-1/6', QUESTION,
      'ORDER {"give_up":[],"memory":true,"reason":"TEXT"}', '1 partition begins empty: gw-1/6',
    ]);
  });

  test('ends what waits only to tell these stores that it has ended: nothing is lost by it', async () => {
    ends = [{ stores: ['store-a'], partitions: 2, names: ['gw-9/0', 'gw-9/1'] }, { stores: ['store-a', 'store-c'], partitions: 7, names: [] }];
    answer = { code: 200, body: { partitions: ['gw-1/3'], ended: ['gw-9/0', 'gw-9/1'] } };
    const END = '! 2 partitions that have ended wait for store-a, store-b no more: no mail is lost by that. A store that comes back after all is told to drop its copies.';
    const ENDED = '2 partitions that have ended wait for store-a, store-b no more: gw-9/0, gw-9/1';
    assert.equal(await run('yes'), 0);
    assert.deepEqual(happened, [WARNING, EMPTY, END, QUESTION, ORDERED, DONE, ENDED]);
    happened.length = 0;
    waiting = [];
    answer = { code: 200, body: { partitions: [], ended: ['gw-9/0', 'gw-9/1'] } };
    assert.equal(await run('yes'), 0);
    assert.deepEqual(happened, [END, QUESTION, ORDERED, ENDED]);
    happened.length = 0;
    assert.equal(await run('yes', BOTH, '--json'), 0);
    assert.deepEqual(JSON.parse(happened.at(-1) ?? ''), { gateway: 'gw-2', partition: 'gw-9/1', gave_up: ['store-a', 'store-b'], ended: true });
  });

  test('is what --reason, --yes and --json belong to', async () => {
    assert.equal(await run('yes', ['rescue', '--reason', 'x']), 2);
    assert.deepEqual(happened, ['! twinpost: rescue: --reason, --yes and --json belong to --give-up']);
  });
});

describe('a question to an operator', () => {
  test('is written before the answer is read, which is the first line', async () => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const asked = ask('Type yes: ', input, output);
    assert.equal(String(output.read()), 'Type yes: ');
    input.write('yes\nno\n');
    assert.equal(await asked, 'yes');
  });

  test('is answered by nothing when the input ends', async () => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const asked = ask('Type yes: ', input, output);
    input.end();
    assert.equal(await asked, '');
    assert.equal(String(output.read()), 'Type yes: \n', 'what follows begins a line');
  });
});
