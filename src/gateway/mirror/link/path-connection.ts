/**
 * One path of a link: the connection on it, its handshake, its heartbeats, and the attempts after a loss.
 * Owns the connection and what is queued for it.
 *
 *        start
 *   NEW ───────► WAITING ◄──────────────────────────────────────────────────┐
 *                  │ tick, time has come / connect, next generation         │ refused, closed, silent,
 *                  ▼                                                        │ malformed, wrong proof or
 *              CONNECTING ─────────────────────────────────────────────────►│ store, CLOSE from the store
 *                  │ open / HELLO                                           │ / back-off, onPathDown
 *                  ▼                                                        │
 *               GREETING ──────────────────────────────────────────────────►│
 *                  │ CHALLENGE, its proof is right / PROOF                  │
 *                  ▼                                                        │
 *               PROVING ───────────────────────────────────────────────────►│
 *                  │ WELCOME / onPathUp                                     │
 *          standby ├─────────────► READY ──────────────────────────────────►│
 *           active └─────────────► RUN ────────────────────────────────────►┘
 *
 *   WAITING, GREETING, PROVING, READY: reconnect() / it ends, connect, next generation ──► CONNECTING
 *   any state: CLOSE(FENCED) / onPathFenced, stop() ──► STOPPED
 *
 * WAITING rests, without attempts, after rest() until endRest() or reconnect().
 *
 * docs/PROTOCOL.md, "Handshake" and "Reasons". What is not here: which path is to be active (path-pair.ts);
 * what requests and replies mean, window and credit (store-link.ts); the rule by which silence is judged
 * (heartbeat-timer.ts); the contents of the handshake (gateway-handshake.ts).
 */
import { nextDelayMs } from '../../../base/backoff.js';
import { invariant } from '../../../base/invariant.js';
import * as types from '../../../protocol/message-types.js';
import type { Close } from '../../../protocol/messages/close.js';
import { decodeClose, encodeClose } from '../../../protocol/messages/close.js';
import type { Welcome } from '../../../protocol/messages/welcome.js';
import { decodeWelcome } from '../../../protocol/messages/welcome.js';
import { isInvalid } from '../../../protocol/invalid.js';
import * as reasons from '../../../protocol/reasons.js';
import { GatewayHandshake } from './gateway-handshake.js';
import { ALWAYS, HeartbeatTimer, NEVER } from './heartbeat-timer.js';
import type { LinkOptions, LinkPorts, PathAddress, PathName } from './link-options.js';
import { RECONNECT } from './link-options.js';
import { Outgoing } from './outgoing.js';
import { PathLog } from './path-log.js';
import { PathState, PATH_STATES, isValidTransition } from './path-state.js';
import type { WireOwner } from './wire.js';
import { Wire } from './wire.js';

/** With this many attempts the pause is at its longest: 50 ms × 2^6 > 2 s. */
const ATTEMPTS_HOPELESS = 6;

/** What a path asks and tells its pair. */
export interface PathOwner {
  /** The generation for a new connection: higher than all that this link used before. */
  nextGeneration(): number;
  /** Should the connection that opens now ask to be the active one? */
  mayAsk(path: PathConnection): boolean;
  /** Fences of this process at this boot of the store, up to which it has stopped what was fenced. */
  fencesProcessedAt(bootId: string): number;
  onPathUp(path: PathConnection, welcome: Welcome): void;
  /** A frame that only the link understands, on a path in RUN; or BEAT on one in READY. */
  onPathFrame(
    path: PathConnection, type: number, sequence: number, control: Uint8Array, bodies: Uint8Array,
  ): void;
  /** CLOSE(STOPPING) has come; onPathDown follows at once, unless the connection goes on. */
  onPathStopping(path: PathConnection, goesOn: boolean): void;
  onPathDown(path: PathConnection, reason: string, wasSilent: boolean): void;
  /** `highest`: the incarnation that the store serves. */
  onPathFenced(path: PathConnection, text: string, highest: number): void;
}

