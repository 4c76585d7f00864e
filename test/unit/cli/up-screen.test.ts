/** The one screen of `twinpost up`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { screenText } from '../../../src/cli/up/screen.js';
import type { ScreenInput } from '../../../src/cli/up/screen.js';

/** What of a configuration the screen shows. */
function screenOf(tls: object | undefined): string {
  const at = (port: number) => ({ host: '127.0.0.1', port });
  const config = {
    gateways: [{ id: 'gateway', smtp: { listen: [at(2525)] }, admin: { listen: at(8025), tls } }],
    stores: [{ id: 'store-a', admin: { listen: at(9401), tls } }], sink: undefined,
  };
  return screenText({ config, processes: [], command: 'twinpost', stateDir: '/tmp/x' } as unknown as ScreenInput);
}

test('shows addresses of status and metrics in the scheme that is spoken there', () => {
  for (const [tls, scheme] of [[undefined, 'http'], [{}, 'https']] as const) {
    const text = screenOf(tls);
    assert.ok(text.includes(`metrics         ${scheme}://127.0.0.1:8025/metrics  ${scheme}://127.0.0.1:9401/metrics\n`), text);
    assert.ok(text.includes(`status --gateway ${scheme}://127.0.0.1:8025 --watch`), text);
  }
});
