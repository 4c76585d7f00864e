/**
 * A session with a scripted peer: `say` brings reply bytes, `sent` shows what went out. With `split` every
 * reply arrives byte by byte, which must change nothing.
 */
import assert from 'node:assert/strict';
import type { Connection, SecuredFacts, TlsTerms } from '../../../../../src/platform/transport.js';
import { DEFAULT_TIMEOUTS } from '../../../../../src/gateway/outbound/pure/session-states.js';
import { SmtpSession } from '../../../../../src/gateway/outbound/pure/smtp-session.js';
import type { SessionEvents, SessionView } from '../../../../../src/gateway/outbound/pure/session-ports.js';
import { WriteBuffer } from '../../../../../src/smtp/write-buffer.js';
import type { PasswordFound } from '../../../../../src/platform/ports.js';
import type { Delivery, DeliveryQueue, Envelope, NextHopAuth, NextHopTls, RecipientResult } from '../../../../../src/gateway/mail-types.js';


export const QUEUE: DeliveryQueue = {
  route: {
    queueName: 'example.net',
    queueClass: 'mail',
    label: 'mail/example.net',
    nextHop: { protocol: 'smtp', host: 'mx.example.net', port: 25 },
    ordering: 'fifo',
    concurrency: 20,
    lengthMax: 1000,
  },
  readyCount: 0,
  bytes: 0,
};

export function envelopeTo(addresses: readonly string[], more: Partial<Envelope> = {}): Envelope {
  return {
    messageId: 1,
    reversePath: 'anna@example.org',
    recipients: addresses.map((address) => ({ address, notify: 0, orcpt: '' })),
    flags: 0,
    ret: 0,
    envid: '',
    arrivalWallMs: 0,
    expiryWallMs: 1e12,
    client: '',
    helo: '',
    queueClass: 'mail',
    queueName: 'example.net',
    ...more,
  };
}

/** What the world hands to a session; content is kept beside the delivery. */
export interface TestMail extends Delivery {
  readonly content: Uint8Array;
}

export function mail(addresses: readonly string[], content = 'Subject: x\r\n\r\nhello\r\n', more: Partial<Envelope> = {}): TestMail {
  const bytes = Buffer.from(content, 'latin1');
  const envelope = envelopeTo(addresses, more);
  return { entry: 1, queue: QUEUE, envelope, reversePath: envelope.reversePath, pending: addresses.map((_, i) => i), contentBytes: bytes.length, content: bytes };
}

export class ScriptedConnection implements Connection {
  readonly remote = 'mx.example.net:25';
  security: SecuredFacts | undefined;
  bufferedBytes = 0;
  /** Bytes that stay in the process after each write, until drained. */
  holds = false;
  isDestroyed = false;
  writes: string[] = [];

  write(chunks: readonly Uint8Array[]): void {
    const text = chunks.map((chunk) => Buffer.from(chunk).toString('latin1')).join('');
    this.writes.push(text);
    if (this.holds) this.bufferedBytes += text.length;
  }
  pause(): void { /* a session never pauses */ }
  resume(): void { /* nor resumes */ }
  end(): void { this.isDestroyed = true; }
  destroy(): void { this.isDestroyed = true; }
}

export class SessionWorld implements SessionEvents {
  connection = new ScriptedConnection();
  /** What TLS was asked for, each time. */
  readonly secured: TlsTerms[] = [];
  readonly buffer = new WriteBuffer();
  readonly session: SmtpSession;
  readonly log: string[] = [];
  results: readonly RecipientResult[] = [];
  mayDot = true;
  onMayDot = (): void => {};
  /** Bytes still in the process each time mayDot was asked. */
  readonly bufferedAtMayDot: number[] = [];
  readonly #split: boolean;
  readonly #next: TestMail[] = [];

  /** What somebody who follows is told, while it is on. */
  readonly told: string[] = [];
  readonly tap = { isOn: false, said: (_peer: string, _port: number, who: string, text: string): void => { this.told.push(`${who}: ${text}`); } };
  /** What each file of passwords holds. */
  password: PasswordFound = { isFound: true, password: 'secret' };
  /** Which was asked for, each time. */
  readonly passwordFiles: string[] = [];
  /** Texts that deliveries which wait would be told. */
  readonly whys: string[] = [];

