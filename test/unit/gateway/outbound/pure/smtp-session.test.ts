import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DEFAULT_TIMEOUTS, STATE_DOING, STATE_NAME, State, isValidTransition } from '../../../../../src/gateway/outbound/pure/session-states.js';
import { SessionWorld, mail } from './session-world.js';

const MAIL_A = 'MAIL FROM:<anna@example.org>\r\n';
const CONTENT = 'Subject: x\r\n\r\nhello\r\n';

const STATE_COUNT = Object.keys(State).length;

test('allows exactly the transitions drawn in the diagram', () => {
  const drawn = new Set([
    'CONNECTING GREETING', 'GREETING HELLO', 'HELLO HELO_ONLY', 'HELLO IDLE', 'HELO_ONLY IDLE', 'IDLE MAIL', 'IDLE QUITTING',
    'MAIL RCPT', 'MAIL RESET', 'RCPT RCPT', 'RCPT DATA', 'RCPT RESET', 'DATA CONTENT', 'DATA LONE_DOT', 'DATA RESET',
    'CONNECTING SECURING', 'HELLO STARTTLS', 'STARTTLS SECURING', 'SECURING GREETING', 'SECURING HELLO',
    'HELLO AUTH', 'AUTH AUTH', 'AUTH IDLE',
    'CONTENT FINAL', 'FINAL FINAL', 'FINAL IDLE', 'FINAL MAIL', 'LONE_DOT RESET', 'RESET IDLE',
  ]);
  for (let from = 0; from < STATE_COUNT; from++) {
    for (let to = 0; to < STATE_COUNT; to++) {
      const name = `${STATE_NAME[from] ?? ''} ${STATE_NAME[to] ?? ''}`;
      const expected = to === State.CLOSED ? from !== State.CLOSED : drawn.has(name);
      assert.equal(isValidTransition(from as State, to as State), expected, name);
    }
  }
  assert.equal(STATE_NAME.length, STATE_COUNT);
  assert.equal(STATE_DOING.length, STATE_COUNT);
  assert.equal(DEFAULT_TIMEOUTS.length, STATE_COUNT);
});

