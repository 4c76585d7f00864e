/**
 * For `explain`: what limits mail of a queue now, where gateways run. Who is asked is the gateway of the
 * configuration at its own admin address, or the one that is named, and with it its group. None may run
 * there: the rest is told from the file.
 */
import type { LimitAnswer } from '../admin-api/limits.js';
import { addressText } from '../config/keys/values.js';
import type { GatewayConfig } from '../config/types.js';
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
}

export interface AskedGateway {
  /** Its admin address; undefined: that of the configuration. */
  readonly asked: string | undefined;
  readonly access: AccessArguments;
}

export async function limitsOf(
  queues: readonly string[], { admin, id, workers }: GatewayConfig,
  { asked: gateway, access }: AskedGateway, context: CliContext,
): Promise<ExplainedLimits> {
  const { listen: { host, port }, tls } = admin;
  const own = addressText({ host: EVERYWHERE.test(host) ? '127.0.0.1' : host, port });
  const from = gateway ?? (tls === undefined ? own : `https://${own}`);
  const args = { ...access, from, only: undefined };
  try {
    const group = await findGroup(args, context, TIMEOUT_MS);
    // Another gateway of this machine may be at the address that is meant for this one.
    const ids = [id, ...workerIds(id, workers)];
    if (gateway === undefined && !group.members.some((one) => ids.includes(one.id))) {
      return { byQueue: new Map(), untold: [`${own} answers, and is not ${id}`] };
    }
    const byQueue = new Map<string, readonly (LimitAnswer & { readonly gateway: string })[]>();
    for (const queue of new Set(queues)) {
      const answers = await group.ask('gateway', (client) => client.limits(queue));
      byQueue.set(queue, answers.flatMap(({ id, answer: { limits } }) =>
        limits.map((limit) => ({ gateway: id, ...limit }))));
    }
    return { byQueue, untold: group.missing('gateway').map(missingText) };
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    return { byQueue: new Map(), untold: [error.message] };
  }
}

export function limitLines(limits: readonly (LimitAnswer & { readonly gateway: string })[]): string[] {
  return limits.map(({ gateway, limit, binds, text }) =>
    `${binds ? 'BINDS    ' : 'limit    '} ${gateway}  ${limit}: ${text}`);
}
