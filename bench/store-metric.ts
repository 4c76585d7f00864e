/** One number of a store's /metrics. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Cluster } from '../test/process/cluster.js';
import { storeId } from '../test/process/cluster-config.js';

/** `name` without the prefix that all of a store's metrics have. */
export async function storeMetric(cluster: Cluster, store: number, name: string): Promise<number> {
  const file = JSON.parse(readFileSync(join(cluster.folder, `${storeId(store)}.yaml`), 'utf8')) as { store: { admin: { listen: string } } };
  const text = await (await fetch(`http://${file.store.admin.listen}/metrics`)).text();
  return metricIn(text, `twinpost_store_${name}`);
}

/** The value of a metric without labels in Prometheus' text; NaN when it is not there. */
export function metricIn(text: string, name: string): number {
  const line = text.split('\n').find((each) => each.startsWith(`${name} `));
  return line === undefined ? NaN : Number(line.slice(name.length + 1));
}
