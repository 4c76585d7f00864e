/**
 * A partition that is another's before it has come back whole (src/gateway/recovered/recovered-queues.ts): nothing of it is waited
 * for any more. Memory for what a recovery expects is made in large pieces, which show whether one is thought to go on.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { Group } from './group.js';
import { coreOf, hasQueue } from './inspect.js';
import type { Letter } from './letters.js';

const LETTERS = 600;
const LETTER_BYTES = 8000;
/** Of segments as the group's gateways have them. */
const SEGMENT_BYTES = 64 * 1024;
/** A sixteenth is one piece at most: the queue is expected in more than one. */
const MEMORY_BYTES = 32 * 1024 * 1024;

/** How large the piece of memory is that the letter's content lies in. */
function pieceBytes(group: Group, letter: Letter, name: string): number {
  const { registry, entries } = coreOf({ gateway: group.gateway('gw-1') });
  const mirror = registry.byName(name).at(-1);
  assert.ok(mirror !== undefined);
  const row = entries.table.index.find(letter.id, mirror.handle);
  assert.notEqual(row, 0, 'the letter is there');
  return entries.contents.segments.segmentOf(entries.table.slot.get(row)).buffer.byteLength;
}

/** The owner of large mail, and of a little of another queue, has died and starts again: the first block is there. */
function restarted(small: readonly string[]): { readonly group: Group; readonly letters: readonly Letter[] } {
  const group = Group.started({ stores: 2, queues: [{ name: 'q1' }, { name: 'q2' }], memoryBytes: { 'gw-1': MEMORY_BYTES }, littleBytes: MEMORY_BYTES });
  group.hops.script = () => 'defer';
  const letters = Array.from({ length: LETTERS }, () => group.submit('gw-1', ['q1'], undefined, LETTER_BYTES));
  for (const name of small) group.submit('gw-1', [name]);
  group.until(() => group.letters.count(COMMITTED) === LETTERS + small.length, 'the mail of the first process');
  group.gateway('gw-1').kill();
  group.gateway('gw-1').start();
  group.until(() => lengthOf(group, 'gw-1', 'q1') > 0, 'the first block');
  assert.ok(lengthOf(group, 'gw-1', 'q1') < LETTERS / 4, 'more is to come');
  return { group, letters };
}

function lengthOf(group: Group, id: string, name: string): number {
  return group.served(id, 'gw-1').find((one) => hasQueue(one, name))?.length ?? 0;
}

test('a recovery is over when its queue was taken over meanwhile: new mail gets memory as ever', () => {
  const { group } = restarted([]);
  group.cutOff('gw-1', true);
  group.gateway('gw-1').register?.cutOff();
  group.until(() => lengthOf(group, 'gw-2', 'q1') === LETTERS, 'the takeover');
  group.hops.dotMs = 0.2;
  group.hops.replyMs = 0.2;
  group.hops.script = () => 'accept';
  group.until(() => group.letters.delivered === LETTERS, 'the rescued deliveries');
  group.cutOff('gw-1', false);
  group.gateway('gw-1').register?.mend();
  group.until(() => group.gateway('gw-1').core?.accepting === true && lengthOf(group, 'gw-2', 'q1') === 0, 'its partitions, empty');
  group.hops.script = () => 'defer';
  const letter = group.submit('gw-1', ['q2']);
  group.until(() => letter.outcome === COMMITTED, 'new mail');
  assert.equal(pieceBytes(group, letter, 'q2'), SEGMENT_BYTES);
});

test('it is not over with the first of its queues: what comes behind that still lies in large pieces', () => {
  const { group, letters } = restarted(['q2']);
  assert.ok(group.log.lines.some(({ text, fields }) => text === 'a partition is back' && fields['partition'] === group.served('gw-1', 'gw-1').find((one) => hasQueue(one, 'q2'))?.name));
  group.until(() => lengthOf(group, 'gw-1', 'q1') === LETTERS, 'the rest');
  const [middle] = letters.slice(LETTERS / 2);
  assert.ok(middle !== undefined && pieceBytes(group, middle, 'q1') > SEGMENT_BYTES);
});
