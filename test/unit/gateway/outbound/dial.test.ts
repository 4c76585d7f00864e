/** A connection by name before it is open: how long each address has, and nobody wants it any more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Dial } from '../../../../src/gateway/outbound/dial.js';
import type { Resolver } from '../../../../src/platform/resolver.js';
import type { Connection, ConnectionHandlers } from '../../../../src/platform/transport.js';
import { ConnectionAccount } from '../../../../src/gateway/outbound/connection-account.js';
import { MxLookup } from '../../../../src/gateway/outbound/mx-lookup.js';
import { Sources } from '../../../../src/gateway/outbound/sources.js';

const inOrder = (addresses: readonly string[]): readonly string[] => addresses;
/** Room at every address. */
const ANY = { takeAddress: () => true, giveAddress: () => undefined };

test('a host that is not needed any more is not connected to, whenever its name is resolved, and is told of once', async () => {
  const limits = { ownNames: [], allowsPrivate: true, usesIpv6: false, usesMtaSts: false, connectionsMax: 1, connectionsPerAddressMax: 100 };
  const lookup = new MxLookup(limits, { ask: () => assert.fail('an address is no name') });
  const transport = { connect: () => assert.fail('nothing is connected'), addresses: () => assert.fail('nothing is resolved') };
  const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  const sources = new Sources([], { resolver: { ask: () => assert.fail('nothing is asked') }, log: silent });
  const closed: string[] = [];
  const clock = { nowMs: () => 0, wallMs: () => 0 };
  const dial = new Dial({ name: '127.0.0.1', port: 25, isUnnamed: false, isByMx: true }, { asksTlsa: false, site: 'x', sources: undefined, withinMs: 1000, inOrder }, { transport, lookup, sources, connections: ANY, random: () => 0.5, clock }, {
    onJudged: () => undefined, onTrying: () => undefined, onSourceless: () => undefined, onOpened: () => assert.fail('nothing is open'), onOpen: () => undefined, onData: () => undefined, onDrain: () => undefined,
    onForbidden: () => undefined, onNoSource: () => undefined, onNoRoom: () => undefined, onClose: (reason) => { closed.push(reason); },
  });
  dial.destroy();
  dial.end();
  for (let turns = 0; turns < 5; turns++) await turn();
  assert.deepEqual(closed, ['not needed any more']);
});

test('each of five silent addresses is tried within the time for all of them', { timeout: 10_000 }, async () => {
  const limits = { ownNames: [], allowsPrivate: true, usesIpv6: false, usesMtaSts: false, connectionsMax: 1, connectionsPerAddressMax: 100 };
  const resolver = { ask: (_name: string, _type: string, done: (answer: never) => void) => { done({ kind: 'found', records: [1, 2, 3, 4, 5, 6].map((last) => `192.0.2.${String(last)}`), isAuthentic: false } as never); } };
  const tried: string[] = [];
  const connection = { remote: '', bufferedBytes: 0, write: () => undefined, pause: () => undefined, resume: () => undefined, end: () => undefined, destroy: () => undefined };
  const transport = {
    connect: (address: string) => {
      tried.push(address);
      return connection as unknown as Connection;
    },
    addresses: () => assert.fail('nothing is resolved'),
  };
  const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  const clock = { nowMs: () => performance.now(), wallMs: () => 0 };
  const dial = new Dial({ name: 'mx.example', port: 25, isUnnamed: false, isByMx: true }, { asksTlsa: false, site: 'x', sources: undefined, withinMs: 500, inOrder }, {
    transport, lookup: new MxLookup(limits, resolver as Resolver), sources: new Sources([], { resolver: resolver as Resolver, log: silent }), connections: ANY, random: () => 0.5, clock,
  }, {
    onJudged: () => undefined, onTrying: () => undefined, onSourceless: () => undefined, onOpened: () => assert.fail('nothing is open'), onOpen: () => undefined, onData: () => undefined, onDrain: () => undefined,
    onForbidden: () => undefined, onNoSource: () => undefined, onNoRoom: () => undefined, onClose: () => undefined,
  });
  assert.equal(dial.isResolving, true);
  while (tried.length < 5) await new Promise((resolve) => { setTimeout(resolve, 10); });
  assert.equal(dial.isResolving, false, 'packets went out');
  dial.destroy();
  assert.deepEqual(tried, [1, 2, 3, 4, 5].map((last) => `192.0.2.${String(last)}`));
});

