/**
 * How much memory this process may use: the smallest limit of its cgroup and those above it (a container,
 * a service of systemd), else the physical memory. Buffers lie outside V8's heap limit, so the parts
 * count their bytes against this.
 */
import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { posix } from 'node:path';

/**
 * Share of the host's memory that one process takes by default: stores and gateways often share a host in
 * tests.
 */
const MEMORY_SHARE_OF_HOST = 0.5;

const OWN_CGROUP = '/proc/self/cgroup';
const MOUNT = '/sys/fs/cgroup';
/** Version 1, as a container sees its own. */
const LIMIT_OF_VERSION_1 = `${MOUNT}/memory/memory.limit_in_bytes`;

/** Text of a file, '' if it is not there. */
export type ReadText = (file: string) => string;

/** Bytes; never above physical memory. */
export function hostMemoryBytes(read: ReadText = readText, physicalBytes = totalmem()): number {
  let smallest = physicalBytes;
  for (const file of limitFiles(read(OWN_CGROUP))) {
    const limit = Number(read(file).trim());
    // "max" is no number; '' is 0.
    if (limit > 0 && limit < smallest) smallest = limit;
  }
  return smallest;
}

/** With `up`, a gateway and two stores share what one process would take. */
const PROCESSES_OF_UP = 3;

/** What a process takes whose configuration names no limit. */
export function defaultMemoryBytes(oneHost: boolean): number {
  return Math.floor((hostMemoryBytes() * MEMORY_SHARE_OF_HOST) / (oneHost ? PROCESSES_OF_UP : 1));
}

/** Version 2 has one line, "0::/system.slice/twinpost.service"; each group on the way up may have a limit. */
function limitFiles(cgroups: string): string[] {
  const files = [LIMIT_OF_VERSION_1, `${MOUNT}/memory.max`];
  const own = /^0::(\/.*)$/m.exec(cgroups)?.[1] ?? '/';
  for (let group = own; group !== '/'; group = posix.dirname(group)) {
    files.push(`${MOUNT}${group}/memory.max`);
  }
  return files;
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