  constructor(options: { split?: boolean; protocol?: 'smtp' | 'lmtp'; tls?: NextHopTls; lostTls?: string; auth?: NextHopAuth } = {}) {
    this.#split = options.split ?? false;
    this.session = new SmtpSession(
      { protocol: options.protocol ?? 'smtp', heloName: 'gw.test', relay: 'mx.example.net:25', timeouts: DEFAULT_TIMEOUTS, contentBytesPerSecondMin: 500, tls: options.tls, lostTls: options.lostTls, auth: options.auth },
      {
        buffer: this.buffer,
        copyContent: (delivery, target, at, from, bytes) => { target.set((delivery as TestMail).content.subarray(from, from + bytes), at); },
        mayDot: () => {
          this.bufferedAtMayDot.push(this.connection.bufferedBytes);
          this.onMayDot();
          return this.mayDot;
        },
        secure: (clear, terms) => {
          assert.equal(clear, this.connection);
          this.secured.push(terms);
          this.connection = new ScriptedConnection();
          return this.connection;
        },
        tap: this.tap,
        password: (file) => {
          this.passwordFiles.push(file);
          return this.password;
        },
      },
      this,
      0,
    );
    this.session.attach(this.connection);
  }

  onIdle(): void {
    this.log.push('idle');
    const next = this.#next.shift();
    if (next !== undefined) this.session.begin(next);
  }
  /** The delivery whose envelope goes behind the next dot. */
  behindDot: TestMail | undefined;
  dotsAsked = 0;
  bearsFollowers = true;
  onDot(): Delivery | undefined {
    this.dotsAsked++;
    const next = this.behindDot;
    this.behindDot = undefined;
    return next;
  }
  onSettled(_session: SessionView, _delivery: Delivery, results: readonly RecipientResult[], dotUnanswered: boolean): void {
    this.results = results;
    this.log.push(`settled ${results.map((one) => `${['', 'delivered', 'deferred', 'failed'][one.status] ?? '?'} ${one.code} ${one.enhanced}`).join(', ')}${dotUnanswered ? ' dot-unanswered' : ''}`);
  }
  onStale(_session: SessionView, _delivery: Delivery, isOdd: boolean): void { this.log.push(isOdd ? 'stale, odd' : 'stale'); }
  onSlow(): void { this.log.push('slow'); }
  onTlsWanted(): void { this.log.push('TLS wanted'); }
  onNoRight(_session: SessionView, _delivery: Delivery, why: RecipientResult): void { this.log.push(`no right ${why.enhanced}`); }
  onClosed(_session: SessionView, why: RecipientResult | undefined): void {
    if (why !== undefined) this.whys.push(why.text);
    this.log.push(`closed${why === undefined ? '' : ` ${why.status} ${why.code} ${why.enhanced}`}`);
  }

  /** Deliveries to begin by themselves, one each time the session is idle. */
  queue(delivery: TestMail): this {
    this.#next.push(delivery);
    return this;
  }

  say(...lines: string[]): this {
    const bytes = Buffer.from(lines.map((line) => `${line}\r\n`).join(''), 'latin1');
    if (!this.#split) this.session.onData(bytes);
    else for (let i = 0; i < bytes.length; i++) this.session.onData(bytes.subarray(i, i + 1));
    return this;
  }

  /** Connected and greeted; the peer offers `capabilities`. */
  ready(...capabilities: string[]): this {
    this.session.onOpen();
    this.say('220 mx.example.net ESMTP');
    const all = ['mx.example.net', ...capabilities];
    this.say(...all.map((line, i) => `250${i < all.length - 1 ? '-' : ' '}${line}`));
    this.taken();
    this.takenLog();
    return this;
  }

  begin(delivery: TestMail): this {
    this.session.begin(delivery);
    return this;
  }

  /** What was sent since the last look. */
  taken(): string {
    const text = this.connection.writes.join('');
    this.connection.writes = [];
    return text;
  }

  /** What happened since the last look. */
  takenLog(): string[] {
    return this.log.splice(0);
  }
}
