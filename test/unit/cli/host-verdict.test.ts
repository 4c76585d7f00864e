/** May a host be rebooted: each reason against it alone, at three hosts with a gateway, a store and a member of etcd each. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { StatusAnswer, StoreAnswer } from '../../../src/admin-api/gateway-answers.js';
import type { DrainAnswer } from '../../../src/admin-api/orders.js';
import { hostsOf, lacking, onlyThere, partsOf, stillThere, unitedMembers, yesLines } from '../../../src/cli/host-verdict.js';
import type { DrainTold, RegisterSeen } from '../../../src/cli/host-verdict.js';
import * as sample from './sample-answers.js';

const NUMBERS = [1, 2, 3];
const GROUP = NUMBERS.map((n) => `gw-${String(n)}`);

function storesSeen(of: (store: string) => Partial<StoreAnswer> = () => ({})): readonly StoreAnswer[] {
  return NUMBERS.map((n) => ({ ...sample.STORE, store: `store-${String(n)}`, host: `host-${String(n)}`, ...of(`store-${String(n)}`) }));
}

/** What all three say. */
function statuses(of: (gateway: string) => Partial<StatusAnswer> = () => ({})): readonly StatusAnswer[] {
  return GROUP.map((gateway, i) => ({
    ...sample.STATUS, gateway, host: `host-${String(i + 1)}`, stores: storesSeen(), rescues: GROUP.filter((other) => other !== gateway), ...of(gateway),
  }));
}

function register(...away: readonly number[]): RegisterSeen {
  const members = NUMBERS.map((n) => ({ endpoint: `https://10.1.0.${String(n)}:2379`, why: away.includes(n) ? 'ECONNREFUSED' : '' }));
  return { members, addresses: new Set(['10.1.0.1']) };
}

function lackingAt(all: readonly StatusAnswer[], seen = register()): readonly string[] {
  return lacking(partsOf('host-1', all), seen);
}

describe('a host of three', () => {
  test('may be drained when everything else is well', () => {
    const { gateways, elsewhere, stores } = partsOf('host-1', statuses());
    assert.deepEqual([gateways.map(({ gateway }) => gateway), elsewhere.map(({ gateway }) => gateway), stores], [['gw-1'], ['gw-2', 'gw-3'], ['store-1']]);
    assert.deepEqual(lackingAt(statuses()), []);
    assert.deepEqual(hostsOf(statuses()), ['host-1', 'host-2', 'host-3']);
  });

  test('needs another gateway that takes mail', () => {
    assert.deepEqual(lackingAt(statuses((id) => (id === 'gw-2' ? { ready: false } : {}))), []);
    const none = statuses((id) => (id === 'gw-1' ? {} : { ready: false, not_ready_reason: 'recovering' }));
    assert.deepEqual(lackingAt(none), ['no gateway at another host takes new mail (gw-2: recovering; gw-3: recovering)']);
    assert.deepEqual(lackingAt(statuses().slice(0, 1)), ['no gateway at another host answers: without host-1 nobody takes mail']);
  });

  test('needs another gateway that delivers its mail, and reaches the register', () => {
    assert.deepEqual(lackingAt(statuses((id) => (id === 'gw-2' ? { rescues: [] } : {}))), []);
    assert.deepEqual(lackingAt(statuses(() => ({ rescues: [] }))), ['nobody delivers the mail of gw-1 meanwhile: no gateway at another host has it in its group, with rescue: on']);
    assert.deepEqual(lackingAt(statuses((id) => (id === 'gw-2' ? { register_away: 'no leader' } : {}))), []);
    assert.deepEqual(lackingAt(statuses(() => ({ register_away: 'no leader' }))), ['nobody can take the mail of gw-1 over: gw-2 does not reach the register: no leader']);
  });

  test('needs stores at other hosts for the copies of everybody: not that of the gateway itself, nor one drained or away', () => {
    const drained = storesSeen((store) => (store === 'store-3' ? { drained: true } : {}));
    assert.deepEqual(lackingAt(statuses(() => ({ stores: drained }))), ['gw-2 would have no host for its copies, and needs 1: store-3 is drained']);
    const away = storesSeen((store) => (store === 'store-2' ? { up: false, cause: 'ECONNRESET' } : {}));
    assert.deepEqual(lackingAt(statuses(() => ({ stores: away }))), ['gw-3 would have no host for its copies, and needs 1: store-2 is away (ECONNRESET)']);
    assert.deepEqual(lackingAt(statuses((id) => (id === 'gw-2' ? { min_replicas: 2 } : {}))), ['gw-2 would have 1 host for its copies, and needs 2']);
  });

  test('counts a host once, and a store of no known host for itself', () => {
    const [first, second, third] = storesSeen();
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    const twice = [first, third, { ...third, store: 'store-4' }];
    assert.equal(lackingAt(statuses((id) => (id === 'gw-2' ? { min_replicas: 2, stores: twice } : {}))).length, 1);
    const unknown = [first, { ...third, host: '' }, { ...third, store: 'store-4', host: '' }];
    assert.deepEqual(lackingAt(statuses((id) => (id === 'gw-2' ? { min_replicas: 2, stores: unknown } : {}))), []);
  });

  test('with a gateway alone is of no account for the copies of others', () => {
    const elsewhere = storesSeen((store) => (store === 'store-1' ? { host: 'host-3' } : {}));
    const all = statuses((id) => (id === 'gw-1' ? { stores: elsewhere } : { stores: [], min_replicas: 2 }));
    assert.deepEqual(lackingAt(all), []);
  });

  test('is not to take the majority of the register away', () => {
    assert.deepEqual(lackingAt(statuses(), register(1)), [], 'the member there is dead already');
    assert.deepEqual(lackingAt(statuses(), register(3)), [
      'the register would lose its majority: without https://10.1.0.1:2379 at host-1 1 of 3 members are left; no answer from https://10.1.0.3:2379: ECONNREFUSED',
    ]);
    assert.deepEqual(lackingAt(statuses(), { ...register(3), addresses: new Set(['10.1.0.9']) }), [], 'none of them is there');
  });
});

