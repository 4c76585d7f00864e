/**
 * One connection to one endpoint of etcd, from the first attempt to its end; etcd-line.ts makes the next one.
 * By @grpc/grpc-js, and with these traps of it and of etcd in mind (docs/decisions/0015-client-of-etcd.md):
 *
 * - Connections to one address are shared among all channels of a process unless told otherwise: a half-open
 *   one would be handed to the next attempt again.
 * - It repeats calls by itself unless told otherwise, asks DNS for settings, and obeys http_proxy.
 * - Its deadlines are of the wall clock: none are given; the client counts by the monotonic
 *   one and resets the line.
 * - Streams tell 'error' and 'end' after they were cancelled: listeners stay, and do nothing then.
 * - etcd drops who pings more often than every 5 s: small reads are asked instead of pings (the client's
 *   probe), which also find a member that has lost the others.
 */
import { Client, Metadata } from '@grpc/grpc-js';
import type { ClientDuplexStream, ServiceError } from '@grpc/grpc-js';
import type { LookupFunction } from 'node:net';
import { ENTRIES_MAX } from '../limits.js';
import type { ChangesHandler, LeaseAnswer, LineWrite, RangeAnswer, TransactionAnswer } from '../line.js';
import type { Entry, Range } from '../port.js';
import type { EtcdMethods, Method, Received, Sent } from './definitions.js';
import { adviceOn, judge } from './etcd-errors.js';
import type { EtcdMessages } from './etcd-messages.js';
import { EtcdSockets } from './etcd-sockets.js';
import type { EtcdTls } from './etcd-sockets.js';

/** Pages have 1,000 entries; an entry may have 64 KiB. */
const ANSWER_BYTES_MAX = 128 * 1024 * 1024;

const CHANNEL_OPTIONS = {
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_retries': 0,
  'grpc.service_config_disable_resolution': 1,
  'grpc.enable_http_proxy': 0,
  'grpc.max_receive_message_length': ANSWER_BYTES_MAX,
  // One attempt a connection: etcd-line.ts decides when the next one comes.
  'grpc.initial_reconnect_backoff_ms': 60_000,
};

export interface EtcdUser {
  readonly user: string;
  readonly password: string;
}

export interface EtcdConnectionOptions {
  /** http:// or https://, host and port. */
  readonly endpoint: string;
  readonly tls: EtcdTls | undefined;
  readonly login: EtcdUser | undefined;
  readonly lookup: LookupFunction;
}

export class EtcdConnection {
  readonly endpoint: string;
  readonly #methods: EtcdMethods;
  readonly #messages: EtcdMessages;
  readonly #sockets: EtcdSockets;
  #made: Client | undefined;
  readonly #login: EtcdUser | undefined;
  readonly #metadata = new Metadata();
  /** Its end, once; never from inside a call of ours. */
  readonly #onEnd: (why: string) => void;
  readonly #renewals: Renewals;
  readonly #streams = new Set<{ cancel(): void; }>();
  #isEnded = false;

  constructor(
    options: EtcdConnectionOptions,
    methods: EtcdMethods,
    messages: EtcdMessages,
    onEnd: (why: string) => void,
  ) {
    this.endpoint = options.endpoint;
    this.#methods = methods;
    this.#messages = messages;
    this.#onEnd = onEnd;
    this.#login = options.login;
    this.#sockets = new EtcdSockets(new URL(options.endpoint), options.tls, options.lookup);
    this.#renewals = new Renewals(() => this.#stream(this.#methods.leaseKeepAlive));
  }

