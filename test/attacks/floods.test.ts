/**
 * Floods: the same over and over, as fast as it comes. A client that does it is sent away after a number of commands that is
 * known, has a bounded number of lines in the log, and leaves nothing behind.
 *
 * Elsewhere: 99,000 refused recipients at a gateway process make less than 1 MB of log, test/process/rate-limits.test.ts;
 * lines by client and minute, test/unit/gateway/inbound/rejection-damper.test.ts; others have their turn meanwhile,
 * test/unit/gateway/inbound/session.test.ts; places of connections, test/dialog/port.test.ts; what parties may do in a
 * minute, test/dialog/rates.txt; 10,000 connections at a gateway process, gateway.test.ts.
 */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';

import type { Authenticator } from '../../src/gateway/inbound/auth/authenticator.js';
import { RESPONSE_OCTETS_MAX } from '../../src/gateway/inbound/commands/auth.js';
import { GatewayMetrics } from '../../src/observability/gateway-metrics.js';
import { MailLog } from '../../src/observability/mail-log.js';
import { MailRecord } from '../../src/gateway/daemon/mail-record.js';
import { NO_LOG, WALL_MS } from '../inbound/desk.js';
import { INBOUND_DEFAULTS } from '../default-options.js';
import { PROXY_OCTETS_MAX } from '../../src/gateway/inbound/policy/proxy-header.js';
import { authenticatorOf, scramLine } from '../dialog/people.js';
import { limits } from '../inbound/rates.js';
import { VirtualDesk } from './virtual-desk.js';
import type { VirtualOptions } from './virtual-desk.js';

const { idleCommandsMax, refusalsMax, recipientsMax } = INBOUND_DEFAULTS;
const REPEATS = 10_000;
const HELLO = 'EHLO a\r\n';
/** By client and minute (limits/rejection-damper.ts). */
const LINES_A_MINUTE = 200;

let people: Authenticator;
before(async () => {
  people = authenticatorOf([await scramLine('alice@b.example', 'secret', '*')]);
});

/** What is repeated, how many replies it has at most until the client is sent away, and how the session begins. */
const FLOODS: readonly (readonly [what: string, repliesMax: number, opening?: string, options?: VirtualOptions])[] = [
  ['NOOP\r\n', idleCommandsMax], ['RSET\r\n', idleCommandsMax], ['HELP\r\n', idleCommandsMax], ['VRFY x\r\n', idleCommandsMax], ['EXPN x\r\n', idleCommandsMax],
  ['EHLO a\r\n', idleCommandsMax], ['HELO a\r\n', idleCommandsMax], ['EHLO\r\n', idleCommandsMax], ['\r\n', idleCommandsMax], ['NONSENSE\r\n', idleCommandsMax], ['\0\r\n', idleCommandsMax],
  ['STARTTLS now\r\n', idleCommandsMax], ['AUTH PLAIN AAAA\r\n', idleCommandsMax], ['XCLIENT ADDR=127.0.0.1\r\n', idleCommandsMax], ['DATA\r\n', idleCommandsMax],
  ['MAIL FROM:<>\r\n', idleCommandsMax, HELLO], ['MAIL FROM:<>\r\nRSET\r\n', idleCommandsMax, HELLO], ['MAIL FROM:<a\r\n', idleCommandsMax, HELLO],
  ['MAIL FROM:<>\r\nRCPT TO:<c@d.example>\r\nRSET\r\n', 1.5 * idleCommandsMax, HELLO],
  ['RCPT TO:<c@d.example>\r\n', recipientsMax + refusalsMax + 1, `${HELLO}MAIL FROM:<>\r\n`],
  ['RCPT TO:<c@noroute.example>\r\n', refusalsMax + 1, `${HELLO}MAIL FROM:<>\r\n`], ['RCPT TO:<\r\n', refusalsMax + 1, `${HELLO}MAIL FROM:<>\r\n`],
  ['BDAT 0\r\n', idleCommandsMax, HELLO], ['BDAT 1\r\nx', idleCommandsMax, HELLO], ['BDAT 1\r\nx', idleCommandsMax, `${HELLO}MAIL FROM:<>\r\nRCPT TO:<c@d.example>\r\n`],
  [`BDAT 600\r\n${'x'.repeat(600)}`, refusalsMax + 1, HELLO],
  ['MAIL FROM:<>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n\n\r\n.\r\n', 2 * idleCommandsMax, HELLO],
  ['AUTH LOGIN\r\n*\r\n', 2 * idleCommandsMax, '', { isSubmission: true, isTlsFirst: true }],
  ['AUTH SCRAM-SHA-256 biwsbj14LHI9eA==\r\nAAAA\r\n', 2 * idleCommandsMax, '', { isSubmission: true, isTlsFirst: true }],
  ['XCLIENT NAME=x\r\n', idleCommandsMax, '', { xclientNetworks: ['127.0.0.0/8'] }],
];

