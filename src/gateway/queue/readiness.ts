/**
 * Whether new mail can be committed (G6), reckoned from what a client would be told: of each configured route
 * whether a recipient of it would be refused now, and why. The SMTP port is open, and /readyz true, as long
 * as some route takes mail and not more than half of them can't commit; status and metrics name every route
 * refused.
 *
 *   short, no-store, recovering, rescued   can't commit: a route that counts against the port
 *   operator                               an operator's rule, and
 *   memory, share, queue-full, …           a limit, which answers 452 for itself: named, and closes no port
 *
 * Not asked: queues of others that it delivers, for no new mail goes there; this follows from asking routes,
 * not queues. A gateway without routes is ready while stores are there.
 */
import type { AdmissionVerdict, Route } from '../mail-types.js';

export interface ReadinessPorts {
  /** Every configured route for mail. */
  readonly routes: readonly Route[];
  wallMs(): number;
  /** What a recipient of the route would be told by its queue, whatever holds for the gateway as a whole. */
  admissionOf(route: Route): AdmissionVerdict;
  /** Stores are there for a first queue. */
  canFound(): boolean;
}

/** A route whose new mail is refused. */
export interface RefusedRoute {
  readonly route: Route;
  readonly reason: Exclude<AdmissionVerdict, ''>;
  readonly sinceWallMs: number;
}

/** What no change is told of, as a queue that is no longer expected back, is seen within so long. */
const LOOK_MS = 1000;

/** Asked with every message: routes are looked at only when something has changed. */
export class Readiness {
  readonly #ports: ReadinessPorts;
  #routes: ReadonlySet<Route>;
  readonly #refused = new Map<Route, RefusedRoute>();
  #stuck = 0;
  #version = -1;
  #lookMs = 0;
  #isReady = false;

  constructor(ports: ReadinessPorts) {
    this.#ports = ports;
    this.#routes = new Set(ports.routes);
  }

  /** Others than before; those that stay have their refusals still. */
  renew(routes: readonly Route[]): void {
    this.#routes = new Set(routes);
    for (const route of this.#refused.keys()) if (!this.#routes.has(route)) this.#refused.delete(route);
    this.#stuck = this.refused.filter(({ reason }) => isStuck(reason)).length;
    this.lookAgain();
  }

  get routeCount(): number {
    return this.#routes.size;
  }

  /** Of those refused, how many can't commit. */
  get stuckCount(): number {
    return this.#stuck;
  }

  /** In the order in which they began to be refused. */
  get refused(): readonly RefusedRoute[] {
    return [...this.#refused.values()];
  }

  /** All routes are to be looked at again: a partition is new or gone, or has other mirrors in sync. */
  lookAgain(): void {
    this.#version = -1;
  }

  tick(nowMs: number): void {
    if (nowMs < this.#lookMs) return;
    this.#lookMs = nowMs + LOOK_MS;
    this.lookAgain();
  }

  /** `version` rises with every change of what is known of the stores. */
  isReady(version: number): boolean {
    if (version === this.#version) return this.#isReady;
    for (const route of this.#routes) this.#look(route);
    this.#version = version;
    const all = this.#routes.size;
    this.#isReady = all === 0 ? this.#ports.canFound() : this.#stuck * 2 <= all;
    return this.#isReady;
  }

  #look(route: Route): void {
    const before = this.#refused.get(route);
    const reason = this.#ports.admissionOf(route);
    if (before?.reason === reason) return;
    if (before !== undefined && isStuck(before.reason)) this.#stuck -= 1;
    if (reason === '') {
      this.#refused.delete(route);
      return;
    }
    if (isStuck(reason)) this.#stuck += 1;
    this.#refused.set(route, { route, reason, sinceWallMs: before?.sinceWallMs ?? this.#ports.wallMs() });
  }
}

/** Of the verdicts those that say that nothing can be committed. */
export function isStuck(admission: AdmissionVerdict): boolean {
  return admission === 'short' || admission === 'no-store' || admission === 'recovering'
    || admission === 'rescued';
}
