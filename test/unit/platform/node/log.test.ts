import { describe, test, type TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { LogDestination } from '../../../../src/platform/node/log-destination.js';
import { SmallDisk } from '../../../process/small-disk.js';
import { NodeLog, harmless, logDestination } from '../../../../src/platform/node/log.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'twinpost-log-'));
process.on('exit', () => { fs.rmSync(folder, { recursive: true, force: true }); });

/** A named pipe with both ends open: what stdout is when another program reads it. */
function pipe(name: string): { reader: number; writer: number } {
  const file = path.join(folder, name);
  execFileSync('mkfifo', [file]);
  const reader = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  return { reader, writer: fs.openSync(file, fs.constants.O_WRONLY) };
}

function readAll(fd: number, enough: (text: string) => boolean): Promise<string> {
  const socket = new net.Socket({ fd, readable: true, writable: false });
  let text = '';
  return new Promise((resolve) => {
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString('utf8');
      if (enough(text)) {
        socket.destroy();
        resolve(text);
      }
    });
  });
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const endMs = performance.now() + 10_000;
  while (!holds()) {
    if (performance.now() > endMs) throw new Error(`not after 10 s: ${what}`);
    await new Promise((done) => { setTimeout(done, 5); });
  }
}

const LINE = `${'x'.repeat(99)}\n`;

