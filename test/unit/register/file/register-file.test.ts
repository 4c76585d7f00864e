/**
 * The file on disk: kept as a whole, checked, never put aside, one process at a time, and where it was made.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { crc32 } from '../../../../src/platform/node/checksum.js';
import { FileRegister, connectFileRegister } from '../../../../src/register/file/file-register.js';
import type { FileRegisterOptions } from '../../../../src/register/file/file-register.js';
import { RegisterFileError } from '../../../../src/register/file/register-file-error.js';
import { UNKNOWN_STARTS } from '../../../../src/register/ordinal-draw.js';
import { encodeIncarnation, encodeOrdinal } from '../../../../src/register/records.js';
import { Hand } from '../contract.js';
import { QUIET, RealWorld, makeFolder, removeFolder, until } from '../real-world.js';

const NOBODY = 65_534;
const SCRIPT = fileURLToPath(new URL('./keep-and-wait.js', import.meta.url));

async function inFolder(run: (stateDir: string) => Promise<void>): Promise<void> {
  const folder = makeFolder();
  try {
    await run(join(folder, 'state'));
  } finally {
    removeFolder(folder);
  }
}

const open = (stateDir: string, more: Partial<FileRegisterOptions> = {}): Promise<FileRegister> =>
  FileRegister.open({ stateDir, isServed: false, machine: 'm1', ...more }, { crc32, log: QUIET });

/** Opens, runs, and closes. */
async function withFile(
  stateDir: string,
  run: (hand: Hand, file: FileRegister) => Promise<void>,
  more: Partial<FileRegisterOptions> = {},
): Promise<void> {
  const file = await open(stateDir, more);
  const world = new RealWorld(() => file.client(), () => file.close());
  try {
    await run(new Hand(world), file);
  } finally {
    await world.stop();
  }
}

function rejectsWith(
  promise: Promise<unknown>,
  trouble: RegisterFileError['trouble'],
  text: RegExp,
): Promise<void> {
  return assert.rejects(
    promise,
    (error) => error instanceof RegisterFileError && error.trouble === trouble && text.test(error.message),
  );
}

