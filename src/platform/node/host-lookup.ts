/**
 * The addresses of a host that a configuration names, as a connection to its name finds them: by the system,
 * with its hosts file. Hosts that the DNS names are asked for by dns/dns-client.ts.
 */
import { ADDRCONFIG } from 'node:dns';
import { lookup } from 'node:dns/promises';
import type { HostAddresses } from '../resolver.js';

/** What getaddrinfo says of a name that is not there, or has no address. */
const NONE: readonly string[] = ['ENOTFOUND', 'ENODATA'];

/** All addresses, as net.connect() asks for them: of no family that this machine has no address of. */
export const LOOKUP = { all: true, hints: ADDRCONFIG } as const;

export async function lookUpHost(host: string): Promise<HostAddresses> {
  try {
    const found = await lookup(host, LOOKUP);
    return { addresses: found.map(({ address }) => address), why: '', isFailed: false };
  } catch (error) {
    const { code = 'no code' } = error as NodeJS.ErrnoException;
    return NONE.includes(code) ? { addresses: [], why: 'it has no address', isFailed: false }
      : { addresses: [], why: `no answer on its address: ${code}`, isFailed: true };
  }
}
