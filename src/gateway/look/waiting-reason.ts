/**
 * Why a message is still here, in one line: the one thing that keeps it, as operators would ask for it.
 *
 *   incoming, held, ending   its state says it
 *   deferred                 an operator's delay, a suspension, or its next attempt
 *   active                   it is being delivered; or nobody answers there
 *   queued                   the first of: suspended, behind older mail, behind the head of a strict queue,
 *                            next hop down, no lease, content at the stores, an order in its grace or under
 *                            way, concurrency, a partition that comes back, a next hop that does not say a
 *                            word, no further connection to it
 */
import { formatCount, formatDuration } from '../../base/units.js';
import type { Clock } from '../../platform/ports.js';
import type { GatewayCore } from '../daemon/core.js';
import type { FullLimit } from '../outbound/connection-account.js';
import type { ConnectingState, NextHopState } from '../outbound/connection-pool.js';
import { EntryState } from '../queue/entry-table.js';
import type { MailQueue } from '../queue/mail-queue.js';

const KEPT_BACK = 'an order keeps it back, and ends it or leads it elsewhere if nobody takes that back '
  + 'in its grace: twinpost queue orders';

export interface ReasonPorts {
  readonly clock: Clock;
  readonly core: GatewayCore;
  /** What is known of where mail of the queue goes; left out where nothing is delivered. */
  nextHopOf?(queue: MailQueue): NextHopState | undefined;
}

export function whyItIsHere(queue: MailQueue, row: number, ports: ReasonPorts): string {
  const { core } = ports;
  switch (core.entries.table.state(row)) {
    case EntryState.STORING: return 'not all copies that count have it yet';
    case EntryState.HELD: return `it is held: ${core.holds.reasonOf(queue, row)}`;
    case EntryState.REPORTING: return 'the report about it is being made';
    case EntryState.IN_FLIGHT: return outageText(queue, ports) || 'it is being delivered';
    case EntryState.DEFERRED: return delayText(row, ports) || suspensionText(queue, ports)
      || 'it waits for its next attempt';
    default: return whyNotStarted(queue, row, ports);
  }
}

function whyNotStarted(queue: MailQueue, row: number, ports: ReasonPorts): string {
  const { core, clock } = ports;
  const { partition, route: { ordering, concurrency }, inFlightCount } = queue;
  const suspension = suspensionText(queue, ports);
  if (suspension !== '') return suspension;
  if (queue.isBehind) return 'older mail of its queue, in another partition, goes first';
  if (partition.isLeaving || queue.isHeldBack) return 'its partition goes to another gateway';
  if (queue.isBlockedBy(row)) return 'it holds its strict queue, and waits for its next attempt';
  if (queue.isBlocked) return 'the first message of its strict queue is tried again before it';
  const outage = outageText(queue, ports);
  if (outage !== '') return outage;
  if (!partition.mayDeliver(clock.nowMs())) return 'this gateway has no lease at every copy that counts';
  if (core.entries.isAbsent(row)) return 'its content is still at the stores, and comes when memory allows';
  if (partition.isUnderOrder && core.orders.keepsBack(queue, row)) return KEPT_BACK;
  if (ordering === 'strict' && inFlightCount > 0) return 'the message before it is being delivered';
  if (inFlightCount >= concurrency) {
    return `its queue has ${formatCount(inFlightCount)} in delivery, as many as its route lets`;
  }
  if (partition.isRecovering) return 'its partition still comes back: what was there before goes first';
  const { connecting, fullBy } = ports.nextHopOf?.(queue) ?? {};
  if (connecting !== undefined) return connectingText(connecting);
  if (fullBy !== undefined) return `it waits for a connection: ${fullText(fullBy)}`;
  return `its turn comes: ${formatCount(queue.readyCount)} ready in its queue`;
}

function delayText(row: number, { core }: ReasonPorts): string {
  const delay = core.holds.delayOf(row);
  return delay === undefined ? '' : `it is delayed until ${timeOf(delay.untilWallMs)}: ${delay.why}`;
}

/** To the second, in UTC. */
function timeOf(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 19)}Z`;
}

function suspensionText(queue: MailQueue, { core }: ReasonPorts): string {
  const rule = queue.isSuspended ? core.rules.suspending(queue) : undefined;
  return rule === undefined ? '' : `its queue is suspended by ${rule.who}: ${rule.reason}`;
}

export function outageText(queue: MailQueue, { clock, nextHopOf }: ReasonPorts): string {
  const hop = nextHopOf?.(queue);
  if (hop?.downSinceWallMs === undefined) return '';
  const downMs = Math.max(0, clock.wallMs() - hop.downSinceWallMs);
  const again = hop.connecting === undefined
    ? `is tried again in ${formatDuration(Math.max(0, hop.retryInMs))}` : 'is tried at this moment';
  return `the next hop ${hop.relay} is down for ${formatDuration(downMs)}, and ${again}: ${hop.lastError}`;
}

/** Connections, with the key that limits them. */
export function fullText({ key, text }: FullLimit): string {
  return `${text} (${key})`;
}

export function connectingText({ relay, forMs, doing }: ConnectingState): string {
  const since = `connecting to ${relay} for ${formatDuration(forMs)}`;
  return doing === '' ? since : `${since}, ${doing}`;
}
