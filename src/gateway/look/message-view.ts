/**
 * One entry as operators see it: as a row of a list, and alone with all that is known of it: where it lies,
 * what became of each recipient, and why it is still here (waiting-reason.ts). Reads what is there now.
 */
import type { MessageAnswer } from '../../admin-api/gateway-answers.js';
import type { ShownEntry, ShownMessageAnswer } from '../../admin-api/look.js';
import { formatMessageId } from '../../base/text-id.js';
import { wholeSeconds } from '../../base/units.js';
import { latin1Text } from '../../base/utf8.js';
import { SEARCHED_BYTES_MAX, messageIdWithin } from '../inbound/content/message-id-field.js';
import { EntryState } from '../queue/entry-table.js';
import type { MailQueue } from '../queue/mail-queue.js';
import { givenAddress } from '../queue/given-address.js';
import { nextHopOf } from '../queue/next-hop.js';
import type { LastResult, Note } from '../queue/note.js';
import { OWED_FAILURE, RECIPIENT_STATE_NAMES, TO_TRY } from '../queue/note.js';
import type { Envelope, Recipient } from '../mail-types.js';
import type { ReasonPorts } from './waiting-reason.js';
import { whyItIsHere } from './waiting-reason.js';

const MESSAGE_STATES: Readonly<Record<number, MessageAnswer['state']>> = {
  [EntryState.STORING]: 'incoming',
  [EntryState.READY]: 'queued',
  [EntryState.IN_FLIGHT]: 'active',
  [EntryState.DEFERRED]: 'deferred',
  [EntryState.REPORTING]: 'ending',
  [EntryState.HELD]: 'held',
};

/** Of a queue, for one that was put off. */
const LOOKED_AT_MAX = 100;

export class MessageView {
  readonly #ports: ReasonPorts;

  constructor(ports: ReasonPorts) {
    this.#ports = ports;
  }