test('what was settled is there at the next start, sessions and their keys too, and revisions go on', () =>
  inFolder(async (stateDir) => {
    let last = 0;
    await withFile(stateDir, async (hand) => {
      assert.equal(await hand.get('moved'), undefined);
      const lease = await hand.session(2_000);
      await hand.put('a', 'ä', 0, { session: lease.session });
      last = await hand.put('b', 'x');
    });
    assert.match(
      readFileSync(join(stateDir, 'register'), 'utf8'),
      /^twinpost-register 1 \d+ [0-9a-f]{8}\n\{"machine":"m1"/,
    );
    assert.equal(statSync(join(stateDir, 'register')).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(stateDir), ['register'], 'no lock, socket or temporary file is left');
    await withFile(stateDir, async (hand) => {
      assert.equal(await hand.get('moved'), undefined);
      const watcher = hand.watch('');
      await watcher.sees('snapshot a b');
      assert.equal(watcher.map.get('a'), 'ä');
      // Its whole time again: the process before may have told its holder of it.
      const startMs = performance.now();
      await watcher.sees('-a');
      assert.ok(performance.now() - startMs > 1_500, 'not before its time');
      assert.ok(await hand.put('c', 'x') > last);
    });
  }));

test('a file that is damaged, cut, strange or of a newer version is refused, named, and left as it was', () =>
  inFolder(async (stateDir) => {
    await withFile(stateDir, async (hand) => {
      await hand.put('a', 'x'.repeat(100));
    });
    const file = join(stateDir, 'register');
    const sound = readFileSync(file);
    const flipped = Buffer.from(sound);
    flipped[sound.length - 40] = (flipped[sound.length - 40] ?? 0) ^ 1;
    const cases:
      readonly (readonly [content: Buffer | string, trouble: RegisterFileError['trouble'], text: RegExp])[] =
        [
          [flipped, 'damaged', /register is damaged \(its checksum is wrong\).*move it away by hand/],
          [sound.subarray(0, sound.length - 1), 'damaged', /it has \d+ bytes of \d+/],
          ['', 'damaged', /its first line is not that of a register file/],
          ['hello\nworld\n', 'damaged', /first line/],
          [
            sound.toString().replace('twinpost-register 1 ', 'twinpost-register 2 '),
            'newer',
            /newer version of Twinpost \(format 2, this one reads 1\): start that version/,
          ],
        ];
    for (const [content, trouble, text] of cases) {
      writeFileSync(file, content);
      await rejectsWith(open(stateDir), trouble, text);
      assert.deepEqual(readFileSync(file), Buffer.from(content), 'left as it was');
      assert.deepEqual(readdirSync(stateDir), ['register']);
    }
    // Every cut and a flip of any bit is found.
    for (let at = 0; at < sound.length; at++) {
      const broken = Buffer.from(sound);
      broken[at] = (broken[at] ?? 0) ^ (1 << (at % 8));
      writeFileSync(file, broken);
      await assert.rejects(open(stateDir), RegisterFileError, `byte ${String(at)}`);
    }
    writeFileSync(file, sound);
    await withFile(stateDir, async (hand) => {
      assert.ok(await hand.get('a') !== undefined);
    });
  }));

/** Runs as a user without rights: root may read everything. */
async function asNobody(folder: string, run: () => Promise<void>): Promise<void> {
  if (process.getuid?.() !== 0) return run();
  for (
    const name of [
      folder,
      ...readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((each) => join(folder, each)),
    ]
  ) {
    chownSync(name, NOBODY, NOBODY);
  }
  process.seteuid?.(NOBODY);
  try {
    await run();
  } finally {
    process.seteuid?.(0);
  }
}

test('a file that the system does not let us read is refused with what to do, not made anew', () =>
  inFolder(async (stateDir) => {
    await withFile(stateDir, async (hand) => {
      await hand.put('a', 'x');
    });
    const file = join(stateDir, 'register');
    chmodSync(file, 0o000);
    await asNobody(
      join(stateDir, '..'),
      () => rejectsWith(open(stateDir), 'unreadable', /EACCES: give this user the right/),
    );
    chmodSync(file, 0o600);
    assert.deepEqual(readdirSync(stateDir), ['register']);
    await withFile(stateDir, async (hand) => {
      assert.ok(await hand.get('a') !== undefined);
    });
  }));

test('what is no file, or no folder, is refused with what to do', () =>
  inFolder(async (stateDir) => {
    mkdirSync(join(stateDir, 'register'), { recursive: true });
    await rejectsWith(
      open(stateDir),
      'unreadable',
      /register can't be read: EISDIR: give this user the right/,
    );
    rmSync(stateDir, { recursive: true });
    writeFileSync(stateDir, '');
    await rejectsWith(open(stateDir), 'unreadable', /ENOTDIR/);
  }));

test('a crash while a state is being written leaves the one before', () =>
  inFolder(async (stateDir) => {
    await withFile(stateDir, async (hand) => {
      await hand.put('a', 'x');
    });
    writeFileSync(join(stateDir, 'register.tmp'), 'half a sta');
    await withFile(stateDir, async (hand) => {
      assert.equal((await hand.get('a'))?.value, 'x');
      await hand.put('b', 'x');
    });
  }));

test('a disk that takes nothing refuses writes, reading goes on, and it mends by itself', () =>
  inFolder(async (stateDir) => {
    await withFile(stateDir, async (hand) => {
      const first = await hand.put('a', 'x');
      const temporary = join(stateDir, 'register.tmp');
      mkdirSync(temporary);
      const outcome = await hand.one({ key: 'a', value: 'y', ifRevision: first });
      assert.ok(
        outcome.kind === 'refused' && outcome.reason === 'away'
          && /register can't be written: EISDIR: look at the disk of state_dir/.test(outcome.why),
        JSON.stringify(outcome),
      );
      assert.equal((await hand.get('a'))?.value, 'x');
      rmSync(temporary, { recursive: true });
      await hand.put('a', 'y', first);
    });
  }));

test('a failure past the rename is unknown, and nothing is read until the state is known to be kept', () =>
  inFolder(async (stateDir) => {
    await withFile(stateDir, async (hand) => {
      const first = await hand.put('a', 'x');
      const watcher = hand.watch('');
      await watcher.sees('snapshot a');
      // The rename fails: a folder stands in its place.
      const file = join(stateDir, 'register');
      renameSync(file, `${file}.aside`);
      mkdirSync(join(file, 'x'), { recursive: true });
      const outcome = await hand.one({ key: 'a', value: 'y', ifRevision: first });
      assert.equal(outcome.kind, 'unknown');
      assert.equal((await hand.read({ key: 'a' })).kind, 'unreachable');
      assert.equal((await hand.one({ key: 'b', value: 'x', ifRevision: 0 })).kind, 'refused');
      assert.deepEqual(watcher.news, [], 'what may not last is not told');
      rmSync(file, { recursive: true });
      await watcher.sees('a=y');
      assert.equal((await hand.get('a'))?.value, 'y');
    });
  }));

/** Why the records so far are doubted; '' when they are not. */
async function movedWhy(hand: Hand): Promise<string> {
  const entry = await hand.get('moved');
  return entry === undefined ? '' : (JSON.parse(entry.value) as { readonly why: string; }).why;
}

test('a file of another machine, or a copy of the folder, says so above all its records, and passes numbers over', () =>
  inFolder(async (stateDir) => {
    const ordinal = encodeOrdinal({ next: 8 });
    const incarnation = encodeIncarnation({ incarnation: 5, ordinal: 7 });
    await withFile(stateDir, async (hand) => {
      await hand.put('partitions/gw-1/0', 'x');
      await hand.put('ordinal', ordinal);
      await hand.put('incarnations/gw-1', incarnation);
    });
    const copy = `${stateDir}-copy`;
    cpSync(stateDir, copy, { recursive: true });
    const numbers = async (hand: Hand): Promise<(string | undefined)[]> =>
      [(await hand.get('ordinal'))?.value, (await hand.get('incarnations/gw-1'))?.value];
    for (const why of ['it was made on another machine', '']) {
      await withFile(stateDir, async (hand) => {
        assert.equal(await movedWhy(hand), 'it was made on another machine');
        const [record, moved] = [await hand.get('partitions/gw-1/0'), await hand.get('moved')];
        assert.equal(record?.value, 'x');
        assert.ok(record.revision < (moved?.revision ?? 0));
        assert.deepEqual(await numbers(hand), [
          encodeOrdinal({ next: 8 + 2 * UNKNOWN_STARTS }),
          encodeIncarnation({ incarnation: 5 + UNKNOWN_STARTS, ordinal: 7 }),
        ], 'once');
        // Nothing was kept of it before there was a change.
        if (why !== '') assert.ok(await hand.put('b', 'x') > (moved?.revision ?? 0));
      }, { machine: 'm2' });
    }
    await withFile(copy, async (hand) => {
      assert.equal(await movedWhy(hand), 'it was made in another folder, of which this is a copy');
    });
    // A machine that does not tell its id is taken for the same; a folder that was renamed is the same.
    const own = join(stateDir, '..', 'own');
    await withFile(own, async (hand) => {
      await hand.put('a', 'x');
    });
    renameSync(own, `${own}-renamed`);
    await withFile(`${own}-renamed`, async (hand) => {
      assert.equal(await movedWhy(hand), '');
    }, { machine: '' });
  }));

/** Another process that keeps the file and waits. */
async function keepElsewhere(stateDir: string): Promise<{ kill(): Promise<void>; }> {
  const child = spawn(process.execPath, [SCRIPT, stateDir], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return {
    kill: async () => {
      child.kill('SIGKILL');
      await once(child, 'close');
    },
  };
}

test('a second process is refused while the first one lives, and served at once when that was killed', () =>
  inFolder(async (stateDir) => {
    const first = await keepElsewhere(stateDir);
    await rejectsWith(
      open(stateDir),
      'in use',
      /in use by process \d+ .*two gateways can't share one state_dir/,
    );
    // Over the socket it may be asked.
    const world = new RealWorld(() => connectFileRegister(stateDir, QUIET), () => Promise.resolve());
    const hand = new Hand(world);
    await hand.put('a', 'x');
    const watcher = hand.watch('');
    await watcher.sees('snapshot a');
    const lease = await hand.session(3_000);
    await hand.put('s', 'x', 0, { session: lease.session });
    await watcher.sees('s=x');
    await first.kill();
    const startMs = performance.now();
    const again = await open(stateDir, { isServed: true });
    assert.ok(performance.now() - startMs < 2_000);
    // Its clients come back, with their session.
    await watcher.sees('away', 'snapshot a s');
    assert.equal(lease.lost, '');
    await until(() => lease.session.validUntilMs > performance.now() + 1_500, 'the session goes on');
    await world.stop();
    await again.close();
  }));

test('a lock whose owner can not be judged is taken only when nobody has touched it for a while', () =>
  inFolder(async (stateDir) => {
    mkdirSync(stateDir, { recursive: true });
    const lock = join(stateDir, 'register.lock');
    writeFileSync(
      lock,
      '{"pid":1,"startTime":"1","bootId":"of another machine","pidNamespace":"pid:[1]","machine":"m9"}',
    );
    const touching = setInterval(() => {
      utimesSync(lock, new Date(), new Date());
    }, 100);
    await rejectsWith(open(stateDir, { untouchedMs: 2_000 }), 'in use', /in use by process 1/);
    clearInterval(touching);
    await withFile(stateDir, async (hand) => {
      await hand.put('a', 'x');
    }, { untouchedMs: 1_000 });
    // The same machine in an earlier boot: gone for sure.
    writeFileSync(
      lock,
      '{"pid":1,"startTime":"1","bootId":"the boot before","pidNamespace":"pid:[1]","machine":"m1"}',
    );
    await withFile(stateDir, async (hand) => {
      await hand.put('b', 'x');
    }, { untouchedMs: 60_000 });
  }));

test('a process whose lock another one has taken gives the register up and writes nothing more', () =>
  inFolder(async (stateDir) => {
    await withFile(stateDir, async (hand) => {
      const first = await hand.put('a', 'x');
      const before = readFileSync(join(stateDir, 'register'));
      const lock = join(stateDir, 'register.lock');
      renameSync(lock, `${lock}.aside`);
      writeFileSync(lock, 'of another');
      const outcome = await hand.one({ key: 'a', value: 'y', ifRevision: first });
      assert.ok(
        outcome.kind === 'refused' && /another process has taken the register file/.test(outcome.why),
      );
      assert.deepEqual(readFileSync(join(stateDir, 'register')), before);
      await until(() => !hand.register.state.isUp, 'it is away');
      assert.equal((await hand.read({ key: 'a' })).kind, 'unreachable');
    });
    assert.ok(existsSync(join(stateDir, 'register.lock')), 'the lock of the other is left');
  }));

test('a socket name that is too long is told', () =>
  inFolder(async (stateDir) => {
    await assert.rejects(
      open(join(stateDir, 'x'.repeat(100)), { isServed: true }),
      /has a name of \d+ bytes, the system takes 107: choose a shorter state_dir/,
    );
    assert.equal(existsSync(join(stateDir, 'x'.repeat(100), 'register.lock')), false, 'nothing is held');
  }));

test('a truncated file is refused at every length', () =>
  inFolder(async (stateDir) => {
    await withFile(stateDir, async (hand) => {
      await hand.put('a', 'x');
    });
    const file = join(stateDir, 'register');
    for (let length = statSync(file).size - 1; length >= 0; length -= 7) {
      truncateSync(file, length);
      await rejectsWith(open(stateDir), 'damaged', /damaged/);
    }
  }));
