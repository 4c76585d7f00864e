/** What `find` reads of the log files of a gateway: which parts of which files, what of them is told, and where it ends. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { LoggedAnswer, LoggedQuestion } from '../../../../../src/admin-api/logged.js';
import { LogPieces } from '../../../../../src/gateway/look/node/log-pieces.js';
import { LogSearch } from '../../../../../src/gateway/look/node/log-search.js';
import type { LogPlace } from '../../../../../src/gateway/look/node/log-search.js';
import { searchLog } from '../../../../../src/gateway/look/node/search-log.js';

const MINUTE = 60_000;
/** Files of now have lines of the days since then. */
const START = Math.floor(Date.now() / MINUTE) * MINUTE - 40_000 * MINUTE;
const ENDLESS = { endMs: Infinity, bytesMax: Infinity };

let folder: string;
let log: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'twinpost-log-'));
  log = join(folder, 'mail.log');
});
afterEach(() => { rmSync(folder, { recursive: true }); });

function idOf(n: number): string {
  return `000H3${String(n).padStart(6, '0')}`;
}

function line(event: string, n: number, minute: number, fields: object = {}): string {
  return `${JSON.stringify({
    level: 'info', time: new Date(START + minute * MINUTE).toISOString(), event, gateway: 'gw-1', queue_id: idOf(n), from: `s${String(n)}@a.example`, to: `r${String(n)}@b.example`, ...fields,
  })}\n`;
}

function received(n: number, minute: number, fields: object = {}): string {
  return line('received', n, minute, { message_id: `<m${String(n)}@a.example>`, size: 100, nrcpt: 1, ...fields });
}

function delivered(n: number, minute: number, fields: object = {}): string {
  return line('delivered', n, minute, { relay: 'mx[192.0.2.1]:25', reply: '250 OK', delay: 60, ...fields });
}

function ask(question: Partial<LoggedQuestion>, bounds = ENDLESS): LoggedAnswer {
  return searchLog(log, { since_ms: START, until_ms: START + 1_000_000 * MINUTE, limit: 100, ...question }, bounds);
}

function ids({ messages }: LoggedAnswer): readonly string[] {
  return messages.map(({ queue_id: id }) => id);
}

/** Written last at this hour. */
function put(name: string, text: string, hour: number): void {
  writeFileSync(join(folder, name), text);
  utimesSync(join(folder, name), START / 1000 + hour * 3600, START / 1000 + hour * 3600);
}

/** Of some 4 MB: a message a minute. */
function writeMany(count = 20_000): void {
  let text = '';
  for (let n = 0; n < count; n++) text += received(n, n) + delivered(n, n + 0.5);
  writeFileSync(log, text);
}

