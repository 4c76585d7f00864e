import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { simpleParser } from 'mailparser';
import { composeDsn, dsnFlags } from '../../../../src/gateway/bounce/dsn.js';
import type { DsnRecipient, DsnRequest } from '../../../../src/gateway/bounce/dsn.js';
import { fold } from '../../../../src/gateway/bounce/dsn-text.js';
import { Prng } from '../../../../src/base/prng.js';
import { ENVELOPE_8BITMIME, ENVELOPE_DOT_LINES, ENVELOPE_SMTPUTF8, RET_FULL, RET_HEADERS } from '../../../../src/gateway/queue/types.js';
import type { Envelope } from '../../../../src/gateway/queue/types.js';
import { envelopeTo } from '../outbound/pure/session-world.js';

const CONTENT = Buffer.from('Received: by x\r\nSubject: hello\r\nFrom: anna@example.org\r\n\r\nthe body\r\n.dot line\r\n');

function failed(address: string, more: Partial<DsnRecipient> = {}): DsnRecipient {
  return {
    recipient: { address, notify: 0, orcpt: '' },
    action: 'failed', code: 550, enhanced: '5.1.1', text: '550 5.1.1 no such user', relay: 'mx.example.net[192.0.2.1]:25', lastAttemptWallMs: 1_000_000_000_000,
    ...more,
  };
}

function request(more: Partial<DsnRequest> = {}, envelope: Partial<Envelope> = {}): DsnRequest {
  return {
    kind: 'failure', reportingMta: 'gw.example.com', dsnId: '0000000000B', queueId: '0000000000A',
    envelope: envelopeTo(['bob@example.net'], { arrivalWallMs: 999_999_000_000, ...envelope }),
    recipients: [failed('bob@example.net')], content: CONTENT, dateWallMs: 1_000_000_060_000,
    ...more,
  };
}

interface Seen { type: string; reportType: string; defects: string[]; parts: { type: string; cte: string; text: string; defects: string[] }[]; groups: Record<string, string>[]; headers: Record<string, string> }

/** The report as Python's email package reads it: an opinion that is not ours. */
function asPythonSees(report: Uint8Array): Seen {
  const program = `
import sys, json, email, email.policy
m = email.message_from_bytes(sys.stdin.buffer.read(), policy=email.policy.default.clone(utf8=True))
parts = m.get_payload()
def text(p):
    if p.is_multipart(): return b''.join(x.as_bytes(policy=email.policy.SMTP.clone(refold_source='none', utf8=True)) for x in p.get_payload()).decode('latin-1')
    return p.get_payload(decode=True).decode('utf-8', 'replace')
raw = parts[1].get_payload()
groups = [dict(g.items()) for g in raw] if isinstance(raw, list) else []
print(json.dumps(dict(type=m.get_content_type(), reportType=m.get_param('report-type') or '', defects=[str(d) for d in m.defects],
  parts=[dict(type=p.get_content_type(), cte=p['Content-Transfer-Encoding'], text=text(p), defects=[str(d) for d in p.defects]) for p in parts],
  groups=groups, headers={k: str(v) for k, v in m.items()})))`;
  const run = spawnSync('python3', ['-c', program], { input: report, encoding: 'utf8' });
  assert.equal(run.status, 0, run.stderr);
  return JSON.parse(run.stdout) as Seen;
}

function latin1(report: Uint8Array): string {
  return Buffer.from(report).toString('latin1');
}

function assertWellFormed(report: Uint8Array): void {
  const text = latin1(report);
  assert.ok(!/[^\r]\n|\r[^\n]/.test(text), 'CRLF only');
  for (const line of text.split('\r\n')) assert.ok(line.length <= 998, 'no line over 998 bytes');
  assert.ok(text.endsWith('\r\n'));
}

