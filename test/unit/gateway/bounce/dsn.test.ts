import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { simpleParser } from 'mailparser';
import { composeDsn, dsnFlags } from '../../../../src/gateway/bounce/dsn.js';
import type { DsnAction, DsnRecipient, DsnRequest } from '../../../../src/gateway/bounce/dsn.js';
import { composeReport } from '../../../../src/gateway/bounce/report-composer.js';
import { fold } from '../../../../src/gateway/bounce/dsn-text.js';
import { Prng } from '../../../../src/base/prng.js';
import { ALIAS_CHANGED, ALIAS_EXPANDED, ALIAS_SUCCESS, ENVELOPE_8BIT, ENVELOPE_DOT_LINES, ENVELOPE_UTF8_HEADER, NOTIFY_NEVER, RET_FULL, RET_HEADERS } from '../../../../src/gateway/mail-types.js';
import { freshNote } from '../../../../src/gateway/queue/note.js';
import { delayReportBytesMax } from '../../../../src/gateway/queue/reports/report-bounds.js';
import type { ReportInput } from '../../../../src/gateway/queue/reports/report-writer.js';
import type { Envelope } from '../../../../src/gateway/mail-types.js';
import { envelopeTo } from '../outbound/pure/session-world.js';

const CONTENT = Buffer.from('Received: by x\r\nSubject: hello\r\nFrom: anna@example.org\r\n\r\nthe body\r\n.dot line\r\n');

function failed(address: string, more: Partial<DsnRecipient> = {}): DsnRecipient {
  return {
    recipient: { address, notify: 0, orcpt: '' },
    action: 'failed', code: 550, enhanced: '5.1.1', text: '550 5.1.1 no such user', remoteMta: 'mx.example.net', lastAttemptWallMs: 1_000_000_000_000,
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
  assert.match(parsed.text ?? '', /<bob@example\.net>: mx\.example\.net said: 550 5\.1\.1\s+no such user/);
  assert.equal(parsed.date?.getTime(), 1_000_000_060_000);
});

describe('what comes back of the message', () => {
  test('a small one whole, byte for byte', () => {
    const report = composeDsn(request());
    assert.ok(latin1(report).includes(`Content-Type: message/rfc822\r\nContent-Transfer-Encoding: 7bit\r\n\r\n${latin1(CONTENT)}\r\n--`));
    assert.equal(dsnFlags(report, request().envelope), ENVELOPE_DOT_LINES);
  });
  test('8-bit bytes in base64, so that the report goes through any server', async () => {
    const content = Buffer.concat([CONTENT, Buffer.from([0xe4, 0xff, 0x80, 13, 10])]);
    const report = composeDsn(request({ content }));
    assertWellFormed(report);
    assert.ok(report.every((byte) => byte < 128));
    assert.equal(dsnFlags(report, request().envelope) & (ENVELOPE_8BIT | ENVELOPE_UTF8_HEADER), 0);
    const attached = (await simpleParser(Buffer.from(report))).attachments.find(({ contentType }) => contentType === 'message/global');
    assert.deepEqual(attached?.content, content);
  });
  test('a header with 8-bit bytes as text in base64', () => {
    const content = Buffer.from('Subject: grüße\r\n\r\nthe body\r\n');
    const part = asPythonSees(composeDsn(request({ content }, { ret: RET_HEADERS }))).parts[2];
    assert.deepEqual([part?.type, part?.cte, part?.text], ['text/rfc822-headers', 'base64', 'Subject: grüße\r\n']);
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
  test('whole to 50,000 octets, with RET=FULL to 1 MiB, and not one more', () => {
    for (const [ret, most] of [[0, 50_000], [RET_FULL, 1024 * 1024]] as const) {
      for (const more of [0, 1]) {
        const content = Buffer.alloc(most + more, 'Subject: x\r\n\r\nyyyyyyyyyyy\r\n');
        assert.equal(latin1(composeDsn(request({ content }, { ret }))).includes('\r\nContent-Type: message/rfc822\r\n'), more === 0, `${String(most)} + ${String(more)}`);
      }
    }
  });
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
  for (const reversePath of ['anna@example.org', 'ännä@example.org']) {
    const report = composeDsn(request({ recipients: [failed('bob@example.net', { text, remoteMta: 'evil\r\nX: y' })] }, { reversePath }));
    assertWellFormed(report);
    assert.ok(!/[\u0000\u001b]/.test(latin1(report)));
    const seen = asPythonSees(report);
    assert.equal(seen.parts.length, 3);
    if (reversePath === 'anna@example.org') assert.deepEqual(seen.groups.map((group) => group['Action']), [undefined, 'failed']);
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
      failed('c@d', { action: 'delivered', code: 250, enhanced: '2.0.0', text: '', remoteMta: '', lastAttemptWallMs: 0 }),
    ],
  }));
  const seen = asPythonSees(report);
  assert.equal(seen.groups[1]?.['Original-Recipient'], 'rfc822; Bob+X@example.org');
  assert.equal(seen.groups[1]['Action'], 'relayed');
  assert.deepEqual(seen.groups[2], { 'Final-Recipient': 'rfc822; c@d', 'Action': 'delivered', 'Status': '2.0.0', 'Diagnostic-Code': 'smtp; 250 2.0.0' });
});

