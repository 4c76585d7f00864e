/** Which processes `up` runs, with which arguments, and which ports they need. Pure. */
import type { Address, Config, GatewayConfig } from '../../config/types.js';

export interface PortUse {
  readonly address: Address;
  /** For people: "gateway SMTP". */
  readonly use: string;
}

export interface ProcessPlan {
  readonly name: string;
  readonly args: readonly string[];
  readonly ports: readonly PortUse[];
}

export interface UpPlan {
  readonly stores: readonly ProcessPlan[];
  readonly gateway: ProcessPlan;
  readonly sink: ProcessPlan | undefined;
}

/** Undefined when the file has no gateway or no stores of its own. */
export function planUp(config: Config, file: string | undefined, stateDir: string): UpPlan | undefined {
  const { gateway, sink } = config;
  if (gateway === undefined || config.stores.length === 0) return undefined;
  const source = file === undefined ? [] : ['--config', file];
  return {
    stores: config.stores.map((store) => ({
      name: store.id,
      args: ['store', ...source, '--id', store.id],
      ports: [...store.paths.map((path) => ({ address: path.address, use: `${store.id} path ${path.name}` })), { address: store.admin.listen, use: `${store.id} admin HTTP` }],
    })),
    gateway: {
      name: gateway.id,
      args: ['gateway', ...source, '--state-dir', gateway.stateDir ?? stateDir],
      ports: [...gateway.smtp.listen.map((address) => ({ address, use: 'gateway SMTP' })), ...adminPorts(gateway)],
    },
    sink: sink === undefined ? undefined : {
      name: 'sink',
      args: [
        'sink', '--listen', addressText(sink.listen),
        ...(sink.admin === undefined ? [] : ['--admin', addressText(sink.admin)]),
        ...(sink.lmtp ? ['--lmtp'] : []),
        ...(sink.verify ? ['--verify'] : []),
        ...(sink.maildir === undefined ? [] : ['--maildir', sink.maildir]),
      ],
      ports: [{ address: sink.listen, use: 'sink' }, ...(sink.admin === undefined ? [] : [{ address: sink.admin, use: 'sink admin HTTP' }])],
    },
  };
}

/** One a worker, one after the other. */
function adminPorts({ admin: { listen }, workers }: GatewayConfig): readonly PortUse[] {
  return Array.from({ length: workers }, (_none, index) => ({ address: { host: listen.host, port: listen.port + index }, use: workers === 1 ? 'gateway admin HTTP' : `worker ${String(index + 1)} admin HTTP` }));
}

export function allProcesses(plan: UpPlan): readonly ProcessPlan[] {
  return [...plan.stores, ...(plan.sink === undefined ? [] : [plan.sink]), plan.gateway];
}

export function addressText(address: Address): string {
  return `${address.host.includes(':') ? `[${address.host}]` : address.host}:${String(address.port)}`;
}
