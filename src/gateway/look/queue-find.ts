/**
 * The first messages here that a selector means, each queue in its order: no more than an answer holds,
 * however many recipients they have. Pure.
 */
import type { MessageAnswer } from '../../admin-api/gateway-answers.js';
import type { FindAnswer, FindQuestion } from '../../admin-api/look.js';
import type { MailQueue } from '../queue/mail-queue.js';
import { SelectedWalk } from './selected-walk.js';
import type { Visitor, WalkPorts } from './selected-walk.js';

/** In one answer: some 2 MB. */
const RECIPIENTS_MAX = 20_000;

export interface FindPorts extends WalkPorts {
  /** As a list shows it. */
  messageOf(queue: MailQueue, row: number): MessageAnswer;
}

export class QueueFind implements Visitor {
  readonly #limit: number;
  readonly #ports: FindPorts;
  readonly #walk: SelectedWalk;
  readonly #messages: MessageAnswer[] = [];
  #recipients = 0;
  #unread = 0;
  /** There is one more than are wanted. */
  isFull = false;

  constructor({ selector, limit }: FindQuestion, ports: FindPorts) {
    this.#limit = limit;
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

  onMeant(queue: MailQueue, row: number): void {
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
