/** Messages out of lines of logs, which come in any order and from several gateways. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { LoggedMessage } from '../../../src/admin-api/logged.js';
import type { LogFields } from '../../../src/observability/log-filter.js';
import { LoggedMail, isOpen } from '../../../src/observability/logged-mail.js';

const ID = '000H3ZK9Q4D';
type Line = readonly [atMs: number, fields: LogFields];

function line(event: string, atMs: number, fields: object = {}): Line {
  return [atMs, { event, queue_id: ID, gateway: 'gw-1', from: 'a@a.example', to: 'b@b.example', ...fields }];
}

function messageOf(lines: readonly Line[]): LoggedMessage | undefined {
  const mail = new LoggedMail();
  for (const [atMs, fields] of lines) mail.addLine(fields, atMs);
  return mail.all()[0];
}

/** The recipients, whatever the order of the lines. */
function recipients(...lines: readonly Line[]): readonly string[] {
  const [forth, back] = [lines, [...lines].reverse()].map((some) => messageOf(some)?.recipients.map(({ address, state, gateway }) => `${address} ${state} ${gateway}`).sort());
  assert.deepEqual(forth, back);
  return forth ?? [];
}

describe('what logs tell of a message', () => {
  test('is the last of each recipient, in whatever order lines are read', () => {
    const lines = [line('received', 5_000, { nrcpt: 2 }), line('deferred', 6_000), line('delivered', 7_000), line('deferred', 6_500, { to: 'c@b.example' })];
    assert.deepEqual(recipients(...lines), ['b@b.example delivered gw-1', 'c@b.example deferred gw-1']);
    assert.deepEqual(recipients(line('received', 5_000), line('delivered', 5_000)), ['b@b.example delivered gw-1'], 'within a millisecond');
    assert.deepEqual(recipients(line('deferred', 9_000), line('delivered', 8_000, { gateway: 'gw-2' })), ['b@b.example delivered gw-2'], 'clocks differ');
  });

  test('names one whom an alias has led elsewhere once', () => {
    assert.deepEqual(recipients(line('received', 5_000), line('delivered', 6_000, { to: 'x@c.example', orig_to: 'b@b.example' })), ['x@c.example delivered gw-1']);
    assert.deepEqual(recipients(line('received', 5_000)), ['b@b.example received gw-1']);
  });

  test('comes from the line of the acceptance, or is reckoned from a delay', () => {
    const end = line('bounced', 9_000, { size: 70, delay: 3.5 });
    const facts = ({ arrival_ms: arrivalMs, message_id: messageId, message_size: size, recipient_count: count }: LoggedMessage): unknown[] => [arrivalMs, messageId, size, count];
    for (const lines of [[end, line('received', 5_000, { size: 71, nrcpt: 3, message_id: '<m>' })], [line('received', 5_000, { size: 71, nrcpt: 3, message_id: '<m>' }), end]]) {
      const message = messageOf(lines);
      assert.deepEqual(message === undefined ? [] : facts(message), [5_000, '<m>', 71, 3]);
    }
    const late = messageOf([end]);
    assert.deepEqual(late === undefined ? [] : facts(late), [5_500, '', 70, null]);
  });

  test('is open while somebody is not told of, or has not come to his end', () => {
    const open = (...lines: readonly Line[]): boolean | undefined => {
      const message = messageOf(lines);
      return message === undefined ? undefined : isOpen(message);
    };
    assert.equal(open(line('received', 1, { nrcpt: 1 })), true);
    assert.equal(open(line('received', 1, { nrcpt: 1 }), line('deferred', 2)), true);
    assert.equal(open(line('received', 1, { nrcpt: 2 }), line('removed', 2)), true);
    assert.equal(open(line('received', 1, { nrcpt: 1 }), line('expired', 2)), false);
    assert.equal(open(line('link', 1)), undefined, 'no line of a message');
  });

  test('has a bound, whatever lines say', () => {
    const mail = new LoggedMail();
    for (let i = 0; i < 4_001; i++) mail.addLine(line('bounced', i, { to: `r${String(i)}@b.example`, reply: 'x'.repeat(5_000), relay: 7, size: 1.5, delay: 'x' })[1], i);
    const [message] = mail.all();
    assert.deepEqual([mail.isCut, message?.recipients.length, message?.recipients[0]?.reply.length, message?.recipients[0]?.relay, message?.message_size, message?.arrival_ms], [true, 4_000, 200, '', null, null]);
  });
});
