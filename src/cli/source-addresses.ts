/**
 * Whether the addresses of `gateway.sources` are this machine's, as `config check` and the start of a gateway
 * judge them: a socket is bound to each. So those count that only a kernel knows of (all of 127.0.0.0/8, or
 * any address with net.ipv4.ip_nonlocal_bind). And those that a process listens on: a file may be checked on
 * another machine than the one that it is for, so the check only warns of them; a start is refused.
 */
import { createSocket } from 'node:dgram';
import { isIP } from 'node:net';
import type { GatewayConfig, StoreConfig } from '../config/types.js';
import { isIpv6 } from '../gateway/outbound/pure/source-choice.js';

/** A line for each that mail can't leave from. */
export async function unusableSources({ sources, places }: GatewayConfig): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const [index, { address }] of sources.entries()) {
    const code = await whyNotBound(address);
    if (code === '') continue;
    const key = `gateway.sources[${String(index)}].address`;
    const found = code === 'EADDRNOTAVAIL' ? `'${address}', which no interface has` : `'${address}': ${code}`;
    lines.push(`${places[key] ?? '?'}: ${key}: expected an address of this machine, found ${found}`);
  }
  return lines;
}

type Listened = readonly (readonly [key: string, host: string])[];

/** A line of warning for each address that no interface has. */
export async function foreignListeners(
  gateway: GatewayConfig | undefined, stores: readonly StoreConfig[],
): Promise<readonly string[]> {
  const lines: string[] = [];
  const ofStores = stores.map((store) => [listenedOfStore(store), store.places] as const);
  const ofGateway = gateway === undefined ? [] : [[listenedOfGateway(gateway), gateway.places] as const];
  for (const [listened, places] of [...ofGateway, ...ofStores]) {
    for (const [key, host] of listened) {
      if (isIP(host) === 0 || await whyNotBound(host) !== 'EADDRNOTAVAIL') continue;
      lines.push(`${places[key] ?? '?'}: ${key}: warning: no interface of this machine has '${host}': a `
        + 'start here would be refused');
    }
  }
  return lines;
}

function listenedOfGateway({ smtp, admin }: GatewayConfig): Listened {
  const own = smtp.listen.map(({ host }, i) => [`gateway.smtp.listen[${String(i)}]`, host] as const);
  return [...own, ...listenedOfAdmin('gateway', admin)];
}

function listenedOfStore({ section, paths, admin }: StoreConfig): Listened {
  const own = paths.map(({ address: { host } }, k) =>
    [`${section}.paths[${String(k)}].address`, host] as const);
  return [...own, ...listenedOfAdmin(section, admin)];
}

function listenedOfAdmin(
  section: string, { listen, probes }: Pick<GatewayConfig['admin'], 'listen' | 'probes'>,
): Listened {
  const own = [`${section}.admin.listen`, listen.host] as const;
  return probes === undefined ? [own] : [own, [`${section}.admin.probes`, probes.host]];
}

/** By UDP, which nobody can connect to meanwhile; of this process alone, also where it is a worker. */
function whyNotBound(address: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = createSocket(isIpv6(address) ? 'udp6' : 'udp4');
    socket.once('error', (error: NodeJS.ErrnoException) => {
      socket.close();
      resolve(error.code ?? error.message);
    });
    socket.bind({ address, port: 0, exclusive: true }, () => {
      socket.close();
      resolve('');
    });
  });
}
