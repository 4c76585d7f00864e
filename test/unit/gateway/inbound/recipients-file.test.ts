/** The table of recipients: what goes in comes out, nobody else is in it, and a file that is not whole is never used. */
import assert from 'node:assert/strict';
import { pbkdf2 } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, mock, test } from 'node:test';
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';

import { buildTable } from '../../../../src/cli/table/build.js';
import type { TableReport } from '../../../../src/cli/table/build.js';
import { TableFile, checkTable, followTable } from '../../../../src/gateway/inbound/recipients-file.js';
import { BUCKET_BYTES, HEAD_FIXED_BYTES, MAGIC, SLOTS, aliasValue, bucketsAt, bucketsFor, findIn, hasRunOver, markRunOver, putInto, routeIn, routeValue, textIn } from '../../../../src/gateway/inbound/recipients/table-layout.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import { SystemClock } from '../../../../src/platform/node/clock.js';

const COUNT = 20_000;
const BOUND_MS = 10_000;

function inFolder(run: (folder: string) => void | Promise<void>): () => Promise<void> {
  return async () => {
    const folder = mkdtempSync(join(tmpdir(), 'twinpost-table-'));
    try {
      await run(folder);
    } finally {
      rmSync(folder, { recursive: true });
    }
  };
}

function build(folder: string, lines: readonly string[], name = 'table'): TableReport {
  writeFileSync(join(folder, 'text'), lines.join('\n'));
  return buildTable(join(folder, 'text'), join(folder, name), () => undefined);
}

/** As another program may make it. */
function withoutAddresses(): Buffer {
  const buckets = Buffer.alloc(BUCKET_BYTES);
  const head = Buffer.from(JSON.stringify({
    seed: Buffer.alloc(16).toString('base64'), entries: 0, buckets: 1, textBytes: 0, routes: [], checksum: crc32(buckets, 0),
  }));
  const start = Buffer.alloc(bucketsAt(head.length));
  start.write(MAGIC, 0, 'latin1');
  start.writeUInt32LE(head.length, 8);
  start.writeUInt32LE(crc32(head, 0), 12);
  head.copy(start, HEAD_FIXED_BYTES);
  return Buffer.concat([start, buckets]);
}

