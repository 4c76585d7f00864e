/**
 * A case of each class of attacks at a whole gateway process, with stores, and a next hop that keeps what it gets: clients on
 * real sockets, strangers from 127.0.0.1, known ones from 127.0.0.2. The many variants are in the other files here.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { connect as connectTls } from 'node:tls';

import { scryptLine } from '../dialog/people.js';
import { selfSigned } from '../dialog/self-signed.js';
import { startCluster, until } from '../process/cluster.js';
import type { Cluster } from '../process/cluster.js';
import { freePorts } from '../process/free-ports.js';
import { ScriptedServer } from '../unit/gateway/outbound/scripted-server.js';

const tls = selfSigned();
const needsTls = { skip: tls === undefined ? 'openssl is missing' : false };
const STRANGER = '127.0.0.1';
const KNOWN = '127.0.0.2';
const INNER = 'MAIL FROM:<evil@inner.example>\r\nRCPT TO:<victim@inner.example>\r\nDATA\r\ninner\r\n.\r\n';
const CONNECTIONS = 10_000;
const FLOODS_MAX = 8;
const AT_ONCE = 40;
const MIB = 1024 * 1024;
const HOSTILE_REPLY = '550 5.1.1 no \x1b[31m\x00\x9b\xff"},{"event":"delivered"} <such> user';

/** Says something at once, and collects what is answered until the other side ends. */
function talk(port: number, address: string, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: address });
    let heard = '';
    socket.on('error', () => undefined);
    socket.on('data', (bytes: Buffer) => {
      // Whoever talks before the greeting is sent away.
      if (heard === '') socket.write(text, 'latin1');
      heard += bytes.toString('latin1');
    });
    socket.on('close', () => { resolve(heard); });
  });
}

const codesOf = (heard: string): string => heard.split('\r\n').filter((line) => line[3] === ' ').map((line) => line.slice(0, 3)).join(' ');

