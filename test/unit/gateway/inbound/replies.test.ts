/** Replies as a whole: what RFC 3463 and RFC 2034 ask of every one of them. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as replies from '../../../../src/gateway/inbound/session/replies.js';

/** RFC 2034 3: none to EHLO and HELO, none to what is intermediate. */
const WITHOUT: readonly string[] = ['HELLO_SYNTAX', 'HELLO_TOO_LONG', 'START_CONTENT'];

describe('enhanced codes', () => {
  test('have the class of their reply', () => {
    let count = 0;
    for (const [name, effect] of Object.entries(replies)) {
      if (typeof effect !== 'object' || !('reply' in effect) || effect.reply === '') continue;
      const [, code = '', enhanced = ''] = /^(\d{3}) (?:(\d\.\d{1,3}\.\d{1,3}) )?\S/.exec(effect.reply) ?? [];
      assert.match(code, /^[2-5]\d\d$/, name);
      assert.match(effect.reply, /^[\x20-\x7e]{1,510}$/, name);
      if (WITHOUT.includes(name)) assert.equal(enhanced, '', name);
      else assert.equal(enhanced.charAt(0), code.charAt(0), `${name}: ${effect.reply}`);
      count++;
    }
    assert.ok(count > 80);
  });
});
