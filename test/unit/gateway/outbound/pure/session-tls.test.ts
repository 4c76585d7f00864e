/** TLS of a client session with a scripted peer: what is said when, what is forgotten, and how it ends. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { DEFAULT_TIMEOUTS, State } from '../../../../../src/gateway/outbound/pure/session-states.js';
import { CAN_DSN, CAN_PIPELINE } from '../../../../../src/smtp/capabilities.js';
import type { NextHopTls, TlsLevel } from '../../../../../src/gateway/mail-types.js';
import { SessionWorld, mail } from './session-world.js';

const FACTS = { version: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384', isVerified: true };

function tlsOf(level: TlsLevel, isFirst = false): NextHopTls {
  return { level, isFirst, terms: { serverName: 'mx.example.net', mustVerify: level === 'verify', caFile: undefined } };
}

/** Connected and greeted, EHLO or LHLO answered. */
function greeted(world: SessionWorld, ...offers: readonly string[]): void {
  world.session.onOpen();
  world.say('220 mx.example.net ESMTP', ...ehloReply(offers));
}

function ehloReply(offers: readonly string[]): readonly string[] {
  const all = ['mx.example.net', ...offers];
  return all.map((line, i) => `250${i < all.length - 1 ? '-' : ' '}${line}`);
}

/** The handshake is over. */
function secured(world: SessionWorld): void {
  world.connection.security = FACTS;
  world.session.onOpen();
}

for (const split of [false, true]) {
  describe(`STARTTLS, replies ${split ? 'byte by byte' : 'whole'}`, () => {
    test('comes before any mail, EHLO is said again within, and what was offered in clear is forgotten', () => {
      const world = new SessionWorld({ split, tls: tlsOf('verify') });
      greeted(world, 'PIPELINING', 'DSN', 'STARTTLS');
      assert.equal(world.taken(), 'EHLO gw.test\r\nSTARTTLS\r\n');
      world.say('220 go');
      assert.deepEqual(world.secured, [tlsOf('verify').terms]);
      assert.equal(world.session.capabilities.bits, 0);
      assert.deepEqual([world.taken(), world.takenLog()], ['', []]);
      secured(world);
      assert.equal(world.taken(), 'EHLO gw.test\r\n');
      world.say(...ehloReply(['PIPELINING']));
      assert.deepEqual(world.takenLog(), ['idle']);
      assert.deepEqual([world.session.capabilities.bits & (CAN_PIPELINE | CAN_DSN), world.session.tls], [CAN_PIPELINE, FACTS]);
      world.begin(mail(['b@example.net']));
      assert.match(world.taken(), /^MAIL FROM:/);
    });

    test('is said by LHLO too', () => {
      const world = new SessionWorld({ split, protocol: 'lmtp', tls: tlsOf('may') });
      greeted(world, 'STARTTLS');
      assert.equal(world.taken(), 'LHLO gw.test\r\nSTARTTLS\r\n');
      world.say('220 go');
      secured(world);
      assert.equal(world.taken(), 'LHLO gw.test\r\n');
    });

  });
}

describe('a reply to STARTTLS', () => {
  for (const more of ['250 injected\r\n', '25', '250-mx.example.net\r\n250 DSN\r\n', '\n']) {
    test(`with ${JSON.stringify(more)} in clear behind its 220 ends the session, and nothing of it is an answer`, () => {
      for (const level of ['may', 'encrypt', 'verify'] as const) {
        const world = new SessionWorld({ tls: tlsOf(level) });
        greeted(world, 'STARTTLS');
        world.taken();
        world.session.onData(Buffer.from(`220 go\r\n${more}`));
        assert.deepEqual(world.takenLog().map((line) => line.slice(0, 8)), ['closed 2']);
        assert.deepEqual([world.secured, world.taken(), world.connection.isDestroyed, world.session.hasTlsFailed], [[], '', true, false]);
      }
    });
  }
});