describe('ten thousand times', () => {
  for (const [what, repliesMax, opening = '', options = {}] of FLOODS) {
    test(JSON.stringify(`${opening}…${what}`.slice(0, 90)), () => {
      const world = new VirtualDesk({ ...options, authenticator: people });
      const client = world.connect();
      if (options.isTlsFirst === true) client.secured().send(HELLO);
      client.send(opening).heard();
      const flood = Buffer.from(what.repeat(REPEATS), 'latin1');
      let said = '';
      for (let at = 0; at < flood.length && !client.connection.isOver; at += 65_536) said += client.send(flood.subarray(at, at + 65_536)).heard();
      const replies = said.split('\r\n').filter((line) => line[3] === ' ');
      assert.match(replies.at(-1) ?? '', /^421 4\.7\.0 Too many/);
      assert.ok(replies.length <= repliesMax + 2, `${String(replies.length)} replies`);
      assert.equal(client.connection.isOver, true);
      world.turn();
      assert.deepEqual([world.reception.reservedBytes, world.desk.live.size, world.reception.kept.length], [0, 0, 0]);
      const lines = world.rejections.length;
      assert.ok(lines <= LINES_A_MINUTE, `${String(lines)} lines`);
      // The same from the same client, again and again: no line more in this minute.
      for (let again = 0; again < 20; again++) world.connect().send(`${opening}${what.repeat(200)}`).leave();
      assert.ok(world.rejections.length <= LINES_A_MINUTE);
    });
  }
});

test('99,000 refusals of one client, of addresses as long as may be, take less than 1 MB of the mail log in a minute', () => {
  let octets = 0;
  const mailLog = new MailLog({ gateway: 'gw-1', enabled: true }, { write: (text) => { octets += text.length; } });
  const ports = { clock: { nowMs: (): number => 0, wallMs: (): number => WALL_MS }, log: NO_LOG, mailLog, metrics: new GatewayMetrics() };
  const record = new MailRecord({ ...ports, mirrorsOf: () => undefined, routeNameOf: () => '' });
  const world = new VirtualDesk({ mailLog: record });
  const domain = `${'b'.repeat(60)}.${'b'.repeat(60)}.example`;
  const refused = Buffer.from(`RCPT TO:<${'ü'.repeat(900)}@nobody.example>\r\n`.repeat(20));
  let count = 0;
  while (count < 99_000) {
    const client = world.connect('198.51.100.7');
    client.send(Buffer.from(`EHLO ${'x'.repeat(250)}\r\nMAIL FROM:<${'ü'.repeat(120)}@${domain}> SMTPUTF8\r\n`)).heard();
    while (!client.connection.isOver) count += client.send(refused).heard().split('\r\n').filter((line) => line.startsWith('5')).length;
    client.leave();
  }
  mailLog.flush();
  assert.ok(octets > 100_000 && octets < 500_000, `${String(octets)} octets`);
});

