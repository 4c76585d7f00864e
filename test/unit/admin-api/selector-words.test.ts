/** Selectors in the words of the command line. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { selectorWords } from '../../../src/admin-api/selector-words.js';

test('a selector reads as it would be typed; of many ids the first do', () => {
  assert.equal(selectorWords({ everything: true }), '--everything');
  assert.equal(selectorWords({ sender: '' }), "--sender '<>'");
  assert.equal(
    selectorWords({ domain: 'a.example', recipient: 'b@*', sender: 'c', client: '192.0.2.0/24', queue: 'q', queue_class: 'mail', reply: '4.7', older_than_seconds: 7200, newer_than_seconds: 9, larger_than_bytes: 2048 }),
    '--domain a.example --rcpt b@* --sender c --client 192.0.2.0/24 --queue q --class mail --reply 4.7 --older-than 2h --newer-than 9s --larger-than 2KiB',
  );
  assert.equal(selectorWords({ ids: ['a', 'b', 'c', 'd', 'e'] }), '--id a --id b --id c and 2 more');
});
