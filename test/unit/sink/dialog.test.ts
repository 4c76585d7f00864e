/** A sink's session as a function of bytes: replies, contents, and the end of content however it is cut. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { CUT_OFF, Dialog, END, GO_ON, SECURE, WAIT, type DialogHost } from '../../../src/sink/dialog.js';
import { CUT, DEFERRED, TAKEN, type ArrivalKind } from '../../../src/sink/verify.js';

interface Kept {
  readonly content: string;
  readonly from: string;
  readonly to: readonly string[];
}

class Host implements DialogHost {
  lmtp = false;
  late = false;
  hasTls = false;
  messageBytesMax = 1000;
  readonly kept: Kept[] = [];
  /** "number envid from to" of transactions that ended without a message, and numbers of the others. */
  readonly left: string[] = [];
  readonly begunKept: number[] = [];
  #begun = 0;
  readonly fates: ArrivalKind[] = [];

  decide(): ArrivalKind {
    return this.fates.shift() ?? TAKEN;
  }

  begin(): number {
    return ++this.#begun;
  }

  leave(begun: number, envid: string, from: string, to: readonly string[]): void {
    this.left.push(`${begun} ${envid} ${from} ${to.join()}`);
  }

  keep(content: Buffer, from: string, to: readonly string[], _kind: ArrivalKind, begun: number): void {
    this.begunKept.push(begun);
    this.kept.push({ content: content.toString('latin1'), from, to });
  }

  onCommandError(): void {
    // Counted by the sink.
  }
}

function talk(host: Host, ...chunks: string[]): { codes: string; next: number; dialog: Dialog } {
  const dialog = new Dialog(host);
  let next: number = GO_ON;
  for (const chunk of chunks) next = dialog.push(Buffer.from(chunk, 'latin1'));
  const codes = dialog.replies.split('\r\n').filter((line) => line[3] === ' ').map((line) => line.slice(0, 3));
  return { codes: codes.join(' '), next, dialog };
}

const ENVELOPE = 'EHLO me\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\n';

