/**
 * A message that waits for its signature, in the session alone: whose is signed, what the client hears, what is submitted,
 * and that all memory is counted as long as somebody holds it. The signer itself: ../dkim/node/dkim-signer.test.ts.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { MessageSigner } from '../../../../src/gateway/dkim/message-signer.js';
import type { JudgedMessage, MessageHooks } from '../../../../src/gateway/inbound/hooks/message-hook.js';
import type { Authenticator } from '../../../../src/gateway/inbound/auth/authenticator.js';
import { authenticatorOf, scramLine, verifiersOf } from '../../../dialog/people.js';
import type { InboundOptions } from '../../../../src/gateway/inbound/options.js';
import * as replies from '../../../../src/gateway/inbound/session/replies.js';
import type { ServerSession } from '../../../../src/gateway/inbound/session/session.js';
import { COMMITTED, NO_MEMORY } from '../../../../src/gateway/mail-types.js';
import type { MemoryReception } from '../../../dialog/memory-reception.js';
import { openSession, testDesk } from '../../../inbound/desk.js';
import { MemoryConnection } from '../../../scenario/memory-connection.js';

const ENVELOPE = 'MAIL FROM:<a@x.example>\r\nRCPT TO:<b@example.net>\r\n';
const MESSAGE = `${ENVELOPE}DATA\r\nFrom: a@x.example\r\n\r\nbody\r\n.\r\n`;
const SIGNATURE = 'DKIM-Signature: v=1; b=x\r\n';
const NOTHING = new Uint8Array(0);

interface Asked {
  readonly message: JudgedMessage;
  readonly mayUse: (address: string) => boolean;
  readonly done: Parameters<MessageSigner['sign']>[2];
}

class SignKit {
  readonly reception: MemoryReception;
  readonly connection: MemoryConnection;
  readonly rejections: readonly string[];
  readonly asked: Asked[] = [];
  readonly session: ServerSession;
  /** Signs at once. */
  always = false;

  constructor(options: Partial<InboundOptions> = {}, hooks?: MessageHooks, address = '127.0.0.1', authenticator?: Authenticator) {
    const signer: MessageSigner = {
      isOn: true,
      sign: (message, mayUse, done) => {
        this.asked.push({ message, mayUse, done });
        if (this.always) done(undefined, Buffer.from(SIGNATURE));
      },
    };
    const { desk, reception, rejections } = testDesk({ offersTls: false, relayDomains: ['example.net'], ...options }, { signer, hooks, authenticator });
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

  says(...answer: Parameters<Asked['done']>): string {
    this.asked.at(-1)?.done(...answer);
    return this.heard();
  }

  settles(outcome: typeof COMMITTED | typeof NO_MEMORY): string {
    this.reception.kept.at(-1)?.submission.settle(outcome);
    return this.heard();
  }

  get kept(): string {
    return this.reception.kept.at(-1)?.content.toString('latin1') ?? '';
  }
}

function textOf(message: JudgedMessage | undefined): string {
  return Buffer.concat(message?.content ?? []).toString('latin1');
}

test('is submitted with its signature above our own field, and the bytes of the client as they were', () => {
  const kit = new SignKit();
  assert.match(kit.sends(MESSAGE), /\|354 [^|]*$/);
  assert.equal(kit.reception.kept.length, 0);
  assert.match(textOf(kit.asked[0]?.message), /^Received: from client\.example [^]*\+0000\r\nFrom: a@x\.example\r\n\r\nbody\r\n$/);
  assert.equal(kit.asked[0]?.mayUse('anybody@y.example'), true, 'a client of the relay networks');
  assert.equal(kit.says(undefined, Buffer.from(SIGNATURE)), '');
  assert.match(kit.kept, /^DKIM-Signature: v=1; b=x\r\nReceived: [^]*\+0000\r\nFrom: a@x\.example\r\n\r\nbody\r\n$/);
  assert.equal(kit.kept.length, kit.reception.kept[0]?.submission.contentBytes);
  assert.match(kit.settles(COMMITTED), /^250 2\.0\.0 Ok: queued as /);
  assert.equal(kit.reception.reservedBytes, 0);
});

test('comes by DATA and by BDAT, in many reads, and may go unsigned', () => {
  const kit = new SignKit();
  for (const octet of ENVELOPE + 'DATA\r\nFrom: a@x.example\r\n\r\n..b\r\n.\r\n') kit.sends(octet);
  assert.match(textOf(kit.asked[0]?.message), /\+0000\r\nFrom: a@x\.example\r\n\r\n\.b\r\n$/);
  kit.says(undefined, NOTHING);
  assert.match(kit.kept, /^Received: [^]*\r\nFrom: a@x\.example\r\n\r\n\.b\r\n$/);
  kit.settles(COMMITTED);
  kit.sends(`${ENVELOPE}BDAT 6\r\nFrom: `);
  assert.equal(kit.asked.length, 1);
  kit.sends('BDAT 13 LAST\r\na@x.example\r\n');
  assert.match(textOf(kit.asked[1]?.message), /\+0000\r\nFrom: a@x\.example\r\n$/);
  kit.says(undefined, Buffer.from(SIGNATURE));
  assert.match(kit.kept, /^DKIM-Signature: [^]*\r\nFrom: a@x\.example\r\n$/);
  kit.settles(COMMITTED);
  assert.equal(kit.reception.reservedBytes, 0);
});

