/**
 * Addresses that a gateway makes itself, from what its configuration says: reverse-paths that stand for
 * senders of others (`smtp.srs`), and return addresses of routes (`verp`); and how it knows them, and that of
 * feedback loops, when mail comes back to them. With another configuration there are other ones.
 */
import { ReturnAddresses } from '../../../base/return-addresses.js';
import { SenderRewriting } from '../../../base/sender-rewriting.js';
import type { Hmac } from '../../../base/signed-text.js';
import { utf8Bytes } from '../../../base/utf8.js';
import { SystemSecrets } from '../../../platform/node/secrets.js';
import type { Clock } from '../../../platform/ports.js';
import type { WhoMaySend } from '../../daemon/gateway-options.js';
import type { RouteOptions } from '../../queue/router.js';
import type { ReportLine } from '../report-line.js';
import { ReturnPaths } from '../return-paths.js';

const DAY_MS = 86_400_000;

/** Of one configuration. */
export interface OwnAddresses {
  readonly rewriting: SenderRewriting | undefined;
  /** By the name of the route. */
  readonly returnAddresses: ReadonlyMap<string, ReturnAddresses>;
  /** Undefined where nothing comes back: then nobody looks for it. */
  readonly returned: { readonly paths: ReturnPaths; readonly reading: ReportLine } | undefined;
  /** That they are at, in lower-case A-labels. */
  readonly domains: readonly string[];
}

export function ownAddresses(
  { smtp, routes }: { readonly smtp: Pick<WhoMaySend, 'srs' | 'feedback'>; readonly routes: readonly RouteOptions[] },
  reading: ReportLine, clock: Clock,
): OwnAddresses {
  const rewriting = rewritingOf(smtp, clock);
  const returnAddresses = returnAddressesOf(routes, clock);
  const isNone = returnAddresses.size === 0 && smtp.feedback === undefined;
  const paths = isNone ? undefined : new ReturnPaths(returnAddresses.values(), smtp.feedback);
  return {
    rewriting, returnAddresses, returned: paths && { paths, reading },
    domains: [...(rewriting === undefined ? [] : [rewriting.domain]), ...(paths?.domains ?? [])],
  };
}

export function rewritingOf(
  { srs }: Pick<WhoMaySend, 'srs'>, clock: Clock,
): SenderRewriting | undefined {
  if (srs === undefined) return undefined;
  return new SenderRewriting(srs.domain, keysOf(srs.secrets), ownHmac(), () => clock.wallMs());
}

/** By the name of the route. */
export function returnAddressesOf(
  routes: readonly RouteOptions[], clock: Clock,
): ReadonlyMap<string, ReturnAddresses> {
  return new Map(routes.flatMap(({ name: route, verp }) => {
    if (verp === undefined) return [];
    const { domain, prefix, secrets, validMs, returned } = verp;
    const daysValid = Math.ceil(validMs / DAY_MS);
    const options = { route, domain, prefix, daysValid, leadsBack: returned === 'forward' };
    return [[route, new ReturnAddresses(options, keysOf(secrets), ownHmac(), () => clock.wallMs())]];
  }));
}

function keysOf(secrets: readonly string[]): readonly Uint8Array[] {
  return secrets.map((secret) => utf8Bytes(secret));
}

function ownHmac(): Hmac {
  const secrets = new SystemSecrets();
  return (key, text) => secrets.hmacSha256(key, text);
}
