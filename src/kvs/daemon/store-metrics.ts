/** All metrics of a store, read from counters and tables when somebody scrapes. */
import type { Registry } from 'prom-client';
import { exportConfiguration } from '../../observability/configuration-in-force.js';
import { exportLogLosses, logAnswerOf } from '../../observability/log-losses.js';
import { exportCertificateEnds } from '../../observability/reception-metrics.js';
import { Series } from '../../observability/series.js';
import { closeReasonName, declinedReasonName, refusalReasonName } from '../../protocol/reasons.js';
import type { RunningStore } from './running-store.js';

export function storeMetrics(running: RunningStore): Registry {
  const series = new Series('twinpost_store');
  const { store, counters } = running;
  series.gauge('entries', 'Entries of all copies.', () => store.entries.count);
  series.gauge('partitions', 'Copies of partitions.', () => store.partitions.count);
  series.gauge('shared_bodies', 'Bodies that several entries may name.', () => store.shared.count);
  series.gauge(
    'config_start_timestamp_seconds', 'When the configuration was read that the store runs by.',
    () => running.configuration?.since ?? 0,
  );
  exportConfiguration(series, () => running.configuration);
  series.gauge('connections', 'Open connections of gateways.', () => running.connections.size);
  series.gauge(
    'memory_used_bytes', 'Memory that counts against the limit: segments and bookkeeping.',
    () => store.admission.usedBytes,
  );
  series.gauge(
    'memory_kept_bytes', 'Empty blocks kept for the next burst, beside what is used.',
    () => store.segments.stockBytes,
  );
  series.gauge('memory_live_bytes', 'Bytes of records in segments.', () => store.segments.liveBytes);
  series.gauge('memory_granted_bytes', 'Credit that gateways hold unused.', () =>
    store.admission.grantedBytes);
  series.gauge('memory_limit_bytes', 'The limit of the configuration.', () => store.admission.limitBytes);
  series.gauge(
    'memory_accept_bytes', 'New mail is granted no credit above this.', () => store.admission.acceptBytes,
  );
  series.counter('frames_in', 'Frames read.', () => counters.framesIn);
  series.counter('bytes_in', 'Bytes read.', () => counters.bytesIn);
  series.counter('sections', 'Sections of CHANGES seen.', () => counters.sections);
  series.counter('changes', 'Numbered changes seen.', () => counters.changes);
  series.counter('acks', 'Acknowledgements sent.', () => counters.acks);
  series.counter('blocks', 'Blocks pulled.', () => counters.blocks);
  series.counter('block_bytes', 'Payload bytes in blocks.', () => counters.blockBytes);
  series.counter('connections_opened', 'Connections accepted.', () => counters.connections);
  series.counter('fences', 'Terms accepted by FENCE.', () => counters.fences);
  const byReason = (
    name: string, help: string, counts: readonly number[], nameOf: (reason: number) => string,
  ): void => {
    series.counters(name, help, ['reason'], () =>
      [...counts.entries()].flatMap(([reason, count]) =>
        (count > 0 ? [[{ reason: nameOf(reason) }, count]] : [])));
  };
  byReason('refusals', 'Requests refused, by reason.', counters.refusals, refusalReasonName);
  byReason('declines', 'Terms declined, by reason.', counters.declines, declinedReasonName);
  byReason('closes', 'Connections closed by this store, by reason.', counters.closes, closeReasonName);
  exportCertificateEnds(series, () => running.certificateEnds);
  const { logLosses } = running;
  exportLogLosses(series, () => (logLosses === undefined ? undefined : logAnswerOf(logLosses)));
  return series.registry;
}
