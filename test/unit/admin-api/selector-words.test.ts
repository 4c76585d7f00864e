/** Selectors in the words of the command line. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { selector } from '../../../src/admin-api/queue-orders.js';
import type { Selector } from '../../../src/admin-api/queue-orders.js';
import { selectorWords } from '../../../src/admin-api/selector-words.js';

test('a selector reads as it would be typed; of many ids the first do', () => {
  assert.equal(selectorWords({ everything: true }), '--everything');
  assert.equal(selectorWords({ sender: '' }), "--sender '<>'");
  const all: Required<Selector> = {
    domain: 'a.example', recipient: 'b@*', sender: 'c', client: '192.0.2.0/24', queue: 'q', route: 'r', site: 's', queue_class: 'mail', reply: '4.7',
    older_than_seconds: 7200, newer_than_seconds: 9, larger_than_bytes: 2048, ids: ['x'], everything: true,
  };
  assert.deepEqual(Object.keys(all).sort(), Object.keys(selector.shape).sort(), 'each key');
  assert.equal(
    selectorWords(all),
    '--domain a.example --rcpt b@* --sender c --client 192.0.2.0/24 --queue q --route r --site s --class mail --reply 4.7 --older-than 2h --newer-than 9s --larger-than 2KiB --id x --everything',
  );
  assert.equal(selectorWords({ queue: 'q' }, { route: 'smarthost' }), '--queue q by route smarthost');
  assert.equal(selectorWords({ ids: ['a', 'b', 'c', 'd', 'e'] }), '--id a --id b --id c and 2 more');
});