for (const split of [false, true]) {
  describe(split ? 'replies byte by byte' : 'replies whole', () => {
    test('speaks step by step to a peer without PIPELINING', () => {
      const world = new SessionWorld({ split }).ready('SIZE 1000');
      world.begin(mail(['b@d', 'c@d']));
      assert.equal(world.taken(), `MAIL FROM:<anna@example.org> SIZE=${CONTENT.length}\r\n`);
      assert.equal(world.say('250 ok').taken(), 'RCPT TO:<b@d>\r\n');
      assert.equal(world.say('250 ok').taken(), 'RCPT TO:<c@d>\r\n');
      assert.equal(world.say('250 ok').taken(), 'DATA\r\n');
      assert.equal(world.say('354 go').taken(), `${CONTENT}.\r\n`);
      world.say('250 2.0.0 queued as 7');
      assert.deepEqual(world.takenLog(), ['settled delivered 250 2.0.0, delivered 250 2.0.0', 'idle']);
      assert.equal(world.results[0]?.text, '250 2.0.0 queued as 7');
    });

    test('sends MAIL, every RCPT and DATA in one write to a peer with PIPELINING', () => {
      const world = new SessionWorld({ split }).ready('PIPELINING');
      world.begin(mail(['b@d', 'c@d']));
      assert.deepEqual(world.connection.writes, [`${MAIL_A}RCPT TO:<b@d>\r\nRCPT TO:<c@d>\r\nDATA\r\n`]);
      world.taken();
      world.say('250 ok', '250 ok', '250 ok', '354 go');
      assert.deepEqual(world.connection.writes, [`${CONTENT}.\r\n`]);
      world.say('250 ok');
      assert.deepEqual(world.takenLog(), ['settled delivered 250 2.0.0, delivered 250 2.0.0', 'idle']);
    });

    test('keeps the refusal of one recipient and delivers to the other', () => {
      const world = new SessionWorld({ split }).ready('PIPELINING').begin(mail(['b@d', 'c@d', 'e@d']));
      world.say('250 ok', '550 5.1.1 no b', '250 ok', '450 later', '354 go', '250 ok');
      assert.deepEqual(world.takenLog(), ['settled failed 550 5.1.1, delivered 250 2.0.0, deferred 450 4.2.0', 'idle']);
    });

    test('answers 354 with a lone dot when every recipient was refused, then RSET', () => {
      const world = new SessionWorld({ split }).ready('PIPELINING').begin(mail(['b@d']));
      world.taken();
      world.say('250 ok', '550 5.1.1 no', '354 go');
      assert.equal(world.taken(), '.\r\n');
      assert.deepEqual(world.takenLog(), ['settled failed 550 5.1.1']);
      assert.equal(world.say('554 no valid recipients').taken(), 'RSET\r\n');
      world.say('250 ok');
      assert.deepEqual(world.takenLog(), ['idle']);
    });

    test('sends RSET, not DATA, step by step when every recipient was refused', () => {
      const world = new SessionWorld({ split }).ready().begin(mail(['b@d']));
      world.say('250 ok');
      world.taken();
      assert.equal(world.say('550 5.1.1 no').taken(), 'RSET\r\n');
      assert.deepEqual(world.takenLog(), ['settled failed 550 5.1.1']);
      world.say('250 ok');
      assert.deepEqual(world.takenLog(), ['idle']);
    });

    test('a refused MAIL decides all recipients, and pipelined replies behind it are taken off', () => {
      const world = new SessionWorld({ split }).ready('PIPELINING').begin(mail(['b@d', 'c@d']));
      world.taken();
      world.say('451 4.7.1 greylisted', '503 no mail', '250 odd');
      assert.deepEqual(world.takenLog(), []);
      assert.equal(world.say('503 no mail').taken(), 'RSET\r\n');
      assert.deepEqual(world.takenLog(), ['settled deferred 451 4.7.1, deferred 451 4.7.1']);
      world.say('250 ok').queue(mail(['b@d']));
      assert.deepEqual(world.takenLog(), ['idle']);
    });

    test('a refused MAIL step by step is followed by RSET', () => {
      const world = new SessionWorld({ split }).ready().begin(mail(['b@d']));
      world.taken();
      assert.equal(world.say('550 5.7.1 no').taken(), 'RSET\r\n');
      assert.deepEqual(world.takenLog(), ['settled failed 550 5.7.1']);
    });

    test('DATA refused after some recipients were accepted decides only those', () => {
      const world = new SessionWorld({ split }).ready('PIPELINING').begin(mail(['b@d', 'c@d']));
      world.taken();
      assert.equal(world.say('250 ok', '250 ok', '550 5.1.1 no', '451 4.3.0 disk').taken(), 'RSET\r\n');
      assert.deepEqual(world.takenLog(), ['settled deferred 451 4.3.0, failed 550 5.1.1']);
    });

    test('a refusal of the content is the result of all, and the session goes on', () => {
      const world = new SessionWorld({ split }).ready('PIPELINING').begin(mail(['b@d', 'c@d']));
      world.say('250 ok', '250 ok', '250 ok', '354 go', '554 5.6.0 virus');
      assert.deepEqual(world.takenLog(), ['settled failed 554 5.6.0, failed 554 5.6.0', 'idle']);
    });

    test('LMTP: says LHLO and takes one reply for each accepted recipient', () => {
      const world = new SessionWorld({ split, protocol: 'lmtp' });
      world.session.onOpen();
      assert.equal(world.say('220 hi').taken(), 'LHLO gw.test\r\n');
      world.say('250-hi', '250 PIPELINING').begin(mail(['b@d', 'c@d', 'e@d']));
      world.say('250 ok', '250 ok', '550 5.1.1 no', '250 ok', '354 go', '250 2.1.5 stored');
      assert.deepEqual(world.takenLog(), ['idle']);
      world.say('452 4.2.2 full');
      assert.deepEqual(world.takenLog(), ['settled delivered 250 2.1.5, failed 550 5.1.1, deferred 452 4.2.2', 'idle']);
    });

    test('LMTP: a connection lost between the replies leaves only the rest unanswered', () => {
      const world = new SessionWorld({ split, protocol: 'lmtp' }).ready('PIPELINING').begin(mail(['b@d', 'c@d']));
      world.say('250 ok', '250 ok', '250 ok', '354 go', '250 2.1.5 stored');
      world.session.onClose('ECONNRESET');
      assert.deepEqual(world.takenLog(), ['settled delivered 250 2.1.5, deferred 0 4.4.2 dot-unanswered', 'closed']);
    });

    test('falls back to HELO when EHLO is not known, and then offers nothing', () => {
      for (const code of [500, 501, 502, 504]) {
        const world = new SessionWorld({ split });
        world.session.onOpen();
        assert.equal(world.say('220-hi', '220 there').taken(), 'EHLO gw.test\r\n');
        assert.equal(world.say(`${code} what`).taken(), 'HELO gw.test\r\n');
        world.say('250 hi');
        assert.deepEqual(world.takenLog(), ['idle']);
        assert.equal(world.begin(mail(['b@d'])).taken(), MAIL_A);
      }
    });

    test('another refusal of EHLO is one of the host, in its own words, and HELO is not tried', () => {
      for (const [said, log] of [['550 5.7.1 you are on a list', 'closed 2 550 4.7.1'], ['554 no', 'closed 2 554 4.0.0'], ['530 5.7.0 TLS first', 'closed 2 530 4.7.0']] as const) {
        const world = new SessionWorld({ split });
        world.session.onOpen();
        assert.equal(world.say('220 hi', said).taken(), 'EHLO gw.test\r\n');
        assert.deepEqual([world.takenLog(), world.whys], [[log], [said]]);
      }
    });

    test('a HELO that has no answer is told with what was said to EHLO', () => {
      const ends: readonly ((world: SessionWorld) => void)[] = [
        (world) => { world.session.onClose('closed by the peer'); },
        (world) => { world.session.tick(300_000); },
        (world) => { world.say('what'); },
      ];
      for (const end of ends) {
        const world = new SessionWorld({ split });
        world.session.onOpen();
        world.say('220 hi', '501 5.7.1 no name of yours');
        end(world);
        assert.match(world.whys.join(), /while waiting for the reply to HELO.*, behind this one to EHLO: 501 5\.7\.1 no name of yours$/);
      }
    });
  });
}

