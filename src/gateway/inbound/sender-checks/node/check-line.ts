/**
 * Checks where messages come from, in a thread of its own (check-thread.ts), within a time that counts from
 * the end of the message: who waits in line for long has less of it for the DNS.
 *
 *   check ─┬─ a place is free ─▶ STARTED ─ checked ────────────────────────────▶ verdicts
 *          ├─ none, or the thread loads ─▶ WAITING ─ a place is free ─▶ STARTED   │ late, or its thread ends:
 *          └─ no room, no thread that loads, no memory ─▶ unchecked               └─▶ unchecked (temperror)
 *
 * A client has a tenth of the places at most, and few in line: one whose names are silent, so that its checks
 * last, makes its own mail temperror and nobody else's.
 *
 * One timer serves all, for they end in the order in which they came. Many may end at once, and with each a
 * whole message goes on: so few do in one turn of the loop. The content goes to the thread as a copy, counted
 * as memory in use until the thread has answered or ended. Questions of the thread go to a client of the DNS
 * that nothing else waits for: names are strangers', and may be silent.
 */
import { nextDelayMs } from '../../../../base/backoff.js';
import { joined } from '../../../../base/joined.js';
import { OnceInAWhile } from '../../../../base/once-in-a-while.js';
import type { AuthenticationMetrics } from '../../../../observability/authentication-metrics.js';
import { isAskable } from '../../../../platform/node/dns/dns-message.js';
import { TurnShare } from '../../../../platform/node/turn-share.js';
import type { EventLog } from '../../../../platform/ports.js';
import type { DnsAnswer, Resolver } from '../../../../platform/resolver.js';
import type { Reception } from '../../../mail-types.js';
import { clientKey } from '../../limits/client-counts.js';
import type { JudgedMessage } from '../../hooks/message-hook.js';
import type { SenderChecks } from '../sender-checks.js';
import { bestDkim, unchecked } from '../verdicts.js';
import type { Verdicts } from '../verdicts.js';
import type { AskedQuestion, CheckedType } from './check-messages.js';
import { CheckThread } from './check-thread.js';

export interface CheckLinePorts {
  /** Of the checks alone; closed with them. */
  readonly resolver: Resolver & { close(): void };
  readonly memory: Pick<Reception, 'reserve' | 'release'>;
  readonly log: EventLog;
  readonly metrics: AuthenticationMetrics;
  /** What runs in the thread, where it is not the one that checks. */
  readonly entry?: URL;
  /** From the end of a message to the field that says what is known; 5 s, if nobody says otherwise. */
  readonly checkMs?: number;
}

const CHECK_MS = 5_000;
/** What the thread needs to come to its end when the DNS is silent. */
const ENDING_MS = 500;
/** Most of them wait for the DNS. */
const AT_ONCE_MAX = 100;
/** A check has up to 14 names under way; few have so many, and those of one client at once all have room. */
export const CHECK_QUESTIONS_AT_ONCE_MAX = 512;
/** Of one IPv4 address or one IPv6 /64; the others of it wait. */
const OF_CLIENT_AT_ONCE_MAX = 10;
/** With them as many as it may have connections, if nobody says otherwise (connections_per_client). */
const OF_CLIENT_WAITING_MAX = 40;
/** Each is a message of which nothing is submitted, held in memory that is counted. */
const WAITING_MAX = 1000;
const RESTART = { firstMs: 50, factor: 2, maxMs: 10_000, jitter: 0 };
/** One that has lived so long begins anew without delay. */
const LIVED_MS = 10_000;
const TOLD_EVERY_MS = 10_000;

export class CheckLine implements SenderChecks {
  readonly #hostName: string;
  readonly #ports: CheckLinePorts;
  readonly #started = new Map<number, OpenCheck>();
  readonly #waiting: OpenCheck[] = [];
  /** All that are open, and some that are not any more, in the order in which they came. */
  readonly #byAge: OpenCheck[] = [];
  /** By clientKey(), or for a message whose client nobody told by its id; of those that have any. */
  readonly #shares = new Map<string, ClientShare>();
  #timer: NodeJS.Timeout | undefined;
  #count = 0;
  #thread: CheckThread | undefined;
  /** Why the last one did not come so far as to load; '': it has, or is about to. */
  #brokenBy = '';
  #begunMs = 0;
  /** Threads in a row that did not live long. */
  #deaths = 0;
  #isClosed = false;
  #restart: NodeJS.Timeout | undefined;
  readonly #endings = new TurnShare();
  readonly #telling = new OnceInAWhile(TOLD_EVERY_MS);

