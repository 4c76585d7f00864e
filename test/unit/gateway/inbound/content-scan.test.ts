import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ByteViews } from '../../../../src/gateway/inbound/content/byte-views.js';
import { ContentScan, FAULT_BARE_CR, FAULT_BARE_LF, FAULT_NUL } from '../../../../src/gateway/inbound/content/content-scan.js';

interface Result {
  content: string;
  rest: string;
  scan: ContentScan;
}

function scanPieces(pieces: readonly string[]): Result {
  const scan = new ContentScan(new ByteViews());
  let content = '';
  let rest = '';
  for (const piece of pieces) {
    const chunk = Buffer.from(piece, 'latin1');
    if (scan.ended) {
      rest += piece;
      continue;
    }
    const next = scan.scan(chunk, 0);
    content += chunk.toString('latin1', 0, scan.contentEnd);
    rest = chunk.toString('latin1', next);
  }
  return { content, rest, scan };
}

/** Every way to cut the text into two, and into single bytes. */
function* cuts(text: string): Generator<string[]> {
  yield [text];
  yield [...text];
  for (let at = 1; at < text.length; at++) yield [text.slice(0, at), text.slice(at)];
}

describe('the scan of DATA', () => {
  const whole: readonly (readonly [string, string])[] = [
    ['.\r\n', ''],
    ['a\r\n.\r\n', 'a\r\n'],
    ['\r\n.\r\n', '\r\n'],
    ['..\r\n.\r\n', '.\r\n'],
    ['a\r\n..b\r\n...\r\n.c\r\n.\r\n', 'a\r\n.b\r\n..\r\nc\r\n'],
    ['a.b\r\nc.\r\n.\r\n', 'a.b\r\nc.\r\n'],
    ['\t\x01\x0b\x0c\x7f\xff\r\n.\r\n', '\t\x01\x0b\x0c\x7f\xff\r\n'],
  ];
  for (const [wire, content] of whole) {
    test(`finds end and content of ${JSON.stringify(wire)} however it is cut`, () => {
      for (const pieces of cuts(wire + 'QUIT\r\n')) {
        const result = scanPieces(pieces);
        assert.equal(result.content, content, JSON.stringify(pieces));
        assert.equal(result.rest, 'QUIT\r\n', JSON.stringify(pieces));
        assert.equal(result.scan.faults, 0);
        assert.equal(result.scan.dotLines, content.startsWith('.') || content.includes('\n.'));
      }
    });
  }

  test('misses no low byte in a long line, whatever stands around it', () => {
    for (let around = 0x0e; around <= 0xff; around++) {
      for (let at = 1; at < 34; at++) {
        for (const [bad, fault] of [['\0', FAULT_NUL], ['\r', FAULT_BARE_CR], ['\n', FAULT_BARE_LF]] as const) {
          const filler = String.fromCharCode(around);
          const { scan } = scanPieces([`x${filler.repeat(at)}${bad}${filler.repeat(34 - at)}\r\n.\r\n`]);
          assert.deepEqual([scan.faults, scan.ended], [fault, true], `byte ${String(around)}, ${JSON.stringify(bad)} at ${String(at)}`);
        }
      }
    }
  });

  const faulty: readonly (readonly [string, number])[] = [
    ['a\n.\n', FAULT_BARE_LF],
    ['a\n.\r\n', FAULT_BARE_LF],
    ['a\r.\r\n', FAULT_BARE_CR],
    ['a\r\n.\n', FAULT_BARE_LF],
    ['a\r\n.\r', FAULT_BARE_CR],
    ['a\r\r\n', FAULT_BARE_CR],
    ['\n', FAULT_BARE_LF],
    ['a\0b\r\n', FAULT_NUL],
    ['.\0\r\n', FAULT_NUL],
    ['a\r\0\n', FAULT_NUL | FAULT_BARE_CR | FAULT_BARE_LF],
  ];
  for (const [wire, faults] of faulty) {
    test(`${JSON.stringify(wire)} is a fault and no end`, () => {
      for (const pieces of cuts(wire + 'x')) {
        const { scan } = scanPieces(pieces);
        assert.equal(scan.ended, false, JSON.stringify(pieces));
        assert.equal(scan.faults, faults, JSON.stringify(pieces));
      }
      for (const pieces of cuts(wire + 'x\r\n.\r\n')) assert.equal(scanPieces(pieces).scan.ended, true);
    });
  }

  test('counts Received fields of the header, not of the body, nor names that only begin so', () => {
    const wire = 'Received: a\r\nreCEIVED: b\r\n folded Received: c\r\nReceived-SPF: d\r\nX-Received: e\r\nR\r\nrec\r\n\r\nReceived: f\r\n.\r\n';
    for (const pieces of cuts(wire)) assert.equal(scanPieces(pieces).scan.receivedLines, 2, JSON.stringify(pieces));
  });

  test('counts those behind a dot that was put before them without need, and goes', () => {
    const wire = '.Received: a\r\n..Received: b\r\n.X: c\r\nReceived: d\r\n\r\n.Received: e\r\n.\r\n';
    for (const pieces of cuts(wire)) assert.equal(scanPieces(pieces).scan.receivedLines, 2, JSON.stringify(pieces));
  });

  test('knows of every byte of the content with its top bit set, and of none behind the end, however it is cut', () => {
    const wire = 'Subject: abc\r\nReceived: x\r\n\r\nab\r\n..cd\r\nefghijklmnopqrstuvwxyz\r\n.\r\n';
    for (const pieces of cuts(wire + '\xff\xff\xff\xff\xff\xff\xff\xff')) assert.equal(scanPieces(pieces).scan.is8Bit, false);
    for (let at = 0; at < wire.length - 5; at++) {
      if (['\r', '\n', '.'].includes(wire.charAt(at))) continue;
      const with8 = `${wire.slice(0, at)}\x80${wire.slice(at + 1)}`;
      for (const pieces of cuts(with8)) assert.equal(scanPieces(pieces).scan.is8Bit, true, JSON.stringify(pieces));
      const counted = new ContentScan(new ByteViews());
      counted.scanCounted(Buffer.from(`\xff${with8}\xff`, 'latin1'), 1, with8.length + 1);
      assert.equal(counted.is8Bit, true);
    }
    const counted = new ContentScan(new ByteViews());
    counted.scanCounted(Buffer.from(`\xff${wire}\xff`, 'latin1'), 1, wire.length + 1);
    assert.equal(counted.is8Bit, false);
  });

  test('finds what begins a line behind lines that are passed over, at every length of them', () => {
    for (let length = 1; length < 20; length++) {
      const line = `${'x'.repeat(length)}\r\n`;
      for (const header of ['', 'A: b\r\n']) {
        const wire = `${header}${line}Received: a\r\n${line}\r\n${line}Received: b\r\n${line}..c\r\n${line}.\r\n`;
        const { content, rest, scan } = scanPieces([`${wire}QUIT\r\n`]);
        assert.equal(content, wire.slice(0, -3).replace('\r\n..c', '\r\n.c'));
        assert.deepEqual([rest, scan.receivedLines, scan.dotLines, scan.faults], ['QUIT\r\n', 1, true, 0]);
      }
    }
  });

  test('starts afresh after reset', () => {
    const scan = new ContentScan(new ByteViews());
    scan.scan(Buffer.from('Received: x\n\0\r'), 0);
    scan.reset();
    scan.scan(Buffer.from('.\r\n'), 0);
    assert.deepEqual([scan.faults, scan.receivedLines, scan.ended, scan.contentEnd], [0, 0, true, 0]);
  });
});
