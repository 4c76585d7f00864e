/**
 * The requests of an active connection: each is decoded, applied to the store, and answered in order.
 *
 *   OPEN DROP CHANGES TEXTS RELEASE REFILL… by the cumulative ACK at the end of the turn or after much, or a REFUSAL in place
 *   CLAIM CONFIRM                          CLAIMED at once
 *   LIST PULL PULL_BODIES TAIL             an answer that may be large: while the socket's buffer is full it waits,
 *                                          and the ACK stays below it (replies.ts)
 *
 * A CHANGES frame makes one view and no object per row. A broken layout closes the connection with the rule's name;
 * a request that does not fit the queue's state is refused and changes nothing. docs/PROTOCOL.md.
 */

import { invariant } from '../../base/invariant.js';
import type { Clock, EventLog, Packer } from '../../platform/ports.js';
import type { Connection } from '../../platform/transport.js';
import { CHANGE_ROW_BYTES } from '../../protocol/change-rows.js';
import { ENTRY_ROW_BYTES } from '../../protocol/entry-rows.js';
import { InvalidMessage } from '../../protocol/invalid.js';
import {
  ACK, CHANGES, CLAIM, CLAIMED, CONFIRM, DROP, LIST, OPEN, PULL, PULL_BODIES, REFILL, REFILL_BEGIN, REFILL_END, REFUSAL, RELEASE, TAIL, TEXTS,
  messageTypeName,
} from '../../protocol/message-types.js';
import { encodeAck } from '../../protocol/messages/ack.js';
import {
  decodeChanges, sectionCount, sectionDigestA, sectionDigestB, sectionFirstNumber, sectionHandle, sectionRows,
} from '../../protocol/messages/changes.js';
import { decodeClaim } from '../../protocol/messages/claim.js';
import { encodeClaimed } from '../../protocol/messages/claimed.js';
import { decodeConfirm } from '../../protocol/messages/confirm.js';
import { decodeDrop } from '../../protocol/messages/drop.js';
import { decodeOpen } from '../../protocol/messages/open.js';
import { decodeRefill } from '../../protocol/messages/refill.js';
import { decodeRefillBegin } from '../../protocol/messages/refill-begin.js';
import { decodeRefillEnd } from '../../protocol/messages/refill-end.js';
import { encodeRefusal } from '../../protocol/messages/refusal.js';
import { decodeRelease } from '../../protocol/messages/release.js';
import { decodeTexts } from '../../protocol/messages/texts.js';
import { CLAIM_GRANTED, CLOSE_MALFORMED, REFUSAL_LIMIT, refusalReasonName } from '../../protocol/reasons.js';
import type { GatewayAccount } from './accounts.js';
import { Attachment } from './attachment.js';
import { ClaimLog } from './claim-log.js';
import { claimedOf } from './claimed-of.js';
import type { ClaimVerdict } from './claims.js';
import type { StoreCounters } from './counters.js';
import type { MirroredQueue } from './mirrored-queue.js';
import type { ConnectionWriter } from './connection-writer.js';
import { Replies } from './replies.js';
import { SectionMeasure } from './section-measure.js';
import type { Store } from './store.js';

