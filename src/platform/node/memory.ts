/**
 * How much memory this process may use: the cgroup's limit where one is set (a container), else the
 * physical memory. Buffers lie outside V8's heap limit, so the parts count their bytes against this.
 */
import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';

/** Share of the host's memory that one process takes by default: stores and gateways often share a host in tests. */
export const MEMORY_SHARE_OF_HOST = 0.5;

const CGROUP_LIMIT_FILES = ['/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes'];

/** Bytes; never above physical memory. */
export function hostMemoryBytes(): number {
  const physical = totalmem();
  for (const file of CGROUP_LIMIT_FILES) {
    try {
      const limit = Number(readFileSync(file, 'utf8').trim());
      if (Number.isFinite(limit) && limit > 0) return Math.min(limit, physical);
    } catch {
      // Not under this kind of cgroup: the next file, or physical memory.
    }
  }
  return physical;
}
