/**
 * The guarantees G1 to G9 (docs/GUARANTEES.md) as checks on a simulated world, made at the moments when they
 * could break: at a 250, at an attempt, at a final dot, now and then for what holds always, and at the end.
 * Every check compares what was seen from outside (ledger.ts) with the memories of the processes; a check that
 * fails throws a GuaranteeBroken, whose text begins with the guarantee.
 */
import type { GatewayCore } from '../../src/gateway/daemon/core.js';
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import { MailQueue } from '../../src/gateway/queue/mail-queue.js';
import type { Delivery } from '../../src/gateway/mail-types.js';
import { COMMITTED, NOTIFY_NEVER, NO_MEMORY, NOT_READY, REFUSED } from '../../src/gateway/mail-types.js';
import type { PartitionRecord } from '../../src/protocol/partition-record.js';
import { isSameHolder } from '../../src/protocol/partition-record.js';
import { HolderState } from '../../src/recovery/ownership/holder.js';
import type { GatewayNode } from '../scenario/gateway-node.js';
import { hasEntry } from '../scenario/inspect.js';
import { sameBytes, textOf } from '../scenario/letters.js';
import type { StoreNode } from '../scenario/store-node.js';
import { GuaranteeBroken } from './broken.js';
import type { Custody } from './custody.js';
import type { Copy, Dot, Ledger, Letter } from './ledger.js';
import type { Answer } from './next-hops.js';
import { OrderWatch } from './order.js';
import type { SimProcess } from './process.js';

export interface GuaranteePorts {
  readonly gateways: readonly { readonly id: string; readonly node: GatewayNode; readonly process: SimProcess; readonly core: GatewayCore | undefined }[];
  readonly stores: readonly { readonly id: string; readonly node: StoreNode }[];
  readonly ledger: Ledger;
  readonly custody: Custody;
  readonly minReplicas: number;
  /** As the register has them now. */
  records(): ReadonlyMap<string, PartitionRecord>;
  nowMs(): number;
}

function fail(text: string): never {
  throw new GuaranteeBroken(text);
}

export class Guarantees {
  private readonly ports: GuaranteePorts;
  private readonly order = new OrderWatch(fail);
  /** Dots whose attempt is not settled. */
  private readonly open = new Map<Delivery, Dot[]>();

  constructor(ports: GuaranteePorts) {
    this.ports = ports;
  }

  // ---- at a reply ----

  /** The client is about to read its reply. */
  onSettled(letter: Letter, core: GatewayCore): void {
    if (letter.outcome === COMMITTED) {
      for (const copy of letter.copies) this.checkCommitted(letter, copy, core);
      this.order.onCommitted(letter);
      return;
    }
    this.checkRefused(letter);
  }

  /** G1, G6: every member has it, by the register and by what its holder counts on, and there are enough of them. */
  private checkCommitted(letter: Letter, copy: Copy, core: GatewayCore): void {
    const name = `message ${String(letter.id)} of ${letter.gateway} in ${copy.queueName}`;
    const partition = core.registry.partitions.find((one) => one.name === copy.queueKey) ?? fail(`G1: 250 for ${name}, and its gateway does not hold ${copy.queueKey}`);
    const record = this.ports.records().get(copy.queueKey) ?? fail(`G1: 250 for ${name}, and ${copy.queueKey} has no record`);
    const counted = partition.rows.filter((row) => row.isPossible);
    const gone = counted.find((row) => row.isGone);
    if (gone !== undefined) fail(`G1: 250 for ${name} by what ${gone.storeId} had in a boot that is known to be over`);
    // Frozen with the acknowledgements on their way: who took it over has delivered it meanwhile.
    if (copy.isOver && !isSameHolder(record.holder, core.self)) return;
    for (const { storeId, bootId } of [...record.members, ...counted]) {
      const node = this.ports.stores.find((store) => store.id === storeId)?.node;
      if (node?.store === undefined || node.bootId !== bootId) continue; // It had it, and died.
      const held = node.store.partitions.find(copy.queueKey);
      if (held === undefined || !hasEntry(node.store, held, letter.id)) fail(`G1: 250 for ${name}, but member ${storeId} of ${copy.queueKey} lacks it`);
    }
    if (record.members.length < this.ports.minReplicas) fail(`G6: 250 for ${name} with ${String(record.members.length)} members`);
  }

