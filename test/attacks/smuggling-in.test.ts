/**
 * Smuggling into this server: a content that some server takes for two messages, because what stands in it looks like an
 * end of DATA (RFC 5321 4.1.1.4 knows one, CRLF.CRLF), or like the end of a chunk (RFC 3030 2). Each variant is cut at
 * every byte and comes by DATA and by BDAT; nothing of the inner message is ever a message of its own, and every reply
 * belongs to a command of the client.
 *
 * Elsewhere: single bytes in long lines and all faults of the scan, test/unit/gateway/inbound/content-scan.test.ts;
 * DATA and BDAT agree on any content, test/unit/gateway/inbound/session.test.ts; one variant each as a conversation,
 * test/dialog/content.txt and test/dialog/bdat.txt; only CR LF ends a command, session.test.ts.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { VirtualDesk, bodyOf } from './virtual-desk.js';
import type { VirtualClient } from './virtual-desk.js';

/** What servers have taken for the end of a line. */
const LINE_ENDS = ['\r\n', '\n', '\r', '\r\r\n', '\n\r', '\r\n\r', '\n\n', '\r\r', '\0\r\n', '\r\0\n', '\r\n\0', '\x0b', '\x0c', '\x85', '\xe2\x80\xa8', ' \r\n', '\r\n ', '\\r\\n'];
const INNER = 'MAIL FROM:<evil@inner.example>\r\nRCPT TO:<victim@inner.example>\r\nDATA\r\nSubject: inner\r\n\r\ninner\r\n.\r\n';
const ENVELOPE = 'MAIL FROM:<a@outer.example>\r\nRCPT TO:<b@outer.example>\r\n';

/** All that could be an end, but for those that hold the one that is. */
const ENDS = LINE_ENDS.flatMap((before) => LINE_ENDS.map((after) => `${before}.${after}`)).filter((end) => !end.includes('\r\n.\r\n'));

/** RFC 5321 4.5.2 as its receiver, said anew: the content up to the only end, undefined while that has not come. */
function contentOf(wire: string): { readonly content: string; readonly rest: string } | undefined {
  const end = `\r\n${wire}`.indexOf('\r\n.\r\n');
  if (end < 0) return undefined;
  return { content: `\r\n${wire.slice(0, end)}`.replace(/\r\n\./g, '\r\n').slice(2), rest: wire.slice(end + 3) };
}

const isFaulty = (content: string): boolean => /^[ \t]|\0|\r(?!\n)|(?<!\r)\n/.test(content);

/** The text in one piece, in single bytes, and in two pieces for every place between. */
function* cutsOf(text: string): Generator<readonly number[]> {
  yield [text.length];
  yield [1];
  for (let at = 1; at < text.length; at++) yield [at, text.length - at];
}

function begun(world: VirtualDesk, more = ''): VirtualClient {
  const client = world.connect();
  client.send(`EHLO client.example\r\n${ENVELOPE}${more}`).heard();
  return client;
}

/** What was kept is the outer message, whole, or nothing at all. */
function judge(world: VirtualDesk, content: string, context: string): void {
  const kept = world.reception.kept.splice(0);
  for (const { submission } of kept) assert.equal(submission.reversePath, 'a@outer.example', context);
  assert.deepEqual(kept.map((each) => bodyOf(each.content)), isFaulty(content) ? [] : [content], context);
}

describe('what looks like an end of DATA', () => {
  test('is none, however it is cut', () => {
    assert.ok(ENDS.length > 300);
    for (const end of ENDS) {
      const wire = `Subject: outer\r\n\r\nbody${end}${INNER}`;
      const whole = contentOf(wire);
      assert.ok(whole !== undefined && whole.content.includes('evil@inner.example') && whole.rest === '', JSON.stringify(end));
      const world = new VirtualDesk();
      for (const sizes of cutsOf(wire)) {
        const context = `${JSON.stringify(end)} cut at ${String(sizes[0])}`;
        const client = begun(world, 'DATA\r\n');
        client.sendCut(Buffer.from(wire, 'latin1'), sizes);
        assert.match(client.heard(), isFaulty(whole.content) ? /^550 5\.6\.0 [^\r\n]*\r\n$/ : /^250 2\.0\.0 Ok: queued as [^\r\n]*\r\n$/, context);
        judge(world, whole.content, context);
        assert.equal(client.say('NOOP'), '250 2.0.0 Ok', context);
        client.leave();
      }
    }
  });

  test('is none at the very beginning of the content either', () => {
    for (const start of ['.\n', '.\r', '.\0\r\n', '.\r\r\n', '. \r\n', '..\r\n', '.\x0b', '.\x85']) {
      const wire = `${start}${INNER}`;
      const whole = contentOf(wire);
      assert.ok(whole?.rest === '', JSON.stringify(start));
      const world = new VirtualDesk();
      for (const sizes of cutsOf(wire)) {
        const client = begun(world, 'DATA\r\n');
        client.sendCut(Buffer.from(wire, 'latin1'), sizes);
        assert.equal(client.codes(), isFaulty(whole.content) ? '550' : '250', JSON.stringify(start));
        judge(world, whole.content, `${JSON.stringify(start)} cut at ${String(sizes[0])}`);
        client.leave();
      }
    }
  });

  test('hides no message behind a refused content: what follows the true end are the client\'s own commands, in step', () => {
    const world = new VirtualDesk();
    const wire = `body\n.\n${INNER}RSET\r\nNOOP\r\nMAIL FROM:<c@outer.example>\r\n`;
    for (const sizes of cutsOf(wire)) {
      const client = begun(world, 'DATA\r\n');
      assert.equal(client.sendCut(Buffer.from(wire, 'latin1'), sizes).codes(), '550 250 250 250', String(sizes[0]));
      assert.equal(world.reception.kept.length, 0);
      assert.equal(client.session.transaction?.reversePath, 'c@outer.example');
      client.leave();
    }
  });
});