test('an ENVID, an ORCPT and an address come back with each of their blanks, and a long one uncut', () => {
  const long = 'x'.repeat(480);
  const unfolded = (report: Uint8Array): string => {
    assertWellFormed(report);
    return Buffer.from(report).toString('utf8').replace(/\r\n(?=[ \t])/g, '');
  };
  const blanks = failed('', { recipient: { address: '"a  b"@x.test', notify: 0, orcpt: 'rfc822;"A+20+20+20B"@x.test' } });
  const uncut = failed('', { recipient: { address: `"${'y z '.repeat(200)}"@x.test`, notify: 0, orcpt: `rfc822;${long}` } });
  const text = unfolded(composeDsn(request({ recipients: [blanks, uncut] }, { envid: '+20q+20+20z+20' })));
  assert.ok(text.includes('\r\nOriginal-Envelope-Id:  q  z \r\n'));
  assert.ok(text.includes('\r\nOriginal-Recipient: rfc822; "A   B"@x.test\r\nFinal-Recipient: rfc822; "a  b"@x.test\r\n'));
  assert.ok(text.includes(`\r\nOriginal-Recipient: rfc822; ${long}\r\nFinal-Recipient: rfc822; "${'y z '.repeat(200)}"@x.test\r\n`));
  // What no line can hold is cut, and none is too long.
  const huge = failed(`"${'\u00fc'.repeat(700)}"@x.test`);
  assert.ok(unfolded(composeDsn(request({ recipients: [huge] }, { flags: ENVELOPE_UTF8_HEADER, reversePath: '\u00fc@example.org' }))).includes('Final-Recipient'));
});

test('a sender who needs SMTPUTF8 gets the global forms, addresses in UTF-8', () => {
  const envelope = { flags: ENVELOPE_UTF8_HEADER, reversePath: 'ännä@example.org' };
  const report = composeDsn(request({ recipients: [failed('dörte@example.net')] }, envelope));
  assertWellFormed(report);
  const seen = asPythonSees(report);
  assert.equal(seen.reportType, 'global-delivery-status');
  assert.deepEqual(seen.parts.map((part) => part.type), ['text/plain', 'message/global-delivery-status', 'message/global']);
  assert.match(Buffer.from(report).toString('utf8'), /Final-Recipient: utf-8; dörte@example\.net/);
  assert.equal(dsnFlags(report, request({}, envelope).envelope) & (ENVELOPE_UTF8_HEADER | ENVELOPE_8BIT), ENVELOPE_UTF8_HEADER | ENVELOPE_8BIT);
});

test('a sender who needs SMTPUTF8 gets a header in its global form too', () => {
  const content = Buffer.from('Subject: grüße\r\n\r\nthe body\r\n');
  const report = composeDsn(request({ content, recipients: [failed('bob@example.net')] }, { reversePath: 'ännä@example.org', ret: RET_HEADERS }));
  assertWellFormed(report);
  const part = asPythonSees(report).parts[2];
  assert.deepEqual([part?.type, part?.cte], ['message/global-headers', '8bit']);
  assert.ok(Buffer.from(report).toString('utf8').includes('\r\n\r\nSubject: grüße\r\n'));
});

