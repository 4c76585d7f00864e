/**
 * Whether everything has the copies that are configured, since when, and why not (G6): for status and
 * metrics, and one log line when that ends and one when it is so again.
 *
 *   degraded   fewer stores up than copies wanted · a partition with fewer copies in step · one with a copy
 *              on the host of this gateway, which is lost with it
 */
import type { Clock, EventLog } from '../../platform/ports.js';
import type { StoreAnswer } from '../../admin-api/gateway-answers.js';
import type { GatewayCore } from '../daemon/core.js';

export interface DegradationPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly core: GatewayCore;
  stores(): readonly StoreAnswer[];
}

/** How often it is looked whether copies are missing, so that `since` is right when somebody asks. */
const WATCH_MS = 1000;

export class Degradation {
  readonly #replicas: number;
  readonly #ports: DegradationPorts;
  #sinceMs: number | undefined;
  /** As the log was told last. */
  #toldSinceMs: number | undefined;
  #hasBegun = false;
  #watchedMs = -Infinity;

  constructor(replicas: number, ports: DegradationPorts) {
    this.#replicas = replicas;
    this.#ports = ports;
  }

  /** Called with each tick. */
  watch(nowMs: number): void {
    if (nowMs - this.#watchedMs < WATCH_MS) return;
    this.#watchedMs = nowMs;
    const { clock, core, log } = this.#ports;
    const since = this.sinceWallMs();
    // Until the first mail can be taken the stores are only being looked for.
    this.#hasBegun ||= core.accepting;
    if (!this.#hasBegun) return;
    const before = this.#toldSinceMs;
    this.#toldSinceMs = since;
    if ((before === undefined) === (since === undefined)) return;
    if (before === undefined) {
      const cause = this.cause(this.#ports.stores());
      const partitions = this.partitionsShort();
      log.warn('mirror', 'degraded: mail is on fewer machines than configured', { cause, partitions });
      return;
    }
    const seconds = Math.round((clock.wallMs() - before) / 1000);
    log.info('mirror', 'complete again: all mail has as many copies as configured', { seconds });
  }

  /** Partitions with fewer copies in step than configured. */
  partitionsShort(): number {
    let short = 0;
    for (const { inSyncCount } of this.#ports.core.registry.partitions) {
      if (inSyncCount < this.#replicas) short += 1;
    }
    return short;
  }

  /** Partitions with a copy on the host of this gateway: their mail is on fewer machines than configured. */
  partitionsOnOwnHost(): number {
    const { mirrors: { placement }, registry } = this.#ports.core;
    return registry.partitions.filter(({ rows }) =>
      rows.some((row) => row.isRecorded && placement.isOnOwnHost(row.storeId))).length;
  }

  sinceWallMs(): number | undefined {
    const degraded = this.#ports.core.upCount < this.#replicas || this.partitionsShort() > 0
      || this.partitionsOnOwnHost() > 0;
    this.#sinceMs = degraded ? (this.#sinceMs ?? this.#ports.clock.wallMs()) : undefined;
    return this.#sinceMs;
  }

  cause(stores: readonly StoreAnswer[]): string {
    const causes = stores.flatMap(({ store, cause, drained }) => {
      const why = [...(drained ? ['drained'] : []), ...(cause === '' ? [] : [cause])];
      return why.length === 0 ? [] : [`${store}: ${why.join(', ')}`];
    });
    const onOwnHost = this.partitionsOnOwnHost();
    if (onOwnHost > 0) causes.push(`a copy is on this gateway's own host: partitions ${String(onOwnHost)}`);
    if (causes.length > 0) return causes.join('; ');
    return 'fewer stores can be reached than each partition should have copies';
  }
}
