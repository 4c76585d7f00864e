/**
 * Mail that waits for a destination goes by another route, by the word of an operator. An entry says by its
 * head which queue it stands in (queue/envelope.ts), and a head never changes: so the message is stored anew,
 * under its id, in the queue that the route has for it, and the entry before is deleted, in one section of
 * changes, which a copy takes as a whole or not at all. It stays in its partition, with its arrival, its end,
 * and what has become of it so far; whoever gets the partition next finds it there.
 *
 *   an entry that rests ─ no room, its body at the stores ─► asked for again
 *                       ─ STORE, ANNOTATE, DELETE ─► STORING ─ at all copies ─► placed by its note: due now,
 *                                                    held or delayed as before
 *
 * One whose recipients the route would have in several queues is refused: its body would stand in one section
 * once for each of them.
 *
 * It stands behind the mail that the queue has in this partition; what was rebound together keeps its order.
 * A strict queue has all of its mail in one partition: none is led into it. What a reload does when a route
 * leads elsewhere is queue/successors.ts. Pure.
 */
import type { Order } from '../../admin-api/orders.js';
import { formatMessageId } from '../../base/text-id.js';
import type { Crc32, EventLog, Packer, ToAscii } from '../../platform/ports.js';
import { normalizeDomain } from '../../smtp/address.js';
import type { Mirrors } from '../mirror/mirrors.js';
import { ENTRY_CREDIT_BYTES } from '../mirror/set/partition.js';
import type { CommitWaiter } from '../mirror/wait-list.js';
import type { EndingReserve } from '../queue/reports/ending-reserve.js';
import type { Entries } from '../queue/entries.js';
import { ENTRY_BOOKKEEPING_BYTES } from '../queue/entries.js';
import { EntryState } from '../queue/entry-table.js';
import { NOTHING_SAID } from '../queue/entry-texts.js';
import { encodeEnvelope } from '../queue/envelope.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { MemoryGauge } from '../queue/memory-gauge.js';
import type { MessageHolds } from '../queue/message-holds.js';
import type { Note } from '../queue/note.js';
import { OWED_FAILURE, OWED_SUCCESS, TO_TRY, noteRoom } from '../queue/note.js';
import type { QueueRegistry } from '../queue/queue-registry.js';
import type { RecoveredQueues } from '../recovered/recovered-queues.js';
import type { Settlement } from '../queue/settlement.js';
import type { Envelope, QueueClass, Route, Router } from '../mail-types.js';

export interface RebindingPorts {
  readonly crc32: Crc32;
  readonly packer: Packer;
  readonly log: EventLog;
  readonly toAscii: ToAscii;
  readonly router: Router;
  readonly entries: Entries;
  readonly memory: MemoryGauge;
  readonly mirrors: Mirrors;
  /** Of full stores, shared with reports. */
  readonly endingReserve: EndingReserve;
  readonly registry: QueueRegistry;
  readonly settlement: Settlement;
  readonly holds: MessageHolds;
  readonly recovered: RecoveredQueues;
}

/** Recipients of one message for whom the route has the same queue. */
interface LedRecipients {
  readonly route: Route;
  /** Indexes in the envelope before. */
  readonly indexes: number[];
}

/** What can be led, and where. */
export interface RebindPlan {
  readonly queue: MailQueue;
  readonly row: number;
  readonly envelope: Envelope;
  readonly note: Note;
  readonly led: LedRecipients;
}

/** One message: placed when every copy has it. */
class Rebound implements CommitWaiter {
  readonly queue: MailQueue;
  readonly #row: number;
  readonly #messageId: number;
  /** By which it is longer at the stores than it was. */
  readonly #growthBytes: number;
  readonly #underWay: Set<Rebound>;
  readonly #ports: RebindingPorts;

  constructor(
    queue: MailQueue, row: number, growthBytes: number, underWay: Set<Rebound>, ports: RebindingPorts,
  ) {
    this.queue = queue;
    this.#row = row;
    this.#messageId = ports.entries.table.messageId(row);
    this.#growthBytes = growthBytes;
    this.#underWay = underWay;
    this.#ports = ports;
  }

  onCommitted(): void {
    this.#underWay.delete(this);
    if (this.queue.partition.isForgotten) return;
    const { entries: { table }, endingReserve, recovered } = this.#ports;
    const row = this.#row;
    endingReserve.lessen(this.#messageId, row, this.#growthBytes);
    const isSame = table.messageId(row) === this.#messageId && table.queueHandle(row) === this.queue.handle;
    if (isSame && table.state(row) === EntryState.STORING) recovered.placeAdopted(this.queue, row);
  }
}

export class Rebinding {
  readonly #ports: RebindingPorts;
  /** Their copies have not all of them yet. */
  readonly #underWay = new Set<Rebound>();

