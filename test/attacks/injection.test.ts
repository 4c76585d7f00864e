/**
 * Injection: bytes that somebody on the way puts behind STARTTLS, behind a PROXY header, behind XCLIENT or behind AUTH, so
 * that they are obeyed as if the one who comes next had said them. Cut at every byte.
 *
 * Elsewhere: one STARTTLS over real sockets, test/dialog/port.test.ts; PROXY and XCLIENT as conversations,
 * test/dialog/proxy.txt and test/dialog/xclient.txt; headers cut anywhere, test/unit/gateway/inbound/proxy-header.test.ts;
 * what is sent ahead of the verdict on a password, test/unit/gateway/inbound/auth.test.ts.
 */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';

import type { Authenticator } from '../../src/gateway/inbound/auth/authenticator.js';
import { State } from '../../src/gateway/inbound/session/session-states.js';
import { Client, startHarness } from '../dialog/harness.js';
import { authenticatorOf, scramLine } from '../dialog/people.js';
import { VirtualDesk } from './virtual-desk.js';
import type { VirtualClient } from './virtual-desk.js';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const MESSAGE = 'MAIL FROM:<evil@inner.example>\r\nRCPT TO:<victim@inner.example>\r\nDATA\r\nSubject: inner\r\n\r\ninner\r\n.\r\n';
const ENVELOPE = ['MAIL FROM:<a@b.example>', 'RCPT TO:<c@d.example>'];

let people: Authenticator;
before(async () => {
  people = authenticatorOf([await scramLine('alice@b.example', 'secret', '*')]);
});
const LOGIN = `AUTH PLAIN ${base64('\0alice@b.example\0secret')}`;

/** The whole in one read, and in two for every place between. */
function* readsOf(text: string): Generator<readonly number[]> {
  yield [text.length];
  for (let at = 1; at < text.length; at++) yield [at, text.length - at];
}

describe('behind STARTTLS', () => {
  const injected = [
    'NOOP\r\n', 'EHLO evil\r\n', `EHLO evil\r\n${MESSAGE}`, 'EHLO evil\r\nMAIL FROM:<evil@inner.example>\r\n', 'NOO', 'EHLO ev', '\r\n', '\n', 'QUIT\r\n', 'STARTTLS\r\n',
    'XCLIENT ADDR=192.0.2.7 LOGIN=alice@b.example\r\n', `${LOGIN}\r\n`, 'BDAT 1000 LAST\r\n', 'AUTH LOGIN\r\n', `${'NOOP\r\n'.repeat(150)}`,
  ];

  test('nothing is obeyed, and nothing is left for the session within TLS', () => {
    const world = new VirtualDesk({ xclientNetworks: ['127.0.0.0/8'], xclientLogin: true });
    for (const more of injected) {
      for (const sizes of readsOf(`STARTTLS\r\n${more}`)) {
        // In a second read come bytes of the TLS session, which are not the session's.
        if ((sizes[0] ?? 0) < 'STARTTLS\r\n'.length) continue;
        const client = world.connect();
        client.send('EHLO client.example\r\n').heard();
        client.send(`STARTTLS\r\n${more}`.slice(0, sizes[0]));
        assert.equal(client.heard(), '220 2.0.0 Ready to start TLS\r\n', more);
        assert.deepEqual([client.session.state, client.connection.calls.at(-1)], [State.SECURING, 'secure']);
        client.secured();
        assert.equal(client.heard(), '', `${JSON.stringify(more)} cut at ${String(sizes[0])}`);
        // In step: the first line within TLS is whole, and has one reply.
        assert.equal(client.say('NOOP'), '250 2.0.0 Ok');
        assert.match(client.say('MAIL FROM:<a@b.example>'), /^503 5\.5\.1 Send EHLO/);
        client.leave();
      }
    }
    assert.equal(world.reception.kept.length, 0);
    assert.equal(world.reception.reservedBytes, 0);
  });

  test('all that was said before is forgotten: name, transaction, chunk, user', () => {
    const world = new VirtualDesk({ xclientNetworks: ['127.0.0.0/8'], xclientLogin: true, relayNetworks: [] });
    const said: readonly (readonly string[])[] = [
      ['EHLO a'], ['EHLO a', ...ENVELOPE], ['EHLO a', 'XCLIENT ADDR=198.51.100.7 LOGIN=alice', 'EHLO a', ...ENVELOPE], ['EHLO a', 'MAIL FROM:<a@b.example>', 'RCPT TO:<postmaster>', 'BDAT 3\r\nx\r\n'.trimEnd()],
    ];
    for (const lines of said) {
      const client = world.connect();
      for (const line of lines) client.send(`${line}\r\n`);
      client.heard();
      assert.match(client.say('STARTTLS'), /^220 /, lines.join());
      client.secured();
      const { session } = client;
      assert.deepEqual([session.helo, session.user, session.transaction, session.chunk, session.exchange], ['', '', undefined, undefined, undefined]);
      for (const line of ['RCPT TO:<postmaster>', 'DATA', 'MAIL FROM:<a@b.example>', 'BDAT 0 LAST']) assert.match(client.say(line), /^503 5\.5\.1 /, line);
      client.send('EHLO b\r\n');
      assert.ok(!client.heard().includes('STARTTLS'), 'not offered within TLS');
      assert.match(client.say('STARTTLS'), /^503 5\.5\.1 TLS is active/);
      assert.match(client.say('MAIL FROM:<a@b.example>'), /^250 /);
      assert.match(client.say('RCPT TO:<c@d.example>'), /^550 5\.7\.1 /, 'the login in clear is no login within TLS');
      client.leave();
    }
    assert.equal(world.reception.reservedBytes, 0);
  });

  test('with an argument, or where none is offered, no handshake begins', () => {
    for (const [options, line, code] of [[{}, 'STARTTLS now', '501'], [{ offersTls: false }, 'STARTTLS', '502'], [{}, 'STARTTLSX', '500'], [{}, '\u017fTARTTLS', '500']] as const) {
      const client = new VirtualDesk(options).connect();
      assert.equal(client.say(line).slice(0, 3), code, line);
      assert.equal(client.say('NOOP'), '250 2.0.0 Ok');
      assert.ok(!client.connection.calls.includes('secure'));
    }
  });
});

