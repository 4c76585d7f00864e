/**
 * The values of the register's keys: JSON objects with a version, so that `etcdctl get --prefix /twinpost`
 * reads well. Whoever can write the register can write anything: a value that is not one of ours yields the
 * name of the broken rule. Fields that are not known are passed over; another version is not.
 *
 *     {"version":1,"epoch":7,"term":{"number":5,"nonce":3141592653},
 *      "holder":{"gatewayId":"gw-1","incarnation":12},
 *      "members":[{"storeId":"store-a","bootId":"30…"},{"storeId":"store-b","bootId":"77…"}],"gaveUp":[],
 *      "left":[],"line":[{"term":{"number":2,"nonce":2718281828},"epoch":4}]}
 *
 * What a partition's record means is protocol/partition-record.ts.
 */
import { z } from 'zod';
import { LEFT_VERBS, orderTerms, selector, whyNoSelector, whyNoTerms } from '../admin-api/queue-orders.js';
import { RULE_VERBS, ruleTarget, whyNoTarget } from '../admin-api/queue-rules.js';
import { invariant } from '../base/invariant.js';
import { BrokenRule, listOf, readJson, readShape, ruled } from '../base/json-shape.js';
import { GAVE_UP_MAX, LINE_MAX, MEMBERS_MAX } from '../protocol/fields.js';
import { isMemberOf, isPartition } from '../protocol/partition-record.js';
import type { PartitionRecord, RecordedMember } from '../protocol/partition-record.js';
import { isName } from './keys.js';
import { VALUE_BYTES_MAX, utf8Bytes } from './limits.js';

const RECORD_VERSION = 1;
/** Addresses of one process: two paths, and its admin port. */
const ADDRESSES_MAX = 16;
/** Message ids are ordinal × 2^29 + count, below 2^53: so many incarnations a group has for ever. */
export const ORDINAL_MAX = 2 ** 24 - 1;
/** Of one store; each is some 150 bytes, and 70 a term of its line: most fit into one value. */
export const ENDED_COPIES_MAX = 256;
const ADDRESS_CHARACTERS_MAX = 300;
const GROUP_MAX = 1_024;
/** Of an order for mail that nobody had who was asked: no more fit into what the register keeps of one. */
export const LEFT_PARTITIONS_MAX = 1_024;

/** Counted from 1. */
const count = z.int().min(1);
const whole = z.int().min(0);
/** Of a clock, in milliseconds; beyond that no date is known (ECMA-262 21.4.1.1), and telling it fails. */
const wallTime = whole.max(8.64e15);
const name = ruled(z.string(), (id) => (isName(id) ? '' : 'no name'));
const host = z.string().regex(/^[\x21-\x7e]{1,255}$/);
const address = ruled(
  z.string().max(ADDRESS_CHARACTERS_MAX).regex(/^[\x21-\x7e]+:\d{1,5}$/),
  (text) => (Number(text.slice(text.lastIndexOf(':') + 1)) <= 65_535 ? '' : 'no port'),
);
const addresses = listOf(address, ADDRESSES_MAX);
const term = z.object({ number: count, nonce: whole });
const member = z.object({ storeId: name, bootId: name });
const mark = z.literal(true).exactOptional();
const given = member.extend({ epoch: count, isGone: mark, isAlone: mark });

/** One store may have two boots: while its new boot takes the place of the old one. */
function noneTwice(members: readonly RecordedMember[]): string {
  const isTwice = members.some(({ storeId, bootId }, at) =>
    isMemberOf(members.slice(0, at), storeId, bootId));
  return isTwice ? 'one stands twice' : '';
}

const line = listOf(z.object({ term: z.object({ number: whole, nonce: whole }), epoch: whole }), LINE_MAX);

const partitionShape: z.ZodType<PartitionRecord> = ruled(
  z.object({
    epoch: count,
    term,
    holder: z.object({ gatewayId: name, incarnation: whole }),
    members: ruled(listOf(member, MEMBERS_MAX), noneTwice),
    gaveUp: ruled(listOf(given, GAVE_UP_MAX), noneTwice),
    left: ruled(listOf(member, MEMBERS_MAX), noneTwice),
    line,
  }),
  ({ epoch, term, holder, gaveUp }) => {
    if (term.number > epoch) return 'term above epoch';
    return holder.incarnation === 0 && gaveUp.length > 0 ? 'copies that nobody gave up' : '';
  },
);

/** The last incarnation that was drawn. */
const incarnationShape = z.object({
  incarnation: count,
  /** Unique in the group, for ever. */
  ordinal: whole.max(ORDINAL_MAX),
});
export type IncarnationRecord = Readonly<z.output<typeof incarnationShape>>;

/** A gateway that lives. */
const gatewayShape = incarnationShape.extend({
  /** Label of its machine, for placement. */
  host,
  /** host:port of what others may ask it. */
  addresses,
  /** Ids of the gateways that its configuration names as its group; none: all that the register knows. */
  group: listOf(name, GROUP_MAX),
});
export type GatewayRecord = Readonly<z.output<typeof gatewayShape>>;

/** The next ordinal nobody has: one past the last one says that none is left. */
const ordinalShape = z.object({ next: whole.max(ORDINAL_MAX + 1) });

