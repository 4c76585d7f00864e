/** The file of a role as a verb reads it, src/cli/config-file.ts. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { loadFor } from '../../../src/cli/config-file.js';
import { contextFor } from './played-context.js';

test('a file that is refused is named with its whole path: whoever reads that stands elsewhere than the process', () => {
  const found = `${path.resolve('nowhere.yaml')}:1: file: expected a file that can be read, found ENOENT`;
  assert.throws(() => loadFor('gateway', 'nowhere.yaml', undefined, contextFor([])), { message: found });
});
