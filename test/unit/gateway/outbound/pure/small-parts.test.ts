import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Stage, Trouble, classifyReply, classifyTrouble, isPasswordRefused, isTlsTrouble } from '../../../../../src/gateway/outbound/pure/classify.js';
import { TEXT_CHARACTERS_MAX } from '../../../../../src/smtp/reply-reader.js';
import { RETRY_DEFAULTS } from '../../../../default-options.js';
import { RetrySchedule } from '../../../../../src/gateway/outbound/pure/retry-schedule.js';
import { whyNotPublic } from '../../../../../src/gateway/outbound/pure/public-address.js';
import { siteKey, wayByMx } from '../../../../../src/gateway/outbound/pure/mail-exchangers.js';
import { ownNames } from '../../../../../src/gateway/outbound/pure/source-choice.js';
import { DEFERRED, DELIVERED, FAILED } from '../../../../../src/gateway/mail-types.js';

test('an address that no host of the Internet has is none to connect to, however it is written', () => {
  for (const address of ['192.0.3.1', '2a00:1450::1', '2606:4700::1']) assert.equal(whyNotPublic(address), '', address);
  for (const address of [
    '127.0.0.1', '10.0.0.1', '::1', '::', '::7f00:1', '::127.0.0.1', '::a00:1', '::ffff:10.0.0.1', '64:ff9b::7f00:1', '64:ff9b:1::a00:1', '2002:7f00:1::',
    '2001::1', 'fe80::1', 'fc00::1', 'fec0::1', '100::1', '400::1', '4000::1', '5f00::1', 'e000::1', '2001:db8::1', 'ff02::1', 'x',
  ]) assert.notEqual(whyNotPublic(address), '', address);
});

test('of more hosts than 32 those that a domain prefers least are left out', () => {
  const records = Array.from({ length: 100 }, (_, i) => ({ preference: 100 - i, exchange: `mx${i}.a.example` }));
  const way = wayByMx('a.example', { kind: 'found', isAuthentic: false, records }, () => false);
  assert.ok(way !== undefined && 'hosts' in way);
  assert.deepEqual(way.hosts.map(({ preference }) => preference), Array.from({ length: 32 }, (_, i) => i + 1));
});

test('domains share connections when they have the same hosts, in any order: not where a policy of one does not name a host', () => {
  const [one, two] = [{ name: 'a.example', preference: 10 }, { name: 'b.example', preference: 20 }];
  assert.equal(siteKey([one, two]), siteKey([two, one]));
  for (const others of [[one], [one, { ...two, preference: 10 }], [one, { ...two, isUnnamed: true }]]) assert.notEqual(siteKey(others), siteKey([one, two]));
});

test('a host goes by its own name and by those of its sources', () => {
  const sources = [{ address: '192.0.2.1', name: 'Mail1.example' }, { address: '192.0.2.2', name: 'gw.example' }];
  assert.deepEqual(ownNames('GW.example', sources), ['gw.example', 'mail1.example']);
});

