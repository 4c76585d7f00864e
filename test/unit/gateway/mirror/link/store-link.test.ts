import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import * as types from '../../../../../src/protocol/message-types.js';
import * as reasons from '../../../../../src/protocol/reasons.js';
import { encodeRefusal } from '../../../../../src/protocol/messages/refusal.js';
import { sampleOf } from '../../../protocol/samples.js';
import { LinkBench, packer } from './scripted-store.js';

const CONTROL = packer.pack([1, 2, 3]).slice();

describe('requests', () => {
  test('a turn of requests goes out in one write, bodies uncopied, sequences counting on from the handshake', () => {
    const bench = new LinkBench();
    bench.up();
    const body = new Uint8Array([1, 2, 3]);
    const other = new Uint8Array([4]);
    const writes = bench.a.writes.length;
    assert.equal(bench.link.request(types.CHANGES, CONTROL, [body, other], 131), 4);
    assert.equal(bench.link.request(types.FENCE, CONTROL, [], 0), 5);
    assert.equal(bench.a.writes.length, writes, 'nothing before flush');
    bench.link.flush();
    assert.equal(bench.a.writes.length, writes + 1);
    const chunks = bench.a.writes.at(-1) ?? [];
    assert.equal(chunks[1], body, 'the very same bytes');
    assert.equal(chunks[2], other);
    assert.deepEqual(bench.a.names(), ['HELLO', 'PROOF', 'CHANGES', 'FENCE']);
    assert.deepEqual([...(bench.a.frames[2]?.bodies ?? [])], [1, 2, 3, 4]);
    bench.link.flush();
    assert.equal(bench.a.writes.length, writes + 1, 'nothing to send is no write');
  });

  test('a heartbeat takes its place behind requests that were queued before it', () => {
    const bench = new LinkBench();
    bench.up();
    bench.link.request(types.FENCE, CONTROL, [], 0);
    bench.pass(250);
    assert.deepEqual(bench.a.names(), ['HELLO', 'PROOF', 'FENCE', 'HEARTBEAT']);
  });

  test('an acknowledgement is told queue by queue, then as a whole', () => {
    const bench = new LinkBench();
    bench.up();
    const sequence = bench.link.request(types.CHANGES, CONTROL, [], 0);
    bench.link.flush();
    bench.a.ack(sequence, 500, 7, 41, 9, 3);
    assert.deepEqual(bench.told, ['queue 7 at 41', 'queue 9 at 3', `through ${String(sequence)}`]);
    assert.equal(bench.link.unackedBytes, 0);
    assert.equal(bench.link.credit, 500);
  });

  test('a refusal comes before the acknowledgement that covers it', () => {
    const bench = new LinkBench();
    bench.up();
    const sequence = bench.link.request(types.CHANGES, CONTROL, [], 0);
    const refusal = { sequence, handle: 7, reason: reasons.REFUSAL_GAP, number: 4, digestA: 1, digestB: 2, text: 'gap' };
    bench.a.send(types.REFUSAL, sequence, encodeRefusal(packer, refusal));
    bench.a.ack(sequence, 500);
    assert.deepEqual(bench.told, ['refusal 1 of 4', 'through 4']);
  });

  test('replies are handed on with their bodies and free their request', () => {
    const bench = new LinkBench();
    bench.up();
    const sequence = bench.link.request(types.PULL, CONTROL, [], 0);
    bench.link.flush();
    assert.ok(bench.link.unackedBytes > 0);
    const block = sampleOf('block');
    bench.a.send(types.BLOCK, sequence, block.encode(packer, block.value), block.bodies);
    assert.deepEqual(bench.told, [`BLOCK to 4, ${String(block.bodies.length)} bytes`]);
    assert.equal(bench.link.unackedBytes, 0);
  });

  for (const name of ['asked', 'fenced', 'block', 'tailed']) {
    test(`a malformed ${name} is told to nobody: it ends the connection, and the store hears which rule it broke`, () => {
      const { type, value, bodies, encode } = sampleOf(name);
      const word = types.messageTypeName(type);
      const broken: readonly (readonly [rule: string, control: Uint8Array, bodies: Uint8Array])[] = [
        ['element count', packer.pack([1]).slice(), new Uint8Array(0)],
        ['bodies', encode(packer, value).slice(), Uint8Array.from([...bodies, 0])],
      ];
      for (const [rule, control, wrongBodies] of broken) {
        const bench = new LinkBench({}, false);
        bench.up();
        const sequence = bench.link.request(types.PULL, CONTROL, [], 0);
        bench.a.send(type, sequence, control, wrongBodies);
        assert.deepEqual(bench.told, [`down: malformed: ${word}: ${rule}`]);
        assert.deepEqual(bench.a.closeSent(), { reason: reasons.CLOSE_MALFORMED, text: `${word}: ${rule}`, detail: 0 });
        assert.equal(bench.link.unackedBytes, 0);
      }
    });
  }

  test('requests and flush from inside an event go out', () => {
    const bench = new LinkBench();
    bench.onEvent = (event) => {
      if (event !== 'up') return;
      bench.link.request(types.ASK, CONTROL, [], 0);
      bench.link.flush();
    };
    bench.start();
    bench.a.accept();
    assert.deepEqual(bench.a.names(), ['HELLO', 'PROOF', 'ASK']);
  });

  test('a link closed from inside an acknowledgement says nothing more', () => {
    const bench = new LinkBench();
    bench.up();
    const sequence = bench.link.request(types.CHANGES, CONTROL, [], 0);
    bench.onEvent = () => { bench.link.close(); };
    bench.a.ack(sequence, 500, 7, 41, 9, 3);
    assert.deepEqual(bench.told, ['queue 7 at 41']);
    assert.equal(bench.a.closeSent().reason, reasons.CLOSE_STOPPING);
    assert.ok(bench.a.isEnded && bench.b.isEnded);
    bench.pass(5_000);
    assert.equal(bench.network.attempts.length, 2);
  });
});

