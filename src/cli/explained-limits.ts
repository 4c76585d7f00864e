/**
 * For `explain`: what limits mail of a queue now, where gateways run. Who is asked is the gateway of the
 * configuration at its own admin address, or the one that is named, and with it its group. None may run
 * there: the rest is told from the file.
 */
import type { ExplainedWay } from '../admin-api/explain.js';
import type { LimitAnswer } from '../admin-api/limits.js';
import { addressText } from '../config/keys/values.js';
import type { GatewayConfig } from '../config/types.js';
import { UP_GATEWAYS_MAX } from '../config/up-gateways.js';
import { workerIds } from '../config/workers.js';
import type { AccessArguments } from './admin-address.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { findGroup, missingText } from './group.js';

const TIMEOUT_MS = 2_000;
const EVERYWHERE = /^(?:0\.0\.0\.0|\[?::\]?)$/;

export interface ExplainedLimits {
  /** Of each queue, by gateway; those that bind first. */
  readonly byQueue: ReadonlyMap<string, readonly (LimitAnswer & { readonly gateway: string })[]>;
  /** Who could not tell, and why. */
  readonly untold: readonly string[];
  /** Gateways run, and not all of them were asked. */
  readonly isPartial: boolean;
}

/** Who is asked, and with it its group. */
export interface AskedGateway {
  readonly from: string;
  /** One of these must be in its group; undefined: whoever answers there is meant. */
  readonly ids: ReadonlySet<string> | undefined;
  readonly access: AccessArguments;
}

/** The gateway of a file at its own admin address, or at the one that is named. */
export function ownGateway(
  { admin, id, workers, oneHost }: GatewayConfig, named: string | undefined, access: AccessArguments,
): AskedGateway {
  if (named !== undefined) return { from: named, ids: undefined, access };
  const { listen: { host, port }, tls } = admin;
  const own = addressText({ host: EVERYWHERE.test(host) ? '127.0.0.1' : host, port });
  // Those of `up --gateways N` have the ids of workers (config/up-gateways.ts).
  const ids = new Set([id, ...workerIds(id, oneHost ? UP_GATEWAYS_MAX : workers)]);
  return { from: tls === undefined ? own : `https://${own}`, ids, access };
}

export async function limitsOf(
  ways: readonly ExplainedWay[], { from, ids, access }: AskedGateway, context: CliContext,
): Promise<ExplainedLimits> {
  const args = { ...access, from, only: undefined };
  try {
    const group = await findGroup(args, context, TIMEOUT_MS, '--gateway');
    // Another gateway of this machine may be at the address that is meant for this one.
    if (ids !== undefined && !group.members.some((one) => ids.has(one.id))) {
      const untold = `${from} answers, and is not ${[...ids][0] ?? ''}`;
      return { byQueue: new Map(), untold: [untold], isPartial: false };
    }
    const byQueue = new Map<string, readonly (LimitAnswer & { readonly gateway: string })[]>();
    for (const queue of new Set(ways.map((way) => way.queue))) {
      const [first, ...more] = ways.filter((way) => way.queue === queue);
      const to = first === undefined || first.is === 'a queue' || more.length > 0 ? '' : first.address;
      const answers = await group.ask('gateway', (client) => client.limits({ queue, to }));
      byQueue.set(queue, answers.flatMap(({ id, answer: { limits } }) =>
        limits.map((limit) => ({ gateway: id, ...limit }))));
    }
    const untold = group.missing('gateway').map(missingText);
    return { byQueue, untold, isPartial: untold.length > 0 };
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return { byQueue: new Map(), untold: [error.message], isPartial: false };
  }
}

/** A gateway that has taken a partition over has the queue twice, and the same limits for both. */
export function limitLines(limits: readonly (LimitAnswer & { readonly gateway: string })[]): string[] {
  return [...new Set(limits.map(({ gateway, limit, binds, text }) =>
    `${binds ? 'BINDS    ' : 'limit    '} ${gateway}  ${limit}: ${text}`))];
}