describe('a table', () => {
  test('knows each of many addresses, and none beside them', inFolder((folder) => {
    const lines = Array.from({ length: COUNT }, (_none, i) => `User${String(i)}@d${String(i % 7)}.example${['', ' route=box-1', '\troute=box-2', ` to=x${String(i)}@else.example`][i % 4] ?? ''}`);
    const report = build(folder, lines);
    assert.deepEqual([report.entries, report.aliases, report.routes], [COUNT, COUNT / 4, 2]);
    checkTable(join(folder, 'table'));
    const table = new TableFile(join(folder, 'table'));
    for (let i = 0; i < COUNT; i++) {
      const listing = table.find(`user${String(i)}@d${String(i % 7)}.example`);
      const to = i % 4 === 3 ? [`x${String(i)}@else.example`] : [];
      assert.deepEqual(listing, { route: ['', 'box-1', 'box-2', ''][i % 4], to });
      assert.equal(table.find(`user${String(i)}@d${String((i + 1) % 7)}.example`), undefined);
    }
    table.close();
  }));

  test('takes at most 32 bytes an address on disk and so in the cache that all processes share', inFolder((folder) => {
    const report = build(folder, Array.from({ length: COUNT }, (_none, i) => `u${String(i)}@d.example`));
    assert.ok(report.bytes / COUNT < 18, String(report.bytes / COUNT));
  }));

  test('of a few, whose buckets run over into one another and round the end, knows each', inFolder((folder) => {
    for (let count = 1; count <= 40; count++) {
      // Where there are two buckets, a key of the last that is full is in the first.
      for (let time = 0; time < (count <= 8 ? 100 : 3); time++) {
        build(folder, Array.from({ length: count }, (_none, i) => `u${String(i)}@d.example`));
        const table = new TableFile(join(folder, 'table'));
        for (let i = 0; i < count; i++) assert.ok(table.find(`u${String(i)}@d.example`) !== undefined, `${String(i)} of ${String(count)}`);
        for (let i = count; i < count + 20; i++) assert.equal(table.find(`u${String(i)}@d.example`), undefined);
        table.close();
      }
    }
  }));

  test('of one works', inFolder((folder) => {
    build(folder, ['a@b.example']);
    const table = new TableFile(join(folder, 'table'));
    assert.ok(table.find('a@b.example') !== undefined);
    assert.equal(table.find('c@b.example'), undefined);
    table.close();
  }));

  test('never differs by the seed, which is new with each file', inFolder((folder) => {
    build(folder, ['a@b.example']);
    build(folder, ['a@b.example'], 'other');
    assert.notDeepEqual(readFileSync(join(folder, 'table')), readFileSync(join(folder, 'other')));
  }));

  test('finds keys behind a full bucket', () => {
    const bytes = new DataView(new ArrayBuffer(2 * BUCKET_BYTES));
    const digest = (i: number): DataView => {
      const view = new DataView(new ArrayBuffer(32));
      view.setUint32(0, i, true);
      return view;
    };
    for (let i = 1; i <= SLOTS; i++) assert.ok(putInto(bytes, 0, digest(i), i));
    assert.equal(putInto(bytes, 0, digest(9), 9), false);
    assert.equal(hasRunOver(bytes, 0), false);
    markRunOver(bytes, 0);
    assert.equal(hasRunOver(bytes, 0), true);
    for (let i = 1; i <= SLOTS; i++) assert.equal(findIn(bytes, 0, digest(i)), i);
    assert.equal(findIn(bytes, 0, digest(9)), -1);
  });

  test('tells routes from aliases', () => {
    assert.deepEqual([routeIn(routeValue(0)), routeIn(routeValue(2047)), routeIn(0), routeIn(aliasValue(8))], [0, 2047, -1, -1]);
    assert.deepEqual([textIn(aliasValue(0)), textIn(aliasValue(4_000_000_000)), textIn(0), textIn(routeValue(5))], [0, 4_000_000_000, -1, -1]);
    assert.ok(bucketsFor(0) === 1 && bucketsFor(10_000_000) * BUCKET_BYTES < 18 * 10_000_000);
  });
});

describe('a text', () => {
  const wrong: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['nothing in it', [], /^expected addresses, one a line, found none$/],
    ['comments alone', ['# a@b.example', '', '#'], /^expected addresses, one a line, found none$/],
    ['no address', ['a@b.example', '# c', 'not an address'], /^line 3: expected an address, found 'not': /],
    ['no domain', ['postmaster'], /^line 1: expected an address with its domain, found 'postmaster'/],
    ['an address twice', ['a@b.example', '', 'A@B.example'], /^line 3: 'a@b.example' stands there twice/],
    ['an action that is none', ['a@b.example via=x'], /^line 1: expected route=NAME or to=ADDRESS,…, found 'via=x'/],
    ['two actions', ['a@b.example route=x to=c@d.example'], /^line 1: expected one of route=NAME and to=ADDRESS,…/],
    ['an alias to no address', ['a@b.example to=c'], /^line 1: expected an address, found 'c': domain is missing|^line 1: expected an address/],
    ['an alias to a domain', ['a@b.example to=@c.example'], /^line 1: expected an address, found '@c.example'$/],
    ['an alias to nobody', ['a@b.example to='], /^line 1: expected an address, found ''|^line 1: expected an address/],
    ['a domain that is none', ['@b_.exa mple'], /^line 1: /],
  ];
  for (const [what, lines, expected] of wrong) {
    test(`with ${what} is refused by its line, and the old table stays`, inFolder((folder) => {
      build(folder, ['old@b.example']);
      const before = readFileSync(join(folder, 'table'));
      assert.throws(() => build(folder, lines), ({ message }: Error) => expected.test(message));
      assert.deepEqual(readFileSync(join(folder, 'table')), before);
      assert.deepEqual(readdirSync(folder).sort(), ['table', 'text'], 'nothing half made is left');
    }));
  }

  test('of many pieces keeps lines whole, with characters that lie across two', inFolder((folder) => {
    const lines = Array.from({ length: 60_000 }, (_none, i) => `größe${String(i)}@bücher.example`);
    build(folder, lines);
    const table = new TableFile(join(folder, 'table'));
    for (let i = 0; i < lines.length; i += 97) assert.ok(table.find(`größe${String(i)}@xn--bcher-kva.example`) !== undefined);
    table.close();
  }));
});