describe('a search of log files', () => {
  test('finds by sender, recipient, id and Message-ID, letters of either case, and what is said otherwise in JSON', () => {
    writeFileSync(log, received(1, 0) + delivered(1, 1) + received(2, 2, { from: '', to: '"q\\u"@B.example' }) + received(3, 3, { to: 'Zoë@b.example' })
      + line('delivered', 4, 4, { orig_to: 'List@b.example', mail_from: 'srs0=x@a.example' }));
    const found = (question: Partial<LoggedQuestion>): readonly string[] => ids(ask(question));
    const [one, two, three, four] = [1, 2, 3, 4].map(idOf);
    assert.deepEqual(found({ sender: 'S1@A.example' }), [one]);
    assert.deepEqual(found({ sender: 's*@a.example', recipient: 'r1@*' }), [one]);
    assert.deepEqual(found({ sender: '<>' }), [two]);
    assert.deepEqual(found({ recipient: '"Q\\U"@b.example' }), [two]);
    assert.deepEqual(found({ recipient: 'ZOË@b.example' }), [three]);
    assert.deepEqual(found({ recipient: 'list@b.example' }), [four]);
    assert.deepEqual(found({ sender: 'SRS0=*' }), [four]);
    assert.deepEqual(found({ sender: 'a.example' }), [], 'it is all of an address');
    assert.deepEqual(found({ recipient: '*' }), [one, two, three, four]);
    assert.deepEqual(found({}), [one, two, three, four]);
    for (const messageId of ['m1@a.example', ' <m1@a.example> ']) assert.deepEqual(found({ message_id: messageId }), [one]);
    assert.deepEqual(found({ message_id: 'M1@a.example' }), []);
    assert.deepEqual(found({ ids: [idOf(1), idOf(4)] }), [one, four], 'by when they came');
    appendFileSync(log, line('report', 1, 5, { report_id: idOf(99) }) + delivered(99, 6));
    assert.equal(found({ ids: Array.from({ length: 40 }, (_, n) => idOf(n)) }).length, 4, 'reports are messages of their own');
  });

  test('finds a recipient by his domain, in Unicode or as A-labels', () => {
    writeFileSync(log, received(1, 0, { to: 'ann@bücher.example' }) + received(2, 1, { to: 'Ann@xn--bcher-kva.example' }) + received(3, 2, { to: 'bob@bücher.example' }));
    for (const recipient of ['ann@bücher.example', 'ann@XN--BCHER-KVA.example']) assert.deepEqual(ids(ask({ recipient })), [1, 2].map(idOf), recipient);
    assert.deepEqual(ids(ask({ recipient: '*@*.bücher.example' })), []);
  });

  test('finds a Message-ID that a comment stands beside', () => {
    writeFileSync(log, received(1, 0) + received(5, 5, { message_id: '<m5@a.example> (made up)' }));
    for (const messageId of ['m5@a.example', '<m5@a.example> (copied)']) assert.deepEqual(ids(ask({ message_id: messageId })), [idOf(5)]);
  });

  test('tells of each recipient what became of him last, and when the message came', () => {
    writeFileSync(log, received(1, 0, { nrcpt: 2 }) + line('deferred', 1, 1, { reply: '451 later', delay: 60 }) + delivered(1, 2, { to: 'x@b.example', delay: 120 })
      + line('bounced', 1, 3, { reply: '550 \u001b[2J', delay: 180 }) + line('report', 1, 3, { report_id: idOf(9) }));
    const wanted = {
      queue_id: idOf(1), message_id: '<m1@a.example>', arrival_ms: START, sender: 's1@a.example', message_size: 100, recipient_count: 2,
      recipients: [
        { address: 'r1@b.example', given: '', state: 'bounced', at_ms: START + 3 * MINUTE, gateway: 'gw-1', relay: '', reply: '550 \u001b[2J' },
        { address: 'x@b.example', given: '', state: 'delivered', at_ms: START + 2 * MINUTE, gateway: 'gw-1', relay: 'mx[192.0.2.1]:25', reply: '250 OK' },
      ],
    };
    assert.deepEqual(ask({ ids: [idOf(1)] }).messages, [wanted]);
    // Without the line of its acceptance.
    const { arrival_ms: arrivalMs, recipient_count: count } = ask({ sender: 's1@*', since_ms: START + MINUTE }).messages[0] ?? {};
    assert.deepEqual([arrivalMs, count], [START, null]);
  });

  test('reads only where lines of that time stand, and the newest first', () => {
    writeMany();
    const hour = { since_ms: START + 9_000 * MINUTE, until_ms: START + 9_060 * MINUTE };
    const one = ask({ ...hour, recipient: 'r90*@b.example' }, { ...ENDLESS, bytesMax: 500_000 });
    assert.deepEqual([one.messages.length, one.read_from_ms, one.more], [61, hour.since_ms, false]);
    assert.equal(one.messages.every(({ arrival_ms: ms }) => ms !== null && ms >= hour.since_ms && ms <= hour.until_ms), true);
    const newest = ask({ limit: 3, recipient: '*' });
    assert.deepEqual([ids(newest), newest.more], [[idOf(19_997), idOf(19_998), idOf(19_999)], true]);
    assert.ok(newest.read_from_ms > START + 15_000 * MINUTE, 'and no more than is wanted');
    const onward = ask({ ids: [idOf(50)], since_ms: START + 50 * MINUTE, onward: true }, { ...ENDLESS, bytesMax: 2_000_000 });
    assert.deepEqual([onward.messages[0]?.recipients[0]?.state, onward.read_to_ms > START + 100_000 * MINUTE], ['delivered', true], 'it ends with the message');
  });

  test('says how far it came when its time or its bytes are over', () => {
    writeMany();
    for (const bounds of [{ ...ENDLESS, endMs: 0 }, { ...ENDLESS, bytesMax: 1 }]) {
      const { read_from_ms: fromMs, begins_ms: beginsMs, messages } = ask({ sender: 's1@*' }, bounds);
      assert.deepEqual([messages, beginsMs], [[], START]);
      assert.ok(fromMs > START + 10_000 * MINUTE && fromMs < START + 20_000 * MINUTE);
      const onward = ask({ ids: [idOf(19_999)], onward: true }, bounds);
      assert.ok(onward.messages.length === 0 && onward.read_from_ms === START && onward.read_to_ms < START + 10_000 * MINUTE);
    }
  });

  test('passes over what is no line, and over lines that are too long, in both directions', () => {
    const long = `{"to":"r2@b.example","long":"${'x'.repeat(3 * 1024 * 1024)}"}\n`;
    writeFileSync(log, `no JSON r2@b.example\n${received(1, 0)}${long}\n\0\0${received(2, 1)}${received(2, 1)}${long}${received(3, 2)}{"time":"2026-01-31T10:0`);
    assert.deepEqual(ids(ask({ recipient: 'r*@b.example' })), [1, 2, 3].map(idOf));
    assert.deepEqual(ids(ask({ ids: [1, 2, 3, 4].map(idOf), onward: true })), [1, 2, 3].map(idOf));
    writeFileSync(log, received(1, 0).slice(0, -3));
    assert.deepEqual(ask({}).messages, []);
    writeFileSync(log, '');
    assert.deepEqual([ask({}).messages, ask({}).begins_ms], [[], null]);
  });

  test('reads rotated files beside it, names those that it can not read, and no others', () => {
    put('mail.log.2', received(1, 0), 1);
    put('mail.log-20260131', received(2, 60), 2);
    put('mail.log', received(3, 120), 3);
    put('mail.log.3.gz', 'x', 1);
    put('mail.log.4.gz', 'x', -1);
    put('mail.logs', received(8, 120), 3);
    put('other-mail.log.1', received(9, 120), 3);
    mkdirSync(join(folder, 'mail.log.d'));
    utimesSync(join(folder, 'mail.log.d'), 0, 0);
    const all = ask({ recipient: '*' });
    assert.deepEqual([ids(all), all.unread_files, all.begins_ms], [[1, 2, 3].map(idOf), 1, START]);
    assert.deepEqual(ids(ask({ recipient: '*', limit: 1 })), [idOf(3)]);
    assert.equal(ask({ since_ms: START + 90 * MINUTE }).unread_files, 0);
    rmSync(log);
    assert.deepEqual(ids(ask({ recipient: '*' })), [idOf(1), idOf(2)], 'between a rename and the next line');
  });

  test('loses nothing to a rename or a deletion meanwhile, and says when a file was cut', () => {
    writeMany();
    const all = (pieces: Generator<Buffer>): number => [...pieces].reduce((sum, piece) => {
      assert.match(piece.toString('latin1'), /^\{[^]*\}\n$/, 'whole lines');
      return sum + piece.length;
    }, 0);
    const bytes = all(new LogPieces(log, START, Infinity).newestFirst());
    for (const direction of ['newestFirst', 'oldestFirst'] as const) {
      writeMany();
      const pieces = new LogPieces(log, START, Infinity);
      const reading = pieces[direction]();
      const first = reading.next().value as Buffer;
      renameSync(log, `${log}.1`);
      appendFileSync(log, received(1, 0));
      rmSync(`${log}.1`);
      assert.deepEqual([first.length + all(reading), pieces.wasCut], [bytes, false]);
      pieces.close();
    }
    writeMany();
    const pieces = new LogPieces(log, START, Infinity);
    const reading = pieces.newestFirst();
    reading.next();
    truncateSync(log, 100);
    assert.ok([...reading].reduce((sum, piece) => sum + piece.length, 0) <= 100);
    assert.equal(pieces.wasCut, true);
    pieces.close();
  });

  test('says how far it came when the file was cut while it was read: what stood further back lies elsewhere', (t) => {
    writeMany();
    const old = readFileSync(log);
    let pieces = 0;
    const cut = function* (this: LogPieces, plain: () => Generator<Buffer>): Generator<Buffer> {
      for (const piece of plain.call(this)) {
        yield piece;
        // copytruncate: the copy was not there when files were opened.
        if (pieces++ === 1) {
          writeFileSync(`${log}.1`, old);
          truncateSync(log, 0);
        }
      }
    };
    for (const direction of ['newestFirst', 'oldestFirst'] as const) {
      pieces = 0;
      rmSync(`${log}.1`, { force: true });
      writeFileSync(log, old);
      put('mail.log.2', received(30_000, -600), -9);
      const plain = LogPieces.prototype[direction];
      t.mock.method(LogPieces.prototype, direction, function (this: LogPieces) { return cut.call(this, plain); });
      const isOnward = direction === 'oldestFirst';
      const { read_from_ms: fromMs, read_to_ms: toMs } = ask({ since_ms: START - 1_000 * MINUTE, ...(isOnward ? { ids: [idOf(19_999)], onward: true } : { sender: 's1@*' }) });
      if (isOnward) assert.ok(toMs > START + 1_000 * MINUTE && toMs < START + 12_000 * MINUTE, String(toMs));
      else assert.ok(fromMs > START + 8_000 * MINUTE && fromMs < START + 19_000 * MINUTE, String(fromMs));
    }
  });

  test('says from when on it has read all recipients, where a message has more than it tells of', () => {
    let text = '';
    for (let n = 0; n < 12_000; n++) text += delivered(1, n, { to: `r${String(n)}@${'b'.repeat(200)}.example` });
    writeFileSync(log, text);
    const { messages, more, read_from_ms: fromMs } = ask({ sender: 's1@a.example' });
    assert.deepEqual([messages[0]?.recipients.length, more], [4_000, false], 'it is one message');
    assert.ok(fromMs > START + 8_000 * MINUTE && fromMs < START + 12_000 * MINUTE);
    assert.equal(ask({ sender: 's1@a.example' }).messages[0]?.recipients.some(({ at_ms: atMs }) => atMs > fromMs + MINUTE), true);
  });

  test('throws when there is no file', () => {
    assert.throws(() => ask({}), /mail\.log can not be read back/);
    mkdirSync(log);
    assert.throws(() => ask({}), /mail\.log can not be read back/);
  });
});