  constructor(ports: RebindingPorts) {
    this.#ports = ports;
  }

  /** Some is on its way to the copies: it gives room back in a moment. */
  get isUnderWay(): boolean {
    for (const one of this.#underWay) if (one.queue.partition.isForgotten) this.#underWay.delete(one);
    return this.#underWay.size > 0;
  }

  /** Why nothing can be led by the route of this name; '' when it can. */
  whyNoRoute(name: string): string {
    // Of a route with a queue for each domain, one like all of them.
    const route = this.#ports.router.routeNamed(name, 'example', 'mail', '');
    if (route === undefined) return `this gateway has no route named '${name}'`;
    return route.ordering === 'strict'
      ? `route '${name}' is strict: its mail stands in one partition, and no other can be led into it` : '';
  }

  /** All who wait for it wait in the queue that this route has for them. */
  isThere(queue: MailQueue, envelope: Envelope, note: Note, name: string): boolean {
    const groups = this.#groupsOf(queue, envelope, note, name);
    return groups.length === 1 && groups[0]?.route.label === queue.label;
  }

  /**
   * Why it must wait; '' when it need not. While its partition is being read, or another copy of it taken in,
   * the entry before could come once more. It needs room here and at the stores to be there twice for a
   * moment: what new mail leaves alone, and of full stores what they keep for the ends of mail, is for it,
   * too. A body that others share is not gone with it: it goes only where new mail could.
   */
  whyNotYet({ partition }: MailQueue, row: number): string {
    const { entries, memory, mirrors, endingReserve } = this.#ports;
    if (partition.isRecovering) return 'its partition is still being read';
    if (partition.isAdopting) return 'a copy of its partition is being taken in';
    const isShared = entries.table.shared.get(row) !== 0;
    const bytes = entries.bytes(row) + entries.room(row) + HEAD_GROWS_BYTES;
    const creditBytes = bytes + ENTRY_CREDIT_BYTES;
    if (partition.credit < creditBytes) {
      partition.askCredit(creditBytes);
      if (isShared || !endingReserve.admits(creditBytes)) return 'no room at the stores';
    }
    const coming = entries.grainBytes + mirrors.sender.uncountedBytes;
    const memoryBytes = bytes + ENTRY_BOOKKEEPING_BYTES + coming;
    const isRoom = memory.admitsPassing(memoryBytes + creditBytes);
    return isRoom && (!isShared || memory.admits(memoryBytes)) ? '' : 'no room in memory';
  }

  /** For an entry that rests, and is all here. Or why it can't be led. */
  planFor(queue: MailQueue, row: number, name: string): RebindPlan | string {
    const { entries, settlement, holds } = this.#ports;
    const why = this.whyNoRoute(name) || holds.whyNotEnded(queue, row);
    if (why !== '') return why;
    const envelope = settlement.envelopeOf(row);
    if (envelope === undefined) return 'this release can not read its envelope: export it';
    const note = settlement.noteOf(row, envelope.recipients.length);
    const owes = note.states.includes(OWED_FAILURE) || note.states.includes(OWED_SUCCESS);
    if (note.owedChange !== 0 || owes) return 'a report is owed of it';
    if (holds.isReleasing(row)) return 'it is being released at this moment';
    if (entries.isDamaged(row)) return 'its checksum is wrong: export it';
    const [led, ...others] = this.#groupsOf(queue, envelope, note, name);
    if (others.length > 0) {
      return `its recipients would go into ${String(1 + others.length)} queues of that route: `
        + 'it can be led only by a route with one queue for them';
    }
    const count = note.states.reduce((sum, state) => sum + (state === TO_TRY ? 1 : 0), 0);
    if (led?.indexes.length !== count) return 'that route has no queue for some of its recipients';
    const known = queue.partition.queues.get(led.route.label);
    if (known !== undefined && entries.table.index.find(envelope.messageId, known.handle) !== 0) {
      return 'it waits in a queue of that route, too, for others of its recipients';
    }
    return { queue, row, envelope, note, led };
  }

  /** Why not; '' when it waits for the copies, and goes on then. */
  carryOut(plan: RebindPlan, { reason, who }: Order): string {
    const { queue: { name, partition }, envelope: { messageId }, led: { route } } = plan;
    const target = this.#ports.registry.ledInto(partition, route);
    if (target === undefined) return 'no more queues can be made here, for there are too many';
    this.#ports.log.warn('rebound', 'a message goes by another route, by the word of an operator', {
      queue: name, to_queue: route.queueName, queue_id: formatMessageId(messageId), reason, who,
    });
    this.#move(plan, target);
    return '';
  }

