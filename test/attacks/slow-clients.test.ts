/**
 * Clients that take their time, in every state of a session: each is ended within its bound, in virtual time, holds little
 * memory until then and none after, and others are served meanwhile. Once more over real sockets, all of them at a time,
 * for what the machine does not see: TLS, and clients that keep their side open.
 *
 * Elsewhere: single bounds as conversations, test/dialog/session.txt, test/dialog/bdat.txt and test/dialog/proxy.txt; what
 * a store or a slow commit makes wait is not the client's time, test/dialog/intake.test.ts.
 */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { before, describe, test } from 'node:test';

import type { Authenticator } from '../../src/gateway/inbound/auth/authenticator.js';
import { INBOUND_DEFAULTS } from '../../src/gateway/inbound/options.js';
import { State } from '../../src/gateway/inbound/session/session-states.js';
import { Client, startHarness } from '../dialog/harness.js';
import { authenticatorOf, scramLine } from '../dialog/people.js';
import { selfSigned } from '../dialog/self-signed.js';
import { VirtualDesk } from './virtual-desk.js';
import type { VirtualClient, VirtualOptions } from './virtual-desk.js';

const { proxyMs, handshakeMs, idleMs, contentMs, contentGraceMs, idleCommandsMax, deadlineTickMs } = INBOUND_DEFAULTS;
const SECOND_MS = 1000;
const ENVELOPE = 'EHLO a\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n';
/** What a session may hold for a client that sends nothing of use. */
const HELD_BYTES_MAX = 16 * 1024;

interface Slow {
  readonly what: string;
  readonly state: State;
  readonly options?: VirtualOptions;
  /** What brings the session into the state. */
  readonly until: (client: VirtualClient) => void;
  /** What the client does in each second of the state. */
  readonly eachSecond?: (client: VirtualClient, second: number) => void;
  readonly endsWithinMs: number;
  /** The last that it hears. */
  readonly hears: RegExp;
}

const says = (text: string) => (client: VirtualClient): void => { client.send(text); };
const drips = (text: string) => (client: VirtualClient, second: number): void => { client.send(text.charAt(second % text.length)); };
const each = (seconds: number, text: string) => (client: VirtualClient, second: number): void => { if (second % seconds === seconds - 1) client.send(text); };
const SUBMISSION: VirtualOptions = { isSubmission: true, isTlsFirst: true };