const PROXY_LINE = 'PROXY TCP4 198.51.100.9 127.0.0.1 4660 25\r\n';
const PROXY_BINARY = Buffer.from([0x0d, 0x0a, 0x0d, 0x0a, 0, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a, 0x21, 0x11, 0, 12, 198, 51, 100, 9, 127, 0, 0, 1, 0x12, 0x34, 0, 25]).toString('latin1');
const PROXY_BINARY_INSIDE = PROXY_BINARY.replace('\xc6\x33\x64\x09', '\x7f\0\0\x01');

describe('behind a PROXY header', () => {
  test('what comes before the greeting is early talk, whoever sent it, however it is cut', () => {
    for (const header of [PROXY_LINE, PROXY_BINARY]) {
      for (const more of [MESSAGE, 'EHLO evil\r\n', PROXY_LINE, PROXY_BINARY_INSIDE, 'X', '\r\n']) {
        for (const sizes of readsOf(header + more)) {
          const world = new VirtualDesk({ proxyNetworks: ['127.0.0.0/8'], greetingDelayMs: 100 });
          const client = world.connect();
          client.sendCut(Buffer.from(header + more, 'latin1'), sizes);
          assert.equal(client.heard(), '421 4.7.0 You talk before the greeting\r\n', JSON.stringify(header + more));
          assert.equal(client.connection.isOver, true);
        }
      }
    }
  });

  test('a second header changes nothing: the client stays who the first one named', () => {
    for (const header of [PROXY_LINE, PROXY_BINARY]) {
      for (const second of ['PROXY TCP4 127.0.0.1 127.0.0.1 4660 25\r\n', PROXY_BINARY_INSIDE, 'PROXY UNKNOWN\r\n', `EHLO a\r\n${PROXY_BINARY_INSIDE}`]) {
        const world = new VirtualDesk({ proxyNetworks: ['127.0.0.0/8'], relayNetworks: ['127.0.0.0/8'], idleCommandsMax: 1000 });
        const wire = `${header}${second}\r\n`;
        for (const sizes of readsOf(wire)) {
          const client = world.connect();
          client.sendCut(Buffer.from(wire, 'latin1'), sizes);
          assert.equal(client.session.remoteAddress, '198.51.100.9');
          assert.equal(client.session.isTrusted, false);
          // A line that the bytes of the second header left open ends here.
          client.send('\r\nEHLO a\r\nMAIL FROM:<a@b.example>\r\n').heard();
          assert.match(client.say('RCPT TO:<c@d.example>'), /^550 5\.7\.1 /, JSON.stringify(wire));
          client.leave();
        }
      }
    }
  });

  test('a header that comes in two reads is its own, whatever another client sends in between', { timeout: 10_000 }, async () => {
    const { inbound } = await startHarness({ proxyNetworks: ['127.0.0.0/8'], relayNetworks: ['127.0.0.0/8'] });
    const spoof = 'PROXY TCP4 127.0.0.1 127.0.0.1 4660 25\r\n';
    for (let at = 1; at < PROXY_LINE.length; at++) {
      const [victim, evil] = [new Client(inbound.port), new Client(inbound.port)];
      victim.send(PROXY_LINE.slice(0, at));
      evil.send('PROXY TCP4 198.51.100.66 127.0.0.1 4660 25\r\n');
      assert.match(await evil.reply(), /^220 /);
      // All connections are read into one buffer: this stands where the first half stood.
      assert.match(await evil.command(spoof.trimEnd()), /^500 /);
      victim.send(PROXY_LINE.slice(at));
      assert.match(await victim.reply(), /^220 /, `cut at ${String(at)}`);
      assert.match(await victim.command('HELO a'), /greets \[198\.51\.100\.9\]/, `cut at ${String(at)}`);
      victim.destroy();
      evil.destroy();
    }
    await inbound.close(1000);
  });

  test('a client of the balancer is no peer of XCLIENT, though the balancer is', () => {
    const world = new VirtualDesk({ proxyNetworks: ['127.0.0.0/8'], xclientNetworks: ['127.0.0.0/8'], xclientLogin: true, relayNetworks: ['192.0.2.0/24'] });
    const client = world.connect();
    client.send(`${PROXY_LINE}EHLO a\r\n`);
    assert.ok(!client.heard().includes('XCLIENT'));
    assert.match(client.say('XCLIENT ADDR=192.0.2.7 LOGIN=root'), /^550 5\.7\.0 /);
    assert.deepEqual([client.session.remoteAddress, client.session.user, client.session.isTrusted], ['198.51.100.9', '', false]);
  });

  test('from elsewhere nothing is read at all: not even a whole conversation', () => {
    const world = new VirtualDesk({ proxyNetworks: ['10.0.0.0/8'] });
    const client = world.connect('192.0.2.1');
    client.send(`PROXY TCP4 10.0.0.1 127.0.0.1 1 25\r\nEHLO a\r\n${MESSAGE}`);
    assert.equal(client.heard(), '');
    assert.equal(client.connection.isOver, true);
    assert.deepEqual(world.rejections, ['connect proxy-network']);
  });
});