describe('a search in its thread', () => {
  const question: LoggedQuestion = { recipient: '*', since_ms: START, until_ms: START + 100_000 * MINUTE, limit: 10 };
  const stays = new AbortController().signal;

  test('answers, says why there is nothing to read, and ends when nobody waits', async () => {
    writeFileSync(log, received(1, 0));
    const search = new LogSearch(() => ({ file: log, mail: true }));
    assert.deepEqual(ids(await search.search(question, stays)), [idOf(1)]);
    const whyOf = async (place: { readonly file?: string; readonly mail: boolean }): Promise<string> => (await new LogSearch(() => place).search(question, stays)).why;
    assert.match(await whyOf({ mail: true }), /stdout/);
    assert.match(await whyOf({ file: join(folder, 'none'), mail: true }), /can not be read back/);
    const left = new AbortController();
    const searches = [search.search(question, left.signal), search.search(question, left.signal)];
    assert.equal(search.isFull, true);
    left.abort();
    assert.deepEqual((await Promise.all(searches)).map(({ why }) => why), ['nobody waits for it', 'nobody waits for it']);
    while (search.isFull) await sleep(5);
  });

  test('that hangs in a read keeps its place until that ends: no more threads than that are left behind', async (t) => {
    const pipe = join(folder, 'pipe');
    assert.equal(spawnSync('mkfifo', [pipe]).status, 0);
    // In the place of a file on a disk that does not answer.
    const held = openSync(pipe, 'r+');
    t.after(() => { closeSync(held); });
    const [entry, begun] = [join(folder, 'hang.mjs'), join(folder, 'begun')];
    writeFileSync(begun, '');
    writeFileSync(entry, `import fs from 'node:fs';\nfs.appendFileSync(${JSON.stringify(begun)}, 'x');\nfs.readSync(fs.openSync(${JSON.stringify(pipe)}), Buffer.alloc(1));\n`);
    const search = new LogSearch(() => ({ file: log, mail: true }), pathToFileURL(entry));
    const left = new AbortController();
    const searches = [search.search(question, left.signal), search.search(question, left.signal)];
    while (statSync(begun).size < 2) await sleep(20);
    await sleep(100);
    left.abort();
    await Promise.all(searches);
    await sleep(300);
    assert.equal(search.isFull, true);
    writeSync(held, 'xx');
    while (search.isFull) await sleep(5);
  });

  test('that has no thread takes no place, and says why', async () => {
    const search = new LogSearch(() => ({ file: log, mail: true }), new URL('http://a.example/'));
    for (let n = 0; n < 3; n++) assert.match((await search.search(question, stays)).why, /URL/);
    assert.equal(search.isFull, false);
  });

  test('says which lines the log should have of that time, and has not', async () => {
    writeFileSync(log, received(1, 0));
    const lacksOf = async (place: Partial<LogPlace>, asked: Partial<LoggedQuestion> = {}): Promise<readonly string[]> => {
      const { messages, lacks } = await new LogSearch(() => ({ file: log, mail: true, ...place })).search({ ...question, since_ms: START - MINUTE, ...asked }, stays);
      assert.equal(messages.length, 1, 'what is there is told');
      return lacks;
    };
    const [before, then] = [START - 10 * MINUTE, START + 10 * MINUTE];
    const text = new Date(then).toISOString();
    assert.deepEqual(await lacksOf({}), []);
    assert.deepEqual(await lacksOf({ switchedMs: before, lostMs: before, failing: '' }), []);
    assert.deepEqual(await lacksOf({ switchedMs: then }), [`log.mail was off until ${text}`]);
    assert.deepEqual(await lacksOf({ mail: false }), ['log.mail is off']);
    assert.deepEqual(await lacksOf({ mail: false, switchedMs: then }), [`log.mail is off since ${text}`]);
    assert.deepEqual(await lacksOf({ mail: false, switchedMs: then }, { until_ms: then - 1 }), []);
    assert.deepEqual(await lacksOf({ lostMs: then, failing: 'ENOSPC' }), [`lines were lost, the last at ${text}`, 'it can not be written now: ENOSPC']);
  });

  test('ends where an id is none: it would be looked for without end', () => {
    writeFileSync(log, received(1, 0) + received(2, 0));
    assert.deepEqual(ids(ask({ ids: ['', '\n'] })), []);
  });
});