describe('421', () => {
  const before: [string, string[]][] = [
    ['to MAIL', []],
    ['to RCPT', ['250 ok']],
    ['to DATA', ['250 ok', '250 ok']],
    ['to the dot', ['250 ok', '250 ok', '354 go']],
  ];
  for (const [where, replies] of before) {
    test(`${where} defers and closes`, () => {
      const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d']));
      world.say(...replies, '421 4.3.2 going down');
      // Before the dot of the first message the peer is told to take no mail for now.
      assert.deepEqual(world.takenLog(), ['settled deferred 421 4.3.2', where === 'to the dot' ? 'closed' : 'closed 2 421 4.3.2']);
      assert.ok(world.connection.isDestroyed);
    });
  }
  test('to RCPT keeps the refusals before it', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d', 'c@d', 'e@d']));
    world.say('250 ok', '550 5.1.1 no', '421 bye');
    assert.deepEqual(world.takenLog(), ['settled failed 550 5.1.1, deferred 421 4.3.2, deferred 421 4.3.2', 'closed 2 421 4.3.2']);
  });
  test('to a later message says nothing of the peer', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d']));
    world.say('250 ok', '250 ok', '354 go', '250 2.0.0 taken').begin(mail(['b@d'])).say('250 ok', '421 enough');
    assert.deepEqual(world.takenLog(), ['settled delivered 250 2.0.0', 'idle', 'settled deferred 421 4.3.2', 'closed']);
  });
  test('while idle closes without a result', () => {
    const world = new SessionWorld().ready().say('421 idle too long');
    assert.deepEqual(world.takenLog(), ['closed']);
  });
  test('as the greeting, or to EHLO, says why there is no session', () => {
    const world = new SessionWorld();
    world.session.onOpen();
    world.say('421 4.7.0 too many connections');
    assert.deepEqual(world.takenLog(), ['closed 2 421 4.7.0']);
    const other = new SessionWorld();
    other.session.onOpen();
    other.say('220 hi', '421 bye');
    assert.deepEqual(other.takenLog(), ['closed 2 421 4.3.2']);
  });
});

