/** What a domain says by MTA-STS: records, policies, and the hosts that one leaves. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { DnsAnswer } from '../../../../../src/platform/resolver.js';
import { isNamedBy, readPolicy, stsId, stsRecordFault, underPolicy } from '../../../../../src/gateway/outbound/pure/sts-policy.js';
import type { StsPolicy } from '../../../../../src/gateway/outbound/pure/sts-policy.js';

function found(...records: readonly string[]): DnsAnswer<'TXT'> {
  return { kind: 'found', records, isAuthentic: false };
}

describe('the record of a domain', () => {
  for (const [what, answer, id] of [
    ['of the RFC', found('v=STSv1; id=20160831085700Z;'), '20160831085700Z'],
    ['without a last semicolon, spaces about', found('v=STSv1 ;\tid = a1 ; more=x'), 'a1'],
    ['beside other records', found('spf-like', 'v=STSv1; id=1', 'v=STSv12; id=2'), '1'],
    ['that stands twice', found('v=STSv1; id=1', 'v=STSv1; id=1'), ''],
    ['that does not begin with its version', found('id=1; v=STSv1;'), ''],
    ['of a version in other letters', found('v=stsv1; id=1'), ''],
    ['without an id', found('v=STSv1;'), ''],
    ['with an id of other characters', found('v=STSv1; id=a-b'), ''],
    ['with an id of 33 characters', found(`v=STSv1; id=${'a'.repeat(33)}`), ''],
    ['with an id of 32 characters', found(`v=STSv1; id=${'a'.repeat(32)}`), 'a'.repeat(32)],
    ['that is none', { kind: 'no-name', isAuthentic: false }, ''],
    ['that nobody could ask for', { kind: 'failed', why: 'silence' }, undefined],
  ] as const) {
    test(what, () => { assert.equal(stsId(answer), id); });
  }
});

test('what is wrong with a record that says something of a policy is told', () => {
  const fault = (...records: readonly string[]): string => stsRecordFault('a.example', { kind: 'found', records, isAuthentic: false });
  assert.deepEqual([fault('v=STSv1; id=1'), fault('v=spf1 -all'), fault()], ['', '', '']);
  assert.equal(fault('v=STSv1; id=1', 'v=STSv1; id=2', 'v=spf1 -all'), '_mta-sts.a.example has 2 records of it: none of them counts');
  assert.equal(fault('v=STSv1; id=a-b'), 'the record at _mta-sts.a.example has no id of 1 to 32 letters and digits');
  assert.equal(fault('V=stsv1 id=1'), 'the record at _mta-sts.a.example does not begin with "v=STSv1;"');
  assert.equal(stsRecordFault('a.example', { kind: 'failed', why: 'silence' }), '');
});

describe('the text of a policy', () => {
  const HEAD = 'version: STSv1\nmode: enforce\nmax_age: 604800\n';
  for (const [what, text, read] of [
    ['of the RFC', 'version: STSv1\r\nmode: enforce\r\nmx: mail.example.com\r\nmx: *.example.net\r\nmx: backupmx.example.com\r\nmax_age: 604800\r\n', { mode: 'enforce', mx: ['mail.example.com', '*.example.net', 'backupmx.example.com'], maxAgeS: 604800 }],
    ['with LF, no last end, unknown keys, an empty line', 'mode:testing\n\nx-other: a:b\nmx:MX.Example.com \nmax_age:0\nversion:STSv1', { mode: 'testing', mx: ['mx.example.com'], maxAgeS: 0 }],
    ['with keys twice: the first counts', `${HEAD}mx: a.example\nmode: none\nmax_age: 1\nversion: STSv2\n`, { mode: 'enforce', mx: ['a.example'], maxAgeS: 604800 }],
    ['that ends another, without mx', 'version: STSv1\nmode: none\nmax_age: 86400\n', { mode: 'none', mx: [], maxAgeS: 86400 }],
    ['that ends another, with mx, which mean nothing', `version: STSv1\nmode: none\nmax_age: 86400\n${'mx: a.example\n'.repeat(4000)}mx: *\n`, { mode: 'none', mx: [], maxAgeS: 86400 }],
    ['with a hundred mx', HEAD + 'mx: a.example\n'.repeat(100), { mode: 'enforce', mx: Array<string>(100).fill('a.example'), maxAgeS: 604800 }],
    ['with more mx', HEAD + 'mx: a.example\n'.repeat(101), { wrong: 'it names too many mx' }],
    ['with more than 4 KiB of mx', `${HEAD}${`mx: ${'a.'.repeat(100)}example\n`.repeat(20)}`, { wrong: 'it names too many mx' }],
    ['for longer than a year', 'version: STSv1\nmode: none\nmax_age: 9999999999\n', { mode: 'none', mx: [], maxAgeS: 31_557_600 }],
    ['of another version', HEAD.replace('STSv1', 'STSv2'), { wrong: 'its version is not STSv1' }],
    ['in HTML', '<html>\n<body>hello</body></html>', { wrong: 'a line of it has no colon' }],
    ['empty', '', { wrong: 'its version is not STSv1' }],
    ['of another mode', HEAD.replace('enforce', 'report'), { wrong: 'its mode is none of enforce, testing, none' }],
    ['without a mode', HEAD.replace('mode: enforce', 'x: y'), { wrong: 'it has no mode' }],
    ['of an odd age', HEAD.replace('604800', '1d'), { wrong: 'its max_age is no number of seconds' }],
    ['without an age', HEAD.replace('max_age: 604800', 'x: y'), { wrong: 'it has no max_age' }],
    ['that enforces nothing', HEAD, { wrong: 'it names no mx' }],
    ['with a wildcard in the middle', `${HEAD}mx: a.*.example\n`, { wrong: 'an mx of it is no name of a host' }],
    ['with a wildcard alone', `${HEAD}mx: *.\n`, { wrong: 'an mx of it is no name of a host' }],
    ['with a control character', `${HEAD}mx: a\u0007.example\n`, { wrong: 'an mx of it is no name of a host' }],
  ] as const) {
    test(what, () => { assert.deepEqual(readPolicy(text), read); });
  }
});

describe('a policy', () => {
  const policy: StsPolicy = { mode: 'enforce', mx: ['mail.example.com', '*.example.net'], maxAgeS: 1 };
  for (const [host, isNamed] of [
    ['mail.example.com', true], ['a.mail.example.com', false], ['example.com', false],
    ['a.example.net', true], ['a.b.example.net', false], ['example.net', false], ['.example.net', false], ['aexample.net', false],
  ] as const) {
    test(`${isNamed ? 'names' : 'does not name'} ${host}`, () => { assert.equal(isNamedBy(policy, host), isNamed); });
  }

  const hosts = [{ name: 'mail.example.com', preference: 1 }, { name: 'other.example', preference: 2 }];
  test('that is enforced leaves the hosts that it names; with a proved way others wait for TLSA records', () => {
    assert.deepEqual(underPolicy({ hosts, isAuthentic: false }, policy, 'd.example'), { hosts: hosts.slice(0, 1), isAuthentic: false, sts: 'enforce' });
    assert.deepEqual(underPolicy({ hosts, isAuthentic: true }, policy, 'd.example'), { hosts: [hosts[0], { ...hosts[1], isUnnamed: true }], isAuthentic: true, sts: 'enforce' });
  });

  test('that is enforced and names no host there is defers, whatever was known before', () => {
    const why = { status: 2, code: 0, enhanced: '4.7.5', text: 'the MTA-STS policy of d.example names none of its MX hosts' };
    assert.deepEqual(underPolicy({ hosts: hosts.slice(1), isAuthentic: false }, policy, 'd.example'), { why, isVerdict: true });
  });

  test('that is not enforced, or ended, or not there leaves all of them', () => {
    const way = { hosts, isAuthentic: false };
    assert.deepEqual(underPolicy(way, { ...policy, mode: 'testing' }, 'd.example'), { ...way, sts: 'testing' });
    assert.deepEqual([underPolicy(way, { ...policy, mode: 'none' }, 'd.example'), underPolicy(way, undefined, 'd.example')], [way, way]);
  });
});
