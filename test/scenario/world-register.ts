/**
 * The register of a simulated world: one for all its gateways, and for each gateway process a RegisterBridge
 * over a client and a line of its own. Everything runs on the world's scheduler and seed.
 *
 *   WorldRegister   away, slow, forgetful, restored from a snapshot: for all processes
 *     └ start()     WorldProcess: cut off, killed, closed: for one
 *
 * A process that is killed leaves its session to run out; what it had sent may still be applied.
 */
import type { Prng } from '../../src/base/prng.js';
import { RegisterBridge } from '../../src/gateway/ownership/register-bridge.js';
import type { EventLog } from '../../src/platform/ports.js';
import { DEFAULT_CLIENT_OPTIONS, RegisterClient } from '../../src/register/client/register-client.js';
import type { RegisterMap } from '../../src/register/core/register-map.js';
import type { Entry } from '../../src/register/port.js';
import type { Change, Line, LineHandlers } from '../../src/register/line.js';
import { BrokenRule } from '../../src/base/json-shape.js';
import { givenUpKey, partitionKey } from '../../src/register/keys.js';
import { decodeGivenUp, decodePartition } from '../../src/register/records.js';
import type { PartitionRecord } from '../../src/protocol/partition-record.js';
import { numberOf, ownerOf } from '../../src/protocol/partition-record.js';
import { SimulatedLine } from '../../src/register/simulated/simulated-line.js';
import { SimulatedRegister } from '../../src/register/simulated/simulated-register.js';
import type { Timeline as RegisterTime } from '../../src/register/simulated/simulated-register.js';
import type { Timeline } from './timeline.js';

const TICK_MS = 25;

export interface WorldProcessOptions {
  readonly gatewayId: string;
  readonly incarnation: number;
  readonly ordinal?: number;
  readonly host?: string;
  readonly group?: readonly string[];
  readonly addresses?: readonly string[];
  /** The lock file of its machine. Default: proves nothing. */
  readonly isProvenDead?: (incarnation: number) => boolean;
  readonly onHeld?: () => void;
  readonly onTaken?: (why: string) => void;
  /** Its own time, where it may stand still. Default: the world's. */
  readonly time?: Timeline;
}

export class WorldRegister {
  readonly register: SimulatedRegister;
  readonly #prng: Prng;
  readonly #log: EventLog;
  readonly #time: Timeline;
  readonly #wallBaseMs: number;
  readonly #lastIncarnation = new Map<string, number>();
  /** Entries never change: each is decoded once. */
  readonly #decoded = new WeakMap<Entry, PartitionRecord | BrokenRule>();
  #ordinal = 0;

  constructor(time: Timeline, prng: Prng, log: EventLog, wallBaseMs = 0) {
    this.#prng = prng;
    this.#log = log;
    this.#time = time;
    this.#wallBaseMs = wallBaseMs;
    this.register = new SimulatedRegister(registerTime(time, wallBaseMs), prng.fork());
  }

