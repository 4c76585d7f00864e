/**
 * A message that waits for what is found out about its sender, in the session alone: what is checked and what is kept, who is
 * not asked about, in which order with hooks, and that all memory is counted as long as somebody holds it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { JudgedMessage, MessageHooks } from '../../../../../src/gateway/inbound/hooks/message-hook.js';
import type { SenderChecks } from '../../../../../src/gateway/inbound/sender-checks/sender-checks.js';
import type { Verdicts } from '../../../../../src/gateway/inbound/sender-checks/verdicts.js';
import type { InboundOptions } from '../../../../../src/gateway/inbound/options.js';
import { COMMITTED } from '../../../../../src/gateway/mail-types.js';
import type { MemoryReception } from '../../../../dialog/memory-reception.js';
import { openSession, testDesk } from '../../../../inbound/desk.js';
import { MemoryConnection } from '../../../../scenario/memory-connection.js';
import type { ServerSession } from '../../../../../src/gateway/inbound/session/session.js';

const VERDICTS: Verdicts = {
  spf: { result: 'pass', domain: 'x.example', isHelo: false },
  dkim: [{ result: 'none', reason: '', domain: '', selector: '', algorithm: '', start: '' }],
  dmarc: { result: 'pass', reason: '', domain: 'x.example', policy: 'reject' },
};
const FIELD = 'Authentication-Results: mx.test;\r\n\tspf=pass smtp.mailfrom=x.example;\r\n\tdkim=none;\r\n\tdmarc=pass policy.dmarc=reject header.from=x.example\r\n';
const FORGED = 'Authentication-Results: mx.test; dmarc=pass\r\n';
const HEADER = `From: a@x.example\r\n${FORGED}`;
const message = (content: string): string => `MAIL FROM:<a@x.example>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n${content}.\r\n`;

interface AskedCheck {
  readonly client: string;
  readonly content: string;
  readonly done: (verdicts: Verdicts) => void;
}

class CheckKit {
  readonly reception: MemoryReception;
  readonly connection: MemoryConnection;
  readonly rejections: readonly string[];
  readonly asked: AskedCheck[] = [];
  readonly session: ServerSession;

  constructor(address = '198.51.100.7', hooks?: MessageHooks, options: Partial<InboundOptions> = {}) {
    const senderChecks: SenderChecks = {
      check: ({ envelope }, pieces, done) => { this.asked.push({ client: envelope.client, content: Buffer.concat(pieces).toString('latin1'), done }); },
    };
    const { desk, reception, rejections } = testDesk({ offersTls: false, relayDomains: ['example.net'], relayNetworks: ['127.0.0.0/8'], authservId: 'mx.test', ...options }, { senderChecks, hooks });
    this.reception = reception;
    this.rejections = rejections;
    reception.hold = true;
    this.connection = new MemoryConnection(address);
    this.session = openSession(desk, this.connection);
    this.sends('EHLO client.example\r\n');
  }

  /** In one read, whose buffer is used again. */
  sends(text: string): string {
    const read = new Uint8Array(Buffer.from(text, 'latin1'));
    this.session.onData(read);
    read.fill(0x21);
    return this.heard();
  }

  heard(): string {
    const { text } = this.connection;
    this.connection.text = '';
    return text.split('\r\n').filter((line) => line[3] === ' ').join('|');
  }

  answers(verdicts = VERDICTS): string {
    this.asked.at(-1)?.done(verdicts);
    return this.heard();
  }

  settles(): string {
    this.reception.kept.at(-1)?.submission.settle(COMMITTED);
    return this.heard();
  }

  get kept(): string {
    return this.reception.kept.at(-1)?.content.toString('latin1') ?? '';
  }
}

test('a stranger\'s message waits, and is kept below what was found out, with no field that says to be ours', () => {
  const kit = new CheckKit();
  assert.match(kit.sends(message(`${HEADER}\r\nbody\r\n`)), /354[^|]*$/);
  assert.equal(kit.reception.kept.length, 0);
  const [{ client, content }] = kit.asked as [AskedCheck];
  assert.deepEqual([client, content], ['198.51.100.7', `${HEADER}\r\nbody\r\n`], 'checked as it came');
  assert.equal(kit.answers(), '');
  const [, received = ''] = /^([^]*?\r\n)(?=From: )/.exec(kit.kept.slice(FIELD.length)) ?? [];
  assert.match(received, /^Received: from client\.example [^]*\r\n$/);
  assert.equal(kit.kept, `${FIELD}${received}From: a@x.example\r\nX-Original-${FORGED}\r\nbody\r\n`);
  assert.equal(kit.reception.kept.at(-1)?.submission.contentBytes, kit.kept.length);
  assert.match(kit.settles(), /^250 2\.0\.0 Ok: queued/);
  assert.equal(kit.reception.reservedBytes, 0);
});

