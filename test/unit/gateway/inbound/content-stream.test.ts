/** What a parser does with what it has received and not obeyed yet when its connection is done with it: closed, or retired at STARTTLS. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ContentScan } from '../../../../src/gateway/inbound/content-scan.js';
import { ContentStream } from '../../../../src/gateway/inbound/content-stream.js';
import { MemoryReception } from '../../../dialog/memory-reception.js';

/** A parser, who feeds it, and commands that take their time until answered. */
class Kit {
  readonly obeyed: string[] = [];
  readonly calls: string[] = [];
  readonly source = { pause: () => this.calls.push('pause'), resume: () => this.calls.push('resume') };
  readonly parser: ContentStream;
  readonly memory = new MemoryReception();
  private answer: () => void = () => {};

  constructor() {
    const quiet = (): void => {};
    this.parser = new ContentStream({ scan: new ContentScan(), memory: this.memory, onContent: quiet, onContentEnd: quiet, beginChunk: quiet, endChunk: quiet, onInputEnd: () => this.calls.push('input end'), onOverfull: () => this.calls.push('overfull') }, 100);
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

describe('what waits', () => {
  test('counts as memory in use until it is obeyed', () => {
    const kit = new Kit();
    kit.received('ONE\r\nTWO\r\n');
    assert.equal(kit.memory.reservedBytes, 'TWO\r\n'.length);
    kit.received('THREE\r\n');
    assert.equal(kit.memory.reservedBytes, 'TWO\r\nTHREE\r\n'.length);
    for (let answers = 0; answers < 3; answers++) kit.answered();
    assert.deepEqual([kit.obeyed, kit.calls, kit.memory.reservedBytes], [['ONE', 'TWO', 'THREE'], ['pause', 'resume'], 0]);
  });

  test('is let go when its connection is closed, and when its parser is retired', () => {
    const kit = new Kit();
    kit.received('ONE\r\nTWO\r\n');
    kit.received('THREE\r\n');
    kit.parser.letGo();
    assert.equal(kit.memory.reservedBytes, 0);
    kit.parser.isClosed = true;
    kit.answered();
    const retired = new Kit();
    retired.received('STARTTLS\r\nBEHIND IT\r\n');
    retired.parser.isClosed = true;
    retired.answered();
    assert.deepEqual([kit.obeyed, retired.obeyed, kit.memory.reservedBytes, retired.memory.reservedBytes], [['ONE'], ['STARTTLS'], 0, 0]);
  });

  test('is dropped without room for it, with all behind it, and that is told once what came before is answered', () => {
    for (const [room, obeyed] of [[0, ['ONE']], ['TWO\r\n'.length, ['ONE', 'TWO']]] as const) {
      const kit = new Kit();
      kit.memory.bytesMax = room;
      kit.received('ONE\r\nTWO\r\n');
      kit.received('THREE\r\n');
      kit.memory.bytesMax = Infinity;
      kit.received('FOUR\r\n');
      for (let answers = 0; answers < obeyed.length; answers++) {
        assert.equal(kit.calls.includes('overfull'), false);
        kit.answered();
      }
      kit.received('FIVE\r\n');
      assert.deepEqual([kit.obeyed, kit.calls.filter((call) => call !== 'pause'), kit.memory.reservedBytes], [obeyed, ['overfull'], 0]);
    }
  });
});
