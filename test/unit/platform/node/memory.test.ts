/** The limit of memory that a process finds around itself. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { hostMemoryBytes } from '../../../../src/platform/node/memory.js';

const PHYSICAL = 8000;

function limitWith(files: Readonly<Record<string, string>>): number {
  return hostMemoryBytes((file) => files[file] ?? '', PHYSICAL);
}

describe('the memory a process may use', () => {
  test('is the physical memory where nothing limits it', () => {
    assert.equal(limitWith({}), PHYSICAL);
    assert.equal(limitWith({ '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/memory.max': 'max\n' }), PHYSICAL);
    assert.equal(limitWith({ '/sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n' }), PHYSICAL);
  });

  test('is the limit of a container', () => {
    assert.equal(limitWith({ '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/memory.max': '3000\n' }), 3000);
    assert.equal(limitWith({ '/proc/self/cgroup': '5:memory:/docker/abc\n', '/sys/fs/cgroup/memory/memory.limit_in_bytes': '3000\n' }), 3000);
  });

  test('is the smallest limit on the way up from the group of a service', () => {
    const own = { '/proc/self/cgroup': '0::/a.slice/b.service\n' };
    assert.equal(limitWith({ ...own, '/sys/fs/cgroup/a.slice/b.service/memory.max': '2000\n', '/sys/fs/cgroup/a.slice/memory.max': '5000\n' }), 2000);
    assert.equal(limitWith({ ...own, '/sys/fs/cgroup/a.slice/b.service/memory.max': 'max\n', '/sys/fs/cgroup/a.slice/memory.max': '5000\n' }), 5000);
  });
});