test('an ASCII sender gets ASCII whatever message, addresses and texts hold', () => {
  const recipient = { address: 'dörte@example.net', notify: 0, orcpt: 'utf-8;d\\x{F6}rte+2B@example.net' };
  const other = { address: 'x@example.net', notify: 0, orcpt: 'utf-8;dörte@example.net' };
  const envelope = { flags: ENVELOPE_UTF8_HEADER };
  const report = composeDsn(request({ recipients: [failed('', { recipient, text: '550 kein Empfänger' }), failed('', { recipient: other })], content: Buffer.from('Subject: ü\r\n\r\nß\r\n') }, envelope));
  assert.ok(report.every((byte) => byte < 128));
  assert.equal(dsnFlags(report, request({}, envelope).envelope) & (ENVELOPE_UTF8_HEADER | ENVELOPE_8BIT), 0);
  const { groups } = asPythonSees(report);
  assert.deepEqual(groups.slice(1).map((group) => [group['Original-Recipient'], group['Final-Recipient']]), [
    ['utf-8; d\\x{F6}rte+2B@example.net', 'utf-8; d\\x{F6}rte@example.net'],
    ['utf-8; d\\x{F6}rte@example.net', 'rfc822; x@example.net'],
  ]);
});

test('an original address that no line holds in ASCII is left out, for half of it would be another one', () => {
  const orcpt = (smiles: number): string => `utf-8;${'\u{1f600}'.repeat(smiles)}@example.net`;
  const recipients = [100, 200].map((smiles) => failed('', { recipient: { address: 'x@example.net', notify: 0, orcpt: orcpt(smiles) } }));
  const { groups } = asPythonSees(composeDsn(request({ recipients }, { flags: ENVELOPE_UTF8_HEADER })));
  assert.deepEqual(groups.slice(1).map((group) => group['Original-Recipient']), [`utf-8; ${'\\x{1F600}'.repeat(100)}@example.net`, undefined]);
  assert.deepEqual(groups.slice(1).map((group) => group['Final-Recipient']), ['rfc822; x@example.net', 'rfc822; x@example.net']);
});

test('is no larger than the message and a bound, whatever next hops said', () => {
  const long = 'w'.repeat(200);
  const recipients = Array.from({ length: 1000 }, (_none, i) => failed(`user${String(i)}@example.net`, { text: `550 5.1.1 ${String(i)} ${long}`, remoteMta: `${long}.example.net` }));
  const report = composeDsn(request({ recipients }));
  assertWellFormed(report);
  assert.ok(report.length < 250_000, String(report.length));
  const seen = asPythonSees(report);
  assert.equal(seen.groups.length, 1001, 'each is named');
  assert.match(seen.parts[0]?.text ?? '', /And 900 more/);
});

test('of a delay says until when it is tried; of an expiry, that time ran out and what was said last', () => {
  const expiryWallMs = 1_000_400_000_000;
  const delay = composeDsn(request({ kind: 'delay', recipients: [failed('bob@example.net', { action: 'delayed', code: 0, enhanced: '4.4.1', text: 'connect ECONNREFUSED 10.1.2.3:25' })] }, { expiryWallMs }));
  assert.deepEqual(asPythonSees(delay).groups[1], {
    'Final-Recipient': 'rfc822; bob@example.net', 'Action': 'delayed', 'Status': '4.4.1', 'Will-Retry-Until': 'Thu, 13 Sep 2001 16:53:20 +0000',
    'Remote-MTA': 'dns; mx.example.net', 'Diagnostic-Code': 'x-twinpost; the next mail server could not be reached', 'Last-Attempt-Date': 'Sun, 09 Sep 2001 01:46:40 +0000',
  });
  assert.ok(!latin1(delay).includes('10.1.2.3'), 'no address of ours');
  const over = composeDsn(request({ recipients: [failed('bob@example.net', { code: 450, enhanced: '4.2.0', text: '450 later' })] }));
  assert.match(asPythonSees(over).parts[0]?.text.replace(/\s+/g, ' ') ?? '', /it could not be delivered in time; at last: mx\.example\.net said: 450 later/);
});