export class PathConnection implements WireOwner {
  readonly name: PathName;
  #address: PathAddress;
  readonly #options: LinkOptions;
  readonly #ports: LinkPorts;
  readonly #owner: PathOwner;
  readonly #log: PathLog;
  readonly #heartbeat: HeartbeatTimer;
  /** HELLO of this connection asked for it. */
  #asksActive = false;
  #rests = false;
  #state: PathState = PathState.NEW;
  #sinceMs = 0;
  #nowMs = 0;
  /** Attempts since the path last stood for a while: the exponent of the back-off. */
  #attempts = 0;
  #trouble = '';
  #retryAtMs = 0;
  /** Set while there is a connection; a late call from an earlier one is known by being another object. */
  #wire: Wire | undefined;
  /** A CLOSE is on its way: the connection ends behind it instead of being cut. */
  #isClosing = false;
  #handshake: GatewayHandshake | undefined;
  #bootId = '';
  #version = 0;
  readonly outgoing: Outgoing;

  constructor(
    name: PathName, address: PathAddress, options: LinkOptions, ports: LinkPorts, owner: PathOwner,
  ) {
    this.name = name;
    this.#address = address;
    this.#options = options;
    this.#ports = ports;
    this.#owner = owner;
    this.#log = new PathLog(ports.log, options.storeId, name, textOf(address));
    this.#heartbeat = new HeartbeatTimer(options);
    this.outgoing = new Outgoing(ports);
  }

  get state(): PathState {
    return this.#state;
  }

  /** Since when it is in this state. */
  get sinceMs(): number {
    return this.#sinceMs;
  }

  /** No attempt has failed since it last stood: a path that is coming up, not one in trouble. */
  get isFresh(): boolean {
    return this.#attempts === 0;
  }

  /** Its attempts fail, and none is further than the connection. */
  get isInTrouble(): boolean {
    return this.#attempts > 0 && (this.#state === PathState.WAITING || this.#state === PathState.CONNECTING);
  }

  /** Why the last attempt failed, or the connection was lost; '' while it stands, and before. */
  get trouble(): string {
    return this.#trouble;
  }

  /** Which memory of the store it leads to, by its handshake; '' before. */
  get bootId(): string {
    return this.#bootId;
  }

  /** Of the protocol, as settled on the last connection that was welcomed. */
  get version(): number {
    return this.#version;
  }

  start(): void {
    this.#transition(PathState.WAITING);
  }

  /** Later attempts go there, the next one at once; a connection that stands is left until it is lost. */
  moveTo(address: PathAddress): void {
    this.#address = address;
    this.#log.moveTo(textOf(address));
    this.#attempts = 0;
    this.#retryAtMs = 0;
  }

  /** Dates what was heard; before the tick of either path. */
  listen(nowMs: number, isLate: boolean): void {
    this.#heartbeat.listen(nowMs, isLate);
  }

  /** Since when a welcomed path has been heard without a long gap, else NEVER. */
  speaksSinceMs(nowMs: number): number {
    return this.#isWelcomed() ? this.#heartbeat.speaksSinceMs(nowMs) : NEVER;
  }

