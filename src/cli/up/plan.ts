/** Which processes `up` runs, with which arguments, and which ports they need. Pure. */
import path from 'node:path';
import { addressText } from '../../config/keys/values.js';
import type { Address } from '../../config/keys/values.js';
import type { GatewayConfig } from '../../config/types.js';
import type { UpConfig } from '../../config/up-gateways.js';

/**
 * One of several gateways stays dead for so long: beyond a lease of 10 s, so that the others are seen to take
 * its mail, and it to get its partitions back.
 */
const RESCUE_SHOWN_MS = 20_000;

export interface PortUse {
  readonly address: Address;
  /** For people: "gateway SMTP". */
  readonly use: string;
}

export interface ProcessPlan {
  readonly name: string;
  readonly args: readonly string[];
  readonly ports: readonly PortUse[];
  /** Which gateway of several it is, from 1; undefined: no gateway, or the only one. */
  readonly gatewayNumber?: number;
  /** When it has died it is not started again before this has passed. */
  readonly againAfterMs?: number;
}

export interface UpPlan {
  readonly stores: readonly ProcessPlan[];
  readonly gateways: readonly ProcessPlan[];
  readonly sink: ProcessPlan | undefined;
}

/** Undefined when the file has no gateway or no stores of its own. */
export function planUp(config: UpConfig, file: string | undefined, stateDir: string): UpPlan | undefined {
  const { gateways, sink } = config;
  if (gateways.length === 0 || config.stores.length === 0) return undefined;
  const source = file === undefined ? [] : ['--config', file];
  return {
    stores: config.stores.map((store) => ({
      name: store.id,
      args: [
        'store', ...source, '--id', store.id, '--state-dir', store.stateDir ?? stateDir,
        '--log-file', store.log.file ?? logFileOf(stateDir, store.id),
      ],
      ports: [
        ...store.paths.map(({ name, address }) => ({ address, use: `${store.id} path ${name}` })),
        { address: store.admin.listen, use: `${store.id} admin HTTP` },
      ],
    })),
    gateways: gateways.map((each, index) => gatewayPlan(each, index, gateways.length, source, stateDir)),
    sink: sink === undefined ? undefined : {
      name: 'sink',
      args: [
        'sink', ...source, '--listen', addressText(sink.listen),
        ...(sink.admin === undefined ? [] : ['--admin', addressText(sink.admin), '--inbox']),
      ],
      ports: [{ address: sink.listen, use: 'sink' }, ...(sink.admin === undefined
        ? [] : [{ address: sink.admin, use: 'sink admin HTTP' }])],
    },
  };
}

function gatewayPlan(
  gateway: GatewayConfig, index: number, count: number, source: readonly string[], stateDir: string,
): ProcessPlan {
  const use = count === 1 ? 'gateway SMTP' : `${gateway.id} SMTP`;
  const folder = gateway.stateDir ?? stateDir;
  return {
    name: gateway.id,
    args: [
      'gateway', ...source, '--state-dir', count === 1 ? folder : path.join(folder, gateway.id),
      '--log-file', gateway.log.file ?? logFileOf(stateDir, gateway.id),
    ],
    ports: [...gateway.smtp.listen.map((address) => ({ address, use })), ...adminPorts(gateway, count)],
    ...(count === 1 ? {} : { gatewayNumber: index + 1, againAfterMs: RESCUE_SHOWN_MS }),
  };
}

/** One a worker, one after the other. */
function adminPorts({ id, admin: { listen }, workers }: GatewayConfig, count: number): readonly PortUse[] {
  const use = `${count === 1 ? 'gateway' : id} admin HTTP`;
  return Array.from({ length: workers }, (_none, index) => ({
    address: { host: listen.host, port: listen.port + index },
    use: workers === 1 ? use : `worker ${String(index + 1)} admin HTTP`,
  }));
}

/** Of one of its processes. */
export function logFileOf(stateDir: string, name: string): string {
  return path.join(stateDir, `${name}.log`);
}

export function allProcesses(plan: UpPlan): readonly ProcessPlan[] {
  return [...plan.stores, ...(plan.sink === undefined ? [] : [plan.sink]), ...plan.gateways];
}
