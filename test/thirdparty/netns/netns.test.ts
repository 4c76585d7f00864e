/**
 * Real networks that fail: a gateway and two stores in network namespaces, joined by two networks of veth
 * pairs and bridges (namespaces.ts), under load, while iptables and tc make the fault. Each story is a
 * program of its own inside the gateway's namespace (story.ts).
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { findProgram } from '../../outside-sets.js';
import { makeNetworks, namespaceOf, removeNetworks } from './namespaces.js';
import { STORIES } from './story.js';

const PROGRAM = join(dirname(fileURLToPath(import.meta.url)), 'story.js');
const STORY_MS = 60_000;

/** Runs a story inside the gateway's namespace; resolves with what it said of a failure, '' for none. */
function tell(story: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(findProgram('ip') ?? 'ip', ['netns', 'exec', namespaceOf(process.pid, 'gw'), process.execPath, PROGRAM, story, String(process.pid)], { stdio: ['ignore', 'inherit', 'pipe'] });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
    const timer = setTimeout(() => child.kill('SIGTERM'), STORY_MS);
    child.on('error', reject);
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve(code === 0 ? '' : `ended with ${code ?? 'a signal'}\n${said}`);
    });
  });
}

function removeNow(): void {
  removeNetworks();
}

describe('a network that fails', { timeout: 280_000 }, () => {
  before(() => {
    process.once('exit', removeNow);
    makeNetworks();
  });

  after(() => {
    removeNetworks();
    process.removeListener('exit', removeNow);
  });

  for (const story of Object.keys(STORIES)) {
    test(story, async () => {
      assert.equal(await tell(story), '');
    });
  }
});
