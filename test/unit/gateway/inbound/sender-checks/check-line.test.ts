/** What is found out about senders: a real name server, our client of the DNS, and the thread with mailauth in it. */
import assert from 'node:assert/strict';
import { createHash, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';

import { bestDkim } from '../../../../../src/gateway/inbound/sender-checks/verdicts.js';
import { RSA } from '../../dkim/node/new-keys.js';
import { judged } from '../hooks/judged.js';
import { checkField, keysOf, withSignatures } from './zone.js';
import type { Zone } from './zone.js';

const PLAIN = 'From: a@x.example\r\nSubject: s\r\n\r\nbody\r\n';

describe('SPF', () => {
  const ZONE: Zone = {
    'TXT pass.example': ['v=spf1 ip4:192.0.2.0/24 -all'], 'TXT fail.example': ['v=spf1 ip4:198.51.100.1 -all', 'other text'],
    'TXT soft.example': ['v=spf1 ~all'], 'TXT neutral.example': ['v=spf1 ?all'], 'TXT none.example': ['no record'],
    'TXT two.example': ['v=spf1 -all', 'v=spf1 +all'], 'TXT word.example': ['v=spf1 nonsense -all'],
    'TXT silent.example': 'silent', 'TXT broken.example': 'broken',
    'TXT include.example': ['v=spf1 include:pass.example -all'], 'TXT redirect.example': ['v=spf1 redirect=pass.example'],
    'TXT include-broken.example': ['v=spf1 include:broken.example -all'],
    'TXT mx.example': ['v=spf1 mx -all'], 'MX mx.example': ['host.example'], 'A host.example': ['192.0.2.1'],
    'TXT a6.example': ['v=spf1 a -all'], 'AAAA a6.example': ['2001:db8::1'], 'A a6.example': ['198.51.100.1'],
    'TXT macro.example': ['v=spf1 exists:%{ir}.%{l1r-}.sender.%{d} -all'], 'A 1.2.0.192.bounce.sender.macro.example': ['127.0.0.2'],
    'TXT eleven.example': [`v=spf1 ${Array.from({ length: 11 }, (_none, i) => `a:h${String(i)}.example`).join(' ')} -all`],
    ...Object.fromEntries(Array.from({ length: 11 }, (_none, i) => [`A h${String(i)}.example`, ['198.51.100.9']])),
    'TXT void.example': ['v=spf1 a:v1.example a:v2.example a:v3.example -all'],
    'TXT loop.example': ['v=spf1 include:loop.example -all'],
    'TXT long.example': [`v=spf1 exists:a.${'a'.repeat(3000)}! -all`], 'TXT macros.example': [`v=spf1 exists:${'%{l}'.repeat(60)}.example -all`],
    'TXT huge.example': [`v=spf1 ${'ip4:198.51.100.1 '.repeat(400)}ip4:192.0.2.1 -all`],
    'TXT client.example': ['v=spf1 ip4:192.0.2.1 -all'],
    'TXT ptr.example': ['v=spf1 ptr -all'], 'TXT ptr-a.example': ['v=spf1 ptr a:host.example -all'], 'PTR 1.2.0.192.in-addr.arpa': 'broken',
    'PTR 2.2.0.192.in-addr.arpa': ['mail.ptr.example'], 'A mail.ptr.example': ['192.0.2.2'],
  };
  const EXPECTED: readonly (readonly [domain: string, result: string])[] = [
    ['pass', 'pass'], ['fail', 'fail'], ['soft', 'softfail'], ['neutral', 'neutral'], ['none', 'none'], ['absent', 'none'], ['two', 'permerror'], ['word', 'permerror'],
    ['broken', 'temperror'], ['include', 'pass'], ['redirect', 'pass'], ['include-broken', 'temperror'], ['mx', 'pass'], ['macro', 'pass'],
    ['eleven', 'permerror'], ['void', 'permerror'], ['loop', 'permerror'], ['long', 'permerror'], ['macros', 'permerror'], ['huge', 'permerror'],
  ];

  test('says what the records of the reverse-path say of the client', { timeout: 60_000 }, async (t) => {
    const { check } = await checkField(t, ZONE);
    for (const [name, result] of EXPECTED) {
      const { spf } = await check(PLAIN, { reversePath: `bounce@${name}.example` });
      assert.deepEqual(spf, { result, domain: `${name}.example`, isHelo: false });
    }
  });

  test('by the reverse zone of the client matches no "ptr" where that zone fails', { timeout: 30_000 }, async (t) => {
    const { check } = await checkField(t, ZONE);
    assert.equal((await check(PLAIN, { reversePath: 'a@ptr.example', client: '192.0.2.2' })).spf.result, 'pass');
    assert.equal((await check(PLAIN, { reversePath: 'a@ptr.example' })).spf.result, 'fail');
    assert.equal((await check(PLAIN, { reversePath: 'a@ptr-a.example' })).spf.result, 'pass');
  });

  test('is of the HELO with the null reverse-path, of IPv6 too, and of no address literal', { timeout: 30_000 }, async (t) => {
    const { check } = await checkField(t, ZONE);
    assert.deepEqual((await check(PLAIN, { reversePath: '' })).spf, { result: 'pass', domain: 'client.example', isHelo: true });
    assert.deepEqual((await check(PLAIN, { reversePath: '', helo: '[192.0.2.1]' })).spf, { result: 'none', domain: '', isHelo: true });
    assert.equal((await check(PLAIN, { reversePath: 'a@[192.0.2.1]' })).spf.result, 'none');
    assert.equal((await check(PLAIN, { reversePath: 'a@a6.example', client: '2001:db8::1' })).spf.result, 'pass');
    assert.equal((await check(PLAIN, { reversePath: 'a@a6.example', client: '2001:db8::2' })).spf.result, 'fail');
    assert.equal((await check(PLAIN, { reversePath: 'a@pass.example', client: '::ffff:192.0.2.7' })).spf.result, 'pass');
    assert.equal((await check(PLAIN, { reversePath: '"a b"@PASS.example' })).spf.domain, 'pass.example');
    const unknown = { result: 'none', domain: 'pass.example', isHelo: false };
    assert.deepEqual((await check(PLAIN, { reversePath: 'a@pass.example', client: '' })).spf, unknown, 'who sends is not known');
  });
});

/** A signature of x.example, selector r1, over From and a body that is taken as simple; tags of the caller's own. */
function signedBy(tags: Readonly<Record<string, string>>, message = PLAIN): string {
  const at = message.indexOf('\r\n\r\n');
  const body = message.slice(at + 4);
  const signed = tags['l'] === undefined ? body : body.slice(0, Number(tags['l']));
  const bh = createHash('sha256').update(signed, 'latin1').digest('base64');
  const all = { v: '1', a: 'rsa-sha256', c: 'simple/simple', d: 'x.example', s: 'r1', h: 'from', bh, ...tags };
  const field = `DKIM-Signature: ${Object.entries(all).map(([name, value]) => `${name}=${value}`).join('; ')}; b=`;
  const from = message.slice(0, at).split('\r\n').find((line) => line.toLowerCase().startsWith('from:')) ?? '';
  const covered = all.h.includes('from') ? `${from}\r\n` : '';
  const value = sign('sha256', Buffer.from(covered + field, 'latin1'), RSA).toString('base64');
  return `${field}${value}\r\n${message}`;
}

describe('DKIM', () => {
  test('finds signatures of our own signer right, and each change', { timeout: 60_000 }, async (t) => {
    const { check } = await checkField(t, keysOf('x.example'));
    const good = await withSignatures(PLAIN);
    const { dkim, dmarc } = await check(good);
    assert.deepEqual(dkim.map(({ result, reason, domain, selector, algorithm }) => [result, reason, domain, selector, algorithm]), [
      ['pass', '', 'x.example', 'e1', 'ed25519-sha256'], ['pass', '', 'x.example', 'r1', 'rsa-sha256'],
    ]);
    assert.match(dkim[0]?.start ?? '', /^[A-Za-z0-9+/]{8}$/);
    assert.equal(dmarc.result, 'none');
    for (const [what, changed, reason] of [
      ['body', `${good}more\r\n`, 'body has been altered'],
      ['subject', good.replace('Subject: s', 'Subject: t'), 'signature does not match'],
      ['another From', good.replace('From: a', 'From: b@y.example\r\nFrom: a'), 'signature does not match'],
    ] as const) {
      const found = await check(changed);
      assert.deepEqual(found.dkim.map((each) => [each.result, each.reason]), [['fail', reason], ['fail', reason]], what);
    }
    assert.equal(bestDkim((await check(PLAIN)).dkim), 'none');
  });

  test('says of signatures by their tags what RFC 6376 and RFC 8301 do', { timeout: 60_000 }, async (t) => {
    const { check } = await checkField(t, {
      ...keysOf('x.example'), ...keysOf('sub.x.example'),
      'TXT short._domainkey.x.example': [`p=${generateKeyPairSync('rsa', { modulusLength: 768 }).publicKey.export({ type: 'spki', format: 'der' }).toString('base64')}`],
      'TXT pkcs1._domainkey.x.example': [`p=${createPublicKey(RSA).export({ type: 'pkcs1', format: 'der' }).toString('base64')}`],
      'TXT exponent._domainkey.x.example': [`p=${createPublicKey({ key: { ...createPublicKey(RSA).export({ format: 'jwk' }), e: Buffer.alloc(200, 0x7f).toString('base64url') }, format: 'jwk' }).export({ type: 'spki', format: 'der' }).toString('base64')}`],
      'TXT gone._domainkey.x.example': ['v=DKIM1; p='], 'TXT slow._domainkey.x.example': 'broken', 'TXT odd._domainkey.x.example': ['v=DKIM1; p=!!!'],
      ...Object.fromEntries([['other', 's=tlsrpt; '], ['strict', 't=y:s; '], ['sha1', 'h=sha1; ']].map(([name, tags]) => [
        `TXT ${name ?? ''}._domainkey.x.example`, [(keysOf('x.example')['TXT r1._domainkey.x.example']?.[0] ?? '').replace('k=rsa; ', `k=rsa; ${tags ?? ''}`)],
      ])),
    });
    const known: readonly (readonly [tags: Readonly<Record<string, string>>, result: string, reason: string])[] = [
      [{}, 'pass', ''], [{ i: '@x.example' }, 'pass', ''], [{ i: 'a@sub.x.example' }, 'pass', ''], [{ h: 'from:subject:from' }, 'fail', 'signature does not match'],
      [{ v: '2' }, 'permerror', 'unknown version'], [{ a: 'rsa-sha1' }, 'permerror', 'rsa-sha1'], [{ a: 'dsa-sha256' }, 'permerror', 'unknown algorithm'],
      [{ h: 'subject' }, 'permerror', 'From is not signed'], [{ i: '@y.example' }, 'permerror', 'i= lies outside of d='], [{ i: '@ax.example' }, 'permerror', 'i= lies outside of d='],
      [{ c: 'nowsp/simple' }, 'permerror', 'unknown canonicalization'], [{ d: 'x..example' }, 'permerror', 'no name of a key'], [{ s: 'a b' }, 'permerror', 'no name of a key'],
      [{ s: 'none' }, 'permerror', 'no key'], [{ s: 'gone' }, 'permerror', 'key is revoked'], [{ s: 'odd' }, 'permerror', 'unusable key'], [{ s: 'slow' }, 'temperror', 'key could not be had'],
      [{ s: 'other' }, 'permerror', 'key is not for mail'], [{ s: 'sha1' }, 'permerror', 'key is not for sha256'], [{ s: 'strict', i: '@sub.x.example' }, 'permerror', 'i= is not d='], [{ s: 'strict' }, 'pass', ''],
      [{ l: '6' }, 'pass', ''], [{ l: '2' }, 'policy', 'body is signed in part'], [{ l: '60' }, 'permerror', 'body is shorter than l='],
      [{ x: '1000000000' }, 'fail', 'expired'], [{ t: '9', x: '8' }, 'permerror', 'expires before it was made'], [{ t: 'now' }, 'permerror', 'no number'], [{ D: 'x' }, 'pass', ''], [{ 'd ': 'y' }, 'permerror', 'no list of tags'],
      [{ a: 'ed25519-sha256' }, 'permerror', 'key of another kind'], [{ s: 'short' }, 'permerror', 'key is too short'], [{ s: 'pkcs1' }, 'pass', ''], [{ s: 'exponent' }, 'permerror', 'unusable key'], [{ c: 'simple' }, 'pass', ''], [{ c: 'a/b/c' }, 'permerror', 'unknown canonicalization'], [{ z: 'x'.repeat(9000) }, 'permerror', 'signature is too long'], [{ h: `from${':x'.repeat(200)}` }, 'permerror', 'too many signed fields'],
    ];
    for (const [tags, result, reason] of known) {
      const { dkim } = await check(signedBy(tags));
      assert.deepEqual(dkim.map((each) => [each.result, each.reason]), [[result, reason]], JSON.stringify(tags));
    }
  });

  test('looks at ten signatures, of what is a header, with a bounded number of fields', { timeout: 60_000 }, async (t) => {
    const { check } = await checkField(t, keysOf('x.example'));
    const good = signedBy({});
    assert.deepEqual((await check('X: y\r\n'.repeat(1990) + good)).dkim.map(({ result }) => result), ['pass']);
    assert.deepEqual((await check('X: y\r\n'.repeat(2001) + good)).dkim.map(({ reason }) => reason), ['no plain header']);
    const field = `${good.slice(0, good.indexOf('From:'))}`;
    assert.equal((await check(field.repeat(50) + PLAIN)).dkim.length, 10);
    assert.deepEqual((await check(`no field\r\n${good}`)).dkim.map(({ reason }) => reason), ['no plain header']);
    assert.deepEqual((await check(`\r\n${good}`)).dkim.map(({ reason }) => reason), ['no plain header']);
    const kinds = ['1', '2', '3', '4'].map((l) => { const one = signedBy({ l }); return one.slice(0, one.indexOf('From:')); }).join('');
    assert.deepEqual((await check(kinds + PLAIN)).dkim.map(({ result, reason }) => [result, reason]), [...Array.from({ length: 3 }, () => ['policy', 'body is signed in part']), ['permerror', 'too many kinds of body hash']]);
  });

  test('takes for blanks what RFC 6376 does, and no octet of UTF-8', { timeout: 60_000 }, async (t) => {
    const { check } = await checkField(t, keysOf('x.example'));
    for (const subject of [' \u00c3\u00a0 la carte', ' a\u000b b\u000c', ' \u0085 x', '\r\n \u00a0', '']) {
      const good = await withSignatures(`From: a@x.example\r\nSubject:${subject}\r\n\r\nbody\r\n`);
      assert.deepEqual((await check(good)).dkim.map(({ result }) => result), ['pass', 'pass'], JSON.stringify(subject));
      assert.deepEqual((await check(good.replace('\r\nSubject:', '\r\nSUBJECT:\t ')).then(({ dkim }) => dkim)).map(({ result }) => result), ['pass', 'pass']);
    }
  });

  test('is taken by surprise by no body', { timeout: 60_000 }, async (t) => {
    const { check } = await checkField(t, keysOf('x.example'));
    for (const body of ['', '\r\n', '\r\n\r\n', 'a', 'a\r\n\r\n\r\n', ' \t\r\n', `${'\t \r\n'.repeat(400_000)}x\r\n`, '\r\n'.repeat(400_000), 'x'.repeat(2_000_000)]) {
      const message = `From: a@x.example\r\n\r\n${body}`;
      assert.deepEqual((await check(await withSignatures(message))).dkim.map(({ result }) => result), ['pass', 'pass'], JSON.stringify(body.slice(0, 20)));
    }
  });
});

describe('DMARC', () => {
  const ZONE: Zone = {
    ...keysOf('x.example'), ...keysOf('sub.x.example'), ...keysOf('strict.example'), ...keysOf('sub.strict.example'), ...keysOf('y.example'),
    'TXT x.example': ['v=spf1 ip4:192.0.2.1 -all'], 'TXT sub.x.example': ['v=spf1 ip4:192.0.2.1 -all'], 'TXT sub.strict.example': ['v=spf1 ip4:192.0.2.1 -all'],
    'TXT broken.x.example': 'broken',
    'TXT _dmarc.x.example': ['v=DMARC1; p=reject; sp=quarantine'], 'TXT _dmarc.strict.example': ['v=DMARC1; p=none; adkim = S; aspf=s'], 'TXT _dmarc.broken.example': 'broken', 'TXT _dmarc.bare.example': ['v=DMARC1; p'],
    'TXT _dmarc.two.example': ['v=DMARC1; p=none', 'v=DMARC1; p=reject'],
  };
  const mail = (from: string): string => `From: ${from}\r\n\r\nbody\r\n`;

  test('passes by SPF or DKIM of its domain or, unless that is strict, of its organization', { timeout: 60_000 }, async (t) => {
    const { check } = await checkField(t, ZONE);
    const of = async (message: string, reversePath: string): Promise<readonly string[]> => {
      const { dmarc } = await check(message, { reversePath });
      return [dmarc.result, dmarc.policy, dmarc.domain];
    };
    const elsewhere = 'a@elsewhere.example';
    assert.deepEqual(await of(mail('a@x.example'), 'b@x.example'), ['pass', 'reject', 'x.example']);
    assert.deepEqual(await of(mail('A <a@X.Example>'), 'b@sub.x.example'), ['pass', 'reject', 'x.example']);
    assert.deepEqual(await of(mail('a@sub.x.example'), elsewhere), ['fail', 'quarantine', 'sub.x.example']);
    assert.deepEqual(await of(await withSignatures(mail('a@sub.x.example')), elsewhere), ['pass', 'quarantine', 'sub.x.example']);
    assert.deepEqual(await of(mail('a@x.example'), elsewhere), ['fail', 'reject', 'x.example']);
    assert.deepEqual(await of(mail('a@strict.example'), 'b@sub.strict.example'), ['fail', 'none', 'strict.example']);
    const signed = await withSignatures(mail('a@sub.strict.example'));
    assert.deepEqual(await of(signed.replace('From: a@sub.', 'From: a@'), elsewhere), ['fail', 'none', 'strict.example']);
    assert.deepEqual(await of(await withSignatures(mail('a@strict.example')), elsewhere), ['pass', 'none', 'strict.example']);
    assert.deepEqual(await of(mail('a@none.example'), elsewhere), ['none', '', 'none.example']);
    assert.deepEqual(await of(mail('a@example'), elsewhere), ['none', '', 'example']);
    assert.deepEqual(await of(mail('a@bare.example'), elsewhere), ['fail', 'none', 'bare.example']);
    assert.deepEqual(await of(mail('a@two.example'), elsewhere), ['none', '', 'two.example']);
  });

  test('is open where the record, or what would have aligned, could not be had; of nobody else', { timeout: 60_000 }, async (t) => {
    const { check } = await checkField(t, ZONE);
    assert.equal((await check(mail('a@broken.example'))).dmarc.result, 'temperror');
    assert.equal((await check(mail('a@x.example'), { reversePath: 'a@broken.x.example' })).dmarc.result, 'temperror');
  });

  test('is opened by no name server of a stranger: neither by silence', { timeout: 60_000 }, async (t) => {
    // A name that two resolvers can't tell takes all of the time.
    const { check, server } = await checkField(t, { ...ZONE, 'TXT slow._domainkey.z.example': 'silent', 'TXT slow._domainkey.x.example': 'silent', 'TXT silent.z.example': 'silent' }, { resolverCount: 2 });
    const sinceMs = performance.now();
    // The key is not needed, and not asked for.
    const altered = await check(`${signedBy({ s: 'slow' }, mail('a@x.example'))}more\r\n`, { reversePath: 'a@elsewhere.example' });
    const tookMs = performance.now() - sinceMs;
    assert.ok(tookMs < 4_000, `${tookMs} ms`);
    assert.ok(!server.asked.some((each) => each.includes('slow')));
    assert.deepEqual([altered.dkim[0]?.reason, altered.dmarc.result, altered.dmarc.policy], ['body has been altered', 'fail', 'reject']);
    const silent = await check(signedBy({ s: 'slow', d: 'z.example' }, mail('a@sub.x.example')), { reversePath: 'a@silent.z.example' });
    assert.deepEqual([silent.spf.result, silent.dkim[0]?.result, silent.dmarc.result, silent.dmarc.policy], ['temperror', 'temperror', 'fail', 'quarantine']);
  });

  test('nor by questions without end', { timeout: 60_000 }, async (t) => {
    const ten = Array.from({ length: 10 }, (_none, i) => String(i));
    const zone: Zone = {
      ...ZONE, 'TXT z.example': [`v=spf1 ${ten.map((i) => `mx:m${i}.z.example`).join(' ')} -all`],
      ...Object.fromEntries(ten.map((i) => [`MX m${i}.z.example`, ten.map((host) => `h${host}.m${i}.z.example`)])),
      ...Object.fromEntries(ten.flatMap((i) => ten.map((host) => [`A h${host}.m${i}.z.example`, ['198.51.100.9']]))),
    };
    // Lost once: so the organization is asked when the stranger has used up all.
    let askedCount = 0;
    const late = { get 'TXT _dmarc.sub.x.example'(): Zone[string] { return askedCount++ === 0 ? 'silent' : ['no record']; } };
    const { check } = await checkField(t, Object.defineProperties(zone, Object.getOwnPropertyDescriptors(late)));
    const { spf, dmarc } = await check(mail('a@sub.x.example'), { reversePath: 'a@z.example' });
    assert.deepEqual([askedCount, spf.result, dmarc.result, dmarc.policy], [2, 'permerror', 'fail', 'quarantine']);
  });

  test('is of one plain From alone', { timeout: 60_000 }, async (t) => {
    const { check } = await checkField(t, ZONE);
    for (const header of ['', 'From: a@x.example\r\nFrom: a@x.example\r\n', 'From: a@x.example, b@y.example\r\n', 'From: "a@x.example" (\r\n', 'From:\r\n']) {
      const { dmarc } = await check(`${header}To: b@x.example\r\n\r\nbody\r\n`, { reversePath: 'a@x.example' });
      assert.deepEqual(dmarc, { result: 'permerror', reason: 'no single From domain', domain: '', policy: '' }, header);
    }
  });
});

describe('the line in front of the thread', () => {
  test('says temperror within five seconds when the DNS is silent, and what it knows by then', { timeout: 60_000 }, async (t) => {
    const zone: Zone = { 'TXT x.example': ['v=spf1 ip4:192.0.2.1 -all'], 'TXT r1._domainkey.x.example': 'silent', 'TXT _dmarc.x.example': 'silent', 'TXT silent.example': 'silent' };
    const { check, metrics, memory } = await checkField(t, zone);
    await check(PLAIN, { reversePath: 'a@none.example' });
    const sinceMs = performance.now();
    const [known, nothing] = await Promise.all([
      check(signedBy({}), { reversePath: 'a@x.example' }), check(PLAIN, { reversePath: 'a@silent.example' }),
    ]);
    const ms = performance.now() - sinceMs;
    assert.ok(ms < 5_500, `${ms} ms`);
    assert.deepEqual([known.spf.result, known.dkim[0]?.result, known.dmarc.result], ['pass', 'temperror', 'temperror']);
    assert.deepEqual([nothing.spf.result, nothing.dkim[0]?.result], ['temperror', 'none']);
    assert.equal(memory.bytes, 0);
    assert.equal(metrics.seconds.count, 3);
  });

  test('checks many at once, and none without memory', { timeout: 60_000 }, async (t) => {
    // Time is no part of this: 150 of them on a busy machine may take longer than mail may wait for one.
    const limits = { memoryMax: 1_000_000, checkMs: 55_000 };
    const field = await checkField(t, { ...keysOf('x.example'), 'TXT x.example': ['v=spf1 ip4:192.0.2.0/24 -all'] }, limits);
    const message = await withSignatures(PLAIN);
    const all = await Promise.all(Array.from({ length: 150 }, (_none, i) => field.check(message, { client: `192.0.2.${String(i % 5)}` })));
    assert.ok(all.every(({ spf, dkim }) => spf.result === 'pass' && dkim.every(({ result }) => result === 'pass')));
    assert.equal(field.memory.bytes, 0);
    const refused = await field.check(`${PLAIN}${'x'.repeat(1_000_000)}\r\n`);
    assert.deepEqual([refused.spf.result, refused.dkim[0]?.reason], ['temperror', 'no memory']);
    const closing = field.check(message);
    field.line.close();
    assert.equal((await closing).spf.result, 'temperror');
    assert.equal((await field.check(message)).spf.result, 'temperror');
    assert.equal(field.memory.bytes, 0);
  });

  test('has places for all clients, whatever one of them fills it with', { timeout: 60_000 }, async (t) => {
    const { check } = await checkField(t, { 'TXT x.example': ['v=spf1 ip4:192.0.2.1 -all'], 'TXT silent.example': 'silent' }, { resolverCount: 2 });
    await check(PLAIN);
    const flood = Array.from({ length: 200 }, (_none, i) => check(PLAIN, { client: `2001:db8:0:1::${i.toString(16)}`, reversePath: 'a@silent.example' }));
    const sinceMs = performance.now();
    assert.equal((await check(PLAIN)).spf.result, 'pass');
    assert.equal((await check(PLAIN, { client: '2001:db8:0:2::1' })).spf.result, 'fail');
    const tookMs = performance.now() - sinceMs;
    assert.ok(tookMs < 2_000, `${tookMs} ms`);
    const all = await Promise.all(flood);
    assert.ok(all.every(({ spf }) => spf.result === 'temperror'));
    assert.equal(all.filter(({ dmarc }) => dmarc.reason === 'too many messages of its client').length, 150);
    assert.equal((await check(PLAIN, { client: '2001:db8:0:1::1' })).spf.result, 'fail');
  });

  test('takes those whom a proxy did not tell for as many clients', { timeout: 60_000 }, async (t) => {
    const { check } = await checkField(t, { 'TXT x.example': ['v=spf1 ip4:192.0.2.1 -all'] });
    const all = await Promise.all(Array.from({ length: 60 }, (_none, i) => check(PLAIN, { client: '', queueId: `id${String(i)}` })));
    assert.deepEqual(all.filter(({ dmarc }) => dmarc.reason === 'too many messages of its client'), []);
  });

  /** A thread whose body is the test's own; `port` is where it is talked to. */
  const threadOf = (t: { after(run: () => void): void }, text: string): URL => {
    const folder = mkdtempSync(join(tmpdir(), 'twinpost-thread-'));
    t.after(() => { rmSync(folder, { recursive: true }); });
    const file = join(folder, 'entry.mjs');
    writeFileSync(file, `import { workerData } from 'node:worker_threads';\nconst { port } = workerData;\n${text}`);
    return pathToFileURL(file);
  };

  test('ends a thread that loops, and starts another one', { timeout: 60_000 }, async (t) => {
    const entry = threadOf(t, "port.on('message', ({ kind }) => { if (kind === 'check') for (;;); });\nport.postMessage({ kind: 'ready' });");
    const { check, memory, told } = await checkField(t, {}, { entry });
    const sinceMs = performance.now();
    const late = await Promise.all([check(PLAIN), check(PLAIN)]);
    const ms = performance.now() - sinceMs;
    assert.ok(ms > 4_900 && ms < 7_000, `${ms} ms`);
    assert.deepEqual(late.map(({ dmarc }) => dmarc.reason), ['not in time', 'not in time']);
    // It has the one that comes now too, until it is found to loop.
    assert.equal((await check(PLAIN)).dmarc.reason, 'the check has failed');
    assert.ok(performance.now() - sinceMs < 8_500);
    assert.deepEqual([memory.bytes, told], [0, ['authentication: it does not answer']]);
  });

  test('goes on with few messages in one turn, however many are late at once', { timeout: 60_000 }, async (t) => {
    const entry = threadOf(t, "port.on('message', () => undefined);\nport.postMessage({ kind: 'ready' });");
    const { line } = await checkField(t, {}, { entry, checkMs: 200 });
    let turn = 0;
    const ofTurns: number[] = [];
    await new Promise<void>((resolve) => {
      for (let i = 0; i < 40; i++) {
        line.check(judged({ client: `192.0.2.${String(i)}`, helo: '', reversePath: '' }), [Buffer.from(PLAIN)], () => {
          ofTurns.push(turn);
          for (const sinceMs = performance.now(); performance.now() - sinceMs < 3;);
          if (ofTurns.length === 40) resolve();
        });
      }
      const count = (): void => {
        turn++;
        if (ofTurns.length < 40) setImmediate(count);
      };
      count();
    });
    const most = Math.max(...ofTurns.map((each) => ofTurns.filter((other) => other === each).length));
    assert.ok(most <= 4, `${String(most)} in one turn`);
  });

  test('goes on when a thread ends by itself', { timeout: 60_000 }, async (t) => {
    const entry = threadOf(t, "port.on('message', ({ kind }) => { if (kind === 'check') throw new Error('no luck'); });\nport.postMessage({ kind: 'ready' });");
    const { check, memory, told } = await checkField(t, {}, { entry });
    for (let count = 0; count < 3; count++) assert.equal((await check(PLAIN)).dmarc.reason, 'the check has failed');
    assert.deepEqual([memory.bytes, told], [0, ['authentication: no luck']]);
  });

  test('lets no mail wait for a thread that never loads', { timeout: 60_000 }, async (t) => {
    const { check, memory } = await checkField(t, {}, { entry: threadOf(t, "throw new Error('it is broken');") });
    const sinceMs = performance.now();
    for (let count = 0; count < 20; count++) assert.equal((await check(PLAIN)).spf.result, 'temperror');
    assert.ok(performance.now() - sinceMs < 4_000);
    assert.equal(memory.bytes, 0);
  });
});
