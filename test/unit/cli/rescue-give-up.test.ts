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
import type { MemberAnswer } from '../../../src/admin-api/pages.js';
import { runCli } from '../../../src/cli/main.js';
import { AwayCause, awayText } from '../../../src/recovery/ownership/waiting.js';
import { contextFor } from './played-context.js';
import { STATUS } from './sample-answers.js';

const WAITING: WaitingPartitionAnswer = {
  partition: 'gw-1/3', owner: 'gw-1', waits_for: 'copies away', copies: ['store-a', 'store-b'], begins_empty: true, since: 0,
  why: awayText({ cause: AwayCause.COPIES, stores: ['store-a', 'store-b'] }, { gatewayId: 'gw-2', incarnation: 7 }),
};
const MEMORY: WaitingPartitionAnswer = { ...WAITING, partition: 'gw-1/6', copies: [] };
const WHOSE = 'gw-2 gives up the copies at store-a, store-b';
const COST = 'mail that is nowhere else is LOST, and mail may be delivered twice. It is logged who did this and why.';
const WARNING = `! WARNING: ${WHOSE}: ${COST}`;
const EMPTY = '! 1 partition has no other copy and will begin EMPTY: gw-1/3';
const QUESTION = '? Type yes to go on: ';
const DONE = '1 partition will begin empty: gw-1/3';
const ELSE = 'start that, or name it too if it never comes back';

/** Lines printed and orders given, as they came; those at gw-1 with its name. */
const happened: string[] = [];
let waiting: readonly WaitingPartitionAnswer[] = [];
/** At gw-1. */
let waitingThere: readonly WaitingPartitionAnswer[] = [];
let more = 0;
let ends: readonly UntoldEndsAnswer[] = [];
let answer: { readonly code: number; readonly body: object } = { code: 200, body: {} };
let answerThere = answer;
/** Beside the one that is asked. */
let fellows: readonly (Omit<MemberAnswer, 'self' | 'kind'> & { readonly kind?: 'store' })[] = [];