  /** What a process gets from the register before it begins, without the time that takes. */
  draw(gatewayId: string): { readonly incarnation: number; readonly ordinal: number } {
    const incarnation = (this.#lastIncarnation.get(gatewayId) ?? 0) + 1;
    this.#lastIncarnation.set(gatewayId, incarnation);
    this.#ordinal += 1;
    return { incarnation, ordinal: this.#ordinal };
  }

  start(options: WorldProcessOptions): WorldProcess {
    const time = registerTime(options.time ?? this.#time, this.#wallBaseMs);
    return new WorldProcess(options, this.register, time, this.#prng.fork(), this.#log);
  }

  /** Who holds a partition, as the register has it at this moment. */
  recordOf(partition: string): PartitionRecord | undefined {
    const entry = this.register.snapshot().get(partitionKey(ownerOf(partition), numberOf(partition)));
    if (entry === undefined) return undefined;
    const record = this.#decoded.get(entry) ?? decodePartition(entry.value);
    this.#decoded.set(entry, record);
    return record instanceof BrokenRule ? undefined : record;
  }

  /** The store was given up, and is still to be told that a partition has ended: this one, or any. */
  isGivenUp(storeId: string, partition?: string): boolean {
    const entry = this.register.snapshot().get(givenUpKey(storeId));
    const rule = entry === undefined ? undefined : decodeGivenUp(entry.value);
    if (rule === undefined || rule instanceof BrokenRule) return false;
    return partition === undefined || rule.copies.some((copy) => copy.partition === partition);
  }

  goAway(how: 'refusing' | 'silent'): void {
    this.register.goAway(how);
  }

  comeBack(): void {
    this.register.comeBack();
  }

  /** Each way takes up to so long. */
  slow(delayMs: number): void {
    this.register.faults.delayMs = delayMs;
  }

  /** Shares from 0 to 1. What is lost ends its connection some time later. */
  lose(shares: { readonly requests?: number; readonly replies?: number }): void {
    this.register.faults.lostRequests = shares.requests ?? 0;
    this.register.faults.lostReplies = shares.replies ?? 0;
  }

  /** Requests that come up to `lateMs` late, also after their sender has died. */
  delay(share: number, lateMs: number): void {
    this.register.faults.lateRequests = share;
    this.register.faults.lateMs = lateMs;
  }

  snapshot(): RegisterMap {
    return this.register.snapshot();
  }

  restore(snapshot: RegisterMap): void {
    this.register.restore(snapshot);
  }
}

function registerTime(time: Timeline, wallBaseMs: number): RegisterTime {
  return {
    nowMs: () => time.nowMs,
    wallMs: () => wallBaseMs + time.nowMs,
    after: (delayMs, run) => { time.after(delayMs, run); },
    soon: (run) => { time.soon(run); },
  };
}

export class WorldProcess {
  readonly bridge: RegisterBridge;
  readonly client: RegisterClient;
  readonly #line: CutLine;
  #isAlive = true;

  constructor(
    options: WorldProcessOptions, register: SimulatedRegister, time: RegisterTime, prng: Prng, log: EventLog,
  ) {
    const { gatewayId, incarnation, ordinal = incarnation, host = gatewayId, group = [], addresses = [] } = options;
    const soon = (run: () => void): void => {
      time.soon(() => { if (this.#isAlive) run(); });
    };
    this.#line = new CutLine(new SimulatedLine(register, time));
    const random = (): number => prng.next();
    this.client = new RegisterClient(DEFAULT_CLIENT_OPTIONS, { line: this.#line, clock: time, soon, random, log });
    const record = { incarnation, ordinal, host, addresses, group };
    this.bridge = new RegisterBridge({ gatewayId, record }, {
      register: this.client, clock: time, soon, log,
      isProvenDead: (other) => options.isProvenDead?.(other) ?? false,
      onHeld: () => { options.onHeld?.(); },
      onTaken: (why) => { options.onTaken?.(why); },
    });
    const tick = (): void => {
      if (!this.#isAlive) return;
      this.client.tick();
      this.bridge.tick(time.nowMs());
      time.after(TICK_MS, tick);
    };
    time.after(TICK_MS, tick);
  }

  /** Nothing gets through either way, and nobody is told. */
  cutOff(): void {
    this.#line.cut();
  }

  mend(): void {
    this.#line.mend();
  }

  /** News of keys that begin so are late: the watch tells of none of them. */
  deafen(prefix: string): void {
    this.#line.deafTo = prefix;
  }

  kill(): void {
    this.#isAlive = false;
    this.client.close();
  }

  /** As a process that stops in good order; it lives until `done`. */
  close(done: () => void): void {
    this.bridge.close(() => {
      this.kill();
      done();
    });
  }
}

/** Passes on what is said while it is whole. */
class CutLine implements Line {
  readonly #inner: Line;
  #handlers: LineHandlers | undefined;
  #isCut = false;
  /** The watch tells of no key that begins so. */
  deafTo: string | undefined;
  /** Of the line below, and what our own client was told. */
  #endpoint = '';
  #isTold = false;

  constructor(inner: Line) {
    this.#inner = inner;
  }

  cut(): void {
    this.#isCut = true;
  }

  mend(): void {
    if (!this.#isCut) return;
    this.#isCut = false;
    // A connection that missed something does not go on as if nothing had been.
    if (this.#isTold) this.#inner.reset('connection reset');
    else this.#tell();
  }

  open(handlers: LineHandlers): void {
    this.#handlers = handlers;
    this.#inner.open({
      onUp: (endpoint) => {
        this.#endpoint = endpoint;
        this.#tell();
      },
      onDown: (why) => {
        this.#endpoint = '';
        this.#isTold = false;
        handlers.onDown(why);
      },
    });
  }

  transact(...[writes, done]: Parameters<Line['transact']>): void {
    if (!this.#isCut) this.#inner.transact(writes, this.#unlessCut(done));
  }

  range(...[ranges, done]: Parameters<Line['range']>): void {
    if (!this.#isCut) this.#inner.range(ranges, this.#unlessCut(done));
  }

  watch(...[prefixes, afterRevision, handler]: Parameters<Line['watch']>): { close(): void } {
    return this.#inner.watch(prefixes, afterRevision, {
      onChanges: this.#unlessCut((changes) => { handler.onChanges(this.#heard(changes)); }),
      onBroken: this.#unlessCut((why) => { handler.onBroken(why); }),
    });
  }

  grant(...[session, ttlMs, done]: Parameters<Line['grant']>): void {
    if (!this.#isCut) this.#inner.grant(session, ttlMs, this.#unlessCut(done));
  }

  renew(...[session, done]: Parameters<Line['renew']>): void {
    if (!this.#isCut) this.#inner.renew(session, this.#unlessCut(done));
  }

  revoke(...[session, done]: Parameters<Line['revoke']>): void {
    if (!this.#isCut) this.#inner.revoke(session, this.#unlessCut(done));
  }

  reset(why: string): void {
    this.#inner.reset(why);
  }

  close(): void {
    this.#inner.close();
  }

  #heard(changes: readonly Change[]): readonly Change[] {
    const { deafTo } = this;
    return deafTo === undefined ? changes : changes.filter(({ key }) => !key.startsWith(deafTo));
  }

  #tell(): void {
    if (this.#isCut || this.#isTold || this.#endpoint === '') return;
    this.#isTold = true;
    this.#handlers?.onUp(this.#endpoint);
  }

  #unlessCut<Answer>(done: (answer: Answer) => void): (answer: Answer) => void {
    return (answer) => {
      if (!this.#isCut) done(answer);
    };
  }
}
