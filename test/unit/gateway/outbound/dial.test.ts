/** A connection by name that nobody wants any more before it is open. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Dial } from '../../../../src/gateway/outbound/dial.js';
import { MxLookup } from '../../../../src/gateway/outbound/mx-lookup.js';

test('a host that is not needed any more is not connected to, whenever its name is resolved, and is told of once', async () => {
  const limits = { ownNames: [], allowsPrivate: true, usesIpv6: false, usesMtaSts: false, connectionsMax: 1 };
  const lookup = new MxLookup(limits, { ask: () => assert.fail('an address is no name') });
  const transport = { connect: () => assert.fail('nothing is connected') };
  const closed: string[] = [];
  const dial = new Dial({ name: '127.0.0.1', port: 25, isUnnamed: false }, false, { transport, lookup, random: () => 0.5 }, {
    onOpened: () => assert.fail('nothing is open'), onOpen: () => undefined, onData: () => undefined, onDrain: () => undefined,
    onForbidden: () => undefined, onClose: (reason) => { closed.push(reason); },
  });
  dial.destroy();
  dial.end();
  for (let turns = 0; turns < 5; turns++) await turn();
  assert.deepEqual(closed, ['not needed any more']);
});
