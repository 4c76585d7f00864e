/**
 * What a gateway process is to a real etcd: its incarnation, its key, sixteen partitions, a second process of
 * its id.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import type { RegisterSink } from '../../../src/gateway/ownership/ownership-register.js';
import { ProcessIdentity } from '../../../src/gateway/local/process-identity.js';
import { crc32 } from '../../../src/platform/node/checksum.js';
import type { PartitionRecord } from '../../../src/protocol/partition-record.js';
import type { RegisterPort, Stamped } from '../../../src/recovery/ownership/ports.js';
import { QUIET, makeFolder, removeFolder, until } from '../../unit/register/real-world.js';
import { EtcdCluster } from './etcd-cluster.js';

let cluster: EtcdCluster;
const folder = makeFolder();

before(async () => {
  cluster = await EtcdCluster.start(1);
  await cluster.isReady();
});

after(async () => {
  await cluster.stop();
  removeFolder(folder);
});

function begin(id: string, name: string, onTaken: (why: string) => void = (why) => { assert.fail(why); }): Promise<ProcessIdentity> {
  return ProcessIdentity.begin({
    id, host: `box-${name}`, group: ['gw-1', 'gw-2'], rescue: true, stateDir: join(folder, name), told: 0, admin: { host: '127.0.0.1', port: 8025 },
    register: {
      kind: 'etcd', endpoints: cluster.endpoints, cluster: 'mail', user: '', password: '', caFile: undefined, certFile: undefined, keyFile: undefined, operationsMax: 128,
    },
  }, { log: QUIET, crc32, onTaken });
}

class Sink implements RegisterSink {
  told = '';
  stamped: Stamped | undefined;
  revision = '';
  newsCount = 0;

  onRecord(_ticket: number, stamped: Stamped): void {
    this.stamped = stamped;
    this.told = 'record';
  }

  onApplied(_ticket: number, revision: string): void {
    this.revision = revision;
    this.told = 'applied';
  }

  onNoAnswer(): void {
    this.told = 'no answer';
  }

  onSessionTied(): void {
    this.told = 'tied';
  }

  onRules(): void {
    this.told = 'rules';
  }

  onNews(): void {
    this.newsCount += 1;
  }
}

function record(holder: PartitionRecord['holder'], epoch: number): PartitionRecord {
  return { epoch, term: { number: epoch, nonce: 5 }, holder, members: [], gaveUp: [], left: [], line: [] };
}

async function ask(parts: readonly { readonly port: RegisterPort; readonly sink: Sink }[], call: (port: RegisterPort, sink: Sink) => void): Promise<readonly string[]> {
  for (const { port, sink } of parts) {
    sink.told = '';
    call(port, sink);
  }
  await until(() => parts.every(({ sink }) => sink.told !== ''), 'all are answered');
  return [...new Set(parts.map(({ sink }) => sink.told))];
}

test('sixteen partitions are made, read, changed, tied; a neighbour sees it and takes none while we live', async () => {
  const [first, second] = [await begin('gw-1', 'a'), await begin('gw-2', 'b')];
  assert.equal(first.incarnation.incarnation, 1);
  assert.notEqual(first.incarnation.ordinal, second.incarnation.ordinal);
  const partsOf = ({ bridge }: ProcessIdentity) => Array.from({ length: 16 }, (_, i) => {
    const sink = new Sink();
    return { sink, port: bridge.portOf(`gw-1/${String(i)}`, sink) };
  });
  const [own, theirs] = [partsOf(first), partsOf(second)];
  const { self } = first.bridge;
  assert.deepEqual(await ask(own, (port) => { port.change(1, '0', record(self, 1)); }), ['applied']);
  assert.deepEqual(await ask(own, (port) => { port.read(2); }), ['record']);
  assert.ok(own.every(({ sink }) => sink.stamped?.hasSession === true && sink.stamped.revision === sink.revision));
  assert.deepEqual(await ask(own, (port, { revision }) => { port.tieSession(3, revision); }), ['tied']);
  assert.deepEqual(await ask(own, (port) => { port.readRules(4, '0'); }), ['rules']);
  await until(() => theirs.every(({ sink }) => sink.newsCount > 0), 'the neighbour is told');
  assert.deepEqual(await ask(theirs, (port) => { port.read(1); }), ['record']);
  const taken = record(second.bridge.self, 2);
  assert.deepEqual(await ask(theirs, (port, { stamped }) => { port.change(2, stamped?.revision ?? '', taken, self); }), ['record']);
  await first.end();
  await until(() => !second.bridge.living().has('gw-1'), 'it has ended');
  assert.deepEqual(await ask(theirs, (port, { stamped }) => { port.change(3, stamped?.revision ?? '', taken, self); }), ['applied']);
  const shown = await cluster.ctl('get', '--prefix', '/twinpost/mail/partitions/gw-1/0');
  assert.match(shown, /"holder":\{"gatewayId":"gw-2","incarnation":1\}/);
  await second.end();
});

test('a second process of one id is refused while the first lives', async () => {
  const first = await begin('gw-1', 'a');
  await assert.rejects(begin('gw-1', 'c'), /a process of gateway gw-1 runs on host box-a .*: stop that one/);
  await first.end();
  const next = await begin('gw-1', 'c');
  assert.ok(next.incarnation.incarnation > first.incarnation.incarnation);
  await next.end();
});
