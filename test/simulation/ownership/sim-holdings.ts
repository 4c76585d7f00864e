/**
 * Which partitions a gateway process looks at, where ids of gateways change between lives: its own, those of its group,
 * and orphans. As Holdings of src/gateway/ownership, line by line; who is an orphan, how a partition ends, and what the
 * register has lost is decided by production code. What a watch of the register would tell is read again and again, so
 * that it is late, and stands still while the register can't be reached.
 */
import type { HolderId } from '../../../src/protocol/partition-record.js';
import { isEnded, isSameHolder, nobody, ownerOf, partitionName } from '../../../src/protocol/partition-record.js';
import { HolderState } from '../../../src/recovery/ownership/holder.js';
import { EndedPartitions } from '../../../src/gateway/ownership/ended-partitions.js';
import { Orphans } from '../../../src/gateway/ownership/orphans.js';
import type { Orphan } from '../../../src/gateway/ownership/orphans.js';
import { groupTold } from '../../../src/gateway/ownership/orphans.js';
import type { LivingGateway, MetPartition } from '../../../src/gateway/ownership/ownership-register.js';
import { UnrecordedPartitions } from '../../../src/gateway/ownership/unrecorded.js';
import type { StorePort } from '../../../src/gateway/mirror/link/store-port.js';
import { LIST, TELL } from '../../../src/protocol/message-types.js';
import { InvalidMessage } from '../../../src/protocol/invalid.js';
import { RECORD } from '../../../src/protocol/wire-record.js';
import type { Packer } from '../../../src/platform/ports.js';
import type { Link, SimProcess } from './sim-process.js';
import { Part } from './sim-process.js';
import type { RegisterView } from './sim-register.js';

export interface GroupOptions {
  /** Undefined: all of the register. */
  readonly group: readonly string[] | undefined;
  readonly graceMs: number;
  readonly areOurs: boolean;
}

const WATCH_MS = 200;
/** Shorter than in production, as leases are. */
const HAND_BACK_AFTER_MS = 1000;
const END_AFTER_MS = 600;
/** A partition that is to be given away, and does not come to rest, goes on; and is tried again. */
const GIVE_MS = 4000;
const GIVE_AGAIN_MS = 3000;
const NO_GIVEN_UP: ReadonlyMap<string, never[]> = new Map();

interface Giving {
  readonly to: HolderId;
  readonly sinceMs: number;
}

/** There are no bytes here: what was packed is looked up. */
const packed = new WeakMap<Uint8Array, unknown>();
const packer: Packer = {
  pack: (value) => {
    const control = new Uint8Array(0);
    packed.set(control, value);
    return control;
  },
  unpack: (control) => packed.get(control),
};

export class SimHoldings {
  readonly #process: SimProcess;
  readonly #options: GroupOptions;
  readonly #orphans: Orphans;
  readonly #ended: EndedPartitions;
  readonly #unrecorded: UnrecordedPartitions;
  readonly #giving = new Map<string, Giving>();
  readonly #giveAtMs = new Map<string, number>();
  readonly #emptySinceMs = new Map<string, number>();
  readonly #ports = new Map<Link, StorePort>();
  #view: RegisterView = { count: 0, rows: new Map(), living: new Map(), retired: new Set() };
  /** By session: since when it has been seen. */
  #sinceMs = new Map<number, number>();
  #living: ReadonlyMap<string, LivingGateway> = new Map();
  #watchMs = -Infinity;

