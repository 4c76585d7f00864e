/**
 * What `config check` says of a configuration that is sound, and seldom meant: lines of warning.
 */
import { formatDuration } from '../base/units.js';
import { leaseMinMs } from '../config/checks.js';
import type { GatewayConfig, StoreConfig } from '../config/types.js';

/** Of a gateway that says nothing else. */
const FAILOVER_MS = 2000;
const HEARTBEAT_MS = 250;

export function seldomMeant(
  configFile: string, gateway: GatewayConfig | undefined, stores: readonly StoreConfig[],
): readonly string[] {
  const leaseMs = leaseMinMs(FAILOVER_MS, HEARTBEAT_MS);
  const short = stores.filter((store) => store.leaseMs < leaseMs);
  const lines = short.map(({ section, places, leaseMs: found }) =>
    `${places[`${section}.lease`] ?? '?'}: ${section}.lease: warning: ${formatDuration(found)} is less than `
      + `gateways need by their defaults (${formatDuration(leaseMs)}: 3 × failover_timeout + 2 × heartbeat + `
      + `3s): they stop delivering in each stall`);
  const isForgetful = gateway?.register.kind === 'etcd' && gateway.stateDir === undefined;
  if (!isForgetful) return lines;
  return [...lines, `${configFile}: warning: gateway.state_dir is not set: nothing proves after a restart `
    + `that the process before has ended, and the gateway waits each time until its lease (10s) is over`];
}
