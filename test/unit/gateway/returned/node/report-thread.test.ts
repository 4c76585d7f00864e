/** Mail that came back, read by a real thread: hostile MIME costs a bounded time, and never the gateway. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';

import { ReturnAddresses } from '../../../../../src/base/return-addresses.js';
import type { CameBack, ReturnRecord, UnreadCause } from '../../../../../src/gateway/returned/came-back.js';
import { ReportThread } from '../../../../../src/gateway/returned/node/report-thread.js';
import type { ReportContent } from '../../../../../src/gateway/returned/report-content.js';
import { ReportLine } from '../../../../../src/gateway/returned/report-line.js';
import type { ReportReader } from '../../../../../src/gateway/returned/report-line.js';
import { ReturnPaths } from '../../../../../src/gateway/returned/return-paths.js';

const STATUS = 'Reporting-MTA: dns; x\r\n\r\nFinal-Recipient: rfc822; bob@far.example\r\nAction: failed\r\nStatus: 5.1.1\r\n';
/** As much as report-line.ts hands over. */
const OCTETS_MAX = 256 * 1024;

function multipart(...parts: readonly string[]): string {
  return `Content-Type: multipart/report; boundary=b\r\n\r\n${parts.map((part) => `--b\r\n${part}\r\n`).join('')}--b--\r\n`;
}

function read(thread: ReportReader, mail: string): Promise<ReportContent | UnreadCause> {
  const octets = new Uint8Array(Buffer.from(mail, 'latin1').subarray(0, OCTETS_MAX));
  return new Promise((resolve) => {
    // The thread keeps no process alive.
    const alive = setInterval(() => undefined, 1000);
    thread.read(octets, (content) => {
      clearInterval(alive);
      resolve(content);
    });
  });
}

async function actionsOf(thread: ReportReader, mail: string): Promise<string> {
  const content = await read(thread, mail);
  return typeof content === 'string' ? content : content.recipients.map(({ action }) => action).join();
}

