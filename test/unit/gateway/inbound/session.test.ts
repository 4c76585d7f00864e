/**
 * The server session as a machine: all pairs of its states, what waits while nothing may be obeyed, the client's end,
 * and what is asked of the connection when.
 */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { NOT_ASKED } from '../../../../src/gateway/inbound/recipients/listing.js';
import type { RecipientTable } from '../../../../src/gateway/inbound/recipients/listing.js';
import type { Authenticator } from '../../../../src/gateway/inbound/auth/authenticator.js';
import type { JudgedEnvelope } from '../../../../src/gateway/inbound/hooks/message-hook.js';
import { ReturnAddresses } from '../../../../src/base/return-addresses.js';
import type { Hmac } from '../../../../src/base/signed-text.js';
import { NONE_MADE } from '../../../../src/gateway/inbound/options.js';
import type { InboundOptions } from '../../../../src/gateway/inbound/options.js';
import type { Desk } from '../../../../src/gateway/inbound/session/desk.js';
import { STATE_NAME, State, isValidTransition } from '../../../../src/gateway/inbound/session/session-states.js';
import type { ServerSession } from '../../../../src/gateway/inbound/session/session.js';
import { COMMITTED, NO_REPLY, REFUSED } from '../../../../src/gateway/mail-types.js';
import type { Route } from '../../../../src/gateway/mail-types.js';
import { ReturnPaths } from '../../../../src/gateway/returned/return-paths.js';
import { tableOf } from '../../../dialog/listed.js';
import { authenticatorOf, scramLine } from '../../../dialog/people.js';
import { MemoryConnection } from '../../../scenario/memory-connection.js';
import { DomainRouter } from '../../../dialog/memory-reception.js';
import type { MemoryReception } from '../../../dialog/memory-reception.js';
import { WALL_MS, openSession, testDesk } from '../../../inbound/desk.js';
import type { RefusalRecord } from '../../../inbound/desk.js';

const ENVELOPE = 'MAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n';

/** A greeted session, its connection, and a reception that holds every message. */
class Kit {
  readonly reception: MemoryReception;
  readonly connection = new MemoryConnection();
  readonly rejections: readonly string[];
  readonly refused: readonly RefusalRecord[];
  readonly desk: Desk;
  readonly session: ServerSession;
  nowMs = 0;
  readonly #turns: (() => void)[] = [];

