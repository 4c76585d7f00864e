/**
 * The real TouchPages (base/segment-runs.ts): a thread of libuv's pool reads zeroes from the system into
 * memory that is zero. By that each of its pages is there when the thread of the event loop writes to it. No
 * thread of our own: one that runs JavaScript takes longer to start than a recovery has.
 *
 * A system without that file makes the pages as they are used, as ever.
 */
import { closeSync, openSync, read } from 'node:fs';
import type { TouchPages } from '../../base/segment-runs.js';

const ZEROES = '/dev/zero';

export const touchPages: TouchPages = (bytes, done) => {
  let zeroes: number;
  try {
    zeroes = openSync(ZEROES, 'r');
  } catch {
    setImmediate(done);
    return;
  }
  // A short read leaves the rest as it was, which does no harm.
  read(zeroes, bytes, 0, bytes.length, null, () => {
    closeSync(zeroes);
    done();
  });
};
