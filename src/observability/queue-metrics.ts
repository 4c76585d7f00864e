/**
 * Series of queues, of refused routes, of states of messages, and of the mirrors at each store. Labels are
 * bounded: stores are configured, states are few, queues are those QUEUE_SERIES_MAX that need a look first
 * (copies missing, then length) and "other" for all the rest. Values are read when somebody scrapes.
 */
import { QUEUE_PROBLEMS } from '../admin-api/gateway-answers.js';
import type {
  BusiestAnswer, HopOutageAnswer, HurtingAnswer, OrderInForceAnswer, OutagesAnswer, QueueAnswer,
  RefusedRouteAnswer, StatusAnswer, StoreAnswer,
} from '../admin-api/gateway-answers.js';
import { ORDER_VERBS, PHASES_IN_FORCE } from '../admin-api/queue-orders.js';
import { RULE_VERBS } from '../admin-api/queue-rules.js';
import type { Series } from './series.js';

/** Each queue is eleven series of 7 µs: with 30 queues a scrape stays under 5 ms. */
const QUEUE_SERIES_MAX = 30;

const OTHERS = { queue: 'other', class: 'other', partition: 'other', owner: 'other' };

/** All entries of the gateway in one state. */
export interface StateFigures {
  readonly state: string;
  readonly messages: number;
  readonly bytes: number;
  /** 0 when there is none. */
  readonly oldestAgeSeconds: number;
}

export function exportQueues(series: Series, queues: () => readonly QueueAnswer[]): void {
  const split = splitter();
  const gauge = (
    name: string, help: string, read: (queue: QueueAnswer) => number,
    merge: (a: number, b: number) => number,
  ): void => {
    series.gauges(`queue_${name}`, help, ['queue', 'class', 'partition', 'owner'], () => {
      const { shown, rest } = split(queues());
      const named = shown.map((queue) => {
        const { queue_name: of, queue_class: queueClass, partition, owner } = queue;
        return [{ queue: of, class: queueClass, partition, owner }, read(queue)] as const;
      });
      return rest.length === 0
        ? named : [...named, [OTHERS, rest.map(read).reduce((a, b) => merge(a, b))] as const];
    });
  };
  const plus = (a: number, b: number): number => a + b;
  gauge('messages', 'Messages in a queue, in every state', (queue) => queue.messages, plus);
  gauge('bytes', 'Bytes of the messages in a queue', (queue) => queue.bytes, plus);
  gauge('active_messages', 'Messages being delivered', (queue) => queue.active, plus);
  gauge('deferred_messages', 'Messages that wait for another attempt', (queue) => queue.deferred, plus);
  gauge('held_messages', 'Messages that wait for an operator', (queue) => queue.held, plus);
  const ageHelp = 'Age of the oldest message in a queue';
  gauge('oldest_age_seconds', ageHelp, (queue) => queue.oldest_age_seconds ?? 0, Math.max);
  const inSyncHelp = 'Mirrors in sync of the partition of a queue; of others the fewest';
  gauge('copies_in_sync', inSyncHelp, (queue) => queue.copies_in_sync, Math.min);
  gauge('epoch', 'Epoch of the record of the partition of a queue', (queue) => queue.epoch, Math.max);
  const lagHelp = 'Changes that the mirror farthest behind has not acknowledged';
  gauge('lag_messages', lagHelp, (queue) => queue.lag_messages, Math.max);
  gauge('lag_bytes', 'Bytes of those', (queue) => queue.lag_bytes, Math.max);
  const refillHelp = 'Share of a refill that is sent, 1 when none is under way';
  gauge('resync_progress', refillHelp, (queue) => queue.refill_share ?? 1, Math.min);
  series.gauge('queues', 'Queues that exist', () => queues().length);
}

interface Split {
  readonly shown: readonly QueueAnswer[];
  readonly rest: readonly QueueAnswer[];
}

/** Sorted once a scrape, not once a series. */
function splitter(): (queues: readonly QueueAnswer[]) => Split {
  let of: readonly QueueAnswer[] | undefined;
  let parts: Split = { shown: [], rest: [] };
  return (queues) => {
    if (queues === of) return parts;
    const sorted = [...queues].sort((a, b) => a.copies_in_sync - b.copies_in_sync || b.messages - a.messages);
    of = queues;
    parts = { shown: sorted.slice(0, QUEUE_SERIES_MAX), rest: sorted.slice(QUEUE_SERIES_MAX) };
    return parts;
  };
}

export function exportStates(series: Series, states: () => readonly StateFigures[]): void {
  const gauge = (name: string, help: string, read: (state: StateFigures) => number): void => {
    series.gauges(`state_${name}`, help, ['state'], () =>
      states().map((one) => [{ state: one.state }, read(one)]));
  };
  gauge('messages', 'Messages by state', (state) => state.messages);
  gauge('bytes', 'Bytes of contents by state', (state) => state.bytes);
  const ageHelp = 'Age of the oldest message by state, exact to half a minute';
  gauge('oldest_age_seconds', ageHelp, (state) => state.oldestAgeSeconds);
}

/** A series for each: routes are configured, so that no stranger makes more of them. */
export function exportRefusals(series: Series, refused: () => readonly RefusedRouteAnswer[]): void {
  const help =
    '1 for each configured route whose new mail is refused, with the reason; no series while it is taken';
  series.gauges('route_refused', help, ['route', 'reason'], () =>
    refused().map(({ route, reason }) => [{ route, reason }, 1]));
}

