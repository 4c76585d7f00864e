import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';

import { withServicesForbidden } from '../../../../bench/peers/installed.js';

describe('while packages are installed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-policy-'));
  const file = join(folder, 'policy-rc.d');
  after(() => { rmSync(folder, { recursive: true }); });

  test('no service is started, and the file that forbids it goes when they are, or cannot be', () => {
    withServicesForbidden(file, () => {
      assert.equal(readFileSync(file, 'latin1'), '#!/bin/sh\nexit 101\n');
      assert.equal(statSync(file).mode & 0o111, 0o111);
    });
    assert.equal(existsSync(file), false);
    assert.throws(() => { withServicesForbidden(file, () => { throw new Error('no network'); }); }, /no network/);
    assert.equal(existsSync(file), false);
  });

  test('a file of the owner of the machine stays as it is', () => {
    writeFileSync(file, 'mine');
    withServicesForbidden(file, () => { assert.equal(readFileSync(file, 'latin1'), 'mine'); });
    assert.equal(readFileSync(file, 'latin1'), 'mine');
  });
});
