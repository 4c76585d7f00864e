import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ENVELOPE_8BIT, ENVELOPE_DOT_LINES, ENVELOPE_UTF8_HEADER, NOTIFY_FAILURE, NOTIFY_NEVER, NOTIFY_SUCCESS, RET_FULL, RET_HEADERS } from '../../../../../src/gateway/mail-types.js';
import { State } from '../../../../../src/gateway/outbound/pure/session-states.js';
import { PIECE_BYTES } from '../../../../../src/smtp/write-buffer.js';
import { SessionWorld, mail } from './session-world.js';

const MAIL_A = 'MAIL FROM:<anna@example.org>\r\n';
const CONTENT = 'Subject: x\r\n\r\nhello\r\n';

describe('the final dot', () => {
  const large = `Subject: big\r\n\r\n${'0123456789abcde\r\n'.repeat(20_000)}`;
  test('without the right to deliver nothing of a small content leaves', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d']));
    world.taken();
    world.mayDot = false;
    world.say('250 ok', '250 ok', '354 go');
    assert.equal(world.taken(), '');
    assert.deepEqual(world.takenLog(), ['no right 4.3.2', 'closed']);
  });
  test('is written in the same step as the look at the right: nothing else happens between the two', () => {
    for (const content of [CONTENT, large]) {
      const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d'], content));
      world.taken();
      const steps: string[] = [];
      const write = world.connection.write.bind(world.connection);
      world.connection.write = (chunks) => {
        steps.push(chunks.some((chunk) => Buffer.from(chunk).toString('latin1').endsWith('.\r\n')) ? 'dot' : 'content');
        write(chunks);
      };
      world.onMayDot = () => { steps.push('look'); };
      world.say('250 ok', '250 ok', '354 go');
      assert.deepEqual(steps.slice(-2), ['look', 'dot']);
      assert.deepEqual(steps.filter((step) => step !== 'content').length, 2);
    }
  });
  test('without the right a recipient that was refused keeps the refusal', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d', 'c@d']));
    world.mayDot = false;
    world.say('250 ok', '550 5.1.1 no', '250 ok', '354 go');
    assert.deepEqual(world.takenLog(), ['settled failed 550 5.1.1, deferred 0 4.3.2', 'closed']);
  });
  test('of a large content is asked for and sent only when all before it has left the process', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d'], large));
    world.taken();
    world.connection.holds = true;
    world.say('250 ok', '250 ok', '354 go');
    let sent = '';
    for (let i = 0; i < 100 && world.bufferedAtMayDot.length === 0; i++) {
      sent += world.taken();
      assert.ok(!sent.includes('\r\n.\r\n'), 'no dot while bytes wait');
      world.connection.bufferedBytes = 0;
      world.session.onDrain();
    }
    assert.equal(sent, large);
    assert.deepEqual(world.bufferedAtMayDot, [0]);
    assert.equal(world.taken(), '.\r\n');
    assert.equal(world.buffer.heldBytes, 0);
    assert.deepEqual(world.say('250 ok').takenLog(), ['settled delivered 250 2.0.0', 'idle']);
  });
  test('a next hop that takes less of a large content than it must for three minutes is given up: deferred, and told', () => {
    const withPiecesEvery = (everyMs: number, untilMs = 600_000, burstMs = 0): string[] => {
      const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d'], large.repeat(15)));
      world.connection.holds = true;
      world.say('250 ok', '250 ok', '354 go');
      for (let atMs = 0; atMs < untilMs && world.session.state !== State.CLOSED; atMs += 1000) {
        if (atMs % everyMs === 0 || atMs < burstMs) world.connection.bufferedBytes = 0;
        world.session.tick(atMs);
      }
      assert.equal(world.buffer.heldBytes, world.session.state === State.CLOSED ? 0 : PIECE_BYTES);
      return world.takenLog();
    };
    assert.deepEqual(withPiecesEvery(150_000), ['slow', 'settled deferred 0 4.4.2', 'closed']);
    assert.deepEqual(withPiecesEvery(60_000), []);
    // 596 B/s, and 504; then 496, for all of it.
    assert.deepEqual([withPiecesEvery(110_000, 5_000_000), withPiecesEvery(130_000, 5_000_000)], [[], []]);
    assert.deepEqual(withPiecesEvery(132_000, 5_000_000)[0], 'slow');
    // Much in ten seconds, and nothing for three minutes.
    assert.deepEqual(withPiecesEvery(1e9, 195_000, 10_000)[0], 'slow');
  });
  test('a tick goes on where no drain event comes', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d']));
    world.taken();
    world.connection.bufferedBytes = 9;
    world.say('250 ok', '250 ok', '354 go');
    assert.equal(world.taken(), '');
    world.connection.bufferedBytes = 0;
    world.session.tick(250);
    assert.equal(world.taken(), `${CONTENT}.\r\n`);
  });
  test('a refusal that comes while the content is still being sent stands, and no dot follows', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d'], large));
    world.connection.holds = true;
    world.say('250 ok', '250 ok', '354 go', '552 5.3.4 too large');
    assert.deepEqual(world.takenLog(), ['settled failed 552 5.3.4', 'closed']);
    assert.equal(world.bufferedAtMayDot.length, 0);
    assert.equal(world.buffer.heldBytes, 0);
  });
  test('a 2xx that comes while the content is still being sent is no delivery: nobody has taken a mail without its dot', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d'], large));
    world.connection.holds = true;
    world.say('250 ok', '250 ok', '354 go', '250 2.0.0 taken');
    assert.deepEqual(world.takenLog(), ['settled deferred 0 4.5.0', 'closed']);
    assert.equal(world.bufferedAtMayDot.length, 0);
  });
  test('the right is lost after a large content was sent: no dot, no delivery', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d'], large));
    world.mayDot = false;
    world.say('250 ok', '250 ok', '354 go');
    assert.ok(!world.taken().endsWith('\r\n.\r\n'));
    assert.deepEqual(world.takenLog(), ['no right 4.3.2', 'closed']);
    assert.equal(world.buffer.heldBytes, 0);
  });
});

