/** What a parser does with what it has received and not obeyed yet when its connection is done with it: closed, or retired at STARTTLS. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ContentScan } from '../../../../src/gateway/inbound/content-scan.js';
import { ContentStream } from '../../../../src/gateway/inbound/content-stream.js';

/** A parser, who feeds it, and commands that take their time until answered. */
class Kit {
  readonly obeyed: string[] = [];
  readonly calls: string[] = [];
  readonly source = { pause: () => this.calls.push('pause'), resume: () => this.calls.push('resume') };
  readonly parser: ContentStream;
  private answer: () => void = () => {};

  constructor() {
    const quiet = (): void => {};
    this.parser = new ContentStream({ scan: new ContentScan(), onContent: quiet, onContentEnd: quiet, beginChunk: quiet, endChunk: quiet, onInputEnd: () => this.calls.push('input end') }, 100);
    this.parser.oncommand = (line, done) => {
      this.obeyed.push(line.toString());
      this.answer = done ?? quiet;
    };
    this.parser.on('error', (error) => this.calls.push(error.message));
  }

  received(text: string): void {
    this.parser.received(Buffer.from(text), this.source);
  }

  answered(): void {
    this.answer();
  }
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
}

describe('a parser that is busy', () => {
  test('has its source wait, and goes on with it in order', () => {
    const kit = new Kit();
    kit.received('ONE\r\n');
    kit.received('TWO\r\n');
    assert.deepEqual([kit.obeyed, kit.calls], [['ONE'], ['pause']]);
    kit.answered();
    assert.deepEqual([kit.obeyed, kit.calls], [['ONE', 'TWO'], ['pause']]);
    kit.answered();
    assert.deepEqual(kit.calls, ['pause', 'resume']);
  });

  test('and closed meanwhile obeys nothing more, and leaves the source to who has it now', async () => {
    const kit = new Kit();
    kit.received('STARTTLS\r\nBEHIND IT\r\n');
    kit.received('IN CLEAR\r\n');
    kit.parser.isClosed = true;
    kit.answered();
    kit.received('LATER\r\n');
    await turns();
    assert.deepEqual([kit.obeyed, kit.calls], [['STARTTLS'], ['pause']]);
  });

  test('and closed meanwhile says nothing about a line that is too long', async () => {
    const kit = new Kit();
    kit.received(`QUIT\r\n${'x'.repeat(200)}\r\n`);
    kit.parser.isClosed = true;
    kit.answered();
    await turns();
    assert.deepEqual(kit.calls, []);
    const open = new Kit();
    open.received(`NOOP\r\n${'x'.repeat(200)}\r\n`);
    open.answered();
    await turns();
    assert.deepEqual(open.calls, ['Command line too long']);
  });
});

describe('the end of what is received', () => {
  test('is told when all before it is answered, not to a parser that is closed', async () => {
    const kit = new Kit();
    kit.received('ONE\r\nTWO\r\n');
    kit.parser.inputOver();
    kit.answered();
    await turns();
    assert.deepEqual([kit.obeyed, kit.calls], [['ONE', 'TWO'], []]);
    kit.answered();
    await turns();
    assert.deepEqual(kit.calls, ['input end']);
    const closed = new Kit();
    closed.received('QUIT\r\n');
    closed.parser.inputOver();
    closed.parser.isClosed = true;
    closed.answered();
    const atLast = new Kit();
    atLast.parser.inputOver();
    atLast.parser.isClosed = true;
    await turns();
    assert.deepEqual([closed.calls, atLast.calls], [[], []]);
  });

  test('is told at once when nothing waits, though a command had no line end', async () => {
    const kit = new Kit();
    kit.received('NO END');
    kit.parser.inputOver();
    await turns();
    assert.deepEqual([kit.obeyed, kit.calls], [[], ['input end']]);
  });
});