describe('without TLS', () => {
  test('a peer that offers none is spoken to in clear where it may, and else deferred with 4.7.4', () => {
    for (const [level, log] of [['may', ['idle']], ['encrypt', ['closed 2 0 4.7.4']], ['verify', ['closed 2 0 4.7.4']]] as const) {
      const world = new SessionWorld({ tls: tlsOf(level) });
      greeted(world, 'PIPELINING');
      assert.deepEqual([world.takenLog(), world.taken(), world.session.hasTlsFailed], [log, 'EHLO gw.test\r\n', false]);
      const said = `mx.example.net:25 offers no STARTTLS, and mail must not go there in clear: so says tls: ${level} of the route`;
      assert.deepEqual(world.whys, level === 'may' ? [] : [said]);
    }
  });

  test('so is one that knows only HELO', () => {
    for (const [level, log] of [['may', ['idle']], ['encrypt', ['closed 2 0 4.7.4']]] as const) {
      const world = new SessionWorld({ tls: tlsOf(level) });
      world.session.onOpen();
      world.say('220 old', '502 what?', '250 old');
      assert.deepEqual(world.takenLog(), log);
    }
  });

  test('a route without TLS does not ask for it', () => {
    const world = new SessionWorld();
    greeted(world, 'STARTTLS');
    assert.deepEqual([world.takenLog(), world.taken()], [['idle'], 'EHLO gw.test\r\n']);
  });
});

describe('TLS that does not come up', () => {
  /** STARTTLS has been said. */
  function asked(level: TlsLevel = 'encrypt'): SessionWorld {
    const world = new SessionWorld({ tls: tlsOf(level) });
    greeted(world, 'STARTTLS');
    assert.equal(world.session.state, State.STARTTLS);
    return world;
  }

  for (const answer of ['454 not now', '421 bye', '501 what', '250 sure', '354 go']) {
    test(`${answer} to STARTTLS defers with 4.7.4`, () => {
      const world = asked();
      world.say(answer);
      assert.deepEqual([world.takenLog(), world.session.hasTlsFailed], [['closed 2 0 4.7.4'], true]);
    });
  }

  test('a lost or silent connection at each step of it defers with 4.7.5, and tells that TLS was it', () => {
    const steps: readonly ((world: SessionWorld) => void)[] = [
      () => undefined,
      (world) => { world.say('220 go'); },
      (world) => { world.say('220 go'); secured(world); },
    ];
    for (const [i, step] of steps.entries()) {
      const world = asked();
      step(world);
      world.session.onClose('ECONNRESET');
      assert.deepEqual([world.takenLog(), world.session.hasTlsFailed], [['closed 2 0 4.7.5'], true], String(i));
    }
    for (const [i, step] of steps.slice(0, 2).entries()) {
      const world = asked();
      step(world);
      const timeoutMs = DEFAULT_TIMEOUTS[world.session.state] ?? 0;
      assert.equal(timeoutMs, 60_000);
      world.session.tick(timeoutMs - 1);
      assert.deepEqual(world.takenLog(), []);
      world.session.tick(timeoutMs);
      assert.deepEqual([world.takenLog(), world.session.hasTlsFailed], [['closed 2 0 4.7.5'], true], String(i));
    }
  });

  test('a gateway that stops in the middle says nothing of TLS', () => {
    const world = asked();
    world.say('220 go');
    world.session.abandon('stopping');
    assert.deepEqual([world.takenLog(), world.session.hasTlsFailed], [['closed 2 0 4.3.2'], false]);
  });
});

