/**
 * Clients that send what is short and costs much: lines of DATA with one octet behind a dot, in clear, TLS records of
 * one octet, or KeyUpdates of TLS; 2 MB each in clear, 10,000 records, 2,000 KeyUpdates. How late the event loop of a
 * real gateway is at most meanwhile.
 *
 *   node dist/bench/micro/short-lines.js [clients]          50 unless told otherwise: what one address may have
 *
 * Three rounds each, as the gateway's own metric has it. Records are made before any of them is sent.
 */
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { once } from 'node:events';
import { Duplex } from 'node:stream';
import { connect as tlsConnect } from 'node:tls';

import { KEY_UPDATE_TLS, clientSecret, keyUpdates } from '../../test/attacks/key-updates.js';
import { selfSigned } from '../../test/dialog/self-signed.js';
import { HOST, startCluster } from '../../test/process/cluster.js';
import type { Cluster } from '../../test/process/cluster.js';
import { SmtpTalk } from '../../test/process/smtp-talk.js';

const ROUNDS = 3;
const LINES = '.x\r\n'.repeat(500_000);
const RECORDS = 10_000;
const UPDATES = 2_000;

type Kind = 'lines of one octet in clear' | 'TLS records of one octet' | 'KeyUpdates';

async function toData(talk: SmtpTalk): Promise<void> {
  for (const line of ['EHLO a.example', 'MAIL FROM:<a@x.example>', 'RCPT TO:<b@y.example>', 'DATA']) {
    const reply = await talk.say(line);
    if (!/^[23]/.test(reply)) throw new Error(`${line}: ${reply}`);
  }
}

async function openClear(port: number): Promise<Socket> {
  const socket = connect(port, HOST);
  await toData(await SmtpTalk.over(socket));
  return socket;
}

/** A connection whose TLS keeps what it would send until it is let go. */
class Held extends Duplex {
  readonly clear: Socket;
  isHeld = false;
  #held: Buffer[] = [];

  constructor(clear: Socket) {
    super();
    this.clear = clear;
    // SmtpTalk has it read as characters of one octet.
    clear.on('data', (text: string) => { this.push(Buffer.from(text, 'latin1')); });
  }

  override _read(): void {
    // What comes is pushed.
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    if (this.isHeld) this.#held.push(chunk);
    else this.clear.write(chunk);
    done();
  }

  letGo(): void {
    this.clear.write(Buffer.concat(this.#held));
  }
}

async function openTls(port: number): Promise<Held> {
  const clear = connect(port, HOST);
  await (await SmtpTalk.over(clear)).say('STARTTLS');
  clear.removeAllListeners('data');
  const held = new Held(clear);
  const socket = tlsConnect({ socket: held, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  await toData(new SmtpTalk(socket));
  held.isHeld = true;
  // Those that are written at once are one record.
  for (let i = 0; i < RECORDS; i++) {
    await new Promise((resolve) => { socket.write(i % 72 < 70 ? 'x' : i % 72 === 70 ? '\r' : '\n', resolve); });
  }
  return held;
}

/** A connection that has sent nothing over TLS, and what it will send. */
async function openUpdates(port: number): Promise<readonly [Socket, Buffer]> {
  const clear = connect(port, HOST);
  await (await SmtpTalk.over(clear)).say('STARTTLS');
  clear.removeAllListeners('data');
  const socket = tlsConnect({ socket: new Held(clear), ...KEY_UPDATE_TLS });
  let secret: Buffer | undefined;
  socket.on('keylog', (line: Buffer) => { secret ??= clientSecret(line.toString('latin1')); });
  await once(socket, 'secureConnect');
  await new Promise((resolve) => { setImmediate(resolve); });
  if (secret === undefined) throw new Error('the secret of the client was not told');
  return [clear, keyUpdates(secret, UPDATES, 'QUIT\r\n')];
}

/** Milliseconds; the metric begins anew with each look. */
async function longestDelay({ adminPort }: Cluster): Promise<number> {
  const text = await (await fetch(`http://${HOST}:${String(adminPort)}/metrics`)).text();
  return 1000 * Number(/^twinpost_event_loop_delay_seconds\{quantile="1"\} (\S+)$/m.exec(text)?.[1]);
}

async function round(cluster: Cluster, clients: number, kind: Kind): Promise<number> {
  const opened: (readonly [Socket, () => void])[] = [];
  for (let i = 0; i < clients; i++) {
    if (kind === 'KeyUpdates') {
      const [socket, records] = await openUpdates(cluster.smtpPort);
      opened.push([socket, () => { socket.write(records); }]);
    } else if (kind === 'TLS records of one octet') {
      const held = await openTls(cluster.smtpPort);
      opened.push([held.clear, () => { held.letGo(); }]);
    } else {
      const socket = await openClear(cluster.smtpPort);
      opened.push([socket, () => { socket.write(LINES); }]);
    }
  }
  await longestDelay(cluster);
  await Promise.all(opened.map(async ([socket, send]) => {
    const left = new Promise((resolve) => { socket.once('close', resolve); });
    send();
    socket.end();
    await left;
  }));
  return longestDelay(cluster);
}

const clients = Number(process.argv[2] ?? 50);
const files = selfSigned();
if (files === undefined) throw new Error('openssl is missing');
const cluster = await startCluster({
  gateway: { smtp: { tls: { cert: files.certFile, key: files.keyFile }, connections_per_client: clients } },
});
try {
  for (const kind of ['lines of one octet in clear', 'TLS records of one octet', 'KeyUpdates'] as const) {
    const delays: string[] = [];
    for (let i = 0; i < ROUNDS; i++) delays.push((await round(cluster, clients, kind)).toFixed(0));
    console.log(`${String(clients)} clients, ${kind}: ${delays.join(', ')} ms late at most`);
  }
} finally {
  await cluster.stop();
}