describe('credit that mail was refused for', () => {
  function tokens(bench: LinkBench): number[] {
    bench.link.flush();
    return bench.a.frames.filter(({ type }) => type === types.HEARTBEAT).map(({ control }) => (packer.unpack(control) as number[])[0] ?? -1);
  }

  test('is asked for by the last heartbeat once more, until the store grants it', () => {
    const bench = new LinkBench();
    bench.up();
    bench.pass(250);
    bench.link.askCredit(5000);
    bench.link.askCredit(400);
    const [first, again, ...more] = tokens(bench);
    assert.ok(first !== undefined && again === first && more.length === 0, 'once between two');
    bench.a.beat(100);
    assert.equal(tokens(bench).length, 2);
    bench.pass(250);
    bench.a.beat(3000);
    const [, , next, nextAgain] = tokens(bench);
    assert.ok(next !== undefined && next > first && nextAgain === next);
    bench.a.beat(5000);
    bench.pass(250);
    bench.a.beat(10);
    assert.equal(tokens(bench).length, 5, 'nobody wants it any more');
    assert.ok(bench.link.isUp);
  });

  test('is not asked for without end, nor by one that only looks so', () => {
    const bench = new LinkBench();
    bench.up();
    bench.link.askCredit(5000);
    for (let i = 0; i < 40; i++) {
      bench.pass(250);
      bench.a.beat(10);
      bench.b.beat(10);
    }
    const all = tokens(bench);
    const repeated = all.length - new Set(all).size;
    assert.ok(repeated > 2 && repeated <= 20, `${String(repeated)} of ${String(all.length)}`);
    assert.equal(new Set(all.slice(-10)).size, 10);
  });
});

