/**
 * The queues of a gateway: by route, by handle, by name; born with the first message to their route and
 * bounded in number, because domains are chosen by whoever sends.
 *
 * A route may have more than one queue: one that came back from the stores after mail to it had been
 * accepted already keeps its own identity; new mail goes to the younger.
 *
 * Queues of other gateways that this process serves stand apart: their routes are twins (routeFor) that no new
 * mail is given, so that only reports about their own mail come in, under their owner's identity.
 */
import type { QueueMirror } from '../mirror/queue-mirror.js';
import type { Mirrors } from '../mirror/mirrors.js';
import { SyncState } from '../mirror/replica.js';
import { queueKey } from '../../recovery/census.js';
import type { EntryTable } from './entry-table.js';
import { MailQueue } from './mail-queue.js';
import type { QueueIdentity } from './mail-queue.js';
import type { AdmissionVerdict, Route } from './types.js';

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
  readonly table: EntryTable;
  readonly mirrors: Mirrors;
  nowMs(): number;
  /** False while a queue of this route is expected back from the stores. */
  mayCreate(route: Route): boolean;
}

/** For whom queues of a twin route are founded. */
interface Ward {
  readonly ownerId: string;
  /** Token of the youngest claim: above all incarnations of the owner so far. */
  token: number;
}

/** Serials that a process gives to queues of another gateway: the owner's own count up from 1. */
const WARD_SERIALS = 0x80000000;

export class QueueRegistry {
  private readonly options: RegistryOptions;
  private readonly ports: RegistryPorts;
  private readonly byRoute = new Map<Route, QueueMirror>();
  private readonly queues: QueueMirror[] = [];
  private readonly byIdentity = new Map<string, QueueMirror>();
  private readonly twins = new Map<string, Route>();
  private readonly wards = new Map<Route, Ward>();
  /** Queues of this gateway itself. */
  private ownCount = 0;
  private handles = 0;
  private serial = 0;
  private wardSerial: number;

  constructor(options: RegistryOptions, ports: RegistryPorts) {
    this.options = options;
    this.ports = ports;
    this.wardSerial = hashOf(options.gatewayId) ^ options.incarnation;
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

  /** The queue of a route, born now if need be; undefined when no more queues or too few stores can be had. `ending`: full ones will do. */
  findOrCreate(route: Route, ending = false): QueueMirror | undefined {
    return this.byRoute.get(route) ?? this.create(route, ending);
  }

  get isFull(): boolean {
    return this.ownCount >= this.options.queuesMax;
  }

  /** Whether a first queue could be made for new mail. */
  founding(): AdmissionVerdict {
    if (this.isFull) return 'queues';
    if (this.canFind(false)) return '';
    // Stores that are all too full answer as a gateway does that is.
    return this.canFind(true) ? 'memory' : 'no-store';
  }

  /** Stores enough for a queue can be reached. */
  canFind(evenFull: boolean): boolean {
    const { minReplicas } = this.options;
    return this.ports.mirrors.placement.choose(minReplicas, [], [], evenFull).length >= minReplicas;
  }

  /** The queue of this identity, if this process serves it now. */
  served(ownerId: string, birth: number, serial: number): QueueMirror | undefined {
    return this.byIdentity.get(queueKey(ownerId, birth, serial));
  }

  /** The route by which queues of `ownerId` are told apart from our own of the same name. `token` is that of a claim. */
  routeFor(ownerId: string, route: Route, token: number): Route {
    if (ownerId === this.options.gatewayId) return route;
    const key = `${ownerId}/${route.queueClass}/${route.queueName}`;
    const twin = this.twins.get(key) ?? Object.freeze({ ...route });
    this.twins.set(key, twin);
    const ward = this.wards.get(twin) ?? { ownerId, token };
    ward.token = Math.max(ward.token, token);
    this.wards.set(twin, ward);
    return twin;
  }

  /** A queue that came back from the stores. */
  adopt(handle: number, identity: QueueIdentity, name: string, route: Route, routed: boolean): QueueMirror {
    const queue = new MailQueue({ handle, identity, name, route, routed }, this.ports.table);
    const mirror = this.ports.mirrors.create(queue);
    mirror.isOwn = identity.ownerId === this.options.gatewayId;
    this.queues.push(mirror);
    if (mirror.isOwn) this.ownCount += 1;
    this.byIdentity.set(queueKey(identity.ownerId, identity.birth, identity.serial), mirror);
    if (routed && !this.byRoute.has(route)) this.byRoute.set(route, mirror);
    return mirror;
  }

  /** The queue is served here no more. */
  remove(mirror: QueueMirror): void {
    const at = this.queues.indexOf(mirror);
    if (at < 0) return;
    this.queues.splice(at, 1);
    if (mirror.isOwn) this.ownCount -= 1;
    const { ownerId, birth, serial } = mirror.queue.identity;
    this.byIdentity.delete(queueKey(ownerId, birth, serial));
    if (this.byRoute.get(mirror.queue.route) === mirror) this.byRoute.delete(mirror.queue.route);
    this.ports.mirrors.remove(mirror);
  }

  byName(name: string): QueueMirror[] {
    return this.queues.filter((mirror) => mirror.queue.name === name || `${mirror.queue.name}/${mirror.queue.route.queueClass}` === name);
  }

  private create(route: Route, ending: boolean): QueueMirror | undefined {
    const ward = this.wards.get(route);
    if (ward === undefined && (this.isFull || !this.ports.mayCreate(route))) return undefined;
    const stores = this.ports.mirrors.placement.choose(this.options.replicas, [], [], ending);
    if (stores.length < this.options.minReplicas) return undefined;
    const identity = ward === undefined ? this.nextIdentity() : this.nextIdentityFor(ward);
    const mirror = this.adopt(this.takeHandle(), identity, route.queueName, route, true);
    const members = stores.map((store) => store.storeId);
    mirror.firstMembers = members;
    mirror.adopt(1, 0, 0, 0);
    for (const store of stores) {
      const replica = this.ports.mirrors.addReplica(mirror, store);
      replica.transition(SyncState.SYNC, 'queue created', this.ports.nowMs());
      replica.member = true;
      replica.wanted = true;
      this.ports.mirrors.open(mirror, replica);
    }
    return mirror;
  }

  private nextIdentity(): QueueIdentity {
    this.serial += 1;
    return { ownerId: this.options.gatewayId, birth: this.options.incarnation, serial: this.serial };
  }

  private nextIdentityFor(ward: Ward): QueueIdentity {
    this.wardSerial = (this.wardSerial + 1) | 0;
    return { ownerId: ward.ownerId, birth: ward.token, serial: (WARD_SERIALS | (this.wardSerial & 0x7fffffff)) >>> 0 };
  }
}

/** FNV-1a: two rescuers of one gateway count their serials from different places. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash;
}
