/**
 * How old the mail here is, by destination, queue or sender. Arrival and queue are columns of an entry; only
 * domains need its envelope, and what of it is at the stores alone is counted by itself. Keys beyond a bound
 * are counted together, so that mail for a million domains takes no more memory than mail for AGE_KEYS_MAX.
 * Pure.
 */
import { AGE_KEYS_MAX, AGE_MINUTES } from '../../admin-api/look.js';
import type { AgesAnswer, AgesQuestion } from '../../admin-api/look.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { Envelope } from '../mail-types.js';
import { SelectedWalk } from './selected-walk.js';
import type { Visitor, WalkPorts } from './selected-walk.js';

const COLUMNS = AGE_MINUTES.length + 1;
const NULL_SENDER = '<>';

export class QueueAges implements Visitor {
  readonly isFull = false;
  readonly #gatewayId: string;
  readonly #question: AgesQuestion;
  readonly #walk: SelectedWalk;
  readonly #total = noneYet();
  readonly #others = noneYet();
  readonly #unread = noneYet();
  readonly #byKey = new Map<string, number[]>();
  /** Of the entry that is looked at. */
  #column = 0;

  constructor(gatewayId: string, question: AgesQuestion, ports: WalkPorts) {
    this.#gatewayId = gatewayId;
    this.#question = question;
    this.#walk = new SelectedWalk(question.selector, ports, this);
  }

  /** A share of this turn; true when all is counted. */
  step(): boolean {
    return this.#walk.step();
  }

  answer(): AgesAnswer {
    return {
      gateway: this.#gatewayId,
      by: this.#question.by,
      total: this.#total,
      keys: Array.from(this.#byKey, ([key, counts]) => ({ key, counts })),
      others: this.#others,
      unread: this.#unread,
      looked_share: this.#walk.lookedShare,
      incomplete: this.#walk.wasIncomplete,
    };
  }

  onRow(queue: MailQueue, _row: number, ageSeconds: number): boolean {
    this.#column = columnOf(ageSeconds);
    const { by, selector: { everything } } = this.#question;
    if (by !== 'queue' || everything !== true) return false;
    this.#count([nameOf(queue)]);
    return true;
  }

  onMeant(
    queue: MailQueue, _row: number, { recipients, reversePath }: Envelope, meant: readonly number[],
  ): number {
    const { by } = this.#question;
    if (by === 'queue') this.#count([nameOf(queue)]);
    else if (by === 'sender-domain') this.#count([domainOf(reversePath)]);
    else this.#count(new Set(meant.map((index) => domainOf(recipients[index]?.address ?? ''))));
    return 0;
  }

  onUnread(): void {
    this.#addTo(this.#unread);
  }

  #count(keys: Iterable<string>): void {
    this.#addTo(this.#total);
    for (const key of keys) this.#addTo(this.#countsOf(key));
  }

  #countsOf(key: string): number[] {
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    if (this.#byKey.size >= AGE_KEYS_MAX) return this.#others;
    const counts = noneYet();
    this.#byKey.set(key, counts);
    return counts;
  }

  #addTo(counts: number[]): void {
    counts[this.#column] = (counts[this.#column] ?? 0) + 1;
  }
}

function noneYet(): number[] {
  return new Array<number>(COLUMNS).fill(0);
}

/** A clock that was set back makes nothing younger than new. */
function columnOf(ageSeconds: number): number {
  const minutes = ageSeconds / 60;
  const column = AGE_MINUTES.findIndex((end) => minutes < end);
  return column < 0 ? COLUMNS - 1 : column;
}

/** As standing rules name it. */
function nameOf({ name, route: { queueClass } }: MailQueue): string {
  return queueClass === 'mail' ? name : `${name}/${queueClass}`;
}

function domainOf(address: string): string {
  return address === '' ? NULL_SENDER : address.slice(address.lastIndexOf('@') + 1).toLowerCase();
}
