/**
 * What the epochs of a queue must be at the stores that count as its members, whatever the faults (docs/model):
 *
 *   one set an epoch     two members that show one epoch show one set: a change that was sent is never turned round
 *   survivors first      a store becomes a member only when a member that stays has the change already, and every one
 *                        that stays but those that the gateway has lost since it sent the change
 *
 * Looked at after each turn of a store, for the queues whose epoch or role changed in it. A set that is founded has
 * no survivors (src/gateway/mirror/replica-set.ts, THE RULE OF FOUNDING). A set that a newer one at another member has
 * overtaken decides nothing: when an operator gives a survivor up, a joiner is told the set that it never heard of.
 */
import type { GatewayCore } from '../../src/gateway/core.js';
import type { MirroredQueue } from '../../src/kvs/core/mirrored-queue.js';
import type { Store } from '../../src/kvs/core/store.js';
import { ROLE_MEMBER } from '../../src/protocol/reasons.js';
import { GuaranteeBroken } from './broken.js';
import { keyOfMirror, keyOfStored } from './custody.js';

export interface EpochNodes {
  readonly gateways: readonly { readonly gatewayId: string; readonly core: GatewayCore | undefined }[];
  readonly stores: readonly { readonly id: string; readonly store: Store | undefined }[];
}

interface Seen {
  epoch: number;
  role: number;
}

export class EpochWatch {
  private readonly nodes: EpochNodes;
  private readonly seen = new WeakMap<MirroredQueue, Seen>();

  constructor(nodes: EpochNodes) {
    this.nodes = nodes;
  }

  onTurn(storeId: string): void {
    const store = this.nodes.stores.find((one) => one.id === storeId)?.store;
    store?.queues.visit(0, (queue) => {
      const before = this.seen.get(queue);
      if (before === undefined) this.seen.set(queue, { epoch: queue.epoch, role: queue.role });
      else if (before.epoch !== queue.epoch || before.role !== queue.role) {
        if (queue.role === ROLE_MEMBER) this.judge(storeId, queue, before.role !== ROLE_MEMBER);
        before.epoch = queue.epoch;
        before.role = queue.role;
      }
      return true;
    });
  }

  private judge(storeId: string, queue: MirroredQueue, joins: boolean): void {
    const key = keyOfStored(queue);
    const { ownerId, birth, serial, name } = queue.attributes;
    const what = `${name} (${key})`;
    const heard: string[] = [];
    const unheard: string[] = [];
    let isOvertaken = false;
    for (const { id, store } of this.nodes.stores) {
      const other = id === storeId ? undefined : store?.queues.find(ownerId, birth, serial);
      if (other?.role !== ROLE_MEMBER) continue;
      if (other.epoch === queue.epoch && other.members.join() !== queue.members.join()) {
        throw new GuaranteeBroken(`epochs: ${what} has two sets of epoch ${String(queue.epoch)}: ${queue.members.join()} at ${storeId}, ${other.members.join()} at ${id}`);
      }
      if (other.epoch > queue.epoch) isOvertaken = true;
      const stays = other.members.includes(id) && queue.members.includes(id) && other.holder === queue.holder;
      if (!joins || !stays) continue;
      (other.epoch < queue.epoch && !other.members.includes(storeId) ? unheard : heard).push(id);
    }
    const missed = heard.length === 0 ? unheard : unheard.filter((id) => !this.isLost(key, id));
    if (missed.length > 0 && !isOvertaken && !this.isFounded(key)) {
      throw new GuaranteeBroken(`epochs: ${storeId} is a member of ${what} in epoch ${String(queue.epoch)} and ${missed.join()}, which stays, has not heard of it`);
    }
  }

  /** No gateway counts on this mirror now. */
  private isLost(key: string, storeId: string): boolean {
    return !this.nodes.gateways.some(({ core }) => core?.registry.partitions.some((mirror) => keyOfMirror(mirror) === key && mirror.replicas.some((replica) => replica.store.storeId === storeId && replica.inSync)) === true);
  }

  private isFounded(key: string): boolean {
    return this.nodes.gateways.some(({ core }) => core?.registry.partitions.some((mirror) => mirror.founding && keyOfMirror(mirror) === key) === true);
  }
}