  /** In a list; of the recipients those whom a selector may mean (gateway/orders/selection.ts). */
  row(queue: MailQueue, row: number): MessageAnswer {
    const { core } = this.#ports;
    const { envelope, note } = this.#read(queue, row);
    const isHeld = core.entries.table.state(row) === EntryState.HELD;
    // Whoever was not tried waits for the next hop.
    const outage = isHeld ? '' : core.outageOf(queue)?.why.text ?? '';
    const recipients = this.#recipients(row, envelope, note, (state, one, reply) => {
      if (state !== TO_TRY && state !== OWED_FAILURE) return undefined;
      const why = reply === '' && state === TO_TRY ? outage : reply;
      const given = givenAddress(one);
      return {
        address: one.address, ...(given === '' ? {} : { given }),
        ...(state === TO_TRY ? {} : { state: 'ending' as const }),
        ...(why === '' ? {} : { delay_reason: why }),
      };
    });
    return { ...this.#common(queue, row, envelope, note), recipients };
  }

  /** Unix seconds; null: the next hop put none of the first messages of the queue off. */
  nextTryOf(queue: MailQueue): number | null {
    const { entries: { table }, holds } = this.#ports.core;
    let row = queue.first;
    for (let seen = 0; seen < LOOKED_AT_MAX && row !== 0; seen++) {
      if (table.state(row) === EntryState.DEFERRED || queue.isBlockedBy(row)) {
        const { envelope, note } = this.#read(queue, row);
        // One that an operator delays waits for him, and tells nothing of the next hop.
        if (!holds.isDelayed(row, note)) return this.#common(queue, row, envelope, note).next_attempt_time;
      }
      row = queue.following(row);
    }
    return null;
  }

  shown(messageId: number): ShownMessageAnswer {
    const { core } = this.#ports;
    const entries = Array.from(core.registry.placesOf(messageId), ({ queue, row }) =>
      this.#entry(queue, row));
    return { queue_id: formatMessageId(messageId), entries, incomplete: core.isIncomplete };
  }

  #entry(queue: MailQueue, row: number): ShownEntry {
    const { entries: { table } } = this.#ports.core;
    const { envelope, note } = this.#read(queue, row);
    const common = this.#common(queue, row, envelope, note);
    const toTry = toTryName(table.state(row));
    const recipients = this.#recipients(row, envelope, note, (state, { address }, reply) => ({
      address,
      state: state === TO_TRY ? toTry : RECIPIENT_STATE_NAMES[state] ?? 'ended',
      ...(reply === '' ? {} : { last_reply: reply }),
    }));
    const { partition, route } = queue;
    const position = table.position.get(row);
    return {
      ...common, recipients,
      partition: partition.name,
      epoch: partition.epoch,
      next_hop: nextHopOf(queue),
      order: route.ordering,
      client: envelope?.client ?? '',
      helo: envelope?.helo ?? '',
      ...this.#messageId(row),
      why: whyItIsHere(queue, row, this.#ports),
      copies: partition.rows.map((copy) =>
        ({ store: copy.storeId, sync: copy.shown, has: !copy.isEmptied && copy.acked >= position })),
    };
  }

  #messageId(row: number): { readonly message_id?: string } {
    const { entries } = this.#ports.core;
    if (entries.isAbsent(row)) return {};
    const start = new Uint8Array(Math.min(entries.table.bodyBytes.get(row), SEARCHED_BYTES_MAX));
    entries.copyBody(row, start, 0, start.length);
    const id = messageIdWithin(start, latin1Text);
    return id === undefined || id === '' ? {} : { message_id: id };
  }

  #read(queue: MailQueue, row: number): { readonly envelope: Envelope | undefined; readonly note: Note } {
    const { core } = this.#ports;
    const envelope = core.envelopeOf(row);
    // Where only its place is here, who looks again sees all of it.
    if (core.entries.isAllAbsent(row)) core.entries.absent.wantLater(queue.partition, row);
    return { envelope, note: core.noteOf(row, envelope?.recipients.length ?? 0) };
  }

  /** What `made` answers for each, with what was said of it last. */
  #recipients<T>(
    row: number, envelope: Envelope | undefined, note: Note,
    made: (state: number, recipient: Recipient, reply: string) => T | undefined,
  ): T[] {
    const texts = this.#ports.core.textsOf(row);
    const results = new Map(note.results.map((result) => [result.recipient, result]));
    const recipients: T[] = [];
    envelope?.recipients.forEach((recipient, index) => {
      const reply = texts.get(index)?.text ?? codesOf(results.get(index));
      const one = made(note.states[index] ?? TO_TRY, recipient, reply);
      if (one !== undefined) recipients.push(one);
    });
    return recipients;
  }

  #common(
    queue: MailQueue, row: number, envelope: Envelope | undefined, note: Note,
  ): Omit<MessageAnswer, 'recipients'> {
    const { core } = this.#ports;
    const { table } = core.entries;
    const heldReason = core.holds.reasonOf(queue, row);
    const delay = core.holds.delayOf(row);
    const aheadMs = core.frame.aheadMs();
    const state = table.state(row);
    // The head of a strict queue waits for its time in its place.
    const isTimed = state === EntryState.DEFERRED || (state === EntryState.READY && queue.isBlockedBy(row));
    return {
      queue_name: queue.name,
      queue_class: queue.route.queueClass,
      owner: queue.ownerId,
      queue_id: formatMessageId(table.messageId(row)),
      arrival_time: envelope === undefined ? table.arrivalSeconds.get(row)
        : wholeSeconds(envelope.arrivalWallMs),
      message_size: table.bodyBytes.get(row),
      sender: envelope?.reversePath ?? '',
      state: MESSAGE_STATES[state] ?? 'held',
      ...(heldReason === '' ? {} : { held_reason: heldReason }),
      ...(delay === undefined ? {}
        : { delayed_until: wholeSeconds(delay.untilWallMs), delayed_reason: delay.why }),
      attempts: table.attempts.get(row),
      next_attempt_time: isTimed && note.dueWallMs > 0 ? wholeSeconds(note.dueWallMs + aheadMs) : null,
      expiry_time: envelope === undefined ? 0 : wholeSeconds(core.holds.expiryWallMs(row, note) + aheadMs),
    };
  }
}

function toTryName(state: number): 'waiting' | 'in delivery' | 'held' {
  if (state === EntryState.HELD) return 'held';
  return state === EntryState.IN_FLIGHT ? 'in delivery' : 'waiting';
}

/** What is left of a reply whose text is not known any more. */
function codesOf(last: LastResult | undefined): string {
  if (last === undefined) return '';
  return [last.code === 0 ? '' : String(last.code), last.enhanced].filter((part) => part !== '').join(' ');
}