describe('the thread that reads reports', { timeout: 120_000 }, () => {
  test('finds the part, however it is encoded, and where it stands', async () => {
    const thread = new ReportThread();
    const base64 = Buffer.from(STATUS).toString('base64');
    assert.equal(await actionsOf(thread, multipart('Content-Type: text/plain\r\n\r\nx', `Content-Type: message/delivery-status\r\n\r\n${STATUS}`)), 'failed');
    assert.equal(await actionsOf(thread, multipart(`Content-Type: Message/Delivery-Status\r\nContent-Transfer-Encoding: base64\r\n\r\n${base64}`)), 'failed');
    assert.equal(await actionsOf(thread, multipart(`Content-Type: message/global-delivery-status\r\n\r\n${STATUS}`)), 'failed');
    assert.equal(await actionsOf(thread, 'Subject: x\r\n\r\nhello\r\n'), '');
    // One within a mail that is returned is that mail's own.
    assert.equal(await actionsOf(thread, multipart(`Content-Type: message/rfc822\r\n\r\n${multipart(`Content-Type: message/delivery-status\r\n\r\n${STATUS}`).replaceAll('b\r\n', 'c\r\n').replace('--b--', '--c--')}`)), '');
    const original = await read(thread, multipart('Content-Type: text/rfc822-headers\r\n\r\nReturn-Path: <a@b.example>\r\nSubject: x\r\n'));
    assert.deepEqual(typeof original === 'string' ? original : original.returnPaths, ['a@b.example']);
    thread.close();
  });

  test('hostile MIME is read in a bounded time, and the next mail as ever', async () => {
    const thread = new ReportThread();
    const nested = Array.from({ length: 2000 }, (_, i) => `Content-Type: multipart/mixed; boundary=n${String(i)}\r\n\r\n--n${String(i)}\r\n`).join('');
    const hostile: Record<string, string> = {
      'deep nesting': nested,
      'ten thousand parts': multipart(...Array.from({ length: 10_000 }, () => 'X: y\r\n\r\nz')),
      'a large header': `Subject: ${'x'.repeat(5_000_000)}\r\n\r\n`,
      'many fields': `${'X: y\r\n'.repeat(1_000_000)}\r\n`,
      'base64 of one letter': multipart(`Content-Type: message/delivery-status\r\nContent-Transfer-Encoding: base64\r\n\r\n${'QUFB\r\n'.repeat(40_000)}`),
      'encoded words': `Subject: ${'=?utf-8?B?QUFBQUFB?= '.repeat(12_000)}\r\n\r\n`,
      'html': `Content-Type: text/html\r\n\r\n${'<div><a href="x">'.repeat(14_000)}`,
      'links': `Content-Type: text/plain\r\n\r\n${'http://xn--a.'.repeat(19_000)}`,
      'no end of a line': 'x'.repeat(262_144),
      'odd charset': `Content-Type: text/plain; charset=iso-2022-jp\r\n\r\n${'\x1b$B'.repeat(80_000)}`,
      'nothing': '',
    };
    for (const [name, mail] of Object.entries(hostile)) {
      const started = performance.now();
      const content = await read(thread, mail);
      assert.ok(typeof content !== 'string', `${name}: ${String(content)}`);
      assert.ok(performance.now() - started < 10_000, name);
    }
    assert.equal(await actionsOf(thread, multipart(`Content-Type: message/delivery-status\r\n\r\n${STATUS}`)), 'failed');
    thread.close();
  });

  test('one that loops, throws, ends or eats its heap costs that mail alone', async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-reports-'));
    const entry = path.join(folder, 'entry.mjs');
    writeFileSync(entry, `
      import { parentPort } from 'node:worker_threads';
      const good = { recipients: [], returnPaths: [] };
      parentPort.on('message', (octets) => {
        const word = Buffer.from(octets).toString();
        if (word === 'loop') for (;;);
        if (word === 'throw') throw new Error('x');
        if (word === 'exit') process.exit(1);
        if (word === 'heap') { const all = []; for (;;) all.push(new Array(10000).fill(all.length)); }
        if (word === 'lie') return parentPort.postMessage({ recipients: 'many' });
        parentPort.postMessage(good);
      });
      parentPort.postMessage('ready');
    `);
    const thread = new ReportThread(pathToFileURL(entry), 3000);
    const patient = new ReportThread(pathToFileURL(entry), 60_000);
    try {
      for (const [word, cause] of [['loop', 'late'], ['throw', 'failed'], ['exit', 'failed'], ['lie', 'failed']] as const) {
        assert.equal(await read(thread, word), cause, word);
        assert.deepEqual(await read(thread, 'good'), { recipients: [], returnPaths: [] }, `after ${word}`);
      }
      assert.equal(await read(patient, 'heap'), 'failed');
      assert.deepEqual(await read(patient, 'good'), { recipients: [], returnPaths: [] });
    } finally {
      thread.close();
      patient.close();
      rmSync(folder, { recursive: true });
    }
    const missing = new ReportThread(pathToFileURL(path.join(folder, 'missing.mjs')), 3000);
    assert.equal(await read(missing, 'x'), 'failed');
  });
});

class KeptRecord implements ReturnRecord {
  readonly told: string[] = [];
  returned(...[id, , said, resultClass]: Parameters<ReturnRecord['returned']>): void { this.told.push(`${String(id)} ${resultClass} ${said?.status ?? ''}`); }
  feedback(...[id, feedback, made]: Parameters<ReturnRecord['feedback']>): void { this.told.push(`${String(id)} ${feedback?.type ?? 'none'} ${made?.route ?? ''}`); }
  unread(id: number, why: UnreadCause): void { this.told.push(`${String(id)} ${why}`); }
}

class HeldReader implements ReportReader {
  done: ((content: ReportContent | UnreadCause) => void) | undefined;
  octets = 0;
  read(octets: Uint8Array, done: (content: ReportContent | UnreadCause) => void): void {
    this.octets = octets.length;
    this.done = done;
  }
  close(): void { this.end('failed'); }
  end(content: ReportContent | UnreadCause): void {
    const { done } = this;
    this.done = undefined;
    done?.(content);
  }
}

