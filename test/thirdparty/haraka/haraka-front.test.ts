/** Haraka in front: it submits to Twinpost within STARTTLS, from its queue on disk. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  bouncesOneOfThree, defersWhileFull, failsTooLarge, keepsWithoutPassword, refusesTheCertificate, relaysAll, withFront, type Front, type FrontOptions,
} from '../front-story.js';
import { startHaraka } from './haraka.js';

const bound = { timeout: 180_000 };

async function startFront({ gatewayPort, caFile, login }: FrontOptions, concurrency = 10): Promise<Front> {
  const haraka = await startHaraka({ nextHopPort: gatewayPort, queue: 'outbound', concurrency, secure: { name: 'gateway.test', caFile, login } });
  return { ...haraka, retryNow: () => Promise.resolve() };
}

test('everything that Haraka submits as a user arrives once and unaltered, by TLS', bound, () =>
  withFront({ start: startFront, submits: 'starttls' }, async (story) => {
    await relaysAll(story);
    assert.match(story.front.log(), /secured.* verified=true/);
    assert.doesNotMatch(story.front.log(), /secured.* verified=false/);
  }));

test('Haraka submits nothing with a wrong password', bound, () =>
  withFront({ start: startFront, submits: 'starttls', password: 'guessed' }, (story) => keepsWithoutPassword(story, /bouncing mail: 535 5\.7\.8/)));

test('Haraka reports what the gateway refuses for good, and that alone', bound, () =>
  withFront({ start: startFront }, async (story) => {
    // Its report leaves out what it was answered.
    await bouncesOneOfThree(story, /Some recipients failed: <carol@relayed\.example>/);
    assert.match(story.front.log(), /recipient <carol@relayed\.example> rejected: 550 5\.1\.1/);
    // It reads no SIZE, and sends all: the gateway refuses what has come.
    await failsTooLarge(story, /552 5\.3\.4/);
  }));

test('Haraka keeps what the gateway refuses for now, and delivers it', bound, () =>
  // One delivery at a time: those that are begun together pass the limit together.
  withFront({ start: (options) => startFront(options, 1) }, (story) => defersWhileFull(story)));

test('Haraka gives nothing to a gateway whose certificate it can not check', bound, () =>
  withFront({ start: startFront, isTrusted: false }, (story) => refusesTheCertificate(story, /unable to verify the first certificate|self-signed certificate/)));