test('is a multipart/report that Python and mailparser read as RFC 3464 says', async () => {
  const report = composeDsn(request({}, { envid: 'QQ+3D7' }));
  assertWellFormed(report);
  const seen = asPythonSees(report);
  assert.deepEqual([seen.type, seen.reportType, seen.defects], ['multipart/report', 'delivery-status', []]);
  assert.deepEqual(seen.parts.map((part) => part.type), ['text/plain', 'message/delivery-status', 'message/rfc822']);
  assert.deepEqual(seen.parts.flatMap((part) => part.defects), []);
  assert.deepEqual(seen.groups, [
    { 'Reporting-MTA': 'dns; gw.example.com', 'Original-Envelope-Id': 'QQ=7', 'Arrival-Date': 'Sun, 09 Sep 2001 01:30:00 +0000' },
    {
      'Final-Recipient': 'rfc822; bob@example.net', 'Action': 'failed', 'Status': '5.1.1', 'Remote-MTA': 'dns; mx.example.net',
      'Diagnostic-Code': 'smtp; 550 5.1.1 no such user', 'Last-Attempt-Date': 'Sun, 09 Sep 2001 01:46:40 +0000',
    },
  ]);
  assert.equal(seen.headers['From'], 'Mail Delivery System <MAILER-DAEMON@gw.example.com>');
  assert.equal(seen.headers['To'], 'anna@example.org');
  assert.equal(seen.headers['Auto-Submitted'], 'auto-replied');
  assert.equal(seen.headers['Message-ID'], '<0000000000B@gw.example.com>');
  const parsed = await simpleParser(Buffer.from(report));
  assert.match(parsed.text ?? '', /<bob@example\.net>: mx\.example\.net\[192\.0\.2\.1\]:25 said: 550 5\.1\.1\s+no such user/);
  assert.equal(parsed.date?.getTime(), 1_000_000_060_000);
});

describe('what comes back of the message', () => {
  test('a small one whole, byte for byte, 8-bit bytes and all', () => {
    const content = Buffer.concat([CONTENT, Buffer.from([0xe4, 0xff, 0x80, 13, 10])]);
    const report = composeDsn(request({ content }));
    assert.ok(latin1(report).includes(`Content-Type: message/rfc822\r\nContent-Transfer-Encoding: 8bit\r\n\r\n${latin1(content)}\r\n--`));
    assert.equal(dsnFlags(report, request().envelope), ENVELOPE_8BITMIME | ENVELOPE_DOT_LINES);
  });
  const large = Buffer.concat([CONTENT, Buffer.from('x\r\n'.repeat(30_000))]);
  const cases: [string, Partial<DsnRequest>, Partial<Envelope>, boolean][] = [
    ['a large one without RET: header', { content: large }, {}, false],
    ['a large one with RET=FULL: whole', { content: large }, { ret: RET_FULL }, true],
    ['a huge one even with RET=FULL: header', { content: Buffer.alloc(2_000_000, 'Subject: x\r\n\r\nyyyyyyyyyyy\r\n') }, { ret: RET_FULL }, false],
    ['a small one with RET=HDRS: header', {}, { ret: RET_HEADERS }, false],
    ['in a success report: header', { kind: 'success' }, { ret: RET_FULL }, false],
    ['in a delay report: header', { kind: 'delay' }, {}, false],
  ];
  for (const [name, more, envelope, isWhole] of cases) {
    test(name, () => {
      const report = composeDsn(request(more, envelope));
      assertWellFormed(report);
      const part = asPythonSees(report).parts[2];
      assert.equal(part?.type, isWhole ? 'message/rfc822' : 'text/rfc822-headers');
      assert.equal(part.text.includes('the body') || part.text.includes('yyyy'), isWhole);
      assert.ok(part.text.includes('Subject: '));
    });
  }
  test('an empty or headerless content breaks nothing', () => {
    for (const content of ['', '\r\n', 'no end', '\r\nbody\r\n']) assertWellFormed(composeDsn(request({ content: Buffer.from(content) })));
  });
  test('a header of megabytes is cut at a line end', () => {
    const report = composeDsn(request({ content: Buffer.from(`${'X-Much: of this\r\n'.repeat(100_000)}\r\nbody\r\n`) }));
    assert.ok(report.length < 70_000);
    assertWellFormed(report);
  });
});

test('folds at spaces, loses no character of a word and leaves no line empty or white', () => {
  const random = new Prng(1);
  for (let i = 0; i < 2000; i++) {
    let line = '';
    for (let words = random.below(12); words >= 0; words--) line += 'w'.repeat(random.below(random.below(10) === 0 ? 700 : 40)) + ' '.repeat(random.below(3));
    const lines = fold(line, '  ');
    assert.equal(lines.join('').replaceAll(' ', ''), line.replaceAll(' ', ''));
    for (const [at, one] of lines.entries()) {
      assert.ok(one.length <= 76 || !one.trim().includes(' '), one);
      assert.ok(one.length <= 302 && (one.trim() !== '' || lines.length === 1) && one.startsWith('  ') === at > 0, one);
    }
  }
});