describe('the line of mail that came back', () => {
  const addresses = new ReturnAddresses({ route: 'out', domain: 'b.example', prefix: 'b', daysValid: 10, leadsBack: false }, [Buffer.from('x')], () => new Uint8Array(32), () => 0);
  const token = addresses.read(addresses.written(1, 'bob@far.example', 'a@b').split('@')[0] ?? '') ?? assert.fail();
  const came: CameBack[] = [{ kind: 'returned', route: 'out', token, to: '' }];
  const nothing = { recipients: [], returnPaths: [] };
  function world(roomBytes = 1e9) {
    const reader = new HeldReader();
    const record = new KeptRecord();
    const memory = {
      used: 0,
      reserve(bytes: number): boolean {
        if (memory.used + bytes > roomBytes) return false;
        memory.used += bytes;
        return true;
      },
      release(bytes: number): void { memory.used -= bytes; },
    };
    return { reader, record, memory, line: new ReportLine({ reader, record, memory, paths: () => new ReturnPaths([addresses], undefined) }) };
  }

  test('only what the client has its 250 for is told; memory is counted until then', () => {
    const { line, reader, record, memory } = world();
    const first = line.keep(1, came, [new Uint8Array(10), new Uint8Array(300_000)]);
    assert.equal(memory.used, OCTETS_MAX);
    first.settled(false);
    assert.deepEqual([memory.used, record.told], [0, []]);
    line.keep(2, came, [new Uint8Array(10)]).settled(true);
    line.keep(3, came, [new Uint8Array(20)]).settled(true);
    assert.equal(reader.octets, 10);
    reader.end({ ...nothing, recipients: [{ action: 'failed', status: '', finalRecipient: '', originalRecipient: '', diagnostic: '', remoteMta: '' }] });
    assert.equal(reader.octets, 20);
    reader.end('late');
    assert.deepEqual([memory.used, record.told], [0, ['2 5 ', '3 late', '3 unread ']]);
  });

  test('without room it is told unread; at the stop so is what waits', () => {
    const { line, record, memory } = world(25);
    line.keep(1, came, [new Uint8Array(10)]).settled(true);
    line.keep(2, came, [new Uint8Array(10)]).settled(true);
    line.keep(3, [{ kind: 'feedback', to: '' }], [new Uint8Array(10)]).settled(true);
    assert.deepEqual(record.told, ['3 busy', '3 none ']);
    line.close();
    assert.deepEqual(record.told.slice(2), ['2 failed', '2 unread ', '1 failed', '1 unread ']);
    assert.equal(memory.used, 0);
  });

  test('32 MiB wait at most, and what was read makes room again', () => {
    const { line, reader, record } = world();
    const large = [new Uint8Array(OCTETS_MAX)];
    for (let id = 0; id < 129; id++) line.keep(id, came, large).settled(true);
    assert.deepEqual(record.told, ['128 busy', '128 unread ']);
    for (let id = 0; id < 128; id++) reader.end(nothing);
    for (let id = 200; id < 328; id++) line.keep(id, came, large).settled(true);
    assert.ok(!record.told.slice(2).some((told) => told.includes('busy')), record.told.slice(-3).join());
  });

  test('a return address in feedback counts for 90 days, however old', () => {
    const day = { is: 0 };
    const old = new ReturnAddresses({ route: 'out', domain: 'b.example', prefix: 'b', daysValid: 10, leadsBack: false }, [Buffer.from('x')], () => new Uint8Array(32), () => day.is * 86_400_000);
    const address = old.written(1, 'bob@far.example', 'a@b');
    const paths = new ReturnPaths([old], undefined);
    day.is = 90;
    assert.equal(paths.madeHere(address)?.route, 'out');
    day.is = 91;
    assert.equal(paths.madeHere(address), undefined);
  });

  test('a thousand wait at most', () => {
    const { line, record } = world();
    for (let id = 0; id < 1001; id++) line.keep(id, came, [new Uint8Array(1)]).settled(true);
    assert.deepEqual(record.told, ['1000 busy', '1000 unread ']);
  });
});