export function exportRules(
  series: Series, status: () => Pick<StatusAnswer, 'rules' | 'orders_left' | 'orders'>,
): void {
  series.gauges('queue_rules', 'Standing rules of operators over queues, by what they do', ['verb'], () =>
    RULE_VERBS.map((verb) => [{ verb }, (status().rules ?? []).filter((rule) => rule.verb === verb).length]));
  const leftHelp = 'Orders of operators that wait in the register for mail';
  series.gauge('orders_left', leftHelp, () => status().orders_left ?? 0);
  exportOrders(series, () => status().orders ?? []);
}

/** A series for each verb and phase, so that an alarm finds its 0. */
function exportOrders(series: Series, orders: () => readonly OrderInForceAnswer[]): void {
  const help = 'Orders of operators over many messages that are not over';
  series.gauges('orders_in_force', help, ['verb', 'phase'], () => {
    const all = orders();
    return ORDER_VERBS.flatMap((verb) => PHASES_IN_FORCE.map((phase) =>
      [{ verb, phase }, all.filter((one) => one.verb === verb && one.phase === phase).length] as const));
  });
  const sums = (name: string, sumHelp: string, read: (order: OrderInForceAnswer) => number): void => {
    series.gauges(name, sumHelp, ['verb'], () => {
      const all = orders();
      return ORDER_VERBS.map((verb) =>
        [{ verb }, all.reduce((sum, one) => sum + (one.verb === verb ? read(one) : 0), 0)] as const);
    });
  };
  sums('orders_matched_messages', 'Messages that those mean here', ({ matched }) => matched);
  sums('orders_done_messages', 'Of those, messages that it was done to', ({ done }) => done);
  sums('orders_in_grace_messages', 'Messages that are ended when a grace is over, if nobody cancels it',
    ({ phase, matched }) => (phase === 'grace' ? matched : 0));
}

/**
 * A series for each next hop that is shown by status: a few at most, and all of them configured, so that no
 * stranger makes more.
 */
export function exportOutages(
  series: Series, status: () => Pick<StatusAnswer, 'outages' | 'memory_limit_bytes'>,
): void {
  const gauge = (name: string, help: string, read: (hop: HopOutageAnswer) => number): void => {
    series.gauges(`next_hop_${name}`, help, ['relay'], () =>
      (status().outages?.next_hops ?? []).map((hop) => [{ relay: hop.relay }, read(hop)]));
  };
  const downHelp = 'Since when a next hop of the configuration can not be reached; no series while it can';
  gauge('down_since_timestamp_seconds', downHelp, ({ since }) => since);
  gauge('waiting_messages', 'Messages that would be sent there now', ({ waiting }) => waiting);
  gauge('next_try_timestamp_seconds', 'When it is tried again; 0: now', ({ next_try: at }) => at ?? 0);
  gauge('memory_share', 'Part of the memory limit that mail for it has', ({ bytes = 0 }) =>
    bytes / Math.max(1, status().memory_limit_bytes));
}

export function exportHurting(series: Series, hurting: () => HurtingAnswer): void {
  const help = 'Queues whose mail does not get on although their next hop answers, by why';
  series.gauges('queues_hurting', help, ['problem'], () =>
    QUEUE_PROBLEMS.map((problem) => [{ problem }, hurting().counts[problem] ?? 0]));
}

export function exportBusiest(series: Series, busiest: () => BusiestAnswer): void {
  const help = 'Part of the messages accepted in the last minute or two that one of them submitted, at most';
  series.gauges('busiest_share', help, ['party'], () => {
    const { messages, clients, senders, users } = busiest();
    return ([['client', clients], ['sender', senders], ['user', users]] as const)
      .map(([party, [first]]) => [{ party }, first === undefined ? 0 : first.messages / messages]);
  });
}

export function exportHooks(series: Series, failing: () => OutagesAnswer['hooks']): void {
  const help = '1 for each hook that gives no verdict; no series while it does';
  series.gauges('hook_failing', help, ['hook'], () => failing().map(({ hook }) => [{ hook }, 1]));
}

export function exportStores(series: Series, stores: () => readonly StoreAnswer[]): void {
  const gauge = (name: string, help: string, read: (store: StoreAnswer) => number): void => {
    series.gauges(name, help, ['store'], () => stores().map((one) => [{ store: one.store }, read(one)]));
  };
  gauge('store_up', '1 when a link to the store is up', (store) => Number(store.up));
  const drainedHelp = '1 when an operator has drained the store: no mirror goes there';
  gauge('store_drained', drainedHelp, (store) => Number(store.drained));
  const lagHelp =
    'Changes that mirrors at a store have not acknowledged, and messages that refills still have to send';
  gauge('mirror_lag_messages', lagHelp, (store) => store.lag_messages);
  gauge('mirror_lag_bytes', 'Bytes of those; at most one round trip too many', (store) => store.lag_bytes);
  const leftHelp = 'Messages that refills at a store still have to send';
  gauge('resync_messages_left', leftHelp, (store) => store.refill_messages);
  gauge('resync_bytes_left', 'Bytes that refills at a store still have to send', (store) =>
    store.refill_bytes);
  gauge('store_credit_bytes', 'Bytes that a store still takes from this gateway', (store) =>
    store.credit_bytes);
  gauge('lease_left_seconds', 'What is left of the lease at a store', (store) => store.lease_left_ms / 1000);
  const syncHelp = 'Partitions mirrored at a store, by sync state';
  series.gauges('mirror_partitions', syncHelp, ['store', 'state'], () =>
    stores().flatMap(({ store, partitions_sync: sync, partitions_resync: resync, partitions_ng: ng }) => [
      [{ store, state: 'sync' }, sync], [{ store, state: 'resync' }, resync], [{ store, state: 'ng' }, ng],
    ]));
  series.counters('failovers', 'Times that another path to a store took over', ['store'], () =>
    stores().map(({ store, failovers }) => [{ store }, failovers]));
}