  constructor(options: Partial<InboundOptions> = {}, authenticator?: Authenticator, recipients?: RecipientTable) {
    const { desk, reception, rejections, refused } = testDesk({ greetingDelayMs: 100, ...options }, {
      clock: { nowMs: () => this.nowMs, wallMs: () => WALL_MS },
      nextTurn: (run) => { this.#turns.push(run); },
      authenticator,
      recipients,
    });
    this.desk = desk;
    this.reception = reception;
    this.rejections = rejections;
    this.refused = refused;
    reception.hold = true;
    this.session = openSession(desk, this.connection);
    this.heard();
  }

  /** What was written since the last look, codes of last reply lines only. */
  heard(): string {
    const codes = this.connection.text.split('\r\n').filter((line) => line[3] === ' ').map((line) => line.slice(0, 3));
    this.connection.text = '';
    return codes.join(' ');
  }

  sends(text: string): string {
    this.session.onData(Buffer.from(text, 'latin1'));
    return this.heard();
  }

  turn(): string {
    for (const run of this.#turns.splice(0)) run();
    return this.heard();
  }

  outcome(outcome: typeof COMMITTED | typeof REFUSED | typeof NO_REPLY, index = -1): string {
    const kept = this.reception.kept.at(index);
    assert.ok(kept !== undefined);
    kept.submission.settle(outcome);
    return this.heard();
  }
}

/** Without the trace header. */
function bodyOf(content: Buffer | undefined): string {
  const text = content?.toString('latin1') ?? '';
  return text.slice(text.indexOf('\r\n', text.indexOf('+0000')) + 2);
}

describe('a PROXY header that is refused', () => {
  test('is told with the rule that it breaks', () => {
    for (const [bytes, why] of [
      ['EHLO a\r\n', "no PROXY header: it begins with 'EHLO a??'"],
      ['PROXY TCP4 nowhere 1.2.3.4 1 2\r\n', "PROXY header 'PROXY TCP4 nowhere 1.2.3.4 1 2': expected two addresses of TCP4"], ['PRO', 'the PROXY header never ended'],
      ['', 'no PROXY header came in time'],
    ] as const) {
      const kit = new Kit({ proxyNetworks: ['0.0.0.0/0', '::/0'] });
      if (bytes !== '') kit.sends(bytes);
      if (kit.rejections.length === 0) kit.session.tick(1_000_000);
      assert.deepEqual([kit.rejections, kit.refused.map((each) => each.why)], [['connect proxy-header'], [why]], bytes);
    }
  });
});

test('postmaster without a domain, and one in quotes, go to who reads it, who is told whom it was for', () => {
  const recipients = ['Postmaster', '"postmaster"@mx.test'].flatMap((whom) => {
    const kit = new Kit({ greetingDelayMs: 0, postmaster: 'ops@example.net', hostName: 'mx.test' });
    kit.sends(`EHLO a\r\nMAIL FROM:<>\r\nRCPT TO:<${whom}>\r\nDATA\r\nx\r\n.\r\n`);
    return kit.reception.kept.flatMap(({ submission }) => submission.groups.flatMap((group) => group.recipients));
  });
  assert.deepEqual(recipients.map(({ address, orcpt }) => [address, orcpt]), [
    ['ops@example.net', 'rfc822;Postmaster@mx.test'], ['ops@example.net', 'rfc822;"postmaster"@mx.test'],
  ]);
});

describe('a balancer\'s own connection', () => {
  test('is told as such, and its port is not the client\'s', () => {
    for (const [bytes, proxy] of [['PROXY UNKNOWN\r\n', 'unknown'], ['\r\n\r\n\0\r\nQUIT\n\x20\0\0\0', 'local'], ['PROXY TCP4 192.0.2.7 1.2.3.4 9 2\r\n', '']] as const) {
      const kit = new Kit({ proxyNetworks: ['127.0.0.0/8'], greetingDelayMs: 0 });
      kit.sends(bytes);
      kit.sends('EHLO a\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n');
      const [refused] = kit.refused;
      assert.deepEqual([refused?.proxy, refused?.clientPort], [proxy, proxy === '' ? 9 : 0]);
    }
  });
});

describe('a client that goes', () => {
  /** Its connection tells nothing by itself: the test says when and why it is closed. */
  const silentKit = (): Kit => {
    const kit = new Kit({ greetingDelayMs: 0 });
    kit.connection.isOver = true;
    return kit;
  };
  const gone = (kit: Kit): (readonly unknown[])[] => kit.refused.map(({ reason, state, octets, from, to, why, reply }) => [reason, state, octets, from, to, why, reply]);

  test('in the middle of a content is in the log, with how much of it came', () => {
    for (const [say, state, octets] of [
      ['DATA\r\nSubject: x\r\n\r\nhalf', 'CONTENT', 18], ['BDAT 100\r\nhalf', 'CHUNK', 4], ['BDAT 4\r\nhalf', 'COMMAND', 4], ['', 'COMMAND', 0],
    ] as const) {
      const ended = silentKit();
      ended.sends('EHLO a\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\n');
      ended.sends(say);
      ended.session.onEnd();
      ended.session.onClose('closed by the peer');
      assert.deepEqual(gone(ended), [['lost', state, octets, 'a@example.org', 'b@example.net', 'closed by the peer', '']], say);
      assert.deepEqual(ended.rejections, ['data lost']);
      const reset = silentKit();
      reset.sends('EHLO a\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\n');
      reset.sends(say);
      reset.session.onClose('ECONNRESET');
      assert.deepEqual(gone(reset), [['lost', state, octets, 'a@example.org', 'b@example.net', 'ECONNRESET', '']], say);
    }
  });

  test('outside of a mail transaction, or when the message is in our hands, is not', () => {
    for (const say of ['', 'EHLO a\r\n', `EHLO a\r\n${ENVELOPE}x\r\n.\r\n`, 'EHLO a\r\nMAIL FROM:<a@example.org>\r\nRSET\r\n', 'EHLO a\r\nMAIL FROM:<a@example.org>\r\nQUIT\r\n', 'EHLO a\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<b@noroute.example>\r\n']) {
      for (const hasEnded of [true, false]) {
        const kit = silentKit();
        if (say !== '') kit.sends(say);
        if (hasEnded) kit.session.onEnd();
        kit.session.onClose('ECONNRESET');
        assert.deepEqual(gone(kit).filter(([reason]) => reason === 'lost'), [], say);
      }
    }
  });

  test('while the gateway stops is not told, nor is its handshake', () => {
    for (const say of [`EHLO a\r\n${ENVELOPE}half`, 'STARTTLS\r\n']) {
      for (const isClosing of [true, false]) {
        const kit = silentKit();
        kit.sends(say);
        kit.desk.isClosing = isClosing;
        kit.session.onClose('closed here');
        assert.equal(kit.rejections.length, isClosing ? 0 : 1, say);
      }
    }
  });

  test('again and again has a line each time up to 200 in a minute, then a count of the rest', () => {
    const kit = new Kit({ greetingDelayMs: 0 });
    for (let i = 0; i < 300; i++) {
      const session = openSession(kit.desk, new MemoryConnection());
      session.onData(Buffer.from(`EHLO a\r\n${ENVELOPE}half`));
      session.onClose('ECONNRESET');
    }
    assert.equal(kit.refused.length, 200);
  });
});

describe('a list with many dead addresses', () => {
  test('is heard to its end, and the others have the message', () => {
    const kit = new Kit({ greetingDelayMs: 0, recipientsMax: 1000 });
    kit.sends('EHLO a\r\nMAIL FROM:<a@b.example>\r\n');
    const list = Array.from({ length: 600 }, (_none, i) => `RCPT TO:<${String(i)}@${i % 4 === 0 ? 'noroute.example' : 'd.example'}>\r\n`).join('');
    let said = kit.sends(list);
    for (let turn = 0; turn < 10; turn++) said += ` ${kit.turn()}`;
    const codes = said.trim().split(/ +/);
    assert.deepEqual([codes.filter((code) => code === '250').length, codes.filter((code) => code !== '250').length], [450, 150]);
    assert.equal(kit.sends('DATA\r\n'), '354');
  });
});

describe('a client that is not read, for messages of others are in hand', () => {
  test('is not closed for saying nothing, and has its whole time once it is', () => {
    const kit = new Kit({ greetingDelayMs: 0, messagesInHandMax: 1, idleMs: 10_000 });
    const clients = Array.from({ length: 3 }, () => {
      const connection = new MemoryConnection();
      const session = openSession(kit.desk, connection);
      session.onData(Buffer.from(`EHLO a\r\n${ENVELOPE}x\r\n.\r\n`));
      connection.text = '';
      return { session, connection };
    });
    const [, first, second] = clients;
    assert.ok(first !== undefined && second !== undefined);
    for (const at of [1, 2]) kit.outcome(COMMITTED, at);
    assert.deepEqual(clients.map(({ connection }) => connection.calls), [[], ['pause'], ['pause']]);
    // A look lets in half of what may be in hand: the second of them is not read yet.
    const tellsAt = (nowMs: number): readonly string[] => {
      kit.nowMs = nowMs;
      kit.desk.tick();
      return [first, second].map(({ connection }) => /421/.exec(connection.text)?.[0] ?? connection.calls.at(-1) ?? '');
    };
    assert.deepEqual(tellsAt(10_001), ['resume', 'pause']);
    assert.deepEqual(tellsAt(11_002), ['resume', 'resume']);
    assert.deepEqual(tellsAt(21_002), ['421', 'resume']);
    assert.deepEqual(tellsAt(22_003), ['421', '421']);
  });
});

describe('a gateway that stops', () => {
  const stop = (kit: Kit): string => {
    kit.desk.isClosing = true;
    kit.session.shutDown();
    return kit.heard();
  };

  test('tells who is in the middle of an AUTH', async () => {
    const kit = new Kit({ greetingDelayMs: 0, isSubmission: true }, authenticatorOf([await scramLine('alice@example.org', 'x')]));
    kit.sends('STARTTLS\r\n');
    kit.connection.secured();
    assert.equal(kit.sends('EHLO a\r\nAUTH LOGIN\r\n'), '250 334');
    assert.equal(stop(kit), '421');
  });

  test('tells who is in the middle of a chunk behind it, whether it is the last or not', () => {
    const kit = new Kit({ greetingDelayMs: 0 });
    kit.sends(`EHLO a\r\n${ENVELOPE.replace('DATA', 'BDAT 4')}x`);
    assert.equal(stop(kit), '');
    assert.equal(kit.sends('yz\r'), '250 421');
    const last = new Kit({ greetingDelayMs: 0 });
    last.sends(`EHLO a\r\n${ENVELOPE.replace('DATA', 'BDAT 4 LAST')}x`);
    assert.equal(stop(last), '');
    last.sends('y\r\n');
    assert.equal(last.outcome(COMMITTED), '250 421');
  });

  test('tells who waits for a look-up, or for the check of a password, behind the answer', async () => {
    const asked: (() => void)[] = [];
    let listing: ReturnType<RecipientTable['find']> = NOT_ASKED;
    const kit = new Kit({ greetingDelayMs: 0, relayDomains: ['x.example'] }, undefined, { find: () => listing, learn: (_keys, done) => { asked.push(done); } });
    kit.sends('EHLO a\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<a@x.example>\r\n');
    assert.equal(stop(kit), '');
    listing = { route: '', to: [] };
    asked[0]?.();
    assert.equal(kit.heard(), '250 421');
    const user = new Kit({ greetingDelayMs: 0, isSubmission: true }, authenticatorOf([await scramLine('alice@example.org', 'x')]));
    user.sends('STARTTLS\r\n');
    user.connection.secured();
    user.sends(`EHLO a\r\nAUTH PLAIN ${Buffer.from('\0alice@example.org\0x').toString('base64')}\r\n`);
    assert.equal(stop(user), '');
    while (!user.connection.text.includes('235')) await new Promise(setImmediate);
    assert.equal(user.heard(), '235 421');
  });
});

describe('what comes back', () => {
  test('comes to 100 addresses of ours in one message at most, whether it goes on or ends here; once to each', () => {
    for (const leadsBack of [false, true]) {
      const hmac: Hmac = (key, text) => createHmac('sha256', key).update(text).digest();
      const options = { route: 'out', domain: 'x.example', prefix: 'b', daysValid: 10, leadsBack };
      const addresses = new ReturnAddresses(options, [Buffer.from('a secret of ours')], hmac, () => Date.now());
      const to = (...numbers: readonly number[]): Buffer =>
        Buffer.from(numbers.map((number) => `RCPT TO:<${addresses.written(number, 'b@far.example', 'a@c.example')}>\r\n`).join(''));
      const upTo = (from: number, end: number): readonly number[] => Array.from({ length: end - from }, (_none, i) => from + i);
      const paths = new ReturnPaths([addresses], undefined);
      const made = { ...NONE_MADE, paths };
      const { desk } = testDesk({ recipientsMax: 1000, refusalsMax: 1000 }, { made });
      const connection = new MemoryConnection();
      const session = openSession(desk, connection);
      session.onData(Buffer.from('EHLO a\r\nMAIL FROM:<>\r\n'));
      session.onData(to(...upTo(1, 50), ...upTo(1, 50)));
      session.takeTurn();
      session.onData(Buffer.from(to(...upTo(50, 101)).toString().toUpperCase()));
      session.takeTurn();
      assert.equal(/^[45]/m.exec(connection.text), null, 'a hundred');
      connection.text = '';
      session.onData(to(101));
      session.takeTurn();
      assert.match(connection.text, /452 4\.5\.3 Too many recipients.*\r\n$/);
      session.destroy();
    }
  });
});

test('feedback goes on to its reader, whom a table of recipients need not know', () => {
  const paths = new ReturnPaths([], { address: 'loop@x.example', forwardTo: 'team@ours.example' });
  const made = { ...NONE_MADE, paths };
  const { desk } = testDesk({ relayDomains: ['ours.example'] }, { made, recipients: tableOf(['anna@ours.example']) });
  const connection = new MemoryConnection();
  const session = openSession(desk, connection);
  session.onData(Buffer.from('EHLO a\r\nMAIL FROM:<>\r\nRCPT TO:<loop@x.example>\r\nRCPT TO:<team@ours.example>\r\n'));
  assert.deepEqual(connection.text.match(/^\d{3} \d\.\d\.\d/gm), ['250 2.1.0', '250 2.1.5', '550 5.1.1']);
  session.destroy();
});

/** Each Route is made anew. */
class ForgetfulRouter extends DomainRouter {
  override routeNamed(name: string): Route | undefined {
    const known = super.routeNamed(name);
    return known && { ...known };
  }
}

describe('recipients of one queue', () => {
  test('share an entry, and a mailbox its copy, though the Route of the queue was made anew between them', () => {
    for (const domains of [1, 20]) {
      const { desk, reception } = testDesk({}, { router: new ForgetfulRouter() });
      reception.hold = true;
      const connection = new MemoryConnection();
      const session = openSession(desk, connection);
      const to = Array.from({ length: 3 * domains }, (_none, i) => `RCPT TO:<u${String(Math.floor(i / domains) % 2)}@d${String(i % domains)}.example>\r\n`);
      session.onData(Buffer.from(`EHLO a\r\nMAIL FROM:<a@b.example>\r\n${to.join('')}DATA\r\n`));
      session.onData(Buffer.from('x\r\n.\r\n'));
      const groups = reception.kept[0]?.submission.groups.map(({ recipients }) => recipients.length);
      assert.deepEqual(groups, Array.from({ length: domains }, () => 2));
      session.destroy();
    }
  });
});

describe('a recipient whom somebody else must look up', () => {
  test('is asked for twenty times at most: answers may be forgotten as fast as they come', () => {
    let asked = 0;
    const kit = new Kit({ relayDomains: ['x.example'], greetingDelayMs: 0 }, undefined, {
      find: () => NOT_ASKED,
      learn: (_keys, done) => {
        asked++;
        assert.ok(asked < 100);
        done();
      },
    });
    assert.equal(kit.sends('EHLO a\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<a@x.example>\r\n'), '250 250 451');
    assert.equal(asked, 20);
  });

  test('is not asked for again when too many wait, and postmaster is taken all the same', () => {
    let asked = 0;
    const kit = new Kit({ relayDomains: ['x.example'], greetingDelayMs: 0 }, undefined, {
      find: () => NOT_ASKED,
      learn: (_keys, done) => {
        asked++;
        done(true);
      },
    });
    assert.equal(kit.sends('EHLO a\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<a@x.example>\r\n'), '250 250 451');
    assert.equal(asked, 1);
    assert.equal(kit.sends('RCPT TO:<postmaster@x.example>\r\n'), '250');
  });

  test('has a minute for it; an answer that comes later is for nobody', () => {
    const asked: { readonly keys: readonly string[]; readonly done: () => void }[] = [];
    const known = new Set<string>();
    const kit = new Kit({ relayDomains: ['x.example'], greetingDelayMs: 0, relayNetworks: ['192.0.2.0/24'] }, undefined, {
      find: (key) => (key.startsWith('@') ? undefined : known.has(key) ? { route: '', to: [] } : NOT_ASKED),
      learn: (keys, done) => { asked.push({ keys, done }); },
    });
    kit.sends('EHLO a\r\nMAIL FROM:<a@b.example>\r\n');
    assert.equal(kit.sends('RCPT TO:<a@x.example>\r\nRCPT TO:<b@x.example>\r\n'), '');
    kit.nowMs = 60_000;
    kit.desk.tick();
    assert.equal(kit.heard(), '');
    kit.nowMs = 61_001;
    kit.desk.tick();
    assert.equal(kit.heard(), '451');
    assert.deepEqual(asked.map(({ keys }) => keys), [['a@x.example'], ['b@x.example']]);
    known.add('a@x.example');
    asked[0]?.done();
    assert.equal(kit.heard(), '', 'the answer is not that for the second');
    known.add('b@x.example');
    asked[1]?.done();
    assert.equal(kit.heard(), '250');
    asked[1]?.done();
    assert.equal(kit.sends('RSET\r\n'), '250');
  });

  test('costs nothing any more when its client goes', () => {
    const asked: (() => void)[] = [];
    const kit = new Kit({ relayDomains: ['x.example'], greetingDelayMs: 0 }, undefined, { find: () => NOT_ASKED, learn: (_keys, done) => { asked.push(done); } });
    kit.sends('EHLO a\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<y@else.example>\r\nRCPT TO:<a@x.example>\r\nDATA\r\n');
    assert.equal(kit.session.state, State.LOOKING_UP);
    assert.ok(kit.reception.reservedBytes > 0);
    kit.session.onClose('reset');
    assert.equal(kit.reception.reservedBytes, 0);
    asked[0]?.();
    assert.equal(kit.session.state, State.CLOSED);
  });
});

describe('states', () => {
  const ALLOWED = [
    'PROXY GREETING', 'PROXY SECURING', 'PROXY CLOSING', 'GREETING COMMAND', 'GREETING CLOSING', 'COMMAND GREETING', 'COMMAND CONTENT', 'COMMAND SECURING', 'COMMAND CLOSING',
    'COMMAND CHUNK', 'CONTENT COMMAND', 'CONTENT ANSWERING', 'CONTENT CLOSING', 'CHUNK COMMAND', 'CHUNK ANSWERING',
    'CHUNK CLOSING', 'COMMAND RESPONSE', 'COMMAND CHECKING', 'RESPONSE COMMAND', 'RESPONSE CHECKING', 'RESPONSE CLOSING',
    'COMMAND LOOKING_UP', 'LOOKING_UP COMMAND', 'LOOKING_UP CLOSING', 'CHECKING COMMAND', 'CHECKING CLOSING', 'CONTENT JUDGING', 'CHUNK JUDGING', 'JUDGING COMMAND', 'JUDGING ANSWERING', 'ANSWERING COMMAND', 'SECURING COMMAND', 'SECURING GREETING', 'SECURING CLOSING',
  ];

  test('follow one another as the table says, and every one but CLOSED may be closed', () => {
    const names = Object.keys(State);
    assert.deepEqual(STATE_NAME, names);
    for (const [from, fromName] of names.entries()) {
      for (const [to, toName] of names.entries()) {
        const isAllowed = toName === 'CLOSED' ? fromName !== 'CLOSED' : ALLOWED.includes(`${fromName} ${toName}`);
        assert.equal(isValidTransition(from as State, to as State), isAllowed, `${fromName} to ${toName}`);
      }
    }
  });
});

describe('while a message is not answered', () => {
  test('what is pipelined behind it waits as a copy, counted, and is answered in order', () => {
    const kit = new Kit();
    assert.equal(kit.sends(`EHLO a\r\n${ENVELOPE}`), '250 250 250 354');
    const read = Buffer.from('text\r\n.\r\nRSET\r\nNOO', 'latin1');
    kit.session.onData(read);
    const counted = kit.reception.reservedBytes;
    assert.ok(counted >= 'RSET\r\nNOO'.length);
    // The read buffer is used again.
    read.fill(0x58);
    assert.equal(kit.heard(), '');
    assert.equal(kit.sends('P\r\nQUIT\r\n'), '');
    assert.deepEqual(kit.connection.calls, ['pause']);
    assert.equal(kit.outcome(COMMITTED), '250 250 250 221');
    assert.deepEqual(kit.connection.calls, ['pause', 'finish']);
    assert.equal(kit.reception.reservedBytes, 0);
  });

  test('the client is read on when what waited is obeyed', () => {
    const kit = new Kit();
    kit.sends(`EHLO a\r\n${ENVELOPE}`);
    kit.sends('text\r\n.\r\n');
    kit.sends('NOOP\r\n');
    kit.sends('NOOP\r\n');
    assert.deepEqual(kit.connection.calls, ['pause']);
    assert.equal(kit.outcome(REFUSED), '451 250 250');
    assert.deepEqual(kit.connection.calls, ['pause', 'resume']);
  });

  for (const [room, codes] of [[0, '250 421'], ['NOOP\r\n'.length, '250 250 421']] as const) {
    test(`what finds no room is dropped with all behind it, and that is told (room for ${String(room)})`, () => {
      const kit = new Kit();
      kit.sends(`EHLO a\r\n${ENVELOPE}`);
      kit.sends('text\r\n.\r\n');
      kit.reception.bytesMax = kit.reception.reservedBytes + room;
      kit.sends('NOOP\r\n');
      kit.sends('RSET\r\n');
      kit.reception.bytesMax = Infinity;
      kit.sends('NOOP\r\n');
      assert.equal(kit.outcome(COMMITTED), codes);
      assert.equal(kit.connection.calls.at(-1), 'end');
      assert.equal(kit.reception.reservedBytes, 0);
    });
  }

  test('the end of the client\'s side waits, too, and then it has every reply', () => {
    const kit = new Kit();
    kit.sends(`EHLO a\r\n${ENVELOPE}`);
    kit.sends('text\r\n.\r\nNOOP\r\n');
    kit.session.onEnd();
    assert.deepEqual(kit.connection.calls, []);
    assert.equal(kit.outcome(COMMITTED), '250 250');
    assert.deepEqual(kit.connection.calls, ['finish']);
  });

  test('a connection that is lost gives back what waited; the message stays the gateway\'s', () => {
    const kit = new Kit();
    kit.sends(`EHLO a\r\n${ENVELOPE}`);
    kit.sends('text\r\n.\r\nNOOP\r\n');
    kit.session.onClose('reset');
    assert.equal(kit.session.state, State.CLOSED);
    assert.equal(kit.outcome(COMMITTED), '');
    assert.equal(kit.reception.reservedBytes, 0);
    assert.equal(kit.desk.live.size, 0);
  });

  test('no reply closes the connection without a word', () => {
    const kit = new Kit();
    kit.sends(`EHLO a\r\n${ENVELOPE}`);
    kit.sends('text\r\n.\r\nNOOP\r\n');
    assert.equal(kit.outcome(NO_REPLY), '');
    assert.deepEqual([kit.connection.calls, kit.rejections], [['destroy'], ['data no-reply']]);
  });
});

describe('a client that pipelines commands', () => {
  test('lets others have their turn, and is answered in order however many there are', () => {
    const kit = new Kit({ idleCommandsMax: 1000 });
    const codes = (count: number): string => Array.from({ length: count }, () => '250').join(' ');
    assert.equal(kit.sends('NOOP\r\n'.repeat(250)), codes(100));
    assert.equal(kit.sends('NOOP\r\n'), '');
    assert.equal(kit.turn(), codes(100));
    assert.equal(kit.turn(), codes(51));
    assert.deepEqual(kit.connection.calls, ['pause', 'resume']);
  });

  test('and does not read its replies is not listened to until it does', () => {
    const kit = new Kit();
    kit.connection.onText = () => { kit.connection.isFull = true; };
    assert.equal(kit.sends('NOOP\r\n'), '250');
    assert.equal(kit.sends('NOOP\r\n'), '');
    kit.connection.drained();
    assert.equal(kit.heard(), '250');
  });

  test('and closes while it waits for its turn is forgotten', () => {
    const kit = new Kit({ idleCommandsMax: 1000 });
    kit.sends('NOOP\r\n'.repeat(150));
    kit.session.onClose('reset');
    assert.equal(kit.turn(), '');
    assert.equal(kit.reception.reservedBytes, 0);
  });
});

describe('BDAT', () => {
  const piece = fc.constantFrom('.', '\r\n', '\r\n.\r\n', 'x', 'Received: y\r\n', '\r\n..', 'QUIT\r\n', '\r', '\n', '\0');

  test('says of any content, however it is cut, what DATA says of it', () => {
    const cuts = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 6 });
    fc.assert(fc.property(fc.array(piece, { maxLength: 25, size: 'max' }), cuts, cuts, (pieces, chunks, reads) => {
      const content = pieces.join('') + '\r\n';
      const [byData, byChunks] = [new Kit({ idleCommandsMax: 1000, hopsMax: 3 }), new Kit({ idleCommandsMax: 1000, hopsMax: 3 })];
      byData.sends(`EHLO a\r\n${ENVELOPE}`);
      const stuffed = ('\r\n' + content).replaceAll('\r\n.', '\r\n..').slice(2);
      let said = byData.sends(`${stuffed}.\r\n`);
      if (said === '') said = byData.outcome(COMMITTED);
      byChunks.sends(`EHLO a\r\n${ENVELOPE.replace('DATA\r\n', '')}`);
      let wire = '';
      for (let at = 0, index = 0; at < content.length; index++) {
        const octets = chunks[index % chunks.length] ?? 1;
        wire += `BDAT ${String(Math.min(octets, content.length - at))}\r\n${content.slice(at, at + octets)}`;
        at += octets;
      }
      wire += 'BDAT 0 LAST\r\n';
      let last = '';
      for (let at = 0, index = 0; at < wire.length; index++) {
        const octets = reads[index % reads.length] ?? 1;
        last = byChunks.sends(wire.slice(at, at + octets)) || last;
        at += octets;
      }
      const kept = byChunks.reception.kept.at(-1)?.content;
      if (kept !== undefined) last = byChunks.outcome(COMMITTED);
      const isRefused = said !== '250';
      assert.equal(isRefused, kept === undefined, `DATA ${said}, BDAT ${last}`);
      if (!isRefused) {
        assert.deepEqual(bodyOf(kept), bodyOf(byData.reception.kept.at(-1)?.content));
        assert.equal(byChunks.reception.kept.at(-1)?.submission.flags, byData.reception.kept.at(-1)?.submission.flags);
      }
      byChunks.session.onClose('');
      byData.session.onClose('');
      assert.deepEqual([byChunks.reception.reservedBytes, byData.reception.reservedBytes], [0, 0]);
    }), { numRuns: 400 });
  });
});

