/** The socket of the file register: what goes over it comes back, and nothing hostile is taken or throws. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { once } from 'node:events';
import { test } from 'node:test';

import fc from 'fast-check';

import { crc32 } from '../../../../src/platform/node/checksum.js';
import { decodeFileBody, encodeFileBody } from '../../../../src/register/core/file-format.js';
import { RegisterMap } from '../../../../src/register/core/register-map.js';
import { BrokenRule } from '../../../../src/base/json-shape.js';
import {
  decodeReply,
  decodeRequest,
  encodeReply,
  encodeRequest,
  helloRule,
} from '../../../../src/register/core/wire.js';
import type { Reply, Request } from '../../../../src/register/core/wire.js';
import { FileRegister, socketOf } from '../../../../src/register/file/file-register.js';
import { Hand } from '../contract.js';
import { QUIET, RealWorld, makeFolder, removeFolder } from '../real-world.js';

const plain = { key: 'a/1', ifRevision: 3, value: 'ä\n"', session: '17', guards: [{ key: 'b', revision: 0 }] };
const write = { ...plain, ifValue: 'ö', guards: [{ key: 'b', revision: 1, value: 'ü' }] };
const entry = { key: 'a/1', value: 'x', revision: 3, session: '' };

const REQUESTS: readonly Request[] = [
  { id: 1, call: 'transact', writes: [write, { ...plain, value: null, session: '' }] },
  { id: 2, call: 'range', ranges: [{ key: 'a' }, { prefix: '' }] },
  { id: 3, call: 'grant', session: '9007199254740991', ttlMs: 5_000 },
  { id: 4, call: 'renew', session: '1' },
  { id: 5, call: 'revoke', session: '1' },
  { id: 6, call: 'watch', prefixes: ['a/', ''], after: 0 },
  { id: 6, call: 'unwatch' },
];
const REPLIES: readonly Reply[] = [
  {
    id: 1,
    answer: {
      kind: 'settled',
      results: [{ kind: 'done', revision: 4 }, { kind: 'stale', entry, guard: '' }, {
        kind: 'refused',
        reason: 'full',
        why: 'w',
      }],
    },
  },
  { id: 1, answer: { kind: 'refused', reason: 'away', why: 'w' } },
  { id: 1, answer: { kind: 'unknown', why: 'w' } },
  { id: 2, answer: { kind: 'entries', entries: [entry], revision: 9 } },
  { id: 2, answer: { kind: 'failed', why: 'w' } },
  { id: 3, answer: { kind: 'granted', ttlMs: 5_000 } },
  { id: 3, answer: { kind: 'gone' } },
  { id: 6, changes: [{ key: 'a/1', revision: 3, entry }] },
  { id: 6, broken: 'why' },
];

test('requests and replies come back as they were, in lines without a line end', () => {
  for (const request of REQUESTS) {
    assert.ok(!encodeRequest(request).includes('\n'));
    assert.deepEqual(decodeRequest(encodeRequest(request)), request);
  }
  for (const reply of REPLIES) assert.deepEqual(decodeReply(encodeReply(reply)), reply);
  const gone = { id: 6, changes: [{ key: 'a', revision: 1, entry: undefined }] };
  assert.deepEqual(decodeReply(encodeReply(gone)), gone);
  const absent: Reply = {
    id: 1,
    answer: { kind: 'settled', results: [{ kind: 'stale', entry: undefined, guard: 'g' }] },
  };
  assert.deepEqual(decodeReply(encodeReply(absent)), absent);
});

test('a hostile line yields a rule, never an exception', () => {
  const lines = [...REQUESTS.map(encodeRequest), ...REPLIES.map(encodeReply)];
  for (const line of lines) {
    for (let length = 0; length < line.length; length++) {
      assert.ok(decodeRequest(line.slice(0, length)) instanceof BrokenRule);
    }
    for (let length = 0; length < line.length; length++) {
      assert.ok(decodeReply(line.slice(0, length)) instanceof BrokenRule);
    }
  }
  fc.assert(
    fc.property(fc.constantFrom(...lines), fc.nat(), fc.jsonValue(), (line, index, other) => {
      // Any value anywhere in it replaced.
      let at = 0;
      const hostile = JSON.stringify(
        JSON.parse(line),
        (_key, value: unknown) => (at++ === index % 12 ? other : value),
      );
      for (const decode of [decodeRequest, decodeReply]) {
        const decoded = decode(hostile);
        if (decoded instanceof BrokenRule) assert.notEqual(decoded.rule, '');
      }
    }),
    { numRuns: 1_000 },
  );
  assert.notEqual(helloRule('{"hello":2}'), '');
  assert.notEqual(helloRule('x'), '');
});

test('a body of the file comes back, and a hostile one yields a rule', () => {
  const map = new RegisterMap(9, [entry, { key: 'b', value: '', revision: 9, session: '17' }], [[
    '17',
    5_000,
  ]]);
  const body = encodeFileBody({ origin: { machine: 'm', folder: '1' }, map });
  const decoded = decodeFileBody(body);
  assert.ok(!(decoded instanceof BrokenRule));
  assert.equal(encodeFileBody(decoded), body);
  for (
    const [from, to, rule] of [
      ['"revision":9', '"revision":8', /newer than the file/],
      ['"17",5000', '"18",5000', /of no session/],
      ['"key":"b"', '"key":"a/1"', /twice/],
      ['"key":"b"', '"key":"ä"', /characters/],
      [',5000', ',0', /^sessions\[0\]\[1\]: /],
      ['"machine":"m"', '"machine":1', /^machine: /],
    ] as const
  ) {
    const broken = decodeFileBody(body.replace(from, to));
    assert.ok(broken instanceof BrokenRule && rule.test(broken.rule), `${to}: ${JSON.stringify(broken)}`);
  }
});

test('who breaks the rules of the socket is cut off, the others are served', async () => {
  const stateDir = makeFolder();
  const file = await FileRegister.open({ stateDir, isServed: true }, { crc32, log: QUIET });
  const world = new RealWorld(() => file.client(), () => file.close());
  const hello = '{"hello":1}\n';
  try {
    for (
      const text of [
        'GET / HTTP/1.0\r\n\r\n',
        '{"hello":9}\n',
        `${hello}nonsense\n`,
        `${hello}{"id":1,"call":"burn"}\n`,
        `${hello}${'{"id":1,"call":"watch","prefixes":[""],"after":0}\n'.repeat(2)}`,
      ]
    ) {
      const socket = net.connect(socketOf(stateDir));
      socket.on('error', () => {});
      socket.resume();
      socket.write(text);
      await once(socket, 'close');
    }
    await new Hand(world).put('a', 'x');
  } finally {
    await world.stop();
    removeFolder(stateDir);
  }
});
