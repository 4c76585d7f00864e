/** Pieces of `twinpost logs`: lines out of pieces of files, which of them are meant, and how they are shown. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Wildcards } from '../../../../src/base/wildcards.js';
import { LineSplitter } from '../../../../src/cli/logs/line-splitter.js';
import { lineText } from '../../../../src/cli/logs/line-text.js';
import { LogFilter } from '../../../../src/observability/log-filter.js';
import type { LogQuestion } from '../../../../src/observability/log-filter.js';

const ID = '000H3ZK9Q4D';
const REPORT = '000H3ZK9Q4E';
const OTHER = '000H3ZK9Q4F';

function line(event: string, fields: object): string {
  return JSON.stringify({ level: 'info', time: '2026-01-31T10:00:00.123Z', event, gateway: 'gw-1', ...fields });
}

function filter({ to, ...question }: Partial<Omit<LogQuestion, 'to'>> & { readonly to?: string }): LogFilter {
  return new LogFilter({ ids: [], messageId: undefined, from: undefined, to: to === undefined ? undefined : new Wildcards([to]), reply: undefined, source: undefined, ...question });
}

function events(chosen: LogFilter, lines: readonly string[]): readonly unknown[] {
  return lines.flatMap((one) => chosen.meant(one)?.['event'] ?? []);
}

describe('lines of a file', () => {
  test('are the same in whatever pieces it is read', () => {
    const bytes = Buffer.from('one\nzwölf\n\nlast');
    for (let size = 1; size <= bytes.length; size++) {
      const splitter = new LineSplitter();
      const lines: string[] = [];
      for (let at = 0; at < bytes.length; at += size) lines.push(...splitter.push(bytes.subarray(at, at + size)));
      lines.push(...splitter.end());
      assert.deepEqual(lines, ['one', 'zwölf', '', 'last'], String(size));
    }
  });

  test('that have no end in sight are left out and counted, and those behind them are read', () => {
    const splitter = new LineSplitter();
    assert.deepEqual(splitter.push(Buffer.from('a\n')), ['a']);
    const piece = Buffer.alloc(300_000, 'x');
    for (let i = 0; i < 20; i++) assert.deepEqual(splitter.push(piece), []);
    assert.deepEqual(splitter.push(Buffer.from('xx\nb\nc')), ['b']);
    assert.deepEqual([splitter.end(), splitter.passed], [['c'], 1]);
  });
});

describe('a choice of log lines', () => {
  test('follows one message by its queue id, and reports about it', () => {
    const lines = [
      line('received', { queue_id: ID }), line('received', { queue_id: OTHER }), line('delivered', { queue_id: REPORT }), line('held', { queue_id: ID }),
      line('report', { queue_id: ID, report_id: REPORT }), line('delivered', { queue_id: REPORT, gateway: 'gw-2' }), line('deferred', { queue_id: OTHER, reply: ID }), 'no line',
    ];
    assert.deepEqual(events(filter({ ids: [ID] }), lines), ['received', 'held', 'report', 'delivered']);
  });

  test('learns queue ids from the acceptance of a Message-ID, with brackets or without', () => {
    const lines = [line('delivered', { queue_id: ID }), line('received', { queue_id: ID, message_id: '<a@b>' }), line('received', { queue_id: OTHER, message_id: '<ca@b>' }), line('deferred', { queue_id: ID }), line('deferred', { queue_id: OTHER })];
    for (const messageId of ['a@b', '<a@b>']) assert.deepEqual(events(filter({ messageId }), lines), ['received', 'deferred'], messageId);
  });

  test('goes by sender and recipient, as they were and as they were written', () => {
    const lines = [
      line('received', { from: 'Ann@a.example', to: 'bob@b.example' }), line('delivered', { from: '', to: 'ann@a.example' }),
      line('deferred', { from: 'x@y', mail_from: 'SRS0=ann@a.example', to: 'eve@b.example', orig_to: 'bob@b.example' }), line('start', {}),
    ];
    assert.deepEqual(events(filter({ from: 'ann@*' }), lines), ['received']);
    assert.deepEqual(events(filter({ from: '*ann@a.example' }), lines), ['received', 'deferred']);
    assert.deepEqual(events(filter({ from: '<>' }), lines), ['delivered']);
    assert.deepEqual(events(filter({ to: 'bob@b.example' }), lines), ['received', 'deferred']);
    assert.deepEqual(events(filter({ to: 'bob@*', from: 'x@y' }), lines), ['deferred']);
  });

  test('goes by what was said, and by where mail left from', () => {
    const lines = [
      line('deferred', { reply: '421 4.7.0 [TSS04] try later', source: '192.0.2.1', to: 'a@b' }), line('bounced', { reply: '550 5.7.1 no', source: '192.0.2.2', to: 'a@b' }),
      line('expired', { reply: 'delivery time expired', last: '421 4.7.0 [TSS04]' }), line('suspended', { why: '421 4.7.0 busy', source: '192.0.2.1' }), line('start', {}),
    ];
    assert.deepEqual(events(filter({ reply: '421 4.7.0*' }), lines), ['deferred', 'expired', 'suspended']);
    assert.deepEqual(events(filter({ source: '192.0.2.1' }), lines), ['deferred', 'suspended']);
    assert.deepEqual(events(filter({ source: '192.0.2.1', reply: '*tss04*', to: '*@b' }), lines), ['deferred']);
    assert.ok(filter({ reply: 'x' }).isChoosing && filter({ source: 'x' }).isChoosing && !filter({}).isChoosing);
  });
});

describe('a log line as text', () => {
  test('says when, who, what, which message, and then all other fields', () => {
    const fields = JSON.parse(line('delivered', { queue_id: ID, from: 'a@b', reply: '250 OK', attempt: 1, stores: ['x', 'y'] })) as Record<string, unknown>;
    assert.equal(lineText(fields, false), `2026-01-31 10:00:00.123  gw-1  delivered  ${ID}  from=a@b reply="250 OK" attempt=1 stores=["x","y"]`);
    assert.equal(lineText({ time: 't', level: 'warn', name: 'gw-2', pid: 7, event: 'link', msg: 'a path is lost', reason: '' }, false), 't  gw-2  link       a path is lost  reason=""');
  });

  test('never has a byte that a terminal obeys', () => {
    const hostile = '\u001b[2J\u009b31m\u202e\r\n';
    const text = lineText({ time: hostile, event: hostile, gateway: hostile, queue_id: hostile, msg: hostile, [hostile]: hostile, deep: { a: hostile }, list: [hostile] }, false);
    assert.match(text, /^[\x20-\x7e]*$/);
  });
});