describe('from what the queue knows', () => {
  const compose = (input: Partial<ReportInput>): Record<string, string>[] => {
    const envelope = envelopeTo(['bob@example.net']);
    const note = { ...freshNote(1), results: [{ recipient: 0, code: 250, enhanced: '2.6.0' }] };
    const nextHop = { protocol: 'smtp', host: 'mx.example.net', port: 25 } as const;
    const all: ReportInput = { kind: 'success', envelope, note, texts: new Map(), recipients: [0], nextHop, reportId: 5, content: CONTENT, ...input };
    return asPythonSees(composeReport('gw.example.com', all, 1_000_000_060_000).content).groups;
  };
  /** The same by SMTP and LMTP. */
  const toldOfAlias = (bits: number): readonly unknown[] => {
    const recipients = [{ address: 'member@hidden.example', notify: NOTIFY_NEVER | ALIAS_CHANGED | bits, orcpt: 'rfc822;team@example.org' }];
    const [bySmtp, byLmtp] = (['smtp', 'lmtp'] as const).map((protocol) => {
      const [, told] = compose({ envelope: envelopeTo([], { recipients }), nextHop: { protocol, host: 'mx.example.net', port: 25 } });
      return ['Final-Recipient', 'Action', 'Status', 'Remote-MTA'].map((field) => told?.[field]);
    });
    assert.deepEqual(bySmtp, byLmtp);
    return bySmtp ?? [];
  };
  test('SMTP relays, LMTP delivers', () => {
    assert.equal(compose({})[1]?.['Action'], 'relayed');
    assert.equal(compose({ nextHop: { protocol: 'lmtp', host: 'boxes', port: 24 } })[1]?.['Action'], 'delivered');
    assert.equal(compose({ kind: 'failure' })[1]?.['Action'], 'failed');
    assert.equal(compose({ kind: 'delay' })[1]?.['Action'], 'delayed');
  });
  test('an alias that stands for several is told as expanded, whoever took the message', () => {
    assert.deepEqual(toldOfAlias(ALIAS_SUCCESS | ALIAS_EXPANDED), ['rfc822; team@example.org', 'expanded', '2.1.5', undefined]);
  });
  test('an alias of one address is told as relayed, whoever took the message', () => {
    assert.deepEqual(toldOfAlias(ALIAS_SUCCESS), ['rfc822; team@example.org', 'relayed', '2.6.0', undefined]);
  });
  test('the next hop is named when it has a name and has spoken', () => {
    assert.equal(compose({})[1]?.['Remote-MTA'], 'dns; mx.example.net');
    assert.equal(compose({ nextHop: { protocol: 'smtp', host: '10.1.2.3', port: 25 } })[1]?.['Remote-MTA'], undefined);
    const hop = { protocol: 'smtp', host: 'mx.example.net', port: 25 } as const;
    for (const nextHop of [{ ...hop, isByMx: true }, { ...hop, others: [] }]) assert.equal(compose({ nextHop })[1]?.['Remote-MTA'], undefined);
    assert.equal(compose({ kind: 'failure', note: freshNote(1) })[1]?.['Remote-MTA'], undefined);
    // Who said it, of several.
    const texts = new Map([[0, { text: '250 2.6.0 kept', host: 'mx2.example.net' }]]);
    for (const nextHop of [{ ...hop, host: 'example.net', isByMx: true }, { ...hop, others: [] }]) assert.equal(compose({ nextHop, texts })[1]?.['Remote-MTA'], 'dns; mx2.example.net');
    // Of one without a name, as the route led to before.
    assert.equal(compose({ texts: new Map([[0, { text: '250 2.6.0 kept', host: '' }]]) })[1]?.['Remote-MTA'], undefined);
    assert.equal(compose({ texts, note: { ...freshNote(1), results: [{ recipient: 0, code: 0, enhanced: '4.4.1' }] } })[1]?.['Remote-MTA'], undefined);
  });
  test('the last attempt is told right after it; of a delay and of an expiry nobody knows when it was', () => {
    const envelope = envelopeTo(['bob@example.net'], { expiryWallMs: 1_000_000_060_001 });
    const lastOf = (input: Partial<ReportInput>): string | undefined => compose({ envelope, ...input })[1]?.['Last-Attempt-Date'];
    assert.equal(lastOf({ kind: 'failure' }), 'Sun, 09 Sep 2001 01:47:40 +0000');
    assert.equal(lastOf({ kind: 'delay' }), undefined);
    assert.equal(lastOf({ kind: 'failure', envelope: { ...envelope, expiryWallMs: 1_000_000_060_000 } }), undefined);
  });
});