test('a member of the register is there when any gateway reaches it', () => {
  const [a, b] = [[{ endpoint: 'x', why: '' }, { endpoint: 'y', why: 'gone' }], [{ endpoint: 'x', why: 'gone' }, { endpoint: 'y', why: '' }]];
  assert.deepEqual(unitedMembers([a, b]), [{ endpoint: 'x', why: '' }, { endpoint: 'y', why: '' }]);
  assert.deepEqual(unitedMembers([]), []);
});

function told(gateway: string, more: Partial<DrainAnswer> = {}): DrainTold {
  return { gateway, answer: { store: 'store-1', draining: true, mirrors: 0, stuck: 0, copies_missing: 0, kept: true, ...more } };
}

describe('what is moved away', () => {
  test('is waited for, unless all that is left can not leave', () => {
    assert.deepEqual(stillThere([told('gw-2'), told('gw-3')]), { reasons: [], isStuck: false });
    assert.deepEqual(stillThere([told('gw-2', { mirrors: 1 }), told('gw-3', { mirrors: 2, stuck: 2 })]), {
      reasons: ['gw-2: 1 copy still at store-1', 'gw-3: 2 copies at store-1 CAN\'T LEAVE: no other store takes them, and they are needed; start another store'],
      isStuck: false,
    });
    assert.equal(stillThere([told('gw-2'), told('gw-3', { mirrors: 2, stuck: 2 })]).isStuck, true);
  });

  test('is not all while a gateway there has what no store elsewhere has, or a copy there counts for somebody', () => {
    const parts = partsOf('host-1', statuses((id) => ({ partitions_uncopied: id === 'gw-2' ? 5 : 0 })));
    assert.deepEqual(onlyThere(parts, [{ store: 'store-1', byHolder: new Map() }]), [], 'what is at another host is not there');
    assert.deepEqual(onlyThere(partsOf('host-1', statuses((id) => ({ partitions_uncopied: id === 'gw-1' ? 1 : 0 }))), []), ['gw-1 has mail in 1 partition that no store at another host has whole']);
    assert.deepEqual(onlyThere(parts, [{ store: 'store-1', byHolder: new Map([['gw-9', 2], [null, 1]]) }]), [
      'gw-9 counts on store-1 for 2 partitions', 'nobody known counts on store-1 for 1 partition',
    ]);
  });
});

test('yes says what waits there, who delivers it, what has fewer copies, and what of the register is there', () => {
  const parts = partsOf('host-1', statuses((id) => (id === 'gw-1' ? { queued_messages: 12 } : { partitions_copies_missing: id === 'gw-2' ? 16 : 0 })));
  assert.deepEqual(yesLines(parts, register(), [told('gw-2', { kept: false })]), [
    'gw-1 has 12 messages: what it has when it ends is delivered by gw-2 or gw-3 once its lease (10s) is over, or by itself if it is back sooner',
    'gw-2: 16 partitions with fewer copies than configured until then',
    'gw-2: that store-1 is drained is not on disk: a restart of it forgets that',
    'register: 3 of 3 members answer, 1 of them at host-1',
  ]);
  assert.match(yesLines(parts, { members: [], addresses: new Set() }, []).at(-1) ?? '', /^the register is no etcd: .* not looked at$/);
});