describe('in clear because TLS did not come up', () => {
  const [OK, GO] = ['250 ok', '354 go'];
  const cases: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ['530 to MAIL', ['530 5.7.0 STARTTLS first', '503 no', '503 no', '503 no'], ['TLS wanted', 'settled deferred 530 4.7.0, deferred 530 4.7.0', 'closed 2 530 4.7.0']],
    ['5.7.x to every RCPT', [OK, '550 5.7.1 no', '554 5.7.10 encryption needed', GO], ['TLS wanted', 'TLS wanted', 'settled deferred 550 4.7.1, deferred 554 4.7.10', 'closed 2 554 4.7.10']],
    ['530 without more to DATA', [OK, OK, OK, '530 no'], ['TLS wanted', 'settled deferred 530 4.7.0, deferred 530 4.7.0', 'closed 2 530 4.7.0']],
    ['5.7.x to one RCPT', [OK, '550 5.7.1 no', OK, GO, '250 2.0.0 taken'], ['TLS wanted', 'settled deferred 550 4.7.1, delivered 250 2.0.0', 'idle']],
    ['5.7.x to the dot', [OK, OK, OK, GO, '554 5.7.1 spam'], ['settled failed 554 5.7.1, failed 554 5.7.1', 'idle']],
    ['any other refusal', ['550 5.1.8 no', '503 no', '503 no', '503 no', '250 reset'], ['settled failed 550 5.1.8, failed 550 5.1.8', 'idle']],
  ];
  for (const [what, replies, log] of cases) {
    test(`${what} ${log[0] === 'TLS wanted' ? 'may be for want of TLS: it is deferred' : 'is final'}`, () => {
      const world = new SessionWorld({ lostTls: 'ECONNRESET' }).ready('PIPELINING').begin(mail(['b@d', 'c@d']));
      world.say(...replies);
      assert.deepEqual(world.takenLog(), log);
    });
  }

  test('what TLS was wanted for ends no later mail: that is refused, and the session goes on', () => {
    const world = new SessionWorld({ lostTls: 'ECONNRESET' }).ready('PIPELINING').begin(mail(['b@d', 'c@d']));
    world.say(OK, '550 5.7.1 no', OK, GO, '250 2.0.0 taken').begin(mail(['b@d']));
    world.takenLog();
    world.say('550 5.1.8 no', '503 no', '503 no', '250 reset');
    assert.deepEqual(world.takenLog(), ['settled failed 550 5.1.8', 'idle']);
  });

  test('is no other session: a refusal is one', () => {
    const world = new SessionWorld().ready('PIPELINING').begin(mail(['b@d']));
    world.say('530 5.7.0 STARTTLS first', '503 no', '503 no');
    assert.deepEqual(world.takenLog(), ['settled failed 530 5.7.0']);
    // Before its connection was open; then its TLSA records asked for TLS.
    const raised = new SessionWorld({ tls: tlsOf('encrypt'), lostTls: 'ECONNRESET' });
    greeted(raised, 'PIPELINING', 'STARTTLS');
    raised.say('220 go');
    secured(raised);
    raised.say(...ehloReply(['PIPELINING'])).begin(mail(['b@d'])).say('550 5.7.1 no', '503 no', '503 no');
    assert.deepEqual(raised.takenLog(), ['idle', 'settled failed 550 5.7.1']);
  });
});

describe('TLS first', () => {
  test('begins as soon as the connection is there; greeting and EHLO come within, STARTTLS is not asked for', () => {
    const world = new SessionWorld({ tls: tlsOf('encrypt', true) });
    world.session.onOpen();
    assert.deepEqual([world.secured.length, world.session.state], [1, State.SECURING]);
    secured(world);
    assert.equal(world.session.state, State.GREETING);
    world.say('220 mx.example.net', ...ehloReply(['STARTTLS']));
    assert.deepEqual([world.takenLog(), world.taken()], [['idle'], 'EHLO gw.test\r\n']);
  });

  test('a handshake that fails defers with 4.7.5, a refused connection with 4.4.1 as ever', () => {
    const world = new SessionWorld({ tls: tlsOf('encrypt', true) });
    world.session.onOpen();
    world.session.onClose('TLS: wrong version number (ERR_SSL_WRONG_VERSION_NUMBER)');
    assert.deepEqual(world.takenLog(), ['closed 2 0 4.7.5']);
    const refused = new SessionWorld({ tls: tlsOf('encrypt', true) });
    refused.session.onClose('ECONNREFUSED');
    assert.deepEqual(refused.takenLog(), ['closed 2 0 4.4.1']);
  });
});
