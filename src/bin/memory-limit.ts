/** How much memory a process may use when the configuration does not say: the cgroup's limit, else a share of the machine. */
import fs from 'node:fs';
import os from 'node:os';

/** Code, heap and buffers in transit live beside the messages. */
const CGROUP_SHARE = 0.8;
/** Other processes of the machine, and two stores of one `up`, need theirs. */
const MACHINE_SHARE = 0.25;

export function memoryLimitBytes(): number {
  const cgroup = cgroupLimitBytes();
  const machine = os.totalmem();
  return Math.floor(cgroup !== undefined && cgroup < machine ? cgroup * CGROUP_SHARE : machine * MACHINE_SHARE);
}

/** Version 2, then version 1; "max" and numbers beyond the machine's memory mean none. */
function cgroupLimitBytes(): number | undefined {
  for (const file of ['/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes']) {
    try {
      const limit = Number(fs.readFileSync(file, 'utf8').trim());
      if (Number.isFinite(limit) && limit > 0) return limit;
    } catch {
      // No such version here.
    }
  }
  return undefined;
}
