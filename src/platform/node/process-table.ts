/**
 * Which process of which machine: marks that a lock file can keep, and whether the process of a mark still
 * lives. For lock files (file-lock.ts) and for what a gateway's folder knows of its processes
 * (gateway/local/process-lock.ts).
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { z } from 'zod';

/**
 * Fields of /proc/PID/stat behind the name in brackets, which may hold anything: state is the first,
 * start time the twentieth.
 */
const STAT_STATE = 0;
const STAT_START_TIME = 19;

/** One process of one machine, for ever. */
export const processMark = z.object({
  pid: z.number(),
  startTime: z.string().min(1),
  bootId: z.string(),
  pidNamespace: z.string(),
});
export type ProcessMark = Readonly<z.output<typeof processMark>>;

export interface ProcessTable {
  /** Undefined when this machine does not tell. */
  self(): ProcessMark | undefined;
  /** Start time of a process that lives; '' for none. */
  startTimeOf(pid: number): string;
}

/** The pid namespace of the machine itself, in which no container is: its number is fixed in Linux. */
export const MACHINE_PID_NAMESPACE = 'pid:[4026531836]';

/** The process table of Linux. */
export const PROC: ProcessTable = {
  self() {
    try {
      const startTime = startTimeOf(process.pid);
      const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
      const pidNamespace = readlinkSync('/proc/self/ns/pid');
      return startTime === '' ? undefined : { pid: process.pid, startTime, bootId, pidNamespace };
    } catch {
      return undefined;
    }
  },
  startTimeOf,
};

function startTimeOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const state = fields[STAT_STATE] ?? '';
    return state === 'Z' || state === 'X' ? '' : (fields[STAT_START_TIME] ?? '');
  } catch {
    return '';
  }
}
