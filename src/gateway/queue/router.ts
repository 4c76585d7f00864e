/**
 * The routing table: which queue, and which next hop, mail to a domain goes to. Without DNS, so that the
 * same domain always has the same queue. Longest match wins: the domain itself, then "*.parent" for each
 * parent, then "*". Routes are built once from the configuration and compared by identity.
 */
import type { NextHop, Ordering, QueueClass, Route, Router } from './types.js';

/** One configured route. */
export interface RouteOptions {
  /** Lower-case domains, "*.example.com" for all below a domain, "*" for the rest. */
  readonly domains: readonly string[];
  /** Name of the queue. */
  readonly name: string;
  readonly nextHop: NextHop;
  readonly ordering: Ordering;
  readonly concurrency: number;
  readonly lengthMax: number;
  readonly pipelinesAcross?: boolean;
}

class RoutingTable implements Router {
  private readonly byDomain = new Map<string, RouteOptions>();
  private readonly byName = new Map<string, RouteOptions>();
  private readonly made = new Map<RouteOptions, Map<QueueClass, Route>>();

  constructor(routes: readonly RouteOptions[]) {
    for (const route of routes) {
      this.byName.set(route.name, route);
      for (const domain of route.domains) this.byDomain.set(domain, route);
    }
  }

  route(domain: string, queueClass: QueueClass): Route | undefined {
    const found = this.byDomain.get(domain) ?? this.wildcard(domain);
    return found === undefined ? undefined : this.make(found, queueClass);
  }

  routeOfQueue(queueName: string, queueClass: QueueClass): Route | undefined {
    const found = this.byName.get(queueName);
    return found === undefined ? undefined : this.make(found, queueClass);
  }

  mailRoutes(): readonly Route[] {
    return [...this.byName.values()].map((route) => this.make(route, 'mail'));
  }

  private wildcard(domain: string): RouteOptions | undefined {
    for (let dot = domain.indexOf('.'); dot !== -1; dot = domain.indexOf('.', dot + 1)) {
      const found = this.byDomain.get(`*${domain.slice(dot)}`);
      if (found !== undefined) return found;
    }
    return this.byDomain.get('*');
  }

  /** Once for each class: asked with every recipient. */
  private make(route: RouteOptions, queueClass: QueueClass): Route {
    const known = this.made.get(route);
    const found = known?.get(queueClass);
    if (found !== undefined) return found;
    const made = Object.freeze({
      queueName: route.name,
      queueClass,
      nextHop: route.nextHop,
      ordering: route.ordering,
      concurrency: route.ordering === 'strict' ? 1 : route.concurrency,
      lengthMax: route.lengthMax,
      pipelinesAcross: route.pipelinesAcross === true && route.ordering !== 'strict',
    });
    if (known === undefined) this.made.set(route, new Map([[queueClass, made]]));
    else known.set(queueClass, made);
    return made;
  }
}

/** A router over the configured routes. Two routes with one name or one domain are a configuration error, refused before. */
export function createRouter(routes: readonly RouteOptions[]): Router {
  return new RoutingTable(routes);
}
