/** What a line in the process of the map leaves there. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { HostLine } from '../../../../src/register/core/host-line.js';
import { MapHost } from '../../../../src/register/core/map-host.js';
import { RegisterMap } from '../../../../src/register/core/register-map.js';

test('a watch that is closed is gone from its line, too: closing that closes it no more', () => {
  const host = new MapHost(new RegisterMap(), { clock: { nowMs: () => 0, wallMs: () => 0 }, soon: (run) => { run(); }, keep: (_map, done) => { done({ kind: 'kept' }); } });
  let closed = 0;
  const watch = host.watch.bind(host);
  host.watch = (prefixes, after, handler) => {
    const { close } = watch(prefixes, after, handler);
    return { close: () => { closed += 1; close(); } };
  };
  const line = new HostLine(host, 'here', (run) => { run(); });
  const handler = { onChanges: () => {}, onBroken: () => {} };
  for (let i = 0; i < 3; i += 1) line.watch(['a'], 0, handler).close();
  line.watch(['a'], 0, handler);
  line.close();
  assert.equal(closed, 4);
});
