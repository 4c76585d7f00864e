/**
 * One path of a link: the connection on it, its handshake, its heartbeats, and the attempts after a loss.
 * Owns the connection, its sequence numbers and the frames queued for the next write.
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
 *   any state: CLOSE(FENCED) / onPathFenced, stop() ──► STOPPED
 *
 * docs/PROTOCOL.md, "Handshake" and "Reasons". What is not here: what requests and replies mean, which path
 * is to be active, window and credit (store-link.ts); the rule by which silence is judged (heartbeat.ts);
 * the contents of the handshake (greeting.ts).
 */
import { nextDelayMs } from '../../../base/backoff.js';
import { invariant } from '../../../base/invariant.js';
import { encodeFrame } from '../../../protocol/frame.js';
import * as types from '../../../protocol/message-types.js';
import type { Close } from '../../../protocol/messages/close.js';
import { decodeClose, encodeClose } from '../../../protocol/messages/close.js';
import { encodeHeartbeat } from '../../../protocol/messages/heartbeat.js';
import type { Welcome } from '../../../protocol/messages/welcome.js';
import { decodeWelcome } from '../../../protocol/messages/welcome.js';
import { isInvalid } from '../../../protocol/invalid.js';
import * as reasons from '../../../protocol/reasons.js';
import { Greeting } from './greeting.js';
import { Heartbeat } from './heartbeat.js';
import type { LinkOptions, LinkPorts, PathAddress, PathName } from './link-options.js';
import { RECONNECT } from './link-options.js';
import { PathLog } from './path-log.js';
import type { PathState } from './path-state.js';
import { PATH_STATE, PATH_STATES, isValidTransition } from './path-state.js';
import type { WireOwner } from './wire.js';
import { Wire } from './wire.js';

const NO_BODIES: readonly Uint8Array[] = [];

/** With this many attempts the pause is at its longest: 50 ms × 2^6 > 2 s. */
const ATTEMPTS_HOPELESS = 6;

/** What a path tells its link. */
export interface PathOwner {
  /** The generation for a new connection: higher than all that this link used before. */
  nextGeneration(): number;
  onPathUp(path: PathConnection, welcome: Welcome): void;
  /** A frame that only the link understands, on a path in RUN; or BEAT on one in READY. */
  onPathFrame(path: PathConnection, type: number, sequence: number, control: Uint8Array, bodies: Uint8Array): void;
  /** `was` is the state it was in: only the loss of a path in RUN ends the link. */
  onPathDown(path: PathConnection, was: PathState, reason: string): void;
  onPathFenced(path: PathConnection, text: string): void;
}

export class PathConnection implements WireOwner {
  readonly name: PathName;
  readonly #address: PathAddress;
  readonly #options: LinkOptions;
  readonly #ports: LinkPorts;
  readonly #owner: PathOwner;
  readonly #log: PathLog;
  readonly #heartbeat: Heartbeat;
  /** Asks to be the active one at the next attempt. */
  wantsActive: boolean;
  #state: PathState = PATH_STATE.NEW;
  #sinceMs = 0;
  #nowMs = 0;
  /** Attempts since the path last stood for a while: the exponent of the back-off. */
  #attempts = 0;
  #retryAtMs = 0;
  /** Set while there is a connection; a late call from an earlier one is known by being another object. */
  #wire: Wire | undefined;
  /** A CLOSE is on its way: the connection ends behind it instead of being cut. */
  #isClosing = false;
  #greeting: Greeting | undefined;
  #lastSequence = 0;
  /** When PROOF and the last HEARTBEAT went out, and which of those the store answered last. */
  #proofMs = 0;
  #sentToken = 0;
  #answeredToken = 0;
  #bootId = '';
  /** Frames and bodies for the next write; the same array each time. */
  readonly #outgoing: Uint8Array[] = [];

