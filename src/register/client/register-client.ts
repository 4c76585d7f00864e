/**
 * A register over a line: bounds, deadlines, batches, watches, sessions. The same code stands over etcd, the
 * file and the simulated register. Pure: time comes by tick() and a clock, and a turn's end by `soon`.
 *
 *   write ─► waiting ── batch of a turn ──► under way ── answered ──► settled
 *              │ deadline: refused 'away'      │ deadline, line down: unknown
 *
 * A line that is silent though something is asked of it is given up (silence = nothing heard for
 * `silenceMs`), and the next endpoint is tried. Where nothing is asked, a small read is, so that a half-open
 * connection is found before it is needed. If this process itself stood still, the silence counts anew: the
 * answer may wait in the kernel.
 */
import { invariant } from '../../base/invariant.js';
import type { Clock, EventLog, Random } from '../../platform/ports.js';
import { PROBE_KEY } from '../keys.js';
import * as limits from '../limits.js';
import type { Line, TransactionAnswer } from '../line.js';
import type {
  Outcome,
  Range,
  ReadResult,
  RefusalReason,
  Register,
  RegisterState,
  Session,
  SessionListener,
  Watch,
  WatchListener,
  Write,
} from '../port.js';
import { takeBatch } from './batches.js';
import type { Batch, WaitingWrite } from './batches.js';
import { LastingSession } from './lasting-session.js';
import { Watching } from './watching.js';

export interface RegisterClientOptions {
  /** Each call is answered within this. */
  readonly callTimeoutMs: number;
  /** A line that owes an answer and says nothing for so long is given up. */
  readonly silenceMs: number;
  /** After so long without a word, a word is asked for. */
  readonly probeMs: number;
  /** Transactions under way at once. */
  readonly batchesMax: number;
  /** What etcd was started with (--max-txn-ops). */
  readonly operationsMax: number;
}

export const DEFAULT_CLIENT_OPTIONS: RegisterClientOptions = {
  callTimeoutMs: 5_000,
  // A session of 5 s outlasts a silent endpoint: 1.6 s since its last renewal, 2 s of
  // silence, then the next one.
  silenceMs: 2_000,
  probeMs: 1_000,
  batchesMax: 4,
  operationsMax: limits.TRANSACTION_OPERATIONS_MAX,
};

export interface RegisterClientPorts {
  readonly line: Line;
  readonly clock: Clock;
  readonly soon: (run: () => void) => void;
  readonly random: Random;
  readonly log: EventLog;
}

interface WaitingRead {
  readonly range: Range;
  readonly deadlineMs: number;
  readonly done: (result: ReadResult) => void;
  sentMs: number | undefined;
}

/** Read when nothing else is asked. */
const PROBE: Range = { key: PROBE_KEY };

export class RegisterClient implements Register {
  readonly #options: RegisterClientOptions;
  readonly #ports: RegisterClientPorts;
  #state: RegisterState;
  #isClosed = false;
  readonly #waiting: WaitingWrite[] = [];
  readonly #underWay = new Set<Batch>();
  readonly #keysUnderWay = new Set<string>();
  readonly #reads = new Set<WaitingRead>();
  readonly #watches = new Set<Watching>();
  readonly #sessions = new Set<LastingSession>();
  #probeSentMs: number | undefined;
  #heardMs = 0;
  #tickMs: number;
  #isPumpAsked = false;
  /** Answers of an older connection are not for us. */
  #generation = 0;

  constructor(options: RegisterClientOptions, ports: RegisterClientPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#tickMs = ports.clock.nowMs();
    this.#state = { isUp: false, endpoint: '', why: 'not connected yet', sinceMs: this.#tickMs };
    ports.line.open({
      onUp: (endpoint) => {
        this.#onUp(endpoint);
      },
      onDown: (why) => {
        this.#onDown(why);
      },
    });
  }

  get state(): RegisterState {
    return this.#state;
  }

