/** The contract of the register on real etcd: one node, and three. */
import { after } from 'node:test';

import { contract } from '../../unit/register/contract.js';
import { EtcdCluster } from './etcd-cluster.js';

for (const count of [1, 3]) {
  const started = EtcdCluster.start(count).then(async (cluster) => {
    await cluster.isReady();
    return cluster;
  });
  after(async () => {
    await (await started).stop();
  });
  contract(`etcd, ${count === 1 ? 'one node' : 'three nodes'}`, async () => (await started).world());
}
