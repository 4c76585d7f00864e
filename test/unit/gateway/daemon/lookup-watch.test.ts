/** When the log tells that next hops wait for the lookup of their names. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LookupWatch } from '../../../../src/gateway/daemon/lookup-watch.js';
import type { LogFields } from '../../../../src/platform/ports.js';

test('that mail waits for lookups is told once, and that it is over when it has not for a minute', () => {
  const lookups = { held: '' };
  const lines: string[] = [];
  const tell = (level: string) => (event: string, text: string, fields?: LogFields): void => {
    lines.push(`${level} ${event}: ${text.slice(0, 22)} ${String(fields?.['why'] ?? '')}`);
  };
  const log = { debug: tell('debug'), info: tell('info'), warn: tell('warn'), error: tell('error') };
  const watch = new LookupWatch({ lookups, log });
  for (const [nowMs, held] of [[0, ''], [100, '3 in line'], [200, ''], [50_000, '4 in line'], [109_999, '']] as const) {
    lookups.held = held;
    watch.tick(nowMs);
  }
  assert.deepEqual(lines, ['warn dns: mail waits for the loo 3 in line']);
  watch.tick(110_000);
  assert.deepEqual(lines.slice(1), ['info dns: the names of next hops ']);
});
