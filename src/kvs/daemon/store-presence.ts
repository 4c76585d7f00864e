/**
 * A store in the register of its group: its own key (store-key.ts), and the gateways that live there, which
 * its admin HTTP names. A register that is away delays both and nothing else.
 */
import type { Clock, Crc32, EventLog } from '../../platform/ports.js';
import { GATEWAYS, parseKey, storeKey } from '../../register/keys.js';
import { BrokenRule } from '../../register/core/shapes.js';
import type { Entry } from '../../register/port.js';
import { decodeGateway } from '../../register/records.js';
import type { StoreRecord } from '../../register/records.js';
import { openRegister } from '../../register/running/open-register.js';
import type { OpenedRegister, RegisterChoice } from '../../register/running/open-register.js';
import type { InRegister } from './running-store.js';
import { StoreKey, StoreKeyState } from './store-key.js';

export interface StorePresencePorts {
  readonly clock: Clock;
  readonly crc32: Crc32;
  readonly log: EventLog;
  record(): StoreRecord;
  onRefused(why: string): void;
}

/** A gateway that has a key in the register, or had one when it was heard of last. */
export interface NamedGateway {
  readonly id: string;
  /** host:port of its admin HTTP. */
  readonly admin: string | undefined;
}

export class StorePresence implements InRegister {
  readonly #opened: OpenedRegister;
  readonly #key: StoreKey;
  readonly #ownKey: string;
  readonly #watch: { close(): void };
  readonly #gateways = new Map<string, NamedGateway>();

  private constructor(storeId: string, opened: OpenedRegister, ports: StorePresencePorts) {
    this.#opened = opened;
    this.#ownKey = storeKey(storeId);
    this.#key = new StoreKey(storeId, { ...ports, register: opened.register });
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
    return this.#key.state === StoreKeyState.STANDING;
  }

  gateways(): readonly NamedGateway[] {
    return [...this.#gateways.values()];
  }

  tick(nowMs: number): void {
    this.#key.tick(nowMs);
  }

  async close(): Promise<void> {
    this.#watch.close();
    await new Promise<void>((resolve) => { this.#key.close(resolve); });
    await this.#opened.close();
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