  /** G9. */
  private checkRefused(letter: Letter): void {
    if (letter.outcome !== REFUSED && letter.outcome !== NO_MEMORY && letter.outcome !== NOT_READY) return;
    if (letter.copies.some((copy) => copy.dots.size > 0)) fail(`G9: message ${String(letter.id)} was refused and has arrived`);
  }

  // ---- at an attempt ----

  onAttempt(gateway: string, core: GatewayCore, delivery: Delivery): void {
    const letter = this.ports.ledger.letters.get(delivery.envelope.messageId);
    if (letter === undefined) {
      if (core.mayDeliver(delivery)) this.checkReportStored(mirrorOf(core, delivery), delivery.envelope.messageId);
      return;
    }
    if (letter.outcome === 0 && letter.gateway === gateway) fail(`G1: message ${String(letter.id)} is tried before its client was answered`);
    // A real attempt sends the first bytes long before its dot.
    const content = new Uint8Array(delivery.contentBytes);
    core.copyContent(delivery, content, 0, 0, content.length);
    if (!sameBytes(content, letter.content)) fail(`G2: message ${String(letter.id)} is tried without its body`);
    const copy = letter.copyIn(delivery.queue.route.queueName);
    if (copy !== undefined && copy.firstAttempt === 0 && (core.mayDeliver(delivery) || !this.hasOther(gateway, copy.queueKey))) copy.firstAttempt = this.ports.ledger.moment();
  }

  /** G1 of a report: nobody tries it before every copy that counts and is in step has it. */
  private checkReportStored(partition: Partition, id: number): void {
    for (const { storeId, bootId } of partition.rows.filter((row) => row.isPossible && row.isInStep)) {
      const node = this.ports.stores.find((store) => store.id === storeId)?.node;
      if (node?.store === undefined || node.bootId !== bootId) continue;
      const held = node.store.partitions.find(partition.name);
      if (held === undefined || !hasEntry(node.store, held, id)) fail(`G1: report ${String(id)} is tried, but member ${storeId} of ${partition.name} lacks it`);
    }
  }

  /** Whether another process serves the queue, so that this one's attempts may be those of a former owner. */
  private hasOther(gateway: string, key: string): boolean {
    return this.ports.gateways.some((other) => other.id !== gateway && other.core?.registry.partitions.some((mirror) => mirror.name === key) === true);
  }

  onDot(gateway: string, core: GatewayCore, delivery: Delivery, content: Uint8Array, answers: readonly Answer[]): void {
    const { ledger } = this.ports;
    const mirror = mirrorOf(core, delivery);
    this.checkOneOwner(mirror, gateway);
    const letter = ledger.letters.get(delivery.envelope.messageId);
    if (letter === undefined) {
      this.onReportDot(gateway, mirror, delivery, content, answers);
      return;
    }
    const copy = letter.copyIn(delivery.queue.route.queueName) ?? fail(`G2: message ${String(letter.id)} is tried at ${delivery.queue.route.queueName}, where it was not sent to`);
    if (copy.firstAttempt === 0) copy.firstAttempt = ledger.moment();
    this.order.onDot(copy, delivery.queue.route.ordering === 'strict');
    if (!sameBytes(content, letter.content)) fail(`G2: message ${String(letter.id)} is handed over altered: ${textOf(content.subarray(0, 60))}`);
    if (letter.outcome === REFUSED || letter.outcome === NO_MEMORY || letter.outcome === NOT_READY) fail(`G9: message ${String(letter.id)} was refused and arrives`);
    const isCut = answers.includes('cut');
    const dots: Dot[] = [];
    answers.forEach((answer, i) => {
      const address = delivery.envelope.recipients[delivery.pending[i] ?? 0]?.address ?? '';
      if (answer === 'reject' && !isCut) copy.failed.add(address);
      if (answer !== 'accept' && answer !== 'cut') return;
      const dot = this.newDot(gateway, mirror, delivery.envelope.messageId, isCut);
      const earlier = copy.dots.get(address);
      if (earlier !== undefined) this.explainRepeat(`message ${String(letter.id)} at ${address}`, earlier.at(-1));
      copy.dots.set(address, [...(earlier ?? []), dot]);
      dots.push(dot);
    });
    this.open.set(delivery, dots);
  }

