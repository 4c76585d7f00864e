/** What is noted of the hosts of a next hop, without connections; by-mx.test.ts and dispatcher.test.ts have those. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { SiteHost, SiteHosts } from '../../../../src/gateway/outbound/site-hosts.js';
import { DEFERRED } from '../../../../src/gateway/queue/types.js';

test('a host turns mail away when that is noted of it: not while it is put off for want of room', () => {
  const host = new SiteHost('mx.example', 25, 10, true);
  const hosts = new SiteHosts([host], { backoffFirstMs: 1000, backoffMaxMs: 60_000, deniedFirstMs: 1, deniedMaxMs: 2 }, () => 0.5);
  const away = { status: DEFERRED, code: 421, enhanced: '4.3.2', text: '421 4.3.2 later' } as const;
  hosts.putOff(host, '192.0.2.1', 1000);
  assert.deepEqual([hosts.noteTurnedAway(host, away, 1200, 1), host.isTurningAway, host.failures], [false, false, 0]);
  assert.deepEqual([hosts.noteTurnedAway(host, away, 1500, 1), host.isTurningAway, host.failures], [true, true, 1]);
});
