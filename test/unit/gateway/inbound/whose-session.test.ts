/** Whose session it is, when somebody stands between: a proxy's rights, connections and lists are not its clients'. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DEEDS, PARTIES, RateLimits } from '../../../../src/gateway/inbound/limits/rate-limits.js';
import type { RateOptions } from '../../../../src/gateway/inbound/limits/rate-limits.js';
import type { Blocked } from '../../../../src/gateway/inbound/options.js';
import { NetworkList } from '../../../../src/gateway/inbound/policy/network-list.js';
import { MemoryConnection } from '../../../scenario/memory-connection.js';
import { authenticatorOf, scramLine } from '../../../dialog/people.js';
import { limits } from '../../../inbound/rates.js';
import { openSession, testDesk } from '../../../inbound/desk.js';

const PROXY = '10.0.0.1';

function say(session: ReturnType<typeof openSession>, connection: MemoryConnection, ...lines: readonly string[]): string {
  connection.text = '';
  session.onData(Buffer.from(lines.map((line) => `${line}\r\n`).join('')));
  return connection.text.trimEnd().split('\r\n').at(-1) ?? '';
}

describe('a proxy that names its client by XCLIENT', () => {
  test('does not lend its certificate, whichever comes first', () => {
    const { desk } = testDesk({ xclientNetworks: ['10.0.0.0/8'], relayNetworks: [], relayCertificates: ['proxy.example'] });
    const facts = { peerNames: ['proxy.example'] };
    for (const steps of [['tls'], ['tls', 'xclient'], ['xclient', 'tls'], ['xclient unavailable', 'tls']]) {
      const connection = new MemoryConnection(PROXY);
      const session = openSession(desk, connection);
      for (const step of steps) {
        if (step === 'tls') {
          assert.match(say(session, connection, 'STARTTLS'), /^220 /);
          connection.secured(facts);
        } else assert.match(say(session, connection, `XCLIENT ADDR=${step === 'xclient' ? '203.0.113.9' : '[UNAVAILABLE]'}`), /^220 /);
      }
      const answer = say(session, connection, 'EHLO x', 'MAIL FROM:<a@example.org>', 'RCPT TO:<b@elsewhere.example>');
      assert.match(answer, steps.length === 1 ? /^250 / : /^550 5\.7\.1 /, steps.join());
      session.destroy();
    }
  });

  test('greets it when blocklists have answered, and obeys what it sent ahead then', () => {
    const asked: { readonly address: string; readonly answer: (none: '') => void }[] = [];
    const { desk } = testDesk(
      { xclientNetworks: ['10.0.0.0/8'], relayNetworks: ['10.0.0.0/8'], relayDomains: ['ours.example'], blocklists: ['one.example'], greetingDelayMs: 100 },
      { blocklists: { look: (address, _lists, answer) => { asked.push({ address, answer }); } } },
    );
    const connection = new MemoryConnection(PROXY);
    const session = openSession(desk, connection);
    assert.equal(asked.length, 0, 'who may relay is on none');
    assert.equal(say(session, connection, 'XCLIENT ADDR=203.0.113.9'), '');
    assert.equal(say(session, connection, 'EHLO x', 'MAIL FROM:<a@example.org>', 'RCPT TO:<b@ours.example>'), '');
    assert.deepEqual(asked.map(({ address }) => address), ['203.0.113.9']);
    asked[0]?.answer('');
    const replies = connection.text.trimEnd().split('\r\n');
    assert.match(replies[0] ?? '', /^220 /);
    assert.match(replies.at(-1) ?? '', /^250 2\.1\.5 /);
    session.destroy();
  });

  test('has lists asked about that client: no answer about another counts, nor one about itself for whom it does not know', () => {
    const asked: { readonly address: string; readonly answer: (blocked: '' | Blocked) => void }[] = [];
    const { desk } = testDesk(
      { xclientNetworks: ['10.0.0.0/8'], relayNetworks: [], relayDomains: ['ours.example'], blocklists: ['one.example'] },
      { blocklists: { look: (address, _lists, answer) => { asked.push({ address, answer }); } } },
    );
    const blocked = { list: 'one.example', code: '127.0.0.2' };
    const connection = new MemoryConnection(PROXY);
    const session = openSession(desk, connection);
    asked[0]?.answer('');
    const mail = ['HELO x', 'MAIL FROM:<a@example.org>', 'RCPT TO:<b@ours.example>'];
    // Late: an answer about the proxy, or about a client that it has named before.
    assert.equal(say(session, connection, 'XCLIENT ADDR=203.0.113.9'), '');
    asked[0]?.answer(blocked);
    assert.equal(connection.text, '', 'not the one that is waited for');
    asked[1]?.answer('');
    assert.match(connection.text, /^220 /);
    assert.match(say(session, connection, 'XCLIENT ADDR=[UNAVAILABLE]'), /^220 /);
    for (const each of asked) each.answer(blocked);
    assert.match(say(session, connection, ...mail), /^250 2\.1\.5 /);
    assert.deepEqual(asked.map(({ address }) => address), [PROXY, '203.0.113.9']);
    session.destroy();
  });

  test('is exempt from limits, and whom it does not know is not', () => {
    const exempt = '233.252.0.1';
    const { desk } = testDesk({ xclientNetworks: [exempt] }, { rates: limits(['sender', 'messages', 1]) });
    for (const [address, second] of [[exempt, /^250 /], ['[UNAVAILABLE]', /^450 4\.7\.1 /]] as const) {
      const connection = new MemoryConnection(exempt);
      const session = openSession(desk, connection);
      say(session, connection, `XCLIENT ADDR=${address}`);
      assert.match(say(session, connection, 'HELO x', 'MAIL FROM:<a@example.org>'), /^250 /);
      assert.match(say(session, connection, 'RSET', 'MAIL FROM:<a@example.org>'), second, address);
      session.destroy();
    }
  });

  test('keeps its LOGIN over a command that names nobody, but not over TLS; who came by AUTH comes again', async () => {
    const IS_USER = /^250 2\.1\.0 /;
    const IS_NOBODY = /^530 5\.7\.0 /;
    const { desk } = testDesk(
      { xclientNetworks: ['10.0.0.0/8'], xclientLogin: true, relayNetworks: [], isSubmission: true },
      { authenticator: authenticatorOf([await scramLine('alice@a.example', 'pw')]) },
    );
    const plain = `AUTH PLAIN ${Buffer.from('\0alice@a.example\0pw').toString('base64')}`;
    for (const [steps, answer] of [
      [['LOGIN=alice@a.example', 'HELO=y'], IS_USER],
      [['ADDR=192.0.2.1 LOGIN=alice@a.example', 'LOGIN=[UNAVAILABLE]'], IS_NOBODY],
      [['LOGIN=alice@a.example', 'tls'], IS_NOBODY],
      [['LOGIN=alice@a.example', 'tls', 'HELO=y'], IS_NOBODY],
      [['ADDR=192.0.2.1', 'tls', 'auth'], IS_USER],
      [['ADDR=192.0.2.1', 'tls', 'auth', 'HELO=y'], IS_NOBODY],
    ] as const) {
      const connection = new MemoryConnection(PROXY);
      const session = openSession(desk, connection);
      for (const step of steps) {
        if (step === 'tls') {
          say(session, connection, 'STARTTLS');
          connection.secured({ peerNames: [] });
        } else if (step === 'auth') {
          say(session, connection, 'EHLO x', plain);
          while (!/^235 /m.test(connection.text)) await new Promise(setImmediate);
        } else assert.match(say(session, connection, `XCLIENT ${step}`), /^220 /);
      }
      assert.match(say(session, connection, 'EHLO x', 'MAIL FROM:<alice@a.example>'), answer, steps.join());
      session.destroy();
    }
  });
});

test('a connection of a balancer that names nobody is granted nothing, nor is it believed whose it is', () => {
  const networks = ['10.0.0.0/8'];
  const { desk } = testDesk({ proxyNetworks: networks, xclientNetworks: networks, xclientLogin: true, relayNetworks: networks });
  const local = Buffer.from('0d0a0d0a000d0a515549540a2000000000', 'hex').subarray(0, 16);
  for (const header of [Buffer.from('PROXY UNKNOWN\r\n'), local]) {
    const connection = new MemoryConnection(PROXY);
    const session = openSession(desk, connection);
    session.onData(header);
    say(session, connection, 'EHLO x');
    assert.ok(!connection.text.includes('XCLIENT'), connection.text);
    for (const said of ['ADDR=10.0.0.7', 'LOGIN=root']) assert.match(say(session, connection, `XCLIENT ${said}`), /^550 5\.7\.0 /);
    assert.match(say(session, connection, 'MAIL FROM:<a@example.org>', 'RCPT TO:<b@elsewhere.example>'), /^550 5\.7\.1 /);
    session.destroy();
  }
});

test('the log names the listener and the client behind the proxy, with its port as far as it is known', async () => {
  const received: unknown[] = [];
  const options = { port: 2526, proxyNetworks: ['10.0.0.0/8'], xclientNetworks: ['203.0.113.0/24'], relayDomains: ['ours.example'] };
  const { desk, refused } = testDesk(options, {
    mailLog: {
      wantsMessageId: false,
      received: ({ client, clientPort }, listener) => { received.push([listener, client, clientPort]); },
      rejected: (refusal) => { refused.push(refusal); },
    },
  });
  const bySteps: readonly (readonly [readonly string[], string, number])[] = [
    [['PROXY TCP4 198.51.100.7 10.0.0.2 40001 25'], '198.51.100.7', 40001],
    [['PROXY UNKNOWN'], PROXY, 0],
    [['PROXY TCP4 203.0.113.1 10.0.0.2 40001 25', 'XCLIENT ADDR=192.0.2.1 PORT=65535'], '192.0.2.1', 65535],
    [['PROXY TCP4 203.0.113.1 10.0.0.2 40001 25', 'XCLIENT ADDR=192.0.2.1'], '192.0.2.1', 0],
    [['PROXY TCP4 203.0.113.1 10.0.0.2 40001 25', 'XCLIENT ADDR=192.0.2.1 PORT=[UNAVAILABLE]'], '192.0.2.1', 0],
  ];
  for (const [steps, client, clientPort] of bySteps) {
    const connection = new MemoryConnection(PROXY);
    const session = openSession(desk, connection);
    for (const step of steps) assert.match(`220 ${say(session, connection, step)}`, /^220 (220 |$)/, step);
    say(session, connection, 'EHLO x', 'MAIL FROM:<a@example.org>', 'RCPT TO:<b@elsewhere.example>');
    const last = refused.at(-1);
    assert.deepEqual([last?.listener, last?.client, last?.clientPort], ['127.0.0.1:2526', client, clientPort], steps.join());
    say(session, connection, 'RCPT TO:<b@ours.example>', 'DATA', '.');
    await new Promise(setImmediate);
    assert.deepEqual(received.pop(), ['127.0.0.1:2526', client, clientPort], steps.join());
    session.destroy();
  }
  const connection = new MemoryConnection('203.0.113.1');
  const xclient = openSession(testDesk({ xclientNetworks: ['203.0.113.0/24'] }).desk, connection);
  for (const port of ['65536', '1x', '-1', '123456']) {
    assert.match(say(xclient, connection, `XCLIENT ADDR=192.0.2.1 PORT=${port}`), /^501 /, port);
  }
  xclient.destroy();
});

test('a connection that is refused before TLS that comes first is closed without a word, and the log has why', () => {
  const rates = limits(['client', 'connections', 1]);
  for (const [options, ports, came, reason] of [
    [{ connectionsMax: 0 }, {}, '', 'connections'],
    [{ proxyNetworks: ['10.0.0.0/8'] }, {}, '', 'proxy-network'],
    [{ proxyNetworks: ['198.51.100.0/24'] }, {}, 'EHLO x\r\n', 'proxy-header'],
    [{ connectionsPerClientMax: 0 }, {}, '', 'connections-client'],
    [{}, { rates }, '', ''], [{}, { rates }, '', 'rate-connections'],
  ] as const) {
    const { desk, refused } = testDesk({ ...options, isTlsFirst: true }, ports);
    const connection = new MemoryConnection('198.51.100.7');
    const session = openSession(desk, connection);
    if (came !== '') session.onData(Buffer.from(came));
    assert.deepEqual([connection.text, refused.map((each) => each.reason).join()], ['', reason]);
    assert.equal(connection.isOver, reason !== '');
    if (reason === '') session.destroy();
  }
});

test('the wrong password that ends a session is an error as those before it', async () => {
  const options = Object.fromEntries(PARTIES.map((party) =>
    [party, Object.fromEntries(DEEDS.map((deed) => [deed, party === 'client' && deed === 'errors' ? 3 : 0]))])) as RateOptions;
  const rates = new RateLimits(options, new NetworkList([], 'exempt'));
  const authenticator = authenticatorOf([await scramLine('alice@example.org', 'secret')]);
  const { desk } = testDesk({ isSubmission: true }, { authenticator, rates });
  const connection = new MemoryConnection('198.51.100.7');
  const session = openSession(desk, connection);
  say(session, connection, 'STARTTLS');
  connection.secured();
  say(session, connection, 'EHLO x');
  for (let i = 0; i < 3; i++) {
    connection.text = '';
    session.onData(Buffer.from(`AUTH PLAIN ${Buffer.from(`\0alice@example.org\0wrong${String(i)}`).toString('base64')}\r\n`));
    while (!/\d{3} .*\r\n$/.test(connection.text)) await new Promise(setImmediate);
  }
  assert.match(connection.text, /^421 4\.7\.0 /);
  const doer = { remoteAddress: '198.51.100.7', user: '', proxy: '' };
  assert.equal(rates.hasDoneAll('errors', doer, '', desk.nowMs), true);
});
