/**
 * The gateways of `twinpost up --gateways N`, out of the one section `gateway` of its file: each is a gateway
 * of its own, on the stores of the file, in one group, so that the others deliver the mail of one that stays
 * dead.
 *
 *   id gateway, N 2   ─►  gateway-1, gateway-2; SMTP on port, port + 2; admin HTTP on port, port + 1
 *   id gateway, N 1   ─►  gateway itself
 *
 * Every second port for SMTP, as the sink of the built-in file listens on the one between. The register is
 * the one that `up` keeps. Pure.
 */
import type { Config, GatewayConfig, StoreClientConfig } from './types.js';
import { addressAbove, adminAbove, workerIds } from './workers.js';

const SMTP_STEP = 2;

/** More would not show more on one machine. */
export const UP_GATEWAYS_MAX = 8;

export interface UpConfig extends Config {
  readonly gateways: readonly GatewayConfig[];
}

/** `memoryBytes`: for all gateways together, where the file names no limit. */
export function upConfig(config: Config, count: number, memoryBytes: number): UpConfig {
  const { gateway } = config;
  if (gateway === undefined || count === 1) {
    return { ...config, gateways: gateway === undefined ? [] : [gateway] };
  }
  const ids = workerIds(gateway.id, count);
  const gateways = ids.map((_id, index) => nthGateway(gateway, ids, index, Math.floor(memoryBytes / count)));
  const clientsOf = (client: StoreClientConfig): readonly StoreClientConfig[] => {
    if (client.id !== gateway.id) return [client];
    return gateways.map((each) => ({ ...client, id: each.id, admin: each.admin.listen }));
  };
  const stores = config.stores.map((store) => ({ ...store, gateways: store.gateways.flatMap(clientsOf) }));
  return { ...config, stores, gateways };
}

function nthGateway(
  gateway: GatewayConfig, ids: readonly string[], index: number, memoryBytes: number,
): GatewayConfig {
  const { admin, memory, smtp } = gateway;
  return {
    ...gateway,
    id: ids[index] ?? gateway.id,
    group: gateway.group === undefined ? undefined : [...new Set([...gateway.group, ...ids])],
    smtp: {
      ...smtp,
      listen: smtp.listen.map((listener) => ({ ...listener, ...addressAbove(listener, SMTP_STEP * index) })),
    },
    memory: { ...memory, limitBytes: memory.limitBytes ?? memoryBytes },
    admin: adminAbove(admin, index),
  };
}
