/** A store whose answers break the protocol: nobody waits for what will never come (G2b, G8). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { crc32 } from '../../src/platform/node/checksum.js';
import { MessagePacker } from '../../src/platform/node/packer.js';
import { HEADER_BYTES, encodeFrame } from '../../src/protocol/frame.js';
import { ASKED, BLOCK, FENCED, TAILED, TOLD, messageTypeName } from '../../src/protocol/message-types.js';
import { checkAll } from './checks.js';
import { World } from './world.js';

const TYPE_AT = 8;
const SEQUENCE_AT = 16;
/** Far less than a silent link is left after, or a store that stays away replaced. */
const HEALS_WITHIN_MS = 5000;

/** Turns the first answer of a type into one of one element. */
class Breaker {
  isSpent = false;
  private readonly type: number;
  private readonly control = new MessagePacker().pack([7]).slice();
  private inBodies = 0;

  constructor(type: number) {
    this.type = type;
  }

  rewrite(chunk: Uint8Array): Uint8Array {
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.length);
    // Bodies are chunks of their own, behind the one of their frame.
    if (this.inBodies > 0) {
      this.inBodies -= chunk.length;
      return new Uint8Array(0);
    }
    const isFrame = chunk.length >= HEADER_BYTES && crc32(chunk.subarray(4), 0) === view.getUint32(0, true);
    if (!isFrame || view.getUint8(TYPE_AT) !== this.type || this.isSpent) return chunk;
    this.isSpent = true;
    this.inBodies = view.getUint32(4, true) - chunk.length;
    return encodeFrame(this.type, Number(view.getBigUint64(SEQUENCE_AT, true)), this.control, crc32, 0);
  }
}

/** Mail at both stores, and five letters that store-a alone has: the next gateway asks it for that tail. */
function loaded(): World {
  const world = World.started({ blockEntries: 7 });
  world.hops.script = () => 'hang';
  world.submitMany(60, ['q1', 'q2']);
  world.run(100);
  assert.equal(world.letters.count(COMMITTED), 60);
  world.holdRequests(world.store('b'), true);
  world.submitMany(5, ['q1']);
  world.run(20);
  world.gateway.kill();
  world.holdRequests(world.store('b'), false);
  world.hops.script = () => 'accept';
  return world;
}

describe('a malformed answer', () => {
  for (const type of [ASKED, FENCED, BLOCK, TAILED, TOLD]) {
    for (const stores of [['a'], ['a', 'b']] as const) {
      test(`${messageTypeName(type)} of store ${stores.join(' and ')}: the connection ends, nobody waits for it, and the mail is delivered`, () => {
        const rule = `${messageTypeName(type)}: element count`;
        const world = loaded();
        const breakers = stores.map((name) => {
          const breaker = new Breaker(type);
          world.network.rewriteAnswers('gw-1', world.store(name).id, (chunk) => breaker.rewrite(chunk));
          return breaker;
        });
        world.gateway.start();
        world.until(() => world.letters.delivered >= 120, HEALS_WITHIN_MS, 'all of it is delivered');
        assert.ok(breakers.some((breaker) => breaker.isSpent), 'an answer was broken');
        assert.ok(world.log.lines.some(({ fields }) => fields['rule'] === rule), 'the rule is named');
        world.untilQuiet();
        checkAll(world.letters, world.queueNames);
        world.assertSameContent();
      });
    }
  }
});