describe('a gateway process', { timeout: 340_000 }, () => {
  const hop = new ScriptedServer();
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-attacks-'));
  let cluster: Cluster;
  let [plain, submission, balanced, proxied] = [0, 0, 0, 0];

  before(async () => {
    const port = await hop.listen();
    [plain = 0, submission = 0, balanced = 0, proxied = 0] = await freePorts(4);
    const users = join(folder, 'users');
    // Cheap hashes: what is looked at here are verdicts, not times.
    writeFileSync(users, await scryptLine('alice@ours.example', 'secret'));
    const secure = tls === undefined ? [] : [{ address: `127.0.0.1:${String(submission)}`, role: 'submission', tls: 'implicit' }];
    cluster = await startCluster({
      sink: false, routes: [{ domain: '*', via: `smtp://127.0.0.1:${String(port)}` }],
      gateway: {
        smtp: {
          listen: [
            `127.0.0.1:${String(plain)}`, { address: `127.0.0.1:${String(balanced)}`, proxy: ['127.0.0.0/8'] },
            { address: `127.0.0.1:${String(proxied)}`, xclient: ['127.0.0.0/8'] }, ...secure,
          ],
          relay_networks: [`${KNOWN}/32`], relay_domains: ['ours.example'], postmaster: 'ops@ours.example',
          ...(tls === undefined ? {} : { tls: { cert: tls.certFile, key: tls.keyFile }, users }),
        },
      },
    });
  });

  after(async () => {
    await cluster.stop();
    hop.close();
    rmSync(folder, { recursive: true });
  });

  test('takes no second message out of one, and hands none on', async () => {
    const envelope = 'EHLO a\r\nMAIL FROM:<a@outer.example>\r\nRCPT TO:<b@outer.example>\r\n';
    for (const end of ['\n.\n', '\n.\r\n', '\r\n.\n', '\r.\r', '\r\n.\r', '\0\r\n.\0\r\n']) {
      assert.equal(codesOf(await talk(plain, KNOWN, `${envelope}DATA\r\nbody${end}${INNER}QUIT\r\n`)), '220 250 250 250 354 550 221', JSON.stringify(end));
    }
    const chunk = `Subject: outer\r\n\r\nbody\r\n.\r\n${INNER}`;
    assert.equal(codesOf(await talk(plain, KNOWN, `${envelope}BDAT ${String(chunk.length)} LAST\r\n${chunk}QUIT\r\n`)), '220 250 250 250 250 221');
    await until('the message is there', () => hop.accepted.length === 1);
    await cluster.drained();
    assert.equal(hop.accepted.length, 1);
    assert.equal(hop.accepted[0]?.from, 'a@outer.example');
    assert.ok(hop.accepted[0].content.endsWith(chunk));
  });

  test('relays for no stranger', async () => {
    const before = hop.accepted.length;
    const forms = ['user@victim.test', 'user%victim.test@ours.example', 'victim.test!user@ours.example', '"user@victim.test"@ours.example', '@ours.example:user@victim.test', 'user@[127.0.0.1]'];
    const commands = `EHLO a\r\nMAIL FROM:<a@ours.example>\r\n${forms.map((form) => `RCPT TO:<${form}>\r\n`).join('')}DATA\r\nQUIT\r\n`;
    const wanted = `220 250 250 ${forms.map(() => '550').join(' ')} 554 221`;
    assert.equal(codesOf(await talk(plain, STRANGER, commands)), wanted);
    // Named by a balancer or a proxy he is a stranger still, though these themselves may relay.
    assert.equal(codesOf(await talk(proxied, KNOWN, `XCLIENT ADDR=${STRANGER}\r\n${commands}`)), `220 ${wanted}`);
    assert.match(await talk(plain, STRANGER, `XCLIENT ADDR=${KNOWN}\r\nQUIT\r\n`), /^220 .*\r\n550 5\.7\.0 /);
    const heard = await new Promise<string>((resolve) => {
      const socket = connect({ port: balanced, host: '127.0.0.1', localAddress: KNOWN });
      let text = '';
      socket.on('error', () => undefined);
      socket.on('data', (bytes: Buffer) => {
        if (text === '') socket.write(`PROXY TCP4 ${KNOWN} 127.0.0.1 1 25\r\n${commands}`);
        text += bytes.toString('latin1');
      });
      socket.on('close', () => { resolve(text); });
      socket.write(`PROXY TCP4 ${STRANGER} 127.0.0.1 1 25\r\n`);
    });
    assert.equal(codesOf(heard), wanted.replace('220', '220 500'));
    assert.equal(hop.accepted.length, before);
  });

  test('lets nobody write its log, its fields or its reports', async () => {
    hop.answer = (verb, _connection, line) => (verb === 'RCPT' && line.includes('gone@') ? HOSTILE_REPLY : undefined);
    const { logBytes } = cluster.gateway;
    const hostile = 'x"},{"event":"delivered"}\x1b[2J\u202e';
    const commands = [`EHLO ${hostile}`, `EHLO a${hostile.replace('\x1b', '')}`, `MAIL FROM:<${hostile}@b.example>`, 'MAIL FROM:<sender@ours.example>', 'RCPT TO:<gone@ours.example>', 'DATA', `Message-ID: <${hostile}>`, '', 'x', '.', 'QUIT'];
    const heard = await talk(plain, STRANGER, Buffer.from(`${commands.join('\r\n')}\r\n`, 'utf8').toString('latin1'));
    assert.equal(codesOf(heard), '220 501 250 501 250 250 354 250 221');
    const reports = (): readonly string[] => hop.accepted.filter(({ from, to }) => from === '' && to.join() === 'sender@ours.example').map(({ content }) => content);
    await until('the report is there', () => reports().length === 1, 20_000, cluster.gateway);
    const report = reports()[0] ?? '';
    assert.match(report.slice(0, report.indexOf('Content-Type: message/')), /^(?:[\x20-\x7e\t]|\r\n)*$/);
    await until('the log says so', () => cluster.gateway.logSince(logBytes).includes('"event":"bounced"'));
    const text = cluster.gateway.logSince(logBytes);
    assert.match(text, /^[\x20-\x7e\n]*$/);
    const events = text.split('\n').slice(0, -1).map((line) => (JSON.parse(line) as { event: string; to?: string }));
    assert.equal(events.filter(({ event, to }) => event === 'bounced' && to === 'gone@ours.example').length, 1);
    assert.equal(events.filter(({ event, to }) => event === 'delivered' && to === 'gone@ours.example').length, 0);
    hop.answer = () => undefined;
  });

  test('is open to others while fifty guess passwords, and sends each of them away', needsTls, async () => {
    let isOver = false;
    let sentAway = 0;
    const guess = async (address: string): Promise<void> => {
      while (!isOver) {
        const heard = await login(submission, address, 'guess', () => isOver);
        if (heard.includes('421 4.7.0 Too many wrong')) sentAway++;
        assert.ok(!heard.includes('235 '), heard);
      }
    };
    const attackers = Array.from({ length: 50 }, (_none, index) => guess(`127.0.1.${String(index + 1)}`));
    await until('some were sent away', () => sentAway > 3, 60_000);
    for (let round = 0; round < 3; round++) assert.match(await login(submission, KNOWN, 'secret', () => false), /235 2\.7\.0 /);
    isOver = true;
    await Promise.all(attackers);
  });

  test('bears ten thousand connections that come and go: no line each, no descriptor, no memory', async () => {
    const descriptors = (): number => readdirSync(`/proc/${String(cluster.gateway.pid)}/fd`).length;
    const residentBytes = (): number => Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${String(cluster.gateway.pid)}/status`, 'utf8'))?.[1]) * 1024;
    const endings: readonly ((socket: Socket) => void)[] = [(socket) => { socket.destroy(); }, (socket) => { socket.resetAndDestroy(); }, (socket) => { socket.end('EHLO a\r\n'); }, (socket) => { socket.end('x'); }];
    let left = 0;
    const flood = async (): Promise<void> => {
      while (left-- > 0) {
        const ending = endings[left % endings.length];
        await new Promise<void>((resolve) => {
          const socket = connect({ port: plain, host: '127.0.0.1', localAddress: STRANGER }, () => { ending?.(socket); });
          socket.on('error', () => undefined).on('close', () => { resolve(); }).resume();
        });
      }
    };
    const floodWith = async (connections: number): Promise<void> => {
      left = connections;
      await Promise.all(Array.from({ length: AT_ONCE }, flood));
    };
    // The heap takes its size first.
    await floodWith(CONNECTIONS / 2);
    const [descriptorsBefore, logBefore] = [descriptors(), cluster.gateway.logBytes];
    // When the collector works is its own affair: what connections leave behind would be left by each flood.
    const growths: number[] = [];
    while (growths.length < FLOODS_MAX && !growths.some((bytes) => bytes < 16 * MIB)) {
      const before = residentBytes();
      await floodWith(CONNECTIONS);
      growths.push(residentBytes() - before);
    }
    assert.equal(codesOf(await talk(plain, KNOWN, 'EHLO a\r\nQUIT\r\n')), '220 250 221');
    await until('all are closed', () => descriptors() <= descriptorsBefore + 2);
    assert.ok(growths.some((bytes) => bytes < 16 * MIB), `${growths.join(', ')} bytes more`);
    assert.ok(cluster.gateway.logBytes - logBefore < MIB / 4, `${String(cluster.gateway.logBytes - logBefore)} bytes of log`);
  });
});

/** All that is said to AUTH with this password, over and over until the other side ends, or three times. */
function login(port: number, address: string, password: string, isOver: () => boolean): Promise<string> {
  return new Promise((resolve) => {
    const socket = connectTls({ port, host: '127.0.0.1', localAddress: address, rejectUnauthorized: false } as object);
    let heard = '';
    let attempts = 0;
    socket.on('data', (bytes: Buffer) => {
      heard += bytes.toString('latin1');
      if (!/(^|\n)\d{3} .*\r\n$/.test(heard)) return;
      if (isOver() || heard.includes('235 ')) socket.destroy();
      else socket.write(attempts++ === 0 ? 'EHLO a\r\n' : `AUTH PLAIN ${Buffer.from(`\0alice@ours.example\0${password}`).toString('base64')}\r\n`);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => { resolve(heard); });
  });
}