test('a 5xx greeting defers, a 521 greeting fails', () => {
  for (const [greeting, expected] of [['554 5.7.1 go away', 'closed 2 554 4.7.1'], ['521 never', 'closed 3 521 5.3.2']] as const) {
    const world = new SessionWorld();
    world.session.onOpen();
    assert.deepEqual(world.say(greeting).takenLog(), [expected]);
  }
});

describe('a lost connection', () => {
  const replies = ['250 ok', '250 ok', '354 go'];
  for (let said = 0; said < 4; said++) {
    test(`after ${said} replies of the first transaction`, () => {
      const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d']));
      if (said > 0) world.say(...replies.slice(0, said));
      world.session.onClose('ECONNRESET');
      assert.deepEqual(world.takenLog(), [`settled deferred 0 4.4.2${said === 3 ? ' dot-unanswered' : ''}`, said === 3 ? 'closed' : 'closed 2 0 4.4.2']);
      assert.match(world.results[0]?.text ?? '', /lost while .*ECONNRESET/);
    });
  }
  test('before it opened, while greeting, while saying hello: no session', () => {
    for (const [replies, enhanced] of [[undefined, '4.4.1'], [[], '4.4.2'], [['220 hi'], '4.4.2'], [['220 hi', '500 no'], '4.4.2']] as const) {
      const world = new SessionWorld();
      if (replies !== undefined) world.session.onOpen();
      if (replies !== undefined && replies.length > 0) world.say(...replies);
      world.session.onClose('ECONNREFUSED');
      assert.deepEqual(world.takenLog(), [`closed 2 0 ${enhanced}`]);
    }
  });
  test('before the first reply on a kept connection gives the delivery back untouched', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d']));
    world.say('250 ok', '250 ok', '354 go', '250 ok').takenLog();
    world.begin(mail(['b@d']));
    world.session.onClose('closed by the peer');
    assert.deepEqual(world.takenLog(), ['stale', 'closed']);
  });
  test('421 as the first reply on a kept connection is the same race', () => {
    const world = new SessionWorld().ready('PIPELINING');
    world.session.tick(4000);
    world.begin(mail(['b@d'])).say('421 timeout');
    assert.deepEqual(world.takenLog(), ['stale', 'closed']);
  });
  test('after the first reply on a kept connection is an ordinary deferral', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d']));
    world.say('250 ok', '250 ok', '354 go', '250 2.0.0 taken').begin(mail(['b@d'])).say('250 ok');
    world.session.onClose('ECONNRESET');
    assert.deepEqual(world.takenLog().slice(2), ['settled deferred 0 4.4.2', 'closed']);
  });
  test('while idle or quitting is no trouble', () => {
    const idle = new SessionWorld().ready();
    idle.session.onClose('closed by the peer');
    assert.deepEqual(idle.takenLog(), ['closed']);
    const quitting = new SessionWorld().ready();
    quitting.session.quit();
    assert.equal(quitting.taken(), 'QUIT\r\n');
    quitting.say('221 bye');
    quitting.session.onClose('destroyed here');
    assert.deepEqual(quitting.takenLog(), ['closed']);
  });
});