async function gateway(id: string, isFirst: boolean): Promise<string> {
  const server = http.createServer((request, response) => {
    void (async () => {
      const posted = request.method === 'POST' ? await text(request) : '';
      if (posted !== '') {
        const { who, ...order } = JSON.parse(posted) as Readonly<Record<string, unknown>>;
        happened.push(`ORDER ${isFirst ? '' : `${id} `}${JSON.stringify(order)}${typeof who === 'string' && who.includes('@') ? '' : ' by nobody'}`);
      }
      const { code, body } = posted === '' ? { code: 200, body: asked(id, isFirst, request.url ?? '') } : isFirst ? answer : answerThere;
      response.writeHead(code, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    })();
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `127.0.0.1:${String((server.address() as AddressInfo).port)}`;
}

function asked(id: string, isFirst: boolean, url: string): object {
  if (url.endsWith('/group')) {
    const self = { id, kind: id.startsWith('store') ? 'store' : 'gateway', admin: null, away: false, self: true };
    return { members: [self, ...(isFirst ? fellows : []).map((one) => ({ kind: 'gateway', ...one, self: false }))] };
  }
  const here = isFirst ? waiting : waitingThere;
  const hidden = isFirst ? more : 0;
  const counts = { register: 0, lease: 0, stores: 0, copies_away: hidden + here.filter((one) => one.waits_for === 'copies away').length };
  return { ...STATUS, gateway: id, partitions_waiting: here.length + hidden, waiting_for: counts, waiting: here, ends_untold: isFirst ? ends : [] };
}

const ADDRESS = await gateway('gw-2', true);
const STORE_C = { id: 'store-c', kind: 'store', admin: await gateway('store-c', false), away: false } as const;
const THERE = { id: 'gw-1', admin: await gateway('gw-1', false), away: false };
beforeEach(() => {
  happened.length = 0;
  waiting = [WAITING];
  waitingThere = [];
  fellows = [];
  more = 0;
  ends = [];
  answer = { code: 200, body: { partitions: ['gw-1/3'], ended: [] } };
  answerThere = { code: 409, body: { error: 'no partition waits; nothing was done' } };
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

  test('is not about what a living process has, though status asks a person for it', async () => {
    const why = awayText({ cause: AwayCause.HELD, stores: ['store-a'] }, { gatewayId: 'gw-2', incarnation: 7 });
    const held = { ...WAITING, partition: 'gw-1/4', copies: ['store-a'], begins_empty: false, why };
    waiting = [WAITING, held];
    assert.equal(await run('yes'), 0);
    assert.deepEqual(happened, [WARNING, EMPTY, QUESTION, ORDERED, DONE]);
    happened.length = 0;
    waiting = [held];
    assert.equal(await run('yes'), 3);
    assert.deepEqual(happened, ['! twinpost: rescue: no partition at gw-2 waits for the copies at store-a, store-b; nothing was done']);
  });

  test('says of a partition that only waits for what these may know that it goes on, not that it begins empty', async () => {
    waiting = [{ ...WAITING, begins_empty: false }];
    assert.equal(await run('yes'), 0);
    const GOES_ON = '1 partition waits for store-a, store-b no more, and goes on with the mail that the other stores have: gw-1/3';
    assert.deepEqual(happened.slice(1), [`! ${GOES_ON}`, QUESTION, ORDERED, GOES_ON]);
  });

  test('does not say of partitions that status did not name that they begin empty', async () => {
    answer = { code: 200, body: { partitions: ['gw-1/3', 'gw-1/9'], ended: [] } };
    assert.equal(await run('yes'), 0);
    assert.deepEqual(happened.slice(-2), [DONE, '1 more partition had it, too; status says which of them begin empty: gw-1/9']);
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
      'ORDER {"give_up":[],"memory":true,"reason":"TEXT"}', '1 partition will begin empty: gw-1/6',
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

describe('twinpost rescue --give-up, of a group', () => {
  const NOT_RUNNING = 'gw-3: no session at the register, no answer: dead, or cut off';
  const CUT_OFF = '! Who is only cut off may have in memory what the stores lack, and wait for the same: look there first.';
  const GONE = { id: 'gw-3', admin: null, away: true };
  const ORDERED_THERE = 'ORDER gw-1 {"give_up":["store-a","store-b"],"reason":"TEXT"}';
  const BOTH_WARNED = `! WARNING: gw-1, gw-2 give up the copies at store-a, store-b: ${COST}`;
  /** They are asked at the same time. */
  const orders = (): readonly string[] => happened.filter((line) => line.startsWith('ORDER')).sort();
  const lines = (): readonly string[] => happened.filter((line) => !line.startsWith('ORDER'));

  test('goes to every gateway that answers, and says once what they have in common; who does not run is left out', async () => {
    fellows = [THERE, GONE];
    waitingThere = [WAITING, { ...WAITING, partition: 'gw-1/5', begins_empty: false }];
    answerThere = { code: 200, body: { partitions: ['gw-1/3', 'gw-1/5'], ended: [] } };
    assert.equal(await run('yes'), 0);
    assert.deepEqual(orders(), [ORDERED_THERE, ORDERED]);
    const GOES_ON = '1 partition waits for store-a, store-b no more, and goes on with the mail that the other stores have: gw-1/5';
    assert.deepEqual(lines(), [
      BOTH_WARNED, '! gw-1, gw-2: 1 partition has no other copy and will begin EMPTY: gw-1/3', `! gw-1: ${GOES_ON}`,
      `! NOT ASKED: ${NOT_RUNNING}`, CUT_OFF, QUESTION,
      `gw-1, gw-2: ${DONE}`, `gw-1: ${GOES_ON}`,
    ]);
  });

  test('goes to one for which nothing waits, too, and is done when another does it', async () => {
    fellows = [THERE];
    for (const code of [409, 404]) {
      happened.length = 0;
      answerThere = { code, body: { error: 'no' } };
      assert.equal(await run('yes'), 0);
      assert.deepEqual(orders(), [ORDERED_THERE, ORDERED]);
      assert.deepEqual(lines(), [WARNING, '! gw-2: 1 partition has no other copy and will begin EMPTY: gw-1/3', QUESTION, `gw-2: ${DONE}`]);
    }
  });

  test('names who would not take it also where nothing waits at all others', async () => {
    fellows = [THERE];
    answer = { code: 503, body: { error: 'the register is away; give the order again' } };
    assert.equal(await run('yes'), 3);
    assert.match(lines().at(-2) ?? '', /^PARTIAL: gw-2 at .*: the register is away; give the order again$/);
    assert.match(lines().at(-1) ?? '', /it refused: no partition waits; nothing was done$/);
  });

  test('goes to one alone with --only, which says what that leaves', async () => {
    fellows = [THERE];
    assert.equal(await run('yes', BOTH, '--only'), 0);
    assert.deepEqual(happened, [
      WARNING, EMPTY, '! Only this gateway is asked (--only). Another one that waits for the same needs the order, too: until then a partition may go to and fro between them.',
      QUESTION, ORDERED, DONE,
    ]);
  });

  test('names who lives and has in memory what is to begin empty; --yes does nothing then, a typed yes does', async () => {
    fellows = [THERE];
    waitingThere = [
      { ...WAITING, waits_for: 'register', messages: 199 }, { ...WAITING, waits_for: 'stores', partition: 'gw-1/5', messages: 7 },
      { ...WAITING, waits_for: 'stores', partition: 'gw-1/4', messages: 0 },
    ];
    const lives = (count: number, what: string, names: string): string =>
      `! gw-1 LIVES, waits for ${what}, and has ${String(count)} messages in memory, which this order may LOSE: ${names}. Let it reach the register and the stores instead: it goes on by itself.`;
    assert.equal(await run(undefined, BOTH, '--yes'), 1);
    assert.deepEqual(happened, [WARNING, '! gw-2: 1 partition has no other copy and will begin EMPTY: gw-1/3', lives(199, 'register', 'gw-1/3'),
      '! twinpost: rescue: a living process has mail in memory, which --yes does not give up; nothing was done. Let it reach the register and the stores first, or, if that mail may be lost, stop it; or give the order at a terminal']);
    happened.length = 0;
    assert.equal(await run('yes'), 0);
    assert.deepEqual([lines().includes(lives(199, 'register', 'gw-1/3')), orders()], [true, [ORDERED_THERE, ORDERED]]);
    // It may be about partitions that status does not name.
    more = 1;
    happened.length = 0;
    assert.equal(await run(undefined, BOTH, '--yes'), 1);
    assert.ok(happened.includes(lives(206, 'register, stores', 'gw-1/3, gw-1/5')), happened.join('\n'));
    more = 0;
    waitingThere = [{ ...WAITING, waits_for: 'stores', messages: 0 }, { ...WAITING, waits_for: 'stores', partition: 'gw-1/5', messages: 7 }];
    assert.equal(await run(undefined, BOTH, '--yes'), 0);
  });

  test('names each store that answers, and is waited for all the same', async () => {
    fellows = [STORE_C, { id: 'store-a', kind: 'store', admin: '127.0.0.1:1', away: false }];
    waiting = [{ ...WAITING, copies: ['store-a', 'store-c'] }];
    const ANSWERS = '! store-c ANSWERS at its admin address: who waits for it does not reach it. Mend that instead: what it has is delivered then.';
    assert.equal(await run('yes', printed(['store-a', 'store-c'])), 0);
    assert.deepEqual(happened.slice(1, 4), [EMPTY, ANSWERS, QUESTION]);
    // Where it is named, and nobody waits for it: it has restarted, without what it had.
    waiting = [{ ...WAITING, copies: ['store-a'] }];
    happened.length = 0;
    assert.equal(await run('yes', printed(['store-a', 'store-c'])), 0);
    assert.deepEqual(happened.slice(1, 3), [EMPTY, QUESTION]);
  });

  test('names who may run and did not hear it, before and after, and ends with 3', async () => {
    fellows = [{ id: 'gw-1', admin: '127.0.0.1:1', away: false }, GONE];
    const SILENT = 'gw-1: no answer from 127.0.0.1:1: connection refused';
    const UNASKED = [`! NOT ASKED: ${SILENT}`, `! NOT ASKED: ${NOT_RUNNING}`, CUT_OFF];
    assert.equal(await run('yes'), 3);
    assert.deepEqual(happened, [WARNING, EMPTY, ...UNASKED, QUESTION, ORDERED, DONE, `PARTIAL: ${SILENT}`]);
    happened.length = 0;
    waiting = [];
    assert.equal(await run('yes'), 3);
    assert.deepEqual(happened, ['! twinpost: rescue: no partition at gw-2 waits for the copies at store-a, store-b; nothing was done', ...UNASKED]);
  });

  test('is not done where its register does not take it, which is named', async () => {
    fellows = [THERE];
    answerThere = { code: 503, body: { error: 'the register is away; nothing was done' } };
    assert.equal(await run('yes'), 3);
    assert.equal(happened.at(-1), `PARTIAL: gw-1 at ${THERE.admin}: it refused: the register is away; nothing was done`);
  });
});
