/**
 * The keys of the register (DESIGN, "Keys"), and the shapes of their values in records.ts. In etcd they stand
 * below /twinpost/CLUSTER/.
 *
 *     partitions/GATEWAY/N    who holds partition N of a gateway
 *     gateways/ID             lives as long as its process (session)
 *     incarnations/ID         the last incarnation, stays
 *     stores/ID               lives as long as its process (session)
 *     ordinal                 the next ordinal of an incarnation
 *     moved                   the file was made elsewhere: records older than this key are doubted
 *     probe                   never there: read to see whether the register answers
 *     rules/retired/ID        a gateway that an operator has retired
 *     rules/given-up/STORE    copies of partitions that have ended, at a store that
 *                             an operator gave up: to be dropped if it is back
 *     rules/queues/ID         queues that operators have suspended, or for which they refuse mail
 *     rules/orders/ID         an order over mail that nobody had who was asked
 *     rules/…                 what else operators decided                  a text of its own each
 */
import { invariant } from '../base/invariant.js';
import { PARTITIONS_MAX } from '../protocol/partition-record.js';

export const PARTITIONS = 'partitions/';
export const GATEWAYS = 'gateways/';
export const INCARNATIONS = 'incarnations/';
export const STORES = 'stores/';
export const RULES = 'rules/';
const RETIRED = `${RULES}retired/`;
export const GIVEN_UP = `${RULES}given-up/`;
const QUEUE_RULES = `${RULES}queues/`;
const LEFT_ORDERS = `${RULES}orders/`;
export const ORDINAL_KEY = 'ordinal';
export const MOVED_KEY = 'moved';
/**
 * Read to see whether the register answers; nobody writes it. It lies below the prefix that our rights allow.
 */
export const PROBE_KEY = 'probe';

/** Names of configuration have up to 63 characters; a worker's has its number behind it. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,79}$/;
/** GATEWAY-INCARNATION-COUNT of the process that wrote it: of a rule, or of an order. */
const RULE_ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,119}$/;
const NUMBER = /^(0|[1-9]\d{0,3})$/;

/** Whether a text may be the id of a gateway or store in a key. */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && NAME.test(value);
}

export function partitionKey(gatewayId: string, partition: number): string {
  invariant(
    Number.isSafeInteger(partition) && partition >= 0 && partition < PARTITIONS_MAX,
    'a partition has a small number',
  );
  return `${partitionsOf(gatewayId)}${String(partition)}`;
}

/** Prefix of all partitions of a gateway. */
export function partitionsOf(gatewayId: string): string {
  return `${PARTITIONS}${nameOf(gatewayId)}/`;
}

export function gatewayKey(id: string): string {
  return GATEWAYS + nameOf(id);
}

export function incarnationKey(id: string): string {
  return INCARNATIONS + nameOf(id);
}

export function retiredKey(id: string): string {
  return RETIRED + nameOf(id);
}

/** Undefined: a key of something else. */
export function retiredIdOf(key: string): string | undefined {
  const id = key.startsWith(RETIRED) ? key.slice(RETIRED.length) : '';
  return isName(id) ? id : undefined;
}

export function givenUpKey(storeId: string): string {
  return GIVEN_UP + nameOf(storeId);
}

/** Undefined: a key of something else. */
export function givenUpStoreOf(key: string): string | undefined {
  const id = key.startsWith(GIVEN_UP) ? key.slice(GIVEN_UP.length) : '';
  return isName(id) ? id : undefined;
}

export function isRuleId(value: string): boolean {
  return RULE_ID.test(value);
}

export function queueRuleKey(id: string): string {
  invariant(isRuleId(id), `an id of a rule stands in a key: ${id}`);
  return QUEUE_RULES + id;
}

/** Undefined: a key of something else. */
export function queueRuleIdOf(key: string): string | undefined {
  return ruleIdBelow(QUEUE_RULES, key);
}

export function leftOrderKey(id: string): string {
  invariant(isRuleId(id), `an id of an order stands in a key: ${id}`);
  return LEFT_ORDERS + id;
}

/** Undefined: a key of something else. */
export function leftOrderIdOf(key: string): string | undefined {
  return ruleIdBelow(LEFT_ORDERS, key);
}

function ruleIdBelow(prefix: string, key: string): string | undefined {
  const id = key.startsWith(prefix) ? key.slice(prefix.length) : '';
  return isRuleId(id) ? id : undefined;
}

export function storeKey(id: string): string {
  return STORES + nameOf(id);
}

export type KeyMeaning =
  | { readonly kind: 'partition'; readonly gatewayId: string; readonly partition: number; }
  | { readonly kind: 'gateway' | 'incarnation' | 'store'; readonly id: string; }
  | { readonly kind: 'rule'; readonly rule: string; }
  | { readonly kind: 'ordinal'; };

/** Undefined: none of ours. */
export function parseKey(key: string): KeyMeaning | undefined {
  if (key === ORDINAL_KEY) return { kind: 'ordinal' };
  const slash = key.indexOf('/') + 1;
  const rest = key.slice(slash);
  switch (key.slice(0, slash)) {
    case PARTITIONS: {
      const [gatewayId, number, ...others] = rest.split('/');
      if (!isName(gatewayId) || number === undefined || !NUMBER.test(number) || others.length > 0) {
        return undefined;
      }
      return Number(number) < PARTITIONS_MAX
        ? { kind: 'partition', gatewayId, partition: Number(number) }
        : undefined;
    }
    case GATEWAYS:
      return isName(rest) ? { kind: 'gateway', id: rest } : undefined;
    case INCARNATIONS:
      return isName(rest) ? { kind: 'incarnation', id: rest } : undefined;
    case STORES:
      return isName(rest) ? { kind: 'store', id: rest } : undefined;
    case RULES:
      return rest === '' ? undefined : { kind: 'rule', rule: rest };
    default:
      return undefined;
  }
}

function nameOf(id: string): string {
  invariant(isName(id), `an id stands in a key: ${id}`);
  return id;
}
