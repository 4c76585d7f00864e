import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forAnySpelling } from '../../../src/gateway/any-domain.js';
import { createRouter } from '../../../src/gateway/queue/router.js';
import { toAscii } from '../../../src/platform/node/idna.js';
import type { RouteOptions } from '../../../src/gateway/queue/router.js';

function routeTo(name: string): RouteOptions {
  return { domains: [name], name, nextHop: { protocol: 'smtp', host: '127.0.0.1', port: 25 }, ordering: 'fifo', concurrency: 1, lengthMax: 10 };
}

test('a report finds the route of its domain however the sender spelt that', () => {
  const router = forAnySpelling(createRouter([routeTo('xn--bcher-kva.example'), routeTo('plain.example')]), toAscii);
  for (const domain of ['xn--bcher-kva.example', 'bücher.example', 'BÜCHER.Example', 'bu\u0308cher.example']) {
    assert.equal(router.route(domain, 'bounce')?.queueName, 'xn--bcher-kva.example', domain);
  }
  assert.equal(router.route('Plain.example', 'bounce')?.queueName, 'plain.example');
  assert.equal(router.route('other.example', 'bounce'), undefined);
  assert.equal(router.routeOfQueue('plain.example', 'mail')?.queueName, 'plain.example');
});

test('what is no domain goes where all others go', () => {
  const router = forAnySpelling(createRouter([routeTo('*')]), toAscii);
  for (const domain of ['', 'a b', '\u0000', '[192.0.2.1]', 'other.example']) assert.equal(router.route(domain, 'bounce')?.queueName, '*');
});
