/**
 * Messages as lines of mail logs tell of them: the newest line of a recipient is what became of him. Lines
 * may come in any order, and a message from several logs: who delivers it after a takeover logs the same id.
 */
import type { LoggedMessage, LoggedRecipient, LoggedState } from '../admin-api/logged.js';
import type { LogFields } from './log-filter.js';

/** Of replies and reasons so much is told: an answer has thousands of them. */
const REPLY_CHARACTERS_MAX = 200;
const NAME_CHARACTERS_MAX = 1024;
/** Of all messages together: an answer has some 2 MB then. */
const RECIPIENTS_MAX = 4_000;

const STATES: ReadonlySet<unknown> = new Set<LoggedState>([
  'received', 'deferred', 'delivered', 'bounced', 'expired', 'removed',
]);

type Facts = Omit<LoggedMessage, 'recipients'>;
type Gathered = Facts & { readonly recipients: Map<string, LoggedRecipient> };

export class LoggedMail {
  readonly #messages = new Map<string, Gathered>();
  #recipients = 0;
  /** Recipients were left out. */
  isCut = false;

  get count(): number {
    return this.#messages.size;
  }

  /** Whether each of them has come to its end. */
  areEnded(ids: readonly string[]): boolean {
    return ids.every((id) => {
      const message = this.#messages.get(id);
      return message !== undefined && message.recipient_count !== null && !isOpen(listed(message));
    });
  }

  /** A line of the log. What is none of a message is passed over. */
  addLine(fields: LogFields, atMs: number): void {
    const { event, queue_id: id } = fields;
    if (typeof id !== 'string' || !STATES.has(event)) return;
    const delay = numberOf(fields['delay']);
    const isReceived = event === 'received';
    const message = {
      queue_id: nameOf(id), message_id: nameOf(fields['message_id']), sender: nameOf(fields['from']),
      arrival_ms: isReceived ? atMs : delay === null ? null : Math.max(0, Math.round(atMs - delay * 1000)),
      message_size: wholeOf(fields['size']), recipient_count: isReceived ? wholeOf(fields['nrcpt']) : null,
      recipients: [recipientOf(fields, event as LoggedState, atMs)],
    };
    this.add(message);
  }

  add(message: LoggedMessage): void {
    const { queue_id: id, recipients, ...facts } = message;
    const known = this.#messages.get(id);
    const gathered: Gathered = known === undefined
      ? { queue_id: id, ...facts, recipients: new Map() } : { ...known, ...factsOf(known, message) };
    this.#messages.set(id, gathered);
    for (const recipient of recipients) this.#addRecipient(gathered.recipients, recipient);
  }

  all(): readonly LoggedMessage[] {
    return [...this.#messages.values()].map(listed);
  }

  /** Those that came last. */
  newest(most: number): readonly LoggedMessage[] {
    return [...this.all()].sort((a, b) => timeOf(a) - timeOf(b)).slice(-most);
  }

  #addRecipient(recipients: Map<string, LoggedRecipient>, recipient: LoggedRecipient): void {
    const key = `${recipient.address} ${recipient.given}`;
    const known = recipients.get(key);
    if (known !== undefined) {
      if (isLater(recipient, known)) recipients.set(key, recipient);
    } else if (this.#recipients >= RECIPIENTS_MAX) {
      this.isCut = true;
    } else {
      this.#recipients += 1;
      recipients.set(key, recipient);
    }
  }
}

/** Nobody has said yet what became of some recipient. */
export function isOpen({ recipients, recipient_count: count }: LoggedMessage): boolean {
  return recipients.length < (count ?? 1) || recipients.some(({ state }) => !isEnd(state));
}

export function isEnd(state: LoggedState): boolean {
  return state !== 'received' && state !== 'deferred';
}

/** Clocks of two gateways may differ: what ends is the last whatever they say. */
function isLater(one: LoggedRecipient, other: LoggedRecipient): boolean {
  const [oneRank, otherRank] = [rankOf(one.state), rankOf(other.state)];
  return oneRank === otherRank ? one.at_ms >= other.at_ms : oneRank > otherRank;
}

function rankOf(state: LoggedState): number {
  return isEnd(state) ? 2 : Number(state === 'deferred');
}

/** When it came, as far as that is known. */
export function timeOf({ arrival_ms: arrivalMs, recipients }: LoggedMessage): number {
  return arrivalMs ?? recipients[0]?.at_ms ?? 0;
}

/** The line of the acceptance knows best; another one says more than none. */
function factsOf(known: Facts, other: Facts): Facts {
  const [best, rest] = other.recipient_count === null ? [known, other] : [other, known];
  return {
    queue_id: best.queue_id, message_id: best.message_id || rest.message_id,
    arrival_ms: best.arrival_ms ?? rest.arrival_ms, sender: best.sender || rest.sender,
    message_size: best.message_size ?? rest.message_size,
    recipient_count: best.recipient_count ?? rest.recipient_count,
  };
}

/** The first recipient is received by the name that was given; an alias may have led elsewhere. */
function listed({ recipients, ...facts }: Gathered): LoggedMessage {
  const all = [...recipients.values()];
  const isToldOtherwise = ({ address, state }: LoggedRecipient): boolean => state === 'received'
    && all.some((one) => one.given === address || (one.address === address && one.state !== 'received'));
  return { ...facts, recipients: all.filter((one) => !isToldOtherwise(one)) };
}

function recipientOf(fields: LogFields, state: LoggedState, atMs: number): LoggedRecipient {
  return {
    address: nameOf(fields['to']), given: nameOf(fields['orig_to']), state, at_ms: atMs,
    gateway: nameOf(fields['gateway']), relay: nameOf(fields['relay']),
    reply: textOf(fields['last'] ?? fields['reply'] ?? fields['reason']).slice(0, REPLY_CHARACTERS_MAX),
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function nameOf(value: unknown): string {
  return textOf(value).slice(0, NAME_CHARACTERS_MAX);
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

function wholeOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : null;
}
