/** Lines of the mail log: what they say, that nothing hostile gets through, and that a stopped reader stops nothing. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { MailLog } from '../../../src/observability/mail-log.js';
import type { ReceivedFields, RecipientFields } from '../../../src/observability/mail-log.js';
import { LogDestination } from '../../../src/platform/node/log-destination.js';

const RECEIVED: ReceivedFields = {
  queueId: '00000000AB1', queue: 'example.net', messageId: '', from: 'a@example.com', to: 'b@example.net',
  listener: '127.0.0.1:2525', client: '127.0.0.1', clientPort: 40001,
  helo: 'client.example', size: 1024, nrcpt: 2, tls: '', user: '', certificate: '', proxy: '', authentication: '', mirrors: 2, epoch: 3, delayMs: 1234,
};
const DELIVERED: RecipientFields = {
  queueId: '00000000AB1', queue: 'example.net', from: 'a@example.com', to: 'b@example.net', size: 1024, tls: undefined, source: '', relay: 'mx[127.0.0.1]:25', attempt: 1, origTo: '', mailFrom: '', last: '',
  dsn: '2.0.0', reply: '250 OK', delayMs: 5000, beforeQueueMs: 1000, setupMs: 500, transmitMs: 1500,
};

class Lines {
  readonly texts: string[] = [];

  write(text: string): void {
    this.texts.push(text);
  }

  get rows(): Record<string, unknown>[] {
    return this.texts.join('').split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as Record<string, unknown>);
  }
}

function newLog(): { readonly log: MailLog; readonly lines: Lines } {
  const lines = new Lines();
  return { log: new MailLog({ gateway: 'gw-1', enabled: true }, lines), lines };
}

describe('a line of the mail log', () => {
  test('says what was received', () => {
    const { log, lines } = newLog();
    log.received(RECEIVED);
    log.flush();
    const { time, ...rest } = lines.rows[0] ?? {};
    assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.deepEqual(rest, {
      level: 'info', event: 'received', gateway: 'gw-1', queue_id: '00000000AB1', queue: 'example.net', from: 'a@example.com', to: 'b@example.net',
      listener: '127.0.0.1:2525', client: '127.0.0.1', client_port: 40001, helo: 'client.example', size: 1024, nrcpt: 2,
      mirrors: 2, epoch: 3, delay: 1.23,
    });
  });

  test('says of one that waits for a next hop where that is, and nothing of a connection', () => {
    const { log, lines } = newLog();
    log.deferred({ ...DELIVERED, relay: 'mx.example.net:25', attempt: 0, dsn: '4.4.1', reply: 'refused' });
    log.flush();
    const [{ relay, attempt, dsn, reply, status, tls, source } = {}] = lines.rows;
    assert.deepEqual([relay, attempt, dsn, reply, status, tls, source], ['mx.example.net:25', 0, '4.4.1', 'refused', 'deferred', undefined, undefined]);
  });

  test('says by what TLS and by which user it came, where there is one', () => {
    const { log, lines } = newLog();
    log.received({ ...RECEIVED, tls: 'TLSv1.3', user: 'al"ice\r\n@example.com' });
    log.received(RECEIVED);
    log.flush();
    assert.deepEqual(lines.rows.map((row) => [row['tls'], row['user']]), [['TLSv1.3', 'al"ice\r\n@example.com'], [undefined, undefined]]);
    assert.equal(lines.texts.join('').split('\n').length, 3);
  });

  test('says of a refusal whom it met, as far as that is known', () => {
    const { log, lines } = newLog();
    const refused = { reason: 'auth-failed', listener: '[::1]:25', client: '127.0.0.1', clientPort: 0, helo: 'a', from: '', to: '', reply: '535 5.7.8 no', state: '', octets: 0, certificate: '', proxy: '' };
    log.rejected({ ...refused, user: 'al\nice', queueId: '00000000AB1', limit: 'client.errors', hook: 'rspamd', why: 'no PROXY header' });
    log.rejected({ ...refused, user: '', queueId: '', limit: '', hook: '', why: '' });
    log.flush();
    assert.deepEqual(lines.rows.map((row) => [row['listener'], 'client_port' in row]), [['[::1]:25', false], ['[::1]:25', false]], 'a port that is not known is left out');
    assert.deepEqual(lines.rows.map((row) => [row['user'], row['queue_id'], row['limit'], row['hook'], row['why']]), [['al\nice', '00000000AB1', 'client.errors', 'rspamd', 'no PROXY header'], [undefined, undefined, undefined, undefined, undefined]]);
  });

  test('says of a client that has gone how far it came, which certificate it has shown, and of a balancer that it is one', () => {
    const { log, lines } = newLog();
    const refused = { reason: 'lost', listener: '[::1]:25', client: '127.0.0.1', clientPort: 0, helo: 'a', from: '', to: '', reply: '', user: '', queueId: '', limit: '', hook: '', why: '' };
    log.rejected({ ...refused, state: 'CONTENT', octets: 0, certificate: 'mta.example', proxy: 'local' });
    log.rejected({ ...refused, state: '', octets: 0, certificate: '', proxy: '' });
    log.received({ ...RECEIVED, certificate: 'mta.example', proxy: 'unknown' });
    log.received(RECEIVED);
    log.flush();
    assert.deepEqual(lines.rows.map((row) => [row['state'], row['bytes'], row['certificate'], row['proxy']]), [
      ['CONTENT', 0, 'mta.example', 'local'], [undefined, undefined, undefined, undefined],
      [undefined, undefined, 'mta.example', 'unknown'], [undefined, undefined, undefined, undefined],
    ]);
  });

  test('says what became of a recipient, with the four delays', () => {
    const { log, lines } = newLog();
    log.delivered(DELIVERED);
    log.deferred({ ...DELIVERED, relay: '', dsn: '4.4.1', reply: 'connection refused' });
    log.bounced(DELIVERED);
    log.expired(DELIVERED);
    log.flush();
    assert.deepEqual(lines.rows.map((row) => [row['event'], row['status']]), [['delivered', 'sent'], ['deferred', 'deferred'], ['bounced', 'bounced'], ['expired', 'expired']]);
    assert.deepEqual(lines.rows.slice(0, 2).map((row) => [row['delay'], row['delays'], row['relay']]), [[5, '1/2/0.5/1.5', 'mx[127.0.0.1]:25'], [5, '1/2/0.5/1.5', undefined]]);
  });

  test('says what the connection had of TLS, or that it was in clear', () => {
    const { log, lines } = newLog();
    const tls = { version: 'TLSv1.3', cipher: 'TLS_AES_256_GCM_SHA384', isVerified: true };
    log.delivered({ ...DELIVERED, tls });
    log.bounced({ ...DELIVERED, tls: { ...tls, isVerified: false } });
    log.delivered(DELIVERED);
    log.expired({ ...DELIVERED, relay: '' });
    log.flush();
    assert.deepEqual(lines.rows.map((row) => [row['tls'], row['cipher'], row['verified']]), [
      ['TLSv1.3', 'TLS_AES_256_GCM_SHA384', 'yes'], ['TLSv1.3', 'TLS_AES_256_GCM_SHA384', 'no'], ['none', undefined, undefined], [undefined, undefined, undefined],
    ]);
  });

  test('says which source it came from, where one was chosen and a connection came about', () => {
    const { log, lines } = newLog();
    log.delivered({ ...DELIVERED, source: '192.0.2.10' });
    log.delivered(DELIVERED);
    log.flush();
    assert.deepEqual(lines.rows.map((row) => row['source']), ['192.0.2.10', undefined]);
  });

  test('says to whom it was sent first, in whose name it leaves, and what was said before it expired, where there is such', () => {
    const { log, lines } = newLog();
    log.delivered({ ...DELIVERED, origTo: 'info@example.com', mailFrom: 'SRS0=x@fwd.example' });
    log.expired({ ...DELIVERED, last: '450 busy' });
    log.flush();
    assert.deepEqual(lines.rows.map((row) => [row['orig_to'], row['mail_from'], row['last']]), [['info@example.com', 'SRS0=x@fwd.example', undefined], [undefined, undefined, '450 busy']]);
  });

  test('is one line of plain ASCII whatever a client sent', () => {
    const { log, lines } = newLog();
    let hostile = '';
    for (let code = 0; code < 0x300; code++) hostile += String.fromCharCode(code);
    for (const part of ['"},{"event":"delivered', hostile.slice(0, 400), hostile.slice(400), '\ud800', '\u202egnp.exe', '\r\nQUIT', '\u001b[2J']) {
      log.rejected({ user: '', queueId: '', limit: '', hook: '', why: '', state: '', octets: 0, certificate: part, proxy: '', reason: 'syntax', listener: part, client: part, clientPort: 1, helo: part, from: part, to: part, reply: part });
    }
    log.flush();
    const text = lines.texts.join('');
    assert.match(text, /^[\x20-\x7e\n]*$/);
    assert.equal(text.split('\n').length, 8);
    assert.equal(lines.rows[1]?.['helo'], hostile.slice(0, 400));
    assert.equal(lines.rows[0]?.['event'], 'rejected');
  });

  test('cuts a value that is too long', () => {
    const { log, lines } = newLog();
    log.received({ ...RECEIVED, helo: 'x'.repeat(100_000) });
    log.flush();
    assert.equal(lines.rows[0]?.['helo'], `${'x'.repeat(512)}…`);
  });

  test('cuts no character in half', () => {
    const { log, lines } = newLog();
    log.received({ ...RECEIVED, helo: `${'x'.repeat(511)}😀y` });
    log.received({ ...RECEIVED, helo: `${'x'.repeat(510)}😀y` });
    log.flush();
    assert.deepEqual(lines.rows.map((row) => row['helo']), [`${'x'.repeat(511)}…`, `${'x'.repeat(510)}😀…`]);
  });

  test('shows 100 characters of who and whom is refused', () => {
    const { log, lines } = newLog();
    const long = 'ü'.repeat(101);
    log.rejected({
      reason: 'auth-failed', listener: '[::1]:25', client: '127.0.0.1', clientPort: 0, helo: 'a', user: long, from: long, to: long, reply: '535 5.7.8 no',
      state: '', octets: 0, certificate: '', proxy: '', queueId: '', limit: '', hook: '', why: '',
    });
    log.flush();
    const shown = `${'ü'.repeat(100)}…`;
    assert.deepEqual(['user', 'from', 'to'].map((name) => lines.rows[0]?.[name]), [shown, shown, shown]);
  });

  test('keeps its numbers exact', () => {
    const { log, lines } = newLog();
    for (const size of [0, 1, 9, 10, 99, 100, 1_000_000, 2 ** 53 - 1]) log.received({ ...RECEIVED, size });
    for (const delayMs of [-5, 0, 4, 5, 10, 100, 999, 60_000, 123_450]) log.received({ ...RECEIVED, delayMs });
    log.flush();
    assert.deepEqual(lines.rows.slice(0, 8).map((row) => row['size']), [0, 1, 9, 10, 99, 100, 1_000_000, 2 ** 53 - 1]);
    assert.deepEqual(lines.rows.slice(8).map((row) => row['delay']), [0, 0, 0, 0.01, 0.01, 0.1, 1, 60, 123.45]);
  });
});

describe('lines are handed over', () => {
  test('once for all of a turn', async () => {
    const { log, lines } = newLog();
    for (let i = 0; i < 50; i++) log.received(RECEIVED);
    assert.equal(lines.texts.length, 0);
    await nextTurn();
    assert.equal(lines.texts.length, 1);
    assert.equal(lines.rows.length, 50);
  });

  test('sooner when a turn has more than the buffer holds', () => {
    const { log, lines } = newLog();
    for (let i = 0; i < 2000; i++) log.received({ ...RECEIVED, helo: '\u0001'.repeat(600) });
    log.flush();
    assert.ok(lines.texts.length > 1);
    assert.equal(lines.rows.length, 2000);
  });

  test('to nobody when the mail log is off', () => {
    const lines = new Lines();
    const log = new MailLog({ gateway: 'gw-1', enabled: false }, lines);
    log.received(RECEIVED);
    log.delivered(DELIVERED);
    log.rejected({ user: '', queueId: '', limit: '', hook: '', why: '', state: '', octets: 0, certificate: '', proxy: '', reason: 'relay', listener: '', client: '', clientPort: 0, helo: '', from: '', to: '', reply: '' });
    log.flush();
    assert.equal(lines.texts.length, 0);
  });
});

test('a pipe that nobody reads loses lines, and neither blocks nor grows', async () => {
  // A child that never reads its standard input is the stopped reader; LogDestination writes to that pipe.
  const reader = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: ['pipe', 'ignore', 'ignore'] });
  try {
    const handle = (reader.stdin as unknown as { _handle: { fd: number } })._handle;
    const bufferedBytesMax = 256 * 1024;
    const destination = new LogDestination({ to: handle.fd, bufferedBytesMax });
    const log = new MailLog({ gateway: 'gw-1', enabled: true }, destination);
    const lines = 20_000;
    const beganMs = performance.now();
    for (let i = 0; i < lines; i++) {
      log.received(RECEIVED);
      if (i % 100 === 0) await nextTurn();
    }
    log.flush();
    assert.ok(performance.now() - beganMs < 5_000, 'logging blocked');
    assert.ok(destination.lost > lines / 2, `${String(destination.lost)} lost`);
    assert.ok(destination.bufferedBytes <= bufferedBytesMax);
  } finally {
    reader.kill('SIGKILL');
    await once(reader, 'exit');
  }
});

test('the two lines of a message cost no more than JSON.stringify would', async () => {
  const log = new MailLog({ gateway: 'gw-1', enabled: true }, { write: () => undefined });
  let characters = 0;
  const asJson = (event: string, record: object): void => {
    characters += JSON.stringify({ level: 'info', time: new Date().toISOString(), event, gateway: 'gw-1', ...record }).length;
  };
  const round = async (one: () => void): Promise<number> => {
    const before = process.cpuUsage();
    for (let i = 0; i < 20_000; i++) {
      one();
      if (i % 64 === 0) await nextTurn();
    }
    const used = process.cpuUsage(before);
    return used.user + used.system;
  };
  const ratios: number[] = [];
  for (let i = 0; i < 5; i++) {
    const own = await round(() => {
      log.received({ ...RECEIVED });
      log.delivered({ ...DELIVERED });
    });
    const other = await round(() => {
      asJson('received', RECEIVED);
      asJson('delivered', DELIVERED);
    });
    ratios.push(own / other);
  }
  assert.ok(characters > 0);
  // The best of them: other work on the machine disturbs the one or the other.
  const best = Math.min(...ratios);
  assert.ok(best <= 1, ratios.map((ratio) => ratio.toFixed(2)).join(', '));
});
