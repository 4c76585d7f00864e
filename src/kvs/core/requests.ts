/**
 * The requests of an active connection: each is decoded, applied to the store, and answered in order.
 *
 *   CHANGES TEXTS REFILL REFILL_END        by the cumulative ACK at the end of the turn or after much, or a
 *   RELEASE                                REFUSAL in place
 *   FENCE ASK TELL LIST                    FENCED or DECLINED, ASKED, TOLD, LISTED at once
 *   PULL TAIL                              an answer that may be large: while the socket's buffer is full it
 *                                          waits, and the ACK stays below it (replies.ts)
 *
 * FENCE binds a handle to a copy and a term, and each request by that handle is for that term: what a higher
 * one has fenced since is refused, on whatever connection it comes.
 *
 * A CHANGES frame makes one view and no object per row. A broken layout closes the connection with the rule's
 * name; a request that does not fit the state of its copy is refused and changes nothing. docs/PROTOCOL.md.
 */

import { invariant } from '../../base/invariant.js';
import type { Clock, EventLog, Packer } from '../../platform/ports.js';
import type { Connection } from '../../platform/transport.js';
import { CHANGE_ROW_BYTES } from '../../protocol/change-rows.js';
import { ENTRY_ROW_BYTES } from '../../protocol/entry-rows.js';
import { InvalidMessage } from '../../protocol/invalid.js';
import {
  ACK, ASK, ASKED, CHANGES, DECLINED, FENCE, FENCED, FETCH, LIST, LISTED, PULL, REFILL, REFILL_END, REFUSAL,
  RELEASE, TAIL, TELL, TEXTS, TOLD, messageTypeName,
} from '../../protocol/message-types.js';
import { encodeAck } from '../../protocol/messages/ack.js';
import { decodeAsk } from '../../protocol/messages/ask.js';
import { encodeAsked } from '../../protocol/messages/asked.js';
import {
  decodeChanges, sectionCount, sectionDigestA, sectionDigestB, sectionFirstNumber, sectionHandle, sectionRows,
} from '../../protocol/messages/changes.js';
import { encodeDeclined } from '../../protocol/messages/declined.js';
import type { Fence } from '../../protocol/messages/fence.js';
import { decodeFence } from '../../protocol/messages/fence.js';
import { encodeFenced } from '../../protocol/messages/fenced.js';
import { decodeRefill } from '../../protocol/messages/refill.js';
import { decodeRefillEnd } from '../../protocol/messages/refill-end.js';
import { encodeRefusal } from '../../protocol/messages/refusal.js';
import { decodeRelease } from '../../protocol/messages/release.js';
import { decodeList } from '../../protocol/messages/list.js';
import { encodeListed } from '../../protocol/messages/listed.js';
import { decodeTell } from '../../protocol/messages/tell.js';
import { decodeTexts } from '../../protocol/messages/texts.js';
import { encodeTold } from '../../protocol/messages/told.js';
import {
  CLOSE_LIMIT, CLOSE_MALFORMED, REFUSAL_LIMIT, REFUSAL_UNKNOWN, declinedReasonName, refusalReasonName,
} from '../../protocol/reasons.js';
import type { GatewayAccount } from './accounts.js';
import { Attachment } from './attachment.js';
import type { StoreCounters } from './counters.js';
import type { MirroredPartition } from './mirrored-partition.js';
import type { ConnectionWriter } from './connection-writer.js';
import { Replies } from './replies.js';
import { SectionMeasure } from './section-measure.js';
import type { Store } from './store.js';

/** Handles of one connection: every partition of a group, several times over. */
const HANDLES_MAX = 65_536;
/** Copies in one ACK: past this an ACK goes out within the turn (ack.ts takes 16,384). */
const TOUCHED_MAX = 8_192;
/** Refusals, and fences declined, of one connection that are logged; the counters go on. */
const REFUSALS_LOGGED_MAX = 100;

export interface RequestsPorts {
  readonly packer: Packer;
  readonly clock: Clock;
  readonly log: EventLog;
  readonly outbox: ConnectionWriter;
  readonly connection: Connection;
  readonly close: (reason: number, text: string) => void;
}

export class Requests {
  readonly #ports: RequestsPorts;
  readonly #store: Store;
  readonly #counters: StoreCounters;
  readonly #replies: Replies;
  readonly #measure: SectionMeasure;
  readonly #attachments = new Map<number, Attachment>();
  readonly #touched: Attachment[] = [];
  readonly #ack: number[] = [];
  #account: GatewayAccount | undefined;
  #sequence = 0;
  #acked = 0;
  #ackDue = false;
  #refusalsLogged = 0;