  /** Knocks, signs in, then reads one key in a linearizable way: so much has to work. */
  open(probe: Range, onOpen: () => void): void {
    const look = (): void => {
      this.range([probe], (answer) => {
        if (answer.kind === 'entries') onOpen();
        else this.#end(answer.why);
      });
    };
    this.#sockets.knock((why) => {
      if (why !== '') this.#end(adviceOn(why));
      else if (this.#login === undefined) look();
      else this.#signIn(this.#login, look);
    });
  }

  transact(writes: readonly LineWrite[], done: (answer: TransactionAnswer) => void): void {
    this.#call(this.#methods.txn, this.#messages.transaction(writes), (response) => {
      const results = this.#messages.results(writes, response);
      done(
        results.length === writes.length
          ? { kind: 'settled', results }
          : { kind: 'unknown', why: 'etcd answered another transaction' },
      );
    }, (error) => {
      const { refusal, isConnectionBad, text } = judge(error);
      done(
        refusal === undefined
          ? { kind: 'unknown', why: text }
          : { kind: 'refused', reason: refusal, why: text },
      );
      if (isConnectionBad) this.#end(text);
    });
  }

  range(ranges: readonly Range[], done: (answer: RangeAnswer) => void): void {
    const keys = ranges.flatMap((range) => ('key' in range ? [range.key] : []));
    if (keys.length > 1 && keys.length === ranges.length) this.#keys([...new Set(keys)], done);
    else this.#ranges(ranges, done);
  }

  /** Many keys in one call. */
  #keys(keys: readonly string[], done: (answer: RangeAnswer) => void): void {
    this.#call(this.#methods.txn, this.#messages.keys(keys), (response) => {
      const entries = this.#messages.entries(keys.length, response);
      done(
        entries === undefined || response.header === null
          ? { kind: 'failed', why: 'etcd answered another transaction' }
          : { kind: 'entries', entries: sortedByKey(entries), revision: response.header.revision },
      );
    }, (error) => {
      this.#failRange(error, done);
    });
  }

  /** All ranges and pages at the revision of the first one. */
  #ranges(ranges: readonly Range[], done: (answer: RangeAnswer) => void): void {
    const entries = new Map<string, Entry>();
    let revision = 0;
    const next = (index: number, after: Buffer | undefined): void => {
      const range = ranges[index];
      if (range === undefined) {
        done({ kind: 'entries', entries: sortedByKey([...entries.values()]), revision });
        return;
      }
      this.#call(this.#methods.range, this.#messages.range(range, after, revision), (response) => {
        revision ||= response.header?.revision ?? 0;
        let last: Buffer | undefined;
        for (const kv of response.kvs) {
          const entry = this.#messages.entry(kv);
          last = this.#messages.pageEnd(kv);
          if (entry !== undefined) entries.set(entry.key, entry);
        }
        if (entries.size > ENTRIES_MAX) {
          done({ kind: 'failed', why: `more than ${String(ENTRIES_MAX)} keys` });
        } else if (response.more && last !== undefined) next(index, last);
        else next(index + 1, undefined);
      }, (error) => {
        this.#failRange(error, done);
      });
    };
    next(0, undefined);
  }

  #failRange(error: ServiceError, done: (answer: RangeAnswer) => void): void {
    const { isConnectionBad, text } = judge(error);
    done({ kind: 'failed', why: text });
    if (isConnectionBad) this.#end(text);
  }

  watch(prefixes: readonly string[], afterRevision: number, handler: ChangesHandler): { close(): void; } {
    // Without a leader among the members it hears nothing: then it is to be told.
    const metadata = this.#metadata.clone();
    metadata.set('hasleader', 'true');
    const stream = this.#stream(this.#methods.watch, metadata);
    let isOver = false;
    const close = (): void => {
      isOver = true;
      this.#streams.delete(stream);
      stream.cancel();
    };
    const breakOff = (why: string): void => {
      if (isOver || this.#isEnded) return;
      close();
      handler.onBroken(why);
    };
    stream.on('data', (response: Received<'WatchResponse'>) => {
      if (isOver || this.#isEnded) return;
      if (response.canceled) {
        breakOff(
          response.compact_revision > 0
            ? `changes up to revision ${String(response.compact_revision)} are compacted`
            : response.cancel_reason,
        );
        return;
      }
      const changes = this.#messages.changes(response);
      if (changes.length > 0) handler.onChanges(changes);
    });
    stream.on('error', (error: ServiceError) => {
      breakOff(judge(error).text);
    });
    stream.on('end', () => {
      breakOff('etcd has ended the watch');
    });
    for (const [index, prefix] of prefixes.entries()) {
      stream.write(this.#messages.watch(prefix, afterRevision, index + 1));
    }
    return { close };
  }

  grant(session: string, ttlMs: number, done: (answer: LeaseAnswer) => void): void {
    // Whole seconds, and never less than was asked for.
    const request = { ID: Number(session), TTL: Math.ceil(ttlMs / 1000) };
    this.#call(this.#methods.leaseGrant, request, ({ TTL }) => {
      done({ kind: 'granted', ttlMs: TTL * 1000 });
    }, (error) => {
      this.#failLease(error, done);
    });
  }

  renew(session: string, done: (answer: LeaseAnswer) => void): void {
    this.#renewals.renew(Number(session), {
      done: (answer) => {
        if (!this.#isEnded) done(answer);
      },
      failed: (error) => {
        if (!this.#isEnded) this.#failLease(error, done);
      },
    });
  }

  revoke(session: string, done: (answer: LeaseAnswer) => void): void {
    this.#call(this.#methods.leaseRevoke, { ID: Number(session) }, () => {
      done({ kind: 'gone' });
    }, (error) => {
      this.#failLease(error, done);
    });
  }

  /** Ends it without a word to onEnd. Callbacks of calls under way come no more. */
  close(): void {
    this.#isEnded = true;
    for (const stream of this.#streams) stream.cancel();
    this.#made?.close();
    this.#sockets.end();
  }

  /** From the knock on. */
  get #client(): Client {
    const { target, authority } = this.#sockets;
    const options = { ...CHANNEL_OPTIONS, 'grpc.default_authority': authority };
    return this.#made ??= new Client(target, this.#sockets, options);
  }

  #signIn({ user: name, password }: EtcdUser, done: () => void): void {
    this.#call(this.#methods.authenticate, { name, password }, ({ token }) => {
      this.#metadata.set('token', token);
      done();
    }, (error) => {
      this.#end(judge(error).text);
    });
  }

  #failLease(error: ServiceError, done: (answer: LeaseAnswer) => void): void {
    const { refusal, isConnectionBad, text } = judge(error);
    done(refusal === 'session' ? { kind: 'gone' } : { kind: 'failed', why: text });
    if (isConnectionBad) this.#end(text);
  }

  #end(why: string): void {
    if (this.#isEnded) return;
    this.close();
    this.#onEnd(why);
  }

  #call<Request, Response>(
    method: Method<Request, Response>,
    request: Request,
    done: (response: Response) => void,
    failed: (error: ServiceError) => void,
  ): void {
    const { path, requestSerialize, responseDeserialize } = method;
    this.#client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      this.#metadata,
      (error, response) => {
        if (this.#isEnded) return;
        if (error !== null) failed(error);
        else if (response !== undefined) done(response);
      },
    );
  }

  #stream<Request, Response>(
    { path, requestSerialize, responseDeserialize }: Method<Request, Response>,
    metadata = this.#metadata,
  ): ClientDuplexStream<Request, Response> {
    const stream = this.#client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
    this.#streams.add(stream);
    return stream;
  }
}

