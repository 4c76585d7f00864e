/**
 * The real Crc32: zlib's, native in Node from 20.15 on (about 0.3 µs for 1 KB, a third of what a table in
 * JavaScript takes).
 */
import { crc32 as zlibCrc32 } from 'node:zlib';
import type { Crc32 } from '../ports.js';

/** No bytes leave the seed as it is: zlib takes an ArrayBuffer of length 0 for a null pointer and answers 0. */
export const crc32: Crc32 = (bytes, seed) => (bytes.length === 0 ? seed : zlibCrc32(bytes, seed));