/** Queues in one ACK: past this an ACK goes out within the turn (ack.ts takes 16,384). */
const TOUCHED_MAX = 8_192;
/** Refusals of one connection that are logged; the counters go on. */
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
  readonly #claims: ClaimLog;
  #account: GatewayAccount | undefined;
  #sequence = 0;
  #acked = 0;
  #ackDue = false;
  #refusalsLogged = 0;

  constructor(options: { readonly bufferHighBytes: number }, ports: RequestsPorts, store: Store, counters: StoreCounters) {
    this.#ports = ports;
    this.#store = store;
    this.#counters = counters;
    this.#claims = new ClaimLog(ports.log);
    this.#measure = new SectionMeasure({ shared: store.shared });
    this.#replies = new Replies(options, {
      packer: ports.packer, outbox: ports.outbox, connection: ports.connection, close: ports.close,
      refuse: (sequence, handle, reason, queue) => { this.#refuse(sequence, handle, reason, queue); },
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

  tick(nowMs: number): void {
    if (this.#account !== undefined) this.#claims.tick(this.#account.id, nowMs);
  }

  detachAll(): void {
    if (this.#account !== undefined) this.#claims.flush(this.#account.id);
    this.#attachments.clear();
    this.#touched.length = 0;
    this.#replies.clear();
  }

  get heldBytes(): number {
    return this.#replies.heldBytes;
  }

  serve(): void {
    if (this.#account !== undefined) this.#replies.serve(this.#account);
  }

  /** `bodyBytes`: of the frame. None are in `bodies` when memory had no room for them: what needs them is refused. `bodySum`: their checksum, -1 when it is not known. */
  take(type: number, sequence: number, control: Uint8Array, bodies: Uint8Array, bodyBytes: number, bodySum: number): void {
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
      case OPEN: this.#onOpen(sequence, control); break;
      case DROP: this.#onDrop(sequence, control); break;
      case CLAIM: this.#onClaim(sequence, control); break;
      case CONFIRM: this.#onConfirm(sequence, control); break;
      case RELEASE: this.#onRelease(control); break;
      case TEXTS: this.#onTexts(control); break;
      case REFILL_BEGIN: this.#onRefillBegin(sequence, control); break;
      case REFILL: this.#onRefill(sequence, control, bodies, bodyBytes); break;
      case REFILL_END: this.#onRefillEnd(sequence, control); break;
      case LIST: case PULL: case PULL_BODIES: case TAIL:
        this.#replies.take(type, sequence, control, this.#attachments, this.#holder());
        break;
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
      ack[3 + 2 * i] = attachment.queue.number;
    }
    this.#touched.length = 0;
    this.#counters.acks += 1;
    this.#ports.outbox.frame(ACK, through, encodeAck(this.#ports.packer, ack));
  }

  #onChanges(sequence: number, control: Uint8Array, bodies: Uint8Array, bodyBytes: number, bodySum: number): void {
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
      const repeats = attachment === undefined ? 0 : attachment.queue.number + 1 - firstNumber;
      const rule = measure.measure(view, rows.byteOffset, rowCount, repeats, attachment?.queue.ownerAccount ?? 0);
      if (rule !== '' || payloadAt + measure.payloadBytes > bodyBytes) {
        this.#store.applier.endFrame();
        this.#malformed(CHANGES, rule === '' ? 'bodies cut short' : rule);
        return;
      }
      const isUnread = measure.payloadBytes > 0 && bodies.length < bodyBytes && repeats < rowCount;
      const start = bodies.length < bodyBytes ? 0 : payloadAt;
      payloadAt += measure.payloadBytes;
      if (attachment !== undefined && attachment.refused) continue;
      let reason = this.#store.checkHolder(account, attachment);
      if (reason === 0 && attachment !== undefined) {
        reason = isUnread ? REFUSAL_LIMIT : this.#store.applySection(
          account, attachment.queue, firstNumber, sectionDigestA(changes, i), sectionDigestB(changes, i),
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

  #onOpen(sequence: number, control: Uint8Array): void {
    const message = decodeOpen(this.#ports.packer, control);
    if (message instanceof InvalidMessage) {
      this.#malformed(OPEN, message.rule);
      return;
    }
    const { handle, ownerId, birth, serial, name, queueClass, ordering, lengthMax, bytesMax, claimants, epoch, members } = message;
    const attributes = { ownerId, birth, serial, name, queueClass, ordering, lengthMax, bytesMax, claimants };
    const opened = this.#store.open(this.#holder(), { attributes, epoch, members });
    if (opened.queue === undefined) this.#refuse(sequence, handle, opened.reason, undefined);
    else this.#attach(handle, opened.queue);
  }

  #onDrop(sequence: number, control: Uint8Array): void {
    const message = decodeDrop(this.#ports.packer, control);
    if (message instanceof InvalidMessage) {
      this.#malformed(DROP, message.rule);
      return;
    }
    const attachment = this.#held(sequence, message.handle);
    if (attachment === undefined) return;
    this.#store.drop(attachment.queue);
    this.#detach(attachment.queue);
  }

  #onClaim(sequence: number, control: Uint8Array): void {
    const message = decodeClaim(this.#ports.packer, control);
    if (message instanceof InvalidMessage) {
      this.#malformed(CLAIM, message.rule);
      return;
    }
    const account = this.#holder();
    const nowMs = this.#ports.clock.nowMs();
    const queue = this.#store.queues.find(message.gatewayId, message.birth, message.serial);
    const verdict = this.#store.claim(account, queue, message.token, nowMs);
    if (queue !== undefined && verdict.result === CLAIM_GRANTED) {
      this.#counters.claimsGranted += 1;
      this.#attach(message.handle, queue);
    }
    this.#claims.note(message.gatewayId, queue?.attributes.name, verdict.result, verdict.waitMs, nowMs);
    this.#claimed(sequence, message.handle, queue, verdict);
  }

  #onConfirm(sequence: number, control: Uint8Array): void {
    const message = decodeConfirm(this.#ports.packer, control);
    if (message instanceof InvalidMessage) {
      this.#malformed(CONFIRM, message.rule);
      return;
    }
    const queue = this.#attachments.get(message.handle)?.queue;
    this.#claimed(sequence, message.handle, queue, this.#store.confirm(this.#holder(), queue, message.token, this.#ports.clock.nowMs()));
  }

  #onRelease(control: Uint8Array): void {
    const message = decodeRelease(this.#ports.packer, control);
    if (message instanceof InvalidMessage) {
      this.#malformed(RELEASE, message.rule);
      return;
    }
    const queue = this.#attachments.get(message.handle)?.queue;
    if (queue !== undefined) this.#store.release(this.#holder(), queue, message.token, message.unused === true);
  }

  /**
   * Whose queue it is not, or whose changes are refused, is not heard; nor told: whatever it changes, it
   * hears.
   */
  #onTexts(control: Uint8Array): void {
    const message = decodeTexts(this.#ports.packer, control);
    if (message instanceof InvalidMessage) {
      this.#malformed(TEXTS, message.rule);
      return;
    }
    for (const { handle, rows } of message) {
      const attachment = this.#attachments.get(handle);
      if (attachment === undefined || attachment.refused || this.#store.checkHolder(this.#holder(), attachment) !== 0) continue;
      this.#store.keepTexts(attachment.queue, rows);
    }
  }

  #onRefillBegin(sequence: number, control: Uint8Array): void {
    const message = decodeRefillBegin(this.#ports.packer, control);
    if (message instanceof InvalidMessage) {
      this.#malformed(REFILL_BEGIN, message.rule);
      return;
    }
    const attachment = this.#held(sequence, message.handle);
    if (attachment === undefined) return;
    attachment.refused = false;
    this.#store.fillAnew(this.#holder(), attachment.queue, message.number, message.digestA, message.digestB);
    this.#touch(attachment);
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
    const reason = bodies.length < bodyBytes ? REFUSAL_LIMIT : this.#store.refill(this.#holder(), attachment.queue, view, 0, rowCount, bodies);
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
    const reason = this.#store.refills.end(attachment.queue, message.count);
    if (reason !== 0) this.#refuseAt(sequence, message.handle, reason, attachment);
    else this.#touch(attachment);
  }

  #holder(): GatewayAccount {
    invariant(this.#account !== undefined, 'an active connection has an account');
    return this.#account;
  }

  /** The attachment if the asker holds its queue; else the request is refused here. */
  #held(sequence: number, handle: number): Attachment | undefined {
    const attachment = this.#attachments.get(handle);
    const reason = this.#store.checkHolder(this.#holder(), attachment);
    if (reason === 0) return attachment;
    this.#refuseAt(sequence, handle, reason, attachment);
    return undefined;
  }

  #attach(handle: number, queue: MirroredQueue): void {
    const attachment = this.#attachments.get(handle);
    if (attachment !== undefined && attachment.queue === queue) {
      attachment.refused = false;
      this.#touch(attachment);
      return;
    }
    const fresh = new Attachment(handle, queue);
    this.#attachments.set(handle, fresh);
    this.#touch(fresh);
  }

  /** A dropped queue is gone under every handle of this connection. */
  #detach(queue: MirroredQueue): void {
    for (const [handle, attachment] of this.#attachments) if (attachment.queue === queue) this.#attachments.delete(handle);
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
    this.#refuse(sequence, handle, reason, attachment?.queue);
  }

  #refuse(sequence: number, handle: number, reason: number, queue: MirroredQueue | undefined): void {
    const text = refusalReasonName(reason);
    this.#counters.refused(reason);
    if (this.#refusalsLogged < REFUSALS_LOGGED_MAX) {
      this.#refusalsLogged += 1;
      this.#ports.log.warn('mirror', 'request refused', {
        gateway: this.#account?.id, queue: queue?.attributes.name, handle, reason: text, number: queue?.number,
      });
    }
    this.#ports.outbox.frame(REFUSAL, sequence, encodeRefusal(this.#ports.packer, {
      sequence, handle, reason, number: queue?.number ?? 0, digestA: queue?.digestA ?? 0, digestB: queue?.digestB ?? 0, text,
    }));
  }

  #claimed(sequence: number, handle: number, queue: MirroredQueue | undefined, verdict: ClaimVerdict): void {
    const { packer, clock, outbox } = this.#ports;
    const claimed = claimedOf(this.#store, this.#holder(), handle, queue, verdict, clock.nowMs());
    outbox.frame(CLAIMED, sequence, encodeClaimed(packer, claimed));
  }

  #malformed(type: number, rule: string): void {
    this.#ports.close(CLOSE_MALFORMED, `${messageTypeName(type)}: ${rule}`);
  }
}