  onSettledAttempt(core: GatewayCore, delivery: Delivery): void {
    const dots = this.open.get(delivery);
    if (dots === undefined) return;
    this.open.delete(delivery);
    // What another process took meanwhile is settled nowhere.
    const settledNumber = partitionOf(core, delivery)?.lastNumber ?? 0;
    for (const dot of dots) dot.settledNumber = settledNumber;
  }

  /** G4: who gives a partition away has heard the end of each attempt: a fault excuses a repeat, this is none. */
  onGivenAway(partition: string): void {
    for (const { id, core } of this.ports.gateways) {
      for (const { name, holder, inFlightCount } of core?.registry.partitions ?? []) {
        if (name !== partition || holder.state !== HolderState.HANDING_BACK || inFlightCount === 0) continue;
        fail(`G4: ${id} gives ${name} away with ${String(inFlightCount)} messages in flight`);
      }
    }
  }

  private newDot(gateway: string, mirror: Partition, messageId: number, isUnanswered: boolean): Dot {
    this.ports.ledger.dots += 1;
    const { custody, gateways } = this.ports;
    const core = gateways.find(({ id }) => id === gateway)?.core;
    return {
      gateway, atMs: this.ports.nowMs(), mirror, set: mirror.set, settledNumber: 0, isUnanswered,
      disasters: custody.disastersOf(mirror.name), mayComeBack: custody.mayComeBack(mirror, core, messageId),
    };
  }

  /** A report reaches its addressee: of a message that exists, and once. */
  private onReportDot(gateway: string, mirror: Partition, delivery: Delivery, content: Uint8Array, answers: readonly Answer[]): void {
    const id = delivery.envelope.messageId;
    const known = this.ports.ledger.reports.get(id) ?? fail(`G2: an unknown message ${String(id)} is handed over`);
    const isCut = answers.includes('cut');
    if (!isCut && !answers.includes('accept')) return;
    const [, of, kind, ...addresses] = textOf(content).trimEnd().split(' ');
    if (Number(of) !== known.letter.id) fail(`G2: report ${String(id)} is altered`);
    const dot = this.newDot(gateway, mirror, delivery.envelope.messageId, isCut);
    if (known.dots.length > 0) this.explainRepeat(`report ${String(id)}`, known.dots.at(-1));
    known.dots.push(dot);
    this.open.set(delivery, [dot]);
    for (const address of addresses) {
      const ids = known.letter.reported.get(`${kind ?? ''} ${address}`) ?? new Set<number>();
      ids.add(id);
      known.letter.reported.set(`${kind ?? ''} ${address}`, ids);
    }
  }

  /** G4: which named window repeats what this dot handed over? */
  private explainRepeat(what: string, dot: Dot | undefined): void {
    if (dot === undefined || dot.isUnanswered) return; // The reply was lost.
    if (dot.mayComeBack) return; // From a copy that was given up, to who does not know what was taken from it.
    const key = dot.mirror.name;
    if (this.ports.custody.disastersOf(key) > dot.disasters) return; // All copies of the deletion are gone.
    if (dot.settledNumber > 0 && (dot.set?.ackedByAllNumber ?? 0) < dot.settledNumber) return; // The deletion was not at all copies.
    const sender = this.ports.gateways.find((one) => one.id === dot.gateway);
    const core = sender?.core;
    const isOwner = sender !== undefined && core?.registry.partitions.includes(dot.mirror) === true && dot.mirror.mayDeliver(sender.process.nowMs);
    if (dot.settledNumber === 0 && !isOwner) return; // It ended, or lost its right, before it heard the reply.
    fail(`G4: ${what} is handed over again without a fault: first by ${dot.gateway} at ${dot.atMs.toFixed(1)}, settled as change ${String(dot.settledNumber)} of ${key}, at all copies ${String(dot.set?.ackedByAllNumber)}`);
  }