test('the work on a recipient does not grow with their number: what is the same for all is found out once', () => {
  let reads = 0;
  const nextHop = { protocol: 'smtp', port: 25, get host() { reads += 1; return 'mx.example.net'; } } as const;
  const envelope = envelopeTo(Array.from({ length: 2000 }, (_none, i) => `u${String(i)}@example.net`));
  const { recipients } = envelope;
  let looks = 0;
  const results = recipients.map((_none, i) => ({ get recipient() { looks += 1; return i; }, code: 550, enhanced: '5.1.1' }));
  const { content } = composeReport('gw.example.com', {
    kind: 'failure', envelope, note: { ...freshNote(recipients.length), results }, texts: new Map(),
    recipients: recipients.map((_none, i) => i), nextHop, reportId: 7, content: new Uint8Array(0),
  }, 1_000_000_060_000);
  assert.ok((latin1(content).match(/^Remote-MTA: dns; mx\.example\.net\r$/gm)?.length ?? 0) > 100);
  assert.ok(reads < 5 && looks <= recipients.length, `${String(reads)} ${String(looks)}`);
});

test('an expanded alias is named as the sender wrote to it, whatever its type, and no member', () => {
  for (const [orcpt, reversePath, final] of [
    ['rfc822;Team+2BX@example.org', 'a@b.example', 'rfc822; Team+X@example.org'],
    ['utf-8;b\\x{FC}cher@example.org', 'a@b.example', 'utf-8; b\\x{FC}cher@example.org'],
    ['utf-8;bücher@example.org', 'a@b.example', 'utf-8; b\\x{FC}cher@example.org'],
    ['utf-8;bücher@example.org', 'dörte@b.example', 'utf-8; bücher@example.org'],
    ['x400;/c=de/', 'a@b.example', 'x400; /c=de/'],
  ] as const) {
    const recipients = [failed('member@hidden.example', { action: 'expanded', code: 0, enhanced: '2.1.5', text: '', remoteMta: '', recipient: { address: 'member@hidden.example', notify: NOTIFY_NEVER | ALIAS_CHANGED | ALIAS_EXPANDED, orcpt } })];
    const text = Buffer.from(composeDsn(request({ kind: 'success', recipients }, { reversePath }))).toString('utf8');
    assert.ok(text.includes(`\r\nOriginal-Recipient: ${final}\r\nFinal-Recipient: ${final}\r\nAction: expanded\r\nStatus: 2.1.5\r\n`), text);
    assert.doesNotMatch(text, /hidden/);
  }
});

describe('what an alias leads to', () => {
  const TEAM = 'rfc822;team@ours.example';
  const led = (address: string, text = '', more: Partial<DsnRecipient> = {}, orcpt = TEAM): DsnRecipient =>
    failed('', { recipient: { address, notify: ALIAS_CHANGED, orcpt }, text, remoteMta: 'mx.else.example', ...more });
  const composed = (recipients: readonly DsnRecipient[], more: Partial<DsnRequest> = {}): Uint8Array =>
    composeDsn(request({ recipients, ...more }, { recipients: recipients.map(({ recipient }) => recipient) }));

  test('is not told: one outcome is, of the address that was written to', () => {
    for (const [kind, action] of [['failure', 'failed'], ['delay', 'delayed'], ['success', 'relayed']] as const) {
      const report = composed([
        led('x+y@else.example', '550 5.1.1 <X@Else.example>: no x, ask mail.else.example, or try <anna.new@private.example>', { action }),
        failed('bob@example.net', { action, text: '550 5.1.1 bob, who is not bobby@example.net: unknown' }),
        led('y@other.example', '551 5.7.1 y@other.example', { action, code: 551, enhanced: '5.7.1' }),
        led('anna@ours.example', '550 5.1.1 <anna@ours.example> is not at ours.example', { action }),
      ], { kind });
      assertWellFormed(report);
      const { groups, parts } = asPythonSees(report);
      assert.deepEqual(groups.slice(1).map((group) => [group['Original-Recipient'], group['Final-Recipient'], group['Action'], group['Status'], group['Remote-MTA']]), [
        ['rfc822; team@ours.example', 'rfc822; team@ours.example', action, '5.1.1', undefined],
        [undefined, 'rfc822; bob@example.net', action, '5.1.1', 'dns; mx.example.net'],
      ]);
      assert.deepEqual(groups.slice(1).map((group) => group['Diagnostic-Code']), ['smtp; 550 5.1.1', 'smtp; 550 5.1.1 bob, who is not bobby@example.net: unknown']);
      assert.match(parts[0]?.text.replace(/\s+/g, ' ') ?? '', /<team@ours\.example>: of an address that it leads to: the next mail server said: 550 5\.1\.1 </);
      assert.doesNotMatch(latin1(report), /else\.example|other\.example|private\.example|anna@ours|anna\.new/i);
    }
  });

  test('comes to the worst of it, where success is told', () => {
    const report = composed([led('x@else.example', '', { action: 'delivered' }), led('y@else.example', '', { action: 'relayed' })], { kind: 'success' });
    assert.deepEqual(asPythonSees(report).groups.slice(1).map((group) => group['Action']), ['relayed']);
  });

  test('is not told either where nobody knows what was written to', () => {
    const { groups } = asPythonSees(composed([led('x@else.example', '550 5.1.1 x@else.example', {}, '')]));
    assert.equal(groups[1]?.['Final-Recipient'], 'x-twinpost; undisclosed');
  });
});

