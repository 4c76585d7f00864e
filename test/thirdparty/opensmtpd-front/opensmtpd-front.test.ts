/** OpenSMTPD in front: it submits to Twinpost within STARTTLS. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { bouncesOneOfThree, defersWhileFull, failsTooLarge, keepsWithoutPassword, refusesTheCertificate, relaysAll, withFront } from '../front-story.js';
import { startOpensmtpd } from './opensmtpd.js';

const bound = { timeout: 180_000 };

test('everything that OpenSMTPD submits arrives once and unaltered, by TLS', bound, () =>
  withFront({ start: startOpensmtpd }, async (story) => {
    await relaysAll(story);
    assert.match(story.front.log(), /server-cert-check result="success"/);
    assert.doesNotMatch(story.front.log(), /server-cert-check result="failure"/);
  }));

test('OpenSMTPD reports what the gateway refuses for good, and that alone', bound, () =>
  withFront({ start: startOpensmtpd }, async (story) => {
    await bouncesOneOfThree(story);
    // It believes SIZE of EHLO (RFC 1870), and asks no further.
    await failsTooLarge(story, /to=<large@a\.example> .*result="PermFail" stat="message too large for peer"/);
  }));

test('OpenSMTPD keeps what the gateway refuses for now, and delivers it', bound, () =>
  withFront({ start: startOpensmtpd }, (story) => defersWhileFull(story)));

test('OpenSMTPD gives nothing to a gateway whose certificate it can not check', bound, () =>
  withFront({ start: startOpensmtpd, isTrusted: false }, (story) => refusesTheCertificate(story, /mta error reason=SSL certificate check failed/)));

for (const tls of ['starttls', 'implicit'] as const) {
  test(`everything that OpenSMTPD submits as a user arrives once and unaltered, by TLS: ${tls}`, bound, () =>
    withFront({ start: startOpensmtpd, submits: tls }, async (story) => {
      await relaysAll(story);
      assert.match(story.front.log(), /server-cert-check result="success"/);
      assert.doesNotMatch(story.front.log(), /server-cert-check result="failure"/);
    }));
}

test('OpenSMTPD keeps what it may not submit for its wrong password', bound, () =>
  withFront({ start: startOpensmtpd, submits: 'starttls', password: 'guessed' }, (story) => keepsWithoutPassword(story, /535 5\.7\.8/)));
