/**
 * Makes domains out of addresses fit for a Router, which knows lower-case A-labels only. A reverse-path is
 * kept as the client wrote it: with SMTPUTF8 its domain may be in U-labels (RFC 6531 3.3), and the route of
 * the report to it is looked up long after reception.
 */
import type { ToAscii } from '../platform/ports.js';
import { normalizeDomain } from './inbound/policy/address.js';
import type { Route, Router } from './queue/types.js';

/** A router that takes any spelling of a domain; what is no domain goes where all others go. */
export function forAnySpelling(router: Router, toAscii: ToAscii): Router {
  return {
    route: (domain, queueClass, name): Route | undefined =>
      router.route(normalizeDomain(domain, toAscii), queueClass, name),
    routeOfQueue: (queueName, queueClass): Route | undefined => router.routeOfQueue(queueName, queueClass),
    mailRoutes: (): readonly Route[] => router.mailRoutes(),
  };
}