test('of a stranger is not looked at', () => {
  for (const hooks of [undefined, { judge: (_message, done) => { done(undefined, NOTHING); } } satisfies MessageHooks]) {
    const kit = new SignKit({ relayNetworks: ['192.0.2.0/24'] }, hooks, '198.51.100.7');
    assert.match(kit.sends(MESSAGE), /\|354 /);
    assert.match(kit.kept, /^Received: /);
    assert.equal(kit.asked.length, 0);
  }
});

test('is signed last, over what hooks put in front, and only when they accept', () => {
  const waiting: Parameters<MessageHooks['judge']>[1][] = [];
  const kit = new SignKit({}, { judge: (_message, done) => void waiting.push(done) });
  kit.sends(MESSAGE);
  assert.equal(kit.asked.length, 0);
  waiting.shift()?.(undefined, Buffer.from('X-Hook: 1\r\n'));
  assert.match(textOf(kit.asked[0]?.message), /\+0000\r\nX-Hook: 1\r\nFrom: a@x\.example\r\n/);
  kit.says(undefined, Buffer.from(SIGNATURE));
  assert.match(kit.kept, /^DKIM-Signature: v=1; b=x\r\nReceived: [^]*\+0000\r\nX-Hook: 1\r\nFrom: a@x\.example\r\n/);
  kit.settles(COMMITTED);
  kit.sends(MESSAGE);
  waiting.shift()?.(replies.refusedByHook('no'), NOTHING);
  assert.deepEqual([kit.heard(), kit.asked.length, kit.reception.reservedBytes], ['550 5.7.1 no', 1, 0]);
});

test('is told to come later when it can not be signed, and the log has why', () => {
  const kit = new SignKit();
  for (const [refusal, reply, reason] of [
    [replies.SIGNING_FAILED, '451 4.7.0 The message can not be signed now; try again later', 'data signing-failed'],
    [replies.SIGNING_BUSY, '451 4.3.2 Too many messages wait to be signed; try again later', 'data signing-busy'],
  ] as const) {
    kit.sends(MESSAGE);
    assert.equal(kit.says(refusal, NOTHING), reply);
    assert.deepEqual([kit.rejections.at(-1), kit.reception.kept.length, kit.reception.reservedBytes], [reason, 0, 0]);
  }
  kit.sends(`${MESSAGE}NOOP\r\n`);
  assert.equal(kit.says(replies.SIGNING_BUSY, NOTHING), '451 4.3.2 Too many messages wait to be signed; try again later|250 2.0.0 Ok');
});

test('of a client that has gone is dropped, and stays counted until the signer lets it go', () => {
  for (const refusal of [undefined, replies.SIGNING_BUSY]) {
    const kit = new SignKit();
    kit.sends(MESSAGE);
    const held = kit.asked[0]?.message;
    kit.session.onClose('reset by the peer');
    assert.equal(held?.isAbandoned, true);
    assert.ok(kit.reception.reservedBytes > 0);
    assert.match(textOf(held), /body/);
    kit.says(refusal, Buffer.from(SIGNATURE));
    assert.deepEqual([kit.reception.kept.length, kit.reception.reservedBytes, textOf(held)], [0, 0, '']);
  }
});

test('without memory for its signature is told so, and one that is signed at once is taken within the read', () => {
  const kit = new SignKit();
  kit.sends(MESSAGE);
  kit.reception.bytesMax = kit.reception.reservedBytes + 10;
  assert.equal(kit.says(undefined, Buffer.from(SIGNATURE)), '452 4.3.1 Out of memory; try again later');
  assert.equal(kit.reception.reservedBytes, 0);
  kit.reception.bytesMax = Infinity;
  kit.always = true;
  kit.reception.hold = false;
  kit.reception.immediate = true;
  kit.reception.outcomes.push(COMMITTED, NO_MEMORY);
  assert.match(kit.sends(MESSAGE + MESSAGE), /\|250 2\.0\.0 Ok: queued as \S+\|250 [^|]*\|250 [^|]*\|354 [^|]*\|452 4\.3\.1 [^|]*$/);
  assert.equal(kit.reception.reservedBytes, 0);
});

test('who has shown to be a user may use keys of his own addresses alone, on a trusted network too', async () => {
  const authenticator = authenticatorOf([await scramLine('anna', 'x', 'a@x.example')]);
  const kit = new SignKit({}, undefined, '127.0.0.1', authenticator);
  kit.session.user = 'anna';
  kit.session.account = authenticator.find('anna');
  kit.sends(MESSAGE);
  const [{ mayUse } = assert.fail('nothing is signed')] = kit.asked;
  assert.deepEqual(['a@x.example', 'boss@b.example'].map(mayUse), [true, false]);
});

test('whose account ends while his message comes is signed for by what he had at MAIL; the next one he does not send', async () => {
  const people = verifiersOf([await scramLine('anna', 'x', 'a@x.example')]);
  const authenticator = authenticatorOf(people);
  const kit = new SignKit({}, undefined, '127.0.0.1', authenticator);
  kit.session.user = 'anna';
  kit.session.account = authenticator.find('anna');
  kit.sends(`${ENVELOPE}DATA\r\nFrom: a@x.example\r\n\r\n`);
  people.users = verifiersOf([await scramLine('carl', 'x', 'c@x.example')]).users;
  kit.sends('body\r\n.\r\n');
  assert.deepEqual(['a@x.example', 'boss@b.example'].map((address) => kit.asked.at(-1)?.mayUse(address)), [true, false]);
  kit.says(undefined, NOTHING);
  kit.settles(COMMITTED);
  assert.match(kit.sends('MAIL FROM:<a@x.example>\r\n'), /^451 4\.7\.0 /);
});
