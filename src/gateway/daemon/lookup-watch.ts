/**
 * Whether next hops by name wait for the system to look up others (platform/node/host-lookup.ts): no
 * connection to them is tried meanwhile, so that nothing else would tell of it. Told when it begins, and when
 * it has not happened for OVER_MS; status has it as it is.
 */
import type { EventLog } from '../../platform/ports.js';

const OVER_MS = 60_000;
const HELD = 'mail waits for the lookup of its next hop: the system takes long for the names of others; see '
  + 'whether its resolvers (resolv.conf) answer';
const OVER = 'the names of next hops are looked up in time again';

export interface LookupWatchPorts {
  readonly lookups: { readonly held: string };
  readonly log: EventLog;
}

export class LookupWatch {
  readonly #ports: LookupWatchPorts;
  #heldMs = -Infinity;
  #isHeld = false;

  constructor(ports: LookupWatchPorts) {
    this.#ports = ports;
  }

  tick(nowMs: number): void {
    const { lookups: { held }, log } = this.#ports;
    if (held !== '') this.#heldMs = nowMs;
    const isHeld = nowMs - this.#heldMs < OVER_MS;
    if (isHeld === this.#isHeld) return;
    this.#isHeld = isHeld;
    if (isHeld) log.warn('dns', HELD, { why: held });
    else log.info('dns', OVER, {});
  }
}
