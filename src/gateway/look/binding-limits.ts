/**
 * What limits mail of one queue here, for `explain`: memory and readiness at reception; rules of operators;
 * back-off of the next hop; the head of a strict queue; the concurrency of the route; connections, to the
 * hosts of a domain, to one address, being set up, and in all; the lease.
 * Each says whether it binds: whether mail waits or is refused for it at this moment. Why one message waits
 * is waiting-reason.ts.
 */
import type { LimitAnswer, LimitsAnswer } from '../../admin-api/limits.js';
import { targetText } from '../../admin-api/queue-rules.js';
import { formatMessageId } from '../../base/text-id.js';
import { formatBytes, formatCount, formatDuration } from '../../base/units.js';
import type { MailQueue } from '../queue/mail-queue.js';
import { MessageView } from './message-view.js';
import { connectingText, fullText, outageText } from './waiting-reason.js';
import type { ReasonPorts } from './waiting-reason.js';

export interface LimitsPorts extends ReasonPorts {
  /** To all next hops. */
  connections(): { readonly open: number; readonly max: number };
}

const ALL = 'delivery.connections';

/** `to`: an address or a domain whose mail is asked for alone; '' all. */
export function bindingLimits(name: string, to: string, ports: LimitsPorts): LimitsAnswer {
  const queues = ports.core.registry.byName(name);
  const limits = [
    memoryLimit(ports), ...receptionLimits(name, ports), ...ruleLimits(name, to, queues, ports),
    ...queues.flatMap((queue) => queueLimits(queue, ports)), connectionLimit(queues, ports),
  ];
  const [binding, others] = [limits.filter(({ binds }) => binds), limits.filter(({ binds }) => !binds)];
  const messages = queues.reduce((sum, { length }) => sum + length, 0);
  return { queue: name, messages, limits: [...binding, ...others] };
}

/** Of new mail. */
function memoryLimit({ core: { memory } }: LimitsPorts): LimitAnswer {
  const used = `${formatBytes(memory.usedBytes)} of ${formatBytes(memory.limitBytes)} used`;
  const text = `${used}, new mail is refused above ${formatBytes(memory.acceptBytes)}`;
  return { limit: 'memory', binds: !memory.admits(0), text };
}

function receptionLimits(name: string, { core: { readiness } }: LimitsPorts): LimitAnswer[] {
  return readiness.refused.filter(({ route: { queueName } }) => queueName === name).map(({ reason }) =>
    ({ limit: 'reception', binds: true, text: `new mail of this route is refused: ${reason}` }));
}

function ruleLimits(
  name: string, to: string, queues: readonly MailQueue[], { core: { rules, names } }: LimitsPorts,
): LimitAnswer[] {
  const route = queues.length === 0 ? names.routeOfQueue(name, 'mail') : undefined;
  // One that has no mail yet is known by its route alone: nobody has asked for its hosts.
  const meant = route === undefined ? queues : [{ name, route, mxHosts: [] }];
  return rules.all().flatMap(({ id, rule }): LimitAnswer[] => {
    const shares = meant.map((queue) => rules.shareOf(rule, queue, to));
    const binds = shares.includes('all');
    if (!binds && !shares.includes('some')) return [];
    const { verb, who, reason } = rule;
    const what = binds ? '' : `; may mean mail of it: ${targetText(rule)}`;
    return [{ limit: 'rule', binds, text: `${verb} by ${who} (${id}): ${reason}${what}` }];
  });
}

/** Of what waits in it. */
function queueLimits(queue: MailQueue, ports: LimitsPorts): LimitAnswer[] {
  const { route: { concurrency, ordering }, inFlightCount: active, partition } = queue;
  const ready = readyOf(queue);
  const limits = [...orderLimits(queue, ports), ...retryLimits(queue, ports)];
  const outage = outageText(queue, ports);
  if (outage !== '') limits.push({ limit: 'next hop', binds: true, text: outage });
  const hop = ports.nextHopOf?.(queue);
  if (hop?.connecting !== undefined && outage === '') {
    limits.push({ limit: 'next hop', binds: hop.waiting > 0, text: connectingText(hop.connecting) });
  }
  const isStrict = ordering === 'strict';
  const most = isStrict ? 1 : concurrency;
  const fullBy = outage === '' ? hop?.fullBy : undefined;
  // That of all next hops is told by itself.
  if (fullBy !== undefined && fullBy.key !== ALL) {
    limits.push({ limit: 'connections', binds: ready > 0 && active < most, text: fullText(fullBy) });
  }
  const of = `${formatCount(active)} of ${formatCount(most)} in delivery`;
  const connections = hop === undefined ? '' : `, by ${formatCount(hop.connections)} connections`;
  const text = `${of}${isStrict ? ' (a strict queue)' : ''}${connections}, ${formatCount(ready)} ready`;
  limits.push({ limit: 'concurrency', binds: active >= most && ready > 0, text });
  if (!partition.mayDeliver(ports.clock.nowMs())) {
    const lease = `no lease at every copy that counts of ${partition.name}`;
    limits.push({ limit: 'lease', binds: true, text: lease });
  }
  return limits;
}

/** What stands behind the head that holds a strict queue waits for nothing else. */
function readyOf({ isBlocked, readyCount }: MailQueue): number {
  return isBlocked ? 0 : readyCount;
}

/** Of a strict queue whose first message was put off. */
function orderLimits(queue: MailQueue, { core: { entries }, clock }: LimitsPorts): LimitAnswer[] {
  const { isBlocked, firstReady: head, blockedUntilMs: untilMs, lastError } = queue;
  if (!isBlocked || !queue.isBlockedBy(head) || untilMs === Infinity) return [];
  const id = formatMessageId(entries.table.messageId(head));
  const again = formatDuration(Math.max(0, Math.round(untilMs - clock.nowMs())));
  const said = lastError === '' ? '' : `: ${lastError}`;
  return [{ limit: 'order', binds: true, text: `its first message ${id} is tried again in ${again}${said}` }];
}

/** Of what was put off. */
function retryLimits(queue: MailQueue, ports: LimitsPorts): LimitAnswer[] {
  const { deferredCount, delayedCount, length, lastError } = queue;
  const deferred = deferredCount - delayedCount;
  if (deferred === 0) return [];
  const next = new MessageView(ports).nextTryOf(queue);
  const inMs = next === null ? undefined : Math.max(0, next * 1000 - ports.clock.wallMs());
  const when = inMs === undefined ? '' : `, the first is tried again in ${formatDuration(Math.round(inMs))}`;
  const said = lastError === '' ? '' : `: ${lastError}`;
  const text = `${formatCount(deferred)} of ${counted(length)} deferred${when}${said}`;
  return [{ limit: 'retries', binds: true, text }];
}

function counted(messages: number): string {
  return `${formatCount(messages)} ${messages === 1 ? 'message is' : 'messages are'}`;
}

function connectionLimit(queues: readonly MailQueue[], { connections }: LimitsPorts): LimitAnswer {
  const { open, max } = connections();
  const waits = queues.some((queue) => readyOf(queue) > 0);
  const text = `${formatCount(open)} of ${formatCount(max)} connections to all next hops (${ALL})`;
  return { limit: 'connections', binds: waits && open >= max, text };
}
