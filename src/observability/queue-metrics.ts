/**
 * Series of queues, of refused routes, of states of messages, and of the mirrors at each store. Labels are bounded: stores are
 * configured, states are few, queues are those QUEUE_SERIES_MAX that need a look first (copies missing, then
 * length) and "other" for all the rest. Values are read when somebody scrapes.
 */
import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import type { QueueFigures, StoreFigures } from './queue-figures.js';

/** Each queue is eleven series of 7 µs: with 30 queues a scrape stays under 5 ms. */
const QUEUE_SERIES_MAX = 30;

export interface QueueGauges extends QueueFigures {
  readonly name: string;
  readonly queueClass: string;
  /** Where this part of it lives, and whose that is: a queue has mail in more than one partition after a detour, reports have in many. */
  readonly partition: string;
  readonly owner: string;
  /** Share of a refill that is sent; 1 when none is under way. */
  readonly refillShare: number;
  /** Seconds since the oldest message came, 0 when empty. */
  readonly oldestAgeSeconds: number;
}

export interface StoreGauges extends StoreFigures {
  readonly store: string;
  readonly leaseLeftSeconds: number;
}

/** A configured route whose new mail is refused. */
export interface RouteGauges {
  readonly route: string;
  readonly reason: string;
}

/** All entries of the gateway in one state. */
export interface StateGauges {
  readonly state: string;
  readonly messages: number;
  readonly bytes: number;
  /** 0 when there is none. */
  readonly oldestAgeSeconds: number;
}

export function exportQueues(registry: Registry, queues: () => readonly QueueGauges[]): void {
  const split = splitter();
  const gauge = (name: string, help: string, read: (queue: QueueGauges) => number, merge: (a: number, b: number) => number): void => {
    new Gauge({
      name: `twinpost_queue_${name}`,
      help,
      labelNames: ['queue', 'class', 'partition', 'owner'],
      registers: [registry],
      collect() {
        this.reset();
        const { shown, rest } = split(queues());
        for (const queue of shown) this.set({ queue: queue.name, class: queue.queueClass, partition: queue.partition, owner: queue.owner }, read(queue));
        if (rest.length > 0) this.set({ queue: 'other', class: 'other', partition: 'other', owner: 'other' }, rest.map(read).reduce((a, b) => merge(a, b)));
      },
    });
  };
  const plus = (a: number, b: number): number => a + b;
  gauge('messages', 'Messages in a queue, in every state', (queue) => queue.messages, plus);
  gauge('bytes', 'Bytes of the messages in a queue', (queue) => queue.bytes, plus);
  gauge('active_messages', 'Messages being delivered', (queue) => queue.active, plus);
  gauge('deferred_messages', 'Messages that wait for another attempt', (queue) => queue.deferred, plus);
  gauge('held_messages', 'Messages that wait for an operator', (queue) => queue.held, plus);
  gauge('oldest_age_seconds', 'Age of the oldest message in a queue', (queue) => queue.oldestAgeSeconds, Math.max);
  gauge('copies_in_sync', 'Mirrors in sync of the partition of a queue; of others the fewest', (queue) => queue.inSync, Math.min);
  gauge('epoch', 'Epoch of the record of the partition of a queue', (queue) => queue.epoch, Math.max);
  gauge('lag_messages', 'Changes that the mirror farthest behind has not acknowledged', (queue) => queue.lagMessages, Math.max);
  gauge('lag_bytes', 'Bytes of those', (queue) => queue.lagBytes, Math.max);
  gauge('resync_progress', 'Share of a refill that is sent, 1 when none is under way', (queue) => queue.refillShare, Math.min);
  new Gauge({ name: 'twinpost_queues', help: 'Queues that exist', registers: [registry], collect() { this.set(queues().length); } });
}

/** Sorted once a scrape, not once a series. */
function splitter(): (queues: readonly QueueGauges[]) => { readonly shown: readonly QueueGauges[]; readonly rest: readonly QueueGauges[] } {
  let of: readonly QueueGauges[] | undefined;
  let parts: { readonly shown: readonly QueueGauges[]; readonly rest: readonly QueueGauges[] } = { shown: [], rest: [] };
  return (queues) => {
    if (queues === of) return parts;
    const sorted = [...queues].sort((a, b) => a.inSync - b.inSync || b.messages - a.messages);
    of = queues;
    parts = { shown: sorted.slice(0, QUEUE_SERIES_MAX), rest: sorted.slice(QUEUE_SERIES_MAX) };
    return parts;
  };
}

export function exportStates(registry: Registry, states: () => readonly StateGauges[]): void {
  const gauge = (name: string, help: string, read: (state: StateGauges) => number): void => {
    new Gauge({
      name: `twinpost_${name}`,
      help,
      labelNames: ['state'],
      registers: [registry],
      collect() {
        for (const state of states()) this.set({ state: state.state }, read(state));
      },
    });
  };
  gauge('state_messages', 'Messages by state', (state) => state.messages);
  gauge('state_bytes', 'Bytes of contents by state', (state) => state.bytes);
  gauge('state_oldest_age_seconds', 'Age of the oldest message by state, exact to half a minute', (state) => state.oldestAgeSeconds);
}

/** A series for each: routes are configured, so that no stranger makes more of them. */
export function exportRefusals(registry: Registry, refused: () => readonly RouteGauges[]): void {
  new Gauge({
    name: 'twinpost_route_refused',
    help: '1 for each configured route whose new mail is refused, with the reason; no series while it is taken',
    labelNames: ['route', 'reason'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { route, reason } of refused()) this.set({ route, reason }, 1);
    },
  });
}

export function exportStores(registry: Registry, stores: () => readonly StoreGauges[]): void {
  const gauge = (name: string, help: string, read: (store: StoreGauges) => number): void => {
    new Gauge({
      name: `twinpost_${name}`,
      help,
      labelNames: ['store'],
      registers: [registry],
      collect() {
        for (const store of stores()) this.set({ store: store.store }, read(store));
      },
    });
  };
  gauge('store_up', '1 when a link to the store is up', (store) => Number(store.up));
  gauge('store_drained', '1 when an operator has drained the store: no mirror goes there', (store) => Number(store.drained));
  gauge('mirror_lag_messages', 'Changes that mirrors at a store have not acknowledged, and messages that refills still have to send', (store) => store.lagMessages);
  gauge('mirror_lag_bytes', 'Bytes of those; at most one round trip too many', (store) => store.lagBytes);
  gauge('resync_messages_left', 'Messages that refills at a store still have to send', (store) => store.refillMessages);
  gauge('resync_bytes_left', 'Bytes that refills at a store still have to send', (store) => store.refillBytes);
  gauge('store_credit_bytes', 'Bytes that a store still takes from this gateway', (store) => store.creditBytes);
  gauge('lease_left_seconds', 'What is left of the lease at a store', (store) => store.leaseLeftSeconds);
  new Gauge({
    name: 'twinpost_mirror_partitions',
    help: 'Partitions mirrored at a store, by sync state',
    labelNames: ['store', 'state'],
    registers: [registry],
    collect() {
      for (const store of stores()) {
        this.set({ store: store.store, state: 'sync' }, store.partitionsSync);
        this.set({ store: store.store, state: 'resync' }, store.partitionsResync);
        this.set({ store: store.store, state: 'ng' }, store.partitionsNg);
      }
    },
  });
  new Counter({
    name: 'twinpost_failovers_total',
    help: 'Times that another path to a store took over',
    labelNames: ['store'],
    registers: [registry],
    collect() {
      this.reset();
      for (const store of stores()) this.inc({ store: store.store }, store.failovers);
    },
  });
}
