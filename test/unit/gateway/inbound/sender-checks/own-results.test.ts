/** Fields that say to be ours: which do, however they are written, and that no other octet of a message is changed. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { renameOwnResults } from '../../../../../src/gateway/inbound/sender-checks/own-results.js';
import { toAscii } from '../../../../../src/platform/node/idna.js';
import { latin1Text } from '../../../../../src/platform/node/latin1.js';

const ID = 'mx.example.org';
const TAIL = '\r\nSubject: s\r\n\r\nAuthentication-Results: mx.example.org; in the body\r\n';

/** The message as it is kept; the pieces are cut at every octet in turn. */
function renamed(message: string, id = ID): { readonly text: string; readonly count: number } {
  const told = new Set<string>();
  const cuts = message.length > 2000 ? [0, 1, 700] : Array.from({ length: message.length + 1 }, (_none, at) => at);
  for (const cut of cuts) {
    const pieces = [message.slice(0, cut), message.slice(cut)].map((piece) => Buffer.from(piece, 'latin1'));
    const found = renameOwnResults(pieces, id, { latin1Text, toAscii });
    assert.ok(found !== 'too-long');
    if (found === undefined) {
      told.add(`0 ${message}`);
      continue;
    }
    const rest = pieces.slice(found.piece).map((piece, index) => (index === 0 ? piece.subarray(found.at) : piece));
    told.add(`${String(found.count)} ${Buffer.concat([found.octets, ...rest]).toString('latin1')}`);
  }
  assert.equal(told.size, 1, [...told].join('\n---\n'));
  const [[only = '']] = [[...told]];
  return { count: Number(only.slice(0, only.indexOf(' '))), text: only.slice(only.indexOf(' ') + 1) };
}

describe('a field says to be ours', () => {
  const OURS = [
    'Authentication-Results: mx.example.org; spf=pass', 'authentication-results:mx.example.org;spf=pass', 'AUTHENTICATION-RESULTS:  MX.Example.ORG ; none',
    'Authentication-Results : mx.example.org; none', 'Authentication-Results\t:\tmx.example.org 1; none', 'Authentication-Results: "mx.example.org"; none',
    'Authentication-Results: "mx\\.exa\\mple.org"; none', 'Authentication-Results:\r\n mx.example.org;\r\n\tspf=pass', 'Authentication-Results: (a (b) \\) c)\r\n (d) mx.example.org; none',
    'Authentication-Results: mx.example.org', 'Authentication-Results: mx.example.org.; none', 'Authentication-Results: mx.example.org/1; none', 'Authentication-Results: mx.example.org(c); none',
    'Authentication-Results: (mx.example.org) other; none', 'Authentication-Results: other mx.example.org; none', 'Authentication-Results: "\r\n "mx.example.org"; none',
    // It can't be read, and our name is in it.
    'Authentication-Results: (never ends mx.example.org; none', 'Authentication-Results: "mx.example.org; none', 'Authentication-Results: ;mx.example.org; none', 'Authentication-Results: ="" mx.EXAMPLE.org',
    // Some decode words first, wherever they stand.
    ...[
      '=?us-ascii?q?mx=2Eexample=2Eorg?=', '=?us-ascii?b?bXguZXhhbXBsZS5vcmc=?=', '=?utf-8?q?mx?= =?utf-8?q?.example.org?=', 'mx.ex=?utf-8?q?ample?=.org', '"=?utf-8?q?mx=2Eexample=2Eorg?="',
      'other (;) =?us-ascii?q?mx=2Eexample=2Eorg?=', '(;=?us-ascii?q?=29mx=2Eexample=2Eorg?=', 'other =?us-ascii?q?=0Amx=2Eexample=2Eorg?=',
    ].map((id) => `Authentication-Results: ${id}; none` as const),
    'Authentication-Results: =?us-ascii?q?mx=2Eexample=2Eorg=3B_none?=',
    // Some put together what stands in pieces.
    ...[
      'mx . example . org', 'mx . example . org 1', 'mx .example.org/1', 'mx.\r\n\texample.org', 'mx.example. org', 'mx\v.\x00example.\xa0org', 'mx(x).example(y).org', 'mx.(;)example.org', '(;) mx (;) . example . org',
      '"mx".example.org', '"mx"."example".org', '"mx.example" .org', 'm\\x.example.org', 'mx\\.example.org', 'mx.example.org\\', 'm"x".example.org', 'mx.exa)mple.org', 'mx."(a b.c" example.org', 'mx.\\(a example.org',
      // To those who know no backslash, no quotes, no comment in a comment.
      'mx.(\\) example.org', 'mx.("(") example.org', 'mx."(" ;) example.org', 'mx.(() example.org', 'mx . example . org (never ends', 'mx . example . org "(" x',
    ].map((id) => `Authentication-Results: ${id}; none` as const),
    // Readers trim what is around its own name, or take it for the end of a line.
    'Authentication-Results\r\n : mx.example.org; none', 'Authentication-Results \r\n\t\r\n :\r\n mx.example.org; none',
    ...['\0', '\v', '\f', '\x1c', '\x7f', '\x85', '\xa0', '\xef\xbb\xbf', '\xa0 \v'].flatMap((gap) =>
      [`Authentication-Results${gap}: mx.example.org; none`, `${gap}Authentication-Results: mx.example.org; none`, `Authentication-Results:${gap}mx.example.org; none`]),
  ] as const;
  test('whatever case, quotes, comments and folds it hides behind', () => {
    for (const field of OURS) {
      const before = 'Received: from a\r\n\tby b; now\r\n';
      const { text, count } = renamed(`${before}${field}${TAIL}`);
      assert.equal(count, 1, field);
      assert.equal(text, `${before}${field.replace(/^[^!-~]*/, '$&X-Original-')}${TAIL}`);
    }
  });

  test('and others do not', () => {
    for (const field of [
      'Authentication-Results: other.example.org; spf=pass', 'Authentication-Results: other.example.org; spf=pass smtp.mailfrom==?utf-8?q?a?=', 'Authentication-Results: amx.example.org; none',
      'Authentication-Results: mx.example.org.evil; none', 'ARC-Authentication-Results: i=1; mx.example.org; none', 'X-Authentication-Results: mx.example.org; none',
      'X: y\r\n Authentication-Results: mx.example.org; none', 'Authentication-Results: other; reason="mx.example.org"', 'Authentication-Results:', 'Authentication-Results: (', 'Authentication-Results',
      'X-Original-Authentication-Results: mx.example.org; none',
      ...['mx . example . org . evil', 'a.mx . example.org', 'mx example . org', 'mx . example', 'mx . example.orgx', 'mx.example"."org.evil', 'other . example (mx . example . com)', 'amx . example . org']
        .map((id) => `Authentication-Results: ${id}; none`),
      'Authentication-Results: other; reason="mx . example . org"', 'Authentication-Results: other (a); smtp.mailfrom=mx . example . org', 'Authentication-Results: other (\\)"; a) ; mx . example . org',
    ]) {
      assert.equal(renamed(`${field}${TAIL}`).count, 0, field);
    }
  });

  test('in U-labels or A-labels', () => {
    const utf8 = Buffer.from('Authentication-Results: b\u00fccher.example; none', 'utf8').toString('latin1');
    assert.equal(renamed(`${utf8}${TAIL}`, 'xn--bcher-kva.example').count, 1);
    assert.equal(renamed(`Authentication-Results: XN--bcher-kva.example; none${TAIL}`, 'xn--bcher-kva.example').count, 1);
  });

  test('as often as it stands there; what has no header has none', () => {
    const many = `${OURS[0]}\r\n`.repeat(1000);
    const { text, count } = renamed(`${many}To: x\r\n\r\nbody`);
    assert.deepEqual([count, text], [1000, `${`X-Original-${OURS[0]}\r\n`.repeat(1000)}To: x\r\n\r\nbody`]);
    assert.deepEqual(renamed(`\r\n${OURS[0]}${TAIL}`).count, 0);
    assert.equal(renamed(`${OURS[0]}\r\n`).text, `X-Original-${OURS[0]}\r\n`);
    assert.equal(renamed(`X: y\r\n${OURS[0]}\r\n\r\n`).text, `X: y\r\nX-Original-${OURS[0]}\r\n\r\n`);
  });
});

