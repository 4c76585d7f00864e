/**
 * CPU of the CRC-32 of long inputs: zlib's, and ours by folding (src/platform/node/crc-fold.ts), of bytes that are copied
 * in for it and of bytes that lie in a buffer lent by it; in turns, each checked against the others.
 *
 *   node dist/bench/micro/checksum.js [milliseconds] [rounds]
 *
 * Prints a line for each size: µs of CPU (user + system) a checksum, the median of the rounds and their range. What
 * came of it stands in docs/PERFORMANCE.md, "What keeps it fast".
 */
import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

import { Folding } from '../../src/platform/node/crc-fold.js';
import { median, rounded } from '../machine.js';

const SIZES_KB = [4, 8, 16, 64, 150];
/** Between two looks at the clock. */
const AT_ONCE = 64;

const [milliseconds = 200, rounds = 5] = process.argv.slice(2).map(Number);

/** µs of CPU for one checksum. */
function cost(checksum: (bytes: Uint8Array) => number, bytes: Uint8Array): number {
  const before = process.cpuUsage();
  const endMs = performance.now() + milliseconds;
  let count = 0;
  for (; performance.now() < endMs; count += AT_ONCE) for (let i = 0; i < AT_ONCE; i++) checksum(bytes);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}

function text(values: readonly number[]): string {
  return `${String(rounded(median(values), 2))} (${String(rounded(Math.min(...values), 2))}-${String(rounded(Math.max(...values), 2))})`;
}

const folding = Folding.make();
const lent = folding?.lend(Math.max(...SIZES_KB) * 1024);
if (folding === undefined || lent === undefined) throw new Error('this process may not have WebAssembly: zlib alone is used');
for (const size of SIZES_KB) {
  const bytes = randomBytes(size * 1024);
  const here = lent.subarray(0, bytes.length);
  here.set(bytes);
  const wanted = crc32(bytes);
  if (folding.crc32(bytes, 0) !== wanted || folding.crc32(here, 0) !== wanted) throw new Error(`${String(size)} KB: they do not agree`);
  const [byZlib, byFolding, inPlace]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < rounds; round++) {
    byZlib.push(cost((one) => crc32(one), bytes));
    byFolding.push(cost((one) => folding.crc32(one, 0), bytes));
    inPlace.push(cost((one) => folding.crc32(one, 0), here));
  }
  console.log(`${String(size)} KB: zlib ${text(byZlib)} µs, folded ${text(byFolding)} µs, where they lie ${text(inPlace)} µs`);
}
