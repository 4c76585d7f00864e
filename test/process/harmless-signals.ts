/**
 * Every signal that may end no process that serves: all that can be caught, but for SIGTERM and SIGINT, and for those by
 * which the kernel and the process itself say that it is broken.
 */
import os from 'node:os';

const NOT_CAUGHT = ['SIGKILL', 'SIGSTOP'];
const ENDING = ['SIGTERM', 'SIGINT'];
const BROKEN = ['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV', 'SIGSYS'];

const numbers: Readonly<Record<string, number>> = os.constants.signals;
const left = new Set([...NOT_CAUGHT, ...ENDING, ...BROKEN].map((name) => numbers[name]));

export const HARMLESS_SIGNALS: readonly number[] = [...new Set(Object.values(numbers))].filter((one) => !left.has(one));
