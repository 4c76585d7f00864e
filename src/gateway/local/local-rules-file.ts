/**
 * Rules of this gateway that the register does not have yet (orders/local-rules.ts), as a file of state_dir
 * (state-file.ts): a restart obeys them.
 *
 *   local-rules.json   {given: {ID: rule, as the register would have it}, cancelled: {ID: milliseconds}}
 */
import { z } from 'zod';
import { BrokenRule, readJson } from '../../base/json-shape.js';
import { isRuleId } from '../../register/keys.js';
import { decodeQueueRule, encodeQueueRule } from '../../register/records.js';
import type { KeptRules, LocalRulesFile } from '../orders/local-rules.js';
import { readStateFile, writeStateFile } from './state-file.js';

const FILE = 'local-rules.json';
const shape = z.object({
  given: z.record(z.string(), z.string()), cancelled: z.record(z.string(), z.number()),
});

export function localRulesFile(stateDir: string | undefined): LocalRulesFile | undefined {
  if (stateDir === undefined) return undefined;
  return { read: () => readLocalRules(stateDir), write: (kept) => writeLocalRules(stateDir, kept) };
}

/** Throws when it is there and can't be read, or is none of ours. */
function readLocalRules(stateDir: string): KeptRules {
  const text = readStateFile(stateDir, FILE);
  if (text === undefined) return { given: new Map(), cancelled: new Map() };
  const read = readJson(shape, text);
  if (read instanceof BrokenRule) throw new Error(`${FILE} does not say which rules stand: ${read.rule}`);
  const given = Object.entries(read.given).map(([id, rule]) => {
    const decoded = decodeQueueRule(rule);
    if (decoded instanceof BrokenRule || !isRuleId(id)) throw new Error(`${FILE}: no rule: ${id}`);
    return [id, decoded] as const;
  });
  return { given: new Map(given), cancelled: new Map(Object.entries(read.cancelled)) };
}

function writeLocalRules(stateDir: string, { given, cancelled }: KeptRules): Promise<void> {
  const rules = [...given].map(([id, rule]) => [id, encodeQueueRule(rule)] as const);
  const kept = { given: Object.fromEntries(rules), cancelled: Object.fromEntries(cancelled) };
  return writeStateFile(stateDir, FILE, `${JSON.stringify(kept)}\n`);
}
