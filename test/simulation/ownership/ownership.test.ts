/**
 * The ownership world in CI: seeds that are always the same, a canary that shows that a run can be repeated,
 * and a few of the mutants. All of them: node dist/test/simulation/ownership/main.js --mutants
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { OWNERSHIP_MUTANTS, ownershipMisfits, tryOwnershipMutant } from './mutants.js';
import { simulateOwnership } from './simulate.js';

const SEEDS = 300;
/** What was found, and the seed: without what seeds draw apart, which came later. */
const FOUND: readonly (readonly [string, number])[] = [
  ['a record that was undone, with no copy left, keeps nobody from the one in the register', 2817],
  ['a copy that was filled is no member before a lease runs there', 931449],
  ['a register is put back while a copy is left that was not told of the newest record: no rule closes that', 930203],
  ['nor when all copies of the newest record were lost, and an older one is back', 382169],
  ['a person gives up the copies of the newest record, not of one that was put back', 382803],
  ['a register is not emptied while only a holder out of reach knows of the newest record', 307325],
  ['nor is it when another process of the same gateway starts beside that holder', 941339],
  ['who holds what was given up is ended, also when the change that deposes it comes late', 7520],
  ['a record without a copy, made late by a dead process and undone, is not doubled again', 347342],
  ['nor is it when nobody began anew before calm', 354799],
  ['a person gives up the source of a PARTIAL holder: a copy that had left is read, and repeats what was ended since', 655200829],
  ['the last source dies: what the copy that had left lacks is lost, by the limit that is named', 655202907],
  ['memory is given up while a change that records a filled copy is under way: that copy is not emptied', 913700553],
  ['a copy that had left is taken in when all others are gone, with what was refused since', 77000015],
  ['so it is by a successor', 77000016],
  ['who is to be moved away from a PARTIAL holder leaves no single copy behind', 271102177],
  ['a copy that has left and lacks changes is not read while a member that counts is silent', 273003315],
  ['who refused a term and takes it now is told records again', 273039606],
  ['a source dies before its history is read: the copy that had left is read', 281029908],
  ['but not while the source itself is back', 283001726],
  ['every member dies before a takeover that was sent is made: a person is asked, as the model says', 281002348],
  ['a partition is handed back when it is doubled', 283004337],
  ['who is recorded, was told so, and has no copy has lost it to a founding that came to nothing', 295019835],
  ['nor is it waited for by who takes over', 299000906],
  ['nobody reads on from a member that a change under way takes out', 295121339],
  ['who waits for a second copy in a hand-back goes on delivering', 297011598],
  ['who may deliver from what was given up is its holder, not one that was deposed and does not know it', 295122639],
  ['what was begun empty by an order is begun anew by another gateway: every store must answer again', 330007451],
  ['what was read is dropped when a person gives up its copies, also while the register is away', 360002122],
  ['who gives a partition away serves it until that is known, also while the register is away', 4030],
  ['a fence that a member has taken back is none, however late its holder hears of it', 380002955],
  ['what a deposed process that lives has filled keeps nobody from beginning anew', 420022790],
];
/** Likewise, with what seeds draw apart. */
const FOUND_SINCE: readonly (readonly [string, number])[] = [
  ['a boot that passed for gone, and is back with its file, holds no commit up', 470000043],
  ['a boot that is back is not put out for gone, being the last', 481000097],
  ['of a boot that is back it is known which fences were processed there', 470011087],
  ['what an order reads back repeats what was ended since, whatever a memory knows that the order deposes', 493000700],
  ['a disk that is found after the end of a partition is told of it', 902],
  ['what was begun anew is not of the line of an end that a late disk remembers', 7125],
  ['a record is put back whose stores were taken out since: its mail is found where it is', 650009911],
  ['who sees an end asks all stores: one has what it did not know', 750018296],
];
const MUTANTS_A_RUN = 3;
/** The first of them: those that take few seeds. */
const FIRST_MUTANT = 1;
/** What a run of SEEDS seeds must have met, or it shows little. */
const RARE = ['change unknown', 'M = {}', 'diverged member', 'PARTIAL source died', 'rollback', 'takeover',
  'handed back', 'copies given up', 'tail', 'fenced', 'register refuses', 'queue held', 'hold done', 'delete done',
  'expired', 'file found late', 'its file is damaged', 'its file is too large', 'configured', 'store taken out',
  'workers 1 to 2', 'workers 2 to 1', 'renamed', 'renamed back', 'an older id goes on', 'ended', 'ended, and told everywhere'];

describe('ownership of a partition, simulated', () => {
  test('the same seed gives the same run, another seed another one', () => {
    const [first, again, other] = [simulateOwnership(3), simulateOwnership(3), simulateOwnership(4)];
    assert.equal(first.traceHash, again.traceHash);
    assert.equal(first.accepted, again.accepted);
    assert.notEqual(first.traceHash, other.traceHash);
  });

  test('every property holds, and every rare transition is met', () => {
    const failures: string[] = [];
    const met = new Map<string, number>();
    for (let seed = 1; seed <= SEEDS; seed++) {
      const result = simulateOwnership(seed);
      if (result.failure !== '') failures.push(`seed ${String(seed)}: ${result.failure}`);
      for (const [name, count] of result.rare) met.set(name, (met.get(name) ?? 0) + count);
    }
    assert.deepEqual(failures, []);
    assert.deepEqual(RARE.filter((name) => !met.has(name)), []);
  });

  test('seeds that have found something hold', () => {
    for (const [what, seed] of FOUND) assert.equal(simulateOwnership(seed, { extras: false }).failure, '', what);
    for (const [what, seed] of FOUND_SINCE) assert.equal(simulateOwnership(seed).failure, '', what);
  });

  test('every mutant still fits the code', () => {
    assert.deepEqual(ownershipMisfits(), []);
  });

  const caught = OWNERSHIP_MUTANTS.filter(({ heldBy }) => heldBy === undefined);
  for (let i = 0; i < MUTANTS_A_RUN; i++) {
    const mutant = caught[FIRST_MUTANT + i];
    if (mutant === undefined) continue;
    test(`the world finds the mutant "${mutant.name}"`, () => {
      const verdict = tryOwnershipMutant(mutant);
      assert.ok(verdict.caught, verdict.text);
    });
  }
});