/** A store that lives. */
const storeShape = z.object({
  /** 16 bytes, as hexadecimal digits. */
  bootId: z.string().regex(/^[0-9a-f]{32}$/),
  /** One a path. */
  addresses: ruled(addresses, ({ length }) => (length === 0 ? 'no address' : '')),
  host,
  weight: count,
  /** What new mail may use; told now and then. */
  memoryFreeBytes: whole,
  /** It is about to stop. */
  draining: z.boolean(),
  /** host:port of its admin HTTP; '' when it listens on all addresses. */
  admin: z.union([z.literal(''), address]),
});
export type StoreRecord = Readonly<z.output<typeof storeShape>>;

/** What says that a gateway is retired. */
const retiredShape = z.object({ who: z.string(), reason: z.string(), wallMs: wallTime });
export type RetiredRule = Readonly<z.output<typeof retiredShape>>;

/** What an operator says. */
const RULE_TEXT_CHARACTERS_MAX = 500;

/**
 * What is done with queues, or mail, until it is cancelled, or its time is over
 * (gateway/orders/queue-rules.ts). One with a selector has no `queue`: so releases that do not know of
 * selectors pass it over.
 */
const queueRuleShape = ruled(z.object({
  verb: z.enum(RULE_VERBS),
  ...ruleTarget.shape,
  /** 0: until it is cancelled. */
  untilWallMs: wallTime,
  who: z.string().max(RULE_TEXT_CHARACTERS_MAX),
  reason: z.string().max(RULE_TEXT_CHARACTERS_MAX),
  wallMs: wallTime,
  /** Of an order that stands: what arrived from wallMs until then is meant though it was tried before. */
  triedUntilWallMs: wallTime.exactOptional(),
}), (rule) => whyNoTarget(rule.verb, rule));
export type QueueRule = Readonly<z.output<typeof queueRuleShape>>;

const partitionText = ruled(z.string(), (text) => (isPartition(text) ? '' : 'no partition'));

/**
 * An order of an operator, for partitions that nobody had who was asked, and for those over which a gateway
 * passes that may crash (gateway/orders/left-orders.ts, order-key.ts).
 */
const leftOrderShape = ruled(z.object({
  verb: z.enum(LEFT_VERBS),
  // Who writes an odd one must not have more mail ended than is meant.
  selector: ruled(selector, whyNoSelector),
  ...orderTerms.shape,
  who: z.string().max(RULE_TEXT_CHARACTERS_MAX),
  reason: z.string().max(RULE_TEXT_CHARACTERS_MAX),
  /** When it was given: what arrived later is not meant. */
  wallMs: wallTime,
  untilWallMs: wallTime.min(1),
  /** Those that are still to be passed over, by whoever gets them. */
  partitions: listOf(partitionText, LEFT_PARTITIONS_MAX),
  /** The same, but who held them passes over them. */
  underWay: listOf(partitionText, LEFT_PARTITIONS_MAX).exactOptional(),
  /** Nothing is done yet, and what it means is kept back. */
  inGrace: z.literal(true).exactOptional(),
}), (order) => whyNoTerms(order.verb, order));
export type LeftOrder = Readonly<z.output<typeof leftOrderShape>>;

/** A partition that has ended, at a store that may have a copy of it: the term that ended it, its line. */
const endedCopy = z.object({
  partition: partitionText,
  epoch: count,
  nonce: whole,
  line,
});
export type EndedCopy = Readonly<z.output<typeof endedCopy>>;

/** Of a store that an operator gave up: what it is told when it is back. */
const givenUpShape = retiredShape.extend({ copies: listOf(endedCopy, ENDED_COPIES_MAX) });
export type GivenUpRule = Readonly<z.output<typeof givenUpShape>>;

const versioned = ruled(z.record(z.string(), z.unknown()), ({ version }) => {
  if (version === RECORD_VERSION) return '';
  return count.safeParse(version).success ? 'another version' : 'no version';
});

interface Codec<T> {
  /** Fields in the order of the shape, so that equal records are equal texts. */
  readonly encode: (record: T) => string;
  readonly decode: (text: string) => T | BrokenRule;
}

function codec<T extends object>(shape: z.ZodType<T>): Codec<T> {
  return {
    encode: (record) => {
      const plain = readShape(shape, record);
      invariant(
        !(plain instanceof BrokenRule),
        `a record of ours is sound: ${plain instanceof BrokenRule ? plain.rule : ''}`,
      );
      return JSON.stringify({ version: RECORD_VERSION, ...plain });
    },
    decode: (text) => {
      if (utf8Bytes(text) > VALUE_BYTES_MAX) return new BrokenRule('value too long');
      const fields = readJson(versioned, text);
      return fields instanceof BrokenRule ? fields : readShape(shape, fields);
    },
  };
}

export const { encode: encodePartition, decode: decodePartition } = codec(partitionShape);
export const { encode: encodeGateway, decode: decodeGateway } = codec(gatewayShape);
export const { encode: encodeIncarnation, decode: decodeIncarnation } = codec(incarnationShape);
export const { encode: encodeOrdinal, decode: decodeOrdinal } = codec(ordinalShape);
export const { encode: encodeStore, decode: decodeStore } = codec(storeShape);
export const { encode: encodeRetired, decode: decodeRetired } = codec(retiredShape);
export const { encode: encodeGivenUp, decode: decodeGivenUp } = codec(givenUpShape);
export const { encode: encodeQueueRule, decode: decodeQueueRule } = codec(queueRuleShape);
export const { encode: encodeLeftOrder, decode: decodeLeftOrder } = codec(leftOrderShape);