  constructor(hostName: string, ports: CheckLinePorts) {
    this.#hostName = hostName;
    this.#ports = ports;
    this.#begin();
  }

  check(
    message: Pick<JudgedMessage, 'envelope' | 'isAbandoned'>, pieces: readonly Uint8Array[],
    done: (verdicts: Verdicts) => void,
  ): void {
    const { client, queueId } = message.envelope;
    // Those whom a proxy did not tell are not one client.
    const share = this.#shareOf(client === '' ? queueId : clientKey(client));
    const open = { message, pieces };
    const check = new OpenCheck(open, share, this.#ports.checkMs ?? CHECK_MS, (verdicts, ms) => {
      const { metrics } = this.#ports;
      metrics.checked(verdicts.spf.result, bestDkim(verdicts.dkim), verdicts.dmarc.result, ms);
      this.#endings.run(() => { done(verdicts); });
    });
    if (this.#brokenBy !== '' || this.#isClosed) return check.settle(unchecked('no check can be made'));
    if (this.#waiting.length >= WAITING_MAX) return check.settle(unchecked('too many messages'));
    if (share.waitingCount >= OF_CLIENT_WAITING_MAX) {
      return check.settle(unchecked('too many messages of its client'));
    }
    this.#shares.set(share.key, share);
    share.waitingCount++;
    this.#waiting.push(check);
    this.#byAge.push(check);
    this.#watch();
    this.#goOn();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#restart);
    clearTimeout(this.#timer);
    this.#thread?.end('the gateway stops');
    this.#giveUpAll('the gateway stops');
    this.#ports.resolver.close();
  }

  #begin(): void {
    this.#begunMs = performance.now();
    this.#thread = new CheckThread({
      onReady: () => {
        this.#brokenBy = '';
        this.#goOn();
      },
      onChecked: (number, verdicts) => {
        const check = this.#started.get(number);
        this.#free(number, check);
        check?.settle(verdicts);
        this.#goOn();
      },
      onQuestion: (asked, answer) => { this.#ask(asked, answer); },
      onEnded: (why) => { this.#onEnded(why); },
    }, this.#ports.entry);
  }

  #ask({ name, type, withinMs }: AskedQuestion, answer: (answer: DnsAnswer<CheckedType>) => void): void {
    // Senders have a say in it (RFC 7208 7.2): what is no name is not there.
    if (isAskable(name)) this.#ports.resolver.ask(name, type, answer, withinMs);
    else answer({ kind: 'no-name', isAuthentic: false });
  }

  #goOn(): void {
    if (this.#thread?.isReady !== true) return;
    while (this.#started.size < AT_ONCE_MAX) {
      const at = this.#waiting.findIndex(({ isSettled, share }) =>
        isSettled || share.startedCount < OF_CLIENT_AT_ONCE_MAX);
      const [check] = at < 0 ? [] : this.#waiting.splice(at, 1);
      if (check === undefined) return;
      check.share.waitingCount--;
      if (check.open !== undefined) this.#start(this.#thread, check, check.open);
      this.#forget(check.share);
    }
  }

