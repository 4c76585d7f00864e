/**
 * The two paths of a link: which one carries the requests, and what happens when that one is lost. Owns the
 * paths, the generation numbers of their connections, and the wish to be active, which one path has at a
 * time.
 *
 *            the asking path is in RUN / onPairUp
 *   DOWN ──────────────────────────────────────────────────────► UP ◄──────────┐
 *    ▲ ▲                                                         │ │           │ asking path in RUN:
 *    │ │  active path lost; it is the only one, or the other is  │ │           │ same boot / onPairSwitched
 *    │ │  no help (silent too, or refused), or the store stops   │ │           │ other / onPairDown, onPairUp
 *    │ └─────────────────────────────────────────── / onPairDown ┘ │           │
 *    │                       active path lost / the other connects ▼           │
 *    │                       anew and asks, onPairSwitching    SWITCHING ──────┘
 *    └───────────────────────────────────────────────────────────┘
 *       the asking path is lost too, or failover_timeout has passed / onPairDown
 *
 *   DOWN: a path opens, or stands by, while the asking one is in trouble / it asks instead
 *   SWITCHING: the asking path is lost, the other stands by again / that one asks
 *   any state: CLOSE(FENCED) / onPairFenced, close() ──► OVER
 *
 * A connection that stands by can't be made active (docs/PROTOCOL.md "Handshake"): the path connects anew,
 * with the next generation, and the store fences the older connection before it says WELCOME. The lost path
 * comes back by itself as the new standby. Two paths that fall in turns are not tried without a pause: one
 * that waits for its next attempt is no help. A path leads to one boot of the store: a standby that shows
 * another boot than the active path is not taken.
 *
 * CLOSE(STOPPING) on a path that stands by is a notice / onPairStopping: this path rests until the active one
 * ends. So is one on the active path that says that the path goes on.
 *
 * What is not here: connections and handshakes (path-connection.ts), when silence is a loss
 * (heartbeat-timer.ts), requests and replies (store-link.ts).
 */
import { invariant } from '../../../base/invariant.js';
import type { Welcome } from '../../../protocol/messages/welcome.js';
import type { LinkOptions, LinkPorts, PathAddress } from './link-options.js';
import { NEVER } from './heartbeat-timer.js';
import { PairState, PAIR_STATES, isValidPairTransition } from './pair-state.js';
import type { PathOwner } from './path-connection.js';
import { PathConnection } from './path-connection.js';
import { PathState } from './path-state.js';

const { DOWN, UP, SWITCHING, OVER } = PairState;

/** What the pair tells its link. */
export interface PairOwner {
  /** Fences of this process at this boot of the store that it has processed. */
  fencesProcessedAt(bootId: string): number;
  onPairUp(path: PathConnection, welcome: Welcome): void;
  /** The active path is lost, another is on its way to take its part. */
  onPairSwitching(): void;
  /** It has, to the same memory of the store. */
  onPairSwitched(path: PathConnection, welcome: Welcome): void;
  onPairStopping(): void;
  onPairDown(reason: string): void;
  onPairFenced(text: string, highest: number, wasUp: boolean): void;
  onPathFrame(
    path: PathConnection, type: number, sequence: number, control: Uint8Array, bodies: Uint8Array,
  ): void;
}

const TWO_BOOTS = 'this path leads to another boot of the store than the active one: '
  + 'if that stays, two processes use its id';

export class PathPair implements PathOwner {
  readonly pathA: PathConnection;
  pathB: PathConnection | undefined;
  readonly #options: LinkOptions;
  readonly #ports: LinkPorts;
  readonly #owner: PairOwner;
  #state: PairState = DOWN;
  /** The path that has the wish to be active; in UP it is. */
  #asking: PathConnection;
  #generation = 0;
  /** Boot of the store that the pair led to when it was up last. */
  #bootId = '';
  #tickedMs = -1;
  #nowMs = 0;
  /** Of the switch under way. */
  #lostMs = 0;
  #cause = '';
  /** The store has announced its end. */
  #stops = false;

