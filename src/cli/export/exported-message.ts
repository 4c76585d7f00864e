/**
 * A queued message as the JSON beside its .eml: envelope, state and attempts of each recipient, in the words
 * of `postqueue -j` where it has them. Made from the bytes that stores and gateways keep; an entry that this
 * release can't read is exported all the same, its head and note in base64.
 *
 * Read back by `twinpost send --spool`, which needs sender, recipients, ret, envid, flags and queue_id.
 */
import { formatMessageId } from '../../base/text-id.js';
import { utf8AddressOf } from '../../base/utf8-address.js';
import { xtextDecoded } from '../../gateway/bounce/dsn-text.js';
import { isHidden } from '../../gateway/bounce/hidden-members.js';
import { decodeEnvelope } from '../../gateway/queue/envelope.js';
import { RECIPIENT_STATE_NAMES, TO_TRY, decodeNote, freshNote } from '../../gateway/queue/note.js';
import type { Note } from '../../gateway/queue/note.js';
import {
  ALIAS_KEEPS, ALIAS_SUCCESS, ALIAS_WRITTEN, ENVELOPE_8BIT, ENVELOPE_BY_ANYBODY, ENVELOPE_DOT_LINES,
  ENVELOPE_REQUIRETLS, ENVELOPE_UTF8_HEADER, NOTIFY_BITS, NOTIFY_DELAY, NOTIFY_FAILURE, NOTIFY_NEVER,
  NOTIFY_SUCCESS, RET_FULL, RET_HEADERS,
} from '../../gateway/mail-types.js';
import type { Envelope, Recipient } from '../../gateway/mail-types.js';
import type { Packer } from '../../platform/ports.js';

/** Where messages are found: in a partition of a store, or in a queue of a gateway. */
export interface ExportSource {
  readonly name: string;
  readonly owner: string;
  /** Of the partition; undefined of a queue, which may have mail in several. */
  readonly number: number | undefined;
}

/** `waiting` is to be tried; `sent` was taken by send --spool; the others are over. */
export type RecipientState = (typeof RECIPIENT_STATE_NAMES)[number] | 'sent';

export interface ExportedRecipient {
  readonly address: string;
  readonly state: RecipientState;
  readonly last_reply?: string;
  /** RFC 3461 NOTIFY and ORCPT, left out if not given. */
  readonly notify?: string;
  readonly orcpt?: string;
  /** Of what an alias led to, or stood for: what the sender wrote to, if that is known, and asked for. */
  readonly alias?: ExportedAlias;
}

export interface ExportedAlias {
  readonly address?: string;
  readonly notify?: string;
  /** The recipient is a list that keeps a copy: who sends there sends to all of it. */
  readonly keeps?: true;
}

export interface ExportedMessage {
  readonly queue_name: string;
  readonly queue_class: string;
  readonly queue_id: string;
  /** Gateway that accepted it. */
  readonly owner: string;
  readonly position: number;
  readonly message_size: number;
  readonly sender: string;
  readonly recipients: readonly ExportedRecipient[];
  readonly attempts: number;
  /** Unix seconds. */
  readonly arrival_time: number;
  readonly due_time: number | null;
  readonly expiry_time: number;
  readonly ret?: 'FULL' | 'HDRS';
  readonly envid?: string;
  readonly flags: readonly string[];
  readonly client: string;
  readonly helo: string;
  /** Set when the envelope could not be read: such a message can't be sent again as it is. */
  readonly unreadable?: { readonly head_base64: string; readonly note_base64: string };
}

const FLAGS = [
  [ENVELOPE_8BIT, '8bitmime'], [ENVELOPE_UTF8_HEADER, 'smtputf8'], [ENVELOPE_DOT_LINES, 'dot_lines'],
  [ENVELOPE_REQUIRETLS, 'requiretls'], [ENVELOPE_BY_ANYBODY, 'by_anybody'],
] as const;
const NOTIFIES = [
  [NOTIFY_NEVER, 'NEVER'], [NOTIFY_SUCCESS, 'SUCCESS'], [NOTIFY_FAILURE, 'FAILURE'], [NOTIFY_DELAY, 'DELAY'],
] as const;

/** Queue and class of an entry whose head, which would say them, can't be read. */
const UNREADABLE_QUEUE = 'unreadable';

