import { test } from 'node:test';
import assert from 'node:assert/strict';
import { touchPages } from '../../../../src/platform/node/fresh-pages.js';

test('memory that was touched is as it was: zero, all of it, and nothing beside it', async () => {
  const buffer = new Uint8Array(4 * 1024 * 1024 + 2);
  buffer[0] = 7;
  buffer[buffer.length - 1] = 9;
  let isInCall = true;
  await new Promise<void>((resolve) => {
    touchPages(buffer.subarray(1, -1), () => {
      assert.equal(isInCall, false, 'it comes in a later turn');
      resolve();
    });
    isInCall = false;
  });
  assert.deepEqual([buffer[0], buffer[buffer.length - 1]], [7, 9]);
  assert.ok(buffer.subarray(1, -1).every((byte) => byte === 0));
});

test('its pages are there by then', async () => {
  const bytes = 64 * 1024 * 1024;
  const buffer = new Uint8Array(bytes);
  const before = process.memoryUsage.rss();
  await new Promise<void>((resolve) => { touchPages(buffer, resolve); });
  assert.ok(process.memoryUsage.rss() - before > bytes * 0.8);
});