function sortedByKey(entries: readonly Entry[]): readonly Entry[] {
  return [...entries].sort((a, b) => (a.key < b.key ? -1 : 1));
}

type KeepAlives =
  ClientDuplexStream<Sent<'LeaseKeepAliveRequest'>, Received<'LeaseKeepAliveResponse'>>;

interface Renewal {
  readonly done: (answer: LeaseAnswer) => void;
  readonly failed: (error: ServiceError) => void;
}

/** Keep-alives of all sessions over one stream; etcd answers those of one lease in their order. */
class Renewals {
  readonly #open: () => KeepAlives;
  #stream: KeepAlives | undefined;
  readonly #waiting: { readonly id: number; readonly renewal: Renewal; }[] = [];

  constructor(open: () => KeepAlives) {
    this.#open = open;
  }

  renew(id: number, renewal: Renewal): void {
    this.#waiting.push({ id, renewal });
    this.#stream ??= this.#start();
    this.#stream.write({ ID: id });
  }

  #start(): KeepAlives {
    const stream = this.#open();
    stream.on('data', ({ ID, TTL }: Received<'LeaseKeepAliveResponse'>) => {
      const index = this.#waiting.findIndex(({ id }) => id === ID);
      const [answered] = index < 0 ? [] : this.#waiting.splice(index, 1);
      answered?.renewal.done(TTL > 0 ? { kind: 'granted', ttlMs: TTL * 1000 } : { kind: 'gone' });
    });
    stream.on('error', (error: ServiceError) => {
      if (this.#stream !== stream) return;
      this.#stream = undefined;
      for (const { renewal } of this.#waiting.splice(0)) renewal.failed(error);
    });
    stream.on('end', () => {
      if (this.#stream === stream && this.#waiting.length === 0) this.#stream = undefined;
    });
    return stream;
  }
}