  constructor(process: SimProcess, options: GroupOptions) {
    const { graceMs } = options;
    const { gatewayId } = process.self;
    // Each is of its own group (gateway-process.ts).
    const group = options.group === undefined ? undefined : [...new Set([...options.group, gatewayId])];
    this.#process = process;
    this.#options = { ...options, group };
    const { partitionsEach } = process.world.plan;
    const told = { group, rescue: true };
    process.world.register.setKey({ holder: process.self, group: groupTold(gatewayId, told) });
    const stores = (): StorePort[] => this.#stores();
    const version = (): number => this.#view.count;
    const mirrors = {
      get stores() { return stores(); },
      storeOf: (storeId: string) => stores().find((store) => store.storeId === storeId),
      askFlush: () => undefined,
    };
    const register = {
      get version() { return version(); },
      living: () => this.#living,
      retired: () => this.#view.retired,
      partition: (name: string) => this.#metOf(name),
      deleteEnded: (name: string) => { this.#deleteEnded(name); },
      givenUp: () => NO_GIVEN_UP,
      addGivenUp: () => undefined,
      removeGivenUp: () => undefined,
    };
    const clock = { nowMs: () => process.now(), wallMs: () => process.now() };
    const say = (event: string, text: string, fields?: object): void => {
      process.world.trace(`${process.key} ${event}: ${text} ${JSON.stringify(fields)}`);
    };
    const log = { debug: say, info: say, warn: say, error: say };
    this.#orphans = new Orphans({ gatewayId, partitions: partitionsEach, ...told, graceMs },
      { clock, log, register, met: () => this.#met() });
    this.#ended = new EndedPartitions({ packer, mirrors, register });
    this.#unrecorded = new UnrecordedPartitions({ packer, mirrors, register });
  }

  get orphans(): ReadonlyMap<string, Orphan> {
    return this.#orphans.all;
  }

  /** Its file, or that of another gateway whose key it sees, names this gateway. */
  names(gatewayId: string): boolean {
    return this.#options.group?.includes(gatewayId) === true;
  }

  /** This gateway is to have it, and nobody has retired the gateway. */
  isWanted(name: string): boolean {
    const { gatewayId } = this.#process.self;
    return ownerOf(name) === gatewayId && !this.#view.retired.has(gatewayId);
  }

  isGivenToNobody(name: string): boolean {
    return this.#giving.get(name)?.to.incarnation === 0;
  }

  tick(nowMs: number): void {
    this.#watch(nowMs);
    // Before the register has told anything nothing is known of anybody.
    if (this.#view.count === 0) return;
    this.#unrecorded.tick(nowMs);
    if (this.#orphans.tick(nowMs)) {
      this.#addOwn();
      for (const met of this.#met()) this.#meet(met);
    }
    for (const part of this.#process.parts.values()) this.#giveAway(part, nowMs);
    for (const part of this.#process.parts.values()) this.#goOnEnding(part, nowMs);
    this.#ended.tick(nowMs);
  }

  // ── the register, as a watch tells it ───────────────────────────────────────────────────────────

  #watch(nowMs: number): void {
    if (nowMs - this.#watchMs < WATCH_MS) return;
    this.#watchMs = nowMs;
    const { key, world: { register } } = this.#process;
    register.request(key, () => register.view(), (view) => {
      this.#process.receive(() => { if (view.count > this.#view.count) this.#onView(view); });
    });
  }

  #onView(view: RegisterView): void {
    this.#view = view;
    const sinceMs = new Map<number, number>();
    const living = new Map<string, LivingGateway>();
    for (const [session, { holder, group }] of view.living) {
      const since = this.#sinceMs.get(session) ?? this.#process.now();
      sinceMs.set(session, since);
      living.set(holder.gatewayId, { holder, sinceMs: since, group });
    }
    this.#sinceMs = sinceMs;
    this.#living = living;
  }

  #metOf(partition: string): MetPartition | undefined {
    const record = this.#view.rows.get(partition)?.record;
    return record === undefined ? undefined
      : { partition, stores: record.members.map(({ storeId }) => storeId), isEnded: isEnded(record) };
  }

  *#met(): IterableIterator<MetPartition> {
    for (const name of this.#view.rows.keys()) {
      const met = this.#metOf(name);
      if (met !== undefined) yield met;
    }
    yield* this.#unrecorded.met();
  }

  #deleteEnded(name: string): void {
    const { key, world: { register } } = this.#process;
    const revision = this.#view.rows.get(name)?.revision;
    if (revision === undefined) return;
    register.request(key, () => { register.deleteEnded(name, revision); }, () => undefined);
  }

  // ── partitions ──────────────────────────────────────────────────────────────────────────────────

  #addOwn(): void {
    const { self: { gatewayId }, world } = this.#process;
    for (let number = 0; number < world.plan.partitionsEach; number++) {
      const name = partitionName(gatewayId, number);
      if (world.isOwner(gatewayId) && this.isWanted(name)) this.#add(name);
    }
  }

  #meet({ partition: name, stores, isEnded: hasEnded }: MetPartition): void {
    if (this.#process.parts.has(name)) return;
    const { group } = this.#options;
    const owner = ownerOf(name);
    // Every gateway here rescues, so that each meets what has ended, too.
    const isOrphan = this.#orphans.all.has(name) && (stores.length === 0
      || stores.some((id) => this.#process.links.has(id)));
    if (isOrphan || hasEnded || (group?.includes(owner) ?? true)) this.#add(name);
  }

  #add(name: string): void {
    const { parts } = this.#process;
    if (!parts.has(name)) parts.set(name, new Part(this.#process, name, ownerOf(name)));
  }

  // ── given away ──────────────────────────────────────────────────────────────────────────────────

  #giveAway(part: Part, nowMs: number): void {
    const { holder, partition: name, isOwn } = part;
    if (holder.set === undefined) return;
    const isRetired = this.#view.retired.has(this.#process.self.gatewayId);
    part.isClosed = this.#orphans.all.has(name) || (isOwn && isRetired);
    const isEmpty = this.#emptyForMs(part, nowMs) >= END_AFTER_MS;
    const mayGive = nowMs >= (this.#giveAtMs.get(name) ?? -Infinity);
    if (holder.state === HolderState.HANDING_BACK) {
      const giving = this.#giving.get(name);
      if (giving === undefined || !this.#isStillThere(giving.to)) holder.keep(nowMs);
      else if (nowMs - giving.sinceMs >= GIVE_MS) {
        holder.keep(nowMs);
        this.#giveAtMs.set(name, nowMs + GIVE_AGAIN_MS);
      }
    } else if (part.isClosed && isEmpty && holder.mayEnd) {
      if (!mayGive) return;
      this.#giving.set(name, { to: nobody(name), sinceMs: nowMs });
      holder.end(nowMs);
    } else if (holder.state === HolderState.HOLDER || holder.state === HolderState.READING) {
      const heir = isOwn ? this.#heirOf(isRetired, nowMs) : this.#ownerOf(name, nowMs);
      if (heir === undefined || !mayGive) return;
      this.#giving.set(name, { to: heir, sinceMs: nowMs });
      holder.handBack(heir, nowMs);
    }
  }

  #isStillThere(to: HolderId): boolean {
    const one = this.#living.get(to.gatewayId);
    return to.incarnation === 0 || (one !== undefined && isSameHolder(one.holder, to));
  }

  #emptyForMs(part: Part, nowMs: number): number {
    const { partition: name } = part;
    if (!part.isComplete || part.entries.size > 0) this.#emptySinceMs.delete(name);
    else if (!this.#emptySinceMs.has(name)) this.#emptySinceMs.set(name, nowMs);
    return nowMs - (this.#emptySinceMs.get(name) ?? nowMs);
  }

  #ownerOf(name: string, nowMs: number): HolderId | undefined {
    const owner = this.#living.get(ownerOf(name));
    if (owner === undefined || nowMs - owner.sinceMs < HAND_BACK_AFTER_MS) return undefined;
    return this.#view.retired.has(ownerOf(name)) ? undefined : owner.holder;
  }

  #heirOf(isRetired: boolean, nowMs: number): HolderId | undefined {
    if (!isRetired) return undefined;
    const { self: { gatewayId } } = this.#process;
    const named = this.#options.group;
    for (const [id, { holder, sinceMs, group }] of this.#living) {
      const isOfGroup = (named?.includes(id) ?? true) || group.length === 0 || group.includes(gatewayId);
      if (id === gatewayId || this.#view.retired.has(id) || !isOfGroup || nowMs - sinceMs < HAND_BACK_AFTER_MS) continue;
      return holder;
    }
    return undefined;
  }

  // ── ended ───────────────────────────────────────────────────────────────────────────────────────

  #goOnEnding(part: Part, nowMs: number): void {
    const { holder, partition: name } = part;
    if (holder.state !== HolderState.IDLE) return;
    const { ended } = holder;
    if (ended === undefined || this.isWanted(name)) return;
    const isMissed = !this.#ended.isToldAt(this.#unrecorded.storesWith(name), name);
    if (isMissed || this.#metOf(name) !== undefined) {
      this.#ended.goOn(name, ended, this.#process.world.rankOf(this.#process.self.gatewayId) - 1, nowMs);
      return;
    }
    this.#ended.forget(name);
    this.#unrecorded.forget(name);
    part.leave();
    this.#process.parts.delete(name);
    for (const map of [this.#giving, this.#giveAtMs, this.#emptySinceMs]) map.delete(name);
  }

  // ── stores ──────────────────────────────────────────────────────────────────────────────────────

  #stores(): StorePort[] {
    return [...this.#process.links.values()].map((link) => {
      let port = this.#ports.get(link);
      if (port === undefined) this.#ports.set(link, port = this.#portOf(link));
      return port;
    });
  }

  #portOf(link: Link): StorePort {
    return {
      storeId: link.store.storeId,
      get bootId() { return link.bootId; },
      get isUp() { return link.isUp; },
      lease: link.lease, version: 0, credit: 0, canSend: true, unackedBytes: 0,
      request: (type, control) => this.#request(link, type, control),
      flush: () => undefined,
      askCredit: () => undefined,
    };
  }

  #request(link: Link, type: number, control: Uint8Array): number {
    if (type === TELL) this.#tell(link, control);
    else if (type === LIST) this.#list(link, control);
    return 1;
  }

  #tell(link: Link, control: Uint8Array): void {
    // As in messages/tell.ts.
    const [partition, elements, isOut] = packer.unpack(control) as [string, unknown, boolean];
    const record = RECORD.read(elements);
    if (record instanceof InvalidMessage) throw new Error(`TELL: ${record.rule}`);
    const { bootId } = link;
    this.#process.send(link, (reply) => {
      const isKept = link.store.tell(partition, record, isOut, bootId);
      this.#process.world.touch();
      reply(() => { this.#ended.onTold(this.#portAt(link), { partition, epoch: record.epoch, isKept }); });
    });
  }

  #list(link: Link, control: Uint8Array): void {
    const [after] = packer.unpack(control) as [string];
    this.#process.send(link, (reply) => {
      const partitions = link.store.list();
      reply(() => { this.#unrecorded.onListed(this.#portAt(link), { after, partitions, isLast: true }); });
    });
  }

  #portAt(link: Link): StorePort {
    return this.#ports.get(link) ?? this.#portOf(link);
  }
}
