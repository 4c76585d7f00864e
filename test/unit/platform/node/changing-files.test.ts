/** What is read again when it changes: a bad file never replaces a good one, and each change is told once. */
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { FollowedFile, readText } from '../../../../src/platform/node/changing-files.js';
import { PasswordFiles } from '../../../../src/platform/node/password-files.js';
import { readSecretFile } from '../../../../src/platform/node/secret-file.js';
import { KeptLog } from '../../gateway/admin/kept-log.js';

const folder = mkdtempSync(join(tmpdir(), 'twinpost-followed-'));
after(() => { rmSync(folder, { recursive: true }); });

function readNumber(file: string): number {
  const text = readText(file);
  if (!/^\d+$/.test(text)) throw new Error(`'${file}' is no number`);
  return Number(text);
}

test('what can not be used leaves what was read before in force, until a good one comes', () => {
  const [file, beside] = [join(folder, 'number'), join(folder, 'beside')];
  assert.throws(() => new FollowedFile([file], () => readNumber(file)), /number' can't be read: ENOENT$/);
  writeFileSync(file, '7');
  let reads = 0;
  const followed = new FollowedFile([file, undefined, beside], () => {
    reads += 1;
    return readNumber(file);
  });
  const seen = (): unknown[] => [followed.look(), followed.current, followed.why, reads];
  assert.deepEqual(seen(), [false, 7, '', 1]);
  writeFileSync(file, 'half');
  assert.deepEqual(seen(), [true, 7, `'${file}' is no number`, 2]);
  assert.deepEqual(seen(), [false, 7, `'${file}' is no number`, 2]);
  rmSync(file);
  symlinkSync(file, file);
  assert.deepEqual(seen(), [true, 7, `'${file}' can't be read: ELOOP`, 3]);
  rmSync(file);
  writeFileSync(file, '123');
  assert.deepEqual(seen(), [true, 123, '', 4]);
  writeFileSync(beside, 'another of its files');
  assert.deepEqual(seen(), [true, 123, '', 5]);
});

test('a file that everybody may read is read anew when that has been mended, as its error says', () => {
  const file = join(folder, 'secret');
  writeFileSync(file, 'first', { mode: 0o600 });
  const followed = new FollowedFile([file], () => readSecretFile(file, 'a secret', 100));
  const seen = (): unknown[] => [followed.look(), followed.current, followed.why];
  chmodSync(file, 0o604);
  writeFileSync(file, 'second');
  assert.deepEqual(seen(), [true, 'first', `everybody on this machine may read or write '${file}': chmod o-rw`]);
  chmodSync(file, 0o600);
  assert.deepEqual([seen(), seen()], [[true, 'second', ''], [false, 'second', '']]);
});

test('a password that can not be used leaves the old one in force, and is told of once', () => {
  const [file, other] = [join(folder, 'password'), join(folder, 'other')];
  const log = new KeptLog();
  const stale: boolean[] = [];
  const passwords = new PasswordFiles({ log, onRead: (isStale) => { stale.push(isStale); } });
  const read = (of = file): string => {
    const found = passwords.read(of);
    return found.isFound ? found.password : found.why;
  };
  assert.match(read(), /ENOENT$/);
  for (const each of [file, other]) writeFileSync(each, 'first', { mode: 0o600 });
  assert.deepEqual([read(), read(other), stale], ['first', 'first', []]);
  writeFileSync(file, '');
  assert.deepEqual([read(), read()], ['first', 'first']);
  writeFileSync(other, 'another');
  assert.equal(read(other), 'another');
  writeFileSync(file, 'second');
  assert.deepEqual([read(), read()], ['second', 'second']);
  // One that is bad still counts when another one is read anew.
  assert.deepEqual(stale, [true, true, false]);
  assert.deepEqual(log.lines.map(({ level, fields }) => [level, fields['file']]), [['error', file], ['info', other], ['info', file]]);
});
