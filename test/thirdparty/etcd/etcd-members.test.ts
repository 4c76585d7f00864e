/** Who of three members of an etcd answers, each asked by itself: dead, standing still, without a majority. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { askMembers, type RegisterMember } from '../../../src/register/etcd/etcd-members.js';
import { until } from '../../process/cluster.js';
import { EtcdCluster } from './etcd-cluster.js';

const BOUND_MS = 30_000;

const three = EtcdCluster.start(3);
after(async () => { await (await three).stop(); });

test('each member of an etcd is asked by itself, and one that has lost the others does not count', async () => {
  const cluster = await three;
  await cluster.isReady();
  const asked = (): Promise<readonly RegisterMember[]> => askMembers({ endpoints: cluster.endpoints, cluster: 'mail' });
  const answers = async (): Promise<readonly boolean[]> => (await asked()).map(({ why }) => why === '');
  await until('all three answer', async () => (await answers()).every(Boolean), BOUND_MS);
  const [first, second, third] = cluster.nodes;
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  first.signal('SIGSTOP');
  await until('it stands still', () => first.isStopped, BOUND_MS);
  await until('the others lead', async () => (await answers()).join() === 'false,true,true', BOUND_MS);
  assert.match((await asked())[0]?.why ?? '', /^no answer for 2 s$/);
  first.signal('SIGCONT');
  await second.kill();
  await third.kill();
  const [alone, dead] = await asked();
  assert.deepEqual([alone?.endpoint, alone?.why === ''], [first.clientUrl, false], 'it has lost the others');
  assert.match(dead?.why ?? '', /ECONNREFUSED/);
});