  #shareOf(key: string): ClientShare {
    return this.#shares.get(key) ?? { key, waitingCount: 0, startedCount: 0 };
  }

  #forget({ key, waitingCount, startedCount }: ClientShare): void {
    if (waitingCount + startedCount === 0) this.#shares.delete(key);
  }

  #start(thread: CheckThread, check: OpenCheck, { message, pieces }: CheckedMessage): void {
    const withinMs = check.untilMs - performance.now() - ENDING_MS;
    if (message.isAbandoned || withinMs <= 0) return check.settle(unchecked('too many messages'));
    const octets = pieces.reduce((sum, { length }) => sum + length, 0);
    if (!this.#ports.memory.reserve(octets)) return check.settle(unchecked('no memory'));
    check.reservedBytes = octets;
    const number = this.#count++;
    this.#started.set(number, check);
    check.share.startedCount++;
    const { client, helo, reversePath } = message.envelope;
    const content = joined(pieces);
    thread.check({ check: number, withinMs, hostName: this.#hostName, client, helo, reversePath, content });
  }

  #free(number: number, check: OpenCheck | undefined): void {
    if (check === undefined) return;
    this.#started.delete(number);
    this.#ports.memory.release(check.reservedBytes);
    check.share.startedCount--;
    this.#forget(check.share);
  }

  /** Until the oldest that is open is late. */
  #watch(): void {
    const nowMs = performance.now();
    let oldest = this.#byAge[0];
    for (; oldest !== undefined && (oldest.isSettled || oldest.untilMs <= nowMs); oldest = this.#byAge[0]) {
      this.#byAge.shift();
      if (!oldest.isSettled) this.#onLate(oldest);
    }
    if (oldest === undefined || this.#timer !== undefined) return;
    // What the thread has said may lie unread while this process was stalled: it is read first.
    this.#timer = setTimeout(() => setImmediate(() => {
      this.#timer = undefined;
      this.#watch();
    }), oldest.untilMs - nowMs).unref();
  }

  #onLate(check: OpenCheck): void {
    check.settle(unchecked('not in time'));
    this.#thread?.probe();
  }

  #onEnded(why: string): void {
    const wasReady = this.#thread?.isReady === true;
    this.#thread = undefined;
    if (this.#isClosed) return;
    if (!wasReady) this.#brokenBy = why;
    this.#giveUpAll(wasReady ? 'the check has failed' : 'no check can be made', !wasReady);
    const nowMs = performance.now();
    if (this.#telling.isDue(nowMs)) {
      const text = 'the thread that checks senders has ended, and is started again';
      this.#ports.log.error('authentication', text, { why });
    }
    this.#deaths = nowMs - this.#begunMs >= LIVED_MS ? 0 : this.#deaths + 1;
    const delayMs = this.#deaths === 0 ? 0 : nextDelayMs(this.#deaths - 1, RESTART, () => 0);
    this.#restart = setTimeout(() => { this.#begin(); }, delayMs).unref();
  }

  /** Those that it had; `isHopeless`: those that wait too. */
  #giveUpAll(reason: string, isHopeless = true): void {
    for (const [number, check] of [...this.#started]) {
      this.#free(number, check);
      check.settle(unchecked(reason));
    }
    if (!isHopeless) return;
    for (const check of this.#waiting.splice(0)) {
      check.share.waitingCount--;
      this.#forget(check.share);
      check.settle(unchecked(reason));
    }
  }
}

/** What one client has here. */
interface ClientShare {
  readonly key: string;
  waitingCount: number;
  startedCount: number;
}

interface CheckedMessage {
  readonly message: Pick<JudgedMessage, 'envelope' | 'isAbandoned'>;
  readonly pieces: readonly Uint8Array[];
}

/** A message until its verdicts. */
class OpenCheck {
  readonly untilMs: number;
  readonly share: ClientShare;
  reservedBytes = 0;
  readonly #sinceMs = performance.now();
  readonly #done: (verdicts: Verdicts, ms: number) => void;
  /** Undefined once it is settled: the message is not kept by it. */
  open: CheckedMessage | undefined;

  constructor(
    open: CheckedMessage, share: ClientShare, withinMs: number,
    done: (verdicts: Verdicts, ms: number) => void,
  ) {
    this.share = share;
    this.untilMs = this.#sinceMs + withinMs;
    this.open = open;
    this.#done = done;
  }

  get isSettled(): boolean {
    return this.open === undefined;
  }

  /** The first verdicts count. */
  settle(verdicts: Verdicts): void {
    if (this.isSettled) return;
    this.open = undefined;
    this.#done(verdicts, performance.now() - this.#sinceMs);
  }
}