test('a proxy that does not tell its client is not taken for it', () => {
  const kit = new CheckKit('10.0.0.1', undefined, { xclientNetworks: ['10.0.0.0/8'] });
  assert.match(kit.sends('XCLIENT ADDR=[UNAVAILABLE]\r\n'), /^220 /);
  kit.sends('EHLO client.example\r\n');
  assert.match(kit.sends(message('From: a@x.example\r\n\r\nbody\r\n')), /354[^|]*$/);
  assert.equal(kit.asked.at(-1)?.client, '');
});

test('by BDAT, in pieces, with nothing to rename too', () => {
  const kit = new CheckKit();
  const body = `From: a@x.example\r\n\r\n${'line of a body\r\n'.repeat(300)}`;
  kit.sends('MAIL FROM:<a@x.example>\r\nRCPT TO:<b@example.net>\r\n');
  for (let at = 0; at < body.length; at += 1000) {
    const piece = body.slice(at, at + 1000);
    kit.sends(`BDAT ${String(piece.length)}${at + 1000 >= body.length ? ' LAST' : ''}\r\n`);
    for (let from = 0; from < piece.length; from += 300) kit.sends(piece.slice(from, from + 300));
  }
  assert.equal(kit.asked.at(-1)?.content, body);
  kit.answers();
  assert.ok(kit.kept.startsWith(`${FIELD}Received: `) && kit.kept.endsWith(`\r\n${body}`));
  assert.match(kit.settles(), /^250 /);
  assert.equal(kit.reception.reservedBytes, 0);
});

test('mail of our own is not checked, but bears our name as little; elsewhere nothing is touched', () => {
  const own = new CheckKit('127.0.0.1');
  own.sends(message(`${HEADER}\r\nbody\r\n`));
  assert.equal(own.asked.length, 0);
  assert.match(own.kept, /^Received: /);
  assert.ok(own.kept.endsWith(`\r\nFrom: a@x.example\r\nX-Original-${FORGED}\r\nbody\r\n`));
  const without = new CheckKit('198.51.100.7', undefined, { authservId: '' });
  without.sends(message(`${HEADER}\r\nbody\r\n`));
  assert.equal(without.asked.length, 0);
  assert.ok(without.kept.endsWith(`${HEADER}\r\nbody\r\n`));
});

test('hooks see what is kept: our field, and theirs renamed', () => {
  const seen: JudgedMessage[] = [];
  const hooks: MessageHooks = { judge: (judged, done) => {
    seen.push(judged);
    done(undefined, Buffer.from('X-Hook: y\r\n'));
  } };
  const kit = new CheckKit('198.51.100.7', hooks);
  kit.sends(message(`${HEADER}\r\nbody\r\n`));
  assert.equal(seen.length, 0);
  let content = '';
  const [asked] = kit.asked;
  asked?.done(VERDICTS);
  content = kit.kept;
  assert.equal(seen.length, 1);
  assert.ok(content.startsWith(FIELD));
  assert.ok(content.endsWith(`X-Hook: y\r\nFrom: a@x.example\r\nX-Original-${FORGED}\r\nbody\r\n`));
});

test('a client that leaves while it waits leaves nothing, and one without room is told so', () => {
  const kit = new CheckKit();
  kit.sends(message(`${HEADER}\r\nbody\r\n`));
  kit.session.onClose('reset');
  kit.answers();
  assert.deepEqual([kit.reception.kept.length, kit.reception.reservedBytes], [0, 0]);
  const full = new CheckKit();
  full.sends(message(`${HEADER}\r\nbody\r\n`));
  full.reception.bytesMax = full.reception.reservedBytes;
  assert.match(full.answers(), /^452 /);
  assert.deepEqual([full.reception.kept.length, full.reception.reservedBytes], [0, 0]);
});

test('a header that nobody can look through is refused, on that listener alone', () => {
  const long = `X: ${'y'.repeat(900)}\r\n`.repeat(400);
  const kit = new CheckKit();
  kit.sends(message(`${long}\r\nbody\r\n`));
  assert.equal(kit.answers(), '550 5.6.0 The header of the message is too long');
  assert.equal(kit.rejections.at(-1), 'data header-too-long');
  assert.equal(kit.reception.reservedBytes, 0);
  const without = new CheckKit('198.51.100.7', undefined, { authservId: '' });
  without.sends(message(`${long}\r\nbody\r\n`));
  assert.equal(without.reception.kept.length, 1);
});