describe('behind XCLIENT', () => {
  const open = (): VirtualClient => {
    const world = new VirtualDesk({ xclientNetworks: ['127.0.0.0/8'], relayNetworks: ['127.0.0.0/8'] });
    const client = world.connect();
    client.send('EHLO proxy.example\r\n').heard();
    return client;
  };

  test('all is said in the name of the client that it names, from the greeting on, however it is cut', () => {
    const wire = `XCLIENT ADDR=198.51.100.9\r\n${ENVELOPE.join('\r\n')}\r\nEHLO evil\r\n${ENVELOPE.join('\r\n')}\r\nDATA\r\n`;
    for (const sizes of readsOf(wire)) {
      const client = open();
      assert.equal(client.sendCut(Buffer.from(wire), sizes).codes(), '220 503 503 250 250 550 554', String(sizes[0]));
      assert.equal(client.session.remoteAddress, '198.51.100.9');
    }
  });

  test('what the proxy had said of itself is forgotten', () => {
    const client = open();
    assert.match(client.say('XCLIENT NAME=x'), /^220 /, 'an address is not needed');
    assert.deepEqual([client.session.helo, client.session.isExtended, client.session.user], ['', false, '']);
    assert.match(client.say(ENVELOPE[0] ?? ''), /^503 /);
  });

  test('is refused within a transaction, within its chunks, and to who is not listed, whatever he was named', () => {
    for (const lines of [['MAIL FROM:<a@b.example>'], ENVELOPE, [...ENVELOPE, 'BDAT 3\r\nx']]) {
      const client = open();
      for (const line of lines) client.send(`${line}\r\n`);
      client.heard();
      assert.match(client.say('XCLIENT ADDR=198.51.100.9'), /^503 /, lines.join());
      assert.equal(client.session.remoteAddress, '127.0.0.1');
    }
    const stranger = new VirtualDesk({ xclientNetworks: ['127.0.0.0/8'], xclientLogin: true }).connect('198.51.100.9');
    for (const line of ['XCLIENT ADDR=127.0.0.1', 'XCLIENT LOGIN=root', 'xclient NAME=x', 'XCLIENT']) assert.match(stranger.say(line), /^550 5\.7\.0 /, line);
    for (const line of ['XFORWARD ADDR=127.0.0.1', 'XFORWARD NAME=x', 'XCLIENTX ADDR=127.0.0.1']) assert.match(open().say(line), /^500 /, line);
  });
});

