/**
 * CPU of the CRC-32 of long inputs: zlib's, and ours by folding (src/platform/node/crc-fold.ts), in turns, each checked
 * against the other.
 *
 *   node dist/bench/micro/checksum.js [milliseconds] [rounds]
 *
 * Prints a line for each size: µs of CPU (user + system) a checksum, the median of the rounds and their range. What
 * came of it stands in docs/PERFORMANCE.md, "Stores, second round".
 */
import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

import { makeFoldedCrc32 } from '../../src/platform/node/crc-fold.js';
import { median, rounded } from '../machine.js';

const SIZES_KB = [8, 16, 64, 150];
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

const fold = makeFoldedCrc32();
if (fold === undefined) throw new Error('this process may not have WebAssembly: zlib alone is used');
for (const size of SIZES_KB) {
  const bytes = randomBytes(size * 1024);
  if (fold(bytes, 0) !== crc32(bytes)) throw new Error(`${String(size)} KB: the two do not agree`);
  const [byZlib, byFolding]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    byZlib.push(cost((one) => crc32(one), bytes));
    byFolding.push(cost((one) => fold(one, 0), bytes));
  }
  console.log(`${String(size)} KB: zlib ${text(byZlib)} µs, folded ${text(byFolding)} µs`);
}
