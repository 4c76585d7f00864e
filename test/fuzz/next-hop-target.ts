/**
 * A next hop in somebody else's hands, that answers a client session as it should, mostly; then with odd codes, more
 * or less than was asked for, changed, in pieces, late, or not at all. What must hold:
 *
 *   each delivery that is begun       ends once: settled, given back, or without its right; never after its session
 *   a result of it                    has a code of three digits or none, an enhanced one of its class, one line of
 *                                     printable ASCII that is bounded
 *   who is delivered                  had the whole content sent, by the right to its dot
 *   a session                         is closed once, last, and holds no connection then
 */
import { NO_TAP } from '../../src/smtp/session-tap.js';
import assert from 'node:assert/strict';
import { DEFAULT_TIMEOUTS, State } from '../../src/gateway/outbound/pure/session-states.js';
import type { SessionEvents, SessionView } from '../../src/gateway/outbound/pure/session-ports.js';
import { SmtpSession } from '../../src/gateway/outbound/pure/smtp-session.js';
import { DEFERRED, DELIVERED, FAILED } from '../../src/gateway/mail-types.js';
import type { Delivery, NextHopTls, RecipientResult } from '../../src/gateway/mail-types.js';
import type { Prng } from '../../src/base/prng.js';
import { WriteBuffer } from '../../src/smtp/write-buffer.js';
import { mail, ScriptedConnection } from '../unit/gateway/outbound/pure/session-world.js';
import type { TestMail } from '../unit/gateway/outbound/pure/session-world.js';
import { piecesOf, tally } from './field.js';
import { changed } from './inputs.js';

const STEPS_MAX = 60;
const TEXT_MAX = 700;
const CLASS_OF = { [DELIVERED]: '2', [DEFERRED]: '4', [FAILED]: '5' } as const;
const ODD = [
  '250-no end', '250 ', '25', '', '999 9.9.9 what', '000 zero', '354 more', '334 VXNlcm5hbWU6', '421 4.3.2 goes', '451 4.7.1 later', '452 4.5.3 many', '550 5.1.1 who',
  '503 5.5.1 odd', '552 5.2.2 full', '250 5.1.1 liar', '550 2.0.0 liar', '220 again', '250 \u0000\u001b[2J', `250 ${'x'.repeat(2100)}`, '550-5.1.1 a\r\n550 5.1.1 b', '250-a\r\n550 b', ' 250 space', '250\r', 'EHLO back',
] as const;
const CAPABILITIES = ['PIPELINING', 'SIZE 100', 'SIZE 0', 'SIZE x', '8BITMIME', 'SMTPUTF8', 'DSN', 'STARTTLS', 'AUTH PLAIN LOGIN', 'AUTH=LOGIN', 'REQUIRETLS', 'ENHANCEDSTATUSCODES', 'LIMITS RCPTMAX=1', `X-${'y'.repeat(300)}`] as const;
const BUFFER = new WriteBuffer();

export function nextHopInput(random: Prng): void {
  new Play(random).run();
}

class Play implements SessionEvents {
  readonly bearsFollowers: boolean;
  readonly #random: Prng;
  readonly #session: SmtpSession;
  #connection = new ScriptedConnection();
  /** Those that have not ended. */
  readonly #open = new Set<Delivery>();
  #isClosed = false;
  #isIdle = false;
  #mayDot = true;
  #nowMs = 0;
  #begun = 0;
  /** All that was sent in clear or within TLS. */
  #sent = '';

