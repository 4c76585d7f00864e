/** The number that tells a process of a gateway from older ones, kept in a real folder. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { nextIncarnation, nextOrdinal } from '../../../src/gateway/incarnation.js';
import { ORDINAL_MAX } from '../../../src/gateway/message-ids.js';

function folder(t: { after(run: () => void): void }): string {
  const made = mkdtempSync(path.join(os.tmpdir(), 'twinpost-incarnation-'));
  t.after(() => { rmSync(made, { recursive: true }); });
  return made;
}

test('rises with the clock, and without it when the clock went back', (t) => {
  const dir = path.join(folder(t), 'made');
  assert.deepEqual(nextIncarnation(dir, 5000.5), { number: 5001, unkept: '' });
  assert.deepEqual(nextIncarnation(dir, 400), { number: 65001, unkept: '' });
  assert.equal(readFileSync(path.join(dir, 'incarnation'), 'utf8'), '65001\n');
  assert.deepEqual(nextIncarnation(undefined, 400), { number: 401, unkept: '' });
});

test('a process whose clock went back begins anew above what the stores told, and the next one is above that', (t) => {
  const dir = path.join(folder(t), 'made');
  assert.equal(nextIncarnation(dir, 400).number, 401);
  assert.equal(nextIncarnation(dir, 500, 9000).number, 69_000);
  assert.equal(nextIncarnation(dir, 500).number, 129_000);
  assert.equal(nextIncarnation(dir, 200_000, 8000).number, 200_001);
  assert.equal(nextIncarnation(undefined, 500, 9000).number, 69_000);
});

test('a file that holds no number counts for nothing', (t) => {
  const dir = folder(t);
  for (const text of ['', 'x', '-5', '99999999999999999999', '\u0000'.repeat(100)]) {
    writeFileSync(path.join(dir, 'incarnation'), text);
    assert.deepEqual(nextIncarnation(dir, 400), { number: 401, unkept: '' }, text);
  }
});

test('a folder that can not be written does not keep a gateway from its mail', (t) => {
  const file = path.join(folder(t), 'file');
  writeFileSync(file, '');
  const drawn = nextIncarnation(file, 400);
  assert.equal(drawn.number, 401);
  assert.notEqual(drawn.unkept, '');
});

const GROUP = ['gw-1', 'gw-2', 'gw-3'];

test('ordinals rise with each start, and those of a group have nothing in common, whatever the clocks do', (t) => {
  const base = folder(t);
  const drawn = GROUP.flatMap((id) => Array.from({ length: 5 }, () => nextOrdinal(path.join(base, id), id, [...GROUP].reverse(), () => 0.5)));
  assert.equal(new Set(drawn).size, drawn.length);
  for (let i = 1; i < 5; i++) assert.equal(drawn[i], (drawn[i - 1] ?? 0) + 64);
});

test('an ordinal is drawn at random where no file is, and stays below 2^24', (t) => {
  const file = path.join(folder(t), 'file');
  writeFileSync(file, '');
  for (const dir of [undefined, file]) {
    assert.equal(nextOrdinal(dir, 'gw-1', GROUP, () => 0), 64);
    assert.ok(nextOrdinal(dir, 'gw-3', GROUP, () => 0.999999999) <= ORDINAL_MAX);
    assert.notEqual(nextOrdinal(dir, 'gw-1', GROUP, () => 0.3), nextOrdinal(dir, 'gw-1', GROUP, () => 0.4));
  }
  const dir = folder(t);
  writeFileSync(path.join(dir, 'ordinal'), String(2 ** 18 - 1));
  assert.equal(nextOrdinal(dir, 'gw-2', GROUP, () => 0), 65, 'used up: anew');
});
