/**
 * The line to etcd: one endpoint at a time, the next one when that does not answer.
 *
 *   TRYING ── an endpoint has answered a linearizable read / onUp ──► UP
 *     │  refused, or no answer for 2 s: the next one; after a whole round a growing wait
 *   UP ── the connection is bad, or reset() / onDown ──► TRYING, beginning with the next one
 */
import { nextDelayMs } from '../../base/backoff.js';
import { lookUpHost } from '../../platform/node/host-lookup.js';
import { KeptLookups } from '../../platform/node/kept-lookup.js';
import type { EventLog } from '../../platform/ports.js';
import type {
  ChangesHandler,
  LeaseAnswer,
  Line,
  LineHandlers,
  LineWrite,
  RangeAnswer,
  TransactionAnswer,
} from '../line.js';
import type { Range } from '../port.js';
import { PROBE_KEY } from '../keys.js';
import { loadMethods } from './definitions.js';
import { EtcdConnection } from './etcd-connection.js';
import type { EtcdUser } from './etcd-connection.js';
import { EtcdMessages } from './etcd-messages.js';
import type { EtcdTls } from './etcd-sockets.js';

/** An endpoint that accepts connections and says nothing (a stopped process) is passed over after this. */
const OPEN_MS = 2_000;
const ROUND_AGAIN = { firstMs: 100, factor: 2, maxMs: 2_000, jitter: 0.3 };
const PROBE: Range = { key: PROBE_KEY };

export interface EtcdLineOptions {
  /** http://host:port or https://host:port, at least one. */
  readonly endpoints: readonly string[];
  readonly cluster: string;
  /** Asked for at each connection: the files behind it may have been renewed. */
  readonly tls?: EtcdTls | undefined;
  readonly login?: EtcdUser | undefined;
}

export class EtcdLine implements Line {
  readonly #options: EtcdLineOptions;
  readonly #log: EventLog;
  readonly #methods = loadMethods();
  readonly #messages: EtcdMessages;
  readonly #lookups = new KeptLookups(lookUpHost);
  #handlers: LineHandlers | undefined;
  #connection: EtcdConnection | undefined;
  #isUp = false;
  #isClosed = false;
  #index = 0;
  /** Attempts that failed one after the other. */
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;
  /**
   * The last error of each endpoint that was logged: said again only when it changes, or was well meanwhile.
   */
  readonly #said = new Map<string, string>();

  constructor(options: EtcdLineOptions, log: EventLog) {
    this.#options = options;
    this.#log = log;
    this.#messages = new EtcdMessages(options.cluster);
  }

  open(handlers: LineHandlers): void {
    this.#handlers = handlers;
    this.#timer = setTimeout(() => {
      this.#connect();
    }, 0);
  }

  transact(writes: readonly LineWrite[], done: (answer: TransactionAnswer) => void): void {
    this.#connection?.transact(writes, done);
  }

  range(ranges: readonly Range[], done: (answer: RangeAnswer) => void): void {
    this.#connection?.range(ranges, done);
  }

  watch(prefixes: readonly string[], afterRevision: number, handler: ChangesHandler): { close(): void; } {
    return this.#connection?.watch(prefixes, afterRevision, handler) ?? { close: () => {} };
  }

  grant(session: string, ttlMs: number, done: (answer: LeaseAnswer) => void): void {
    this.#connection?.grant(session, ttlMs, done);
  }

  renew(session: string, done: (answer: LeaseAnswer) => void): void {
    this.#connection?.renew(session, done);
  }

  revoke(session: string, done: (answer: LeaseAnswer) => void): void {
    this.#connection?.revoke(session, done);
  }

  reset(why: string): void {
    const connection = this.#connection;
    if (!this.#isUp || connection === undefined) return;
    // Not from inside the call: the client settles its calls at onDown.
    this.#isUp = false;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      connection.close();
      this.#onEnd(connection, why, true);
    }, 0);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#connection?.close();
    this.#connection = undefined;
  }

  #connect(): void {
    const { endpoints, tls, login } = this.#options;
    const endpoint = endpoints[this.#index % endpoints.length] ?? '';
    const options = { endpoint, tls, login, lookup: this.#lookups.lookup };
    const connection = new EtcdConnection(options, this.#methods, this.#messages, (why) => {
      this.#onEnd(connection, why, this.#isUp);
    });
    this.#connection = connection;
    this.#timer = setTimeout(() => {
      connection.close();
      this.#onEnd(
        connection,
        `no answer for ${
          String(OPEN_MS)
        } ms: is etcd stopped or overloaded there, or has it lost the other members?`,
        false,
      );
    }, OPEN_MS);
    connection.open(PROBE, () => {
      clearTimeout(this.#timer);
      this.#isUp = true;
      this.#failures = 0;
      this.#said.delete(endpoint);
      this.#handlers?.onUp(endpoint);
    });
  }

  #onEnd(connection: EtcdConnection, why: string, wasUp: boolean): void {
    if (this.#isClosed || this.#connection !== connection) return;
    clearTimeout(this.#timer);
    this.#connection = undefined;
    this.#isUp = false;
    this.#index += 1;
    this.#failures += 1;
    const { endpoints } = this.#options;
    const text = `etcd at ${connection.endpoint}: ${why}`;
    if (!wasUp && this.#said.get(connection.endpoint) !== why) {
      this.#said.set(connection.endpoint, why);
      this.#log.warn('register', 'an endpoint of etcd can not be used', {
        endpoint: connection.endpoint,
        why,
      });
    }
    const rounds = Math.floor(this.#failures / endpoints.length);
    const waitMs = this.#failures % endpoints.length > 0
      ? 0
      : nextDelayMs(rounds - 1, ROUND_AGAIN, Math.random);
    this.#timer = setTimeout(() => {
      this.#connect();
    }, waitMs);
    this.#handlers?.onDown(text);
  }
}
