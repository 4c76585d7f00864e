/**
 * Smuggling out of this server: what was taken as one message must be one message at the next hop, byte for byte, whatever
 * it offers, and no address or parameter may become a command there. Content goes the whole way: in by DATA or BDAT, out by
 * the session with the next hop; what that wrote is read by an SMTP receiver of this file.
 *
 * BDAT is not used towards next hops (src/smtp/capabilities.ts passes CHUNKING over), so that dot-stuffing is all.
 * Elsewhere: pieces, sizes and single rules, test/unit/gateway/outbound/pure/smtp-session-content.test.ts.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';

import { SessionWorld, mail } from '../unit/gateway/outbound/pure/session-world.js';
import { PIECE_BYTES, SMALL_CONTENT_BYTES } from '../../src/smtp/write-buffer.js';
import { VirtualDesk } from './virtual-desk.js';

const OFFERS = [[], ['PIPELINING'], ['PIPELINING', 'CHUNKING'], ['CHUNKING', 'BINARYMIME'], ['PIPELINING', '8BITMIME', 'SMTPUTF8', 'DSN', 'SIZE 99999999', 'CHUNKING']];

interface Heard {
  readonly commands: readonly string[];
  readonly contents: readonly string[];
  /** What came behind the last command or content. */
  readonly rest: string;
}

/** RFC 5321 as its receiver: lines end with CRLF, the content with CRLF.CRLF; bare CR or LF are octets like others. */
function asReceiver(wire: string): Heard {
  const commands: string[] = [];
  const contents: string[] = [];
  let rest = wire;
  for (let end = rest.indexOf('\r\n'); end >= 0; end = rest.indexOf('\r\n')) {
    const command = rest.slice(0, end);
    commands.push(command);
    rest = rest.slice(end + 2);
    if (command !== 'DATA') continue;
    const dot = `\r\n${rest}`.indexOf('\r\n.\r\n');
    if (dot < 0) break;
    contents.push(`\r\n${rest.slice(0, dot)}`.replace(/\r\n\./g, '\r\n').slice(2));
    rest = rest.slice(dot + 3);
  }
  return { commands, contents, rest };
}

interface Taken {
  readonly content: Buffer;
  readonly flags: number;
}

/** The content as the queue gets it from reception; undefined when it was refused. */
function takenIn(content: string, byChunks: boolean): Taken | undefined {
  const world = new VirtualDesk({ hopsMax: 1000 });
  const client = world.connect();
  client.send('EHLO a\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n');
  if (byChunks) client.send(`BDAT ${String(content.length)} LAST\r\n${content}`);
  else client.send(`DATA\r\n${`\r\n${content}`.replaceAll('\r\n.', '\r\n..').slice(2)}.\r\n`);
  const kept = world.reception.kept[0];
  client.leave();
  return kept === undefined ? undefined : { content: kept.content, flags: kept.submission.flags };
}

/** All that is written to a next hop for this content, which it takes. */
function sentOut({ content, flags }: Taken, offers: readonly string[]): string {
  const world = new SessionWorld().ready(...offers).begin(mail(['c@d.example'], content.toString('latin1'), { flags }));
  let wire = world.taken();
  const replies = offers.includes('PIPELINING') ? [['250 ok', '250 ok', '354 go']] : [['250 ok'], ['250 ok'], ['354 go']];
  for (const reply of replies) wire += world.say(...reply).taken();
  wire += world.say('250 taken').taken();
  assert.match(world.takenLog()[0] ?? '', /^settled delivered 250/);
  return wire;
}