describe('classify', () => {
  const rows: [Stage, string, number, string][] = [
    [Stage.FINAL, '250 2.0.0 ok', DELIVERED, '2.0.0'],
    [Stage.FINAL, '250 ok', DELIVERED, '2.0.0'],
    [Stage.FINAL, '252 2.1.5', DELIVERED, '2.1.5'],
    [Stage.RCPT, '550 5.1.1 no', FAILED, '5.1.1'],
    [Stage.RCPT, '550 no', FAILED, '5.2.0'],
    [Stage.RCPT, '551 moved', FAILED, '5.1.6'],
    [Stage.RCPT, '552 too many', DEFERRED, '4.5.3'],
    [Stage.RCPT, '552 5.2.2 full', DEFERRED, '4.2.2'],
    [Stage.RCPT, '452 too many', DEFERRED, '4.5.3'],
    [Stage.FINAL, '552 too big', FAILED, '5.2.2'],
    [Stage.FINAL, '452 no room', DEFERRED, '4.3.1'],
    [Stage.MAIL, '550 5.7.1 no', FAILED, '5.7.1'],
    [Stage.DATA, '421 bye', DEFERRED, '4.3.2'],
    [Stage.DATA, '599 what', FAILED, '5.0.0'],
    [Stage.GREETING, '554 no', DEFERRED, '4.0.0'],
    [Stage.GREETING, '521 never', FAILED, '5.3.2'],
    [Stage.HELLO, '550 5.7.1 who are you', DEFERRED, '4.7.1'],
    [Stage.RCPT, '450 4.2.1', DEFERRED, '4.2.1'],
    [Stage.RCPT, '450 2.1.5 of another class', DEFERRED, '4.1.5'],
    [Stage.RCPT, '550 5.1.1x no code', FAILED, '5.2.0'],
    [Stage.RCPT, '550 5.1234.1 no code', FAILED, '5.2.0'],
    [Stage.RCPT, '550 192.0.2.1 no code', FAILED, '5.2.0'],
    [Stage.FINAL, '354 out of place', DEFERRED, '4.5.0'],
  ];
  for (const [stage, text, status, enhanced] of rows) {
    test(`stage ${stage}: ${text}`, () => {
      const code = Number(text.slice(0, 3));
      assert.deepEqual(classifyReply(stage, code, text), { status, code, enhanced, text });
    });
  }
  test('every reply code at every stage has a meaning of the class of its enhanced code', () => {
    for (const stage of Object.values(Stage)) {
      for (let code = 200; code < 600; code++) {
        const result = classifyReply(stage, code, `${code} x`);
        assert.equal(result.enhanced[0], result.status === DELIVERED ? '2' : result.status === DEFERRED ? '4' : '5');
        if (result.status === DELIVERED) assert.ok(stage === Stage.FINAL && code < 300);
      }
    }
  });
  test('troubles of the way are deferrals, those of the message failures, text bounded', () => {
    const failures: number[] = [Trouble.SIZE, Trouble.UTF8, Trouble.ADDRESS, Trouble.EIGHT_BIT, Trouble.REQUIRETLS_ABSENT, Trouble.TLS_NEEDED];
    for (const trouble of Object.values(Trouble)) {
      const result = classifyTrouble(trouble, 'x'.repeat(1000));
      assert.equal(result.status, failures.includes(trouble) ? FAILED : DEFERRED);
      assert.equal(result.text.length, TEXT_CHARACTERS_MAX);
    }
  });
  test('what a peer says is no trouble of our own TLS, nor of our password, by its code alone', () => {
    for (const [enhanced, isTls, isPassword] of [['4.7.4', true, false], ['4.7.5', true, false], ['4.7.8', false, true]] as const) {
      const said = classifyReply(Stage.GREETING, 450, `450 ${enhanced} x`);
      assert.deepEqual([said.enhanced, isTlsTrouble(said), isPasswordRefused(said)], [enhanced, false, false]);
      const own = { ...said, code: 0 };
      assert.deepEqual([isTlsTrouble(own), isPasswordRefused(own)], [isTls, isPassword], enhanced);
    }
  });
});

describe('retry schedule', () => {
  test('grows from 5 minutes to an hour and stays there', () => {
    const schedule = new RetrySchedule(RETRY_DEFAULTS, { random: () => 0.5 });
    assert.deepEqual([1, 2, 3, 4, 5, 6, 1000].map((attempts) => schedule.delayMs(attempts) / 60_000), [5, 10, 20, 40, 60, 60, 60]);
  });
  test('jitter spreads delays by a fifth to either side', () => {
    assert.equal(new RetrySchedule(RETRY_DEFAULTS, { random: () => 0 }).delayMs(1), 240_000);
    const latest = new RetrySchedule(RETRY_DEFAULTS, { random: () => 0.999999 });
    assert.equal(latest.delayMs(1), 360_000);
    assert.ok(latest.longestMs - latest.delayMs(1000) >= 0 && latest.longestMs - latest.delayMs(1000) < 10);
  });
});
