/** Deliveries to next hops that ask for a user and a password, on real sockets: who is who, what is shared, and what is told. */
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';

import type { Dispatcher, DispatcherOptions } from '../../../../src/gateway/outbound/dispatcher.js';
import type { NextHop } from '../../../../src/gateway/mail-types.js';
import type { EventLog, LogFields } from '../../../../src/platform/ports.js';
import { TlsHop, makeCertificates } from '../../../process/tls-hop.js';
import type { TlsHopOptions } from '../../../process/tls-hop.js';
import { OUTBOUND_DEFAULTS } from '../../../default-options.js';
import { MemoryQueue, MemorySource, dispatcherFor } from './memory-source.js';

const good = makeCertificates()?.issue('hop.test');
const needsTls = { timeout: 30_000, skip: good === undefined ? 'openssl is missing' : false };
const USER = 'gw@example.org';
const PASSWORD = 'hunter2-und-mehr';
const TLS = { level: 'encrypt', isFirst: false, terms: { serverName: '127.0.0.1', mustVerify: false, caFile: undefined } } as const;
const BASE64 = Buffer.from(`\0${USER}\0${PASSWORD}`).toString('base64');

let folder = '';
const ends: (() => unknown)[] = [];
before(() => { folder = mkdtempSync(join(tmpdir(), 'twinpost-auth-')); });
after(async () => {
  for (const end of ends) await end();
  rmSync(folder, { recursive: true });
});

class World {
  readonly hop: TlsHop;
  readonly source = new MemorySource();
  readonly dispatcher: Dispatcher;
  readonly file: string;
  /** Lines of the log, all of each. */
  readonly log: string[] = [];
  #port = 0;

