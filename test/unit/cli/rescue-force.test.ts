/** `twinpost rescue --force` asks before it does anything, and does nothing without a yes: what it prints, and what it asks of a gateway, in their order. */
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { after, beforeEach, describe, test } from 'node:test';
import { ask } from '../../../src/bin/ask.js';
import type { HeldPartitionAnswer } from '../../../src/admin-api/gateway-answers.js';
import { runCli } from '../../../src/cli/main.js';
import { forceCommands } from '../../../src/recovery/force.js';
import { contextFor } from './played-context.js';
import { RESCUED, STATUS } from './sample-answers.js';

const HELD: HeldPartitionAnswer = { partition: 'p3', owner: 'gw-1', id: 'gw-1/7/3', state: 'waiting', messages: 1200, waits_for: ['store-b'], why: '', since: 0 };
const WARNING = '! WARNING: gw-2 gives up what only store-b knows: mail may be lost, or delivered twice. It is logged who did this and why.';
const ABOUT = '! It is about p3 of gw-1 (waiting, 1,200 messages).';
const TAKEN = '1 partition taken without store-b: p3 of gw-1';

/** Lines printed and orders given, as they came. */
const happened: string[] = [];
let held: readonly HeldPartitionAnswer[] = [];
let heldCount = 0;
const gateway = http.createServer((request, response) => {
  if (request.method === 'POST') happened.push('ORDER');
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(request.method === 'POST' ? { ...RESCUED, partitions: ['p3 of gw-1'] } : { ...STATUS, gateway: 'gw-2', partitions_held: heldCount, held }));
});
await new Promise<void>((resolve) => { gateway.listen(0, '127.0.0.1', resolve); });
const ADDRESS = `127.0.0.1:${String((gateway.address() as AddressInfo).port)}`;
after(() => {
  gateway.closeAllConnections();
  gateway.close();
});
beforeEach(() => {
  happened.length = 0;
  held = [HELD];
  heldCount = 1;
});

/** As status prints it. */
const PRINTED = [...forceCommands({ name: 'p3', ownerId: 'gw-1' }, ['store-b']).split(' ').slice(1), '--from', ADDRESS];
const force = (answer: string | undefined, ...more: readonly string[]): Promise<number> => runCli([...PRINTED, ...more], contextFor(happened, {}, answer));

describe('twinpost rescue --force', () => {
  test('as it is printed warns, asks at the terminal, and then gives the order', async () => {
    assert.equal(await force('yes'), 0);
    assert.deepEqual(happened, [WARNING, ABOUT, '? Type yes to go on: ', 'ORDER', TAKEN]);
  });

  test('does nothing at any other answer', async () => {
    for (const answer of ['', 'y', 'no', 'YES']) {
      happened.length = 0;
      assert.equal(await force(answer), 1);
      assert.deepEqual(happened, [WARNING, ABOUT, '? Type yes to go on: ', '! twinpost: rescue --force: not confirmed, nothing was done'], answer);
    }
  });

  test('asks nobody with --yes, and warns before it does it all the same', async () => {
    for (const answer of [undefined, 'no']) {
      happened.length = 0;
      assert.equal(await force(answer, '--yes'), 0);
      assert.deepEqual(happened, [WARNING, ABOUT, 'ORDER', TAKEN]);
    }
  });

  test('is refused in one line where nobody can be asked', async () => {
    assert.equal(await force(undefined), 1);
    assert.deepEqual(happened, ['! twinpost: rescue --force: mail may be lost or delivered twice, so it asks first: give it at a terminal, or with --yes']);
  });

  test('names only the partitions that it is about, and says when there may be more', async () => {
    held = [HELD, { ...HELD, waits_for: ['store-a'] }, { ...HELD, owner: 'gw-2' }, { ...HELD, partition: 'p4' }];
    heldCount = 24;
    assert.equal(await force('no'), 1);
    assert.deepEqual(happened.slice(1, 3), [ABOUT, '! It may be about some of 20 more held partitions that status does not name.']);
    held = [{ ...HELD, waits_for: ['store-a'] }];
    heldCount = 1;
    happened.length = 0;
    await force('no');
    assert.deepEqual(happened.slice(0, 2), [WARNING, '? Type yes to go on: ']);
  });
});

describe('a question to an operator', () => {
  test('is written before the answer is read, which is the first line', async () => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const answer = ask('Type yes: ', input, output);
    assert.equal(String(output.read()), 'Type yes: ');
    input.write('yes\nno\n');
    assert.equal(await answer, 'yes');
  });

  test('is answered by nothing when the input ends', async () => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const answer = ask('Type yes: ', input, output);
    input.end();
    assert.equal(await answer, '');
    assert.equal(String(output.read()), 'Type yes: \n', 'what follows begins a line');
  });
});