/** `head` and `note` as mirrored; a note of 0 bytes is none. The head says which queue it is. */
export function exportedMessage(
  packer: Packer, source: ExportSource, messageId: number, position: number, bodyBytes: number,
  head: Uint8Array, note: Uint8Array,
): ExportedMessage {
  const common = {
    queue_name: UNREADABLE_QUEUE, queue_class: UNREADABLE_QUEUE, queue_id: formatMessageId(messageId),
    owner: source.owner, position, message_size: bodyBytes,
  };
  const envelope = decodeEnvelope(packer, messageId, head);
  const decoded = envelope === undefined ? undefined : noteOf(note, envelope.recipients.length);
  if (envelope === undefined || decoded === undefined) {
    return {
      ...common, sender: '', recipients: [], attempts: 0, arrival_time: 0, due_time: null, expiry_time: 0,
      flags: [], client: '', helo: '',
      unreadable: {
        head_base64: Buffer.from(head).toString('base64'), note_base64: Buffer.from(note).toString('base64'),
      },
    };
  }
  return {
    ...common,
    queue_name: envelope.queueName,
    queue_class: envelope.queueClass,
    sender: envelope.reversePath,
    recipients: recipientsOf(envelope, decoded),
    attempts: decoded.attempts,
    arrival_time: envelope.arrivalWallMs / 1000,
    due_time: decoded.dueWallMs === 0 ? null : decoded.dueWallMs / 1000,
    expiry_time: endMs(envelope, decoded) / 1000,
    ...(envelope.ret === RET_FULL
      ? { ret: 'FULL' as const } : envelope.ret === RET_HEADERS ? { ret: 'HDRS' as const } : {}),
    ...(envelope.envid === '' ? {} : { envid: envelope.envid }),
    flags: FLAGS.filter(([bit]) => (envelope.flags & bit) !== 0).map(([, name]) => name),
    client: envelope.client,
    helo: envelope.helo,
  };
}

/** Held by an operator: if it were released now. */
function endMs({ expiryWallMs }: Envelope, { addedSeconds, heldSinceWallMs }: Note): number {
  const heldMs = heldSinceWallMs === 0 ? 0 : Math.max(0, Date.now() - heldSinceWallMs);
  return expiryWallMs + addedSeconds * 1000 + heldMs;
}

function recipientsOf(envelope: Envelope, note: Note): ExportedRecipient[] {
  const replies = new Map(note.results.map((result) => [
    result.recipient, [result.code, result.enhanced].filter((part) => part !== '' && part !== 0).join(' '),
  ]));
  return envelope.recipients.map((recipient, i) => {
    const reply = replies.get(i);
    return {
      address: recipient.address,
      state: RECIPIENT_STATE_NAMES[note.states[i] ?? TO_TRY] ?? 'ended',
      ...(reply === undefined ? {} : { last_reply: reply }),
      ...notifyOf(recipient.notify),
      ...(recipient.orcpt === '' ? {} : { orcpt: recipient.orcpt }),
      ...((recipient.notify & ~NOTIFY_BITS) === 0 ? {} : { alias: aliasOf(recipient) }),
    };
  });
}

function notifyOf(bits: number): { readonly notify?: string } {
  if ((bits & NOTIFY_BITS) === 0) return {};
  return { notify: NOTIFIES.filter(([bit]) => (bits & bit) !== 0).map(([, word]) => word).join(',') };
}

/** Success that we were to tell was asked for beside the rest, or alone: then the rest is NEVER. */
function aliasOf(recipient: Recipient): ExportedAlias {
  const { address, notify, orcpt } = recipient;
  const asked = (notify & ALIAS_SUCCESS) === 0 ? notify : (notify & ~NOTIFY_NEVER) | NOTIFY_SUCCESS;
  const isKnown = (notify & ALIAS_WRITTEN) !== 0;
  const written = !isHidden(recipient) ? address : isKnown ? writtenTo(orcpt) : '';
  const keeps = (notify & ALIAS_KEEPS) === 0 ? {} : { keeps: true } as const;
  return { ...(written === '' ? {} : { address: written }), ...notifyOf(asked), ...keeps };
}

/** Of an ORCPT that is ours. */
function writtenTo(orcpt: string): string {
  const given = orcpt.slice(orcpt.indexOf(';') + 1);
  return orcpt.toLowerCase().startsWith('utf-8;') ? utf8AddressOf(given) : xtextDecoded(given);
}

/** Undefined when the note can't be read. Its bytes may come from a file that somebody changed. */
function noteOf(bytes: Uint8Array, recipients: number): Note | undefined {
  return bytes.length === 0 ? freshNote(recipients) : decodeNote(bytes);
}
