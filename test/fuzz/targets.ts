/**
 * What is fed, and what must hold whatever it is fed:
 *
 *   session, bdat, auth   no exception; what is kept of a message holds no NUL and no CR or LF alone, and was told 250;
 *                         replies are lines of three digits; all memory in transit is given back
 *   proxy                 no exception; the same verdict in one piece and in two
 *   dsn                   no exception; a report is ASCII for an ASCII sender, CRLF only, no line over 998
 */
import assert from 'node:assert/strict';
import { isAscii } from 'node:buffer';

import { Prng } from '../../src/base/prng.js';
import { formatMessageId } from '../../src/base/text-id.js';
import { composeDsn } from '../../src/gateway/bounce/dsn.js';
import type { Authenticator } from '../../src/gateway/inbound/auth/authenticator.js';
import { RecipientParameters } from '../../src/gateway/inbound/commands/parameters.js';
import { INBOUND_DEFAULTS } from '../../src/gateway/inbound/options.js';
import type { InboundOptions } from '../../src/gateway/inbound/options.js';
import { readProxyHeader } from '../../src/gateway/inbound/policy/proxy-header.js';
import { Desk } from '../../src/gateway/inbound/session/desk.js';
import { ServerSession } from '../../src/gateway/inbound/session/session.js';
import { toAscii } from '../../src/platform/node/idna.js';
import { DomainRouter, MemoryReception } from '../dialog/memory-reception.js';
import { authenticatorOf, scramLine } from '../dialog/people.js';
import { MemoryConnection } from '../scenario/memory-connection.js';
import { proxyInput, smtpInput } from './inputs.js';

/** Feeds input number `seed`; throws when something does not hold. */
export type Target = (seed: number) => void;

const WALL_MS = 1_795_229_168_000;
const quiet = (): void => undefined;
const LOG = { debug: quiet, info: quiet, warn: quiet, error: quiet };
const METRICS = { connectionOpened: quiet, connectionClosed: quiet, connectionWaits: quiet, received: quiet, rejected: quiet };

/** A desk that many sessions use, one after the other. */
class Field {
  readonly reception = new MemoryReception();
  readonly #desk: Desk;
  readonly #turns: (() => void)[] = [];
  nowMs = 0;
  /** Messages that were kept: inputs that only err would show nothing. */
  keptCount = 0;