function judge(content: string, byChunks: boolean, offers: readonly string[]): void {
  const taken = takenIn(content, byChunks);
  if (taken === undefined) return assert.match(content, /\0|\r(?!\n)|(?<!\r)\n/, 'only what is broken is refused');
  assert.doesNotMatch(taken.content.toString('latin1'), /\0|\r(?!\n)|(?<!\r)\n/, 'what is taken is sound');
  const is8Bit = /[\x80-\xff]/.test(content);
  const heard = asReceiver(sentOut(taken, is8Bit ? [...offers, '8BITMIME'] : offers));
  assert.deepEqual(heard.contents, [taken.content.toString('latin1')]);
  assert.ok(taken.content.toString('latin1').endsWith(content), 'nothing of the content was changed');
  assert.deepEqual(heard.commands.map((command) => command.slice(0, 4)), ['MAIL', 'RCPT', 'DATA']);
  assert.equal(heard.rest, '');
}

const INNER = '.\r\nMAIL FROM:<evil@inner.example>\r\nRCPT TO:<victim@inner.example>\r\nDATA\r\ninner\r\n.\r\n';

describe('a content that is taken is one message at the next hop', () => {
  test('whatever stands in it, by DATA or BDAT, whatever the next hop offers', () => {
    const contents = [
      INNER, `body\r\n${INNER}`, `.\r\n${INNER}`, `..\r\n${INNER}`, `body\r\n..\r\n...\r\n${INNER}`, `\r\n${INNER}`, '.\r\n', '..\r\n', '\r\n', `BDAT 0 LAST\r\n${INNER}`,
      'body\r\n.', 'body\r\n.\r\n.\r\n.\r\n', `body\r\n.x\r\n.${INNER}`, `\xff\r\n.\xfe\r\n${INNER}`, `body\n${INNER}`, `body\r${INNER}`, `body\r\n.\nx\r\n${INNER}`, `body\0\r\n${INNER}`,
    ].map((each) => (each.endsWith('\r\n') ? each : `${each}\r\n`));
    for (const content of contents) for (const byChunks of [false, true]) for (const offers of OFFERS) judge(content, byChunks, offers);
  });

  test('of any pieces', () => {
    const piece = fc.constantFrom('.', '\r\n', '\r\n.\r\n', 'x', '\r\n..', 'QUIT\r\n', '\r', '\n', '\0', '\r\n.', 'MAIL FROM:<evil@inner.example>\r\n', '\xff', 'y'.repeat(1000));
    fc.assert(fc.property(fc.array(piece, { maxLength: 40, size: 'max' }), fc.boolean(), fc.constantFrom(...OFFERS), (pieces, byChunks, offers) => {
      judge(`${pieces.join('')}\r\n`, byChunks, offers);
    }), { numRuns: 3000 });
  });

  test('wherever a dot line stands in a content of several writes', () => {
    const header = takenIn('', true)?.content.length ?? 0;
    for (const border of [SMALL_CONTENT_BYTES, PIECE_BYTES, 2 * PIECE_BYTES]) {
      for (let off = -12; off <= 4; off++) {
        // The dot of the inner message stands at border + off.
        const content = `${'x'.repeat(border + off - header - 2)}\r\n${INNER}${'y'.repeat(100)}\r\n`;
        judge(content, off % 2 === 0, ['PIPELINING']);
        // One within a line, where a write may begin.
        judge(`${'x'.repeat(border + off - header)}.${'y'.repeat(100)}\r\n${INNER}`, off % 2 === 0, ['PIPELINING']);
      }
    }
  });
});

