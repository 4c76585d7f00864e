/**
 * The guarantees (docs/GUARANTEES.md) as checks on what happened in the scenario world. G1 is looked at when a 250 is
 * given, the rest when a run is over and quiet.
 */
import assert from 'node:assert/strict';
import { COMMITTED, NOTIFY_NEVER, NO_MEMORY, NO_REPLY, NOT_READY, REFUSED } from '../../src/gateway/mail-types.js';
import type { RecordedMember } from '../../src/protocol/partition-record.js';
import { copiesOf, hasEntry } from './inspect.js';
import type { Letter, Letters } from './letters.js';
import type { StoreNode } from './store-node.js';

/** G1: at the 250 every living member, as the register has it, of a partition with the message has it. */
export function checkCommitted(letter: Letter, stores: readonly StoreNode[], membersOf: (partition: string) => readonly RecordedMember[]): void {
  for (const name of letter.groups.keys()) {
    const copies = stores.flatMap((node) => (node.store === undefined ? [] : copiesOf(node.store).map((copy) => ({ node, copy }))));
    const holding = copies.filter(({ node, copy }) => node.store !== undefined && hasEntry(node.store, copy, letter.id));
    assert.ok(holding.length > 0, `G1: 250 for message ${String(letter.id)}, and no store has it in ${name}`);
    for (const partition of new Set(holding.map(({ copy }) => copy.partition))) {
      const members = membersOf(partition);
      assert.ok(members.length > 0, `G1: 250 for message ${String(letter.id)}, and ${partition} has no member`);
      for (const { storeId, bootId } of members) {
        const node = stores.find((one) => one.id === storeId);
        if (node?.store === undefined || node.bootId !== bootId) continue;
        const has = holding.some(({ node: holder, copy }) => holder === node && copy.partition === partition);
        assert.ok(has, `G1: 250 for message ${String(letter.id)}, but member ${storeId} of ${partition} lacks it`);
      }
    }
  }
}

/** G2: each recipient of an accepted message was delivered to, reported, or ended by rule. */
export function checkNoLoss(letters: Letters): void {
  for (const letter of letters.all) {
    if (letter.outcome !== COMMITTED) continue;
    for (const address of letter.addresses) {
      const known = letter.arrivals.has(address) || letter.ended.has(address) || letter.reports.has(`failure ${address}`);
      assert.ok(known, `G2: message ${String(letter.id)} to ${address} is lost`);
    }
  }
}

/** G3: of two messages in one queue, the one that had its 250 before the other was submitted is tried first. */
export function checkOrder(letters: Letters, name: string): void {
  const here = letters.all.filter((letter) => letter.outcome === COMMITTED && letter.firstAttempt.has(name));
  here.sort((a, b) => a.submittedAt - b.submittedAt);
  let latestAttempt = 0;
  let of = 0;
  // Among all that were settled before a submission, the latest first attempt must come before it.
  const settled = [...here].sort((a, b) => a.settledAt - b.settledAt);
  let next = 0;
  for (const letter of here) {
    for (let early = settled[next]; early !== undefined && early.settledAt < letter.submittedAt; early = settled[next]) {
      const attempt = early.firstAttempt.get(name) ?? 0;
      if (attempt > latestAttempt) {
        latestAttempt = attempt;
        of = early.id;
      }
      next += 1;
    }
    assert.ok((letter.firstAttempt.get(name) ?? 0) >= latestAttempt, `G3: in ${name} message ${String(letter.id)} was tried before ${String(of)}, which had its 250 earlier`);
  }
}

/** G3, strict: when a message is tried, everything that had its 250 before it was submitted is over. */
export function checkStrict(letters: Letters, tried: Letter, name: string): void {
  for (const earlier of letters.byId.values()) {
    if (earlier.outcome !== COMMITTED || earlier.settledAt > tried.submittedAt || !earlier.groups.has(name)) continue;
    assert.ok(earlier.isOver(name), `G3: in strict ${name} message ${String(tried.id)} is tried while ${String(earlier.id)} is not over`);
  }
}

/** G4: nothing arrives twice but what a fault may have repeated; no report comes twice. */
export function checkNoDuplicates(letters: Letters): void {
  for (const letter of letters.all) {
    for (const [address, count] of letter.arrivals) assert.ok(count === 1 || letter.mayRepeat, `G4: message ${String(letter.id)} arrived ${String(count)} times at ${address} without a fault`);
    for (const [key, ids] of letter.reports) assert.ok(ids.size === 1, `G4: ${String(ids.size)} reports "${key}" for message ${String(letter.id)}`);
  }
}

/** G9: what was refused never arrives. NO_REPLY promises nothing either way. */
export function checkRefused(letters: Letters): void {
  for (const letter of letters.all) {
    if (letter.outcome !== REFUSED && letter.outcome !== NO_MEMORY && letter.outcome !== NOT_READY) continue;
    assert.equal(letter.arrivals.size, 0, `G9: message ${String(letter.id)} was refused and arrived`);
  }
}

/** RFC 5321 4.5.5, RFC 3461 4.1: no report where one is forbidden. */
export function checkForbiddenReports(letters: Letters): void {
  for (const letter of letters.all) {
    const never = [...letter.groups.values()].flat().some((recipient) => (recipient.notify & NOTIFY_NEVER) !== 0);
    if (letter.reversePath === '' || never) assert.equal(letter.reports.size, 0, `message ${String(letter.id)} must not be reported`);
    if (letter.outcome !== COMMITTED && letter.outcome !== NO_REPLY && letter.outcome !== 0) assert.equal(letter.reports.size, 0);
  }
}

/** All that is judged at the end of a run. */
export function checkAll(letters: Letters, ordered: readonly string[]): void {
  checkNoLoss(letters);
  for (const name of ordered) checkOrder(letters, name);
  checkNoDuplicates(letters);
  checkRefused(letters);
  checkForbiddenReports(letters);
}
