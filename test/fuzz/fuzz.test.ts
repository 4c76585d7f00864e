/** A minute of each target that any client feeds, a quarter of others, from a seed of the day; the long form is `npm run fuzz`. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('main.js', import.meta.url));
const SECONDS = 60;

/** What hundreds of inputs must come to. */
const SHOWN: Readonly<Record<string, readonly string[]>> = {
  session: ['messages kept'],
  bdat: ['messages kept'],
  auth: ['messages kept', 'PLAIN logins', 'LOGIN logins', 'SCRAM-SHA-256 logins', 'wrong logins'],
  proxy: ['messages kept', 'headers read'],
  'next-hop': ['delivered', 'deferred', 'failed', 'given back', 'without right'],
  policy: ['policies', 'no policies', 'addresses of reports'],
  'host-tls': ['by their records', 'against their records', 'unusable records', 'not connected to for its TLS', 'in clear', 'as the route says', 'messages read'],
  handshake: ['shown', 'refused'],
  dns: ['ways', 'read as written', 'refused', 'truncated', 'foreign', 'no-name', 'no-records'],
  returned: ['statuses read', 'feedback read', 'forgeries refused'],
  authentication: ['renamed', 'fields', 'signatures', 'large'],
  'sender-records': ['keys', 'SPF passes', 'SPF permerrors', 'DMARC passes'],
};

const WHOLE = ['session', 'bdat', 'auth', 'proxy', 'dsn'];
const QUARTER = ['authentication', 'sender-records', 'policy', 'returned', 'dns', 'handshake', 'host-tls', 'next-hop'];
const TARGETS = [...WHOLE.map((target) => [target, SECONDS] as const), ...QUARTER.map((target) => [target, SECONDS / 4] as const)];

// A process each, and two at a time: an input that is slow counts by its processor time.
describe('any input', { concurrency: 2 }, () => {
  for (const [target, seconds] of TARGETS) {
    test(`${target} bears ${String(seconds)} s of odd inputs`, { timeout: 3 * SECONDS * 1000 }, async (t) => {
      const seed = Date.now() % 1_000_000_000;
      t.diagnostic(`seed ${String(seed)}`);
      const child = spawn(process.execPath, [MAIN, '--target', target, '--seconds', String(seconds), '--inputs', '1000000000', '--seed', String(seed)], { stdio: ['ignore', 'pipe', 'pipe'] });
      let text = '';
      for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => { text += bytes.toString(); });
      const code = await new Promise((resolve) => { child.once('close', resolve); });
      assert.equal(code, 0, text);
      for (const what of SHOWN[target] ?? []) assert.match(text, new RegExp(` [1-9]\\d{2,} ${what}`), 'inputs that only err show nothing');
    });
  }
});