describe('an envelope', () => {
  test('with a control character in an address never reaches a next hop; the others of it do', () => {
    for (let code = 0; code < 0x20; code++) controlCharacter(String.fromCharCode(code));
    for (const text of ['\x7f', '\r\n', '\r\nDATA\r\n', '>\r\nRCPT TO:<victim@inner.example', '\n.\n', '\ud800']) controlCharacter(text);
  });

  test('gets no parameter more out of the value of one', () => {
    for (const value of ['x NOTIFY=NEVER', 'x\tSIZE=1', 'x> BODY=8BITMIME', ' ', 'x\r\nDATA']) {
      const more = { envid: value, recipients: [{ address: 'good@d.example', notify: 0, orcpt: `rfc822;${value}` }] };
      const { commands } = asReceiver(new SessionWorld().ready('PIPELINING', 'DSN').begin(mail([''], 'x\r\n', more)).taken());
      assert.deepEqual(commands, ['MAIL FROM:<anna@example.org>', 'RCPT TO:<good@d.example>', 'DATA'], JSON.stringify(value));
    }
  });

  function controlCharacter(text: string): void {
    const context = JSON.stringify(text);
    for (const offers of [['PIPELINING', 'DSN', 'SMTPUTF8', '8BITMIME'], ['DSN', 'SMTPUTF8', '8BITMIME']]) {
      const sender = new SessionWorld().ready(...offers).begin(mail(['c@d.example'], 'x\r\n', { reversePath: `a${text}b@c.example` }));
      assert.equal(sender.taken(), '', context);
      const recipients = [`a${text}b@d.example`, 'good@d.example'].map((address) => ({ address, notify: 0, orcpt: '' }));
      const both = new SessionWorld().ready(...offers).begin(mail(['', ''], 'x\r\n', { recipients }));
      let wire = both.taken();
      for (let i = 0; i < 3 && !offers.includes('PIPELINING'); i++) wire += both.say('250 ok').taken();
      assert.deepEqual(asReceiver(wire).commands, ['MAIL FROM:<anna@example.org>', 'RCPT TO:<good@d.example>', 'DATA'], context);
      const parameters = { envid: `q${text}x`, recipients: [{ address: 'good@d.example', notify: 0, orcpt: `rfc822;x${text}y` }] };
      wire = new SessionWorld().ready('PIPELINING', 'DSN', 'SMTPUTF8', '8BITMIME').begin(mail([''], 'x\r\n', parameters)).taken();
      const commands = asReceiver(wire).commands.map((command) => command.replace(/ (ENVID|ORCPT)=[\x21-\x7e]+/, ''));
      assert.deepEqual(commands, ['MAIL FROM:<anna@example.org>', 'RCPT TO:<good@d.example>', 'DATA'], context);
    }
  }

  test('is asked at reception already: no control character comes in by any command', () => {
    for (let code = 0; code < 0xa0; code++) {
      if (code >= 0x20 && code < 0x7f) continue;
      const character = Buffer.from(String.fromCharCode(code), 'utf8').toString('latin1');
      const world = new VirtualDesk({ xclientNetworks: ['127.0.0.0/8'], xclientLogin: true });
      const client = world.connect();
      client.send('EHLO a\r\n').heard();
      const lines = [`EHLO a${character}b`, `XCLIENT NAME=a${character}b`, `MAIL FROM:<a${character}b@c.example>`, 'MAIL FROM:<a@c.example> SMTPUTF8', `RCPT TO:<a${character}b@c.example>`, `RCPT TO:<a@c.example> ORCPT=rfc822;a${character}b`, `RCPT TO:<"a\\${character}b"@c.example>`, `NOOP ${character}`];
      // A line end is one wherever it stands: what is behind it is a line of its own, and no command either.
      const codes = lines.map((line) => client.send(`${line}\r\n`).codes());
      const wanted = lines.map((_line, index) => (index === 3 ? '250' : '501'));
      assert.deepEqual(codes, wanted, JSON.stringify(character));
      client.leave();
    }
  });
});

describe('a next hop', () => {
  test('that answers ahead of what it is asked gets no content, and no message is taken for delivered', () => {
    for (const more of ['250 taken', '250 one\r\n250 two\r\n250 three', '354 go\r\n250 taken', '221 bye', '250-half']) {
      const world = new SessionWorld().ready('PIPELINING').begin(mail(['c@d.example']));
      world.taken();
      world.say(`250 ok\r\n${more}\r\n${more}\r\n${more}`);
      assert.ok(!world.log.some((line) => line.includes('delivered')), more);
      assert.equal(world.taken(), '', more);
    }
  });
});