  constructor(options: Partial<InboundOptions>, authenticator?: Authenticator) {
    this.reception.immediate = true;
    this.#desk = new Desk({ ...INBOUND_DEFAULTS, hostName: 'mx.test', offersTls: false, greetingDelayMs: 0, messageBytesMax: 4096, ...options }, {
      reception: this.reception, router: new DomainRouter(), clock: { nowMs: () => this.nowMs, wallMs: () => WALL_MS }, authenticator, toAscii, isAscii,
      recipients: undefined, rates: undefined, blocklists: undefined, hooks: undefined, nextTurn: (run) => { this.#turns.push(run); }, log: LOG,
      mailLog: { wantsMessageId: true, received: quiet, rejected: quiet }, metrics: METRICS,
    });
  }

  /** A session from its first byte to its last, in pieces. */
  play(input: Uint8Array, random: Prng, secure: boolean): void {
    const later: (() => void)[] = [];
    const connection = new MemoryConnection('127.0.0.1', (run) => { later.push(run); });
    const session = new ServerSession(this.#desk, connection);
    connection.attach(session);
    session.onOpen();
    if (secure) connection.secured();
    for (let at = 0; at < input.length && !connection.isOver;) {
      const to = Math.min(input.length, at + 1 + random.below(random.below(3) === 0 ? 3 : 400));
      session.onData(input.slice(at, to));
      for (const run of this.#turns.splice(0)) run();
      at = to;
    }
    if (!connection.isOver) session.onEnd();
    for (const run of this.#turns.splice(0)) run();
    if (!connection.isOver) connection.destroy();
    for (const run of later.splice(0)) run();
    this.#judge(connection.text);
  }

  #judge(said: string): void {
    for (const line of said.split('\r\n')) assert.ok(line === '' || /^\d{3}[ -]/.test(line), `a reply line: ${JSON.stringify(line)}`);
    for (const { submission, content } of this.reception.kept) {
      const text = content.toString('latin1');
      assert.ok(!/\0|\r(?!\n)|(?<!\r)\n/.test(text), 'NUL, or CR or LF alone, in what was kept');
      assert.ok(said.includes(`queued as ${formatMessageId(submission.messageId)}`), 'kept, and not told');
    }
    this.keptCount += this.reception.kept.length;
    this.reception.kept.length = 0;
    assert.equal(this.reception.reservedBytes, 0, 'memory in transit');
  }
}

const sessions = new Field({});
const submission = new Field({ isSubmission: true, offersTls: true, isTlsFirst: true }, authenticatorOf([await scramLine('a@b.example', 'b')]));
const RESPONSES = ['AUTH PLAIN AGFAYi5leGFtcGxlAGI=\r\n', 'AUTH SCRAM-SHA-256 biwsbj1hQGIuZXhhbXBsZSxyPW5vbmNl\r\n', 'AUTH LOGIN\r\n', 'AUTH PLAIN\r\n', 'biws\r\n', 'Yz1iaXdzLHI9bm9uY2UscD0=\r\n'];

/** Messages that sessions kept so far. */
export function keptCount(): number {
  return sessions.keptCount + submission.keptCount;
}

export const TARGETS: Readonly<Record<string, Target>> = {
  session: (seed) => {
    const random = new Prng(seed);
    sessions.play(smtpInput(random), random, false);
  },
  bdat: (seed) => {
    const random = new Prng(seed);
    let text = 'EHLO a\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n';
    for (let count = 1 + random.below(5); count > 0; count--) {
      const octets = random.below(60);
      text += `BDAT ${String(octets)}${random.below(3) === 0 ? ' LAST' : ''}\r\n${'x: y\r\n\r\n.\r\n'.repeat(9).slice(0, Math.max(0, octets - 2 + random.below(5)))}`;
    }
    sessions.play(Buffer.concat([Buffer.from(text, 'latin1'), smtpInput(random)]), random, false);
  },
  auth: (seed) => {
    const random = new Prng(seed);
    let text = 'EHLO a\r\n';
    for (let count = random.below(5); count > 0; count--) text += random.pick(RESPONSES);
    submission.play(Buffer.concat([Buffer.from(text, 'latin1'), smtpInput(random)]), random, true);
  },
  proxy: (seed) => {
    const random = new Prng(seed);
    const input = proxyInput(random);
    const whole = readProxyHeader(input);
    const part = readProxyHeader(input.subarray(0, random.below(input.length + 1)));
    if (typeof part === 'object') assert.deepEqual(whole, part);
    if (typeof whole === 'object') assert.ok(whole.octets <= input.length);
  },
  dsn: (seed) => {
    const random = new Prng(seed);
    const noise = (max: number): string => Buffer.from(smtpInput(random).subarray(0, random.below(max))).toString(random.below(2) === 0 ? 'latin1' : 'utf8');
    const parameters = new RecipientParameters();
    parameters.parse(` NOTIFY=${random.pick(['NEVER', 'SUCCESS,DELAY', 'x'])} ORCPT=${noise(60)}`, 0);
    const reversePath = random.below(2) === 0 ? 'a@b.example' : 'ä@b.example';
    const recipient = { address: noise(80), notify: parameters.notify, orcpt: random.below(2) === 0 ? parameters.orcpt : noise(80) };
    const report = composeDsn({
      kind: random.pick(['failure', 'success', 'delay']), reportingMta: 'mx.test', dsnId: '0000000000B', queueId: '0000000000A', dateWallMs: WALL_MS,
      envelope: { messageId: 1, queueClass: 'mail', queueName: 'q', reversePath, recipients: [recipient], flags: 0, ret: random.below(3), envid: noise(60), arrivalWallMs: WALL_MS, expiryWallMs: WALL_MS, client: '', helo: '' },
      recipients: [{ recipient, action: 'failed', code: random.pick([0, 450, 550]), enhanced: random.pick(['5.1.1', '4.4.7', noise(9)]), text: noise(600), remoteMta: noise(40), lastAttemptWallMs: WALL_MS }],
      content: Buffer.from(noise(500).replace(/\r?\n|\r/g, '\r\n'), 'utf8'),
    });
    const text = Buffer.from(report).toString('latin1');
    assert.ok(!/\r(?!\n)|(?<!\r)\n/.test(text), 'CRLF only');
    assert.ok(text.split('\r\n').every((line) => line.length <= 998), 'no line over 998');
    if (reversePath === 'a@b.example') assert.ok(isAscii(report), 'ASCII for an ASCII sender');
  },
};
