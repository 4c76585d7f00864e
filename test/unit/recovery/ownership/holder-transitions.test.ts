/**
 * The table in the header of src/recovery/ownership/holder.ts against the code: what it draws is what is valid;
 * in every state, by whatever two events and the time behind them, only what it draws happens; and all of that
 * does happen.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import type { PartitionRecord } from '../../../../src/protocol/partition-record.js';
import {
  HOLDER_STATE_NAMES, HolderState, isValidHolderTransition,
} from '../../../../src/recovery/ownership/holder.js';
import { DECLINED_LOWER, DECLINED_NO_COPY, DECLINED_OTHER_NONCE, DECLINED_STALE } from '../../../../src/protocol/reasons.js';
import { AT, OLDER, OTHER, SELF, Stage, foundingAfterGiveUp, recordOf } from './holder-stage.js';

const SOURCE = new URL('../../../../../src/recovery/ownership/holder.ts', import.meta.url);
const HOLDS = ['READING', 'HOLDER', 'HANDING_BACK'];
const HOLDS_OR_TAKES = ['FENCING', 'WAITING_OUT', ...HOLDS];
const STATES: readonly string[] = HOLDER_STATE_NAMES;
/** Behind two events: every wait of the machine is over by then. */
const TICKS = 45;

/** "FROM TO" of all arrows that the header draws. */
function drawn(): ReadonlySet<string> {
  const text = readFileSync(SOURCE, 'utf8').split('\n').map((line) => line.replace(/^ \* ?/, ''));
  const table = text.slice(1, text.findIndex((line) => line.startsWith('  state         what is waited for')));
  const pairs = new Set<string>();
  let from: readonly string[] = [];
  for (const line of table) {
    const begun = /^ {2}(?=[A-Za-z])(.*?) ─/.exec(line)?.[1];
    if (begun !== undefined) {
      if (begun.startsWith('any that holds or takes')) from = HOLDS_OR_TAKES;
      else if (begun.startsWith('any that holds')) from = HOLDS;
      else from = begun.split(/[ ,]+/).filter((word) => STATES.includes(word));
    }
    // Text before the first arrow of a line goes on from the line before.
    for (const part of line.split('─►').slice(1)) {
      const targets = (/^ [A-Z_]+(, or [A-Z_]+)?|^ the same, or [A-Z_]+/.exec(part)?.[0] ?? '')
        .split(/[ ,]+/).filter((word) => STATES.includes(word));
      for (const one of from) for (const to of targets) pairs.add(`${one} ${to}`);
      from = targets;
    }
  }
  return pairs;
}

type Setup = () => Stage;
type Event = (stage: Stage) => void;

function asking(): Stage {
  const stage = new Stage();
  stage.tick();
  return stage;
}

/** Of another gateway that lives, then dies. */
function idle(): Stage {
  const stage = new Stage();
  stage.answerRead('r1', recordOf(3, OTHER, 'a', 'b'), true);
  for (const storeId of ['a', 'b']) stage.asked(storeId, true, 1000);
  return stage;
}

function claiming(): Stage {
  const stage = new Stage();
  stage.answerRead('r1', recordOf(1, OLDER, 'a', 'b'));
  for (const storeId of stage.up.keys()) stage.asked(storeId, storeId !== 'c');
  stage.tick();
  return stage;
}

function founding(): Stage {
  const stage = new Stage();
  stage.answerRead('none', undefined);
  for (const storeId of stage.up.keys()) stage.asked(storeId, false);
  stage.tick();
  return stage;
}

function fencing(): Stage {
  const stage = claiming();
  stage.apply('r2');
  return stage;
}

function waitingOut(): Stage {
  const stage = fencing();
  fenced(stage, 1000);
  return stage;
}

function waitingOutFounded(): Stage {
  const stage = foundingAfterGiveUp();
  founded(stage);
  stage.tick();
  stage.apply('r2');
  return stage;
}

function reading(...stores: string[]): Stage {
  const stage = new Stage();
  stage.takeFrom(...stores);
  return stage;
}

function holding(): Stage {
  const stage = new Stage();
  stage.hold();
  return stage;
}

