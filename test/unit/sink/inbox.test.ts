/** The last messages that a sink took: listed, read, and no more of them than is kept. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Inbox } from '../../../src/sink/inbox.js';

const message = (subject: string, body = 'hello'): Buffer => Buffer.from(`Received: x\r\nSubject: ${subject}\r\n\r\nSubject: no\r\n${body}\r\n`);

describe('the inbox of a sink', () => {
  test('lists the last ones in their order, and has the content of each', () => {
    const inbox = new Inbox();
    const bytes = message('one');
    inbox.add(bytes, 'a@x.example', ['b@y.example', 'c@y.example']);
    bytes.fill(0);
    inbox.add(message('folded\r\n over two'), '', ['d@y.example']);
    inbox.add(Buffer.from('no header at all'), 'a@x.example', []);
    const { messages, arrived } = inbox.list(0, 10);
    assert.equal(arrived, 3);
    assert.deepEqual(messages.map(({ n, sender, subject, recipients }) => [n, sender, subject, recipients.map(({ address }) => address)]), [
      [1, 'a@x.example', 'one', ['b@y.example', 'c@y.example']], [2, '', 'folded over two', ['d@y.example']], [3, 'a@x.example', '', []],
    ]);
    assert.deepEqual(inbox.list(0, 1).messages.map(({ n }) => n), [3]);
    assert.deepEqual(inbox.list(2, 10).messages.map(({ n }) => n), [3]);
    assert.equal(inbox.content(1)?.toString(), message('one').toString(), 'its own bytes');
    assert.equal(inbox.content(4), undefined);
  });

  test('keeps a thousand, and 64 MiB', () => {
    const inbox = new Inbox();
    for (let i = 1; i <= 3_500; i++) inbox.add(message(String(i)), 'a@x.example', ['b@y.example']);
    assert.equal(inbox.list(0, 10_000).messages.length, 1_000);
    assert.deepEqual([inbox.list(0, 10_000).messages[0]?.subject, inbox.content(2_500)], ['2501', undefined]);
    const large = Buffer.alloc(2 * 1024 * 1024, 'x');
    for (let i = 0; i < 100; i++) inbox.add(large, '', []);
    const { messages, arrived } = inbox.list(0, 10_000);
    assert.deepEqual([messages.length, arrived, messages[0]?.message_size], [64, 3_600, large.length]);
    assert.equal(inbox.content(3_600)?.length, 1024 * 1024);
  });

  test('holds nothing of what it does not keep', () => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    /** What the last calls left on the stack goes with the second. */
    const collect = (): void => {
      gc();
      gc();
    };
    const inbox = new Inbox();
    const mebibyte = Buffer.alloc(1024 * 1024, 'x');
    collect();
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 128; i++) inbox.add(mebibyte, '', []);
    collect();
    const held = (process.memoryUsage().arrayBuffers - before) / mebibyte.length;
    assert.ok(held > 60 && held < 70, `${String(held)} MiB`);
    assert.equal(inbox.list(0, 1_000).messages.length, 64);
  });
});