for (const [what, wasAsked, end] of [['are waited for until it is not needed any more', true, 'not needed any more'], ['that were not even asked for are no fault of it', false, 'no room']] as const) {
  test(`addresses of a host by name ${what}`, async () => {
    const log: string[] = [];
    const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
    const resolver = { ask: () => assert.fail('the DNS is not asked') };
    const limits = { ownNames: [], allowsPrivate: true, usesIpv6: false, usesMtaSts: false, connectionsMax: 1, connectionsPerAddressMax: 100 };
    const transport = {
      connect: () => assert.fail('nothing is connected'),
      addresses: (host: string) => {
        log.push(`asked for ${host}`);
        return () => {
          log.push('left');
          return wasAsked;
        };
      },
    };
    const dial = new Dial({ name: 'silent.test', port: 25, isUnnamed: false, isByMx: false }, { asksTlsa: false, site: 'x', sources: undefined, withinMs: 1000, inOrder }, {
      transport, lookup: new MxLookup(limits, resolver), sources: new Sources([], { resolver, log: silent }), connections: ANY, random: () => 0.5, clock: { nowMs: () => 0, wallMs: () => 0 },
    }, {
      onJudged: () => undefined, onTrying: () => undefined, onSourceless: () => undefined, onOpened: () => assert.fail('nothing is open'), onOpen: () => undefined, onData: () => undefined, onDrain: () => undefined,
      onForbidden: () => undefined, onNoSource: () => undefined, onNoRoom: () => { log.push('no room'); }, onClose: (reason) => { log.push(reason); },
    });
    for (let turns = 0; turns < 3; turns++) await turn();
    dial.destroy();
    for (let turns = 0; turns < 3; turns++) await turn();
    assert.deepEqual(log, ['asked for silent.test', 'left', end]);
  });
}

/** A host by MX with these addresses, to each of which one connection may be; `connect` says what comes of it. */
function counted(addresses: readonly string[], connect: (handlers: ConnectionHandlers) => void) {
  const nothing = (): void => undefined;
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const resolver: Resolver = { ask: (_name, _type, done) => { done({ kind: 'found', records: addresses, isAuthentic: false } as never); } };
  const limits = { ownNames: [], allowsPrivate: true, usesIpv6: false, usesMtaSts: false, connectionsMax: 1, connectionsPerAddressMax: 1 };
  const connections = new ConnectionAccount({ connectionsMax: 10, ofAddressMax: 1 }, log);
  const closed: string[] = [];
  const transport = {
    connect: (_address: string, _port: number, handlers: ConnectionHandlers) => {
      connect(handlers);
      return { remote: '', bufferedBytes: 0, write: nothing, pause: nothing, resume: nothing, end: nothing, destroy: nothing };
    },
    addresses: () => assert.fail('nothing is resolved'),
  };
  const dial = new Dial({ name: 'mx.example', port: 25, isUnnamed: false, isByMx: true }, { asksTlsa: false, site: 'x', sources: undefined, withinMs: 500, inOrder }, {
    transport, lookup: new MxLookup(limits, resolver), sources: new Sources([], { resolver, log }), connections, random: () => 0.5, clock: { nowMs: () => 0, wallMs: () => 0 },
  }, {
    onJudged: nothing, onTrying: nothing, onSourceless: nothing, onOpened: nothing, onOpen: nothing, onData: nothing, onDrain: nothing,
    onForbidden: nothing, onNoSource: nothing, onNoRoom: nothing, onClose: (reason) => { closed.push(reason); },
  });
  return { dial, closed, areFull: () => addresses.map((address) => connections.isAddressFull(address)) };
}

test('the room at an address is given back by a connection that is not wanted any more while it is tried', async () => {
  const { dial, areFull } = counted(['192.0.2.1'], () => undefined);
  while (dial.isResolving) await turn();
  assert.deepEqual(areFull(), [true]);
  dial.destroy();
  assert.deepEqual(areFull(), [false]);
});

test('the room at each of two addresses that refuse is given back', async () => {
  const { dial, closed, areFull } = counted(['192.0.2.1', '192.0.2.2'], (handlers) => { setImmediate(() => { handlers.onClose('ECONNREFUSED'); }); });
  while (closed.length === 0) await turn();
  dial.destroy();
  assert.deepEqual([closed.length, areFull()], [1, [false, false]]);
});