describe('BDAT', () => {
  test('takes no end of DATA, no command and no other chunk for its own, however chunks and reads are cut', () => {
    for (const inside of [`body\r\n.\r\n${INNER}`, `body\r\nBDAT 3 LAST\r\nx\r\n${INNER}`, `BDAT 0 LAST\r\nRSET\r\n${INNER}`, `body\r\n..\r\n.\r\n`]) {
      for (let first = 0; first <= inside.length; first += inside.length > 60 ? 7 : 1) {
        const wire = `BDAT ${String(first)}\r\n${inside.slice(0, first)}BDAT ${String(inside.length - first)} LAST\r\n${inside.slice(first)}`;
        const world = new VirtualDesk();
        for (const sizes of cutsOf(wire)) {
          const client = begun(world);
          const context = `${JSON.stringify(wire)} cut at ${String(sizes[0])}`;
          assert.equal(client.sendCut(Buffer.from(wire, 'latin1'), sizes).codes(), '250 250', context);
          judge(world, inside, context);
          client.leave();
        }
      }
    }
  });

  test('with a bare line end is refused as DATA is, also where the line end lies between two chunks', () => {
    for (const inside of ENDS.flatMap((end) => [`body${end}`, `body${end}\r\n`]).filter(isFaulty)) {
      const world = new VirtualDesk();
      for (let first = 0; first <= inside.length; first++) {
        const client = begun(world);
        client.send(`BDAT ${String(first)}\r\n${inside.slice(0, first)}BDAT ${String(inside.length - first)} LAST\r\n${inside.slice(first)}`);
        assert.match(client.codes(), /^(250 550|550 503)$/, `${JSON.stringify(inside)} in two at ${String(first)}`);
        assert.equal(world.reception.kept.length, 0);
        client.leave();
      }
    }
  });

  test('that nobody wants is read to its length: its octets are never commands', () => {
    const world = new VirtualDesk();
    for (const [before, code] of [['', 503], ['EHLO a\r\n', 503], ['EHLO a\r\nMAIL FROM:<a@outer.example>\r\n', 554]] as const) {
      const wire = `BDAT ${String(INNER.length)} LAST\r\n${INNER}NOOP\r\n`;
      for (const sizes of cutsOf(wire)) {
        const client = world.connect();
        client.send(before).heard();
        assert.equal(client.sendCut(Buffer.from(wire, 'latin1'), sizes).codes(), `${String(code)} 250`);
        client.leave();
      }
    }
    assert.equal(world.reception.kept.length, 0);
  });

  test('whose length is no number ends the session: nothing behind it is obeyed', () => {
    const lengths = ['', ' ', ' -1', ' +1', ' 0x10', ' 1e3', ' 1.0', ' 1,0', ' 9'.padEnd(20, '9'), ' \xc2\xb2', ' 5 last last', ' 5 LASTING', ' 5LAST', ' LAST', ' LAST 5'];
    for (const length of lengths) {
      const world = new VirtualDesk();
      const client = begun(world);
      client.send(`BDAT${length}\r\n${INNER}`);
      assert.match(client.heard(), /^501 5\.5\.4 [^\r\n]*\r\n421 4\.5\.0 [^\r\n]*\r\n$/, JSON.stringify(length));
      assert.equal(client.connection.isOver, true);
      assert.equal(world.reception.kept.length, 0);
    }
  });
});