  #groupsOf(
    queue: MailQueue, { recipients, reversePath }: Envelope, note: Note, name: string,
  ): readonly LedRecipients[] {
    const { queueClass, nextHop: { tlsNeed } } = queue.route;
    const groups = new Map<string, LedRecipients>();
    recipients.forEach(({ address }, index) => {
      if (note.states[index] !== TO_TRY) return;
      const found = this.#routeOf(address, queueClass, name, reversePath);
      if (found === undefined) return;
      const route = tlsNeed === undefined ? found : this.#ports.router.withTls(found, tlsNeed);
      const group = groups.get(route.label);
      if (group === undefined) groups.set(route.label, { route, indexes: [index] });
      else group.indexes.push(index);
    });
    return [...groups.values()];
  }

  #routeOf(address: string, queueClass: QueueClass, name: string, reversePath: string): Route | undefined {
    const { router, toAscii } = this.#ports;
    const domain = address.slice(address.lastIndexOf('@') + 1);
    return router.routeNamed(name, normalizeDomain(domain, toAscii), queueClass, reversePath);
  }

  #move(plan: RebindPlan, target: MailQueue): void {
    const { entries, settlement, endingReserve } = this.#ports;
    const { queue, row, envelope: { messageId } } = plan;
    const { partition } = queue;
    const body = new Uint8Array(entries.table.bodyBytes.get(row));
    entries.copyBody(row, body, 0);
    const bytesBefore = this.#storedBytes(row);
    const { credit } = partition;
    const made = partition.together(() => {
      const stored = this.#store(plan, target, body);
      settlement.withdrawFromWaiting(queue, row);
      settlement.end(queue, row);
      return stored;
    });
    const bytes = this.#storedBytes(made);
    if (credit < bytes + ENTRY_CREDIT_BYTES) endingReserve.add(messageId, made, bytes + ENTRY_CREDIT_BYTES);
    const rebound = new Rebound(target, made, bytes - bytesBefore, this.#underWay, this.#ports);
    this.#underWay.add(rebound);
    partition.awaitEnd(partition.lastNumber, rebound);
  }

  #storedBytes(row: number): number {
    return this.#ports.entries.bytes(row) + this.#ports.entries.room(row);
  }

  /** As the row before says it, but for whom it waits and where. */
  #store({ row, envelope, note, led }: RebindPlan, target: MailQueue, body: Uint8Array): number {
    const { entries, entries: { table }, crc32, packer, settlement } = this.#ports;
    const { route: { queueClass, queueName }, indexes } = led;
    const { messageId } = envelope;
    const recipients = indexes.flatMap((index) => envelope.recipients[index] ?? []);
    const head = encodeEnvelope(packer, { ...envelope, queueClass, queueName, recipients });
    const checksum = crc32(head, crc32(body, 0));
    const room = noteRoom(recipients.length);
    const slot = entries.contents.storeOwn([body], body.length, head, room);
    const made = entries.create(
      target, messageId, slot, 0, body.length, checksum, table.arrivalSeconds.get(row),
      table.expirySeconds.get(row), room,
    );
    table.transition(made, EntryState.STORING);
    table.delaySettled.set(made, table.delaySettled.get(row));
    table.waitTold.set(made, table.waitTold.get(row));
    const position = target.partition.store(messageId, 0, [body], body.length, head, checksum, room);
    table.position.set(made, position);
    target.append(made, entries.bytes(made));
    if (entries.hasNote(row)) {
      settlement.annotate(target, made, this.#noteFor(row, note, indexes));
      const { hold, replies } = settlement.textsOf(row);
      const own = new Map(indexes.map((index, at) => [at, replies.get(index) ?? NOTHING_SAID]));
      settlement.tell(target, made, { hold, replies: own });
    }
    return made;
  }

  /** What it was deferred for is of the route before: it is due, unless an operator delays it. */
  #noteFor(row: number, note: Note, indexes: readonly number[]): Note {
    const isDelayed = this.#ports.holds.isDelayed(row, note);
    const at = new Map(indexes.map((index, place) => [index, place]));
    const results = note.results.flatMap((result) => {
      const recipient = at.get(result.recipient);
      return recipient === undefined ? [] : [{ ...result, recipient }];
    });
    const states = new Uint8Array(indexes.length).fill(TO_TRY);
    return { ...note, states, results, isDelayed, dueWallMs: isDelayed ? note.dueWallMs : 0 };
  }
}

/** The name of another queue is so much longer, with what else is written otherwise. */
const HEAD_GROWS_BYTES = 512;
