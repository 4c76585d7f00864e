/** `twinpost status --watch` in a window: what it draws is as high as the window, and says what is left out. */
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CliError } from '../../../src/cli/context.js';
import { showLive } from '../../../src/cli/live.js';
import { runCli } from '../../../src/cli/main.js';
import { contextFor } from './played-context.js';
import { STATUS } from './sample-answers.js';

const ANSWERS: ReadonlyMap<string, object> = new Map<string, object>([
  ['/api/v1/group', { members: [{ id: 'gw-1', kind: 'gateway', admin: null, away: false, self: true }] }], ['/api/v1/status', STATUS], ['/api/v1/mirrors', { rows: [], next_cursor: null }],
]);

const gateway = http.createServer((request, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(ANSWERS.get((request.url ?? '').replace(/\?.*/, '')) ?? {}));
});
await new Promise<void>((resolve) => { gateway.listen(0, '127.0.0.1', resolve); });
const ADDRESS = `127.0.0.1:${String((gateway.address() as AddressInfo).port)}`;
after(() => {
  gateway.closeAllConnections();
  gateway.close();
});

/** The rows of the first picture that is drawn in a window of this height. */
async function firstPicture(rows: number): Promise<readonly string[]> {
  const stop = new AbortController();
  const context = contextFor([]);
  let picture = '';
  const write = (text: string): void => {
    if (!text.startsWith('\u001b[H')) return;
    picture = text;
    stop.abort();
  };
  assert.equal(await runCli(['status', '--watch', '--from', ADDRESS], { ...context, terminal: { ...context.terminal, write, isTty: true, rows }, stopSignal: stop.signal }), 0);
  return picture.slice('\u001b[H'.length, -'\u001b[J'.length).split('\u001b[K\n').slice(0, -1);
}

/** How long two looks take, each of so many milliseconds. */
async function twoLooks(look: () => Promise<object>): Promise<number> {
  const beganMs = performance.now();
  await showLive({ look, lines: () => [], print: () => undefined }, { json: false, ticks: 2 }, contextFor([]));
  return performance.now() - beganMs;
}

test('a live view comes at its interval though each look waits for who says nothing', async () => {
  const fails = async (): Promise<object> => {
    await sleep(300);
    throw new CliError('no answer');
  };
  const [busy, waiting, failing] = await Promise.all([
    twoLooks(() => sleep(300, { awaitedMs: 0 })), twoLooks(() => sleep(900, { awaitedMs: 900 })), twoLooks(fails),
  ]);
  assert.ok(busy > 3_200 && waiting < 2_500 && failing < 2_500, `${String(busy)}, ${String(waiting)}, ${String(failing)} ms`);
});

describe('twinpost status --watch', () => {
  test('says in its last row how much does not fit, and nothing when all does', async () => {
    const whole = await firstPicture(50);
    assert.equal(whole.at(-1), 'no partitions yet');
    assert.deepEqual(await firstPicture(whole.length + 1), whole, 'the cursor has the row below');
    assert.deepEqual(await firstPicture(whole.length), [...whole.slice(0, -2), '… 2 more lines']);
    assert.deepEqual(await firstPicture(5), [...whole.slice(0, 3), `… ${String(whole.length - 3)} more lines`]);
  });
});
