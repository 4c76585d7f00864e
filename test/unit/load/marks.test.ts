import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { crc32 } from 'node:zlib';

import { emptyMarks, envidOf, findQuotedMarks, MarkTemplate, readEnvid, readMarks } from '../../../src/load/marks.js';

const REST = Buffer.from('Subject: x\r\n\r\nhello\r\n');

function marked(): Buffer {
  const template = new MarkTemplate('run1', 'a.example');
  const content = Buffer.concat([template.bytes, REST]);
  template.stamp(content, 0, 1234567890, 42, crc32(REST));
  return content;
}

describe('marks', () => {
  test('are read back, also below trace headers', () => {
    for (const trace of ['', 'Received: from x\r\n\tby y; now\r\nReturn-Path: <>\r\n']) {
      const marks = emptyMarks();
      assert.equal(readMarks(Buffer.concat([Buffer.from(trace), marked()]), marks), true);
      assert.deepEqual(
        { run: marks.run, id: marks.id, queue: marks.queue, serial: marks.serial },
        { run: 'run1', id: 1234567890, queue: 'a.example', serial: 42 },
      );
      assert.equal(marks.hash, marks.actualHash);
    }
  });

  test('name a message in its envelope, too', () => {
    const marks = { ...emptyMarks(), queue: 'before', serial: 9 };
    assert.equal(readEnvid(envidOf('run-1.x', 1234567890), marks), true);
    assert.deepEqual(marks, { ...emptyMarks(), run: 'run-1.x', id: 1234567890 });
    for (const other of ['', 'QQ314159', 'run1.', '.7', 'a+20b.7', 'run1.12345678901']) assert.equal(readEnvid(other, marks), false, other);
  });

  test('show the change of any single byte below the hash', () => {
    const content = marked();
    for (let at = 'X-Twinpost-Hash: 00000000'.length; at < content.length; at++) {
      const altered = Buffer.from(content);
      altered[at] = (altered[at] ?? 0) ^ 1;
      const marks = emptyMarks();
      if (readMarks(altered, marks)) assert.notEqual(marks.actualHash, marks.hash, `byte ${at}`);
    }
    const shorter = emptyMarks();
    assert.equal(readMarks(content.subarray(0, content.length - 1), shorter), true);
    assert.notEqual(shorter.actualHash, shorter.hash);
  });

  test('do not count when a body quotes them, but are found there for reports', () => {
    const report = Buffer.concat([Buffer.from('Subject: failed\r\n\r\n'), marked()]);
    assert.equal(readMarks(report, emptyMarks()), false);
    const marks = emptyMarks();
    assert.equal(findQuotedMarks(report, marks), true);
    assert.equal(marks.id, 1234567890);
  });

  test('are refused when cut off', () => {
    const content = marked();
    for (let length = 0; length < content.length - REST.length; length++) {
      assert.equal(readMarks(content.subarray(0, length), emptyMarks()), false);
    }
  });
});
