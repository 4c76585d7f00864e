/**
 * A message that waits for its hooks, in the session alone: what the client hears, what is submitted, and that all memory
 * is counted as long as somebody holds it. And the chain itself: order, failures, fields that can't be put in front.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { HookChain } from '../../../../../src/gateway/inbound/hooks/hook-chain.js';
import type { ChainedHook } from '../../../../../src/gateway/inbound/hooks/hook-chain.js';
import type { HookAnswer, JudgedMessage, MessageHook } from '../../../../../src/gateway/inbound/hooks/message-hook.js';
import { moduleAnswer } from '../../../../../src/gateway/inbound/hooks/module-answer.js';
import type { HeaderField } from '../../../../../src/gateway/inbound/hooks/prefix-fields.js';
import type { InboundOptions } from '../../../../../src/gateway/inbound/options.js';
import type { Desk } from '../../../../../src/gateway/inbound/session/desk.js';
import type { ServerSession } from '../../../../../src/gateway/inbound/session/session.js';
import { COMMITTED, ENVELOPE_8BIT, NO_MEMORY } from '../../../../../src/gateway/mail-types.js';
import type { MemoryReception } from '../../../../dialog/memory-reception.js';
import { NO_LOG, WALL_MS, openSession, testDesk } from '../../../../inbound/desk.js';
import type { RefusalRecord } from '../../../../inbound/desk.js';
import { MemoryConnection } from '../../../../scenario/memory-connection.js';

const ENVELOPE = 'MAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\n';
const CONTENT = 'Subject: x\r\n\r\nb\u00f6dy\r\n..dot\r\n';
const MESSAGE = `${ENVELOPE}DATA\r\n${CONTENT}.\r\n`;

interface Asked {
  readonly message: JudgedMessage;
  readonly done: (answer: HookAnswer) => void;
}

/** A hook that the test answers for. */
class HeldHook implements MessageHook {
  readonly name: string;
  readonly asked: Asked[] = [];
  /** Answers at once. */
  always: HookAnswer | undefined;

  constructor(name = 'held') {
    this.name = name;
  }

  ask(message: JudgedMessage, done: (answer: HookAnswer) => void): void {
    this.asked.push({ message, done });
    if (this.always !== undefined) done(this.always);
  }

  close(): void {
    this.asked.length = 0;
  }

  answer(answer: HookAnswer): void {
    this.asked.at(-1)?.done(answer);
  }
}

function textOf(message: JudgedMessage | undefined): string {
  return Buffer.concat(message?.content ?? []).toString('latin1');
}

function isGone(message: JudgedMessage): boolean {
  return message.isAbandoned;
}

const ACCEPT: HookAnswer = { action: 'accept', fields: [] };

class Kit {
  readonly reception: MemoryReception;
  readonly connection = new MemoryConnection();
  readonly rejections: readonly string[];
  readonly refused: readonly RefusalRecord[];
  readonly told: string[] = [];
  readonly counted: string[] = [];
  readonly hook = new HeldHook();
  readonly chain: HookChain;
  readonly desk: Desk;
  readonly session: ServerSession;
  nowMs = 0;

