/**
 * All metrics of a store. Values are read from counters and tables when somebody asks (collect), never pushed
 * on the hot path; a registry belongs to one store, not to the process.
 */

import { Counter, Gauge, Registry } from 'prom-client';
import { closeReasonName, declinedReasonName, refusalReasonName } from '../../protocol/reasons.js';
import type { RunningStore } from './running-store.js';

export function storeMetrics(running: RunningStore): Registry {
  const registry = new Registry();
  const { store, counters } = running;
  const gauge = (name: string, help: string, read: () => number): void => {
    const metric: Gauge = new Gauge(
      { name: `twinpost_store_${name}`, help, registers: [registry], collect: () => { metric.set(read()); } }
    );
  };
  const counter = (name: string, help: string, read: () => number): void => {
    const metric: Counter = new Counter({
      name: `twinpost_store_${name}_total`, help, registers: [registry],
      collect: () => {
        metric.reset();
        metric.inc(read());
      },
    });
  };
  gauge('entries', 'Entries of all copies.', () => store.entries.count);
  gauge('partitions', 'Copies of partitions.', () => store.partitions.count);
  gauge('shared_bodies', 'Bodies that several entries may name.', () => store.shared.count);
  gauge('connections', 'Open connections of gateways.', () => running.connections.size);
  gauge(
    'memory_used_bytes', 'Memory that counts against the limit: segments and bookkeeping.',
    () => store.admission.usedBytes,
  );
  gauge(
    'memory_kept_bytes', 'Empty blocks kept for the next burst, beside what is used.',
    () => store.segments.stockBytes,
  );
  gauge('memory_live_bytes', 'Bytes of records in segments.', () => store.segments.liveBytes);
  gauge('memory_granted_bytes', 'Credit that gateways hold unused.', () => store.admission.grantedBytes);
  gauge('memory_limit_bytes', 'The limit of the configuration.', () => store.admission.limitBytes);
  gauge(
    'memory_accept_bytes', 'New mail is granted no credit above this.', () => store.admission.acceptBytes,
  );
  counter('frames_in', 'Frames read.', () => counters.framesIn);
  counter('bytes_in', 'Bytes read.', () => counters.bytesIn);
  counter('sections', 'Sections of CHANGES seen.', () => counters.sections);
  counter('changes', 'Numbered changes seen.', () => counters.changes);
  counter('acks', 'Acknowledgements sent.', () => counters.acks);
  counter('blocks', 'Blocks pulled.', () => counters.blocks);
  counter('block_bytes', 'Payload bytes in blocks.', () => counters.blockBytes);
  counter('connections_opened', 'Connections accepted.', () => counters.connections);
  counter('fences', 'Terms accepted by FENCE.', () => counters.fences);
  byReason(registry, 'refusals', 'Requests refused, by reason.', counters.refusals, refusalReasonName);
  byReason(registry, 'declines', 'Terms declined, by reason.', counters.declines, declinedReasonName);
  byReason(
    registry, 'closes', 'Connections closed by this store, by reason.', counters.closes, closeReasonName,
  );
  return registry;
}

function byReason(
  registry: Registry, name: string, help: string, counts: readonly number[],
  nameOf: (reason: number) => string,
): void {
  const metric: Counter<'reason'> = new Counter({
    name: `twinpost_store_${name}_total`, help, labelNames: ['reason'], registers: [registry],
    collect: () => {
      metric.reset();
      counts.forEach((count, reason) => { if (count > 0) metric.inc({ reason: nameOf(reason) }, count); });
    },
  });
}
