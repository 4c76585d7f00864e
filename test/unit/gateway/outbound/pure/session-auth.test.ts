/** AUTH of a client session with a scripted peer: what is said when, how a refusal ends, and that no password is repeated. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { DEFAULT_TIMEOUTS, State } from '../../../../../src/gateway/outbound/pure/session-states.js';
import { SessionWorld, mail } from './session-world.js';

const AUTH = { user: 'relay@example.org', passwordFile: '/etc/relay.password' };
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const PLAIN = base64('\0relay@example.org\0secret');
const TLS = { level: 'encrypt', isFirst: false, terms: { serverName: 'mx.example.net', mustVerify: false, caFile: undefined } } as const;

function ehloReply(offers: readonly string[]): readonly string[] {
  const all = ['mx.example.net', ...offers];
  return all.map((line, i) => `250${i < all.length - 1 ? '-' : ' '}${line}`);
}

/** Greeted, and EHLO answered. */
function greeted(options: ConstructorParameters<typeof SessionWorld>[0], ...offers: readonly string[]): SessionWorld {
  const world = new SessionWorld({ auth: AUTH, ...options });
  greet(world, ...offers);
  return world;
}

function greet(world: SessionWorld, ...offers: readonly string[]): void {
  world.session.onOpen();
  world.say('220 mx.example.net ESMTP', ...ehloReply(offers));
}

