/** Of a connection to a next hop, between it and whoever asked for it: counts it when it does not come up. */
import type { GatewayMetrics } from '../../observability/gateway-metrics.js';
import type { ConnectionHandlers } from '../../platform/transport.js';

export class CountedHandlers implements ConnectionHandlers {
  readonly #handlers: ConnectionHandlers;
  readonly #metrics: Pick<GatewayMetrics, 'connectionsFailed'>;
  #isOpen = false;

  constructor(handlers: ConnectionHandlers, metrics: Pick<GatewayMetrics, 'connectionsFailed'>) {
    this.#handlers = handlers;
    this.#metrics = metrics;
  }

  onOpen(): void {
    this.#isOpen = true;
    this.#handlers.onOpen();
  }

  onData(bytes: Uint8Array): void { this.#handlers.onData(bytes); }
  onDrain(): void { this.#handlers.onDrain(); }

  onClose(reason: string): void {
    if (!this.#isOpen) this.#metrics.connectionsFailed += 1;
    this.#handlers.onClose(reason);
  }
}
