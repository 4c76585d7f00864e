/**
 * The real Crc32: zlib's, native in Node from 20.15 on (about 0.3 µs for 1 KB, a third of what a table in
 * JavaScript takes).
 */
import { crc32 as zlibCrc32 } from 'node:zlib';
import type { Crc32 } from '../ports.js';

export const crc32: Crc32 = (bytes, seed) => zlibCrc32(bytes, seed);
