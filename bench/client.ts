/**
 * The load client of the benches as a process of its own: options as JSON on stdin; the
 * report, and the CPU time from the first to the last message, as one line of JSON on stdout. With
 * `progress` each 200 ms a line {"accepted":N,"responseMs":{…}} comes before it, with the times since the last.
 */
import { readFileSync } from 'node:fs';

import type { SendOptions, SendProgress } from '../src/load/options.js';
import { runSend } from '../src/load/run.js';

const { progress, ...options } = JSON.parse(readFileSync(0, 'utf8')) as SendOptions & { readonly progress?: boolean };
const tell = ({ accepted, responseMs }: SendProgress): void => void process.stdout.write(`${JSON.stringify({ accepted, responseMs })}\n`);
const before = process.cpuUsage();
const report = await runSend(progress === true ? { ...options, onProgress: tell } : options);
const used = process.cpuUsage(before);
process.stdout.write(`${JSON.stringify({ report, cpuMicros: used.user + used.system })}\n`);