  constructor(
    options: { readonly bufferHighBytes: number }, ports: RequestsPorts, store: Store,
    counters: StoreCounters,
  ) {
    this.#ports = ports;
    this.#store = store;
    this.#counters = counters;
    this.#measure = new SectionMeasure({ shared: store.shared });
    this.#replies = new Replies(options, {
      packer: ports.packer, outbox: ports.outbox, connection: ports.connection, close: ports.close,
      refuse: (sequence, handle, reason, copy) => { this.#refuse(sequence, handle, reason, copy); },
    }, store, counters);
  }

  /** The connection became active for this gateway. */
  begin(account: GatewayAccount): void {
    this.#account = account;
  }

  /** A request that needs no acknowledgement was taken. */
  passed(sequence: number): void {
    this.#sequence = sequence;
  }

  detachAll(): void {
    this.#attachments.clear();
    this.#touched.length = 0;
    this.#replies.clear();
  }

  get heldBytes(): number {
    return this.#replies.heldBytes;
  }

  serve(): void {
    this.#replies.serve();
  }

  /**
   * `bodyBytes`: of the frame. None are in `bodies` when memory had no room for them: what needs them is
   * refused. `bodySum`: their checksum, -1 when it is not known.
   */
  take(
    type: number, sequence: number, control: Uint8Array, bodies: Uint8Array, bodyBytes: number,
    bodySum: number,
  ): void {
    this.#sequence = sequence;
    this.#ackDue = true;
    if (type === CHANGES) {
      this.#onChanges(sequence, control, bodies, bodyBytes, bodySum);
      return;
    }
    if (bodyBytes > 0 && type !== REFILL) {
      this.#malformed(type, 'bodies where none belong');
      return;
    }
    switch (type) {
      case FENCE: this.#onFence(sequence, control); break;
      case ASK: this.#onAsk(sequence, control); break;
      case TELL: this.#onTell(sequence, control); break;
      case LIST: this.#onList(sequence, control); break;
      case RELEASE: this.#onRelease(sequence, control); break;
      case TEXTS: this.#onTexts(control); break;
      case REFILL: this.#onRefill(sequence, control, bodies, bodyBytes); break;
      case REFILL_END: this.#onRefillEnd(sequence, control); break;
      case PULL: case TAIL: case FETCH: this.#replies.take(type, sequence, control, this.#attachments); break;
      default: this.#malformed(type, 'not a request');
    }
  }

  /** One ACK for all that this turn applied or refused. */
  acknowledge(): void {
    if (!this.#ackDue) return;
    const through = this.#replies.firstWaiting === 0 ? this.#sequence : this.#replies.firstWaiting - 1;
    this.#ackDue = false;
    if (through === this.#acked && this.#touched.length === 0) return;
    this.#acked = through;
    const ack = this.#ack;
    ack.length = 2 + 2 * this.#touched.length;
    ack[0] = through;
    ack[1] = this.#store.admission.grant(this.#holder());
    for (let i = 0; i < this.#touched.length; i += 1) {
      const attachment = this.#touched[i];
      if (attachment === undefined) break;
      attachment.touched = false;
      ack[2 + 2 * i] = attachment.handle;
      ack[3 + 2 * i] = attachment.copy.number;
    }
    this.#touched.length = 0;
    this.#counters.acks += 1;
    this.#ports.outbox.frame(ACK, through, encodeAck(this.#ports.packer, ack));
  }

  #onChanges(
    sequence: number, control: Uint8Array, bodies: Uint8Array, bodyBytes: number, bodySum: number,
  ): void {
    const changes = decodeChanges(this.#ports.packer, control);
    if (changes instanceof InvalidMessage) {
      this.#malformed(CHANGES, changes.rule);
      return;
    }
    const account = this.#holder();
    const measure = this.#measure;
    const sections = sectionCount(changes);
    this.#store.applier.beginFrame(changes, bodies, bodySum);
    let view = new DataView(control.buffer);
    let payloadAt = 0;
    for (let i = 0; i < sections; i += 1) {
      const rows = sectionRows(changes, i);
      if (rows.buffer !== view.buffer) view = new DataView(rows.buffer);
      const rowCount = rows.length / CHANGE_ROW_BYTES;
      const firstNumber = sectionFirstNumber(changes, i);
      const handle = sectionHandle(changes, i);
      const attachment = this.#attachments.get(handle);
      const repeats = attachment === undefined ? 0 : attachment.copy.number + 1 - firstNumber;
      const rule = measure.measure(
        view, rows.byteOffset, rowCount, repeats, attachment?.copy.ownerAccount ?? 0,
      );
      if (rule !== '' || payloadAt + measure.payloadBytes > bodyBytes) {
        this.#store.applier.endFrame();
        this.#malformed(CHANGES, rule === '' ? 'bodies cut short' : rule);
        return;
      }
      const isUnread = measure.payloadBytes > 0 && bodies.length < bodyBytes && repeats < rowCount;
      const start = bodies.length < bodyBytes ? 0 : payloadAt;
      payloadAt += measure.payloadBytes;
      if (attachment !== undefined && attachment.refused) continue;
      let reason = this.#store.check(attachment);
      if (reason === 0 && attachment !== undefined) {
        reason = isUnread ? REFUSAL_LIMIT : this.#store.applySection(
          account, attachment, firstNumber, sectionDigestA(changes, i), sectionDigestB(changes, i),
          view, rows.byteOffset, rowCount, bodies, start, measure.costBytes,
        );
        if (reason === 0) this.#touch(attachment);
      }
      this.#counters.sections += 1;
      this.#counters.changes += rowCount;
      if (reason !== 0) this.#refuseAt(sequence, handle, reason, attachment);
    }
    this.#store.applier.endFrame();
    if (payloadAt !== bodyBytes) this.#malformed(CHANGES, 'bodies left over');
  }

  #onFence(sequence: number, control: Uint8Array): void {
    const { packer, clock, outbox } = this.#ports;
    const message = decodeFence(packer, control);
    if (message instanceof InvalidMessage) {
      this.#malformed(FENCE, message.rule);
      return;
    }
    const account = this.#holder();
    const nowMs = clock.nowMs();
    const { reason, copy } = this.#store.fence(account, message, nowMs);
    if (copy === undefined) {
      this.#decline(sequence, message, reason);
      return;
    }
    if (!this.#bind(new Attachment(message.handle, copy, message.term))) return;
    this.#counters.fences += 1;
    outbox.frame(FENCED, sequence, encodeFenced(packer, this.#store.fenced(account, message, copy, nowMs)));
  }

  #onAsk(sequence: number, control: Uint8Array): void {
    const { packer, clock, outbox } = this.#ports;
    const message = decodeAsk(packer, control);
    if (message instanceof InvalidMessage) this.#malformed(ASK, message.rule);
    else outbox.frame(ASKED, sequence, encodeAsked(packer, this.#store.ask(message, clock.nowMs())));
  }

  #onTell(sequence: number, control: Uint8Array): void {
    const { packer, outbox } = this.#ports;
    const message = decodeTell(packer, control);
    if (message instanceof InvalidMessage) {
      this.#malformed(TELL, message.rule);
      return;
    }
    const { partition, record } = message;
    const isKept = this.#store.tell(message);
    outbox.frame(TOLD, sequence, encodeTold(packer, { partition, epoch: record.epoch, isKept }));
  }

  #onList(sequence: number, control: Uint8Array): void {
    const { packer, outbox, clock } = this.#ports;
    const message = decodeList(packer, control);
    if (message instanceof InvalidMessage) this.#malformed(LIST, message.rule);
    else outbox.frame(LISTED, sequence, encodeListed(packer, this.#store.list(message, clock.nowMs())));
  }

  #onRelease(sequence: number, control: Uint8Array): void {
    const message = decodeRelease(this.#ports.packer, control);
    if (message instanceof InvalidMessage) {
      this.#malformed(RELEASE, message.rule);
      return;
    }
    const attachment = this.#attachments.get(message.handle);
    // Of one that is fenced by now, too: its lease is waited for.
    if (attachment?.copy.isGone === false) this.#store.release(attachment);
    else this.#refuseAt(sequence, message.handle, REFUSAL_UNKNOWN, attachment);
  }

  /**
   * Whose term the copy does not admit, or whose changes are refused, is not heard; nor told: whatever it
   * changes, it hears.
   */
  #onTexts(control: Uint8Array): void {
    const message = decodeTexts(this.#ports.packer, control);
    if (message instanceof InvalidMessage) {
      this.#malformed(TEXTS, message.rule);
      return;
    }
    for (const { handle, rows } of message) {
      const attachment = this.#attachments.get(handle);
      if (attachment === undefined || attachment.refused || this.#store.check(attachment) !== 0) continue;
      this.#store.keepTexts(attachment.copy, rows);
    }
  }

  #onRefill(sequence: number, control: Uint8Array, bodies: Uint8Array, bodyBytes: number): void {
    const message = decodeRefill(this.#ports.packer, control);
    if (message instanceof InvalidMessage) {
      this.#malformed(REFILL, message.rule);
      return;
    }
    const { rows } = message;
    const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
    const rowCount = rows.length / ENTRY_ROW_BYTES;
    if (this.#store.refills.payloadBytes(view, 0, rowCount) !== bodyBytes) {
      this.#malformed(REFILL, 'rows and bodies do not fit');
      return;
    }
    if (this.#attachments.get(message.handle)?.refused === true) return;
    const attachment = this.#held(sequence, message.handle);
    if (attachment === undefined) return;
    const reason = bodies.length < bodyBytes ? REFUSAL_LIMIT : this.#store.refill(
      this.#holder(), attachment.copy, view, 0, rowCount, bodies,
    );
    if (reason !== 0) this.#refuseAt(sequence, message.handle, reason, attachment);
    else this.#touch(attachment);
  }

  #onRefillEnd(sequence: number, control: Uint8Array): void {
    const message = decodeRefillEnd(this.#ports.packer, control);
    if (message instanceof InvalidMessage) {
      this.#malformed(REFILL_END, message.rule);
      return;
    }
    if (this.#attachments.get(message.handle)?.refused === true) return;
    const attachment = this.#held(sequence, message.handle);
    if (attachment === undefined) return;
    const reason = this.#store.refills.end(attachment.copy, message.count);
    if (reason !== 0) this.#refuseAt(sequence, message.handle, reason, attachment);
    else this.#touch(attachment);
  }

  #holder(): GatewayAccount {
    invariant(this.#account !== undefined, 'an active connection has an account');
    return this.#account;
  }

  /** The attachment if its term still holds the copy; else the request is refused here. */
  #held(sequence: number, handle: number): Attachment | undefined {
    const attachment = this.#attachments.get(handle);
    const reason = this.#store.check(attachment);
    if (reason === 0) return attachment;
    this.#refuseAt(sequence, handle, reason, attachment);
    return undefined;
  }

  #bind(attachment: Attachment): boolean {
    const before = this.#attachments.get(attachment.handle);
    if (before === undefined && this.#attachments.size >= HANDLES_MAX) {
      this.#ports.close(CLOSE_LIMIT, 'too many handles on one connection');
      return false;
    }
    // FENCED says where the handle stands now; the next ACK must not say where it stood.
    if (before?.touched === true) this.#touched.splice(this.#touched.indexOf(before), 1);
    this.#attachments.set(attachment.handle, attachment);
    return true;
  }

  #touch(attachment: Attachment): void {
    if (attachment.touched) return;
    attachment.touched = true;
    this.#touched.push(attachment);
    if (this.#touched.length >= TOUCHED_MAX) {
      this.acknowledge();
      this.#ackDue = true;
    }
  }

  #refuseAt(sequence: number, handle: number, reason: number, attachment: Attachment | undefined): void {
    if (attachment !== undefined) attachment.refused = true;
    this.#refuse(sequence, handle, reason, attachment?.copy);
  }

  #refuse(sequence: number, handle: number, reason: number, copy: MirroredPartition | undefined): void {
    const text = refusalReasonName(reason);
    this.#counters.refused(reason);
    if (this.#mayLog()) {
      this.#ports.log.warn('mirror', 'request refused', {
        gateway: this.#account?.id, partition: copy?.partition, handle, reason: text, number: copy?.number,
      });
    }
    this.#ports.outbox.frame(REFUSAL, sequence, encodeRefusal(this.#ports.packer, {
      sequence, handle, reason, text,
      number: copy?.number ?? 0, digestA: copy?.digestA ?? 0, digestB: copy?.digestB ?? 0,
    }));
  }

  #decline(sequence: number, { handle, partition, term }: Fence, reason: number): void {
    const { term: known, told } = this.#store.partitions.peek(partition);
    this.#counters.declined(reason);
    if (this.#mayLog()) {
      this.#ports.log.warn('mirror', 'term declined', {
        gateway: this.#account?.id, partition,
        term: term.number, known: known.number, reason: declinedReasonName(reason),
      });
    }
    this.#ports.outbox.frame(
      DECLINED, sequence, encodeDeclined(this.#ports.packer, { handle, reason, asked: term, known, told }),
    );
  }

  #mayLog(): boolean {
    this.#refusalsLogged += 1;
    return this.#refusalsLogged <= REFUSALS_LOGGED_MAX;
  }

  #malformed(type: number, rule: string): void {
    this.#ports.close(CLOSE_MALFORMED, `${messageTypeName(type)}: ${rule}`);
  }
}