  constructor(random: Prng) {
    this.#random = random;
    this.bearsFollowers = random.below(2) === 0;
    const level = random.pick(['none', 'may', 'encrypt'] as const);
    const terms = { serverName: 'mx.example.net', mustVerify: false, caFile: undefined };
    const isFirst = level === 'encrypt' && random.below(4) === 0;
    const tls: NextHopTls | undefined = level === 'none' ? undefined : { level, isFirst, terms, isRequired: random.below(4) === 0 };
    const lostTls = level === 'none' && random.below(2) === 0 ? 'ECONNRESET' : undefined;
    const auth = random.below(4) === 0 ? { user: 'u', passwordFile: 'f' } : undefined;
    this.#session = new SmtpSession(
      { protocol: random.below(4) === 0 ? 'lmtp' : 'smtp', heloName: 'gw.test', relay: 'mx.example.net:25', timeouts: DEFAULT_TIMEOUTS, contentBytesPerSecondMin: 500, tls, lostTls, auth },
      {
        buffer: BUFFER,
        copyContent: (delivery, target, at, from, bytes) => { target.set((delivery as TestMail).content.subarray(from, from + bytes), at); },
        mayDot: () => this.#mayDot,
        secure: () => {
          this.#take();
          this.#connection = new ScriptedConnection();
          return this.#connection;
        },
        tap: NO_TAP,
        password: () => (random.below(9) === 0 ? { isFound: false, why: 'none' } : { isFound: true, password: 'secret' }),
      },
      this, 0,
    );
    this.#session.attach(this.#connection);
  }

  run(): void {
    const random = this.#random;
    if (random.below(20) !== 0) this.#session.onOpen();
    for (let step = 0; step < STEPS_MAX && !this.#isClosed; step++) {
      if (this.#isIdle && random.below(8) !== 0) this.#begin();
      this.#mayDot = random.below(12) !== 0;
      const what = random.below(24);
      if (what === 0) this.#pass(random.pick([1, 500, 6000, 400_000]));
      else if (what === 1) this.#session.onDrain();
      else if (what === 2 && random.below(3) === 0) this.#session.onClose('ECONNRESET');
      else if (this.#session.state === State.SECURING) this.#secured();
      else this.#hear(this.#said());
      this.#take();
    }
    if (!this.#isClosed) this.#session.abandon('the end');
    assert.ok(this.#isClosed, 'it is closed');
    assert.equal(this.#open.size, 0, 'deliveries that never ended');
  }

  #hear(said: Uint8Array): void {
    for (const piece of piecesOf(said, this.#random)) if (!this.#isClosed) this.#session.onData(piece);
  }

  #secured(): void {
    if (this.#random.below(6) === 0) return this.#session.onClose('TLS: wrong version');
    this.#connection.security = { version: 'TLSv1.3', cipher: 'X', isVerified: false };
    this.#session.onOpen();
  }

  #pass(ms: number): void {
    this.#nowMs += ms;
    this.#connection.bufferedBytes = 0;
    this.#session.tick(this.#nowMs);
  }

  #begin(): void {
    this.#isIdle = false;
    this.#session.begin(this.#mail());
  }

  #mail(): TestMail {
    this.#begun += 1;
    const count = 1 + this.#random.below(3);
    const addresses = Array.from({ length: count }, (_none, index) => `u${String(index)}@example.net`);
    const delivery = mail(addresses, `Subject: ${String(this.#begun)}\r\n\r\n${'.dot\r\n'.repeat(this.#random.below(4))}end ${String(this.#begun)}\r\n`, { messageId: this.#begun });
    this.#open.add(delivery);
    return delivery;
  }

  /** What should come now, mostly. */
  #said(): Uint8Array {
    const random = this.#random;
    let text = '';
    for (let count = random.below(12) === 0 ? 1 + random.below(4) : 1; count > 0; count--) {
      text += `${random.below(14) === 0 ? random.pick(ODD) : this.#right()}${random.below(60) === 0 ? '\n' : '\r\n'}`;
    }
    return random.below(40) === 0 ? changed(Buffer.from(text, 'latin1'), random) : Buffer.from(text, 'latin1');
  }

  #right(): string {
    const random = this.#random;
    switch (this.#session.state) {
      case State.GREETING: return '220 mx.example.net ESMTP';
      case State.HELLO: case State.HELO_ONLY: {
        const lines = ['mx.example.net', ...CAPABILITIES.filter(() => random.below(2) === 0)];
        return lines.map((line, index) => `250${index < lines.length - 1 ? '-' : ' '}${line}`).join('\r\n');
      }
      case State.STARTTLS: return '220 2.0.0 go ahead';
      case State.AUTH: return random.pick(['235 2.7.0 ok', '334 VXNlcm5hbWU6', '535 5.7.8 no']);
      case State.DATA: return '354 go';
      case State.QUITTING: return '221 2.0.0 bye';
      default: return random.below(5) === 0 ? random.pick(['451 4.3.0 not now', '550 5.1.1 nobody']) : '250 2.0.0 ok';
    }
  }

  #take(): void {
    this.#sent += this.#connection.writes.join('');
    this.#connection.writes = [];
  }

  #end(delivery: Delivery): void {
    assert.ok(this.#open.delete(delivery), 'a delivery ended that was not under way');
    assert.ok(!this.#isClosed, 'after its session');
  }

  onIdle(): void {
    this.#isIdle = true;
  }

  onDot(): Delivery | undefined {
    return this.#random.below(2) === 0 ? this.#mail() : undefined;
  }

  onSettled(_session: SessionView, delivery: Delivery, results: readonly RecipientResult[]): void {
    this.#end(delivery);
    assert.equal(results.length, delivery.pending.length, 'a result each');
    for (const { status, code, enhanced, text } of results) {
      assert.ok(code === 0 || (code >= 200 && code <= 599), String(code));
      assert.match(enhanced, /^[245]\.\d{1,3}\.\d{1,3}$/);
      assert.equal(enhanced[0], CLASS_OF[status], `${enhanced} of ${String(status)}`);
      assert.ok(text.length <= TEXT_MAX && !/[^\x20-\x7e]/.test(text), JSON.stringify(text));
      tally(['', 'delivered', 'deferred', 'failed'][status] ?? '');
    }
    if (results.every(({ status }) => status !== DELIVERED)) return;
    this.#take();
    assert.ok(this.#sent.includes(`\r\nend ${String(delivery.envelope.messageId)}\r\n.\r\n`), 'delivered, and never sent');
  }

  onSlow(): void { /* told before the end, which is judged */ }
  onStale(_session: SessionView, delivery: Delivery): void {
    this.#end(delivery);
    tally('given back');
  }

  onTlsWanted(): void { assert.ok(!this.#isClosed); }
  onNoRight(_session: SessionView, delivery: Delivery): void {
    this.#end(delivery);
    tally('without right');
  }

  onClosed(): void {
    assert.ok(!this.#isClosed, 'closed twice');
    this.#isClosed = true;
  }
}
