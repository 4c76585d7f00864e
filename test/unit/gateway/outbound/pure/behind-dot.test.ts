/** An envelope behind the final dot of the message before (RFC 2920 3.1): one write, and nobody harmed when it goes wrong. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { State } from '../../../../../src/gateway/outbound/pure/session-states.js';
import { SessionWorld, mail } from './session-world.js';

const CONTENT = 'Subject: x\r\n\r\nhello\r\n';
const ENVELOPE_C = 'MAIL FROM:<anna@example.org>\r\nRCPT TO:<c@d>\r\nDATA\r\n';

/** The first message's dot has gone out, with the envelope of a second, to c@d. */
function followed({ split = false, bearsFollowers = true } = {}): SessionWorld {
  const world = new SessionWorld({ split }).ready('PIPELINING').begin(mail(['b@d']));
  world.bearsFollowers = bearsFollowers;
  world.behindDot = mail(['c@d'], 'second\r\n');
  world.taken();
  world.say('250 ok', '250 ok', '354 go');
  assert.deepEqual(world.connection.writes, [`${CONTENT}.\r\n${ENVELOPE_C}`]);
  world.taken();
  return world;
}

describe('an envelope behind the dot', () => {
  for (const split of [false, true]) {
    test(`leaves in one write with it, and its content when the replies are there${split ? ', byte by byte' : ''}`, () => {
      const world = followed({ split });
      world.say('250 taken');
      assert.deepEqual(world.takenLog(), ['settled delivered 250 2.0.0'], 'not idle');
      world.say('250 ok', '250 ok', '354 go');
      assert.equal(world.taken(), 'second\r\n.\r\n');
      world.say('250 taken');
      assert.deepEqual(world.takenLog(), ['settled delivered 250 2.0.0', 'idle']);
      assert.equal(world.session.transactions, 2);
    });
  }

  test('a third may follow the second', () => {
    const world = followed();
    world.behindDot = mail(['c@d'], 'third\r\n');
    world.say('250 taken', '250 ok', '250 ok', '354 go');
    assert.equal(world.taken(), `second\r\n.\r\n${ENVELOPE_C}`);
    world.say('250 taken', '250 ok', '250 ok', '354 go');
    assert.equal(world.taken(), 'third\r\n.\r\n');
  });

  test('goes on when the message in front is refused', () => {
    const world = followed().say('550 5.7.1 no');
    assert.deepEqual(world.takenLog(), ['settled failed 550 5.7.1']);
    assert.equal(world.say('250 ok', '250 ok', '354 go').taken(), 'second\r\n.\r\n');
  });

  test('is handed on untried when the dot in front gets no answer', () => {
    const world = followed();
    world.session.onClose('reset');
    assert.deepEqual(world.takenLog(), ['settled deferred 0 4.4.2 dot-unanswered', 'stale', 'closed']);
  });

  test('is handed on untried when the peer takes its leave with the dot', () => {
    assert.deepEqual(followed().say('421 4.3.2 bye').takenLog(), ['settled deferred 421 4.3.2', 'stale', 'closed']);
  });

  test('is handed on untried when the connection ends before its first reply', () => {
    const world = followed().say('250 taken');
    world.session.onClose('reset');
    assert.deepEqual(world.takenLog(), ['settled delivered 250 2.0.0', 'stale', 'closed']);
  });

  test('never fails by commands that were not understood: the peer may have misread where they stood', () => {
    const replies = ['250 ok', '250 ok', '354 go'];
    for (const [at, code] of [[0, 500], [0, 503], [1, 501], [2, 503]] as const) {
      const heard = [...replies.slice(0, at), `${code} 5.5.1 what?`];
      assert.deepEqual(followed().say('250 taken', ...heard).takenLog(), ['settled delivered 250 2.0.0', 'stale, odd', 'closed'], `${at} ${code}`);
    }
  });

  test('fails as any other where the peer is known to bear it', () => {
    const world = followed().say('250 taken', '550 5.7.1 no such sender', '503 5.5.1 no', '503 5.5.1 no');
    assert.deepEqual(world.takenLog(), ['settled delivered 250 2.0.0', 'settled failed 550 5.7.1']);
    assert.equal(world.taken(), 'RSET\r\n');
  });

  describe('of a peer that has not had one yet', () => {
    const trial = (...replies: string[]): string[] => followed({ bearsFollowers: false }).say(...replies).takenLog();

    test('never fails the message in front of it, nor by any refusal itself', () => {
      for (const code of [554, 452, 421]) assert.deepEqual(trial(`${code} 5.5.0 out of sync`), ['stale, odd', 'stale, odd', 'closed']);
      for (const replies of [['550 no'], ['250 ok', '503 no'], ['250 ok', '250 ok', '451 no']]) {
        assert.deepEqual(trial('250 taken', ...replies), ['settled delivered 250 2.0.0', 'stale, odd', 'closed']);
      }
    });

    test('is odd when the connection ends with it, or no answer comes', () => {
      const world = followed({ bearsFollowers: false });
      world.session.onClose('reset');
      assert.deepEqual(world.takenLog(), ['settled deferred 0 4.4.2 dot-unanswered', 'stale, odd', 'closed']);
      const dropped = followed({ bearsFollowers: false }).say('250 taken');
      dropped.session.tick(5_000);
      assert.deepEqual(dropped.takenLog(), ['settled delivered 250 2.0.0', 'stale, odd', 'closed']);
    });

    test('has its recipient refused as any other', () => {
      assert.deepEqual(trial('250 taken', '250 ok', '550 5.1.1 nobody', '503 no recipients', '250 reset'), ['settled delivered 250 2.0.0', 'settled failed 550 5.1.1', 'idle']);
    });

    test('is odd however it ends before its content is asked for, and no attempt', () => {
      const world = followed({ bearsFollowers: false }).say('250 taken', '250 ok');
      world.session.onClose('reset');
      assert.deepEqual(world.takenLog(), ['settled delivered 250 2.0.0', 'stale, odd', 'closed']);
      for (const replies of [['250 ok', '421 bye'], ['300 what'], ['250 ok', '250 ok', '250 ok']]) {
        assert.deepEqual(trial('250 taken', ...replies), ['settled delivered 250 2.0.0', 'stale, odd', 'closed'], replies.join());
      }
    });

    test('does not fail the message in front either when that is refused late', () => {
      const world = followed({ bearsFollowers: false });
      world.session.tick(1_000);
      assert.deepEqual(world.takenLog(), ['stale, odd']);
      assert.deepEqual(world.say('554 5.5.0 pipelining').takenLog(), ['stale, odd', 'closed']);
    });

    test('is nothing odd where all goes well', () => {
      assert.deepEqual(trial('250 taken', '250 ok', '250 ok', '354 go', '250 taken'), ['settled delivered 250 2.0.0', 'settled delivered 250 2.0.0', 'idle']);
    });
  });

  test('is handed on when the peer has dropped it', () => {
    const world = followed().say('250 taken');
    world.session.tick(4_999);
    assert.deepEqual(world.takenLog(), ['settled delivered 250 2.0.0']);
    world.session.tick(5_000);
    assert.deepEqual(world.takenLog(), ['stale', 'closed']);
  });

  test('does not wait for a slow dot, and the connection ends with its answer', () => {
    const world = followed();
    world.session.tick(999);
    assert.deepEqual(world.takenLog(), []);
    world.session.tick(1_000);
    assert.deepEqual([world.takenLog(), world.session.state], [['stale'], State.FINAL]);
    assert.deepEqual(world.say('250 taken', '250 ok', '250 ok', '354 go').takenLog(), ['settled delivered 250 2.0.0', 'closed']);
    assert.equal(world.taken(), '', 'no content, no dot');
  });

  test('that did not wait ends the connection with the answer to a slow dot, when that comes alone', () => {
    const world = followed();
    world.session.tick(1_000);
    world.takenLog();
    assert.deepEqual(world.say('250 taken').takenLog(), ['settled delivered 250 2.0.0', 'closed']);
  });

  test('has its own right to the dot asked for at its own dot', () => {
    const world = followed();
    world.mayDot = false;
    world.say('250 taken', '250 ok', '250 ok', '354 go');
    assert.equal(world.taken(), '');
    assert.deepEqual(world.takenLog(), ['settled delivered 250 2.0.0', 'no right 4.3.2', 'closed']);
  });

  test('is taken only when the message in front has its right', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d']));
    const next = mail(['c@d']);
    world.behindDot = next;
    world.mayDot = false;
    world.say('250 ok', '250 ok', '354 go');
    assert.equal(world.behindDot, next);
  });

  test('that can not be sent to this peer at all is handed on', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d']));
    world.behindDot = mail(['b\u0007@d']);
    world.taken();
    world.say('250 ok', '250 ok', '354 go');
    assert.equal(world.taken(), `${CONTENT}.\r\n`);
    assert.deepEqual(world.takenLog(), ['stale']);
    assert.deepEqual(world.say('250 taken').takenLog(), ['settled delivered 250 2.0.0', 'idle']);
  });

  test('is asked for only with PIPELINING, by SMTP, behind a small content', () => {
    const large = mail(['b@d'], `${'0123456789abcde\r\n'.repeat(2_000)}`);
    for (const world of [
      new SessionWorld().ready().begin(mail(['b@d'])).say('250 ok').say('250 ok').say('354 go'),
      new SessionWorld({ protocol: 'lmtp' }).ready('PIPELINING').begin(mail(['b@d'])).say('250 ok', '250 ok', '354 go'),
      new SessionWorld().ready('PIPELINING').begin(large).say('250 ok', '250 ok', '354 go'),
    ]) {
      assert.equal(world.session.state, State.FINAL);
      assert.equal(world.dotsAsked, 0);
    }
  });
});