describe('behind AUTH', () => {
  const open = (): VirtualClient => {
    const client = new VirtualDesk({ isSubmission: true, isTlsFirst: true, authenticator: people }).connect('198.51.100.7').secured();
    client.send('EHLO a\r\n').heard();
    return client;
  };
  const codesOf = async (client: VirtualClient, count: number): Promise<string> => {
    let codes = '';
    while (codes.split(' ').filter((code) => code !== '').length < count) {
      await new Promise(setImmediate);
      codes = `${codes} ${client.codes()}`.trim();
    }
    return codes;
  };

  test('with a wrong password all is refused that needs a user, however it was sent ahead', async () => {
    const wrong = `AUTH PLAIN ${base64('\0alice@b.example\0wrong')}\r\n${ENVELOPE.join('\r\n')}\r\nNOOP\r\n`;
    for (const sizes of [[wrong.length], [1], [60, wrong.length], [70, wrong.length]]) {
      const client = open();
      client.sendCut(Buffer.from(wrong), sizes);
      assert.equal(await codesOf(client, 4), '535 530 503 250', String(sizes[0]));
      assert.equal(client.session.user, '');
    }
  });

  test('lines of an exchange that was refused are commands, unknown ones, and a second AUTH is none', async () => {
    const client = open();
    client.send(`AUTH CRAM-MD5\r\n${base64('alice@b.example')}\r\n${base64('secret')}\r\n`);
    assert.equal(client.codes(), '504 500 500');
    client.send(`${LOGIN}\r\nAUTH LOGIN\r\nMAIL FROM:<a@b.example>\r\nAUTH PLAIN\r\n`);
    assert.equal(await codesOf(client, 4), '235 503 250 503');
    assert.equal(client.session.user, 'alice@b.example');
  });

  test('commands within an exchange are responses, and none is obeyed', () => {
    for (const command of ['MAIL FROM:<a@b.example>', 'QUIT', 'RSET', 'EHLO evil', 'STARTTLS', 'DATA', 'XCLIENT LOGIN=alice@b.example']) {
      const client = open();
      assert.match(client.say('AUTH SCRAM-SHA-256'), /^334/);
      assert.match(client.say(command), /^501 5\.5\.2 /, command);
      assert.equal(client.session.helo, 'a');
      assert.match(client.say('MAIL FROM:<a@b.example>'), /^530 /);
    }
  });

  test('in clear nothing is asked for, and what follows is no secret in a log', () => {
    const world = new VirtualDesk({ isSubmission: true, authenticator: people });
    const client = world.connect('198.51.100.7');
    client.send('EHLO a\r\n').heard();
    for (const line of [LOGIN, 'AUTH PLAIN', 'AUTH LOGIN', 'AUTH SCRAM-SHA-256', 'AUTH']) assert.match(client.say(line), /^538 5\.7\.11 /, line);
    assert.match(client.say(base64('secret')), /^500 5\.5\.2 Command not recognized$/);
  });
});
