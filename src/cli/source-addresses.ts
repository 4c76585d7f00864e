/**
 * Whether the addresses of `gateway.sources` are this machine's, as `config check` and the start of a gateway
 * judge them: a socket is bound to each. So those count that only a kernel knows of (all of 127.0.0.0/8, or
 * any address with net.ipv4.ip_nonlocal_bind).
 */
import { createSocket } from 'node:dgram';
import type { GatewayConfig } from '../config/types.js';
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
