/**
 * Addresses that a gateway makes itself, from what its configuration says: reverse-paths that stand for
 * senders of others (`smtp.srs`), and return addresses of routes (`verp`); and how it knows them, and that of
 * feedback loops, when mail comes back to them. One object for the life of a gateway, for all who ask: what
 * is made by a new configuration must be known also in sessions that began before it.
 */
import { ReturnAddresses } from '../../../base/return-addresses.js';
import { SenderRewriting } from '../../../base/sender-rewriting.js';
import type { Hmac } from '../../../base/signed-text.js';
import { utf8Bytes } from '../../../base/utf8.js';
import { SystemSecrets } from '../../../platform/node/secrets.js';
import type { Clock } from '../../../platform/ports.js';
import type { WhoMaySend } from '../../daemon/gateway-options.js';
import type { MadeAddresses } from '../../inbound/options.js';
import type { OwnPaths } from '../../queue/handing-out.js';
import type { RouteOptions } from '../../queue/router.js';
import { ReturnPaths } from '../return-paths.js';

const DAY_MS = 86_400_000;

export interface OwnAddressOptions {
  readonly smtp: Pick<WhoMaySend, 'srs' | 'feedback'>;
  readonly routes: readonly RouteOptions[];
}

export class OwnAddresses implements OwnPaths, MadeAddresses {
  #rewriting: SenderRewriting | undefined;
  #returnAddresses: ReadonlyMap<string, ReturnAddresses> = new Map();
  #paths: ReturnPaths | undefined;
  #domains: readonly string[] = [];
  readonly #clock: Clock;

  constructor(options: OwnAddressOptions, clock: Clock) {
    this.#clock = clock;
    this.renew(options);
  }

  get rewriting(): SenderRewriting | undefined { return this.#rewriting; }

  get returnAddresses(): ReadonlyMap<string, ReturnAddresses> { return this.#returnAddresses; }

  get paths(): ReturnPaths | undefined { return this.#paths; }

  get domains(): readonly string[] { return this.#domains; }

  /** Another configuration is in force. */
  renew({ smtp, routes }: OwnAddressOptions): void {
    this.#rewriting = rewritingOf(smtp, this.#clock);
    this.#returnAddresses = returnAddressesOf(routes, this.#clock);
    const isNone = this.#returnAddresses.size === 0 && smtp.feedback === undefined;
    // Nobody looks for what does not come back.
    this.#paths = isNone ? undefined : new ReturnPaths(this.#returnAddresses.values(), smtp.feedback);
    const { domain } = smtp.srs ?? {};
    this.#domains = [...(domain === undefined ? [] : [domain]), ...(this.#paths?.domains ?? [])];
  }
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
