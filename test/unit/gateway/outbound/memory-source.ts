/** A DeliverySource in memory, and a dispatcher on real sockets around it; every attempt and result is kept. */
import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { OUTBOUND_DEFAULTS } from '../../../default-options.js';
import { Dispatcher } from '../../../../src/gateway/outbound/dispatcher.js';
import type { DispatcherOptions } from '../../../../src/gateway/outbound/dispatcher.js';
import type { AttemptResult } from '../../../../src/gateway/outbound/lane.js';
import { ClientTransport } from '../../../../src/platform/node/client-transport.js';
import { PasswordFiles } from '../../../../src/platform/node/password-files.js';
import type { EventLog, Random } from '../../../../src/platform/ports.js';
import type { HostAddresses, Resolver } from '../../../../src/platform/resolver.js';
import type { MailTransport } from '../../../../src/platform/transport.js';
import type { TlsWatch } from '../../../../src/gateway/outbound/tls-reports/tls-tally.js';
import type { PolicySource } from '../../../../src/gateway/outbound/sts/sts-policies.js';
import type { Delivery, DeliveryQueue, DeliverySource, Route } from '../../../../src/gateway/mail-types.js';
import { envelopeTo } from './pure/session-world.js';

export class MemoryQueue implements DeliveryQueue {
  route: Route;
  readonly waiting: number[] = [];
  constructor(route: Partial<Route> & Pick<Route, 'nextHop'>) {
    this.route = { queueName: 'q', queueClass: 'mail', label: 'mail/q', ordering: 'fifo', concurrency: 20, lengthMax: 1e6, ...route, nextHop: route.nextHop };
  }
  get readyCount(): number { return this.waiting.length; }
  /** A thousand each. */
  get bytes(): number { return 1000 * this.waiting.length; }
}

export interface Ended { readonly entry: number; readonly result: AttemptResult }

export class MemorySource implements DeliverySource {
  readonly contents = new Map<number, Uint8Array>();
  readonly recipients = new Map<number, readonly string[]>();
  readonly taken: number[] = [];
  readonly ended: Ended[] = [];
  tlsFallbacks = 0;
  daneFailures = 0;
  slowEnds = 0;
  inFlight = 0;
  inFlightMost = 0;
  #waiters: { count: number; resolve: () => void }[] = [];

  put(queue: MemoryQueue, entry: number, content: string, recipients: readonly string[] = ['b@example.net']): void {
    this.contents.set(entry, Buffer.from(content, 'latin1'));
    this.recipients.set(entry, recipients);
    queue.waiting.push(entry);
  }
  take(queue: DeliveryQueue): Delivery | undefined {
    const entry = (queue as MemoryQueue).waiting.shift();
    if (entry === undefined) return undefined;
    this.taken.push(entry);
    this.inFlightMost = Math.max(this.inFlightMost, ++this.inFlight);
    const recipients = this.recipients.get(entry) ?? [];
    const envelope = envelopeTo(recipients);
    return { entry, queue, envelope, reversePath: envelope.reversePath, pending: recipients.map((_, i) => i), contentBytes: this.contents.get(entry)?.length ?? 0 };
  }
  copyContent(delivery: Delivery, target: Uint8Array, at: number, from: number, bytes: number): void {
    target.set(this.contents.get(delivery.entry)?.subarray(from, from + bytes) ?? new Uint8Array(0), at);
  }
  settle(delivery: Delivery, result: AttemptResult): void {
    this.inFlight--;
    assert.ok(!this.ended.slice(-1000).some((one) => one.entry === delivery.entry), 'settled once');
    assert.equal(result.results.length, delivery.pending.length);
    this.ended.push({ entry: delivery.entry, result });
    this.#waiters = this.#waiters.filter((one) => {
      if (this.ended.length < one.count) return true;
      one.resolve();
      return false;
    });
  }
  /** Resolves when so many attempts have ended. */
  untilEnded(count: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.ended.length >= count) resolve();
      else this.#waiters.push({ count, resolve });
    });
  }
}

const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/** Keeps "event text" of all but debug. */
export function toldTo(told: string[]): EventLog {
  const tell = (event: string, text: string): void => { told.push(`${event} ${text}`); };
  return { debug: () => undefined, info: tell, warn: tell, error: tell };
}

const NO_RESOLVER: Resolver = { ask: () => { assert.fail('no name is asked for'); } };

/** A host elsewhere, as its route names it; it is at 127.0.0.AT. */
export function elsewhere(at: number): string {
  return `at-${String(at)}.elsewhere.test`;
}

/** The system knows those. */
class NamingTransport extends ClientTransport {
  override addresses(host: string, done: (found: HostAddresses) => void): () => boolean {
    const at = /^at-(\d+)\.elsewhere\.test$/.exec(host)?.[1];
    if (at === undefined) return super.addresses(host, done);
    done({ addresses: [`127.0.0.${at}`], why: '', isFailed: false });
    return () => true;
  }
}

export function dispatcherFor(source: MemorySource, more: Partial<DispatcherOptions> = {}, mayDot: (delivery: Delivery) => boolean = () => true, resolver: Resolver = NO_RESOLVER, random: Random = () => 0.5, log: EventLog = SILENT, policies?: PolicySource, tlsWatch?: TlsWatch, ca?: string, transport: MailTransport = new NamingTransport({ readBufferBytes: 8 * 1024, ...(ca === undefined ? {} : { ca }) })): Dispatcher {
  const dispatcher = new Dispatcher(
    { ...OUTBOUND_DEFAULTS, heloName: 'gw.test', ...more },
    {
      source,
      transport,
      resolver,
      clock: { nowMs: () => performance.now(), wallMs: () => Date.now() },
      random,
      policies,
      tlsWatch,
      passwords: new PasswordFiles({ log, onRead: () => undefined }),
      log,
      mayDot,
      onTlsFallback: () => { source.tlsFallbacks++; },
      onDaneFailed: () => { source.daneFailures++; },
      onSlow: () => { source.slowEnds++; },
    },
  );
  dispatcher.start();
  return dispatcher;
}
