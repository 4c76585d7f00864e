/**
 * The stores that an operator has drained, as the gateway remembers them across restarts (a file in state_dir), and
 * what else an operator does with mirrors: the part of the admin HTTP that changes something there.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { EventLog } from '../platform/ports.js';
import type { DrainState, StoreControl } from './admin/store-api.js';
import type { Mirrors } from './mirror/mirrors.js';
import type { QueueMirror } from './mirror/queue-mirror.js';

const FILE_NAME = 'drained-stores.json';

export interface DrainedPorts {
  readonly log: EventLog;
  readonly mirrors: Mirrors;
  queuesOf(name: string): readonly QueueMirror[];
}

export class DrainedStores implements StoreControl {
  private readonly file: string | undefined;
  private readonly ports: DrainedPorts;

  constructor(options: { readonly stateDir: string | undefined }, ports: DrainedPorts) {
    this.file = options.stateDir === undefined ? undefined : path.join(options.stateDir, FILE_NAME);
    this.ports = ports;
    for (const id of this.load()) ports.mirrors.moves.drain(id);
  }

  drainState(storeId: string): DrainState | undefined {
    const { mirrors } = this.ports;
    if (!mirrors.stores.some((store) => store.storeId === storeId)) return undefined;
    const { moves, placement } = mirrors;
    return { draining: placement.drained.has(storeId), mirrors: moves.mirrorsAt(storeId), stuck: moves.stuckAt(storeId), copiesMissing: moves.copiesMissing() };
  }

  drain(storeId: string): void {
    if (this.ports.mirrors.moves.drain(storeId)) this.save();
  }

  undrain(storeId: string): void {
    if (this.ports.mirrors.moves.undrain(storeId)) this.save();
  }

  resync(queue: string, storeId: string): number | undefined {
    let found = false;
    let filled = 0;
    for (const mirror of this.ports.queuesOf(queue)) {
      const replica = mirror.replicas.find((one) => one.store.storeId === storeId);
      if (replica === undefined) continue;
      found = true;
      if (this.ports.mirrors.refillAgain(mirror, replica)) filled += 1;
    }
    return found ? filled : undefined;
  }

  private load(): readonly string[] {
    if (this.file === undefined) return [];
    try {
      const value: unknown = JSON.parse(readFileSync(this.file, 'utf8'));
      return Array.isArray(value) ? value.filter((id): id is string => typeof id === 'string') : [];
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
      this.ports.log.error('drain', 'which stores are drained can not be read: none is taken to be', { file: this.file, why: error instanceof Error ? error.message : String(error) });
      return [];
    }
  }

  private save(): void {
    if (this.file === undefined) return;
    try {
      writeFileSync(`${this.file}.new`, JSON.stringify([...this.ports.mirrors.placement.drained]), { mode: 0o600 });
      renameSync(`${this.file}.new`, this.file);
    } catch (error) {
      this.ports.log.error('drain', 'which stores are drained can not be kept: a restart forgets it', { file: this.file, why: error instanceof Error ? error.message : String(error) });
    }
  }
}
