/**
 * Messages that `twinpost find` has found, each once, whatever gateways tell of it: what queues say of
 * recipients who are waited for, and what logs say of the others. That one has come to his end is believed
 * before a queue that was asked a moment earlier.
 */
import type { MessageAnswer } from '../admin-api/gateway-answers.js';
import type { LoggedMessage } from '../admin-api/logged.js';
import { Wildcards } from '../base/wildcards.js';
import { LoggedMail, isEnd, timeOf } from '../observability/logged-mail.js';
import { listTimeText, printable, tableText } from './tables.js';

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
}

interface JudgedRecipient extends FoundRecipient {
  /** Nobody tells what became of him, and no queue has him. */
  readonly isOpen: boolean;
}

interface Judged extends Omit<FoundMessage, 'state' | 'recipients'> {
  readonly recipients: readonly JudgedRecipient[];
}

type Named = Omit<Judged, 'recipients'> & {
  /** All names by which each may be asked for. */
  readonly recipients: readonly (JudgedRecipient & { readonly names: readonly string[] })[];
};

/** What of that gateways tell is meant. */
export interface Meant {
  readonly sender?: string | undefined;
  readonly recipient?: string | undefined;
}

export class FoundMail {
  readonly #sender: Wildcards | undefined;
  readonly #recipient: Wildcards | undefined;
  readonly #logged = new LoggedMail();
  readonly #queued = new Map<string, Queued[]>();

  constructor({ sender, recipient }: Meant) {
    this.#sender = sender === undefined ? undefined : new Wildcards([sender === '<>' ? '' : sender]);
    this.#recipient = recipient === undefined ? undefined : new Wildcards([recipient]);
  }

  addLogged(messages: readonly LoggedMessage[]): void {
    for (const message of messages) this.#logged.add(message);
  }

  addQueued(gateway: string, messages: readonly MessageAnswer[]): void {
    for (const message of messages) {
      const known = this.#queued.get(message.queue_id) ?? [];
      const others = known.filter((one) => one.gateway !== gateway || one.queue_name !== message.queue_name);
      this.#queued.set(message.queue_id, [...others, { gateway, ...message }]);
    }
  }

  waits(id: string): boolean {
    return this.#queued.has(id);
  }

  /** Of which it is not known what became of all who are meant. */
  get openIds(): readonly string[] {
    return this.#found().filter(({ recipient_count: count, recipients }) =>
      (this.#recipient === undefined && recipients.length < (count ?? 1))
      || recipients.length === 0 || recipients.some(({ isOpen }) => isOpen)).map(({ queue_id: id }) => id);
  }

  /** When the first of them came; `elseMs` when logs do not tell. */
  firstMs(ids: readonly string[], elseMs: number): number {
    const asked = new Set(ids);
    const known = this.#logged.all().filter(({ queue_id: id }) => asked.has(id));
    return Math.min(...known.map(({ arrival_ms: arrivalMs }) => arrivalMs ?? elseMs));
  }

  /** The newest ones, by when they came. */
  newest(most: number): readonly FoundMessage[] {
    return this.#found().filter(({ recipients }) => recipients.length > 0)
      .sort((a, b) => (a.arrival_time ?? 0) - (b.arrival_time ?? 0)).slice(-most)
      .map(({ recipients, ...facts }) => {
        const shown = recipients.map(({ isOpen: _isOpen, ...one }) => one);
        return { ...facts, state: stateOf(shown), recipients: shown };
      });
  }

  #found(): readonly Judged[] {
    const logged = new Map(this.#logged.all().map((message) => [message.queue_id, message]));
    const ids = new Set([...logged.keys(), ...this.#queued.keys()]);
    return [...ids].map((id) => joined(id, logged.get(id), this.#queued.get(id) ?? []))
      .filter(({ sender }) => this.#sender?.matches(sender) ?? true)
      .map(({ recipients, ...facts }) => {
        const meant = recipients.filter(({ names }) =>
          names.some((one) => this.#recipient?.matches(one) ?? true));
        return { ...facts, recipients: meant.map(({ names: _names, ...one }) => one) };
      });
  }
}

function joined(id: string, logged: LoggedMessage | undefined, queued: readonly Queued[]): Named {
  const waiting = new Map(queued.flatMap(({ state, gateway, recipients }) =>
    recipients.map((one) => [one.address, { ...one, state, gateway }])));
  const told = (logged?.recipients ?? []).map(({ address, given, ...one }) => {
    const waits = isEnd(one.state) ? undefined : waiting.get(address);
    waiting.delete(address);
    return {
      address, state: waits?.state ?? one.state, gateway: waits?.gateway ?? one.gateway,
      time: Math.floor(one.at_ms / 1000), relay: one.relay, last_reply: waits?.delay_reason ?? one.reply,
      isOpen: waits === undefined && !isEnd(one.state), names: [address, given],
    };
  });
  const untold = [...waiting.values()].map(({ address, delay_reason: reply = '', state, gateway }) => ({
    address, state, gateway, time: null, relay: '', last_reply: reply, isOpen: false, names: [address],
  }));
  const all = [...told, ...untold];
  // The first recipient was received by the name that was given; an alias has led elsewhere.
  const isAlias = ({ state, isOpen }: JudgedRecipient): boolean =>
    isOpen && state === 'received' && all.length > (logged?.recipient_count ?? 1);
  const [entry] = queued;
  const arrivalMs = logged === undefined ? 0 : timeOf(logged);
  return {
    queue_id: id, message_id: logged?.message_id ?? '', sender: logged?.sender ?? entry?.sender ?? '',
    arrival_time: entry?.arrival_time ?? (arrivalMs === 0 ? null : Math.floor(arrivalMs / 1000)),
    message_size: entry?.message_size ?? logged?.message_size ?? null,
    recipient_count: logged?.recipient_count ?? null, recipients: all.filter((one) => !isAlias(one)),
  };
}

/** One word where all are alike, else how many of each. */
function stateOf(recipients: readonly FoundRecipient[]): string {
  const counts = new Map<string, number>();
  for (const { state } of recipients) counts.set(state, (counts.get(state) ?? 0) + 1);
  const states = [...counts];
  return states.length === 1 ? (states[0]?.[0] ?? '')
    : states.map(([state, count]) => `${state} ${String(count)}`).join(', ');
}

/** A line each. Of recipients who differ the last reply is the newest one. */
export function foundTable(messages: readonly FoundMessage[]): string {
  const titles = ['ID', 'CAME', 'FROM', 'TO', 'STATE', 'WHERE', 'LAST REPLY'].map((title) => ({ title }));
  return tableText(titles, messages.map((message) => rowOf(message).map(printable)));
}

function rowOf(message: FoundMessage): readonly string[] {
  const { queue_id: id, arrival_time: arrival, sender, recipients, recipient_count: count, state } = message;
  const shown = recipients.slice(0, ADDRESSES_SHOWN).map(({ address }) => address).join(', ');
  const more = Math.max(recipients.length, count ?? 0) - Math.min(recipients.length, ADDRESSES_SHOWN);
  const last = [...recipients].sort((a, b) => (a.time ?? Infinity) - (b.time ?? Infinity)).at(-1);
  return [
    id, arrival === null ? '?' : listTimeText(arrival), sender === '' ? '<>' : sender,
    more > 0 ? `${shown} +${String(more)}` : shown, state,
    [last?.gateway ?? '', last?.relay ?? ''].filter((word) => word !== '').join(' '), last?.last_reply ?? '',
  ];
}