test('on top of a header, blanks may stand in front of it', () => {
  assert.equal(renamed(` ${'Authentication-Results'}: mx.example.org; none${TAIL}`).text, ` X-Original-Authentication-Results: mx.example.org; none${TAIL}`);
});

test('no header makes the search slow', () => {
  const gaps = '\v'.repeat(150_000);
  const many = (text: string): string => text.repeat(Math.floor(300_000 / text.length));
  const began = process.cpuUsage();
  for (const header of [
    `${gaps}Authentication-Results${gaps}`, `${gaps}${gaps}`, many('Authentication-Results\v'), '\vAuthentication-Results\r\n'.repeat(1900), '\v\r\n'.repeat(1900),
    `Authentication-Results${many('\r\n ')}`, `Authentication-Results${gaps}:${gaps}`, `Authentication-Results:${many('mx.example.orgx')}`, `Authentication-Results:${many('(')}`,
    ...[' .', '. ', '( ) ', 'a ', '"', '"("', '\\(', '( ', ') ', '. ( '].map((one) => `Authentication-Results:${many(one)}`),
  ]) {
    const { count } = renamed(`X: Authentication-Results\r\n${header}\r\n\r\nbody`);
    assert.equal(count, /^Authentication-Results\v*:/.test(header) ? 1 : 0, header.slice(0, 30));
  }
  const { user, system } = process.cpuUsage(began);
  assert.ok(user + system < 5_000_000, 'all of it takes a moment');
});

test('a header of more fields than mail has is looked through by nobody, which is told, unless it has no such field', () => {
  const ports = { latin1Text, toAscii };
  const lines = (count: number, first: string): readonly Uint8Array[] => [Buffer.from(`${first}: mx.example.org; none\r\n${'a:\r\n'.repeat(count)}\r\nbody`)];
  const found = renameOwnResults(lines(1999, 'Authentication-Results'), ID, ports);
  assert.equal(typeof found === 'object' && found.count, 1);
  assert.equal(renameOwnResults(lines(2000, 'Authentication-Results'), ID, ports), 'too-long');
  assert.equal(renameOwnResults(lines(79_000, 'Authentication-Results'), ID, ports), 'too-long');
  assert.equal(renameOwnResults(lines(79_000, 'X-Results'), ID, ports), undefined);
});

test('what is behind 8 KiB of odd fields is read by nobody, and says to be ours', () => {
  const other = 'Authentication-Results: (c) mx.example.com; none\r\n';
  const within = other.repeat(Math.floor(8192 / (other.length - 'Authentication-Results:\r\n'.length)));
  assert.equal(renamed(`${within}\r\nbody`).count, 0);
  assert.equal(renamed(`${within}${other}${other}\r\nbody`).count > 0, true);
});

test('a header that is longer than any is looked at by nobody, which is told', () => {
  const long = Buffer.from(`X: ${'y'.repeat(400_000)}\r\nAuthentication-Results: mx.example.org; none\r\n\r\n`);
  assert.equal(renameOwnResults([long], ID, { latin1Text, toAscii }), 'too-long');
});
