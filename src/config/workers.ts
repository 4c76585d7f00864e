/**
 * The gateways behind one section `gateway` with `workers: N`: each worker is a gateway of its own to stores,
 * groups and rescue, with an id, queues, mirrors, admin port and state folder of its own; they share the SMTP
 * ports (bin/gateway-workers.ts), and the register's file, which the upper process keeps.
 *
 *   id gw-1, workers 3    ─►  gw-1-1, gw-1-2, gw-1-3, admin on port, port + 1, port + 2
 *   id gw-1, workers 1    ─►  gw-1 itself
 */
import path from 'node:path';
import type { Address } from './keys/values.js';
import type { GatewayConfig } from './types.js';

export function workerIds(id: string, workers: number): readonly string[] {
  return workers === 1 ? [id] : Array.from({ length: workers }, (_none, index) => workerId(id, index + 1));
}

export function workerId(id: string, number: number): string {
  return `${id}-${String(number)}`;
}

/** The admin ports of one of several processes of one machine, from 0. */
export function adminAbove(admin: GatewayConfig['admin'], step: number): GatewayConfig['admin'] {
  const { listen, probes } = admin;
  return {
    ...admin, listen: addressAbove(listen, step),
    probes: probes === undefined ? undefined : addressAbove(probes, step),
  };
}

/** 0 asks for any free port. */
export function addressAbove({ host, port }: Address, step: number): Address {
  return { host, port: port === 0 ? 0 : port + step };
}

/** Worker `number` (from 1) of a gateway with several. `memoryBytes` is the limit of all together. */
export function workerConfig(config: GatewayConfig, number: number, memoryBytes: number): GatewayConfig {
  const id = workerId(config.id, number);
  const { admin, memory, register, smtp } = config;
  return {
    ...config,
    id,
    workers: 1,
    smtp: { ...smtp, connectionsMax: Math.ceil(smtp.connectionsMax / config.workers) },
    memory: { ...memory, limitBytes: Math.floor(memoryBytes / config.workers) },
    admin: adminAbove(admin, number - 1),
    stateDir: config.stateDir === undefined ? undefined : path.join(config.stateDir, id),
    register: register.kind === 'file' ? { kind: 'socket', stateDir: register.stateDir } : register,
  };
}