const SLOW: readonly Slow[] = [
  { what: 'says nothing where a PROXY header is due', state: State.PROXY, options: { proxyNetworks: ['127.0.0.0/8'] }, until: says(''), endsWithinMs: proxyMs, hears: /^$/ },
  { what: 'drips its PROXY header', state: State.PROXY, options: { proxyNetworks: ['127.0.0.0/8'] }, until: says('PROXY '), eachSecond: drips('TCP4 192.0.2.1 '), endsWithinMs: proxyMs, hears: /^$/ },
  { what: 'waits for its greeting, and then says nothing', state: State.GREETING, options: { greetingDelayMs: 100, relayNetworks: [] }, until: says(''), endsWithinMs: idleMs + 100, hears: /421 4\.4\.2 Idle/ },
  { what: 'begins no handshake', state: State.SECURING, options: SUBMISSION, until: says(''), endsWithinMs: handshakeMs, hears: /^$/ },
  { what: 'begins no handshake after STARTTLS', state: State.SECURING, until: says('STARTTLS\r\n'), endsWithinMs: handshakeMs, hears: /220 2\.0\.0 Ready/ },
  { what: 'says nothing', state: State.COMMAND, until: says('EHLO a\r\n'), endsWithinMs: idleMs, hears: /421 4\.4\.2 Idle/ },
  { what: 'drips a command', state: State.COMMAND, until: says('EHLO a\r\n'), eachSecond: drips('NOOP x'), endsWithinMs: idleMs, hears: /421 4\.4\.2 Idle/ },
  { what: 'drips line ends that are none', state: State.COMMAND, until: says('EHLO a\r\n'), eachSecond: drips('\n'), endsWithinMs: idleMs, hears: /421 4\.4\.2 Idle/ },
  { what: 'says NOOP now and then', state: State.COMMAND, until: says('EHLO a\r\n'), eachSecond: each(60, 'NOOP\r\n'), endsWithinMs: 60_000 * (idleCommandsMax + 1), hears: /421 4\.7\.0 Too many commands/ },
  { what: 'begins transactions now and then', state: State.COMMAND, until: says('EHLO a\r\n'), eachSecond: each(60, `${ENVELOPE}RSET\r\n`), endsWithinMs: 60_000 * idleCommandsMax, hears: /421 4\.7\.0 Too many commands/ },
  { what: 'answers no challenge', state: State.RESPONSE, options: SUBMISSION, until: (client) => client.secured().send('EHLO a\r\nAUTH LOGIN\r\n'), endsWithinMs: idleMs, hears: /421 4\.4\.2 Idle/ },
  { what: 'drips its response', state: State.RESPONSE, options: SUBMISSION, until: (client) => client.secured().send('EHLO a\r\nAUTH SCRAM-SHA-256\r\n'), eachSecond: drips('QUJD'), endsWithinMs: idleMs, hears: /421 4\.4\.2 Idle/ },
  { what: 'sends no content', state: State.CONTENT, until: says(`${ENVELOPE}DATA\r\n`), endsWithinMs: contentGraceMs, hears: /421 4\.4\.2 Message came too slowly/ },
  { what: 'drips its content', state: State.CONTENT, until: says(`${ENVELOPE}DATA\r\n`), eachSecond: drips('x: y\r\n'), endsWithinMs: contentGraceMs, hears: /421 4\.4\.2 Message came too slowly/ },
  { what: 'begins fast and then drips', state: State.CONTENT, until: says(`${ENVELOPE}DATA\r\n${'x'.repeat(5000)}`), eachSecond: drips('x'), endsWithinMs: contentGraceMs + 11_000, hears: /421 4\.4\.2 Message came too slowly/ },
  { what: 'is as fast as it must be, without end', state: State.CONTENT, options: { messageBytesMax: 1e9 }, until: says(`${ENVELOPE}DATA\r\n`), eachSecond: (client) => client.send(`${'x'.repeat(600)}\r\n`), endsWithinMs: contentMs, hears: /421 4\.4\.2 Message took too long/ },
  { what: 'sends none of its chunk', state: State.CHUNK, until: says(`${ENVELOPE}BDAT 1000 LAST\r\n`), endsWithinMs: contentGraceMs, hears: /421 4\.4\.2 Message came too slowly/ },
  { what: 'drips its chunk', state: State.CHUNK, until: says(`${ENVELOPE}BDAT 100000 LAST\r\n`), eachSecond: drips('x\r\n'), endsWithinMs: contentGraceMs, hears: /421 4\.4\.2 Message came too slowly/ },
  { what: 'drips a chunk that nobody wants', state: State.CHUNK, until: says('EHLO a\r\nBDAT 100000 LAST\r\n'), eachSecond: drips('x\r\n'), endsWithinMs: contentGraceMs, hears: /421 4\.4\.2 Message came too slowly/ },
  { what: 'sends large chunks, each at once, and nothing between them', state: State.COMMAND, until: says(`${ENVELOPE}BDAT 600\r\n${'x'.repeat(600)}`), eachSecond: each(200, `BDAT 600\r\n${'x'.repeat(600)}`), endsWithinMs: contentGraceMs + 2000, hears: /421 4\.4\.2 Message came too slowly/ },
  { what: 'sends chunks without end, as fast as it must', state: State.COMMAND, options: { messageBytesMax: 1e9 }, until: says(`${ENVELOPE}BDAT 600\r\n${'x'.repeat(600)}`), eachSecond: (client) => client.send(`BDAT 600\r\n${'x'.repeat(600)}`), endsWithinMs: contentMs, hears: /421 4\.4\.2 Message took too long/ },
  { what: 'was refused a chunk, and says nothing', state: State.COMMAND, until: says(`${ENVELOPE}BDAT 600\r\n${'x'.repeat(599)}\nBDAT 1\r\nx`), endsWithinMs: idleMs, hears: /421 4\.4\.2 Idle/ },
];
/** Those in which the session waits for us, or for nothing more of the client. */
const OURS: readonly State[] = [State.CHECKING, State.LOOKING_UP, State.JUDGING, State.ANSWERING, State.CLOSING, State.CLOSED];

let people: Authenticator;
before(async () => {
  people = authenticatorOf([await scramLine('alice@b.example', 'secret', '*')]);
});