describe('the end', () => {
  test('in the middle of silence, of a command, of content closes at once', () => {
    for (const said of ['', 'NOO', `EHLO a\r\n${ENVELOPE}half`]) {
      const kit = new Kit();
      kit.sends(said);
      kit.session.onEnd();
      assert.deepEqual(kit.connection.calls, ['finish'], said);
      assert.equal(kit.reception.reservedBytes, 0);
    }
  });

  test('QUIT with more behind it waits for the client\'s own end', () => {
    const kit = new Kit();
    assert.equal(kit.sends('QUIT\r\nNOOP\r\n'), '221');
    assert.deepEqual(kit.connection.calls, ['end']);
  });

  test('a line without an end is not kept beyond its limit', () => {
    const kit = new Kit();
    assert.equal(kit.sends('x'.repeat(2048)), '');
    assert.equal(kit.sends('x'), '');
    assert.equal(kit.sends('x'), '500 421');
    assert.deepEqual(kit.connection.calls, ['end']);
    assert.equal(kit.sends('NOOP\r\n'), '');
  });

  test('only CR LF ends a command: with a bare LF or CR in it, it is refused whole', () => {
    const kit = new Kit();
    assert.equal(kit.sends('NOOP\nQUIT\n'), '');
    assert.equal(kit.sends('RSET\r\nNOOP\r\n'), '501 250');
    assert.equal(kit.sends('NOOP\rQUIT\r'), '');
    assert.equal(kit.sends('\n'), '501');
    assert.equal(kit.sends('\nNOOP\r'), '');
    assert.equal(kit.sends('\n'), '501');
    assert.deepEqual(kit.rejections, ['command control-character', 'command control-character', 'command control-character']);
  });
});

