/** The one screen of `twinpost up`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AcceptedTotal, screenText, statusLine } from '../../../src/cli/up/screen.js';
import type { GatewaySample, ScreenInput } from '../../../src/cli/up/screen.js';
import { STATUS } from './sample-answers.js';

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

test('adds up what the lives of gateways took, and says when it may be more', () => {
  const total = new AcceptedTotal();
  const look = (name: string, incarnation: number, received: number): GatewaySample => ({ name, atMs: 0, status: { ...STATUS, incarnation, received } });
  const silent = (name: string): GatewaySample => ({ name, atMs: 0, status: undefined });
  assert.equal(total.after([look('gw-1', 7, 1_000), look('gw-2', 3, 20)]), '1,020');
  assert.equal(total.after([look('gw-1', 7, 1_200), silent('gw-2')]), '1,220+', 'what a silent one took meanwhile');
  const now = [look('gw-1', 7, 1_200), look('gw-2', 3, 30)];
  assert.equal(total.after(now), '1,230', 'it lived all the time');
  assert.match(statusLine(now, [], '1,230'), /^accepted 1,230 \(0\/s\) {3}delivered 0\/s {3}queued /);
  assert.equal(total.after([silent('gw-1'), look('gw-2', 3, 30)]), '1,230+');
  const tally = { arrived: 1_229, missing: 0, altered: 0, repeated: 0, unmarked: 0, complete: true };
  assert.equal(statusLine([silent('gw-1')], now, '1,230+', tally), 'gateway does not answer   accepted 1,230+   arrived 1,229 gaps 0 altered 0 repeated 0', 'while it is away');
  assert.equal(total.after([look('gw-1', 9, 5), look('gw-2', 3, 30)]), '1,235+', 'it counts anew');
});