describe('a file that is not whole', () => {
  test('is refused wherever a byte of it is wrong', inFolder((folder) => {
    build(folder, [...Array.from({ length: 50 }, (_none, i) => `u${String(i)}@d.example`), 'z@d.example to=a@b.example']);
    const file = join(folder, 'table');
    const whole = readFileSync(file);
    const used = whole.subarray(16).indexOf(0) + 16;
    for (let at = 0; at < whole.length; at += 1) {
      // What fills the first page means nothing.
      if (at >= used && at < 4096) continue;
      const damaged = Buffer.from(whole);
      damaged[at] = (damaged[at] ?? 0) ^ 0x41;
      writeFileSync(file, damaged);
      assert.throws(() => { checkTable(file); }, /'.*table'/, `byte ${String(at)}`);
    }
  }));

  test('is refused when it is cut off, empty, or something else', inFolder((folder) => {
    build(folder, Array.from({ length: 50 }, (_none, i) => `u${String(i)}@d.example`));
    const file = join(folder, 'table');
    const whole = readFileSync(file);
    for (const bytes of [0, 8, 16, 100, 4096, whole.length - 1]) {
      writeFileSync(file, whole.subarray(0, bytes));
      assert.throws(() => { checkTable(file); }, /cut off|it is no table/);
    }
    writeFileSync(file, withoutAddresses());
    assert.throws(() => { checkTable(file); }, /: it has no address in it$/);
    writeFileSync(file, 'anna@example.com\n');
    assert.throws(() => { checkTable(file); }, /cut off|it is no table/);
    rmSync(file);
    assert.throws(() => { checkTable(file); }, /can't be read: ENOENT/);
  }));
});

/** Descriptors of this process that lead into the folder. */
function openIn(folder: string): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(folder);
    } catch {
      // It was for the reading of this folder.
      return false;
    }
  }).length;
}

async function untilClosed(folder: string): Promise<void> {
  const endMs = performance.now() + BOUND_MS;
  for (; openIn(folder) > 0; await turn()) assert.ok(performance.now() < endMs, 'it stays open');
}

test('a table is closed in another thread: of one that was replaced, all pages are given back then', inFolder(async (folder) => {
  build(folder, ['a@b.example']);
  const table = new TableFile(join(folder, 'table'));
  // These keep all threads of the pool busy: no other thread can close it meanwhile.
  const busy = Array.from({ length: 8 }, () => promisify(pbkdf2)('password', 'salt', 50_000, 64, 'sha512'));
  table.close();
  assert.equal(openIn(folder), 1);
  await Promise.all(busy);
  await untilClosed(folder);
}));

for (const [name, isGood] of [['a good one', true], ['a bad one', false]] as const) {
  test(`no table is followed any more while ${name} is being opened: neither stays open, and nothing is told`, inFolder(async (folder) => {
    const file = join(folder, 'table');
    build(folder, ['old@b.example']);
    const told: unknown[] = [];
    const note = (event: string): void => { told.push(event); };
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      const running = followTable(file, { clock: new SystemClock(), log: { debug: note, info: note, warn: note, error: note }, onRead: (isStale) => { told.push(isStale); } });
      build(folder, ['new@b.example', 'and@b.example'], 'next');
      if (!isGood) writeFileSync(join(folder, 'next'), readFileSync(join(folder, 'next')).fill(1, 4100, 4110));
      renameSync(join(folder, 'next'), file);
      assert.equal(openIn(folder), 1);
      mock.timers.tick(1000);
      assert.equal(openIn(folder), 2);
      running.close();
      await untilClosed(folder);
      assert.deepEqual(told, [false]);
    } finally {
      mock.timers.reset();
    }
  }));
}

test('a table that is written into refuses nobody: nobody can tell until another takes its place', inFolder((folder) => {
  const file = join(folder, 'table');
  build(folder, ['a@b.example']);
  const table = new TableFile(file);
  assert.equal(table.find('c@b.example'), undefined);
  writeFileSync(file, readFileSync(file));
  assert.throws(() => table.find('c@b.example'), /it is written into; replace it by a rename/);
  writeFileSync(file, 'short');
  assert.throws(() => table.find('a@b.example'), /it is cut off/);
  table.close();
}));