  constructor(hooks?: readonly ChainedHook[], options: Partial<InboundOptions> = {}) {
    const clock = { nowMs: () => this.nowMs, wallMs: () => WALL_MS + this.nowMs };
    const note = (_event: string, text: string): void => void this.told.push(text);
    const log = { ...NO_LOG, info: note, warn: note, error: note };
    const chain = new HookChain(hooks ?? [{ hook: this.hook, onFailure: 'defer' }], {
      clock, log, metrics: { hookAnswered: (hook, answer) => void this.counted.push(`${hook} ${answer}`) },
    });
    this.chain = chain;
    const { desk, reception, rejections, refused } = testDesk({ offersTls: false, ...options }, { clock, hooks: chain, log });
    this.desk = desk;
    this.reception = reception;
    this.rejections = rejections;
    this.refused = refused;
    reception.hold = true;
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

  says(answer: HookAnswer): string {
    this.hook.answer(answer);
    return this.heard();
  }

  settles(outcome: typeof COMMITTED | typeof NO_MEMORY): string {
    this.reception.kept.at(-1)?.submission.settle(outcome);
    return this.heard();
  }

  /** Of the last message kept. */
  get kept(): string {
    return this.reception.kept.at(-1)?.content.toString('latin1') ?? '';
  }
}

describe('a message with hooks', () => {
  test('is submitted when they accept, with their fields behind our own and the bytes of the client as they were', () => {
    const kit = new Kit();
    assert.match(kit.sends(MESSAGE), /\|354 [^|]*$/);
    assert.equal(kit.reception.kept.length, 0);
    const [asked] = kit.hook.asked;
    assert.ok(asked !== undefined);
    assert.match(textOf(asked.message), /^Received: from client\.example [^]*\+0000\r\nSubject: x\r\n\r\nb\u00f6dy\r\n\.dot\r\n$/);
    assert.equal(asked.message.contentBytes, textOf(asked.message).length);
    const { queueId, client, helo, user, tlsVersion, reversePath, recipients } = asked.message.envelope;
    assert.deepEqual([client, helo, user, tlsVersion, reversePath, recipients], ['127.0.0.1', 'client.example', '', '', 'a@example.org', ['b@example.net']]);
    assert.equal(kit.says({ action: 'accept', fields: [{ name: 'X-One', value: '1' }, { name: 'X-Two', value: 'folded\n\there' }] }), '');
    assert.match(kit.kept, /^Received: [^]*\+0000\r\nX-One: 1\r\nX-Two: folded\r\n\there\r\nSubject: x\r\n\r\nb\u00f6dy\r\n\.dot\r\n$/);
    assert.equal(kit.kept.length, kit.reception.kept[0]?.submission.contentBytes);
    assert.equal((kit.reception.kept[0]?.submission.flags ?? 0) & ENVELOPE_8BIT, ENVELOPE_8BIT);
    assert.equal(kit.settles(COMMITTED), `250 2.0.0 Ok: queued as ${queueId}`);
    assert.equal(kit.reception.reservedBytes, 0);
  });

  test('by BDAT is judged after its last chunk only', () => {
    const kit = new Kit();
    kit.sends(`${ENVELOPE}BDAT 9\r\nSubject: `);
    assert.equal(kit.hook.asked.length, 0);
    kit.sends('BDAT 7 LAST\r\nx\r\n\r\nyz');
    assert.match(textOf(kit.hook.asked[0]?.message), /\+0000\r\nSubject: x\r\n\r\nyz\r\n$/);
    kit.says(ACCEPT);
    assert.match(kit.settles(COMMITTED), /^250 2\.0\.0 Ok: queued/);
    kit.sends(`${ENVELOPE}BDAT 4 LAST\r\nspam`);
    assert.equal(kit.says({ action: 'refuse', text: 'no' }), '550 5.7.1 no');
    assert.match(kit.sends('MAIL FROM:<a@example.org>\r\n'), /^250 /);
    kit.session.onClose('reset');
    assert.equal(kit.reception.reservedBytes, 0);
  });

  test('is refused or deferred in words that are made safe', () => {
    const kit = new Kit();
    for (const [answer, reply, reason] of [
      [{ action: 'refuse', text: 'no\r\n250 Ok\u0007 \u00fc' }, '550 5.7.1 no 250 Ok? ?', 'data hook'],
      [{ action: 'refuse', text: '' }, '550 5.7.1 Message refused', 'data hook'],
      [{ action: 'refuse', text: 'x'.repeat(5000) }, `550 5.7.1 ${'x'.repeat(200)}`, 'data hook'],
      [{ action: 'defer', text: 'later' }, '451 4.7.1 later', 'data hook-later'],
      [{ action: 'busy' }, '451 4.7.1 Too many messages wait to be checked; try again later', 'data hook-busy'],
      [{ action: 'failed', why: 'gone' }, '451 4.7.1 The message can not be checked now; try again later', 'data hook-failed'],
    ] as const) {
      kit.sends(MESSAGE);
      assert.equal(kit.says(answer), reply);
      assert.equal(kit.rejections.at(-1), reason);
      assert.equal(kit.refused.at(-1)?.hook, 'held', 'the log names the hook');
      assert.equal(kit.refused.at(-1)?.to, 'b@example.net', 'and the recipient');
      assert.equal(kit.reception.reservedBytes, 0);
    }
    assert.equal(kit.reception.kept.length, 0);
  });

  test('holds what is pipelined behind it, in order', () => {
    const kit = new Kit();
    assert.match(kit.sends(`${MESSAGE}NOOP\r\n${MESSAGE}QUIT\r\n`), /354 [^|]*$/);
    assert.equal(kit.hook.asked.length, 1);
    assert.match(kit.says({ action: 'refuse', text: 'first' }), /^550 5\.7\.1 first\|250 2\.0\.0 Ok\|250 [^|]*\|250 [^|]*\|354 [^|]*$/);
    assert.equal(kit.hook.asked.length, 2);
    assert.equal(kit.says(ACCEPT), '');
    assert.match(kit.settles(COMMITTED), /^250 2\.0\.0 Ok: queued as \S+\|221 /);
    assert.equal(kit.reception.reservedBytes, 0);
  });

  test('is told with the client that a proxy named', () => {
    const kit = new Kit(undefined, { xclientNetworks: ['127.0.0.1/32'], relayNetworks: ['192.0.2.0/24'] });
    assert.match(kit.sends('XCLIENT ADDR=192.0.2.9 HELO=real.example\r\n'), /^220 /);
    kit.sends('EHLO real.example\r\n');
    assert.match(kit.sends(MESSAGE), /354 [^|]*$/);
    const [asked] = kit.hook.asked;
    assert.deepEqual([asked?.message.envelope.client, asked?.message.envelope.helo], ['192.0.2.9', 'real.example']);
  });

  test('keeps its own prefix while messages of others come', () => {
    const kit = new Kit();
    kit.sends(MESSAGE);
    const other = new MemoryConnection('127.0.0.2');
    const session = openSession(kit.desk, other);
    for (const text of ['EHLO a.much.longer.name.example\r\n', MESSAGE]) session.onData(Buffer.from(text, 'latin1'));
    const [first, second] = kit.hook.asked;
    assert.ok(first !== undefined && second !== undefined);
    assert.match(textOf(second.message), /^Received: from a\.much\.longer\.name\.example /);
    assert.equal(second.message.envelope.client, '127.0.0.2');
    first.done(ACCEPT);
    assert.match(kit.kept, /^Received: from client\.example \(\[127\.0\.0\.1\]\)\r\n\tby mx\.test [^]*\+0000\r\nSubject: x\r\n/);
    second.done(ACCEPT);
    assert.match(kit.kept, /^Received: from a\.much\.longer\.name\.example [^]*\+0000\r\nSubject: x\r\n/);
  });

  test('of a client that has gone is dropped, and stays counted until its hook has answered', () => {
    for (const answer of [ACCEPT, { action: 'refuse', text: '' }] as const) {
      const kit = new Kit();
      kit.sends(MESSAGE);
      const held = kit.hook.asked[0]?.message;
      assert.ok(held !== undefined);
      const heldBytes = kit.reception.reservedBytes;
      assert.ok(heldBytes > CONTENT.length);
      assert.equal(held.isAbandoned, false);
      kit.session.onClose('reset by the peer');
      assert.equal(isGone(held), true);
      assert.ok(kit.reception.reservedBytes >= CONTENT.length);
      assert.match(textOf(held), /b\u00f6dy/);
      assert.equal(kit.says(answer), '');
      assert.deepEqual([kit.reception.kept.length, kit.reception.reservedBytes], [0, 0]);
      // What is no longer counted is no longer there, whoever still has the message.
      assert.equal(textOf(held), '');
    }
  });

  test('of a client that has ended its side is answered', () => {
    const kit = new Kit();
    kit.sends(MESSAGE);
    kit.session.onEnd();
    kit.says(ACCEPT);
    assert.match(kit.settles(COMMITTED), /^250 2\.0\.0 Ok: queued/);
    assert.equal(kit.connection.isOver, true);
  });

  test('is answered before the gateway that stops says 421', () => {
    for (const [answer, reply] of [[ACCEPT, ''], [{ action: 'defer', text: 'later' }, '451 4.7.1 later|421 4.3.2 Shutting down']] as const) {
      const kit = new Kit();
      kit.sends(MESSAGE);
      kit.desk.isClosing = true;
      kit.session.shutDown();
      assert.equal(kit.heard(), '');
      assert.equal(kit.says(answer), reply);
      if (reply === '') assert.match(kit.settles(COMMITTED), /^250 [^|]*\|421 4\.3\.2 /);
      assert.equal(kit.reception.reservedBytes, 0);
    }
  });

  test('without memory for what is put in front is told to try later', () => {
    const kit = new Kit();
    kit.sends(MESSAGE);
    kit.reception.bytesMax = kit.reception.reservedBytes + 10;
    assert.equal(kit.says({ action: 'accept', fields: [{ name: 'X-Long', value: 'twenty octets or so' }] }), '452 4.3.1 Out of memory; try again later');
    assert.equal(kit.reception.reservedBytes, 0);
    kit.reception.bytesMax = Infinity;
    kit.sends(`${ENVELOPE}DATA\r\n`);
    kit.reception.bytesMax = kit.reception.reservedBytes + CONTENT.length + 20;
    assert.equal(kit.sends(`${CONTENT}.\r\n`), '452 4.3.1 Out of memory; try again later');
    assert.equal(kit.reception.reservedBytes, 0);
  });

  test('is taken within the read when they answer at once, and refused by the gateway as ever', () => {
    const kit = new Kit();
    kit.hook.always = ACCEPT;
    assert.match(kit.sends(MESSAGE), /354 [^|]*$/);
    assert.equal(kit.settles(NO_MEMORY), '452 4.3.1 Out of memory; try again later');
    kit.reception.hold = false;
    kit.reception.immediate = true;
    kit.reception.outcomes.push(COMMITTED, NO_MEMORY);
    assert.match(kit.sends(MESSAGE + MESSAGE), /\|250 2\.0\.0 Ok: queued as \S+\|250 [^|]*\|250 [^|]*\|354 [^|]*\|452 4\.3\.1 [^|]*$/);
    kit.hook.always = { action: 'refuse', text: 'no' };
    assert.match(kit.sends(MESSAGE + MESSAGE), /\|550 5\.7\.1 no\|250 [^|]*\|250 [^|]*\|354 [^|]*\|550 5\.7\.1 no$/);
    assert.equal(kit.reception.reservedBytes, 0);
  });

  test('is not asked about when its content is refused anyway, nor given up by the look for slow clients', () => {
    const kit = new Kit(undefined, { messageBytesMax: 20 });
    assert.match(kit.sends(MESSAGE), /552 5\.3\.4 [^|]*$/);
    assert.match(kit.sends(`${ENVELOPE}DATA\r\na\0b\r\n.\r\n`), /550 5\.6\.0 [^|]*$/);
    assert.equal(kit.hook.asked.length, 0);
    kit.sends(`${ENVELOPE}DATA\r\nok\r\n.\r\n`);
    kit.nowMs = 1e7;
    kit.desk.tick();
    assert.equal(kit.heard(), '');
    kit.says(ACCEPT);
    assert.match(kit.settles(COMMITTED), /^250 /);
  });
});

describe('the chain of hooks', () => {
  const two = (onFailure: 'defer' | 'accept' = 'defer'): { readonly kit: Kit; readonly first: HeldHook; readonly second: HeldHook } => {
    const [first, second] = [new HeldHook('first'), new HeldHook('second')];
    return { kit: new Kit([{ hook: first, onFailure }, { hook: second, onFailure }]), first, second };
  };

  test('asks in order, shows each what those before have put in front, and joins all of it', () => {
    const { kit, first, second } = two();
    kit.sends(MESSAGE);
    assert.equal(second.asked.length, 0);
    first.answer({ action: 'accept', fields: [{ name: 'X-First', value: '1' }] });
    assert.match(textOf(second.asked[0]?.message), /^Received: [^]*\+0000\r\nX-First: 1\r\nSubject: x\r\n/);
    assert.equal(second.asked[0]?.message.contentBytes, textOf(second.asked[0]?.message).length);
    second.answer({ action: 'accept', fields: [{ name: 'X-Second', value: '2' }] });
    assert.match(kit.kept, /\+0000\r\nX-First: 1\r\nX-Second: 2\r\nSubject: x\r\n/);
    kit.settles(COMMITTED);
    assert.equal(kit.reception.reservedBytes, 0);
  });

  test('ends with the first that does not accept', () => {
    const { kit, first, second } = two();
    kit.sends(MESSAGE);
    first.answer({ action: 'refuse', text: 'first' });
    assert.deepEqual([kit.heard(), second.asked.length], ['550 5.7.1 first', 0]);
  });

  test('that fails now and then writes two lines in ten seconds, whoever sends', () => {
    const { kit, first, second } = two('accept');
    second.always = ACCEPT;
    for (let i = 0; i < 6; i++) {
      kit.sends(MESSAGE);
      first.answer(i % 2 === 0 ? { action: 'failed', why: 'gone' } : ACCEPT);
      assert.match(kit.settles(COMMITTED), /^250 /);
    }
    assert.equal(kit.told.length, 2, kit.told.join());
  });

  test('takes messages unseen where the operator wants so, says it once, and again when it is over', () => {
    const { kit, first, second } = two('accept');
    second.always = ACCEPT;
    assert.deepEqual(kit.chain.failing(), []);
    for (let i = 0; i < 3; i++) {
      kit.sends(MESSAGE);
      kit.nowMs += 7;
      first.answer({ action: 'failed', why: `gone ${String(i)}` });
      assert.match(kit.settles(COMMITTED), /^250 /);
    }
    assert.deepEqual(kit.chain.failing(), [{ hook: 'first', since: Math.floor((WALL_MS + 7) / 1000), why: 'gone 2' }], 'since the first failure, for the last reason');
    kit.sends(MESSAGE);
    first.answer(ACCEPT);
    assert.deepEqual(kit.chain.failing(), []);
    assert.deepEqual(kit.told, ['a hook gives no verdict; messages are taken unseen (on_failure)', 'a hook gives verdicts again']);
    assert.deepEqual(kit.counted.filter((line) => line.startsWith('first')), ['first failed', 'first failed', 'first failed', 'first accept']);
    kit.settles(COMMITTED);
    kit.sends(MESSAGE);
    first.answer({ action: 'busy' });
    assert.match(kit.heard(), /^451 4\.7\.1 /);
  });

  test('never takes a message unseen of which a hook says too much: its sender may have made it do so', () => {
    const { kit, first, second } = two('accept');
    second.always = ACCEPT;
    const many = Array.from({ length: 65 }, () => ({ name: 'X-A', value: 'v' }));
    const long = Array.from({ length: 40 }, () => ({ name: 'X-A', value: 'v'.repeat(900) }));
    for (const answer of [
      { action: 'failed', why: 'its answer is too long', isTooMuch: true }, { action: 'accept', fields: many }, { action: 'accept', fields: long },
      moduleAnswer({ action: 'accept', fields: many }), moduleAnswer({ action: 'accept', fields: long }), moduleAnswer(moduleAnswer({ action: 'accept', fields: long })),
    ] as const) {
      kit.sends(MESSAGE);
      first.answer(answer);
      assert.equal(kit.heard(), '451 4.7.1 The message can not be checked now; try again later');
      assert.equal(second.asked.length, 0);
    }
    assert.deepEqual(kit.told, ['a hook gives no verdict; clients are told to try later']);
    assert.equal(kit.reception.reservedBytes, 0);
  });

  test('takes a field that is none, or that a message has once, for a failure', () => {
    for (const [name, value] of [
      ['X-A', 'a\r\nBcc: x'], ['X-A', 'a\r\n\r\nbody'], ['X-A', 'a\r\n \r\n b'], ['X-A', 'a\0b'], ['X-A', 'b\u00f6dy'], ['X-A', 'x'.repeat(1000)], ['X-A', 'a\rb'],
      ['X A', ''], ['X:', ''], ['', 'x'], ['.x', 'x'], ['-', 'x'], ['x'.repeat(77), ''], ['Subject', 'x'], ['content-type', 'text/html'], ['From', 'x'],
    ] as const) {
      const kit = new Kit();
      kit.sends(MESSAGE);
      assert.match(kit.says({ action: 'accept', fields: [{ name, value }] }), /^451 4\.7\.1 The message can not be checked/, `${name}: ${value}`);
    }
    const many = Array.from({ length: 40 }, () => ({ name: 'X-A', value: 'v' }));
    const { kit, first, second } = two();
    kit.sends(MESSAGE);
    first.answer({ action: 'accept', fields: many });
    second.answer({ action: 'accept', fields: many });
    assert.match(kit.heard(), /^451 4\.7\.1 /);
    kit.sends(MESSAGE);
    first.answer({ action: 'accept', fields: Array.from({ length: 40 }, () => ({ name: 'X-A', value: 'v'.repeat(900) })) });
    assert.match(kit.heard(), /^451 4\.7\.1 /);
    assert.equal(kit.reception.reservedBytes, 0);
  });

  test('puts a mark in front however little room is left, and of the fields behind it those that fit', () => {
    const some = (count: number, value = 'v'): HeaderField[] => Array.from({ length: count }, () => ({ name: 'X-A', value }));
    const field = { name: 'X-B', value: 'b' };
    const long = { name: 'X-Long', value: Array.from({ length: 30 }, () => 'x'.repeat(900)).join('\n ') };
    for (const [before, fields, kept] of [
      [some(63), [{ name: 'Subject', value: 's' }, field, field], 'X-B: b\r\n'],
      [some(64), [field], ''],
      [some(33, 'v'.repeat(980)), [long, field, field], 'X-B: b\r\nX-B: b\r\n'],
    ] as const) {
      const { kit, first, second } = two('accept');
      kit.sends(MESSAGE);
      first.answer({ action: 'accept', fields: before });
      second.answer({ action: 'accept', mark: [{ name: 'X-Spam', value: 'Yes' }], fields });
      assert.ok(kit.kept.includes(`v\r\nX-Spam: Yes\r\n${kept}Subject: x\r\n`), kit.kept.slice(-200));
      assert.deepEqual(kit.counted, ['first accept', 'second accept']);
      kit.settles(COMMITTED);
      assert.equal(kit.reception.reservedBytes, 0);
    }
  });

  test('goes on with a hook that adds nothing where those before have left no room', () => {
    const { kit, first, second } = two();
    kit.sends(MESSAGE);
    // With the names, colons and line ends 128 octets more than there is room for.
    first.answer({ action: 'accept', fields: Array.from({ length: 64 }, () => ({ name: 'X-A', value: 'v'.repeat(507) })) });
    second.answer(ACCEPT);
    assert.match(kit.settles(COMMITTED), /^250 /);
  });
});
