/**
 * Loaded into a daemon before its own program (node --import): tells every two seconds what V8 counts of its memory,
 * in FOLDER/PID.json. Beside the resident memory it says whether what grows is objects and buffers, or what the
 * system's allocator does not give back.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { MEMORY_PROBE_FOLDER, type CountedMemory } from './probe-report.js';

const EVERY_MS = 2000;

function tell(file: string): void {
  const { heapTotal, external } = process.memoryUsage();
  const counted: CountedMemory = { heapBytes: heapTotal, outsideBytes: external };
  writeFileSync(`${file}.new`, JSON.stringify(counted));
  renameSync(`${file}.new`, file);
}

const folder = process.env[MEMORY_PROBE_FOLDER];
if (folder !== undefined) setInterval(tell, EVERY_MS, join(folder, `${process.pid}.json`)).unref();