describe('a success', () => {
  const tellingOf = (...actions: readonly DsnAction[]): string => {
    const { parts, groups } = asPythonSees(composeDsn(request({ kind: 'success', recipients: actions.map((action) => failed('b@example.net', { action, code: 250, enhanced: '2.0.0' })) })));
    assert.deepEqual(groups.slice(1).map((group) => group['Action']), actions);
    return parts[0]?.text.replace(/\s+/g, ' ') ?? '';
  };
  const subjectOf = (...actions: readonly DsnAction[]): string =>
    /^Subject: (.*)\r$/m.exec(latin1(composeDsn(request({ kind: 'success', recipients: actions.map((action) => failed('b@example.net', { action })) }))))?.[1] ?? '';

  test('is called an arrival only where all of it is one', () => {
    assert.equal(subjectOf('delivered', 'delivered'), 'Your message has arrived');
    assert.match(tellingOf('delivered', 'delivered'), /was delivered to the mailboxes/);
    for (const actions of [['relayed'], ['expanded'], ['delivered', 'expanded'], ['delivered', 'relayed']] as const) {
      assert.equal(subjectOf(...actions), 'Your message is being passed on');
      assert.doesNotMatch(tellingOf(...actions), /arrived|mailboxes|all of them/);
    }
  });
});

test('a report of a delay takes no more room than was asked for before it was composed', () => {
  const long = (characters: number, letter: string): string => letter.repeat(characters);
  for (const count of [1, 100, 1000]) {
    for (const letter of ['a', '\u00fc', '\uffee', '\u{10ffff}']) {
      const address = `${long(240, letter)}@${long(60, `${letter}.`)}example`;
      const recipients = Array.from({ length: count }, () => ({ address, notify: 4, orcpt: `utf-8;${long(240, letter)}` }));
      // Aliases: each is told of three times.
      const aliases = recipients.map((_none, i) => ({ address: 'a@b.c', notify: ALIAS_CHANGED, orcpt: `utf-8;${long(490 / letter.length, letter)}${String(i)}` }));
      for (const [told, reversePath] of [recipients, aliases].flatMap((each) => [[each, 'a@b.example'], [each, `${long(200, '\u00fc')}@b.example`]] as const)) {
        const envelope = { ...envelopeTo([]), reversePath, recipients: told, envid: long(100, 'x') };
        const indexes = recipients.map((_, index) => index);
        const results = indexes.map((recipient) => ({ recipient, code: 450, enhanced: '4.2.0' }));
        const report = composeReport(long(255, 'm'), {
          kind: 'delay', envelope, recipients: indexes, reportId: 5, note: { ...freshNote(count), results },
          texts: new Map(indexes.map((index) => [index, { text: long(66, '\uffee'), host: long(96, 'h') }])),
          nextHop: { protocol: 'smtp', host: long(255, 'h'), port: 25 }, content: Buffer.from(`Subject: ${long(64 * 1024 - 11, '\xff')}\r\n`, 'latin1'),
        }, 1_000_000_060_000).content;
        assert.ok(report.length + 8192 <= delayReportBytesMax(envelope, indexes), `${String(count)} ${letter}: ${String(report.length)}`);
      }
    }
  }
});