describe('STARTTLS', () => {
  test('forgets what was said, drops what came behind it in clear, and is begun once', () => {
    const kit = new Kit();
    kit.sends(`EHLO a\r\nMAIL FROM:<a@example.org>\r\n`);
    assert.equal(kit.sends('STARTTLS\r\nNOOP\r\nRSE'), '220');
    kit.session.onDrain();
    assert.deepEqual(kit.connection.calls, ['secure']);
    assert.equal(kit.session.state, State.SECURING);
    kit.connection.secured({ version: 'TLSv1.2' });
    assert.equal(kit.heard(), '');
    assert.equal(kit.sends('RSET\r\nMAIL FROM:<a@example.org>\r\nSTARTTLS\r\n'), '250 503 503');
    assert.equal(kit.session.tlsVersion, 'TLSv1.2');
  });

  test('that takes too long ends the connection', () => {
    const kit = new Kit({ handshakeMs: 5000 });
    kit.sends('STARTTLS\r\n');
    kit.session.tick(5000);
    assert.deepEqual(kit.connection.calls, ['secure']);
    kit.session.tick(5001);
    assert.deepEqual(kit.connection.calls, ['secure', 'destroy']);
  });
});

test('hooks see what RCPT named, and apart from it where aliases lead', () => {
  const seen: JudgedEnvelope[] = [];
  const table = tableOf(['anna@ours.example', 'team@ours.example to=anna@ours.example,x@else.example']);
  const { desk } = testDesk({ relayDomains: ['ours.example'], postmaster: 'anna@ours.example', hostName: 'mx.test', greetingDelayMs: 0 }, {
    recipients: table, hooks: { judge: ({ envelope }, done) => {
      seen.push(envelope);
      done(undefined, new Uint8Array(0));
    } },
  });
  openSession(desk, new MemoryConnection()).onData(Buffer.from('EHLO a\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<Team@ours.example>\r\nRCPT TO:<postmaster>\r\nDATA\r\n\r\nx\r\n.\r\n'));
  table.close();
  assert.deepEqual(seen.map(({ recipients, destinations }) => [recipients, destinations]), [[['Team@ours.example', 'postmaster@mx.test'], ['anna@ours.example', 'x@else.example']]]);
});