describe('log destination', () => {
  test('goes on in a new file when its own was renamed; each line is whole, and in one of them', { timeout: 60_000 }, async () => {
    const file = path.join(folder, 'renamed');
    const destination = new LogDestination({ to: file });
    let written = 0;
    for (let round = 0; round < 5; round++) {
      for (let i = 0; i < 3_000; i++) destination.write(`${String(written++)} ${LINE}`);
      // The new file is gone on with when what was being written is.
      do await new Promise((done) => { setImmediate(done); });
      while (!await destination.isInPlace());
      fs.renameSync(file, `${file}.${String(round)}`);
      assert.equal(await destination.isInPlace(), false);
      await destination.reopen();
    }
    await destination.drain(10_000);
    assert.equal(await destination.isInPlace(), true);
    const texts = ['0', '1', '2', '3', '4'].map((round) => fs.readFileSync(`${file}.${round}`, 'utf8'));
    const last = fs.readFileSync(file, 'utf8');
    assert.ok(texts.every((text) => text.endsWith('\n')));
    const numbers = `${texts.join('')}${last}`.split('\n').slice(0, -1).map((line) => Number(line.slice(0, line.indexOf(' '))));
    assert.deepEqual(numbers, Array.from({ length: written }, (_none, i) => i));
  });

  test('that can not be opened anew is written on', async () => {
    const inner = path.join(folder, 'gone');
    fs.mkdirSync(inner);
    const destination = new LogDestination({ to: path.join(inner, 'log') });
    fs.renameSync(inner, `${inner}.old`);
    await assert.rejects(destination.reopen(), /ENOENT/);
    destination.write(LINE);
    await destination.drain(10_000);
    assert.equal(fs.readFileSync(path.join(`${inner}.old`, 'log'), 'utf8'), LINE);
  });

  test('a reader that stopped neither blocks the loop nor grows memory; drops are counted and told', { timeout: 20_000 }, async () => {
    const { reader, writer } = pipe('stopped');
    const bound = 256 * 1024;
    const destination = new LogDestination({
      to: writer,
      bufferedBytesMax: bound,
      lostLine: (lost, why) => `lost ${String(lost)} ${why}\n`,
    });
    const total = 20_000;
    let most = 0;
    for (let i = 0; i < total; i++) {
      destination.write(LINE);
      if (i % 100 === 0) {
        await new Promise((done) => { setImmediate(done); });
        most = Math.max(most, destination.bufferedBytes);
      }
    }
    assert.ok(most <= bound, `held ${String(most)}`);
    const { lost } = destination;
    assert.ok(lost > 10_000, 'a pipe takes 64 KiB, the bound the rest');
    const text = await readAll(reader, (so) => so.includes('lost ') && so.endsWith('\n') && destination.bufferedBytes === 0);
    const lines = text.split('\n');
    const told = lines.filter((line) => line.startsWith('lost ')).reduce((sum, line) => sum + Number(line.split(' ')[1]), 0);
    assert.equal(told, lost);
    assert.equal(lines.filter((line) => line === LINE.trimEnd()).length + lost, total);
    fs.closeSync(writer);
  });

  test('goes on after the reader is gone, and closes no descriptor', { timeout: 20_000 }, async () => {
    const { reader, writer } = pipe('gone');
    const destination = new LogDestination({ to: writer });
    fs.closeSync(reader);
    destination.write(LINE);
    await destination.drain(5_000);
    destination.write(LINE);
    await destination.drain(5_000);
    assert.equal(destination.lost, 2);
    assert.match(destination.failing, /nobody reads/);
    assert.equal(destination.bufferedBytes, 0);
    assert.ok(fs.fstatSync(writer).isFIFO(), 'the number is not free for the next connection');
    fs.closeSync(writer);
  });

  test('writes all lines of a turn to a file in order, and drain waits for them', async () => {
    const file = path.join(folder, 'file');
    const fd = fs.openSync(file, 'w');
    const destination = new LogDestination({ to: fd });
    let expected = '';
    for (let i = 0; i < 10_000; i++) {
      const line = `${String(i)} ä\n`;
      expected += line;
      destination.write(line);
    }
    await destination.drain(10_000);
    assert.equal(fs.readFileSync(file, 'utf8'), expected);
    assert.equal(destination.bufferedBytes, 0);
    fs.closeSync(fd);
  });

  test('the first line goes at once, those of the turns right behind it go together', async (t) => {
    const fd = fs.openSync(path.join(folder, 'gathered'), 'w');
    const destination = new LogDestination({ to: fd });
    const write = t.mock.method(fs, 'write');
    const turn = (): Promise<void> => new Promise((done) => { setImmediate(done); });
    destination.write('first\n');
    await turn();
    await turn();
    assert.equal(write.mock.callCount(), 1);
    const begun = performance.now();
    for (let i = 0; i < 200; i++) {
      destination.write(`${String(i)}\n`);
      await turn();
    }
    const batches = Math.ceil((performance.now() - begun) / 20) + 2;
    assert.ok(write.mock.callCount() <= batches, `${String(write.mock.callCount())} writes for 200 turns`);
    await destination.drain(10_000);
    assert.equal(fs.readFileSync(path.join(folder, 'gathered'), 'utf8').split('\n').length, 202);
    fs.closeSync(fd);
  });

  const disks = ['full', 'renamed', 'cut'].map(() => SmallDisk.mount(256));
  const noDisk = disks.includes(undefined) ? 'nobody may mount a disk here' : false;
  process.on('exit', () => { for (const disk of disks) disk?.unmount(); });
  /** What a reader finds: all lines whole. */
  const numbersOf = (text: string): readonly number[] => text.split('\n').slice(0, -1).filter((line) => !line.startsWith('lost '))
    .map((line) => { assert.match(line, /^\d+ x{99}$/); return Number.parseInt(line, 10); });

  test('a disk that is full keeps lines waiting as far as there is room; each one that is lost is counted, and told when there is room', { skip: noDisk, timeout: 30_000 }, async () => {
    const [disk] = disks;
    assert.ok(disk !== undefined);
    const file = path.join(disk.folder, 'full');
    const destination = new LogDestination({ to: file, bufferedBytesMax: 256 * 1024, lostLine: (lost, why) => `lost ${String(lost)} ${why}\n` });
    const total = 20_000;
    for (let i = 0; i < total; i++) {
      // Several lines at once, as the mail log hands them over.
      destination.write(`${String(i)} ${LINE}${String(++i)} ${LINE}`);
      if (i % 100 === 99) await new Promise((done) => { setImmediate(done); });
    }
    await until('it fails', () => destination.failing === 'ENOSPC');
    const { lost } = destination;
    assert.ok(lost > total / 2, `${String(lost)} lost`);
    assert.ok((destination.lostWallMs ?? 0) > Date.now() - 30_000);
    disk.resize(4096);
    await until('all is written', () => destination.bufferedBytes === 0);
    // The first may be lost before the disk is known to be full.
    const told = (): readonly string[] => fs.readFileSync(file, 'utf8').split('\n').filter((line) => line.startsWith('lost '));
    await until('the loss is told', () => told().reduce((sum, line) => sum + Number(line.split(' ')[1]), 0) === lost);
    const text = fs.readFileSync(file, 'utf8');
    assert.equal(numbersOf(text).length + lost, total);
    assert.match(told().at(-1) ?? '', / ENOSPC$/);
    assert.deepEqual([destination.failing, destination.lost], ['', lost]);
  });

  for (const way of ['renamed', 'cut'] as const) test(`a file on a full disk that is ${way} is gone on with at a whole line, and nothing is lost`, { skip: noDisk, timeout: 30_000 }, async () => {
    const disk = disks[way === 'renamed' ? 1 : 2];
    assert.ok(disk !== undefined);
    const file = path.join(disk.folder, way);
    const destination = new LogDestination({ to: file });
    const total = 5_000;
    for (let i = 0; i < total; i++) destination.write(`${String(i)} ${LINE}`);
    await until('it fails', () => destination.failing === 'ENOSPC');
    const before = fs.readFileSync(file, 'utf8');
    assert.doesNotMatch(before, /\n$/, 'a line is cut');
    disk.resize(4096);
    if (way === 'renamed') {
      fs.renameSync(file, `${file}.1`);
      await destination.reopen();
    } else fs.truncateSync(file);
    await until('all is written', () => destination.bufferedBytes === 0);
    const kept = before.slice(0, before.lastIndexOf('\n') + 1);
    assert.deepEqual(numbersOf(kept + fs.readFileSync(file, 'utf8')), Array.from({ length: total }, (_none, i) => i));
    assert.equal(destination.lost, 0);
  });

  /** Two processes that append to one file: the disk takes half of what the first one writes, and then no more of whom it is full for. */
  async function halved(t: TestContext, name: string, behind = ''): Promise<{ one: LogDestination; other: LogDestination; full: Set<string>; text: () => string }> {
    const file = path.join(folder, name);
    const full = new Set<string>();
    let isHalved = false;
    t.mock.method(fs, 'write', (fd: number, bytes: Buffer, at: number, length: number, _position: null, done: (error: Error | null, written: number) => void) => {
      const who = /[ab]/.exec(bytes.toString())?.[0] ?? '';
      setImmediate(() => {
        if (full.has(who)) {
          if (isHalved && who === 'a') fs.appendFileSync(file, behind);
          if (isHalved || who !== 'a') return done(Object.assign(new Error('full'), { code: 'ENOSPC' }), 0);
          isHalved = true;
          return done(null, fs.writeSync(fd, bytes, at, 15));
        }
        done(null, fs.writeSync(fd, bytes, at, length));
      });
    });
    const lostLine = (lost: number): string => `lost ${String(lost)}\n`;
    const [one, other] = [new LogDestination({ to: file, lostLine }), new LogDestination({ to: file, lostLine })];
    other.write('c0\n');
    assert.equal(await other.drain(5_000), 0);
    full.add('a').add('b');
    one.write('a1 ........\na2 ........\n');
    await until('half a line is there', () => one.failing === 'ENOSPC');
    assert.equal(fs.readFileSync(file, 'utf8'), `c0\na1 ........\na2 ${behind}`);
    return { one, other, full, text: () => fs.readFileSync(file, 'utf8') };
  }

  test('half a line at the end of a file that several write is gone on with where nothing stands behind it', async (t) => {
    const { one, full, text } = await halved(t, 'half-alone');
    full.clear();
    await until('all is written', () => one.bufferedBytes === 0);
    assert.equal(text(), 'c0\na1 ........\na2 ........\n');
  });

  test('half a line at the end of a file that several write takes no line of another one that failed too', async (t) => {
    const { one, other, full, text } = await halved(t, 'half-first');
    other.write('b1 ........\n');
    await until('both fail', () => other.failing === 'ENOSPC');
    full.delete('b');
    await until('the other one goes on first', () => other.bufferedBytes === 0);
    full.delete('a');
    await until('all is written', () => one.bufferedBytes === 0);
    assert.equal(text(), 'c0\na1 ........\na2 \nb1 ........\na2 ........\n', 'each is there whole');
    assert.deepEqual([one.lost, other.lost], [0, 0]);
  });

  test('a line that another one, which did not fail, has put right behind half a line is counted by whoever wrote the half', async (t) => {
    const { one, other, full, text } = await halved(t, 'half-glued');
    other.write('c1 ........\n');
    assert.equal(await other.drain(5_000), 0);
    full.clear();
    await until('the loss is told', () => text().includes('lost 1'));
    assert.equal(text(), 'c0\na1 ........\na2 c1 ........\na2 ........\nlost 1\n');
    assert.equal(one.lost, 1);
  });

  test('half a line that another one has written behind before the disk was known to be full is not gone on with', async (t) => {
    const { one, full, text } = await halved(t, 'half-behind', 'c1 ........\n');
    full.clear();
    await until('all is written', () => one.bufferedBytes === 0);
    assert.equal(text(), 'c0\na1 ........\na2 c1 ........\na2 ........\n');
  });

  test('last words go on with half a line only where nothing stands behind it', async (t) => {
    const { one, other, full, text } = await halved(t, 'half-dying');
    other.write('c1 ........\n');
    assert.equal(await other.drain(5_000), 0);
    full.clear();
    one.write('a3\n');
    one.flushNow();
    assert.equal(text(), 'c0\na1 ........\na2 c1 ........\na2 ........\na3\n');
  });

  test('half a line that a process before has left stays alone', async () => {
    const file = path.join(folder, 'left-half');
    fs.writeFileSync(file, 'a1 ........\na2 ');
    const destination = new LogDestination({ to: file });
    destination.write('b1\n');
    assert.equal(await destination.drain(5_000), 0);
    destination.write('b2\n');
    assert.equal(await destination.drain(5_000), 0);
    assert.equal(fs.readFileSync(file, 'utf8'), 'a1 ........\na2 \nb1\nb2\n');
  });

  test('a file of which nothing can be told ends no process: it is gone on with when it can be written, or opened anew', { timeout: 30_000 }, async (t) => {
    const file = path.join(folder, 'stale.log');
    const destination = new LogDestination({ to: file });
    const stale = (): NodeJS.ErrnoException => Object.assign(new Error('stale file handle'), { code: 'ESTALE' });
    const looks = t.mock.method(fs, 'fstatSync', () => { throw stale(); });
    const writes = t.mock.method(fs, 'write', (...given: unknown[]) => {
      setImmediate(given.at(-1) as (error: Error, written: number) => void, stale(), 0);
    });
    destination.write('one\n');
    await until('it fails twice', () => writes.mock.callCount() > 1 && destination.failing === 'ESTALE');
    assert.equal(await destination.isInPlace(), false);
    const closes = t.mock.method(fs, 'closeSync', () => { throw stale(); });
    writes.mock.restore();
    await destination.reopen();
    closes.mock.restore();
    destination.write('two\n');
    assert.equal(await destination.drain(5_000), 0);
    looks.mock.restore();
    assert.deepEqual([fs.readFileSync(file, 'utf8'), destination.failing, destination.lost], ['one\ntwo\n', '', 0]);
  });

  test('what can not be written before the end is told by its count; last words are tried from where it stopped', { skip: !fs.existsSync('/dev/full') }, async () => {
    const destination = new LogDestination({ to: '/dev/full' });
    for (let i = 0; i < 7; i++) destination.write(LINE);
    assert.equal(await destination.drain(200), 7);
    assert.equal(destination.failing, 'ENOSPC');
    destination.flushNow();
  });

  test('a dying process gets its waiting lines out at once', () => {
    const file = path.join(folder, 'dying');
    const fd = fs.openSync(file, 'w');
    const destination = new LogDestination({ to: fd });
    destination.write('last words\n');
    destination.flushNow();
    assert.equal(fs.readFileSync(file, 'utf8'), 'last words\n');
    fs.closeSync(fd);
  });

  test('the last words of a process reach its file beside a batch on its way', async () => {
    const file = path.join(folder, 'beside');
    const fd = fs.openSync(file, 'a');
    const destination = new LogDestination({ to: fd });
    destination.write('a line before\n');
    const written = destination.drain(10_000);
    destination.write('last words\n');
    destination.flushNow();
    assert.match(fs.readFileSync(file, 'utf8'), /last words\n/);
    await written;
    assert.deepEqual(fs.readFileSync(file, 'utf8').split('\n').sort(), ['', 'a line before', 'last words']);
    fs.closeSync(fd);
  });
});

