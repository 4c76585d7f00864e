/** Exim in front: it submits to Twinpost within STARTTLS, by PIPELINING and CHUNKING. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { bouncesOneOfThree, defersWhileFull, failsTooLarge, keepsWithoutPassword, refusesTheCertificate, relaysAll, withFront } from '../front-story.js';
import { startExim } from './exim.js';

const bound = { timeout: 180_000 };

test('everything that Exim submits arrives once and unaltered, by TLS and BDAT', bound, () =>
  withFront({ start: startExim }, async (story) => {
    await relaysAll(story);
    const deliveries = story.front.log().split('\n').filter((line) => line.includes(' => ') && line.includes('T=gateway'));
    assert.ok(deliveries.length === 300);
    // Certificate checked, chunks by BDAT (RFC 3030), commands pipelined (RFC 2920).
    for (const line of deliveries) assert.match(line, / X=TLS1\.3:\S+ CV=yes .* L.* K /);
  }));

test('Exim reports what the gateway refuses for good, and that alone', bound, () =>
  withFront({ start: startExim }, async (story) => {
    await bouncesOneOfThree(story);
    // By SIZE= in MAIL (RFC 1870).
    await failsTooLarge(story, /\*\* large@a\.example .* 552 5\.3\.4 /);
  }));

test('Exim keeps what the gateway refuses for now, and delivers it', bound, () =>
  withFront({ start: startExim }, (story) => defersWhileFull(story)));

test('Exim gives nothing to a gateway whose certificate it can not check', bound, () =>
  withFront({ start: startExim, isTrusted: false }, (story) => refusesTheCertificate(story, /TLS session: \(certificate verification failed\)/)));

for (const tls of ['starttls', 'implicit'] as const) {
  test(`everything that Exim submits as a user arrives once and unaltered, by TLS: ${tls}`, bound, () =>
    withFront({ start: startExim, submits: tls }, async (story) => {
      await relaysAll(story);
      for (const line of story.front.log().split('\n').filter((each) => each.includes('T=gateway'))) assert.match(line, / CV=yes .* A=plain /);
    }));
}

test('Exim keeps what it may not submit for its wrong password', bound, () =>
  withFront({ start: startExim, submits: 'starttls', password: 'guessed' }, (story) => keepsWithoutPassword(story, /535 5\.7\.8/)));
