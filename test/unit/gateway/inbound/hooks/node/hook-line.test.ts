/** The line in front of a hook: which time limit has ended, and that nobody is held behind it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { HookLine } from '../../../../../../src/gateway/inbound/hooks/node/hook-line.js';
import type { HookAsk } from '../../../../../../src/gateway/inbound/hooks/node/hook-line.js';
import type { HookAnswer } from '../../../../../../src/gateway/inbound/hooks/message-hook.js';
import { judged } from '../judged.js';

const LIMIT_MS = 100;
const ACCEPT: HookAnswer = { action: 'accept', fields: [] };

/** Two ends of one connection: what one writes is in the kernel at once, and read when the loop gets there. */
async function withSockets(body: (near: Socket, far: Socket) => Promise<void>): Promise<void> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const near = net.connect((server.address() as AddressInfo).port, '127.0.0.1').setNoDelay(true);
  const [far] = await once(server, 'connection') as [Socket];
  try {
    await body(near, far);
  } finally {
    near.destroy();
    far.destroy();
    server.close();
  }
}

function spin(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

describe('the line in front of a hook', { timeout: 30_000 }, () => {
  test('never calls failed whose wait has ended as a place became free', async () => {
    await withSockets(async (near, far) => {
      const started: HookAsk[] = [];
      let hasPlace = true;
      const line = new HookLine(LIMIT_MS, {
        hasPlace: () => hasPlace,
        start: (ask) => {
          started.push(ask);
          hasPlace = false;
        },
      });
      // An answer: read behind the timers of its turn of the loop, in front of what these have put off.
      far.on('data', () => {
        hasPlace = true;
        started[0]?.settle(ACCEPT);
        line.goOn();
      });
      const first = new Promise<HookAnswer>((resolve) => { line.ask(judged(), resolve); });
      const second = new Promise<HookAnswer>((resolve) => { line.ask(judged(), resolve); });
      await new Promise((resolve) => { setImmediate(resolve); });
      near.write('.');
      spin(LIMIT_MS * 1.5);
      assert.deepEqual(await Promise.all([first, second]), [ACCEPT, { action: 'busy' }]);
      assert.equal(started.length, 1);
    });
  });

  test('gives each its whole time to be worked on, though its wait was about to end', (t) => {
    let nowMs = 0;
    t.mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] });
    t.mock.method(performance, 'now', () => nowMs);
    const pass = (ms: number): void => {
      nowMs += ms;
      t.mock.timers.tick(ms);
      // What a timer has put off to the end of its turn.
      t.mock.timers.tick(0);
    };
    let hasPlace = false;
    const answers: HookAnswer[] = [];
    const line = new HookLine(LIMIT_MS, { hasPlace: () => hasPlace, start: () => undefined });
    line.ask(judged(), (answer) => { answers.push(answer); });
    pass(LIMIT_MS - 1);
    hasPlace = true;
    line.goOn();
    pass(LIMIT_MS - 1);
    assert.deepEqual(answers, []);
    pass(1);
    assert.deepEqual(answers, [{ action: 'failed', why: `no answer in ${String(LIMIT_MS)} ms` }]);
  });

  test('holds nothing of those that waited in vain, nor of one that is late while its work ends', async () => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    const started: HookAsk[] = [];
    const line = new HookLine(LIMIT_MS, { hasPlace: () => started.length === 0, start: (ask) => { started.push(ask); } });
    const held: WeakRef<Uint8Array>[] = [];
    const ask = (): Promise<HookAnswer> => {
      const piece = new Uint8Array(1_000_000);
      held.push(new WeakRef(piece));
      return new Promise((resolve) => { line.ask(judged({}, [piece]), resolve); });
    };
    const answers = await Promise.all(Array.from({ length: 20 }, ask));
    assert.deepEqual(answers.map(({ action }) => action), ['failed', ...Array.from({ length: 19 }, () => 'busy')]);
    // A WeakRef holds its object until the turn that made or read it is over.
    await new Promise((resolve) => { setImmediate(resolve); });
    gc();
    assert.equal(held.filter((piece) => piece.deref() !== undefined).length, 0);
    // Both are still there.
    assert.equal(started[0]?.isSettled, true);
    line.failAll('over');
  });
});