describe('event log', () => {
  function logged(write: (log: NodeLog) => void): Promise<Record<string, unknown>[]> {
    const file = path.join(folder, `events-${String(Math.trunc(performance.now() * 1e6))}`);
    const fd = fs.openSync(file, 'w');
    const destination = logDestination(fd, 'gateway-1');
    write(new NodeLog({ level: 'info', name: 'gateway-1' }, destination));
    return destination.drain(10_000).then(() => {
      const lines = fs.readFileSync(file, 'utf8').trimEnd().split('\n');
      fs.closeSync(fd);
      return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Record<string, unknown>);
    });
  }

  test('one event a line with level, time, name, event, text and fields', async () => {
    const lines = await logged((log) => {
      log.debug('link', 'below the level');
      log.warn('link', 'path lost', { store: 'store-a', attempts: 3, ports: [1, 'two'], none: undefined });
    });
    assert.equal(lines.length, 1);
    const line = lines[0] ?? {};
    assert.equal(line['level'], 'warn');
    assert.equal(line['event'], 'link');
    assert.equal(line['msg'], 'path lost');
    assert.equal(line['name'], 'gateway-1');
    assert.equal(line['store'], 'store-a');
    assert.equal(line['attempts'], 3);
    assert.deepEqual(line['ports'], [1, 'two']);
    assert.equal('none' in line, false);
    assert.ok(!Number.isNaN(Date.parse(String(line['time']))));
  });

  test('hostile text stays one line and can neither drive a terminal nor reorder what is read', async () => {
    const hostile = 'a\r\nb\x1b[2J\x9b31m\u202eevil\u2028\x7f\ud800end';
    const lines = await logged((log) => { log.info('received', hostile, { helo: hostile, list: [hostile] }); });
    assert.equal(lines.length, 1);
    for (const text of [lines[0]?.['msg'], lines[0]?.['helo'], (lines[0]?.['list'] as string[])[0]]) {
      assert.equal(text, 'a\r\nb\x1b[2J\\u009b31m\\u202eevil\\u2028\\u007f\\ud800end');
    }
  });

  test('the raw line holds no control byte but its line end', async () => {
    const file = path.join(folder, 'raw');
    const fd = fs.openSync(file, 'w');
    const destination = logDestination(fd, 'g');
    let all = '';
    for (let code = 0; code < 0xa0; code++) all += String.fromCharCode(code);
    new NodeLog({ level: 'info', name: 'g' }, destination).info('received', all);
    await destination.drain(10_000);
    const text = fs.readFileSync(file, 'utf8');
    for (let i = 0; i < text.length - 1; i++) {
      const code = text.charCodeAt(i);
      assert.ok(code >= 0x20 && (code < 0x7f || code > 0x9f), `control ${String(code)}`);
    }
    fs.closeSync(fd);
  });

  test('a long value is cut', () => {
    assert.equal(harmless('y'.repeat(10_000)).length, 2_049);
    assert.equal(harmless('Grüße 😀'), 'Grüße 😀');
  });
});
