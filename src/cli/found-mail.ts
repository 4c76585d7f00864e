/**
 * Messages that `twinpost find` has found, each once, whatever gateways tell of it: what queues say of
 * recipients who are waited for, and what logs say of the others. That one has come to his end is believed
 * before a queue that was asked a moment earlier; a queue that was asked later has him all the same: he was
 * delivered by one whose stores do not know that, and another will deliver to him again. Both are told then.
 */
import type { MessageAnswer } from '../admin-api/gateway-answers.js';
import type { LoggedMessage } from '../admin-api/logged.js';
import { Wildcards } from '../base/wildcards.js';
import { toAscii } from '../platform/node/idna.js';
import { AddressPattern } from '../smtp/address-pattern.js';
import { LoggedMail, isEnd, timeOf } from '../observability/logged-mail.js';
import { printable, tableText, timeText } from './tables.js';

/** In a line for people. */
const ADDRESSES_SHOWN = 2;

export interface FoundRecipient {
  readonly address: string;
  /** As the log has it of one who is done with; else as the queue has it of the message. */
  readonly state: string;
  /** Where that was said. */
  readonly gateway: string;
  /** Of the last that the log tells; null: it tells nothing. */
  readonly time: number | null;
  readonly relay: string;
  readonly last_reply: string;
}

/** Times in seconds, as in all lists; null: not known. */
export interface FoundMessage {
  readonly queue_id: string;
  readonly message_id: string;
  readonly arrival_time: number | null;
  readonly sender: string;
  readonly message_size: number | null;
  readonly recipient_count: number | null;
  readonly state: string;
  /** Those who are meant, and known. */
  readonly recipients: readonly FoundRecipient[];
}

interface Queued extends MessageAnswer {
  readonly gateway: string;
  /** It was asked when the logs had told their ends. */
  readonly isLater: boolean;
}

interface JudgedRecipient extends FoundRecipient {
  /** Nobody tells what became of him, and no queue has him. */
  readonly isOpen: boolean;
  /** A log has his end, and a queue that was asked earlier has him. */
  readonly isDisputed: boolean;
}

/** `state`: of the message in a queue; '' none has it. */
interface Judged extends Omit<FoundMessage, 'recipients'> {
  readonly recipients: readonly JudgedRecipient[];
  /** Nobody tells of some recipient, whether he is meant or not. */
  readonly isUntold: boolean;
}

type Named = Omit<Judged, 'recipients' | 'isUntold'> & {
  /** All names by which each may be asked for. */
  readonly recipients: readonly (JudgedRecipient & { readonly names: readonly string[] })[];
};

/** What of that gateways tell is meant. */
export interface Meant {
  readonly sender: string | undefined;
  readonly recipient: string | undefined;
  /** All are asked for it: '' of none. Queues do not tell it. */
  readonly messageId: string;
}

export class FoundMail {
  readonly #sender: Wildcards | undefined;
  readonly #recipient: AddressPattern | undefined;
  readonly #messageId: string;
  readonly #logged = new LoggedMail();
  readonly #queued = new Map<string, Queued[]>();

  constructor({ sender, recipient, messageId }: Meant) {
    this.#sender = sender === undefined ? undefined : new Wildcards([sender === '<>' ? '' : sender]);
    this.#recipient = recipient === undefined ? undefined : new AddressPattern(recipient, toAscii);
    this.#messageId = messageId;
  }

  get isEmpty(): boolean {
    return this.#queued.size === 0 && this.#logged.all().length === 0;
  }

  addLogged(messages: readonly LoggedMessage[]): void {
    for (const message of messages) this.#logged.add(message);
  }

  addQueued(gateway: string, messages: readonly MessageAnswer[], isLater: boolean): void {
    for (const message of messages) {
      const known = this.#queued.get(message.queue_id) ?? [];
      const others = known.filter((one) => one.gateway !== gateway || one.queue_name !== message.queue_name);
      this.#queued.set(message.queue_id, [...others, { gateway, isLater, ...message }]);
    }
  }

