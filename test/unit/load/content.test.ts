import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { crc32 } from 'node:zlib';

import { contentsOfFiles, contentsOfMix } from '../../../src/load/content.js';

describe('contents', () => {
  test('of a mix have the size asked for, with the marks', () => {
    for (let bytes = 400; bytes < 700; bytes++) {
      const [content] = contentsOfMix([{ bytes, weight: 1 }], 150);
      assert.equal(content?.bytes, bytes - 150);
      assert.equal(content.wire.length, bytes - 150 + 3);
    }
  });

  test('of a mix are mail: CRLF line ends only, short lines, one final dot', () => {
    for (let bytes = 200; bytes < 600; bytes++) {
      const text = Buffer.from(contentsOfMix([{ bytes, weight: 1 }], 0)[0]?.wire ?? []).toString('latin1');
      assert.ok(text.endsWith('\r\n.\r\n'));
      assert.equal(text.indexOf('\r\n.'), text.length - 5);
      assert.doesNotMatch(text.replaceAll('\r\n', ''), /[\r\n]/);
      assert.ok(text.split('\r\n').every((line) => line.length <= 80));
    }
  });

  test('of files are hashed as they arrive, not as they go over the wire', () => {
    const [content] = contentsOfFiles([Buffer.from('Subject: x\n\n.dot\nno line end')]);
    const arrives = Buffer.from('Subject: x\r\n\r\n.dot\r\nno line end\r\n');
    assert.equal(content?.crc, crc32(arrives));
    assert.equal(content.bytes, arrives.length);
    assert.equal(Buffer.from(content.wire).toString(), 'Subject: x\r\n\r\n..dot\r\nno line end\r\n.\r\n');
  });
});
