/** The rules in force as the admin HTTP and the status show them. Pure. */
import { targetText } from '../../admin-api/queue-rules.js';
import type { QueueRuleAnswer } from '../../admin-api/queue-rules.js';
import type { QueueRules, RuleInForce } from './queue-rules.js';

export function ruleAnswers(rules: QueueRules): readonly QueueRuleAnswer[] {
  return rules.all().map(answerOf);
}

function answerOf({ id, rule, isLocal, queues, messages }: RuleInForce): QueueRuleAnswer {
  const { verb, who, reason, wallMs, untilWallMs } = rule;
  return {
    id, verb, queue: targetText(rule), who, reason, since: Math.floor(wallMs / 1000),
    until: untilWallMs === 0 ? null : Math.floor(untilWallMs / 1000), local: isLocal, queues,
    messages,
  };
}