function handingBack(): Stage {
  const stage = holding();
  stage.holder.onRules(stage.rulesTicket, stage.nowMs);
  const { set } = stage.holder;
  for (const row of set?.rows ?? []) set?.onAcked(row, AT.number, stage.nowMs);
  stage.holder.handBack(OTHER, stage.nowMs);
  return stage;
}

function lost(): Stage {
  const stage = holding();
  stage.holder.onFenceNotice('a', 'b1', { number: 50, nonce: 1 }, stage.nowMs);
  return stage;
}

const SETUPS: readonly (readonly [number, Setup])[] = [
  [HolderState.IDLE, idle],
  [HolderState.ASKING, asking],
  [HolderState.FOUNDING, founding],
  [HolderState.FOUNDING, foundingAfterGiveUp],
  [HolderState.CLAIMING, claiming],
  [HolderState.FENCING, fencing],
  [HolderState.WAITING_OUT, waitingOut],
  [HolderState.WAITING_OUT, waitingOutFounded],
  [HolderState.READING, () => reading('a')],
  [HolderState.READING, () => reading('a', 'b')],
  [HolderState.HOLDER, holding],
  [HolderState.HANDING_BACK, handingBack],
  [HolderState.LOST, lost],
];

function recordNow({ holder }: Stage): PartitionRecord {
  return holder.record ?? recordOf(1, OLDER, 'a', 'b');
}

function fenced(stage: Stage, olderLeaseMs: number): void {
  const { term } = recordNow(stage);
  for (const storeId of ['a', 'b']) stage.holder.onFenced(storeId, 'b1', { term, at: AT, olderLeaseMs }, stage.nowMs);
}

function founded(stage: Stage): void {
  stage.tick();
  const term = stage.founds.at(-1)?.term ?? { number: 0, nonce: 0 };
  for (const storeId of ['a', 'b', 'c']) stage.holder.onFounded(storeId, 'b1', term);
}

function down(stage: Stage, ...stores: string[]): void {
  for (const storeId of stores) {
    stage.up.delete(storeId);
    stage.holder.onLinkDown(storeId, stage.nowMs);
  }
}

function inNewBoot(stage: Stage, ...stores: string[]): void {
  down(stage, ...stores);
  for (const storeId of stores) {
    stage.up.set(storeId, 'b2');
    stage.holder.onLinkUp(storeId, 'b2', stage.nowMs);
  }
}

/** The register's answer to what was asked last, if anything was. */
function answered(stage: Stage, revision: string, record: PartitionRecord | undefined, hasSession = false): void {
  stage.holder.onNews(stage.nowMs);
  stage.tick(8);
  const ticket = stage.reads.at(-1);
  if (ticket !== undefined) stage.holder.onRecord(ticket, { revision, record, hasSession }, stage.nowMs);
}

function refused(stage: Stage, reason: number): void {
  const term = { number: 60, nonce: 2 };
  stage.holder.onDeclined('a', 'b1', { reason, asked: recordNow(stage).term, term, told: undefined }, stage.nowMs);
}

/** What was sent last as a change of the record was made. */
function applied(stage: Stage): void {
  stage.tick();
  const change = stage.changes.at(-1);
  if (change !== undefined) stage.holder.onApplied(change.ticket, 'rx', stage.nowMs);
}