  /** Queues are asked again. */
  forgetQueued(ids: readonly string[]): void {
    for (const id of ids) this.#queued.delete(id);
  }

  /** Of the newest ones those of which it is not known what became of all who are meant; the newest first. */
  openIds(most: number): readonly string[] {
    return this.#newest(most).filter((one) => this.#isOpen(one)).map(({ queue_id: id }) => id).reverse();
  }

  /** Of the newest ones those that queues are to be asked about once the logs have told; likewise. */
  unsureIds(most: number): readonly string[] {
    return this.#newest(most).filter((one) => one.recipients.some(({ isDisputed }) => isDisputed)
      || (this.#isOpen(one) && !this.#queued.has(one.queue_id))).map(({ queue_id: id }) => id).reverse();
  }

  /** When the first of them came; `elseMs` when nobody tells. */
  firstMs(ids: readonly string[], elseMs: number): number {
    const asked = new Set(ids);
    const times = this.#found().filter(({ queue_id: id }) => asked.has(id)).flatMap((one) =>
      (one.arrival_time === null ? [] : [one.arrival_time * 1000]));
    return times.length === 0 ? elseMs : Math.min(...times);
  }

  /** The newest ones, by when they came; the last is the newest. */
  newest(most: number): readonly FoundMessage[] {
    return this.#newest(most).filter(isShown).map(({ recipients, state, isUntold: _isUntold, ...facts }) => {
      const shown = recipients.map(({ isOpen: _isOpen, isDisputed: _isDisputed, ...one }) => one);
      return { ...facts, state: stateOf(shown) || state, recipients: shown };
    });
  }

  /** From the newest back, until so many are to be shown. Of those between nobody has told enough yet. */
  #newest(most: number): readonly Judged[] {
    const all = [...this.#found()].sort((a, b) => (a.arrival_time ?? 0) - (b.arrival_time ?? 0));
    let shown = 0;
    const from = all.findLastIndex((one) => {
      shown += Number(isShown(one));
      return shown === most;
    });
    return all.slice(Math.max(0, from));
  }

  /** How many are not shown, and one who is meant may be among those of whom nobody tells. */
  unshownCount(most: number): number {
    return this.#newest(most).filter((one) => !isShown(one) && this.#isOpen(one)).length;
  }

  #isOpen({ recipients, isUntold }: Judged): boolean {
    const mayBeAnybody = this.#recipient === undefined || recipients.length === 0;
    return mayBeAnybody ? isUntold : recipients.some(({ isOpen }) => isOpen);
  }

  #found(): readonly Judged[] {
    const logged = new Map(this.#logged.all().map((message) => [message.queue_id, message]));
    const ids = new Set([...logged.keys(), ...this.#queued.keys()]);
    return [...ids].map((id) => joined(id, logged.get(id), this.#queued.get(id) ?? [], this.#messageId))
      .filter(({ sender }) => this.#sender?.matches(sender) ?? true)
      .map(({ recipients, state, ...facts }) => {
        const meant = recipients.filter(({ names }) =>
          names.some((one) => this.#recipient?.matches(one) ?? true));
        const isAnyMeant = this.#recipient === undefined || meant.length > 0;
        const isUntold = recipients.length < (facts.recipient_count ?? 1)
          || recipients.some(({ isOpen }) => isOpen);
        return {
          ...facts, isUntold, state: isAnyMeant ? state : '',
          recipients: meant.map(({ names: _names, ...one }) => one),
        };
      });
  }
}

/** Somebody who is meant is known, or a queue has it. */
function isShown({ recipients, state }: Judged): boolean {
  return recipients.length > 0 || state !== '';
}

type Waiting = Omit<MessageAnswer['recipients'][number], 'state'>
  & Pick<Queued, 'gateway' | 'isLater' | 'state'>;

function waitingIn(queued: readonly Queued[]): Map<string, Waiting> {
  return new Map(queued.flatMap(({ state, gateway, isLater, recipients }) =>
    recipients.map((one) => [one.address, { ...one, state: one.state ?? state, gateway, isLater }])));
}

function joined(
  id: string, logged: LoggedMessage | undefined, queued: readonly Queued[], messageId: string,
): Named {
  const waiting = waitingIn(queued);
  const told = (logged?.recipients ?? []).map(({ address, given, ...one }) => {
    const entry = waiting.get(address);
    const waits = isEnd(one.state) ? undefined : entry;
    // Whose report is owed has come to his end, whoever was asked later.
    const isAgain = isEnd(one.state) && entry?.isLater === true && entry.state !== 'ending';
    if (!isAgain) waiting.delete(address);
    return {
      address, state: waits?.state ?? one.state, gateway: waits?.gateway ?? one.gateway,
      time: Math.floor(one.at_ms / 1000), relay: one.relay, last_reply: waits?.delay_reason ?? one.reply,
      isOpen: waits === undefined && !isEnd(one.state),
      isDisputed: isEnd(one.state) && entry?.isLater === false && entry.state !== 'ending',
      names: [address, given],
    };
  });
  const left = [...waiting.values()];
  const untold = left.map(({ address, given = '', delay_reason: reply, state, gateway }) => ({
    address, state, gateway, time: null, relay: '', last_reply: reply ?? '', isOpen: false,
    isDisputed: false, names: [address, given],
  }));
  const all = [...told, ...untold];
  // The first recipient was received by the name that was given; an alias has led elsewhere.
  const isAlias = ({ state, isOpen, address }: JudgedRecipient): boolean => isOpen && state === 'received'
    && (all.length > (logged?.recipient_count ?? 1) || untold.some(({ names }) => names.includes(address)));
  const [entry] = queued;
  const arrivalMs = logged === undefined ? 0 : timeOf(logged);
  return {
    queue_id: id, message_id: logged?.message_id || messageId, sender: logged?.sender ?? entry?.sender ?? '',
    arrival_time: entry?.arrival_time ?? (arrivalMs === 0 ? null : Math.floor(arrivalMs / 1000)),
    message_size: entry?.message_size ?? logged?.message_size ?? null,
    recipient_count: logged?.recipient_count ?? null, state: entry?.state ?? '',
    recipients: all.filter((one) => !isAlias(one)),
  };
}

/** One word where all are alike, else how many of each. */
function stateOf(recipients: readonly FoundRecipient[]): string {
  const counts = new Map<string, number>();
  for (const { state } of recipients) counts.set(state, (counts.get(state) ?? 0) + 1);
  const states = [...counts];
  return states.length <= 1 ? (states[0]?.[0] ?? '')
    : states.map(([state, count]) => `${state} ${String(count)}`).join(', ');
}

/** A line each. Of recipients who differ the last reply is the newest one. */
export function foundTable(messages: readonly FoundMessage[]): string {
  const titles = ['ID', 'CAME', 'FROM', 'TO', 'STATE', 'WHERE', 'LAST REPLY'].map((title) => ({ title }));
  return tableText(titles, messages.map((message) => rowOf(message).map(printable)));
}

function rowOf(message: FoundMessage): readonly string[] {
  const { queue_id: id, arrival_time: arrival, sender, recipients, recipient_count: count, state } = message;
  const addresses = [...new Set(recipients.map(({ address }) => address))];
  const shown = addresses.slice(0, ADDRESSES_SHOWN).join(', ');
  const more = Math.max(addresses.length, count ?? 0) - Math.min(addresses.length, ADDRESSES_SHOWN);
  const last = [...recipients].sort((a, b) => (a.time ?? Infinity) - (b.time ?? Infinity)).at(-1);
  return [
    id, arrival === null ? '?' : timeText(arrival), sender === '' ? '<>' : sender,
    more > 0 ? `${shown} +${String(more)}` : shown, state,
    [last?.gateway ?? '', last?.relay ?? ''].filter((word) => word !== '').join(' '), last?.last_reply ?? '',
  ];
}