describe('dialog', () => {
  test('takes a pipelined group and two messages in one chunk', () => {
    const host = new Host();
    const again = 'MAIL FROM:<>\r\nRCPT TO:<"x> y"@d>\r\nRCPT TO:<e@f>\r\nDATA\r\n';
    const { codes } = talk(host, `${ENVELOPE}one\r\n.\r\n${again}two\r\n.\r\nQUIT\r\n`);
    assert.equal(codes, '220 250 250 250 354 250 250 250 250 354 250 221');
    assert.deepEqual(host.kept, [
      { content: 'one\r\n', from: 'a@b', to: ['c@d'] },
      { content: 'two\r\n', from: '', to: ['"x> y"@d', 'e@f'] },
    ]);
  });

  test('finds the same contents wherever the stream is cut', () => {
    const contents = ['\r\n', '.\r\n', '', 'a\r\n.b\r\n..\r\n', '\r\n.\r\r\n', 'x\r\n.\n.\r\r\ny\r\n', '...\r\n'];
    const stream = contents.map((content) => ENVELOPE.replace('EHLO me\r\n', '') + stuffed(content) + '.\r\n').join('');
    for (let size = 1; size <= 40; size++) {
      const host = new Host();
      const chunks = ['EHLO me\r\n'];
      for (let at = 0; at < stream.length; at += size) chunks.push(stream.slice(at, at + size));
      talk(host, ...chunks);
      assert.deepEqual(host.kept.map((kept) => kept.content), contents, `chunks of ${size}`);
    }
  });

  test('refuses a content above the limit and goes on', () => {
    for (const size of [7, 100, 100_000]) {
      const host = new Host();
      const stream = `${'x'.repeat(76)}\r\n`.repeat(40) + '.\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nDATA\r\nsmall\r\n.\r\n';
      const chunks = [ENVELOPE];
      for (let at = 0; at < stream.length; at += size) chunks.push(stream.slice(at, at + size));
      assert.equal(talk(host, ...chunks).codes, '220 250 250 250 354 552 250 250 354 250');
      assert.deepEqual(host.kept.map((kept) => kept.content), ['small\r\n']);
    }
  });

  test('numbers transactions by their MAIL, and tells of those that end before their dot', () => {
    const host = new Host();
    const { dialog } = talk(host, `${ENVELOPE}one\r\n.\r\n`, 'MAIL FROM:<a@b> SIZE=9 ENVID=r1.7 BODY=8BITMIME\r\nRCPT TO:<c@d>\r\nRSET\r\nRSET\r\n',
      'MAIL FROM:<> BODY=9BIT\r\n', ENVELOPE, 'half a line', '\r\n.\r\n', 'MAIL FROM:<a@b>\r\nEHLO me\r\n', 'MAIL FROM:<a@b> ENVID=x\r\nRCPT TO:<c@d>\r\nDATA\r\nhalf');
    assert.deepEqual(host.left, ['2 r1.7 a@b c@d', '4  a@b ']);
    dialog.close();
    dialog.close();
    assert.deepEqual(host.left.slice(2), ['5 x a@b c@d']);
    assert.deepEqual(host.begunKept, [1, 3]);
  });

  test('keeps to the order of commands', () => {
    assert.equal(talk(new Host(), 'MAIL FROM:<a@b>\r\n').codes, '220 503');
    assert.equal(talk(new Host(), 'EHLO x\r\nRCPT TO:<a@b>\r\nDATA\r\n').codes, '220 250 503 503');
    assert.equal(talk(new Host(), 'EHLO x\r\nMAIL FROM:<a@b>\r\nMAIL FROM:<a@b>\r\n').codes, '220 250 250 503');
    assert.equal(talk(new Host(), 'EHLO x\r\nMAIL FROM:<a@b>\r\nRSET\r\nMAIL FROM:<a@b>\r\n').codes, '220 250 250 250 250');
  });

  test('checks parameters by name and SIZE by value', () => {
    const host = new Host();
    assert.equal(talk(host, 'EHLO x\r\nMAIL FROM:<a@b> SIZE=999 BODY=8BITMIME SMTPUTF8 RET=HDRS ENVID=q\r\n').codes, '220 250 250');
    assert.equal(talk(host, 'EHLO x\r\nMAIL FROM:<a@b> SIZE=1001\r\n').codes, '220 250 552');
    assert.equal(talk(host, 'EHLO x\r\nMAIL FROM:<a@b> COLOUR=red\r\n').codes, '220 250 555');
    assert.equal(talk(host, 'EHLO x\r\nMAIL FROM:<>\r\nRCPT TO:<a@b> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;a@b\r\n').codes, '220 250 250 250');
  });

  test('answers each recipient after the dot in LMTP', () => {
    const host = new Host();
    host.lmtp = true;
    host.fates.push(TAKEN, DEFERRED, TAKEN);
    const { codes } = talk(host, 'LHLO x\r\nMAIL FROM:<a@b>\r\nRCPT TO:<1@d>\r\nRCPT TO:<2@d>\r\nRCPT TO:<3@d>\r\nDATA\r\nhi\r\n.\r\n');
    assert.equal(codes, '220 250 250 250 250 250 354 250 451 250');
    assert.equal(talk(host, 'EHLO x\r\n').codes, '220 500');
  });

  test('keeps the message and says nothing when it is to cut after the dot', () => {
    const host = new Host();
    host.fates.push(CUT);
    const { codes, next } = talk(host, `${ENVELOPE}one\r\n.\r\n`);
    assert.equal(codes, '220 250 250 250 354');
    assert.equal(next, CUT_OFF);
    assert.equal(host.kept.length, 1);
  });

  test('holds what is pipelined behind the dot until the late reply is out', () => {
    const host = new Host();
    host.late = true;
    const { codes, next, dialog } = talk(host, `${ENVELOPE}one\r\n.\r\nNOOP\r\nQUI`, 'T\r\n');
    assert.equal(codes, '220 250 250 250 354');
    assert.equal(next, WAIT);
    dialog.replies = '';
    assert.equal(dialog.finish(), END);
    assert.deepEqual(dialog.replies.split('\r\n').map((line) => line.slice(0, 3)), ['250', '250', '221', '']);
  });

  test('offers STARTTLS with a certificate and in clear alone, and reads nothing in clear behind it', () => {
    const host = new Host();
    assert.equal(talk(host, 'EHLO me\r\nSTARTTLS\r\n').codes, '220 250 500');
    host.hasTls = true;
    const { codes, next, dialog } = talk(host, 'EHLO me\r\nSTARTTLS\r\nNOOP\r\n');
    assert.match(dialog.replies, /^250-STARTTLS\r$/m);
    assert.equal(codes, '220 250 220');
    assert.equal(next, SECURE);
    const secured = new Dialog(host, true);
    assert.equal(secured.replies, '');
    secured.push(Buffer.from('EHLO me\r\nSTARTTLS\r\n'));
    assert.doesNotMatch(secured.replies, /250.STARTTLS/);
    assert.match(secured.replies, /^500 /m);
  });

  test('ends a session whose command line never ends', () => {
    assert.equal(talk(new Host(), 'x'.repeat(9000)).next, END);
  });
});

function stuffed(content: string): string {
  return content.replace(/(^|\r\n)\./g, '$1..');
}
