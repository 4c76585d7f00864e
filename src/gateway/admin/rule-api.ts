/**
 * Standing rules over queues (admin-api/queue-rules.ts): what an operator posts is judged here, and written
 * into the register by gateway/orders/rule-desk.ts. Who asked, and why, is in the log and in the rule.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type {
  CancelRule, NewQueueRule, QueueRulesAnswer, RuleIdAnswer,
} from '../../admin-api/queue-rules.js';
import { gatewayRoutes as routes } from '../../admin-api/routes.js';
import { orderOf, refuse } from '../../platform/node/admin-guard.js';
import { serve } from '../../platform/node/admin-server.js';
import type { RuleOutcome } from '../orders/rule-desk.js';

export interface QueueRuleControl {
  answer(): QueueRulesAnswer;
  add(rule: NewQueueRule): Promise<RuleOutcome>;
  cancel(id: string, order: CancelRule): Promise<RuleOutcome>;
}

export function addQueueRules(api: FastifyInstance, control: QueueRuleControl): void {
  serve(api, routes.rules, () => control.answer());
  serve(api, routes.addRule, async (request, reply) =>
    answered(reply, await control.add({ ...request.body, ...orderOf(request) })));
  serve(api, routes.cancelRule, async (request, reply) =>
    answered(reply, await control.cancel(request.params.id, { ...request.body, ...orderOf(request) })));
}

function answered(
  reply: FastifyReply, { id, code, why, local = '', shared = '' }: RuleOutcome,
): RuleIdAnswer | FastifyReply {
  return code !== 200 ? refuse(reply, code, why)
    : { rule: id, local, ...(shared === '' ? {} : { shared }) };
}