describe('a peer that breaks the protocol', () => {
  const cases: [string, string, string][] = [
    ['a line without a code', 'hello', 'settled deferred 0 4.5.0'],
    ['a line too long', `250 ${'x'.repeat(3000)}`, 'settled deferred 0 4.5.0'],
    ['3xx to MAIL', '354 go', 'settled deferred 0 4.5.0'],
    ['a code out of range', '650 ok', 'settled deferred 0 4.5.0'],
  ];
  for (const [what, line, expected] of cases) {
    test(`${what} defers and closes`, () => {
      const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d']));
      assert.deepEqual(world.say(line).takenLog(), [expected, 'closed']);
      assert.ok(world.connection.isDestroyed);
    });
  }
  test('an endless reply is cut off', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d']));
    for (let i = 0; i < 40 && !world.connection.isDestroyed; i++) world.say(`250-${'x'.repeat(1000)}`);
    assert.deepEqual(world.takenLog(), ['settled deferred 0 4.5.0', 'closed']);
  });
  test('250 to DATA is not taken for a go', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d']));
    world.taken();
    world.say('250 ok', '250 ok', '250 ok');
    assert.equal(world.taken(), '');
    assert.deepEqual(world.takenLog(), ['settled deferred 0 4.5.0', 'closed']);
  });
  test('nonsense after the dot leaves it unanswered', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d']));
    world.say('250 ok', '250 ok', '354 go', '???');
    assert.deepEqual(world.takenLog(), ['settled deferred 0 4.5.0 dot-unanswered', 'closed']);
  });
  test('a reply too many is never taken for the answer to the next message', () => {
    for (const extra of ['250 extra\r\n', '25']) {
      const world = new SessionWorld().ready('PIPELINING').queue(mail(['c@d'])).begin(mail(['b@d']));
      world.say('250 ok', '250 ok', '354 go').taken();
      world.session.onData(Buffer.from(`250 done\r\n${extra}`));
      assert.deepEqual(world.takenLog(), ['settled delivered 250 2.0.0', 'closed'], extra);
      assert.equal(world.taken(), '');
    }
  });
  test('a failing RSET closes', () => {
    const world = new SessionWorld().ready().begin(mail(['b@d'])).say('550 no', '500 what');
    assert.deepEqual(world.takenLog(), ['settled failed 550 5.2.0', 'closed']);
  });
});