  constructor(options: LinkOptions, ports: LinkPorts, owner: PairOwner) {
    this.#options = options;
    this.#ports = ports;
    this.#owner = owner;
    this.pathA = new PathConnection('A', options.pathA, options, ports, this);
    this.pathB = options.pathB === undefined
      ? undefined
      : new PathConnection('B', options.pathB, options, ports, this);
    this.#asking = this.pathA;
  }

  /** The path that carries requests; it is in RUN. */
  get active(): PathConnection | undefined {
    return this.#state === UP ? this.#asking : undefined;
  }

  /** The store does not count as lost. */
  get isUp(): boolean {
    return this.#state === UP || this.#state === SWITCHING;
  }

  /** Why it is not up, as far as its paths know. */
  get trouble(): string {
    const { trouble } = this.#asking;
    return trouble === '' ? (this.#other(this.#asking)?.trouble ?? '') : trouble;
  }

  start(): void {
    this.pathA.start();
    this.pathB?.start();
  }

  /** The store is, or will be, at other addresses. A second path that it has no more stays in trouble. */
  moveTo(pathA: PathAddress, pathB: PathAddress | undefined): void {
    this.pathA.moveTo(pathA);
    if (pathB === undefined || this.#state === OVER) return;
    if (this.pathB !== undefined) return this.pathB.moveTo(pathB);
    this.pathB = new PathConnection('B', pathB, this.#options, this.#ports, this);
    this.pathB.start();
  }

  tick(nowMs: number): void {
    // A late tick: we have not listened, silence says nothing (docs/PROTOCOL.md "Paths").
    const isLate = this.#tickedMs >= 0 && nowMs - this.#tickedMs > this.#options.failoverTimeoutMs / 2;
    this.#tickedMs = nowMs;
    this.#nowMs = nowMs;
    this.pathA.listen(nowMs, isLate);
    this.pathB?.listen(nowMs, isLate);
    const sinceA = this.pathA.speaksSinceMs(nowMs);
    this.pathA.tick(nowMs, this.pathB?.speaksSinceMs(nowMs) ?? NEVER);
    this.pathB?.tick(nowMs, sinceA);
    if (this.#state !== SWITCHING) return;
    if (isLate) this.#lostMs = nowMs;
    const { failoverTimeoutMs } = this.#options;
    if (nowMs - this.#lostMs < failoverTimeoutMs) return;
    this.#goDown(`${this.#cause}; no other path within ${String(failoverTimeoutMs)} ms`);
  }

  /** Ends both paths for good; the store is told. No event follows. */
  close(text: string): void {
    if (this.#state !== OVER) this.#transition(OVER);
    this.pathA.stop(text);
    this.pathB?.stop(text);
  }

  fencesProcessedAt(bootId: string): number {
    return this.#owner.fencesProcessedAt(bootId);
  }

  nextGeneration(): number {
    this.#generation++;
    return this.#generation;
  }

  mayAsk(path: PathConnection): boolean {
    if (path !== this.#asking && this.#state === DOWN && this.#asking.isInTrouble) this.#asking = path;
    return path === this.#asking;
  }

  onPathUp(path: PathConnection, welcome: Welcome): void {
    if (path.state === PathState.RUN) this.#onActive(path, welcome);
    else if (this.#state === DOWN && this.#asking.isInTrouble) this.#ask(path);
    else this.#compareBoots();
  }

  onPathDown(path: PathConnection, reason: string, wasSilent: boolean): void {
    // A standby that comes and goes is no news.
    if (path !== this.#asking) return;
    const other = this.#other(path);
    switch (this.#state) {
      case UP:
        if (other === undefined || this.#stops || !this.#isHelp(other, wasSilent)) this.#goDown(reason);
        else this.#switchTo(other, reason);
        return;
      case SWITCHING:
        if (other?.state === PathState.READY && !this.#stops) this.#ask(other);
        else this.#goDown(`${this.#cause}; on the other path: ${reason}`);
        return;
      case DOWN:
        if (other?.state === PathState.READY) this.#ask(other);
        return;
      case OVER:
        return;
    }
  }

  onPathStopping(path: PathConnection, goesOn: boolean): void {
    if (!this.isUp) return;
    const isNews = !this.#stops;
    this.#stops = true;
    if (path !== this.#asking) path.rest();
    else if (!goesOn) return;
    if (isNews) this.#owner.onPairStopping();
  }

  onPathFenced(path: PathConnection, text: string, highest: number): void {
    const wasUp = this.isUp;
    this.#transition(OVER);
    path.stop();
    this.#other(path)?.stop('fenced on the other path');
    this.#owner.onPairFenced(text, highest, wasUp);
  }

  onPathFrame(
    path: PathConnection, type: number, sequence: number, control: Uint8Array, bodies: Uint8Array,
  ): void {
    this.#owner.onPathFrame(path, type, sequence, control, bodies);
  }

  #onActive(path: PathConnection, welcome: Welcome): void {
    const isSwitch = this.#state === SWITCHING;
    const isSameBoot = path.bootId === this.#bootId;
    if (isSwitch && !isSameBoot) this.#goDown(`${this.#cause}; the store has restarted`);
    this.#bootId = path.bootId;
    this.#transition(UP);
    this.#compareBoots();
    if (!isSwitch || !isSameBoot) {
      this.#owner.onPairUp(path, welcome);
      return;
    }
    const tookMs = Math.round(this.#nowMs - this.#lostMs);
    this.#log('info', 'requests go by the other path now', { path: path.name, took_ms: tookMs });
    this.#owner.onPairSwitched(path, welcome);
  }

  /**
   * One that waits for its next attempt was refused or reset too. After a silence one that does not speak has
   * been silent as long: the store is gone, and another attempt would only make its clients wait.
   */
  #isHelp(other: PathConnection, wasSilent: boolean): boolean {
    if (other.state === PathState.WAITING) return false;
    return !wasSilent || other.speaksSinceMs(this.#nowMs) !== NEVER;
  }

  #switchTo(other: PathConnection, cause: string): void {
    this.#transition(SWITCHING);
    this.#lostMs = this.#nowMs;
    this.#cause = cause;
    const fields = { path: other.name, reason: cause };
    this.#log('warn', 'active path is lost, the other one takes its part', fields);
    this.#owner.onPairSwitching();
    this.#ask(other);
  }

  #ask(path: PathConnection): void {
    this.#asking = path;
    path.reconnect();
  }

  #goDown(reason: string): void {
    this.#transition(DOWN);
    // A process that ends says so on every path: what is still on its way there is not said of the next one.
    const other = this.#other(this.#asking);
    if (this.#stops && other?.state === PathState.READY) other.reconnect();
    this.#stops = false;
    this.pathA.endRest();
    this.pathB?.endRest();
    this.#owner.onPairDown(reason);
  }

  /** Two boots at once: the store restarted and a connection does not know yet, or two stores have one id. */
  #compareBoots(): void {
    const { active } = this;
    if (active === undefined) return;
    const other = this.#other(active);
    if (other?.state === PathState.READY && other.bootId !== active.bootId) {
      other.refuse(TWO_BOOTS);
    }
  }

  #other(path: PathConnection): PathConnection | undefined {
    return path === this.pathA ? this.pathB : this.pathA;
  }

  #log(level: 'info' | 'warn', text: string, fields: Readonly<Record<string, string | number>>): void {
    this.#ports.log[level]('link', text, { store: this.#options.storeId, ...fields });
  }

  /** The only writer of the state. */
  #transition(to: PairState): void {
    const from = this.#state;
    const names = `${PAIR_STATES[from].name} to ${PAIR_STATES[to].name}`;
    invariant(isValidPairTransition(from, to), `two paths go from ${names}, which no arrow allows`);
    this.#state = to;
  }
}
