/** Lets the metrics read the gateway through its operators' view: one reading a scrape, not one a series. */
import type { GaugeSource } from '../../observability/gateway-metrics.js';
import type { StateFigures } from '../../observability/queue-metrics.js';
import type { GatewayView } from './view.js';

/** A scrape asks for some hundred series within a few milliseconds; they should agree with each other. */
const SAME_SCRAPE_MS = 50;

export interface GaugePorts {
  readonly view: GatewayView & { states(): readonly StateFigures[] };
  nowMs(): number;
}

export function gaugeSource({ view, nowMs }: GaugePorts): GaugeSource {
  let readAtMs = -Infinity;
  const read = () => ({ status: view.status(), queues: view.queues('', Number.MAX_SAFE_INTEGER).rows });
  let last: ReturnType<typeof read> | undefined;
  const latest = (): ReturnType<typeof read> => {
    const now = nowMs();
    if (last !== undefined && now - readAtMs < SAME_SCRAPE_MS) return last;
    readAtMs = now;
    last = read();
    return last;
  };
  return {
    status: () => latest().status,
    queues: () => latest().queues,
    states: () => view.states(),
  };
}
