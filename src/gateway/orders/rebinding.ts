/**
 * Mail that waits for a destination goes by another route, by the word of an operator. An entry says by its
 * head which queue it stands in (queue/envelope.ts), and a head never changes: so the message is stored anew,
 * under its id, in the queue that the route has for it, and the entry before is deleted, in one section of
 * changes, which a copy takes as a whole or not at all. It stays in its partition, with its arrival, its end,
 * and what has become of it so far; whoever gets the partition next finds it there.
 *
 *   an entry that rests ─ no room, its body at the stores ─► asked for again
 *                       ─ STORE for each queue, ANNOTATE, DELETE ─► STORING ─ at all copies ─► placed by its
 *                                                                   note: due now, held or delayed as before
 *
 * It stands behind the mail that the queue has in this partition; what was rebound together keeps its order.
 * A strict queue has all of its mail in one partition: none is led into it. What a reload does when a route
 * leads elsewhere is queue/successors.ts. Pure.
 */
import type { Order } from '../../admin-api/orders.js';
import { formatMessageId } from '../../base/text-id.js';
import type { Crc32, EventLog, Packer, ToAscii } from '../../platform/ports.js';
import { normalizeDomain } from '../inbound/policy/address.js';
import { ENTRY_CREDIT_BYTES } from '../mirror/partition.js';
import type { Partition } from '../mirror/partition.js';
import type { CommitWaiter } from '../mirror/wait-list.js';
import type { Entries } from '../queue/entries.js';
import { ENTRY_BOOKKEEPING_BYTES } from '../queue/entries.js';
import { EntryState } from '../queue/entry-table.js';
import { encodeEnvelope } from '../queue/envelope.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { MemoryGauge } from '../queue/memory-gauge.js';
import type { MessageHolds } from '../queue/message-holds.js';
import type { Note } from '../queue/note.js';
import { OWED_FAILURE, OWED_SUCCESS, TO_TRY, noteRoom } from '../queue/note.js';
import type { QueueRegistry } from '../queue/queue-registry.js';
import type { RecoveredQueues } from '../queue/recovered-queues.js';
import type { Settlement } from '../queue/settlement.js';
import type { Envelope, QueueClass, Route, Router } from '../queue/types.js';

export interface RebindingPorts {
  readonly crc32: Crc32;
  readonly packer: Packer;
  readonly log: EventLog;
  readonly toAscii: ToAscii;
  readonly router: Router;
  readonly entries: Entries;
  readonly memory: MemoryGauge;
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

interface Stored {
  readonly queue: MailQueue;
  readonly row: number;
  readonly messageId: number;
}

/** One message: placed when every copy has it. */
class Rebound implements CommitWaiter {
  readonly stored: Stored[] = [];
  readonly #partition: Partition;
  readonly #ports: RebindingPorts;

  constructor(partition: Partition, ports: RebindingPorts) {
    this.#partition = partition;
    this.#ports = ports;
  }

  onCommitted(): void {
    if (this.#partition.isForgotten) return;
    const { entries: { table }, recovered } = this.#ports;
    for (const { queue, row, messageId } of this.stored) {
      const isThere = table.index.find(messageId, queue.handle) === row;
      if (isThere && table.state(row) === EntryState.STORING) recovered.placeAdopted(queue, row);
    }
  }
}

export class Rebinding {
  readonly #ports: RebindingPorts;

  constructor(ports: RebindingPorts) {
    this.#ports = ports;
  }

  /** Why nothing can be led by the route of this name; '' when it can. */
  whyNoRoute(name: string): string {
    // Of a route with a queue for each domain, one like all of them.
    const route = this.#ports.router.routeNamed(name, 'example', 'mail');
    if (route === undefined) return `this gateway has no route named '${name}'`;
    return route.ordering === 'strict'
      ? `route '${name}' is strict: its mail stands in one partition, and no other can be led into it` : '';
  }

  /** All who wait for it wait in the queue that this route has for them. */
  isThere(queue: MailQueue, envelope: Envelope, note: Note, name: string): boolean {
    const groups = this.#groupsOf(queue, envelope, note, name);
    return groups.length === 1 && groups[0]?.route.label === queue.label;
  }

  /** Memory and stores have room to have it once more until they know that it is gone from where it was. */
  hasRoom({ partition }: MailQueue, row: number): boolean {
    const { entries, memory } = this.#ports;
    const bytes = entries.bytes(row) + entries.room(row) + HEAD_GROWS_BYTES;
    const creditBytes = bytes + ENTRY_CREDIT_BYTES;
    if (partition.credit < creditBytes) {
      partition.askCredit(creditBytes);
      return false;
    }
    const memoryBytes = bytes + ENTRY_BOOKKEEPING_BYTES;
    return memory.admits(memoryBytes) && memory.admitsPassing(memoryBytes + creditBytes);
  }