  // ---- always ----

  /** G5 at a dot: nobody else may send one for this queue at this instant. */
  private checkOneOwner(mirror: Partition, gateway: string): void {
    const key = mirror.name;
    for (const other of this.ports.gateways) {
      if (other.id === gateway) continue;
      for (const theirs of other.core?.registry.partitions ?? []) {
        if (theirs.name === key && theirs.mayDeliver(other.process.nowMs)) fail(`G5: ${gateway} delivers from ${mirror.name} (${key}) while ${other.id} may`);
      }
    }
  }

  /** G5 and G7, whatever happens. Frozen processes too: they would look at their clock as soon as they go on. */
  onStep(): void {
    const owners = new Map<string, string>();
    for (const { id, core, process } of this.ports.gateways) {
      if (core === undefined) continue;
      if (core.memory.usedBytes > core.memory.limitBytes) fail(`G7: ${id} uses ${String(core.memory.usedBytes)} of ${String(core.memory.limitBytes)} bytes`);
      for (const mirror of core.registry.partitions) {
        const isKept = mirror.holder.state === HolderState.HOLDER && mirror.isLeaving;
        if (isKept) fail(`G2b: ${id} holds ${mirror.name}, and has stopped to deliver from it`);
        if (!mirror.mayDeliver(process.nowMs)) continue;
        const key = mirror.name;
        const other = owners.get(key);
        if (other !== undefined) fail(`G5: both ${other} and ${id} may deliver from ${mirror.name} (${key})`);
        owners.set(key, id);
      }
    }
    for (const { id, node } of this.ports.stores) {
      const admission = node.store?.admission;
      if (admission !== undefined && admission.usedBytes > admission.limitBytes) fail(`G7: ${id} uses ${String(admission.usedBytes)} of ${String(admission.limitBytes)} bytes`);
    }
  }

  // ---- at the end ----

  /** The world is empty: every recipient of an accepted message has ended in one way. */
  onDrained(): void {
    const { ledger, custody } = this.ports;
    for (const letter of ledger.letters.values()) {
      this.checkRefused(letter);
      this.checkReports(letter, custody.disasterCount > 0);
      if (!letter.isAccepted) continue;
      for (const copy of letter.copies) if (!copy.isOver && !copy.isExcused) fail(`G2: message ${String(letter.id)} of ${letter.gateway} in ${copy.queueName} (${copy.queueKey}) is lost`);
    }
  }

  private checkReports(letter: Letter, afterDisaster: boolean): void {
    const declined = letter.reversePath === '' || letter.copies.some((copy) => copy.recipients.some((one) => (one.notify & NOTIFY_NEVER) !== 0));
    if (declined && letter.reported.size > 0) fail(`G2: message ${String(letter.id)} must not be reported`);
    if (afterDisaster) return;
    for (const [what, ids] of letter.reported) if (ids.size > 1) fail(`G4: ${String(ids.size)} reports "${what}" of message ${String(letter.id)}`);
  }
}

function partitionOf(core: GatewayCore, delivery: Delivery): Partition | undefined {
  return delivery.queue instanceof MailQueue ? core.mirrors.partitionOf(delivery.queue.partition.handle) : undefined;
}

function mirrorOf(core: GatewayCore, delivery: Delivery): Partition {
  return partitionOf(core, delivery) ?? fail('a delivery of a queue that its gateway does not have');
}
