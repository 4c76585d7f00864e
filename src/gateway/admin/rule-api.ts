/**
 * Standing rules over queues (admin-api/queue-rules.ts): what an operator posts is judged here, and written
 * into the register by gateway/orders/rule-desk.ts. Who asked, and why, is in the log and in the rule.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Order } from '../../admin-api/orders.js';
import { cancelRule, newQueueRule } from '../../admin-api/queue-rules.js';
import type {
  CancelRule, NewQueueRule, QueueRulesAnswer, RuleIdAnswer,
} from '../../admin-api/queue-rules.js';
import { BrokenRule, readShape } from '../../base/json-shape.js';
import { refuse } from '../../platform/node/admin-server.js';
import type { RuleOutcome } from '../orders/rule-desk.js';
import { orderOf, postedBy, refuseUnsaid } from './orders.js';

export interface QueueRuleControl {
  answer(): QueueRulesAnswer;
  add(rule: NewQueueRule): Promise<RuleOutcome>;
  cancel(id: string, order: CancelRule): Promise<RuleOutcome>;
}

export function addQueueRules(api: FastifyInstance, control: QueueRuleControl): void {
  api.get('/rules', (): QueueRulesAnswer => control.answer());
  api.post('/rules', async (request, reply): Promise<RuleIdAnswer | FastifyReply> => {
    const who = orderOf(postedBy<Order>(request));
    if (who === undefined) return refuseUnsaid(reply);
    const rule = readShape(newQueueRule, request.body);
    if (rule instanceof BrokenRule) return refuse(reply, 400, `no rule: ${rule.rule}`);
    return answered(reply, await control.add({ ...rule, ...who }));
  });
  api.post('/rules/:id/cancel', async (request, reply): Promise<RuleIdAnswer | FastifyReply> => {
    const who = orderOf(postedBy<Order>(request));
    if (who === undefined) return refuseUnsaid(reply);
    const { id } = request.params as { readonly id: string };
    const posted = readShape(cancelRule, request.body);
    if (posted instanceof BrokenRule) return refuse(reply, 400, posted.rule);
    return answered(reply, await control.cancel(id, { ...who, ...posted }));
  });
}

function answered(
  reply: FastifyReply, { id, code, why, local = '' }: RuleOutcome,
): RuleIdAnswer | FastifyReply {
  return code === 200 ? { rule: id, local } : refuse(reply, code, why);
}