  tick(nowMs: number, otherSpeaksSinceMs: number): void {
    this.#nowMs = nowMs;
    switch (this.#state) {
      case PathState.NEW:
      case PathState.STOPPED:
        return;
      case PathState.WAITING:
        if (nowMs >= this.#retryAtMs && !this.#rests) this.#connect();
        return;
      case PathState.CONNECTING:
      case PathState.GREETING:
      case PathState.PROVING:
        if (this.#heartbeat.isGivenUp(nowMs, ALWAYS)) this.#giveUp();
        return;
      case PathState.READY:
      case PathState.RUN:
        if (this.#heartbeat.isGivenUp(nowMs, otherSpeaksSinceMs)) this.#giveUp();
        else if (this.#heartbeat.takeDue(nowMs)) {
          this.outgoing.queueHeartbeat(nowMs, this.#owner.fencesProcessedAt(this.#bootId));
          this.outgoing.flush();
        }
        return;
    }
  }

  /** The store broke a rule that only the link could judge. */
  reject(rule: string): void {
    this.#log.malformed(rule);
    this.#closeWith(reasons.CLOSE_MALFORMED, rule);
    this.#lose(`malformed: ${rule}`);
  }

  /** The handshake was right, but the connection is of no use beside the other path's. */
  refuse(text: string): void {
    this.#log.refusedStore(text);
    this.#closeWith(reasons.CLOSE_STANDBY, text);
    this.#lose(text);
  }

  /** Another connection at once, whatever the back-off says; the present one, which does not run, ends. */
  reconnect(): void {
    // Its HELLO is still to come, and with it the question what it asks for.
    if (this.#state === PathState.CONNECTING) return;
    this.#rests = false;
    this.#isClosing = true;
    this.#dropWire();
    this.#connect();
  }

  /** No attempts after the loss that follows, until endRest() or reconnect(). */
  rest(): void {
    this.#rests = true;
  }

  endRest(): void {
    this.#rests = false;
  }

  /** Ends the path for good; with a text, the store is told CLOSE(STOPPING). */
  stop(text = ''): void {
    if (this.#state === PathState.STOPPED) return;
    if (text !== '' && this.#isWelcomed()) this.#closeWith(reasons.CLOSE_STOPPING, text);
    this.#dropWire();
    this.#transition(PathState.STOPPED);
  }

  onWireOpen(wire: Wire): void {
    if (wire !== this.#wire || this.#state !== PathState.CONNECTING) return;
    this.#asksActive = this.#owner.mayAsk(this);
    const handshake = new GatewayHandshake(this.#options, this.#ports, {
      path: this.name,
      generation: this.#owner.nextGeneration(),
      wantsActive: this.#asksActive,
    });
    this.#handshake = handshake;
    this.#transition(PathState.GREETING);
    this.#heartbeat.begin(this.#nowMs);
    this.outgoing.queueControl(types.HELLO, handshake.hello);
    this.outgoing.flush();
  }

  onWireData(wire: Wire): void {
    // In the handshake only its steps count, so that a peer can't stretch it byte by byte.
    if (wire === this.#wire && this.#isWelcomed()) this.#heartbeat.heard();
  }

  onWireClosed(wire: Wire, reason: string): void {
    if (wire !== this.#wire) return;
    this.#log.lost(reason, this.#state);
    this.#lose(reason);
  }

  onWireInvalid(wire: Wire, rule: string): void {
    if (wire === this.#wire) this.reject(rule);
  }

  onWireFrame(wire: Wire, type: number, sequence: number, control: Uint8Array, bodies: Uint8Array): void {
    if (wire !== this.#wire) return;
    if (type === types.CLOSE) {
      this.#onClose(control);
      return;
    }
    switch (this.#state) {
      case PathState.GREETING:
        if (type === types.CHALLENGE) this.#onChallenge(control);
        else this.#unexpected(type);
        return;
      case PathState.PROVING:
        if (type === types.WELCOME) this.#onWelcome(control);
        else this.#unexpected(type);
        return;
      case PathState.READY:
        if (type === types.BEAT) this.#owner.onPathFrame(this, type, sequence, control, bodies);
        else this.#unexpected(type);
        return;
      case PathState.RUN:
        this.#owner.onPathFrame(this, type, sequence, control, bodies);
        return;
      default:
        invariant(false, `no frame arrives in ${PATH_STATES[this.#state].name}`);
    }
  }

  #connect(): void {
    this.#transition(PathState.CONNECTING);
    this.#heartbeat.begin(this.#nowMs);
    const wire = new Wire(this, { frameBytesMax: this.#options.frameBytesMax }, this.#ports);
    this.#wire = wire;
    wire.connection = this.#ports.transport.connect(this.#address.host, this.#address.port, wire);
    this.outgoing.reset(wire.connection);
  }

  #onChallenge(control: Uint8Array): void {
    const handshake = this.#handshake;
    invariant(handshake !== undefined, 'GREETING has its HELLO');
    const failure = handshake.judge(control);
    if (failure !== undefined) {
      this.#log.refusedStore(failure.text);
      this.#closeWith(failure.reason, failure.told);
      this.#attempts = Math.max(this.#attempts, ATTEMPTS_HOPELESS);
      this.#lose(failure.text);
      return;
    }
    this.#transition(PathState.PROVING);
    this.#heartbeat.begin(this.#nowMs);
    this.outgoing.queueControl(types.PROOF, handshake.proof);
    this.outgoing.flush();
  }

  #onWelcome(control: Uint8Array): void {
    const welcome = decodeWelcome(this.#ports.packer, control);
    if (isInvalid(welcome)) {
      this.reject(welcome.rule);
      return;
    }
    if (welcome.active !== this.#asksActive) {
      const text = this.#asksActive
        ? 'the store lets another connection be the active one'
        : 'the store made the standby active';
      this.refuse(text);
      return;
    }
    const handshake = this.#handshake;
    invariant(handshake !== undefined, 'WELCOME follows CHALLENGE');
    this.#bootId = handshake.bootId;
    this.#version = handshake.version;
    this.#handshake = undefined;
    this.#trouble = '';
    this.#transition(this.#asksActive ? PathState.RUN : PathState.READY);
    this.#heartbeat.begin(this.#nowMs);
    this.#log.up(this.#state, this.#bootId, this.#version);
    // A lease begins with a heartbeat.
    this.outgoing.queueHeartbeat(this.#nowMs, this.#owner.fencesProcessedAt(this.#bootId));
    this.outgoing.flush();
    this.#owner.onPathUp(this, welcome);
  }

  #onClose(control: Uint8Array): void {
    const close = decodeClose(this.#ports.packer, control);
    if (isInvalid(close)) {
      this.reject(close.rule);
      return;
    }
    if (this.#state === PathState.RUN && isNotice(close)) {
      this.#log.storeStops();
      this.#owner.onPathStopping(this, true);
      return;
    }
    this.#log.closedByStore(close);
    if (close.reason === reasons.CLOSE_FENCED) {
      this.#owner.onPathFenced(this, close.text, close.detail);
      return;
    }
    if (close.reason === reasons.CLOSE_STOPPING) this.#owner.onPathStopping(this, false);
    if (isHopeless(close)) this.#attempts = Math.max(this.#attempts, ATTEMPTS_HOPELESS);
    this.#lose(`${reasons.closeReasonName(close.reason)}: ${close.text}`);
  }

  #unexpected(type: number): void {
    this.reject(`${types.messageTypeName(type)} in ${PATH_STATES[this.#state].name}`);
  }

  #giveUp(): void {
    const silentMs = Math.round(this.#heartbeat.silentMs(this.#nowMs));
    const reason = `silent for ${String(silentMs)} ms, waiting for ${PATH_STATES[this.#state].waitsFor}`;
    this.#log.lost(reason, this.#state);
    this.#lose(reason, true);
  }

  /** Says why, behind whatever was queued. The caller drops the connection. */
  #closeWith(reason: number, text: string): void {
    if (this.#wire === undefined) return;
    this.#isClosing = true;
    this.outgoing.queueControl(types.CLOSE, encodeClose(this.#ports.packer, { reason, text, detail: 0 }));
    this.outgoing.flush();
  }

  #lose(reason: string, wasSilent = false): void {
    // A path that stood for a while starts over with a short pause; one that falls at once backs off.
    if (this.#isWelcomed() && this.#nowMs - this.#sinceMs >= RECONNECT.maxMs) this.#attempts = 0;
    this.#retryAtMs = this.#nowMs + nextDelayMs(this.#attempts, RECONNECT, this.#ports.random);
    this.#attempts++;
    this.#trouble = reason;
    this.#dropWire();
    this.#transition(PathState.WAITING);
    this.#owner.onPathDown(this, reason, wasSilent);
  }

  #dropWire(): void {
    this.#wire?.drop(this.#isClosing);
    this.#wire = undefined;
    this.#isClosing = false;
    this.#handshake = undefined;
    this.outgoing.reset();
  }

  #isWelcomed(): boolean {
    return this.#state === PathState.READY || this.#state === PathState.RUN;
  }

  /** The only writer of the state. */
  #transition(to: PathState): void {
    const from = this.#state;
    const names = `${PATH_STATES[from].name} to ${PATH_STATES[to].name}`;
    invariant(isValidTransition(from, to), `a path goes from ${names}, which no arrow allows`);
    this.#state = to;
    this.#sinceMs = this.#nowMs;
    this.#log.moved(from, to);
  }
}

function textOf({ host, port }: PathAddress): string {
  return `${host}:${String(port)}`;
}

/** The store is about to stop, and serves this connection until then. */
function isNotice(close: Close): boolean {
  return close.reason === reasons.CLOSE_STOPPING && close.detail === reasons.STOPPING_GOES_ON;
}

/** Trouble that only a person ends: no use in asking often. */
function isHopeless(close: Close): boolean {
  return close.reason === reasons.CLOSE_DENIED || close.reason === reasons.CLOSE_VERSION;
}