describe('content', () => {
  const sentFor = (content: string, flags = 0): string => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d'], content, { flags }));
    world.taken();
    return world.say('250 ok', '250 ok', '354 go').taken();
  };
  test('is dot-stuffed exactly when the envelope says that it has dot lines', () => {
    const content = '.first\r\n..\r\n.\r\na.b\r\n';
    assert.equal(sentFor(content, ENVELOPE_DOT_LINES), '..first\r\n...\r\n..\r\na.b\r\n.\r\n');
    assert.equal(sentFor('a\r\n', 0), 'a\r\n.\r\n');
  });
  test('large content is dot-stuffed the same across its pieces', () => {
    const content = '.\r\n'.repeat(60_000);
    assert.equal(sentFor(content, ENVELOPE_DOT_LINES), `${'..\r\n'.repeat(60_000)}.\r\n`);
  });
  test('gets a last line end where it has none; empty content needs none', () => {
    assert.equal(sentFor('abc'), 'abc\r\n.\r\n');
    assert.equal(sentFor(''), '.\r\n');
    assert.equal(sentFor('x'.repeat(40_000)), `${'x'.repeat(40_000)}\r\n.\r\n`);
  });
  test('passes every byte value untouched', () => {
    let content = '';
    for (let i = 0; i < 256; i++) if (i !== 0 && i !== 10 && i !== 13) content += String.fromCharCode(i);
    assert.equal(sentFor(`${content}\r\n`), `${content}\r\n.\r\n`);
  });
});

