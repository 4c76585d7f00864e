/**
 * The queues of a gateway: by route, by handle, by name; born with the first message to their route and
 * bounded in number, because domains are chosen by whoever sends.
 *
 * A route may have more than one queue: one that came back from the stores after mail to it had been
 * accepted already keeps its own identity; new mail goes to the younger.
 */
import type { QueueMirror } from '../mirror/queue-mirror.js';
import type { Mirrors } from '../mirror/mirrors.js';
import { encodeOpenOf } from '../mirror/open-queue.js';
import { SyncState } from '../mirror/replica.js';
import type { StorePort } from '../mirror/store-port.js';
import type { Packer } from '../../platform/ports.js';
import { OPEN } from '../../protocol/message-types.js';
import type { EntryTable } from './entry-table.js';
import { MailQueue } from './mail-queue.js';
import type { QueueIdentity } from './mail-queue.js';
import type { Route } from './types.js';

export interface RegistryOptions {
  readonly gatewayId: string;
  /** Ids of all gateways that may take over one another's queues, this one among them or not. */
  readonly group: readonly string[];
  readonly incarnation: number;
  readonly queuesMax: number;
  readonly replicas: number;
  readonly minReplicas: number;
}

export interface RegistryPorts {
  readonly packer: Packer;
  readonly table: EntryTable;
  readonly mirrors: Mirrors;
  nowMs(): number;
  /** False while a queue of this route is expected back from the stores. */
  mayCreate(route: Route): boolean;
}

export class QueueRegistry {
  private readonly options: RegistryOptions;
  private readonly ports: RegistryPorts;
  private readonly byRoute = new Map<Route, QueueMirror>();
  private readonly queues: QueueMirror[] = [];
  private handles = 0;
  private serial = 0;

  constructor(options: RegistryOptions, ports: RegistryPorts) {
    this.options = options;
    this.ports = ports;
  }

  get all(): readonly QueueMirror[] {
    return this.queues;
  }

  takeHandle(): number {
    this.handles += 1;
    return this.handles;
  }

  /** The queue of a route, if there is one already. */
  find(route: Route): QueueMirror | undefined {
    return this.byRoute.get(route);
  }

  /** The queue of a route, born now if need be; undefined when no more queues or too few stores can be had. */
  findOrCreate(route: Route): QueueMirror | undefined {
    return this.byRoute.get(route) ?? this.create(route);
  }

  get isFull(): boolean {
    return this.queues.length >= this.options.queuesMax;
  }

  /** A queue that came back from the stores. */
  adopt(handle: number, identity: QueueIdentity, name: string, route: Route, routed: boolean): QueueMirror {
    const queue = new MailQueue({ handle, identity, name, route, routed }, this.ports.table);
    const mirror = this.ports.mirrors.create(queue);
    this.queues.push(mirror);
    if (routed && !this.byRoute.has(route)) this.byRoute.set(route, mirror);
    return mirror;
  }

  byName(name: string): QueueMirror[] {
    return this.queues.filter((mirror) => mirror.queue.name === name || `${mirror.queue.name}/${mirror.queue.route.queueClass}` === name);
  }

  private create(route: Route): QueueMirror | undefined {
    if (this.isFull || !this.ports.mayCreate(route)) return undefined;
    const stores = this.place();
    if (stores.length < this.options.minReplicas) return undefined;
    this.serial += 1;
    const identity = { ownerId: this.options.gatewayId, birth: this.options.incarnation, serial: this.serial };
    const mirror = this.adopt(this.takeHandle(), identity, route.queueName, route, true);
    const members = stores.map((store) => store.storeId);
    mirror.adopt(1, 0, 0, 0);
    for (const store of stores) {
      store.request(OPEN, encodeOpenOf(this.ports.packer, this.options.group, mirror.queue, 1, members), [], 0);
      const replica = this.ports.mirrors.addReplica(mirror, store);
      replica.transition(SyncState.SYNC, 'queue created', this.ports.nowMs());
      replica.member = true;
      replica.wanted = true;
    }
    return mirror;
  }

  /** The stores for a new queue: reachable ones, those with the fewest mirrors first. */
  private place(): StorePort[] {
    const load = new Map<StorePort, number>();
    for (const store of this.ports.mirrors.stores) if (store.isUp) load.set(store, 0);
    for (const mirror of this.queues) {
      for (const replica of mirror.replicas) {
        const count = load.get(replica.store);
        if (count !== undefined) load.set(replica.store, count + 1);
      }
    }
    return [...load.entries()].sort((a, b) => a[1] - b[1]).slice(0, this.options.replicas).map(([store]) => store);
  }

  /** Queues with fewer mirrors than wanted get one on another store that is up; it is filled like any that came back. */
  completeReplicas(): void {
    for (const mirror of this.queues) {
      if (mirror.replicas.length >= this.options.replicas || mirror.queue.isRecovering) continue;
      const free = this.ports.mirrors.stores.find((store) => store.isUp && !mirror.replicas.some((replica) => replica.store === store));
      if (free !== undefined) this.ports.mirrors.addReplica(mirror, free);
    }
  }
}