describe('a client that', () => {
  test('is slow is in the table below for each state that waits for it', () => {
    const states = new Set([...OURS, ...SLOW.map(({ state }) => state)]);
    for (const [name, state] of Object.entries(State)) assert.ok(states.has(state), name);
  });

  for (const { what, state, options = {}, until, eachSecond, endsWithinMs, hears } of SLOW) {
    test(`${what} is ended`, () => {
      const world = new VirtualDesk({ ...options, authenticator: people });
      const client = world.connect('127.0.0.1');
      until(client);
      assert.equal(client.session.state, state);
      const heldBytes = world.reception.reservedBytes;
      let said = client.heard();
      let second = 0;
      while (!client.connection.isOver && world.nowMs <= 2 * endsWithinMs + 10_000) {
        world.pass(SECOND_MS);
        said = client.heard() || said;
        eachSecond?.(client, second++);
        if (options.messageBytesMax === undefined) assert.ok(world.reception.reservedBytes <= heldBytes + HELD_BYTES_MAX, `holds ${String(world.reception.reservedBytes)} bytes`);
      }
      said = client.heard() || said;
      assert.equal(client.connection.isOver, true, 'goes on for ever');
      assert.ok(world.nowMs <= endsWithinMs + 3 * deadlineTickMs, `after ${String(world.nowMs)} ms`);
      assert.match(said, hears);
      world.turn();
      assert.deepEqual([world.reception.reservedBytes, world.desk.live.size, world.reception.kept.length], [0, 0, 0]);
    });
  }

  test('does not read its replies is not listened to, and ended; what it sent ahead is held once', () => {
    for (const opening of ['', `${ENVELOPE}DATA\r\n`, 'EHLO a\r\n']) {
      const world = new VirtualDesk();
      const client = world.connect();
      client.connection.onText = () => { client.connection.isFull = true; };
      client.send(opening);
      for (let read = 0; read < 100 && !client.connection.isPaused; read++) client.send('NOOP\r\n'.repeat(5000));
      assert.equal(client.connection.isPaused, true);
      assert.ok(world.reception.reservedBytes <= 2 * 30_000 + HELD_BYTES_MAX, String(world.reception.reservedBytes));
      const spoken = client.heard();
      assert.ok(spoken.length < 20_000, String(spoken.length));
      world.pass(idleMs + 3 * deadlineTickMs);
      assert.equal(client.connection.isOver, true);
      world.turn();
      assert.deepEqual([world.reception.reservedBytes, world.desk.live.size], [0, 0]);
    }
  });
});

describe('over real sockets', () => {
  const tls = selfSigned();
  test('all sorts of them together are ended, and whoever is not slow is served all the while', { timeout: 30_000, skip: tls === undefined ? 'openssl is missing' : false }, async () => {
    const bounds = { idleMs: 600, handshakeMs: 600, contentMs: 5000, contentGraceMs: 600, proxyMs: 600, deadlineTickMs: 50, idleCommandsMax: 100_000, connectionsPerClientMax: 1000 };
    const clear = await startHarness({ ...bounds, tls });
    const first = await startHarness({ ...bounds, tls, isTlsFirst: true });
    const proxy = await startHarness({ ...bounds, proxyNetworks: ['127.0.0.0/8'] });
    const slow: Promise<void>[] = [];
    const open = (port: number, text: string, drip: string): void => {
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
      socket.on('error', () => undefined);
      socket.write(text);
      const timer = setInterval(() => { if (drip !== '' && socket.writable) socket.write(drip); }, 50);
      // Half open: it reads to the end, and never ends its own side.
      slow.push(new Promise((resolve) => {
        socket.resume().on('end', () => { if (drip === '') { clearInterval(timer); resolve(); } });
        socket.on('close', () => { clearInterval(timer); resolve(); });
      }));
    };
    for (let copy = 0; copy < 5; copy++) {
      for (const text of ['', 'NOO', 'EHLO a\r\n', 'STARTTLS\r\n', `${ENVELOPE}DATA\r\nx`, `${ENVELOPE}BDAT 1000 LAST\r\nx`]) for (const drip of ['', 'x']) open(clear.inbound.port, text, drip);
      for (const text of ['', '\x16\x03\x01\x02\x00\x01', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03']) open(first.inbound.port, text, '');
      for (const text of ['', 'PROXY TCP4 1', '\r\n\r\n\0\r\nQUIT\n\x21\x11']) open(proxy.inbound.port, text, '');
    }
    let isOver = false;
    let taken = 0;
    const good = (async (): Promise<void> => {
      for (let client = new Client(clear.inbound.port); !isOver; taken++) {
        for (const line of ['EHLO good.example', 'MAIL FROM:<a@b.example>', 'RCPT TO:<c@d.example>', 'DATA', 'x\r\n.']) {
          client.send(`${line}\r\n`);
        }
        let reply = '';
        while (!reply.startsWith('250 2.0.0 Ok: queued') && reply !== 'closed') reply = await client.line();
        if (reply !== 'closed') continue;
        // A machine that stood still may have let its own time go by.
        client = new Client(clear.inbound.port);
        taken--;
      }
    })();
    await Promise.all(slow);
    assert.ok(taken > 0, 'it is served meanwhile');
    isOver = true;
    await good;
    for (const { inbound, reception } of [clear, first, proxy]) {
      await inbound.close(6000);
      assert.deepEqual([inbound.connections, reception.reservedBytes], [0, 0]);
    }
  });
});