describe('timeouts', () => {
  test('each state gives up after its own time and not before', () => {
    const drives: [State, (world: SessionWorld) => void, string][] = [
      [State.CONNECTING, () => undefined, 'closed 2 0 4.4.2'],
      [State.GREETING, (w) => { w.session.onOpen(); }, 'closed 2 0 4.4.2'],
      [State.HELLO, (w) => { w.session.onOpen(); w.say('220 hi'); }, 'closed 2 0 4.4.2'],
      [State.HELO_ONLY, (w) => { w.session.onOpen(); w.say('220 hi', '500 no'); }, 'closed 2 0 4.4.2'],
      [State.MAIL, (w) => { w.ready('PIPELINING').begin(mail(['b@d'])); }, 'settled deferred 0 4.4.2'],
      [State.RCPT, (w) => { w.ready('PIPELINING').begin(mail(['b@d'])).say('250 ok'); }, 'settled deferred 0 4.4.2'],
      [State.DATA, (w) => { w.ready('PIPELINING').begin(mail(['b@d'])).say('250 ok', '250 ok'); }, 'settled deferred 0 4.4.2'],
      [State.CONTENT, (w) => { w.ready('PIPELINING').begin(mail(['b@d'])); w.connection.bufferedBytes = 1; w.say('250 ok', '250 ok', '354 go'); }, 'settled deferred 0 4.4.2'],
      [State.FINAL, (w) => { w.ready('PIPELINING').begin(mail(['b@d'])).say('250 ok', '250 ok', '354 go'); }, 'settled deferred 0 4.4.2 dot-unanswered'],
      [State.LONE_DOT, (w) => { w.ready('PIPELINING').begin(mail(['b@d'])).say('250 ok', '550 no', '354 go').takenLog(); }, 'closed'],
      [State.RESET, (w) => { w.ready().begin(mail(['b@d'])).say('550 no').takenLog(); }, 'closed'],
      [State.QUITTING, (w) => { w.ready(); w.session.quit(); }, 'closed'],
    ];
    for (const [state, drive, expected] of drives) {
      const world = new SessionWorld();
      drive(world);
      assert.equal(world.session.state, state);
      world.session.tick((DEFAULT_TIMEOUTS[state] ?? 0) - 1);
      assert.equal(world.session.state, state, STATE_NAME[state]);
      world.session.tick(DEFAULT_TIMEOUTS[state] ?? 0);
      assert.equal(world.session.state, State.CLOSED, STATE_NAME[state]);
      assert.equal(world.takenLog()[0], expected, STATE_NAME[state]);
    }
  });
  test('many replies, each within its own, have one together: half an hour, and 20 s a recipient, behind a dot of LMTP a minute', () => {
    const many = Array.from({ length: 100 }, (_none, i) => `b${String(i)}@d`);
    const mostMs = 1_800_000 + 100 * 20_000;
    const dripped = (world: SessionWorld, fromMs: number): number => {
      let nowMs = fromMs;
      for (; nowMs < 1e9; world.say('250 ok')) {
        nowMs += 120_000;
        world.session.tick(nowMs);
        if (world.connection.isDestroyed) break;
      }
      return nowMs - fromMs;
    };
    for (const offers of [['PIPELINING'], []]) {
      const world = new SessionWorld().ready(...offers).begin(mail(many));
      assert.equal(dripped(world, 0), Math.ceil(mostMs / 120_000) * 120_000, 'of the envelope');
      assert.deepEqual(world.takenLog(), [`settled ${many.map(() => 'deferred 0 4.4.2').join(', ')}`, 'closed']);
      assert.match(world.results[0]?.text ?? '', /takes longer than 3800 s to answer the envelope, while waiting for the reply to RCPT/);
    }
    const behind = new SessionWorld({ protocol: 'lmtp' }).ready('PIPELINING').begin(mail(many));
    behind.session.tick(200_000);
    behind.say('250 ok', ...many.map(() => '250 ok'), '354 go');
    assert.equal(behind.session.state, State.FINAL);
    const behindMs = 1_800_000 + 100 * 60_000;
    assert.equal(dripped(behind, 200_000), Math.ceil(behindMs / 120_000) * 120_000, 'of LMTP behind the dot, which has its own');
    const answered = Math.ceil(behindMs / 120_000) - 1;
    assert.deepEqual(behind.takenLog(), [`settled ${many.map((_, i) => (i < answered ? 'delivered 250 2.0.0' : 'deferred 0 4.4.2')).join(', ')} dot-unanswered`, 'closed']);
  });
  test('who is only wary has all the time that he needs', () => {
    const many = Array.from({ length: 1000 }, (_none, i) => `b${String(i)}@d`);
    const world = new SessionWorld().ready().begin(mail(many)).say('250 ok');
    many.forEach((_address, i) => {
      world.session.tick((i + 1) * 20_000);
      world.say('250 ok');
    });
    assert.equal(world.session.state, State.DATA);
  });
  test('an idle session has none: that is the business of the pool', () => {
    const world = new SessionWorld().ready();
    world.session.tick(1e9);
    assert.equal(world.session.state, State.IDLE);
  });
});