  /** An entry that rests, and is all here. Why not; '' when it waits for the copies, and goes on then. */
  rebindEntry(queue: MailQueue, row: number, name: string, order: Order): string {
    const { entries, settlement, holds, log } = this.#ports;
    const why = this.whyNoRoute(name) || holds.whyNotEnded(queue, row);
    if (why !== '') return why;
    const envelope = settlement.envelopeOf(row);
    if (envelope === undefined) return 'this release can not read its envelope: export it';
    const note = settlement.noteOf(row, envelope.recipients.length);
    const owes = note.states.includes(OWED_FAILURE) || note.states.includes(OWED_SUCCESS);
    if (note.owedChange !== 0 || owes) return 'a report is owed of it';
    if (holds.isReleasing(row)) return 'it is being released at this moment';
    if (entries.isDamaged(row)) return 'its checksum is wrong: export it';
    const groups = this.#groupsOf(queue, envelope, note, name);
    const targets = groups.map(({ route }) => this.#ports.registry.ledInto(queue.partition, route));
    const isTaken = targets.some((target) =>
      target !== undefined && entries.table.index.find(envelope.messageId, target.handle) !== 0);
    if (isTaken) return 'it waits in a queue of that route, too, for others of its recipients';
    if (targets.includes(undefined)) return 'no more queues can be made here, for there are too many';
    const { reason, who } = order;
    const names = groups.map(({ route }) => route.queueName).join(', ');
    log.warn('rebound', 'a message goes by another route, by the word of an operator', {
      queue: queue.name, to_queue: names, queue_id: formatMessageId(envelope.messageId), reason, who,
    });
    this.#move(queue, row, envelope, note, groups, targets.filter((target) => target !== undefined));
    return '';
  }

  #groupsOf(queue: MailQueue, { recipients }: Envelope, note: Note, name: string): readonly LedRecipients[] {
    const { queueClass, nextHop: { tlsNeed } } = queue.route;
    const groups = new Map<string, LedRecipients>();
    recipients.forEach(({ address }, index) => {
      if (note.states[index] !== TO_TRY) return;
      const found = this.#routeOf(address, queueClass, name);
      if (found === undefined) return;
      const route = tlsNeed === undefined ? found : this.#ports.router.withTls(found, tlsNeed);
      const group = groups.get(route.label);
      if (group === undefined) groups.set(route.label, { route, indexes: [index] });
      else group.indexes.push(index);
    });
    return [...groups.values()];
  }

  #routeOf(address: string, queueClass: QueueClass, name: string): Route | undefined {
    const { router, toAscii } = this.#ports;
    const domain = address.slice(address.lastIndexOf('@') + 1);
    return router.routeNamed(name, normalizeDomain(domain, toAscii), queueClass);
  }

  #move(
    queue: MailQueue, row: number, envelope: Envelope, note: Note, groups: readonly LedRecipients[],
    targets: readonly MailQueue[],
  ): void {
    const { entries, settlement } = this.#ports;
    const { partition } = queue;
    const body = new Uint8Array(entries.table.bodyBytes.get(row));
    entries.copyBody(row, body, 0);
    const rebound = new Rebound(partition, this.#ports);
    partition.together(() => {
      groups.forEach((group, i) => {
        const target = targets[i];
        if (target !== undefined) this.#store(target, row, body, envelope, note, group, rebound);
      });
      settlement.withdrawFromWaiting(queue, row);
      settlement.end(queue, row);
    });
    partition.awaitEnd(partition.lastNumber, rebound);
  }

  /** As the row before says it, but for whom it waits and where. */
  #store(
    target: MailQueue, row: number, body: Uint8Array, envelope: Envelope, note: Note,
    { route: { queueClass, queueName }, indexes }: LedRecipients, { stored }: Rebound,
  ): void {
    const { entries, entries: { table }, crc32, packer, settlement } = this.#ports;
    const { partition } = target;
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
    table.position.set(made, partition.store(messageId, 0, [body], body.length, head, checksum, room));
    target.append(made, entries.bytes(made));
    if (entries.hasNote(row)) {
      settlement.annotate(target, made, this.#noteFor(row, note, indexes));
      const { hold, replies } = settlement.textsOf(row);
      const own = new Map(indexes.map((index, at) => [at, replies.get(index) ?? '']));
      settlement.tell(target, made, { hold, replies: own });
    }
    stored.push({ queue: target, row: made, messageId });
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
