/**
 * Which process made a copy what it is, and what of that a claim hides, and from whom.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CopyWriter } from '../../../../src/kvs/core/copy-writer.js';

const OWNER = { id: 'gw-1', incarnation: 10 };
const NEXT = { id: 'gw-1', incarnation: 20 };
const RESCUER = { id: 'gw-2', incarnation: 10 };
const THIRD = { id: 'gw-3', incarnation: 10 };

/** Of a member's copy. */
function toldTo(writer: CopyWriter, ...processes: readonly (typeof OWNER)[]): string[] {
  return processes.map((process) => {
    const { gatewayId, incarnation } = writer.toldTo(process, true);
    return gatewayId === '' ? '' : `${gatewayId}/${String(incarnation)}`;
  });
}

function written(): CopyWriter {
  const writer = new CopyWriter();
  assert.deepEqual(toldTo(writer, OWNER), [''], 'unknown at first');
  writer.write(OWNER);
  return writer;
}

test('who wrote last is told to all; a claim of its own hides nothing', () => {
  const writer = written();
  writer.claimed(OWNER, 10);
  assert.deepEqual(toldTo(writer, OWNER, NEXT, RESCUER), ['gw-1/10', 'gw-1/10', 'gw-1/10']);
  writer.write(NEXT);
  assert.deepEqual(toldTo(writer, OWNER, NEXT, RESCUER), ['gw-1/20', 'gw-1/20', 'gw-1/20']);
});

test('a claim of another process hides it from all but that one, also when that is the next process of the same gateway', () => {
  for (const claimant of [RESCUER, NEXT]) {
    const writer = written();
    writer.claimed(claimant, 30);
    assert.deepEqual(toldTo(writer, OWNER, THIRD, claimant), ['', '', 'gw-1/10']);
    writer.claimed(THIRD, 31);
    assert.deepEqual(toldTo(writer, OWNER, THIRD, claimant), ['', '', ''], 'nor to that one when it was not the first');
    assert.deepEqual(writer.toldTo(OWNER, false), { gatewayId: 'gw-1', incarnation: 10 }, 'who fills a copy that is no member is told');
    writer.write(THIRD);
    assert.deepEqual(toldTo(writer, OWNER, THIRD, claimant), ['gw-3/10', 'gw-3/10', 'gw-3/10']);
  }
});

test('released as unused the claim leaves no trace, however often it is made; of the claims before it nothing is forgotten', () => {
  const writer = written();
  for (let n = 0; n < 2; n++) {
    writer.claimed(RESCUER, 30);
    writer.claimed(RESCUER, 30);
    writer.releasedUnused(RESCUER, 30);
    assert.deepEqual(toldTo(writer, THIRD), ['gw-1/10']);
  }
  writer.claimed(RESCUER, 31);
  writer.claimed(THIRD, 32);
  writer.releasedUnused(THIRD, 32);
  assert.deepEqual(toldTo(writer, OWNER, THIRD, RESCUER), ['', '', '']);
});

test('only the process whose claim it is says that it was unused', () => {
  for (const [process, token] of [[RESCUER, 29], [THIRD, 30], [{ id: 'gw-2', incarnation: 11 }, 30]] as const) {
    const writer = written();
    writer.claimed(RESCUER, 30);
    writer.releasedUnused(process, token);
    assert.deepEqual(toldTo(writer, OWNER), ['']);
  }
});