test('reply text of a hostile peer can not end a line, add a field or break a part', () => {
  const text = `550 no\r\nAction: delivered\r\n\r\n--report-0000000000B--\u0000\u001b[31m\u0085\u2028${'w'.repeat(2000)}`;
  for (const flags of [0, ENVELOPE_SMTPUTF8]) {
    const report = composeDsn(request({ recipients: [failed('bob@example.net', { text, relay: 'evil\r\nX: y[1]:25' })] }, { flags }));
    assertWellFormed(report);
    assert.ok(!/[\u0000\u001b]/.test(latin1(report)));
    const seen = asPythonSees(report);
    assert.equal(seen.parts.length, 3);
    if (flags === 0) assert.deepEqual(seen.groups.map((group) => group['Action']), [undefined, 'failed']);
  }
});

test('a content that guesses the boundary can not write parts of the report', () => {
  const guess = 'Subject: x\r\n\r\n--report-0000000000B\r\nContent-Type: text/html\r\n\r\nevil\r\n--report-0000000000B--\r\n';
  const seen = asPythonSees(composeDsn(request({ content: Buffer.from(guess) })));
  assert.deepEqual(seen.parts.map((part) => part.type), ['text/plain', 'message/delivery-status', 'message/rfc822']);
});

test('the boundary after a guessed one can not be foreseen: a content full of guesses costs one more search, not thousands', () => {
  const guess = `Subject: x\r\n\r\nreport-0000000000B\r\n${Array.from({ length: 1000 }, (_, i) => `report-0000000000B-${i}\r\n`).join('')}`;
  const boundaryOf = (report: Uint8Array): string => /boundary="([^"]+)"/.exec(latin1(report))?.[1] ?? '';
  const both = [0, 1].map(() => boundaryOf(composeDsn(request({ content: Buffer.from(guess) }))));
  assert.notEqual(both[0], both[1]);
  assert.ok(both.every((boundary) => boundary.length > 20 && boundary.length <= 70 && !guess.includes(boundary)));
});

test('names each recipient with ORCPT, action and the right kind of diagnostic', () => {
  const report = composeDsn(request({
    kind: 'success',
    recipients: [
      failed('b@d', { action: 'relayed', code: 250, enhanced: '2.0.0', text: '250 2.0.0 ok', recipient: { address: 'b@d', notify: 2, orcpt: 'rfc822;Bob+2BX@example.org' } }),
      failed('c@d', { action: 'delivered', code: 0, enhanced: '2.0.0', text: 'kept here', relay: '', lastAttemptWallMs: 0 }),
    ],
  }));
  const seen = asPythonSees(report);
  assert.equal(seen.groups[1]?.['Original-Recipient'], 'rfc822; Bob+X@example.org');
  assert.equal(seen.groups[1]['Action'], 'relayed');
  assert.deepEqual(seen.groups[2], { 'Final-Recipient': 'rfc822; c@d', 'Action': 'delivered', 'Status': '2.0.0', 'Diagnostic-Code': 'x-twinpost; kept here' });
});

test('an SMTPUTF8 message is reported in the global forms, its addresses in UTF-8', () => {
  const envelope = { flags: ENVELOPE_SMTPUTF8, reversePath: 'ännä@example.org' };
  const report = composeDsn(request({ recipients: [failed('dörte@example.net')] }, envelope));
  assertWellFormed(report);
  const seen = asPythonSees(report);
  assert.equal(seen.reportType, 'global-delivery-status');
  assert.deepEqual(seen.parts.map((part) => part.type), ['text/plain', 'message/global-delivery-status', 'message/global']);
  assert.match(Buffer.from(report).toString('utf8'), /Final-Recipient: utf-8; dörte@example\.net/);
  assert.equal(dsnFlags(report, request({}, envelope).envelope) & ENVELOPE_SMTPUTF8, ENVELOPE_SMTPUTF8);
});

test('without SMTPUTF8 our own parts are ASCII whatever the texts hold', () => {
  const report = composeDsn(request({ recipients: [failed('dörte@example.net', { text: '550 kein Empfänger' })] }));
  assert.ok(report.every((byte) => byte < 128));
  assert.equal(dsnFlags(report, request().envelope) & ENVELOPE_8BITMIME, 0);
});