describe('byte window', () => {
  test('canSend turns false when full and onWritable comes once when it opens', () => {
    const bench = new LinkBench({ windowBytes: 1_000 });
    bench.up();
    const first = bench.link.request(types.CHANGES, CONTROL, [new Uint8Array(600)], 0);
    assert.equal(bench.link.canSend, true);
    const second = bench.link.request(types.CHANGES, CONTROL, [new Uint8Array(600)], 0);
    assert.equal(bench.link.canSend, false);
    assert.equal(bench.link.unackedBytes, 2 * (24 + CONTROL.length + 600));
    const past = bench.link.request(types.CHANGES, CONTROL, [], 0);
    bench.link.flush();
    assert.equal(past, second + 1, 'what is numbered still goes out');
    bench.a.ack(first, 0);
    assert.equal(bench.link.canSend, true);
    assert.equal(bench.told.filter((event) => event === 'writable').length, 1);
    bench.a.ack(past, 0);
    assert.equal(bench.told.filter((event) => event === 'writable').length, 1);
  });

  test('the smaller of both windows counts', () => {
    const bench = new LinkBench({ windowBytes: 1_000_000 });
    bench.up({ windowBytes: 100 });
    bench.link.request(types.CHANGES, CONTROL, [new Uint8Array(100)], 0);
    assert.equal(bench.link.canSend, false);
  });

  test('a reply opens the window too', () => {
    const fenced = sampleOf('fenced');
    const bench = new LinkBench({ windowBytes: 30 });
    bench.up();
    const sequence = bench.link.request(types.PULL, new Uint8Array([0x93, 1, 2, 3, 0, 0, 0, 0]).subarray(0, 4), [], 0);
    const more = bench.link.request(types.PULL, CONTROL, [], 0);
    assert.equal(bench.link.canSend, false);
    bench.a.send(types.FENCED, sequence, fenced.encode(packer, fenced.value));
    assert.deepEqual(bench.told.at(-1), 'writable');
    assert.equal(more, sequence + 1);
  });

  test('many small requests fill it by count', () => {
    const bench = new LinkBench();
    bench.up();
    let last = 0;
    for (let i = 0; i < 8_192; i++) last = bench.link.request(types.FENCE, CONTROL, [], 0);
    assert.equal(bench.link.canSend, false);
    bench.link.flush();
    bench.a.ack(last, 0);
    assert.equal(bench.link.canSend, true);
  });

  test('a full window does not outlive its connection', () => {
    const bench = new LinkBench({ windowBytes: 100 }, false);
    bench.up();
    bench.link.request(types.CHANGES, CONTROL, [new Uint8Array(600)], 0);
    bench.a.handlers.onClose('ECONNRESET');
    bench.pass(50);
    bench.a.accept();
    assert.equal(bench.link.canSend, true);
    assert.equal(bench.told.includes('writable'), false);
  });
});

describe('credit', () => {
  test('is what the store granted less what was sent since', () => {
    const bench = new LinkBench();
    bench.up({ credit: 1_000 });
    const first = bench.link.request(types.CHANGES, CONTROL, [], 300);
    bench.link.request(types.CHANGES, CONTROL, [], 200);
    assert.equal(bench.link.credit, 500);
    bench.link.flush();
    bench.a.ack(first, 650);
    assert.equal(bench.link.credit, 450, 'the grant knows of the first request only');
  });

  test('never shows below 0, and counts right again after', () => {
    const bench = new LinkBench();
    bench.up({ credit: 100 });
    const first = bench.link.request(types.CHANGES, CONTROL, [], 90);
    const second = bench.link.request(types.CHANGES, CONTROL, [], 90);
    assert.equal(bench.link.credit, 0);
    bench.link.flush();
    bench.a.ack(first, 50);
    assert.equal(bench.link.credit, 0, '50 granted, 90 on the way');
    bench.a.ack(second, 70);
    assert.equal(bench.link.credit, 70);
  });

  test('comes with a beat too, less what was sent behind its heartbeat', () => {
    const bench = new LinkBench();
    bench.up({ credit: 1_000 });
    bench.link.request(types.CHANGES, CONTROL, [], 100);
    bench.pass(250);
    const heartbeat = bench.a.last();
    assert.equal(heartbeat.type, types.HEARTBEAT);
    bench.a.beat(5_000);
    assert.equal(bench.link.credit, 5_000, 'the grant was made after the request');
    bench.pass(250);
    bench.link.request(types.CHANGES, CONTROL, [], 40);
    assert.equal(bench.link.credit, 4_960);
    bench.a.beat(3_000);
    assert.equal(bench.link.credit, 2_960, 'the request crossed the grant');
    assert.equal(bench.link.leaseMs, 10_000);
  });

  test('of the standby is another connection\'s and changes nothing', () => {
    const bench = new LinkBench();
    bench.up({ credit: 1_000 });
    bench.pass(250);
    bench.b.beat(5);
    assert.equal(bench.link.credit, 1_000);
  });
});
