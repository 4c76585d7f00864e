/**
 * To whom a message of a spool goes, by its envelope and what the operator wants of aliases.
 *
 *   state                     alias    --aliases
 *   waiting                   no       any         to its address
 *   waiting                   yes      none        to nobody: stays, and is told
 *                                      original    to the address that the sender wrote to: once a message,
 *                                                  for all of its files; whoever takes it asks its own table
 *                                      members     to its address, which reports of others may then name;
 *                                                  to nobody where that is the list itself (`keeps`), whose
 *                                                  members would get it again: stays, and is told
 *   failed, delivered;        any      any         to nobody: told as long as its file says so
 *   report owed
 *   else                                           to nobody: it had its outcome
 *
 * What an alias led to stands in files of its own for each queue, and of a list some may have the message
 * already: nobody but the operator knows whether these shall get it twice, or the sender learn of the others.
 */
import type { SpoolRecipient } from '../../load/spool-client.js';
import { OWED_FAILURE, OWED_SUCCESS, RECIPIENT_STATE_NAMES, TO_TRY } from '../../gateway/queue/note.js';

export const ALIAS_CHOICES = ['original', 'members'] as const;
export type AliasChoice = (typeof ALIAS_CHOICES)[number];

/** A recipient as its file has it. */
export interface SpooledRecipient extends Partial<SpoolRecipient> {
  readonly address: string;
  readonly state: string;
  /** What RCPT said, once it is SENT. */
  readonly sent_to?: string | undefined;
  readonly alias?: WrittenTo | undefined;
}

interface WrittenTo {
  readonly address?: string | undefined;
  readonly notify?: string | undefined;
  readonly keeps?: true | undefined;
}

/** One RCPT, and whom of the file it is for. */
export interface PlannedRecipient extends SpoolRecipient {
  readonly standsFor: SpooledRecipient[];
}

export interface SpoolPlan {
  readonly recipients: readonly PlannedRecipient[];
  /** They have it by what an earlier file was sent to. */
  readonly covered: readonly SpooledRecipient[];
  /** Why the file stays, whatever the server takes. */
  readonly troubles: readonly string[];
}

const OWED_STATES: readonly string[] = [OWED_FAILURE, OWED_SUCCESS].map((state) => nameOf(state));
const WAITING = nameOf(TO_TRY);
/** The server took it, in this run or an earlier one. */
export const SENT = 'sent';
/** Of those that a line names. */
const NAMED_MAX = 5;
const NEVER = 'NEVER';

/** The file has something to send, or to tell. */
export function isUnfinished({ state }: SpooledRecipient): boolean {
  return state === WAITING || OWED_STATES.includes(state);
}

export class SpoolPlanner {
  readonly #choice: AliasChoice | undefined;
  /** What the sender asked of the addresses that he wrote to, by all files of a message. */
  readonly #written = new Map<string, Set<string>>();
  /** Of those, and of others: who has the message. */
  readonly #taken = new Set<string>();

  constructor(choice: AliasChoice | undefined) {
    this.#choice = choice;
  }

  /**
   * With `original` of each file before any is planned, also of what earlier runs have sent: a member who was
   * sent to by himself says nothing of the list. `message`: the same for all files of one message.
   */
  look(message: string, recipients: readonly SpooledRecipient[]): void {
    for (const { state, alias, sent_to: sentTo } of recipients) {
      if (state === SENT && sentTo !== undefined) this.#taken.add(keyOf(message, sentTo));
      if (state !== WAITING || alias?.address === undefined) continue;
      const key = keyOf(message, alias.address);
      const written = this.#written.get(key) ?? new Set();
      this.#written.set(key, written);
      for (const word of alias.notify?.split(',') ?? []) written.add(word);
    }
  }

  plan(message: string, recipients: readonly SpooledRecipient[]): SpoolPlan {
    const planned = new Map<string, PlannedRecipient>();
    const covered: SpooledRecipient[] = [];
    const unwanted: SpooledRecipient[] = [];
    for (const one of recipients) {
      if (one.state !== WAITING) continue;
      if (one.alias !== undefined && !this.#isKnown(one)) {
        unwanted.push(one);
        continue;
      }
      const address = this.addressOf(one);
      const key = keyOf(message, address);
      const written = this.#written.get(key);
      const before = written === undefined ? undefined : planned.get(address);
      if (written !== undefined && this.#taken.has(key)) covered.push(one);
      else if (before !== undefined) before.standsFor.push(one);
      else {
        const notify = written === undefined ? one.notify : askedOf(written);
        // The same address twice is no less than what was accepted.
        const place = written === undefined ? `${address} ${String(planned.size)}` : address;
        planned.set(place, { address, notify, orcpt: one.orcpt, standsFor: [one] });
      }
    }
    return {
      recipients: [...planned.values()], covered,
      troubles: [...this.#aliasTrouble(unwanted), ...owedTrouble(recipients)],
    };
  }

  /** The server is responsible for it. */
  onTaken(message: string, { address }: PlannedRecipient): void {
    const key = keyOf(message, address);
    if (this.#written.has(key)) this.#taken.add(key);
  }

  /** What RCPT says for it. */
  addressOf({ address, alias }: SpooledRecipient): string {
    return this.#choice === 'original' ? alias?.address ?? address : address;
  }

  #isKnown({ alias }: SpooledRecipient): boolean {
    if (this.#choice === 'members') return alias?.keeps !== true;
    return this.#choice === 'original' && alias?.address !== undefined;
  }

  #aliasTrouble(unwanted: readonly SpooledRecipient[]): string[] {
    if (unwanted.length === 0) return [];
    const members = '--aliases members to what it led to, which reports may then name';
    const original = '--aliases original sends to the address that was written to';
    if (this.#choice === 'members') {
      return [`${named(unwanted)} is a list that keeps a copy, and leads to its members again: ${original}; `
        + 'or deliver the copy by hand, and set the state to "ended"'];
    }
    return [this.#choice === 'original'
      ? `${named(unwanted)} by an alias whose address is not known: ${members}`
      : `${named(unwanted)} by an alias: ${original}, ${members}`];
  }
}

/** Nobody makes these reports any more: an operator must know. */
function owedTrouble(recipients: readonly SpooledRecipient[]): string[] {
  const owed = recipients.filter(({ state }) => OWED_STATES.includes(state));
  if (owed.length === 0) return [];
  return [`a report is owed of ${named(owed)}, and not sent: tell the sender, and set the state to "ended"`];
}

/** NEVER of some is all that their part of an alias had to tell. */
function askedOf(notify: ReadonlySet<string>): string | undefined {
  if (notify.size === 0) return undefined;
  const words = [...notify].filter((word) => word !== NEVER);
  return words.length === 0 ? NEVER : words.join(',');
}

function keyOf(message: string, address: string): string {
  return `${message} ${address}`;
}

function nameOf(state: number): string {
  return RECIPIENT_STATE_NAMES[state] ?? '';
}

function named(some: readonly SpooledRecipient[]): string {
  const names = some.slice(0, NAMED_MAX).map(({ address, state }) =>
    (state === WAITING ? `<${address}>` : `<${address}> (${state.replace(/,.*/, '')})`));
  const more = some.length - names.length;
  return `${names.join(', ')}${more > 0 ? ` and ${String(more)} more` : ''}`;
}
