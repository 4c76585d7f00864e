/**
 * The protocol as docs/PROTOCOL.md tells it, proved by a client in another language: client.py was written from
 * that document alone. It decodes the golden frames, and story.py lives through a story with two real stores;
 * here is what it must have seen. A change of the protocol that the document does not tell breaks this.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { before, describe, test } from 'node:test';

import { MessagePacker } from '../../../src/platform/node/packer.js';
import { messageTypeName } from '../../../src/protocol/message-types.js';
import * as reasons from '../../../src/protocol/reasons.js';
import { Daemon, HOST } from '../../process/cluster.js';
import { ENTRY } from '../../process/entry.js';
import { freePorts } from '../../process/free-ports.js';
import { mustRun } from '../support.js';

const PROGRAMS = resolve('test/thirdparty/protocol-python');
const GOLDEN = resolve('test/unit/protocol/golden');
const SECRET = 'shared with a gateway in Python';
const HEADER_BYTES = 24;

/** What a Python program printed. */
type Told = Readonly<Record<string, unknown>>;

/** An entry as client.py shows it. */
interface Entry {
  readonly position: number;
  readonly id: number;
  readonly flags: number;
  readonly bodyBytes: number;
  readonly intact: boolean;
  readonly body: string;
  readonly head: string;
  readonly note: string;
}

async function python(program: string, args: readonly string[]): Promise<Told> {
  return JSON.parse(await mustRun('python3', ['-B', join(PROGRAMS, program), ...args])) as Told;
}

/** Starts two stores, lets the client live through its story, ends them. */
async function liveThroughStory(): Promise<Told> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-python-'));
  const ports = await freePorts(6);
  const stores = [0, 1].map((index) => {
    const [a, b, admin] = ports.slice(3 * index);
    const name = `store-${index === 0 ? 'a' : 'b'}`;
    const file = join(folder, `${name}.yaml`);
    writeFileSync(file, JSON.stringify({
      store: {
        id: name,
        host: `host-${name}`,
        paths: [{ name: 'A', address: `${HOST}:${String(a)}` }, { name: 'B', address: `${HOST}:${String(b)}` }],
        gateways: ['gateway-1', 'gateway-2'].map((id) => ({ id, secret: SECRET })),
        admin: { listen: `${HOST}:${String(admin)}` },
        memory: { limit: '64MiB' },
      },
    }));
    return new Daemon(name, [ENTRY, 'store', '--config', file], join(folder, `${name}.log`), `http://${HOST}:${String(admin)}/readyz`);
  });
  const killAll = (): void => {
    for (const store of stores) store.killNow();
  };
  // Without a handler a SIGTERM from the runner would end this process and leave the stores running.
  const endNow = (): void => process.exit(143);
  process.once('exit', killAll);
  process.once('SIGTERM', endNow);
  try {
    for (const store of stores) store.start();
    for (const store of stores) await store.ready();
    return await python('story.py', [SECRET, String(ports[0]), String(ports[3])]);
  } finally {
    for (const store of stores) await store.stop();
    process.removeListener('exit', killAll);
    process.removeListener('SIGTERM', endNow);
    rmSync(folder, { recursive: true, force: true });
  }
}

const SHARED_BODY = `Subject: both\r\n\r\n${'x'.repeat(5000)}`;

function entry(position: number, id: number, body: string, head: string, note: string, flags = 0): Entry {
  return { position, id, flags, bodyBytes: body.length, intact: true, body, head, note };
}

/** The first partition before the second store joins: 3 and 4 were deleted, 6 withdrawn. */
const KEPT = [
  entry(1, 9000, SHARED_BODY, 'to one', '', 2),
  entry(2, 9001, 'body 1', 'head 1', 'tried twice'),
  entry(5, 9004, 'body 4', 'head 4', 'tried once'),
  entry(7, 9006, 'body 6', 'head 6', ''),
];

