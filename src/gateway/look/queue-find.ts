/**
 * The first messages here that a selector means, each queue in its order: no more than an answer holds,
 * however many recipients they have. A Message-ID stands in the content alone, so that its header is looked
 * into. Pure.
 */
import type { MessageAnswer } from '../../admin-api/gateway-answers.js';
import type { FindAnswer, FindQuestion } from '../../admin-api/look.js';
import { latin1Text } from '../../base/utf8.js';
import { bareMessageId } from '../../observability/log-filter.js';
import { AddressPattern } from '../../smtp/address-pattern.js';
import { SEARCHED_BYTES_MAX, messageIdWithin } from '../inbound/content/message-id-field.js';
import type { Envelope } from '../mail-types.js';
import { givenAddress } from '../queue/given-address.js';
import type { MailQueue } from '../queue/mail-queue.js';
import { SelectedWalk } from './selected-walk.js';
import type { Visitor, WalkPorts } from './selected-walk.js';

/** In one answer: some 2 MB. */
const RECIPIENTS_MAX = 20_000;
/** To look into a header, measured against an entry of a walk: to copy it, and to pass a line. */
const HEADER_WORK = 5;
const LINE_WORK = 0.5;

export interface FindPorts extends WalkPorts {
  /** As a list shows it. */
  messageOf(queue: MailQueue, row: number): MessageAnswer;
}

export class QueueFind implements Visitor {
  readonly #limit: number;
  readonly #recipient: AddressPattern | undefined;
  readonly #messageId: string | undefined;
  readonly #header = new Uint8Array(SEARCHED_BYTES_MAX);
  readonly #ports: FindPorts;
  readonly #walk: SelectedWalk;
  readonly #messages: MessageAnswer[] = [];
  /** Of all headers. */
  readonly #looked = { lines: 0 };
  #recipients = 0;
  #unread = 0;
  /** There is one more than are wanted. */
  isFull = false;

  constructor({ selector, limit, recipient, message_id: messageId }: FindQuestion, ports: FindPorts) {
    this.#limit = limit;
    this.#recipient = recipient === undefined ? undefined : new AddressPattern(recipient, ports.toAscii);
    this.#messageId = messageId === undefined ? undefined : bareMessageId(messageId);
    this.#ports = ports;
    this.#walk = new SelectedWalk(selector, ports, this);
  }

  /** A share of this turn; true when enough is found, or there is no more. */
  step(): boolean {
    return this.#walk.step();
  }

  answer(): FindAnswer {
    return {
      messages: this.#messages, more: this.isFull, unread: this.#unread,
      looked_share: this.#walk.lookedShare, incomplete: this.#walk.wasIncomplete,
    };
  }

  onRow(): boolean {
    return false;
  }

  onMeant(queue: MailQueue, row: number, { recipients }: Envelope, meant: readonly number[]): number {
    const isNamed = this.#recipient === undefined || meant.some((index) => {
      const one = recipients[index];
      return one !== undefined && [one.address, givenAddress(one)].some((name) => this.#isMeant(name));
    });
    if (!isNamed) return 0;
    if (this.#messageId === undefined) {
      this.#add(queue, row);
      return 0;
    }
    const { lines } = this.#looked;
    if (this.#isOfMessageId(row)) this.#add(queue, row);
    return HEADER_WORK + Math.ceil((this.#looked.lines - lines) * LINE_WORK);
  }

  #isMeant(name: string): boolean {
    return this.#recipient?.matches(name) === true;
  }

  #isOfMessageId(row: number): boolean {
    const { entries } = this.#ports;
    const bytes = entries.table.bodyBytes.get(row);
    const header = this.#header.subarray(0, Math.min(bytes, SEARCHED_BYTES_MAX));
    if (!entries.isAbsent(row)) entries.copyBody(row, header, 0, header.length);
    const found = entries.isAbsent(row) ? undefined : messageIdWithin(header, latin1Text, this.#looked);
    // It goes on beyond what is looked into.
    if (found === undefined && (entries.isAbsent(row) || bytes > header.length)) this.onUnread();
    return found !== undefined && bareMessageId(found) === this.#messageId;
  }

  #add(queue: MailQueue, row: number): void {
    if (this.#messages.length >= this.#limit || this.#recipients >= RECIPIENTS_MAX) {
      this.isFull = true;
      return;
    }
    const message = this.#ports.messageOf(queue, row);
    this.#recipients += message.recipients.length;
    this.#messages.push(message);
  }

  onUnread(): void {
    this.#unread += 1;
  }
}