  constructor(name: PathName, address: PathAddress, wantsActive: boolean, options: LinkOptions, ports: LinkPorts, owner: PathOwner) {
    this.name = name;
    this.wantsActive = wantsActive;
    this.#address = address;
    this.#options = options;
    this.#ports = ports;
    this.#owner = owner;
    this.#log = new PathLog(ports.log, options.storeId, name, `${address.host}:${String(address.port)}`);
    this.#heartbeat = new Heartbeat(options);
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

  /** Which memory of the store it leads to, by its handshake; '' before. */
  get bootId(): string {
    return this.#bootId;
  }

  /** A time before PROOF was handed to the socket. */
  get proofMs(): number {
    return this.#proofMs;
  }

  /** Sequence of the last frame queued on this connection. */
  get lastSequence(): number {
    return this.#lastSequence;
  }

  start(): void {
    this.#transition(PATH_STATE.WAITING);
  }

  tick(nowMs: number, isLate: boolean): void {
    this.#nowMs = nowMs;
    switch (this.#state) {
      case PATH_STATE.NEW:
      case PATH_STATE.STOPPED:
        return;
      case PATH_STATE.WAITING:
        if (nowMs >= this.#retryAtMs) this.#connect();
        return;
      case PATH_STATE.CONNECTING:
      case PATH_STATE.GREETING:
      case PATH_STATE.PROVING:
        if (this.#heartbeat.isGivenUp(nowMs, isLate)) this.#giveUp();
        return;
      case PATH_STATE.READY:
      case PATH_STATE.RUN:
        if (this.#heartbeat.isGivenUp(nowMs, isLate)) this.#giveUp();
        else if (this.#heartbeat.takeDue(nowMs)) this.#sendHeartbeat();
        return;
    }
  }

  /** Queues one frame; returns its sequence number. */
  queue(type: number, control: Uint8Array, bodies: readonly Uint8Array[], bodyBytes: number): number {
    const sequence = this.#lastSequence + 1;
    this.#lastSequence = sequence;
    this.#outgoing.push(encodeFrame(type, sequence, control, this.#ports.crc32, bodyBytes));
    for (let i = 0; i < bodies.length; i++) {
      const body = bodies[i];
      if (body !== undefined) this.#outgoing.push(body);
    }
    return sequence;
  }

  /** Hands all that is queued to the transport as one write. */
  flush(): void {
    if (this.#outgoing.length === 0) return;
    this.#wire?.connection?.write(this.#outgoing);
    this.#outgoing.length = 0;
  }

  /** The store broke a rule that only the link could judge. */
  reject(rule: string): void {
    this.#log.malformed(rule);
    this.#closeWith(reasons.CLOSE_MALFORMED, rule);
    this.#lose(`malformed: ${rule}`);
  }

  /** True when a heartbeat of this connection had this token, and none that was answered since had a later one. */
  takeAnswer(token: number): boolean {
    if (token > this.#sentToken || token < this.#answeredToken) return false;
    this.#answeredToken = token;
    return true;
  }

  /** Ends the path for good; with a text, the store is told CLOSE(STOPPING). */
  stop(text = ''): void {
    if (this.#state === PATH_STATE.STOPPED) return;
    if (text !== '' && this.#isWelcomed()) this.#closeWith(reasons.CLOSE_STOPPING, text);
    this.#dropWire();
    this.#transition(PATH_STATE.STOPPED);
  }

  onWireOpen(wire: Wire): void {
    if (wire !== this.#wire || this.#state !== PATH_STATE.CONNECTING) return;
    const greeting = new Greeting(this.#options, this.#ports, {
      path: this.name,
      generation: this.#owner.nextGeneration(),
      wantsActive: this.wantsActive,
    });
    this.#greeting = greeting;
    this.#transition(PATH_STATE.GREETING);
    this.#heartbeat.begin(this.#nowMs);
    this.queue(types.HELLO, greeting.hello, NO_BODIES, 0);
    this.flush();
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
      case PATH_STATE.GREETING:
        if (type === types.CHALLENGE) this.#onChallenge(control);
        else this.#unexpected(type);
        return;
      case PATH_STATE.PROVING:
        if (type === types.WELCOME) this.#onWelcome(control);
        else this.#unexpected(type);
        return;
      case PATH_STATE.READY:
        if (type === types.BEAT) this.#owner.onPathFrame(this, type, sequence, control, bodies);
        else this.#unexpected(type);
        return;
      case PATH_STATE.RUN:
        this.#owner.onPathFrame(this, type, sequence, control, bodies);
        return;
      default:
        invariant(false, `no frame arrives in ${PATH_STATES[this.#state].name}`);
    }
  }

  #connect(): void {
    this.#transition(PATH_STATE.CONNECTING);
    this.#heartbeat.begin(this.#nowMs);
    this.#lastSequence = 0;
    this.#sentToken = 0;
    this.#answeredToken = 0;
    this.#outgoing.length = 0;
    const wire = new Wire(this, { frameBytesMax: this.#options.frameBytesMax }, this.#ports);
    this.#wire = wire;
    wire.connection = this.#ports.transport.connect(this.#address.host, this.#address.port, wire);
  }

  #onChallenge(control: Uint8Array): void {
    const greeting = this.#greeting;
    invariant(greeting !== undefined, 'GREETING has its HELLO');
    const failure = greeting.judge(control);
    if (failure !== undefined) {
      this.#log.refusedStore(failure.text);
      this.#closeWith(failure.reason, failure.text);
      this.#attempts = Math.max(this.#attempts, ATTEMPTS_HOPELESS);
      this.#lose(failure.text);
      return;
    }
    this.#transition(PATH_STATE.PROVING);
    this.#heartbeat.begin(this.#nowMs);
    this.#proofMs = this.#nowMs;
    this.queue(types.PROOF, greeting.proof, NO_BODIES, 0);
    this.flush();
  }

  #onWelcome(control: Uint8Array): void {
    const welcome = decodeWelcome(this.#ports.packer, control);
    if (isInvalid(welcome)) {
      this.reject(welcome.rule);
      return;
    }
    if (welcome.active !== this.wantsActive) {
      const text = this.wantsActive ? 'the store lets another connection be the active one' : 'the store made the standby active';
      this.#log.refusedStore(text);
      this.#closeWith(reasons.CLOSE_STANDBY, text);
      this.#lose(text);
      return;
    }
    const greeting = this.#greeting;
    invariant(greeting !== undefined, 'WELCOME follows CHALLENGE');
    this.#bootId = hex(greeting.bootId);
    this.#greeting = undefined;
    this.#transition(this.wantsActive ? PATH_STATE.RUN : PATH_STATE.READY);
    this.#heartbeat.begin(this.#nowMs);
    this.#log.up(this.#state, this.#bootId);
    this.#owner.onPathUp(this, welcome);
  }

  #onClose(control: Uint8Array): void {
    const close = decodeClose(this.#ports.packer, control);
    if (isInvalid(close)) {
      this.reject(close.rule);
      return;
    }
    this.#log.closedByStore(close);
    if (close.reason === reasons.CLOSE_FENCED) {
      this.#owner.onPathFenced(this, close.text);
      return;
    }
    if (isHopeless(close)) this.#attempts = Math.max(this.#attempts, ATTEMPTS_HOPELESS);
    this.#lose(`${reasons.closeReasonName(close.reason)}: ${close.text}`);
  }

  #unexpected(type: number): void {
    this.reject(`${types.messageTypeName(type)} in ${PATH_STATES[this.#state].name}`);
  }

  #giveUp(): void {
    const reason = `silent for ${String(this.#options.failoverTimeoutMs)} ms, waiting for ${PATH_STATES[this.#state].waitsFor}`;
    this.#log.lost(reason, this.#state);
    this.#lose(reason);
  }

  /** The token is the time of this tick, which is before the write: the answer tells what the lease counts from. */
  #sendHeartbeat(): void {
    this.#sentToken = Math.floor(this.#nowMs);
    this.queue(types.HEARTBEAT, encodeHeartbeat(this.#ports.packer, { token: this.#sentToken }), NO_BODIES, 0);
    this.flush();
  }

  /** Says why, behind whatever was queued. The caller drops the connection. */
  #closeWith(reason: number, text: string): void {
    if (this.#wire === undefined) return;
    this.#isClosing = true;
    this.queue(types.CLOSE, encodeClose(this.#ports.packer, { reason, text, detail: 0 }), NO_BODIES, 0);
    this.flush();
  }

  #lose(reason: string): void {
    const was = this.#state;
    // A path that stood for a while starts over with a short pause; one that falls at once backs off.
    if (this.#isWelcomed() && this.#nowMs - this.#sinceMs >= RECONNECT.maxMs) this.#attempts = 0;
    this.#retryAtMs = this.#nowMs + nextDelayMs(this.#attempts, RECONNECT, this.#ports.random);
    this.#attempts++;
    this.#dropWire();
    this.#transition(PATH_STATE.WAITING);
    this.#owner.onPathDown(this, was, reason);
  }

  #dropWire(): void {
    this.#wire?.drop(this.#isClosing);
    this.#wire = undefined;
    this.#isClosing = false;
    this.#greeting = undefined;
    this.#outgoing.length = 0;
  }

  #isWelcomed(): boolean {
    return this.#state === PATH_STATE.READY || this.#state === PATH_STATE.RUN;
  }

  /** The only writer of the state. */
  #transition(to: PathState): void {
    const from = this.#state;
    invariant(isValidTransition(from, to), `a path goes from ${PATH_STATES[from].name} to ${PATH_STATES[to].name}, which no arrow allows`);
    this.#state = to;
    this.#sinceMs = this.#nowMs;
    this.#log.moved(from, to);
  }
}

/** Trouble that only a person ends: no use in asking often. */
function isHopeless(close: Close): boolean {
  return close.reason === reasons.CLOSE_DENIED || close.reason === reasons.CLOSE_VERSION;
}

function hex(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0');
  return text;
}