const EVENTS: Readonly<Record<string, Event>> = {
  'news': (stage) => { stage.holder.onNews(stage.nowMs); },
  'time': (stage) => { stage.tick(30); },
  'record: none': (stage) => { answered(stage, 'ra', undefined); },
  'record: another lives': (stage) => { answered(stage, 'rb', recordOf(70, OTHER, 'a', 'b'), true); },
  'record: another is dead': (stage) => { answered(stage, 'rc', recordOf(71, OTHER, 'a', 'b')); },
  'record: our name, new': (stage) => { answered(stage, 'rd', recordOf(72, SELF, 'a', 'b'), true); },
  'record: a process before us': (stage) => { answered(stage, 're', recordOf(73, OLDER, 'a', 'b')); },
  'record: an older one': (stage) => { answered(stage, 'rf', recordOf(1, OTHER, 'a')); },
  'change made': applied,
  'no answer': (stage) => { stage.holder.onNoAnswer(stage.changes.at(-1)?.ticket ?? 0, stage.nowMs); },
  'session tied': (stage) => { stage.holder.onSessionTied(1, 1); },
  'rules': (stage) => { stage.holder.onRules(1, stage.nowMs); },
  'a up': (stage) => {
    stage.up.set('a', 'b1');
    stage.holder.onLinkUp('a', 'b1', stage.nowMs);
  },
  'a down': (stage) => { down(stage, 'a'); },
  'a and b down': (stage) => { down(stage, 'a', 'b'); },
  'a and b down for long': (stage) => {
    down(stage, 'a', 'b');
    stage.tick(35);
  },
  'a in a new boot': (stage) => { inNewBoot(stage, 'a'); },
  'all in new boots': (stage) => { inNewBoot(stage, 'a', 'b', 'c'); },
  'asked: no lease': (stage) => { for (const storeId of ['a', 'b', 'c']) stage.asked(storeId, true); },
  'asked: no copy': (stage) => { for (const storeId of ['a', 'b', 'c']) stage.asked(storeId, false); },
  'asked: a lease': (stage) => { for (const storeId of ['a', 'b', 'c']) stage.asked(storeId, true, 1000); },
  'fenced, leases out': (stage) => { fenced(stage, 0); },
  'fenced, leases run': (stage) => { fenced(stage, 1000); },
  'founded': founded,
  'refused: lower': (stage) => { refused(stage, DECLINED_LOWER); },
  'refused: other nonce': (stage) => { refused(stage, DECLINED_OTHER_NONCE); },
  'refused: stale': (stage) => { refused(stage, DECLINED_STALE); },
  'refused: no copy': (stage) => { refused(stage, DECLINED_NO_COPY); },
  'fence notice': (stage) => { stage.holder.onFenceNotice('a', 'b1', { number: 80, nonce: 1 }, stage.nowMs); },
  'history read': (stage) => { stage.holder.onHistoryRead(stage.nowMs); },
  'all read': (stage) => { stage.holder.onReadComplete(stage.nowMs); },
  'quiet': (stage) => { stage.holder.onQuiet(stage.nowMs); stage.heard(); },
  'adopted': (stage) => { stage.holder.onAdopted({ storeId: 'a', bootId: 'b1' }, stage.nowMs); },
  'given up, gone': (stage) => { stage.holder.onGivenUpGone({ storeId: 'a', bootId: 'b1' }, stage.nowMs); },
  'hand back': (stage) => { stage.holder.handBack(OTHER, stage.nowMs); },
  'end': (stage) => { stage.holder.end(stage.nowMs); },
  'keep': (stage) => { stage.holder.keep(stage.nowMs); },
  'relocate': (stage) => { stage.holder.relocate('a'); },
  'give a up': (stage) => { stage.holder.giveUp(['a'], stage.nowMs); },
  'give all up': (stage) => { stage.holder.giveUp(['a', 'b', 'c'], stage.nowMs); },
};

/** "FROM TO" of what was traced. */
function transitions({ traced }: Stage): string[] {
  return traced.flatMap((event) => {
    const found = /^g1\/0 ([A-Z_]+) -> ([A-Z_]+):/.exec(event);
    return found === null ? [] : [`${found[1] ?? ''} ${found[2] ?? ''}`];
  });
}

describe('the states of a partition in a process', () => {
  const header = drawn();

  test('what the header draws is what is valid', () => {
    const valid = STATES.flatMap((from, i) => STATES.filter((_to, j) => isValidHolderTransition(i, j)).map((to) => `${from} ${to}`));
    assert.deepEqual([...header].sort(), valid.sort());
  });

  test('in each of them any two events, and the time behind them, lead where it draws, and everywhere there', () => {
    const met = new Set<string>();
    for (const [state, setup] of SETUPS) {
      for (const [first, one] of Object.entries(EVENTS)) {
        for (const [second, other] of Object.entries(EVENTS)) {
          const stage = setup();
          assert.equal(stage.state, state, `${HOLDER_STATE_NAMES[state] ?? ''} is set up`);
          const story = `${STATES[state] ?? ''}, ${first}, ${second}`;
          assert.doesNotThrow(() => {
            one(stage);
            other(stage);
            stage.tick(TICKS);
          }, story);
          for (const pair of transitions(stage)) {
            assert.ok(header.has(pair), `${story}: ${pair}`);
            met.add(pair);
          }
        }
      }
    }
    assert.deepEqual([...header].filter((pair) => !met.has(pair)), []);
  });
});
