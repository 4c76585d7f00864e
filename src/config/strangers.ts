/**
 * What strangers may reach and what they may do there, as far as a configuration says it: rules of checks.ts,
 * and what the command line warns of. A listener is reached by strangers when it is beyond loopback, or a
 * balancer in front of it says who its clients are (`proxy`).
 */
import ipaddr from 'ipaddr.js';
import { isLoopback } from '../platform/node/own-host.js';
import type { Path } from './keys/key.js';
import type { GatewayValue } from './keys/schema.js';
import type { Problems } from './problems.js';
import type { GatewayConfig } from './types.js';

/** Shorter ones are no network of anybody's: 10.0.0.0/8 is the largest that may be, and 2001:db8::/32. */
const PREFIX_MIN_IPV4 = 8;
const PREFIX_MIN_IPV6 = 16;
/** Networks that the Internet does not lead to, of any length. */
const LOCAL_RANGES: readonly string[] = ['uniqueLocal', 'linkLocal'];

interface Reached {
  readonly host: string;
  readonly isBehindProxy: boolean;
}

function isReached({ host, isBehindProxy }: Reached): boolean {
  return isBehindProxy || !isLoopback(host);
}

/** Clients whom a proxy or a filter on this machine names come from anywhere too. */
export function isMet(
  { host, proxyNetworks, xclientNetworks }: GatewayConfig['smtp']['listen'][number],
): boolean {
  return isReached({ host, isBehindProxy: proxyNetworks.length + xclientNetworks.length > 0 });
}

export function isReachedAt(listen: GatewayValue['smtp']['listen']): boolean {
  return listen.some(({ address, proxy }) =>
    isReached({ host: address.host, isBehindProxy: proxy !== undefined }));
}

/** Whoever is in one of these networks may relay, or says who somebody is that may. */
export function checkOpenRelay({ listen, relay_networks }: GatewayValue['smtp'], problems: Problems): void {
  const judge = (networks: readonly string[], at: Path, what: string): void => {
    networks.forEach((network, i) => {
      if (!isOfEverybody(network)) return;
      problems.add(
        [...at, i],
        `expected networks of your own (/${String(PREFIX_MIN_IPV4)} or longer, IPv6 `
          + `/${String(PREFIX_MIN_IPV6)}), found '${network}', with strangers in it who ${what}: that is an `
          + 'open relay',
      );
    });
  };
  // Clients that a proxy on this machine names come from anywhere too.
  if (isReachedAt(listen) || listen.some(({ xclient }) => xclient !== undefined)) {
    judge(relay_networks, ['gateway', 'smtp', 'relay_networks'], 'may send anywhere');
  }
  listen.forEach((listener, i) => {
    const { address: { host }, proxy, xclient = [] } = listener;
    const at: Path = ['gateway', 'smtp', 'listen', i];
    // On loopback nobody but this machine connects; but whose XCLIENT counts goes by whom a balancer names.
    if (!isLoopback(host)) judge(proxy ?? [], [...at, 'proxy'], 'may say to be anybody (PROXY)');
    if (!isReached({ host, isBehindProxy: proxy !== undefined })) return;
    judge(xclient, [...at, 'xclient'], 'may say to be anybody (XCLIENT)');
  });
}

function isOfEverybody(network: string): boolean {
  if (!network.includes('/')) return false;
  const [address, bits] = ipaddr.parseCIDR(network);
  if (address.kind() === 'ipv4') return bits < PREFIX_MIN_IPV4;
  // A range of ipaddr.js is longer than its network may be: fc00::/6 is not unique local.
  return bits < PREFIX_MIN_IPV6 && !(bits >= 7 && LOCAL_RANGES.includes(address.range()));
}

/** Whether some route takes mail to it, as gateway/queue/router.ts finds one. ".x.example": to all below. */
export function hasRoute(routed: ReadonlySet<string>, domain: string): boolean {
  if (routed.has('*') || routed.has(domain)) return true;
  for (let dot = domain.indexOf('.'); dot >= 0; dot = domain.indexOf('.', dot + 1)) {
    if (routed.has(`*${domain.slice(dot)}`)) return true;
  }
  return false;
}