test('a table that is replaced is in force within moments; a bad one never is, and that is told once', inFolder(async (folder) => {
  const file = join(folder, 'table');
  const told: string[] = [];
  const stale: boolean[] = [];
  const note = (event: string, text: string): void => { told.push(`${event} ${text}`); };
  build(folder, ['old@b.example']);
  const running = followTable(file, { clock: new SystemClock(), log: { debug: note, info: note, warn: note, error: note }, onRead: (isStale) => { stale.push(isStale); } });
  const { table } = running;
  try {
    assert.ok(table.find('old@b.example') !== undefined && table.find('new@b.example') === undefined);
    build(folder, ['new@b.example']);
    copyFileSync(file, join(folder, 'good'));
    for (let waited = 0; table.find('new@b.example') === undefined; waited += 50) {
      assert.ok(waited < BOUND_MS);
      await pause(50);
    }
    assert.equal(table.find('old@b.example'), undefined);
    writeFileSync(join(folder, 'bad'), readFileSync(file).fill(1, 4100, 4110));
    renameSync(join(folder, 'bad'), file);
    for (let waited = 0; told.length < 2; waited += 50) {
      assert.ok(waited < BOUND_MS);
      await pause(50);
    }
    writeFileSync(join(folder, 'empty'), withoutAddresses());
    renameSync(join(folder, 'empty'), file);
    for (let waited = 0; told.length < 3; waited += 50) {
      assert.ok(waited < BOUND_MS);
      await pause(50);
    }
    await pause(2200);
    assert.ok(table.find('new@b.example') !== undefined);
    assert.deepEqual(told, [
      'recipients the table of recipients was read anew', 'recipients the new table of recipients can\'t be used, the old one stays',
      'recipients the new table of recipients can\'t be used, the old one stays',
    ]);
    assert.deepEqual(stale, [false, false, true, true]);
    renameSync(join(folder, 'good'), file);
    for (let waited = 0; stale.length < 5; waited += 50) {
      assert.ok(waited < BOUND_MS);
      await pause(50);
    }
    assert.equal(stale[4], false, 'the good one is back');
  } finally {
    running.close();
  }
}));

test('a followed table that is written into says once in 10 s that mail is deferred, until a whole one is there', inFolder(async (folder) => {
  const file = join(folder, 'table');
  const told: string[] = [];
  const states: unknown[] = [];
  const note = (_event: string, text: string, fields: object = {}): void => { told.push(`${text}: ${JSON.stringify(fields)}`); };
  let nowMs = 0;
  build(folder, ['a@b.example']);
  const good = readFileSync(file);
  const running = followTable(file, {
    clock: { nowMs: () => nowMs, wallMs: () => nowMs }, log: { debug: note, info: note, warn: note, error: note },
    onRead: (isStale, deferredBy) => { states.push([isStale, deferredBy]); },
  });
  const asked = (): void => { assert.throws(() => running.table.find('c@b.example')); };
  const until = async (isSo: () => boolean): Promise<void> => {
    for (let waited = 0; !isSo(); waited += 50) {
      assert.ok(waited < BOUND_MS);
      await pause(50);
    }
  };
  try {
    writeFileSync(file, Buffer.from(good).fill(1, 4100, 4110));
    asked();
    asked();
    const why = `'${file}': it is written into; replace it by a rename`;
    assert.deepEqual([told, states], [[`the table of recipients can't be read, mail is deferred: ${JSON.stringify({ why })}`], [[false, ''], [true, why]]]);
    nowMs = 10_000;
    asked();
    assert.equal(told.length, 2, 'once in 10 s');
    await until(() => told.length === 3);
    const damaged = `'${file}': its checksum is wrong`;
    assert.equal(told[2], `the new table of recipients can't be used, the old one was written into: mail is deferred: ${JSON.stringify({ why: damaged })}`);
    assert.deepEqual(states.at(-1), [true, damaged]);
    writeFileSync(file, good);
    await until(() => states.length === 5);
    assert.deepEqual([states.at(-1), running.table.find('c@b.example')], [[false, ''], undefined]);
  } finally {
    running.close();
  }
}));
