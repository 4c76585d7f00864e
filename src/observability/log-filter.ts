/**
 * Which lines of a mail log are meant. A message is followed by its queue id, which it keeps through
 * takeovers and rescues: whichever gateway delivers it logs that id. Its Message-ID stands in the line of its
 * acceptance alone, so that its queue id is learnt there; that of a report about it, where the report was
 * stored.
 */
import { Wildcards } from '../base/wildcards.js';

/** Of texts some are meant. */
type Matching = Pick<Wildcards, 'matches'>;

export interface LogQuestion {
  readonly ids: readonly string[];
  readonly messageId: string | undefined;
  /** A pattern; '<>' is the null reverse-path. */
  readonly from: string | undefined;
  /** It knows domains (smtp/address-pattern.ts). */
  readonly to: Matching | undefined;
  /** Patterns of what next hops said, and of our address that mail left from. */
  readonly reply: string | undefined;
  readonly source: string | undefined;
}

export type LogFields = Readonly<Record<string, unknown>>;

/** One Message-ID may be that of many messages; more are not followed. */
const LEARNT_MAX = 10_000;
const QUEUE_ID = '"queue_id":"';
const REPORT_ID = '"report_id":"';
const MESSAGE_ID = '"message_id":"';
const ID_CHARACTERS = 11;
const FROM_FIELDS = ['from', 'mail_from'] as const;
const TO_FIELDS = ['to', 'orig_to', 'final_to'] as const;
/** `why` of `suspended`: the same of a whole queue. */
const REPLY_FIELDS = ['reply', 'last', 'why'] as const;
const SOURCE_FIELDS = ['source'] as const;

export class LogFilter {
  readonly #ids: Set<string>;
  readonly #messageId: string | undefined;
  /** Each must have its like among its fields. */
  readonly #patterns: readonly (readonly [fields: readonly string[], pattern: Matching])[];

  constructor({ ids, messageId, from, to, reply, source }: LogQuestion) {
    this.#ids = new Set(ids);
    this.#messageId = messageId === undefined ? undefined : bareMessageId(messageId);
    const asked = [
      [FROM_FIELDS, wildcards(from === '<>' ? '' : from)], [TO_FIELDS, to],
      [REPLY_FIELDS, wildcards(reply)], [SOURCE_FIELDS, wildcards(source)],
    ] as const;
    this.#patterns = asked.flatMap(([fields, pattern]) =>
      (pattern === undefined ? [] : [[fields, pattern] as const]));
  }

  /** Not all lines are meant. */
  get isChoosing(): boolean {
    return this.#isOfMessages || this.#patterns.length > 0;
  }

  /** The fields of a line that is meant; undefined: it is not, or is no line of a log. */
  meant(line: string): LogFields | undefined {
    if (this.#isOfMessages && !this.#mayBeOfMessage(line)) return undefined;
    const fields = fieldsOf(line);
    if (fields === undefined || (this.#isOfMessages && !this.#isOfMessage(fields))) return undefined;
    return this.#patterns.every(([names, pattern]) => isOneOf(fields, names, pattern)) ? fields : undefined;
  }

  get #isOfMessages(): boolean {
    return this.#ids.size > 0 || this.#messageId !== undefined;
  }

  /** Most lines are of other messages, and are not read as JSON. */
  #mayBeOfMessage(line: string): boolean {
    if (this.#messageId !== undefined && line.includes(MESSAGE_ID)) return true;
    return this.#ids.has(idIn(line, QUEUE_ID)) || this.#ids.has(idIn(line, REPORT_ID));
  }

  #isOfMessage(fields: LogFields): boolean {
    const { queue_id: id, report_id: reportId, message_id: messageId } = fields;
    const isNamed = this.#messageId !== undefined && typeof messageId === 'string'
      && bareMessageId(messageId) === this.#messageId;
    if (isNamed) this.#learn(id);
    const isKnown = typeof id === 'string' && this.#ids.has(id);
    if (isKnown && fields['event'] === 'report') this.#learn(reportId);
    return isNamed || isKnown || (typeof reportId === 'string' && this.#ids.has(reportId));
  }

  #learn(id: unknown): void {
    if (typeof id === 'string' && this.#ids.size < LEARNT_MAX) this.#ids.add(id);
  }
}

/** Undefined: it is no object of JSON. */
export function fieldsOf(line: string): LogFields | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const parsed: unknown = JSON.parse(line);
    return typeof parsed === 'object' && parsed !== null ? parsed as LogFields : undefined;
  } catch {
    return undefined;
  }
}

function wildcards(pattern: string | undefined): Wildcards | undefined {
  return pattern === undefined ? undefined : new Wildcards([pattern]);
}

function isOneOf(fields: LogFields, names: readonly string[], pattern: Matching): boolean {
  return names.some((name) => {
    const value = fields[name];
    return typeof value === 'string' && pattern.matches(value);
  });
}

function idIn(line: string, field: string): string {
  const at = line.indexOf(field);
  return at < 0 ? '' : line.slice(at + field.length, at + field.length + ID_CHARACTERS);
}

/** Without the brackets that people copy or leave, and what stands beside them (RFC 5322 3.2.2). */
export function bareMessageId(messageId: string): string {
  return /<([^<>]*)>/.exec(messageId)?.[1] ?? messageId.trim().replace(/^<|>$/g, '');
}
