/** How much of one turn of its loop the thread gives to DKIM. What signatures are worth is tested in check-line.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { readHeaderSection } from '../../../../../src/gateway/dkim/header-section.js';
import { CheckQuestions } from '../../../../../src/gateway/inbound/sender-checks/node/check-questions.js';
import { dkimVerdicts } from '../../../../../src/gateway/inbound/sender-checks/node/dkim-check.js';
import { latin1Text } from '../../../../../src/platform/node/latin1.js';
import { TurnShare } from '../../../../../src/platform/node/turn-share.js';
import { keysOf, withSignatures } from './zone.js';

const KEYS = keysOf('x.example');

function questions(): CheckQuestions {
  return new CheckQuestions((name, type) => {
    const records = [KEYS[`${type} ${name}`] ?? []].flat();
    return Promise.resolve({ kind: 'found', records, isAuthentic: false });
  });
}

/** Counts turns of the loop until `work` is done. */
async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  await work();
  isDone = true;
  return turns;
}

test('hashes 128 KiB a step, and does few steps of all messages in one turn', async (t) => {
  const message = Buffer.from(await withSignatures(`From: a@x.example\r\n\r\n${'a \r\n'.repeat(65_536)}`), 'latin1');
  const section = readHeaderSection([message], latin1Text);
  assert.ok(section !== undefined);
  // Each step takes all of a turn's share.
  let nowMs = 0;
  t.mock.method(performance, 'now', () => (nowMs += 6));
  const share = new TurnShare();
  const turns = await turnsOf(async () => {
    const both = await Promise.all([1, 2].map(() => dkimVerdicts(message, section, questions(), share)));
    assert.deepEqual(both.map((dkim) => dkim.map(({ result }) => result)), [['pass', 'pass'], ['pass', 'pass']]);
  });
  // Of each 256 KiB, and two signatures with their keys; the first step is done at once.
  assert.ok(turns >= 2 * (2 + 2 * 2) - 1, `${String(turns)} turns`);
});

test('hashes no more when its time is over', async (t) => {
  const message = Buffer.from(await withSignatures(`From: a@x.example\r\n\r\n${'a \r\n'.repeat(65_536)}`), 'latin1');
  const section = readHeaderSection([message], latin1Text);
  assert.ok(section !== undefined);
  let nowMs = 0;
  t.mock.method(performance, 'now', () => (nowMs += 6));
  const asked = questions();
  const verdicts = dkimVerdicts(message, section, asked, new TurnShare());
  asked.end();
  assert.deepEqual((await verdicts).map(({ reason }) => reason), ['not in time', 'not in time']);
});