  constructor(options: Partial<TlsHopOptions>, more: Partial<DispatcherOptions> = {}) {
    this.hop = new TlsHop({
      certificate: good, offers: [], offersInTls: ['PIPELINING', 'AUTH PLAIN LOGIN'], auth: { user: USER, password: PASSWORD }, ...options,
    });
    const keep = (level: string) => (event: string, text: string, fields?: LogFields): void => {
      this.log.push(`${level} ${event} ${text} ${JSON.stringify(fields)}`);
    };
    const log: EventLog = { debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') };
    this.dispatcher = dispatcherFor(this.source, more, undefined, undefined, undefined, log);
    this.file = this.passwordFile('own', PASSWORD);
    ends.push(() => { this.hop.close(); }, () => this.dispatcher.stop(0));
  }

  get port(): number { return this.#port; }

  async start(): Promise<this> {
    this.#port = await this.hop.listen();
    return this;
  }

  passwordFile(name: string, content: string): string {
    const file = join(folder, `${String(ends.length)}-${name}`);
    writeFileSync(file, content, { mode: 0o600 });
    return file;
  }

  queue(auth: NextHop['auth'] = { user: USER, passwordFile: this.file }, others: NextHop['others'] = []): MemoryQueue {
    return new MemoryQueue({ nextHop: { protocol: 'smtp', host: '127.0.0.1', port: this.#port, tls: TLS, auth, others }, concurrency: 5 });
  }

  /** Puts so many mails and waits for their ends. */
  async deliver(queue: MemoryQueue, count: number): Promise<void> {
    const had = this.source.ended.length;
    for (let i = 0; i < count; i++) this.source.put(queue, had + i + 1, 'Subject: x\r\n\r\nhello\r\n');
    this.dispatcher.onReady(queue);
    await this.source.untilEnded(had + count);
  }

  /** "status enhanced text", and whether it was no attempt, of each end. */
  ends(): readonly string[] {
    return this.source.ended.map(({ result: { results: [said], notAttempted } }) =>
      `${String(said?.status)} ${said?.enhanced ?? ''} ${(said?.text ?? '').replace(`:${String(this.#port)}`, '')}${notAttempted === true ? ' (no attempt)' : ''}`);
  }
}

describe('AUTH to a next hop', () => {
  for (const mechanism of ['PLAIN', 'LOGIN']) {
    test(`by ${mechanism}, in TLS, once for each connection`, needsTls, async () => {
      const on = await new World({ offersInTls: ['PIPELINING', `AUTH ${mechanism}`] }).start();
      const queue = on.queue();
      await on.deliver(queue, 20);
      assert.ok(on.hop.taken.length === 20 && on.hop.taken.every(({ isSecure, user }) => isSecure && user === USER));
      const said = on.hop.heard.filter((line) => line.includes('AUTH'));
      assert.deepEqual(said, Array(on.hop.connections).fill(`*AUTH ${mechanism}`));
      const mails = on.hop.said.filter((line) => line.startsWith('MAIL'));
      assert.ok(mails.length === 20 && mails.every((line) => line.endsWith('> AUTH=<>')), mails.join());
    });
  }

  test('that is refused is no attempt of a message, is told once for a wait, and the password stands nowhere', needsTls, async () => {
    for (const refusal of [
      (response: string): string => `535-5.7.8 no: ${response}\r\n535 5.7.8 ${PASSWORD}`,
      (response: string): string => `454 4.7.0 ${response} ${Buffer.from(PASSWORD).toString('base64')}`,
    ]) {
      const on = await new World({ auth: { user: USER, password: 'another', refusal } }).start();
      const queue = on.queue();
      for (let i = 0; i < 50; i++) on.source.put(queue, i + 1, 'Subject: x\r\n\r\nhello\r\n');
      on.dispatcher.onReady(queue);
      await on.source.untilEnded(1);
      const code = refusal('').slice(0, 3);
      const text = `127.0.0.1[127.0.0.1] refused our user and password: ${code === '535' ? '535 5.7.8' : '454 4.7.0'}`;
      assert.deepEqual(on.ends(), [`2 4.7.${code === '535' ? '8' : '0'} ${text} (no attempt)`]);
      const warnings = on.log.filter((line) => line.startsWith('warn nexthop next hop can not be reached'));
      assert.equal(warnings.length, 1, on.log.join('\n'));
      // One connection asks, not one for each message: some lock a user out after a few.
      assert.equal(on.hop.connections, 1);
      const [state] = on.dispatcher.nextHops();
      assert.deepEqual([state?.failures, (state?.retryInMs ?? 0) > 0, queue.readyCount], [1, true, 49]);
      const all = on.log.join() + JSON.stringify(on.dispatcher.nextHops()) + on.ends().join();
      for (const secret of [PASSWORD, BASE64, Buffer.from(PASSWORD).toString('base64')]) assert.ok(!all.includes(secret), all);
      assert.deepEqual(on.hop.taken, []);
    }
  });

  test('that is refused is not tried again soon, as a host that is away is, but at once with another password or by order', needsTls, async () => {
    const on = await new World({ auth: { user: USER, password: 'another' } }, { backoffFirstMs: 10, backoffMaxMs: 10 }).start();
    const queue = on.queue();
    await on.deliver(queue, 1);
    on.source.put(queue, 2, 'Subject: x\r\n\r\nhello\r\n');
    on.dispatcher.onReady(queue);
    const [state] = on.dispatcher.nextHops();
    assert.ok(state?.isDenied === true && state.retryInMs > 0.7 * OUTBOUND_DEFAULTS.deniedFirstMs, JSON.stringify(state));
    // Two ticks: at one of them it would be tried.
    const retryInMs = (): number => on.dispatcher.nextHops()[0]?.retryInMs ?? 0;
    while (retryInMs() > state.retryInMs - 500) await delay(20);
    assert.deepEqual([on.dispatcher.nextHops()[0]?.connections, on.hop.connections], [0, 1]);
    on.dispatcher.hasten(queue);
    await on.source.untilEnded(2);
    const [again] = on.dispatcher.nextHops();
    assert.ok(again !== undefined && again.retryInMs > 1.4 * OUTBOUND_DEFAULTS.deniedFirstMs, 'it waits longer each time');
    writeFileSync(on.file, 'another');
    on.source.put(queue, 3, 'Subject: x\r\n\r\nhello\r\n');
    on.dispatcher.onReady(queue);
    await on.source.untilEnded(3);
    assert.deepEqual(on.ends().map((end) => end.slice(0, 7)), ['2 4.7.8', '2 4.7.8', '1 2.0.0']);
    assert.deepEqual([on.hop.connections, on.dispatcher.nextHops().map(({ isDenied, failures }) => [isDenied, failures])], [3, [[false, 0]]]);
  });

  test('that is asked of the first of several hosts leaves the others alone, until it fails', needsTls, async () => {
    const second = await new World({}).start();
    const on = await new World({}).start();
    const hosts = [{ host: '127.0.0.1', port: second.port, preference: 1 }];
    await on.deliver(on.queue(undefined, hosts), 50);
    assert.deepEqual([on.hop.taken.length, second.hop.connections], [50, 0]);
    const lost = await new World({ auth: { user: USER, password: 'another' } }).start();
    await lost.deliver(lost.queue(undefined, hosts), 50);
    assert.deepEqual([lost.hop.taken.length, lost.hop.connections, second.hop.taken.length], [0, 1, 50]);
  });

  test('that is not offered, or by no mechanism of ours, is no attempt either', needsTls, async () => {
    const on = await new World({ offersInTls: ['PIPELINING'], offers: ['AUTH PLAIN'] }).start();
    await on.deliver(on.queue(), 1);
    const other = await new World({ offersInTls: ['AUTH CRAM-MD5'] }).start();
    await other.deliver(other.queue(), 1);
    assert.deepEqual([...on.ends(), ...other.ends()], [
      '2 4.7.4 127.0.0.1[127.0.0.1] offers no AUTH, and takes no user and password so (no attempt)',
      '2 4.7.4 127.0.0.1[127.0.0.1] offers neither AUTH PLAIN nor LOGIN, and takes no user and password so (no attempt)',
    ]);
    assert.ok(![...on.hop.heard, ...other.hop.heard].some((line) => line.includes('AUTH')));
  });

  test('is of one user and one file on a connection: others have connections of their own', needsTls, async () => {
    const on = await new World({}).start();
    const second = on.passwordFile('second', `${PASSWORD}\n`);
    const queues = [on.queue(), on.queue({ user: USER, passwordFile: second }), on.queue({ user: 'other', passwordFile: on.file })];
    for (const queue of queues) await on.deliver(queue, 1);
    assert.deepEqual([on.hop.connections, on.dispatcher.nextHops().map(({ relay }) => relay.replace(/^[^ ]+/, ''))], [
      3, [` (as ${USER})`, ` (as ${USER}) #2`, ' (as other)'],
    ]);
    assert.deepEqual(on.ends().map((end) => end.slice(0, 7)), ['1 2.0.0', '1 2.0.0', '2 4.7.8']);
    for (const queue of queues.slice(0, 2)) await on.deliver(queue, 1);
    assert.equal(on.hop.connections, 3);
    assert.ok(!JSON.stringify(on.dispatcher.nextHops()).includes(PASSWORD));
  });

  test('is named in status where all hosts have one user, for of several nobody could tell who is meant', needsTls, async () => {
    const on = await new World({}).start();
    const theirs = (user: string): NextHop['others'] => [{ host: '127.0.0.1', port: 1, preference: 1, terms: { tls: TLS, auth: { user, passwordFile: on.file } } }];
    for (const others of [theirs('b'), theirs(USER)]) await on.deliver(on.queue(undefined, others), 1);
    assert.deepEqual(on.dispatcher.nextHops().map(({ relay }) => relay.replace(/^[^ ]+/, '')), [' and 1 more', ` and 1 more (as ${USER})`]);
  });

  test('reads its file for each connection: a new password counts at once, a bad file leaves the old one', needsTls, async () => {
    const on = await new World({}, { messagesPerConnectionMax: 1, backoffFirstMs: 10, backoffMaxMs: 10 }).start();
    const queue = on.queue();
    await on.deliver(queue, 1);
    writeFileSync(on.file, 'new');
    on.hop.options = { ...on.hop.options, auth: { user: USER, password: 'new' } };
    await on.deliver(queue, 1);
    writeFileSync(on.file, '');
    await on.deliver(queue, 1);
    assert.deepEqual(on.ends().map((end) => end.slice(0, 7)), ['1 2.0.0', '1 2.0.0', '1 2.0.0']);
    assert.deepEqual(on.log.map((line) => line.replace(/ \{.*/, '')), [
      'info auth a password for next hops was read anew', 'error auth a new password for next hops can\'t be used, the old one stays',
    ]);
  });

  test('without a password that can be read says nothing, and why; the file is looked at again', needsTls, async () => {
    const on = await new World({}, { backoffFirstMs: 10, backoffMaxMs: 10 }).start();
    chmodSync(on.file, 0o604);
    const queue = on.queue();
    await on.deliver(queue, 1);
    assert.deepEqual(on.ends(), [`2 4.3.5 no password for 127.0.0.1[127.0.0.1]: everybody on this machine may read or write '${on.file}': chmod o-rw (no attempt)`]);
    assert.ok(!on.hop.heard.some((line) => line.includes('AUTH')));
    chmodSync(on.file, 0o600);
    await on.deliver(queue, 1);
    while (on.hop.taken.length === 0) await on.deliver(queue, 1);
    assert.equal(on.hop.taken[0]?.user, USER);
  });
});