describe('a line without end', () => {
  test('is cut off at its bound in every state that reads lines, and none of it is kept', () => {
    const rows: readonly (readonly [VirtualOptions, string, number])[] = [
      [{}, '', 2048], [{}, HELLO, 2048], [{}, `${HELLO}MAIL FROM:<>\r\n`, 2048],
      [{ isSubmission: true, isTlsFirst: true }, HELLO, RESPONSE_OCTETS_MAX], [{ isSubmission: true, isTlsFirst: true }, `${HELLO}AUTH LOGIN\r\n`, RESPONSE_OCTETS_MAX],
    ];
    for (const [options, opening, octetsMax] of rows) {
      for (const piece of ['x'.repeat(100), '\n'.repeat(100), '\r'.repeat(100), `NOOP ${' '.repeat(95)}`]) {
        const world = new VirtualDesk({ ...options, authenticator: people });
        const client = world.connect();
        if (options.isTlsFirst === true) client.secured();
        client.send(opening).heard();
        let sent = 0;
        for (; !client.connection.isOver && sent < 1_000_000; sent += piece.length) client.send(piece);
        assert.match(client.heard(), /^500 5\.5\.2 Command line too long\r\n421 4\.5\.0 Closing the connection\r\n$/);
        assert.ok(sent > octetsMax && sent <= octetsMax + 2 * piece.length, `${String(sent)} octets of ${String(octetsMax)}`);
        world.turn();
        assert.deepEqual([world.reception.reservedBytes, world.desk.live.size], [0, 0]);
      }
    }
  });

  test('where a PROXY header is due is cut off sooner, also one that is told to be long', () => {
    for (const [start, piece] of [['PROXY UNKNOWN ', 'x'], ['PROXY TCP4 ', ' '], ['\r\n\r\n\0\r\nQUIT\n\x21\x00\xff\xff', 'x'], ['\r\n\r\n\0\r\nQUIT\n\x21\x11\x0f\xf0', 'x'], ['GET / HTTP/1.1\r\n', 'x']] as const) {
      const world = new VirtualDesk({ proxyNetworks: ['127.0.0.0/8'] });
      const client = world.connect();
      client.send(start);
      let sent = start.length;
      for (; !client.connection.isOver && sent < 100_000; sent++) client.send(piece);
      assert.ok(sent <= PROXY_OCTETS_MAX, `${JSON.stringify(start)}: ${String(sent)}`);
      assert.deepEqual([client.heard(), world.rejections], ['', ['connect proxy-header']]);
    }
  });

  test('in a content is kept as far as a message may go, and read twice as far; chunks behind it are so many refusals', () => {
    for (const opening of ['DATA\r\n', '']) {
      const world = new VirtualDesk({ messageBytesMax: 100_000 });
      const client = world.connect();
      client.send(`${HELLO}MAIL FROM:<>\r\nRCPT TO:<c@d.example>\r\n${opening}`).heard();
      const chunk = opening === '' ? `BDAT 1000\r\n${'x'.repeat(1000)}` : 'x'.repeat(1000);
      let sent = 0;
      for (; !client.connection.isOver && sent < 10_000_000; sent += 1000) {
        client.send(chunk);
        assert.ok(world.reception.reservedBytes <= 300_000, String(world.reception.reservedBytes));
      }
      assert.ok(sent <= (opening === '' ? 100_000 + 1000 * (refusalsMax + 2) : 205_000), String(sent));
      assert.match(client.heard(), opening === '' ? /421 4\.7\.0 Too many commands were refused\r\n$/ : /552 5\.3\.4 [^\r\n]*\r\n421 4\.5\.0 Closing the connection\r\n$/);
      world.turn();
      assert.equal(world.reception.reservedBytes, 0);
    }
  });
});

describe('connections', () => {
  test('opened and closed at every stage, ten thousand times, leave no session, no count and no memory', () => {
    const world = new VirtualDesk({ connectionsPerClientMax: 5, greetingDelayMs: 100, relayNetworks: [], relayDomains: ['d.example'] });
    const stages = ['', 'EHLO', HELLO, `${HELLO}MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\nhalf`, `${HELLO}MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nBDAT 100\r\nhalf`, 'STARTTLS\r\n'];
    for (let round = 0; round < REPEATS; round++) {
      const client = world.connect(`198.51.100.${String(round % 100)}`);
      // Half of them talk before they are greeted.
      if (round % 2 === 0) world.pass(100);
      client.send(stages[round % stages.length] ?? '');
      if (round % 3 === 0) client.session.onEnd();
      client.leave();
    }
    world.pass(200);
    assert.deepEqual([world.desk.live.size, world.reception.reservedBytes], [0, 0]);
    const places = Array.from({ length: 6 }, () => world.connect('198.51.100.1'));
    world.pass(200);
    assert.deepEqual(places.map((client) => client.codes()), ['220', '220', '220', '220', '220', '421']);
  });
});

describe('large messages on many connections at once', () => {
  const MAX = 1024 * 1024;
  const body = `Subject: big\r\n\r\n${`${'x'.repeat(76)}\r\n`.repeat(26_000)}`;
  const ways: readonly (readonly [string, string])[] = [
    ['DATA', `DATA\r\n${body}.\r\n`],
    ['BDAT', `BDAT 100000\r\n${body.slice(0, 100_000)}BDAT ${String(body.length - 100_000)} LAST\r\n${body.slice(100_000)}`],
  ];
  for (const [how, text] of ways) {
    test(`pass the limit of data by one of them, by ${how}; the others get 450, and so does who comes then`, () => {
      const world = new VirtualDesk({ rates: limits(['client', 'data', MAX]) });
      const clients = Array.from({ length: 40 }, () => world.connect());
      for (const client of clients) client.send(`${HELLO}MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n`).heard();
      // All are on their way before one has ended.
      for (const client of clients) client.send(text.slice(0, -5));
      for (const client of clients) client.send(text.slice(-5));
      const ends = clients.map((client) => client.codes().split(' ').at(-1));
      assert.deepEqual([ends.filter((code) => code === '250').length, ends.filter((code) => code === '450').length], [1, 39]);
      assert.equal(world.reception.kept.length, 1);
      assert.equal(world.reception.reservedBytes, 0);
      assert.deepEqual(new Set(world.rejections), new Set(['data rate-data']));
      assert.match(world.connect().send(HELLO).say('MAIL FROM:<a@b.example>'), /^450 4\.7\.1 Too much data/);
      world.pass(66_000);
      const later = world.connect();
      assert.match(later.send(`${HELLO}MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n`).send(text).codes(), /250$/, 'one that is larger than the limit passes when nothing else has come');
    });
  }
});
