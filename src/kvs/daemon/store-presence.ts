/**
 * A store in the register of its group: its own key, by which every gateway finds it without a restart of its
 * own (src/register/presence-key.ts), and the gateways that live there, which its admin HTTP names. Nothing
 * that the store does for its gateways depends on either: while the register is away, or the key is missing,
 * it serves on.
 *
 * - Whoever stood at the very addresses on which this process listens now is dead: a start overwrites its
 *   key.
 * - A process whose key stood once is never ended by the register, which may have been rolled back: copies
 *   of mail are here. It says in the log that there are two.
 */
import type { Clock, Crc32, EventLog } from '../../platform/ports.js';
import { GATEWAYS, parseKey, storeKey } from '../../register/keys.js';
import { BrokenRule } from '../../base/json-shape.js';
import type { Entry } from '../../register/port.js';
import { KeyState, PresenceKey } from '../../register/presence-key.js';
import type { Writer } from '../../register/presence-key.js';
import { decodeGateway, decodeStore, encodeStore } from '../../register/records.js';
import type { StoreRecord } from '../../register/records.js';
import { openRegister } from '../../register/running/open-register.js';
import type { OpenedRegister, RegisterChoice } from '../../register/running/open-register.js';
import type { InRegister } from './running-store.js';

/** Free memory is told when it has moved by more than this share, and no more often than that. */
const MOVED_SHARE = 0.1;
const REFRESH_MS = 10_000;
/** Between two tries to say that the store is draining, or is no longer. */
const AGAIN_MS = 500;

export interface StorePresencePorts {
  readonly clock: Clock;
  readonly crc32: Crc32;
  readonly log: EventLog;
  /** What is so now. */
  record(): StoreRecord;
  /** Another process of this store lives, and did before this one: once; nothing follows but close(). */
  onRefused(why: string): void;
}

/** A gateway that has a key in the register, or had one when it was heard of last. */
export interface NamedGateway {
  readonly id: string;
  /** host:port of its admin HTTP. */
  readonly admin: string | undefined;
}

type Kept = Pick<OpenedRegister, 'register' | 'close'>;

export class StorePresence implements InRegister {
  readonly #opened: Kept;
  readonly #ports: StorePresencePorts;
  readonly #key: PresenceKey;
  readonly #ownKey: string;
  readonly #watch: { close(): void };
  readonly #gateways = new Map<string, NamedGateway>();
  /** What the key says. */
  #told: StoreRecord | undefined;
  #writtenMs = -Infinity;

  constructor(storeId: string, opened: Kept, ports: StorePresencePorts) {
    this.#opened = opened;
    this.#ports = ports;
    this.#ownKey = storeKey(storeId);
    const { clock, log } = ports;
    this.#key = new PresenceKey({ key: this.#ownKey, owner: `store ${storeId}`, yields: 'until it stood' }, {
      register: opened.register, clock, log,
      value: () => {
        this.#writtenMs = clock.nowMs();
        return encodeStore(ports.record());
      },
      writerOf: (value, hasStood) => writerOf(value, ports.record(), hasStood),
      onStanding: (value) => {
        const told = decodeStore(value);
        this.#told = told instanceof BrokenRule ? undefined : told;
      },
      onTaken: (why) => { ports.onRefused(why); },
    });
    this.#watch = opened.register.watch([this.#ownKey, GATEWAYS], {
      onSnapshot: (entries, deleted) => {
        for (const key of deleted) this.#onDeleted(key);
        for (const entry of entries) this.#onEntry(entry);
      },
      onChange: (entry) => { this.#onEntry(entry); },
      onDeleted: (key) => { this.#onDeleted(key); },
      onAway: () => undefined,
    });
  }

  /** Rejects when its files can't be read; does not wait for the register. */
  static async begin(
    storeId: string, choice: RegisterChoice, ports: StorePresencePorts,
  ): Promise<StorePresence> {
    return new StorePresence(storeId, await openRegister(choice, ports), ports);
  }

  get away(): string {
    const { isUp, why } = this.#opened.register.state;
    return isUp ? '' : why;
  }

  get isNamed(): boolean {
    return this.#key.isStanding;
  }

  gateways(): readonly NamedGateway[] {
    return [...this.#gateways.values()];
  }

  tick(nowMs: number): void {
    this.#key.tick(nowMs);
    if (this.#key.state === KeyState.STANDING && this.#isDue(nowMs)) this.#key.rewrite([], () => undefined);
  }

  async close(): Promise<void> {
    this.#watch.close();
    await new Promise<void>((resolve) => { this.#key.close(resolve); });
    await this.#opened.close();
  }

  #isDue(nowMs: number): boolean {
    const sinceMs = nowMs - this.#writtenMs;
    const { draining, memoryFreeBytes } = this.#ports.record();
    if (this.#told?.draining !== draining) return sinceMs >= AGAIN_MS;
    const moved = Math.abs(memoryFreeBytes - this.#told.memoryFreeBytes);
    return moved > MOVED_SHARE * this.#told.memoryFreeBytes && sinceMs >= REFRESH_MS;
  }

  #onEntry(entry: Entry): void {
    if (entry.key === this.#ownKey) return this.#key.onNews(entry);
    const meaning = parseKey(entry.key);
    const record = meaning?.kind === 'gateway' ? decodeGateway(entry.value) : undefined;
    if (meaning?.kind !== 'gateway' || record === undefined || record instanceof BrokenRule) return;
    this.#gateways.set(meaning.id, { id: meaning.id, admin: record.addresses[0] });
  }

  #onDeleted(key: string): void {
    if (key === this.#ownKey) return this.#key.onNews(undefined);
    const meaning = parseKey(key);
    if (meaning?.kind === 'gateway') this.#gateways.delete(meaning.id);
  }
}

function writerOf(value: string, own: StoreRecord, hasStood: boolean): Writer {
  const found = decodeStore(value);
  if (found instanceof BrokenRule) {
    return { where: 'an unknown host (its record can not be read)', isLater: false };
  }
  const isHere = found.host === own.host && found.addresses.join() === own.addresses.join();
  // At other addresses the same boot is no other word of ours: two processes run on copies of one spill file.
  if (isHere && found.bootId === own.bootId) return 'we';
  // Once ours has stood, whoever writes there came later: two that overwrite each other would never end.
  if (isHere && !hasStood) return 'nobody';
  return { where: `host ${found.host} at ${found.addresses.join(' and ')}`, isLater: false };
}