describe('a client in Python, written from docs/PROTOCOL.md', () => {
  let told: Told = {};
  before(async () => {
    told = await liveThroughStory();
  });

  const tells = (what: string, expected: unknown): void => assert.deepEqual(told[what], expected, what);

  test('strangers are denied, proofs agree, one connection is active', () => {
    tells('strangers', [[0x05, reasons.CLOSE_DENIED], [0x05, reasons.CLOSE_DENIED]]);
    tells('connections', [['store-a', true, 1000, true], ['store-a', true, 1000, false]]);
    tells('beats', [[10_000, 0, []], [10_000, 0, []]]);
    tells('standby', reasons.CLOSE_STANDBY);
    tells('spoilt', reasons.CLOSE_MALFORMED);
    tells('skipped request', reasons.CLOSE_SEQUENCE);
  });

  test('changes are acknowledged with the number of each partition; a repeat again', () => {
    tells('nothing there', [reasons.DECLINED_NO_COPY, [1, 11], [0, 0], []]);
    tells('founded', [1, 2].map(() => [[1, 11], 2, true, 0, 0, 0, [1, 11], 0, 0, 0, 0]));
    tells('stored', [[1, 7], [2, 1]]);
    tells('annotated, deleted', [[1, 9]]);
    tells('withdrawn', [[1, 10]]);
    tells('sent, repeated', [[[1, 11]], [[1, 11]]]);
  });

  test('what does not fit is refused where the copy stands, and everything after it until FENCE', () => {
    const stands = told['stands'] as readonly number[];
    const refused = (reason: number): unknown => [['refused', 1, reason, ...stands]];
    assert.equal(stands[0], 11);
    tells('repeated otherwise', refused(reasons.REFUSAL_DIGEST));
    tells('after a refusal', []);
    tells('bound again', [true, ...stands]);
    tells('gap', refused(reasons.REFUSAL_GAP));
    tells('digest', refused(reasons.REFUSAL_DIGEST));
    tells('checksum', refused(reasons.REFUSAL_CHECKSUM));
    tells('missing', refused(reasons.REFUSAL_MISSING));
    tells('body', refused(reasons.REFUSAL_BODY));
    tells('unknown', [['refused', 99, reasons.REFUSAL_UNKNOWN, 0, 0, 0]]);
  });

  test('a higher incarnation fences the elder, and takes its partitions by a higher term, where they stand', () => {
    const stands = told['stands'] as readonly number[];
    const fenced = [reasons.CLOSE_FENCED, 2000];
    tells('fenced', [fenced, fenced]);
    tells('told', [['gateway-1/1', 2, true], ['gateway-1/1', 1, false]]);
    const record = told['record'] as readonly unknown[];
    assert.deepEqual(record.slice(0, 3), [2, [1, 11], ['gateway-1', 1000]]);
    tells('asked', ['gateway-1/1', true, 1]);
    tells('lease runs', true);
    tells('not bound', [1, reasons.REFUSAL_UNKNOWN]);
    tells('declined', [
      [reasons.DECLINED_OTHER_NONCE, [1, 12], [1, 11], record],
      [reasons.DECLINED_STALE, [2, 21], [1, 11], record],
    ]);
    const [first, second] = told['taken'] as readonly (readonly unknown[])[];
    assert.deepEqual(first, [[3, 31], 1, true, ...stands, [1, 11], 4, 5063 - 4, 0]);
    assert.deepEqual(second?.slice(0, 4), [[3, 31], 1, true, 1]);
    tells('older leases', [true, 0]);
    tells('low term', [reasons.DECLINED_LOWER, [1, 11], [3, 31], record]);
  });

  test('entries come in blocks and in order, as they were sent; a shared body with each that names it', () => {
    tells('blocks', [KEPT.slice(0, 2), KEPT.slice(2)]);
    tells('other queue', [[entry(1, 9000, SHARED_BODY, 'to two', '', 2)]]);
    const [number, a, b] = told['stands'] as readonly number[];
    tells('tails', [[true, Number(number) + 1, a, b, ''], [false, Number(number) + 1, a, b, '']]);
  });

  test('texts are kept of entries that were tried, and move no number; a note has the room that its entry was stored with', () => {
    tells('texts', [[], [[2, '450 busy']]]);
    const stands = told['stands'] as readonly number[];
    tells('beyond the room', [['refused', 1, reasons.REFUSAL_INVALID, ...stands]]);
    tells('texts of who is refused', [[], [[2, '450 busy']]]);
  });

  test('a second store is filled while the partition goes on, to the same digest and the same entries', () => {
    const stands = told['stands'] as readonly number[];
    tells('filling', [[false, ...stands], [[1, 11]], [[1, 13]]]);
    tells('live', [[[1, 13]], [[1, 13]]]);
    tells('not read', reasons.REFUSAL_INVALID);
    const [wrong, after, right] = told['filled'] as readonly (readonly (readonly unknown[])[])[];
    assert.deepEqual(wrong?.[0]?.slice(0, 4), ['refused', 1, reasons.REFUSAL_COUNT, 13]);
    assert.deepEqual([after, right], [[], [[1, 13]]], 'passed over until it was bound again');
    const [there, here] = told['mirrors'] as readonly (readonly unknown[])[];
    assert.deepEqual(there, here);
    assert.deepEqual(here?.slice(0, 2), [true, 13]);
    const goneOn = KEPT.map((kept) => (kept.position === 5 ? { ...kept, note: 'tried in between' } : kept));
    const expected = [...goneOn, entry(13, 9200, 'live body', 'live head', '')];
    tells('copies', [expected, expected]);
  });

  test('a process that a neighbour displaces hears of it until it says so, and is refused', () => {
    tells('rescued', 13);
    const notice = [1, 'gateway-1/1', [5, 51]];
    tells('displaced', [[0, []], [1, [notice]], [1, []], ['refused', 1, reasons.REFUSAL_FENCED]]);
    tells('released', [[], 0]);
  });

  test('a copy whose record does not name it goes; what was told of it stays', () => {
    const [kept, changed, hasCopy, isTold] = told['dropped'] as readonly unknown[];
    assert.deepEqual([kept, hasCopy, isTold], [['gateway-1/2', 4, true], false, true]);
    assert.deepEqual(changed, [['refused', 2, reasons.REFUSAL_UNKNOWN, 0, 0, 0]]);
  });

  test('nothing is refused within the credit; a refill goes beyond it and is refused when its reserve is used up', () => {
    const credit = told['credit'] as Readonly<Record<string, number>>;
    const [cost = 0, atFirst = 0, atLast = 0, stored = 0] = ['cost', 'at first', 'at last', 'stored'].map((name) => credit[name] ?? 0);
    assert.equal(credit['answers'], stored, 'every message within the credit is acknowledged');
    assert.ok(stored * cost > atFirst, 'the grant was raised on the way');
    assert.ok(atLast < cost && Number(credit['most taken']) <= cost, 'an ACK takes no more than what was sent');
    const [refilled, refusal] = told['reserve'] as readonly [number, unknown];
    assert.ok(refilled > 20, `only ${String(refilled)} entries were refilled beyond the credit`);
    assert.deepEqual(refusal, [['refused', 4, reasons.REFUSAL_LIMIT, 1000, 1, 2]]);
    tells('at the brim', [[3, stored + 2]]);
    assert.ok(Number(credit['afterwards']) > 20 * cost, 'deleted mail is credit again');
  });
});

test('the golden frames mean the same to the client in Python', async () => {
  const packer = new MessagePacker();
  const names = readdirSync(GOLDEN).sort();
  const decoded = await python('client.py', names.map((name) => join(GOLDEN, name)));
  assert.deepEqual(Object.keys(decoded), names);
  for (const name of names) {
    const frame = Buffer.from(readFileSync(join(GOLDEN, name), 'utf8').replace(/^#.*$/m, '').replace(/\s/g, ''), 'hex');
    const [type, sequence, control, entries] = decoded[name] as readonly [number, number, unknown, readonly Entry[]];
    assert.equal(messageTypeName(type).toLowerCase().replaceAll('_', '-'), name.replace(/\.hex$/, ''));
    assert.equal(BigInt(sequence), frame.readBigUInt64LE(16), name);
    const own = packer.unpack(frame.subarray(HEADER_BYTES, HEADER_BYTES + frame.readUInt32LE(12)));
    assert.deepEqual(control, asPythonShows(own), name);
    assert.ok(entries.every((shown) => shown.intact || (shown.flags & 1) !== 0), name);
  }
});

/** Binary as hexadecimal, the rest as it is. */
function asPythonShows(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  return Array.isArray(value) ? value.map(asPythonShows) : value;
}
