/** The key of a gateway's process: whom it takes for another, and ties that nobody answers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ProcessKey } from '../../../../src/gateway/ownership/process-key.js';
import { Hand } from '../../register/contract.js';
import { SimulatedWorld } from '../../register/simulated-world.js';

class Keyed {
  readonly key: ProcessKey;
  readonly taken: string[] = [];

  constructor(world: SimulatedWorld) {
    const record = { incarnation: 3, ordinal: 3, host: 'box-1', addresses: [], group: [] };
    this.key = new ProcessKey({ gatewayId: 'gw-1', record }, {
      register: world.client(), clock: world.time, log: world.log,
      isProvenDead: () => false,
      onHeld: () => undefined,
      onTaken: (why) => { this.taken.push(why); },
    });
    const tick = (): void => {
      this.key.tick(world.nowMs());
      world.scheduler.after(1, tick);
    };
    world.scheduler.soon(tick);
  }
}

test('ties that wait while there is no session are not answered for ever', async () => {
  const world = new SimulatedWorld();
  const { key } = new Keyed(world);
  await world.until(() => key.session().id !== 0, 'it stands');
  world.register.goAway('silent');
  await world.until(() => key.session().endsMs < world.nowMs(), 'its time is over');
  const told: string[] = [];
  key.addTie({
    guard: { key: 'partitions/gw-1/0', revision: 0 },
    onTied: () => { told.push('tied'); },
    onStale: () => { told.push('stale'); },
    onNoAnswer: () => { told.push('no answer'); },
  });
  await world.until(() => told.length > 0, 'it is answered');
  assert.deepEqual(told, ['no answer']);
});

test('an unreadable key is waited for like that of another, and named', async () => {
  const world = new SimulatedWorld();
  await new Hand(world).put('gateways/gw-1', 'x');
  const { taken } = new Keyed(world);
  await world.until(() => taken.length > 0, 'it is refused');
  assert.match(taken[0] ?? '', /runs on an unknown host \(its record can not be read\): stop that one/);
});