  write(writes: readonly Write[], settled: (index: number, outcome: Outcome) => void): void {
    const deadlineMs = this.#ports.clock.nowMs() + this.#options.callTimeoutMs;
    for (const [index, { key, ifRevision, ifValue, value, session, guards = [] }] of writes.entries()) {
      const refuse = (reason: RefusalReason, why: string): void => {
        this.#ports.soon(() => {
          settled(index, { kind: 'refused', reason, why });
        });
      };
      const rule = limits.writeRule({ key, ifRevision, ifValue, value, guards });
      const sessionId = session?.id ?? '';
      if (this.#isClosed) refuse('closed', 'this register is closed');
      else if (rule !== '') refuse('limit', rule);
      else if (session !== undefined && sessionId === '') refuse('session', 'the session is not open');
      else if (this.#waiting.length + this.#keysUnderWay.size >= limits.WRITES_MAX) {
        refuse('full', `${String(limits.WRITES_MAX)} writes wait already`);
      } else {
        const write = { key, ifRevision, ifValue, value, guards: [...guards], session: sessionId };
        this.#waiting.push({
          write,
          deadlineMs,
          settle: (outcome) => {
            settled(index, outcome);
          },
        });
      }
    }
    this.#askPump();
  }

  read(range: Range, done: (result: ReadResult) => void): void {
    const rule = limits.rangeRule(range);
    const why = this.#isClosed
      ? 'this register is closed'
      : this.#reads.size >= limits.READS_MAX
      ? `${String(limits.READS_MAX)} reads wait already`
      : rule;
    if (why !== '') {
      this.#ports.soon(() => {
        done({ kind: 'unreachable', why });
      });
      return;
    }
    this.#reads.add({
      range,
      deadlineMs: this.#ports.clock.nowMs() + this.#options.callTimeoutMs,
      done,
      sentMs: undefined,
    });
    this.#askPump();
  }

  watch(prefixes: readonly string[], listener: WatchListener): Watch {
    invariant(
      !this.#isClosed && this.#watches.size < limits.WATCHES_MAX,
      'a register has few watches, and none once it is closed',
    );
    invariant(prefixes.length > 0 && prefixes.length <= limits.PREFIXES_MAX, 'a watch has a few prefixes');
    for (const prefix of prefixes) {
      invariant(limits.rangeRule({ prefix }) === '', `a prefix is well-formed: ${prefix}`);
    }
    const watch = new Watching([...prefixes], listener);
    this.#watches.add(watch);
    this.#askPump();
    return {
      close: () => {
        this.#watches.delete(watch);
        watch.close();
      },
    };
  }

  openSession(ttlMs: number, listener: SessionListener): Session {
    invariant(
      !this.#isClosed && this.#sessions.size < limits.SESSIONS_MAX,
      'a register has few sessions, and none once it is closed',
    );
    invariant(
      ttlMs >= limits.SESSION_TTL_MS_MIN && ttlMs <= limits.SESSION_TTL_MS_MAX,
      'a session lasts some seconds',
    );
    const session = new LastingSession(ttlMs, listener, {
      random: this.#ports.random,
      soon: this.#ports.soon,
      onChange: () => {
        this.#askPump();
      },
    });
    this.#sessions.add(session);
    this.#askPump();
    return session;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#generation += 1;
    this.#ports.line.close();
    this.#setState(false, '', 'closed');
    for (const watch of this.#watches) watch.close();
    this.#watches.clear();
    this.#ports.soon(() => {
      const sessions = [...this.#sessions];
      this.#sessions.clear();
      for (const session of sessions) session.abandon();
      this.#failReads(() => true, 'this register is closed');
      for (const { settle } of this.#waiting.splice(0)) {
        settle({ kind: 'refused', reason: 'closed', why: 'this register is closed' });
      }
      this.#loseBatches(() => true, 'this register was closed before the answer came');
    });
  }

  /**
   * Deadlines, silence, keep-alives: called some ten times a second, each time after the sockets were polled.
   */
  tick(): void {
    if (this.#isClosed) return;
    const nowMs = this.#ports.clock.nowMs();
    // Who stood still for so long knows nothing of silence; deadlines of calls hold all the same.
    if (nowMs - this.#tickMs > this.#options.silenceMs / 2) this.#heardMs = nowMs;
    this.#tickMs = nowMs;
    this.#expire(nowMs);
    this.#judgeSilence(nowMs);
    this.#pump();
  }

  #expire(nowMs: number): void {
    const { why } = this.#state;
    const late = this.#waiting.filter(({ deadlineMs }) => nowMs >= deadlineMs);
    if (late.length > 0) {
      this.#waiting.splice(
        0,
        this.#waiting.length,
        ...this.#waiting.filter(({ deadlineMs }) => nowMs < deadlineMs),
      );
      const text = this.#state.isUp ? 'the deadline passed before its turn came' : why;
      for (const { settle } of late) settle({ kind: 'refused', reason: 'away', why: text });
    }
    this.#loseBatches(({ deadlineMs }) => nowMs >= deadlineMs, 'no answer before the deadline');
    this.#failReads(
      ({ deadlineMs }) => nowMs >= deadlineMs,
      this.#state.isUp ? 'no answer before the deadline' : why,
    );
  }

  #judgeSilence(nowMs: number): void {
    if (!this.#state.isUp) return;
    const { silenceMs, probeMs } = this.#options;
    if (this.#probeSentMs === undefined && nowMs - this.#heardMs >= probeMs) this.#probe(nowMs);
    if (nowMs - this.#heardMs < silenceMs) return;
    const oldest = Math.min(...this.#awaited());
    if (nowMs - oldest >= silenceMs) {
      this.#ports.line.reset(`no answer for ${String(Math.round(nowMs - oldest))} ms`);
    }
  }

  #awaited(): number[] {
    const since = [
      this.#probeSentMs,
      ...[...this.#underWay].map(({ sentMs }) => sentMs),
      ...[...this.#reads].map(({ sentMs }) => sentMs),
    ];
    for (const each of this.#watches) since.push(each.awaitingSinceMs);
    for (const each of this.#sessions) since.push(each.awaitingSinceMs);
    return since.filter((sentMs) => sentMs !== undefined);
  }

  #probe(nowMs: number): void {
    this.#probeSentMs = nowMs;
    const generation = this.#generation;
    this.#ports.line.range([PROBE], () => {
      if (generation !== this.#generation) return;
      this.#probeSentMs = undefined;
      this.#heard();
    });
  }

  // ---- what is sent ----

  /** Once a turn: what a turn writes goes together. */
  #askPump(): void {
    if (this.#isPumpAsked || this.#isClosed) return;
    this.#isPumpAsked = true;
    this.#ports.soon(() => {
      this.#isPumpAsked = false;
      if (!this.#isClosed) this.#pump();
    });
  }

  #pump(): void {
    const nowMs = this.#ports.clock.nowMs();
    const line = this.#state.isUp ? this.#ports.line : undefined;
    for (const session of [...this.#sessions]) {
      session.act(line, nowMs, this.#options.callTimeoutMs, () => {
        this.#heard();
      });
      if (session.isOver) this.#sessions.delete(session);
    }
    if (line === undefined) return;
    for (const watch of [...this.#watches]) {
      watch.ask(line, nowMs, () => {
        this.#heard();
      });
    }
    this.#sendReads(line, nowMs);
    while (this.#underWay.size < this.#options.batchesMax) {
      const batch = takeBatch(this.#waiting, this.#keysUnderWay, this.#options.operationsMax, nowMs);
      if (batch === undefined) break;
      this.#sendBatch(batch);
    }
  }

  #sendBatch(batch: Batch): void {
    this.#underWay.add(batch);
    for (const { write } of batch.writes) this.#keysUnderWay.add(write.key);
    this.#ports.line.transact(batch.writes.map(({ write }) => write), (answer) => {
      if (!this.#underWay.has(batch)) return;
      this.#heard();
      this.#forget(batch);
      this.#settle(batch, answer);
      this.#askPump();
    });
  }

  #settle(batch: Batch, answer: TransactionAnswer): void {
    for (const [index, { settle }] of batch.writes.entries()) {
      if (answer.kind !== 'settled') settle(answer);
      else {settle(
          answer.results[index]
            ?? { kind: 'unknown', why: 'the register answered fewer writes than were sent' },
        );}
    }
  }

  /** Keys that are asked for in one turn go together, at one revision; a prefix goes alone. */
  #sendReads(line: Line, nowMs: number): void {
    let keys: WaitingRead[] = [];
    for (const read of this.#reads) {
      if (read.sentMs !== undefined) continue;
      read.sentMs = nowMs;
      if ('prefix' in read.range) this.#sendRange(line, [read]);
      else keys.push(read);
      if (keys.length < this.#options.operationsMax) continue;
      this.#sendRange(line, keys);
      keys = [];
    }
    if (keys.length > 0) this.#sendRange(line, keys);
  }

  #sendRange(line: Line, reads: readonly WaitingRead[]): void {
    const generation = this.#generation;
    line.range(reads.map(({ range }) => range), (answer) => {
      if (generation !== this.#generation) return;
      this.#heard();
      const entries = answer.kind === 'entries' ? answer.entries : [];
      const found = new Map(entries.map((entry) => [entry.key, entry]));
      for (const read of reads) {
        if (!this.#reads.delete(read)) continue;
        if (answer.kind === 'failed') read.done({ kind: 'unreachable', why: answer.why });
        else if ('prefix' in read.range) read.done(answer);
        else {
          const entry = found.get(read.range.key);
          read.done({ ...answer, entries: entry === undefined ? [] : [entry] });
        }
      }
    });
  }

  // ---- what comes back ----

  #heard(): void {
    this.#heardMs = this.#ports.clock.nowMs();
  }

  #onUp(endpoint: string): void {
    this.#generation += 1;
    this.#probeSentMs = undefined;
    this.#heard();
    this.#setState(true, endpoint, '');
    this.#ports.log.info('register', 'the register is reached', { endpoint });
    this.#askPump();
  }

  #onDown(why: string): void {
    const wasUp = this.#state.isUp;
    this.#generation += 1;
    this.#probeSentMs = undefined;
    this.#setState(false, '', why);
    // A line that finds no endpoint says so again and again, with the newest reason;
    // it is logged by the line.
    if (!wasUp) return;
    this.#ports.log.warn('register', 'the register is away: mail goes on, changes of records wait', { why });
    for (const session of [...this.#sessions]) session.lineDown();
    for (const read of this.#reads) read.sentMs = undefined;
    this.#loseBatches(() => true, why);
    for (const watch of [...this.#watches]) watch.lose(why);
  }

  #setState(isUp: boolean, endpoint: string, why: string): void {
    const sinceMs = isUp === this.#state.isUp ? this.#state.sinceMs : this.#ports.clock.nowMs();
    this.#state = { isUp, endpoint, why, sinceMs };
  }

  #loseBatches(which: (batch: Batch) => boolean, why: string): void {
    for (const batch of [...this.#underWay].filter(which)) {
      this.#forget(batch);
      for (const { settle } of batch.writes) settle({ kind: 'unknown', why });
    }
  }

  #failReads(which: (read: WaitingRead) => boolean, why: string): void {
    for (const read of [...this.#reads].filter(which)) {
      this.#reads.delete(read);
      read.done({ kind: 'unreachable', why });
    }
  }

  #forget(batch: Batch): void {
    this.#underWay.delete(batch);
    for (const { write } of batch.writes) this.#keysUnderWay.delete(write.key);
  }
}