for (const split of [false, true]) {
  describe(`AUTH, replies ${split ? 'byte by byte' : 'whole'}`, () => {
    test('PLAIN goes with its initial response, and mail begins behind the 235', () => {
      const world = greeted({ split }, 'PIPELINING', 'AUTH LOGIN PLAIN');
      assert.equal(world.taken(), `EHLO gw.test\r\nAUTH PLAIN ${PLAIN}\r\n`);
      assert.deepEqual([world.session.state, world.takenLog(), world.passwordFiles], [State.AUTH, [], [AUTH.passwordFile]]);
      world.say('235 2.7.0 welcome');
      assert.deepEqual([world.session.state, world.takenLog()], [State.IDLE, ['idle']]);
      world.begin(mail(['b@example.net']));
      assert.match(world.taken(), /^MAIL FROM:/);
    });

    test('LOGIN is used where there is no PLAIN, a line for each 334', () => {
      const world = greeted({ split }, 'auth login CRAM-MD5');
      assert.equal(world.taken(), 'EHLO gw.test\r\nAUTH LOGIN\r\n');
      world.say('334 VXNlcm5hbWU6');
      assert.equal(world.taken(), `${base64(AUTH.user)}\r\n`);
      world.say('334 UGFzc3dvcmQ6');
      assert.equal(world.taken(), `${base64('secret')}\r\n`);
      assert.deepEqual([world.session.state, world.takenLog()], [State.AUTH, []]);
      world.say('235 2.7.0 welcome');
      assert.deepEqual(world.takenLog(), ['idle']);
    });

    test('comes behind the EHLO in TLS; what was offered in clear is not used', () => {
      const world = greeted({ split, tls: TLS }, 'STARTTLS', 'AUTH PLAIN');
      assert.equal(world.taken(), 'EHLO gw.test\r\nSTARTTLS\r\n');
      world.say('220 go');
      world.connection.security = { version: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384', isVerified: false };
      world.session.onOpen();
      assert.deepEqual([world.taken(), world.passwordFiles], ['EHLO gw.test\r\n', []]);
      world.say(...ehloReply(['AUTH LOGIN']));
      assert.equal(world.taken(), 'AUTH LOGIN\r\n');
    });
  });
}

describe('AUTH', () => {
  test('is never said in clear where TLS must be had', () => {
    const world = greeted({ tls: TLS }, 'AUTH PLAIN LOGIN');
    assert.deepEqual([world.taken(), world.takenLog(), world.passwordFiles], ['EHLO gw.test\r\n', ['closed 2 0 4.7.4'], []]);
  });

  test('is not said by a route that has no user', () => {
    const world = new SessionWorld();
    greet(world, 'AUTH PLAIN');
    assert.deepEqual([world.taken(), world.takenLog(), world.passwordFiles], ['EHLO gw.test\r\n', ['idle'], []]);
    world.begin(mail(['b@example.net']));
    assert.doesNotMatch(world.taken(), /AUTH/);
  });

  test('is told with each MAIL, whose first sender nobody vouches for (RFC 4954 5)', () => {
    const world = greeted({}, 'AUTH PLAIN', 'SIZE 0');
    world.say('235 2.7.0 welcome').taken();
    for (let i = 0; i < 2; i++) {
      world.begin(mail(['b@example.net']));
      assert.match(world.taken(), /^MAIL FROM:<[^>]*> SIZE=\d+ AUTH=<>\r\n$/);
      world.say('250 2.1.0 ok', '250 2.1.5 ok', '354 go', '250 2.0.0 taken').taken();
      assert.equal(world.session.state, State.IDLE);
    }
  });

  test('is said by LMTP as well', () => {
    const world = greeted({ protocol: 'lmtp' }, 'AUTH PLAIN');
    assert.equal(world.taken(), `LHLO gw.test\r\nAUTH PLAIN ${PLAIN}\r\n`);
  });

  test('PLAIN that would make a command longer than 512 octets waits for its 334, and is UTF-8', () => {
    for (const [length, isWhole] of [[353, true], [354, false]] as const) {
      const password = `${'ü'.repeat(2)}${'x'.repeat(length - 4)}`;
      const world = new SessionWorld({ auth: AUTH });
      world.password = { isFound: true, password };
      greet(world, 'AUTH PLAIN');
      const response = base64(`\0${AUTH.user}\0${password}`);
      const whole = `AUTH PLAIN ${response}\r\n`;
      assert.equal(whole.length <= 512, isWhole);
      assert.equal(world.taken(), `EHLO gw.test\r\n${isWhole ? whole : 'AUTH PLAIN\r\n'}`);
      if (isWhole) continue;
      world.say('334 ');
      assert.equal(world.taken(), `${response}\r\n`);
    }
  });

  test('the longest user and password make a line of at most 12,288 octets (RFC 4954 4)', () => {
    const world = new SessionWorld({ auth: { ...AUTH, user: '\u4f60'.repeat(1024) } });
    world.password = { isFound: true, password: 'x'.repeat(1024) };
    greet(world, 'AUTH PLAIN');
    world.taken();
    world.say('334 ');
    assert.ok(world.taken().length < 12_288);
  });

  test('that is not offered, or by no mechanism of ours, ends the session with 4.7.4', () => {
    for (const [offers, text] of [
      [['PIPELINING', 'XAUTH PLAIN'], 'mx.example.net:25 offers no AUTH, and takes no user and password so'],
      [['AUTH CRAM-MD5 XPLAIN'], 'mx.example.net:25 offers neither AUTH PLAIN nor LOGIN, and takes no user and password so'],
      [['AUTH'], 'mx.example.net:25 offers neither AUTH PLAIN nor LOGIN, and takes no user and password so'],
    ] as const) {
      const world = greeted({}, ...offers);
      assert.deepEqual([world.taken(), world.takenLog(), world.whys, world.connection.isDestroyed], ['EHLO gw.test\r\n', ['closed 2 0 4.7.4'], [text], true]);
    }
    const old = new SessionWorld({ auth: AUTH });
    old.session.onOpen();
    old.say('220 old', '502 what?', '250 old');
    assert.deepEqual(old.takenLog(), ['closed 2 0 4.7.4']);
  });

  test('for which there is no password says nothing, and why with 4.3.5', () => {
    const world = new SessionWorld({ auth: AUTH });
    world.password = { isFound: false, why: '\'/etc/relay.password\' can\'t be read: ENOENT' };
    greet(world, 'AUTH PLAIN');
    assert.deepEqual([world.taken(), world.takenLog()], ['EHLO gw.test\r\n', ['closed 2 0 4.3.5']]);
    assert.deepEqual(world.whys, ['no password for mx.example.net:25: \'/etc/relay.password\' can\'t be read: ENOENT']);
  });

  test('that is refused defers, whatever the code, and tells codes but no words', () => {
    const refused = 'mx.example.net:25 refused our user and password: ';
    for (const [reply, enhanced, text] of [
      ['535 5.7.8 wrong', '4.7.8', `${refused}535 5.7.8`],
      [`501 5.5.2 syntax: AUTH PLAIN ${PLAIN}`, '4.7.8', `${refused}501 5.5.2`],
      [`500 ${PLAIN}`, '4.7.8', `${refused}500`],
      ['454 4.7.0 later', '4.7.0', `${refused}454 4.7.0`],
      ['432 4.7.12 change it', '4.7.0', `${refused}432 4.7.12`],
      ['421 4.3.2 bye', '4.7.0', `${refused}421 4.3.2`],
    ] as const) {
      const world = greeted({}, 'AUTH PLAIN');
      world.taken();
      world.say(reply);
      assert.deepEqual([world.takenLog(), world.whys, world.taken(), world.connection.isDestroyed], [[`closed 2 0 ${enhanced}`], [text], '', true]);
    }
  });

  test('is refused in the middle of LOGIN as well', () => {
    const world = greeted({}, 'AUTH LOGIN');
    world.say('334 VXNlcm5hbWU6', '535 5.7.8 no such user');
    assert.deepEqual([world.takenLog(), world.taken().includes(base64('secret'))], [['closed 2 0 4.7.8'], false]);
  });

  test('asks for no more than was to be said: another 334, or another 3xx, breaks the protocol', () => {
    for (const [offer, replies] of [['PLAIN', ['334 ']], ['LOGIN', ['334 ', '334 ', '334 ']], ['LOGIN', ['354 go']]] as const) {
      const world = greeted({}, `AUTH ${offer}`);
      world.say(...replies);
      assert.deepEqual(world.takenLog(), ['closed 2 0 4.5.0'], offer);
    }
  });

  test('a peer that repeats the password in any reply until it is ready brings it into no text', () => {
    for (const replies of [
      [`535-5.7.8 ${PLAIN}`, `535 5.7.8 secret ${base64('secret')}`],
      ['235 2.7.0 ok', `421 4.3.2 ${PLAIN} secret`],
      [`334 ${PLAIN}`],
      [`235 ${PLAIN}`, `250 ${PLAIN}`],
      [`${PLAIN}`],
    ]) {
      const world = greeted({}, 'AUTH PLAIN');
      world.session.onData(Buffer.from(replies.map((line) => `${line}\r\n`).join('')));
      const [why = ''] = world.whys;
      assert.ok(world.session.state === State.CLOSED && why !== '', replies.join());
      assert.doesNotMatch(why, /secret|c2VjcmV0/, why);
      assert.ok(!why.includes(PLAIN), why);
    }
  });

  test('who follows the session is told no word of what may repeat a password, the reply behind that to AUTH neither', () => {
    const world = new SessionWorld({ auth: AUTH });
    world.tap.isOn = true;
    greet(world, 'AUTH PLAIN');
    world.say('235 2.7.0 welcome\r\n421 4.3.2 bye, secret');
    assert.deepEqual(world.told.filter((each) => each.startsWith('server')).slice(-2), ['server: 235 ***', 'server: 421 ***']);
    assert.ok(!world.told.join('').includes('secret'));
    const ready = new SessionWorld({ auth: AUTH });
    greet(ready, 'AUTH PLAIN');
    ready.say('235 2.7.0 welcome').tap.isOn = true;
    ready.say('421 4.3.2 bye');
    assert.equal(ready.told[0], 'server: 421 4.3.2 bye');
  });

  test('that is silent or lost ends with what was waited for', () => {
    const silent = greeted({}, 'AUTH PLAIN');
    const timeoutMs = DEFAULT_TIMEOUTS[State.AUTH] ?? 0;
    silent.session.tick(timeoutMs - 1);
    assert.deepEqual(silent.takenLog(), []);
    silent.session.tick(timeoutMs);
    assert.deepEqual([silent.takenLog(), silent.whys], [['closed 2 0 4.4.2'], ['mx.example.net:25 silent for 300 s while waiting for the reply to AUTH']]);
    const lost = greeted({}, 'AUTH PLAIN');
    lost.session.onClose('ECONNRESET');
    assert.deepEqual([lost.takenLog(), lost.session.hasTlsFailed], [['closed 2 0 4.4.2'], false]);
  });
});