describe('what the peer must offer', () => {
  test('passes DSN parameters on exactly when DSN is offered', () => {
    const recipients = [
      { address: 'b@d', notify: NOTIFY_SUCCESS | NOTIFY_FAILURE, orcpt: 'rfc822;b+40d' },
      { address: 'c@d', notify: NOTIFY_NEVER, orcpt: '' },
    ];
    const more = { recipients, ret: RET_HEADERS, envid: 'q+3D1', flags: ENVELOPE_8BIT };
    assert.equal(
      new SessionWorld().ready('PIPELINING', 'DSN', '8BITMIME').begin(mail(['b@d', 'c@d'], CONTENT, more)).taken(),
      'MAIL FROM:<anna@example.org> BODY=8BITMIME RET=HDRS ENVID=q+3D1\r\nRCPT TO:<b@d> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;b+40d\r\nRCPT TO:<c@d> NOTIFY=NEVER\r\nDATA\r\n',
    );
    assert.equal(
      new SessionWorld().ready('PIPELINING').begin(mail(['b@d', 'c@d'], CONTENT, { ...more, flags: 0, ret: RET_FULL })).taken(),
      `${MAIL_A}RCPT TO:<b@d>\r\nRCPT TO:<c@d>\r\nDATA\r\n`,
    );
  });
  test('a message over the SIZE limit fails without a byte sent, and the session stays free', () => {
    const world = new SessionWorld().ready('SIZE 10').begin(mail(['b@d', 'c@d']));
    assert.equal(world.taken(), '');
    assert.deepEqual(world.takenLog(), ['settled failed 0 5.3.4, failed 0 5.3.4']);
    assert.equal(world.session.state, State.IDLE);
  });
  test('SMTPUTF8 mail fails where it is not offered and goes as UTF-8 where it is', () => {
    const delivery = mail(['dörte@d'], CONTENT);
    const without = new SessionWorld().ready('PIPELINING').begin(delivery);
    assert.deepEqual([without.taken(), without.takenLog()], ['', ['settled failed 0 5.6.7']]);
    const utf8 = new SessionWorld().ready('PIPELINING', 'SMTPUTF8').begin(delivery).taken();
    assert.equal(Buffer.from(utf8, 'latin1').toString('utf8'), 'MAIL FROM:<anna@example.org> SMTPUTF8\r\nRCPT TO:<dörte@d>\r\nDATA\r\n');
  });
  test('a header in UTF-8 or a reverse-path needs SMTPUTF8 for all, an address for itself', () => {
    const taken = (more: Parameters<typeof mail>[2], to: readonly string[] = ['b@d']): readonly unknown[] => {
      const world = new SessionWorld().ready('PIPELINING', '8BITMIME').begin(mail(to, CONTENT, more));
      return [world.taken(), world.takenLog()];
    };
    const none = ['', ['settled failed 0 5.6.7']];
    assert.deepEqual(taken({ flags: ENVELOPE_UTF8_HEADER | ENVELOPE_8BIT }), none);
    assert.deepEqual(taken({ reversePath: 'ännä@d' }), none);
    assert.deepEqual(taken({}, ['dörte@d', 'b@d'])[0], `${MAIL_A}RCPT TO:<b@d>\r\nDATA\r\n`, 'SMTPUTF8 is not asked for where it is not offered');
  });
  test('SMTPUTF8 is asked for when something needs it, ORCPT goes in ASCII when nothing does', () => {
    const recipients = [{ address: 'b@d', notify: 0, orcpt: 'utf-8;dörte@d' }];
    const sent = (more: Parameters<typeof mail>[2]): string =>
      Buffer.from(new SessionWorld().ready('PIPELINING', 'DSN', '8BITMIME', 'SMTPUTF8').begin(mail(['b@d'], CONTENT, { recipients, ...more })).taken(), 'latin1').toString('utf8');
    assert.equal(sent({}), `${MAIL_A}RCPT TO:<b@d> ORCPT=utf-8;d\\x{F6}rte@d\r\nDATA\r\n`);
    assert.equal(sent({ flags: ENVELOPE_8BIT | ENVELOPE_UTF8_HEADER }), 'MAIL FROM:<anna@example.org> BODY=8BITMIME SMTPUTF8\r\nRCPT TO:<b@d> ORCPT=utf-8;dörte@d\r\nDATA\r\n');
  });
  test('8-bit content fails at a peer without 8BITMIME', () => {
    const without = new SessionWorld().ready('PIPELINING', 'SMTPUTF8').begin(mail(['b@d'], CONTENT, { flags: ENVELOPE_8BIT }));
    assert.deepEqual([without.taken(), without.takenLog()], ['', ['settled failed 0 5.6.3']]);
  });
  test('an address that would smuggle a command is failed, not sent', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d>\r\nRCPT TO:<evil@d', 'c@d']));
    assert.equal(world.taken(), `${MAIL_A}RCPT TO:<c@d>\r\nDATA\r\n`);
    world.say('250 ok', '250 ok', '354 go', '250 ok');
    assert.deepEqual(world.takenLog(), ['settled failed 0 5.1.3, delivered 250 2.0.0', 'idle']);
  });
  test('a thousand recipients are all named and answered', () => {
    const addresses = Array.from({ length: 1000 }, (_, i) => `recipient-with-a-long-name-${i}@a-long-domain.example.net`);
    const world = new SessionWorld().ready('PIPELINING').begin(mail(addresses));
    assert.equal(world.taken(), `${MAIL_A}${addresses.map((one) => `RCPT TO:<${one}>\r\n`).join('')}DATA\r\n`);
    world.say('250 ok', ...addresses.map(() => '250 ok'), '354 go', '250 ok');
    assert.equal(world.results.length, 1000);
  });
});
