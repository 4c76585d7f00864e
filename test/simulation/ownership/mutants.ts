/**
 * Mutants of the ownership rules: each rule removed once, as a textual patch on the built JavaScript. Those of PART,
 * STORE and HOLDINGS are patches of this world's own stand-ins, and show that it would see the rule broken; the production code of the
 * same rule (store.ts, commit-point.ts, holding.ts, spill) is patched in ../mutants.ts. The world runs
 * on a patched copy of the build and must find a broken property within SEEDS seeds. A patch that does not fit its
 * file in exactly one place fails, too.
 *
 * Not here, since they can't be taken out alone: "members after the wait" (there is no set before reading begins),
 * "fence first" (a store lets itself be read only under the term that it was fenced with), and comparing the
 * revision, which is the register's own part. Not met by these seeds, and held by unit tests of the fence alone: an
 * equal number with another nonce, and a file that carries no terms.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { BUILD, judgeByTest, patch, type Patch } from '../patched-build.js';
import { simulateOwnership } from './simulate.js';

export interface OwnershipMutant extends Patch {
  /** The rule of docs/model that it removes. */
  readonly rule: string;
  readonly name: string;
  readonly also?: readonly Patch[];
  /** What it needs is drawn apart: the other seeds are not tried. */
  readonly isApart?: true;
  /** Where SEEDS seeds do not meet what it needs: a test that fails without the rule, and is run instead. */
  readonly heldBy?: string;
}

const SEEDS = 800;
const SET = 'src/recovery/ownership/partition-set.js';
const HOLDER = 'src/recovery/ownership/holder.js';
const FOUNDING = 'src/recovery/ownership/founding.js';
const KNOWN = 'src/recovery/ownership/known-records.js';
const ANSWERS = 'src/recovery/ownership/store-answers.js';
const GIVEN_UP = 'src/recovery/ownership/given-up-copies.js';
const OUTSIDE = 'src/recovery/ownership/outside-copies.js';
const RECORDS = 'src/recovery/ownership/possible-records.js';
const LEASE = 'src/recovery/ownership/link-lease.js';
const FENCE = 'src/kvs/core/ownership/partition-fence.js';
const LEASES = 'src/kvs/core/ownership/process-leases.js';
const TALK_TEST = 'test/unit/recovery/ownership/register-talk.test.ts';
const STORE_TEST = 'test/unit/kvs/core/ownership.test.ts';
const FENCE_TEST = 'test/unit/kvs/core/ownership/partition-fence.test.ts';
const HOLDER_TEST = 'test/unit/recovery/ownership/holder.test.ts';
const LEASE_TEST = 'test/unit/recovery/ownership/link-lease.test.ts';
const SET_TEST = 'test/unit/recovery/ownership/partition-set.test.ts';
const DISKS_TEST = 'test/scenario/late-disks.test.ts';
const ADOPTED_TEST = 'test/scenario/adopted.test.ts';
const PART = 'test/simulation/ownership/sim-process.js';
const STORE = 'test/simulation/ownership/sim-store.js';
const HOLDINGS = 'test/simulation/ownership/sim-holdings.js';
const ENDED = 'src/gateway/ownership/ended-partitions.js';
const ORPHANS = 'src/gateway/ownership/orphans.js';
const RECORD_TEST = 'test/unit/protocol/partition-record.test.ts';
const ORPHANS_TEST = 'test/scenario/orphans.test.ts';
const UNRECORDED_TEST = 'test/unit/gateway/ownership/unrecorded.test.ts';

export const OWNERSHIP_MUTANTS: readonly OwnershipMutant[] = [
  { rule: '1', name: 'own name without its term', file: HOLDER,
    old: '!isSameHolder(record.holder, this.#options.self) || !isSameTerm(record.term, own.term)',
    new: '!isSameHolder(record.holder, this.#options.self)' },
  { rule: '1', name: 'a claim is known by its name', file: HOLDER,
    old: 'isSameTerm(record.term, claim.record.term) && isSameHolder(record.holder, this.#options.self)',
    new: '(claim.isFounding || record.members.length >= 0)' },
  { rule: '1', name: 'a member counted in another boot', file: 'src/protocol/partition-record.js',
    old: 'member.storeId === storeId && member.bootId === bootId', new: 'member.storeId === storeId' },
  { rule: '2', name: 'an unmoved revision read as "not applied"', file: HOLDER,
    old: 'if (before !== undefined && stamped.revision === before.revision)\n            return;',
    new: '' },
  { rule: '2, 3', name: 'commit by the last known record only', file: SET,
    old: 'if (row !== undefined && row.acked < least)', new: 'if (row !== undefined && row.isRecorded && row.acked < least)' },
  { rule: '3', name: 'commit after the first member', file: SET,
    old: 'if (least === Infinity)', new: 'least = counted.length === 0 ? Infinity : Math.max(...counted.map((row) => row.acked));\n        if (least === Infinity)' },
  { rule: '3', name: 'commits with fewer than min_replicas possible', file: SET,
    old: 'this.records.fewestMembers >= Math.max(1, this.#options.minReplicas);', new: 'true;' },
  { rule: '3', name: 'min_replicas by the last known record only', file: SET,
    old: 'this.records.fewestMembers >=', new: 'this.records.known.members.length >=' },
  { rule: '4', name: 'joins before it has everything committed', file: SET,
    old: 'if (!row.isInStep || row.isGone || row.isUnwanted || !row.isLeased(nowMs))', new: 'if (row.isGone || row.isUnwanted || row.state === 0)',
    also: [{ file: SET, old: 'return row.acked >= this.#ackedByAll;', new: 'return true;' }] },
  { rule: '5', name: 'dropped before the change is known', file: RECORDS,
    old: 'if (isMemberOf(this.#known.members, storeId, bootId))', new: 'if (this.#sent.length === 0 && isMemberOf(this.#known.members, storeId, bootId))' },
  { rule: '6', name: 'a lease at one member is enough', file: SET,
    old: 'for (const row of this.#counted)\n            if (!row.isLeased(nowMs))\n                return false;\n        return true;',
    new: 'return this.#counted.length === 0 || this.#counted.some((row) => row.isLeased(nowMs));' },
  { rule: '6', name: 'the right by the last known record only', heldBy: SET_TEST, file: SET,
    old: 'for (const row of this.#counted)\n            if (!row.isLeased(nowMs))', new: 'for (const row of this.#counted)\n            if (row.isRecorded && !row.isLeased(nowMs))' },
  { rule: '6', name: 'a lease reckoned from its answer', file: LEASE,
    old: 'const endsMs = sentMs + leaseMs -', new: 'const endsMs = sentMs + 1500 + leaseMs -' },
  { rule: '6', name: 'an answer does not count fences', file: LEASES,
    old: 'row.fences.push({ count: row.fenceCount, partition, term });', new: 'row.fenceCount -= 1;' },
  { rule: '6', name: 'fences of another boot are confirmed', heldBy: LEASE_TEST, file: LEASE,
    old: 'return bootId === this.#bootId ? this.#fencesProcessed : this.#earlier.get(bootId) ?? 0;', new: 'return this.#fencesProcessed;' },
  { rule: '6', name: 'of a boot that is back it is not known what was processed', heldBy: LEASE_TEST, file: LEASE,
    old: 'this.#fencesProcessed = this.#earlier.get(bootId) ?? 0;', new: 'this.#fencesProcessed = 0;' },
  { rule: '10', name: 'fenced by a founder where it adds a member, it forgets', heldBy: HOLDER_TEST, file: HOLDER,
    old: '(row === undefined || row.isRecorded)', new: 'true',
    also: [{ file: HOLDER, old: 'storeId, bootId) : row.isRecorded)', new: 'storeId, bootId) : row.isPossible)' }] },
  { rule: '6', name: 'a lease counts where our term was not processed', heldBy: SET_TEST, file: 'src/recovery/ownership/member.js',
    old: 'return this.isFenced && this.lease.bootId', new: 'return this.lease.bootId' },
  { rule: '6, 7', name: 'delivers with no member and no session', heldBy: SET_TEST, file: SET,
    old: 'return !this.#isEmptyPossible || nowMs < sessionEndsMs;', new: 'return true;' },
  { rule: '7', name: 'a session that was not tied to the record', file: HOLDER,
    old: 'return id === this.#tiedSession ? endsMs : -Infinity;', new: 'return endsMs;' },
  { rule: '7', name: 'a rescuer takes a record without members', file: HOLDER,
    old: 'const isOut = record.members.some(', new: 'const isOut = record.members.length === 0 || record.members.some(',
    also: [{ file: HOLDER, old: 'if (mayTake)\n            this.#takeOnceHeard(', new: 'if (mayTake && record.members.length === 0)\n            this.#found({ isLoss: true, gaveUp: [], left: [], line: [], unlessSessionOf: undefined }, nowMs);\n        else if (mayTake)\n            this.#takeOnceHeard(' }] },
  { rule: '7', name: 'a memory is given up while its session lives', file: HOLDER,
    old: 'const unlessSessionOf = isMemoryAtStake && isOther ? record.holder : undefined;', new: 'const unlessSessionOf = undefined;' },
  { rule: '7', name: 'who has lost its own copies waits for its own session to end', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'isMemoryAtStake && isOther ? record.holder', new: 'isMemoryAtStake ? record.holder' },
  { rule: '7', name: 'a member that a founding has emptied is read', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'if (isFoundedApart(answer.at, record) || answer.at.number < 0) {', new: 'if (nowMs < 0) {' },
  { rule: '7', name: 'a member that somebody began to fill is read', heldBy: HOLDER_TEST, file: HOLDER,
    old: ' || answer.at.number < 0) {', new: ') {' },
  { rule: '12', name: 'who is named waits for a member that has no copy', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'else if (!record.members.some((member) => this.#hasSpoken(member)))', new: 'else if (!this.#someMemberAnswered())' },
  { rule: '12', name: 'who knows the holder dead waits for a member that has no copy', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'else if (record.members.some((member) => this.#hasSpoken(member)))', new: 'else if (this.#someMemberAnswered())' },
  { rule: '16', name: 'a copy that left is founded over when every member is gone', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'return (record?.left ?? NO_MEMBERS).filter(', new: 'return NO_MEMBERS.filter(' },
  { rule: '7', name: 'who founds without knowing the newest record empties what it names', heldBy: STORE_TEST, file: FENCE,
    old: 'this.#told.epoch > knownEpoch', new: 'this.#told.epoch > Infinity' },
  { rule: '7', name: 'founds on although a newer record is known', heldBy: HOLDER_TEST, file: FOUNDING,
    old: 'if (newest !== before)\n', new: 'if (newest === null)\n',
    also: [{ file: HOLDER, old: '=== HolderState.FOUNDING) {\n            if (before !== undefined &&', new: '=== HolderState.FOUNDING) {\n            if (nowMs < 0 && before !== undefined &&' }] },
  { rule: '7', name: 'nobody is asked when a living process has what is to begin', heldBy: HOLDER_TEST, file: FOUNDING,
    old: 'nowMs - this.#refusedSinceMs >= this.#options.replaceAfterMs', new: 'nowMs < 0' },
  { rule: '7', name: 'what was founded after a loss fences its members', heldBy: HOLDER_TEST, file: HOLDER,
    old: ' || this.#waitUntilMs !== -Infinity', new: '' },
  { rule: '8', name: 'the last silent member is dropped', file: SET,
    old: 'if (inStep === 0)\n            return false;', new: '' },
  { rule: '9', name: 'takes without a change of the record', file: HOLDER,
    old: '...claim, unlessSessionOf }, nowMs, why);', new: '...claim, unlessSessionOf }, nowMs, why);\n        this.#enterTerm(claimed, nowMs, why);' },
  { rule: '9', name: 'no wait after the fence', file: HOLDER,
    old: 'answer.olderLeaseMs === 0)', new: 'answer.olderLeaseMs >= 0)' },
  { rule: '9', name: 'the wait for leases nobody can tell of', file: HOLDER,
    old: 'if (claim.mustWaitOut) {', new: 'if (claim.mustWaitOut && nowMs < 0) {' },
  { rule: '9', name: 'a proof of one death stands for that of whoever held the newest record', heldBy: HOLDER_TEST, file: FOUNDING,
    old: '&& isSameHolder(provenDead, before.holder)', new: '' },
  { rule: '9', name: 'claims while the holder is alive', file: HOLDER,
    old: '=> this.#answers.of(member)?.leaseLeftMs === 0);', new: '=> this.#answers.of(member) !== undefined);' },
  { rule: '9', name: 'who was named, and never took it, is waited for', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'if (!isOut && !isUntaken) {', new: 'if (!isOut) {' },
  { rule: '9', name: 'who was named is given no time to take it', heldBy: HOLDER_TEST, file: HOLDER,
    old: ' + (isOut ? 0 : awayAfterMs);', new: ';' },
  { rule: '10', name: 'a fence does not stop changes', file: FENCE,
    old: 'return term.number === this.#term.number && term.nonce === this.#term.nonce;', new: 'return term.number <= this.#term.number;' },
  { rule: '10', name: 'a fence does not freeze leases', file: FENCE,
    old: 'this.#older.push({ process, term: this.#term, endsMs });', new: 'void endsMs;' },
  { rule: '10', name: 'an old term can fill', file: STORE,
    old: 'const verdict = fence.raise(term, holder, this.#clock());\n        if (verdict !== FenceVerdict.ACCEPTED)\n            return this.#refusal(fence, term, verdict);\n        this.#take(partition, term);\n        this.copies.set(', new: 'fence.raise(term, holder, this.#clock());\n        this.#take(partition, term);\n        this.copies.set(',
    also: [{ file: STORE, old: 'if (!fence.admits(term))\n            return this.#refusal(fence, term, fence.judge(term));\n        this.#take(partition, term);\n        const copy = new Copy(term);', new: 'this.#take(partition, term);\n        const copy = new Copy(term);' }] },
  { rule: '10', name: 'a term that never came to be is not taken back', heldBy: HOLDER_TEST, file: SET,
    old: 'return this.#rows.some((row) => row.refusedBy >= epoch', new: 'return this.#rows.some((row) => row.refusedBy < 0' },
  { rule: '10', name: 'a notice of a fence that was taken back counts', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'if (row !== undefined && row.toldEpoch >= term.number)', new: 'if (nowMs < 0)' },
  { rule: '10', name: 'a member that refused a term which came to nothing is not told', heldBy: SET_TEST, file: SET,
    old: '(row.isRecorded || !row.isPossible) && row.refusedBy < record.epoch', new: '!row.isPossible && row.refusedBy < record.epoch' },
  { rule: '10', name: 'where a fence was taken back the copy is not asked what is left of it', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'this.#set?.onTakenBack(row, nowMs);', new: '' },
  { rule: '10', name: 'a copy that a term only joined is dropped with that term', heldBy: STORE_TEST, file: 'src/kvs/core/store.js',
    old: '&& isUndoneBy(record, lastTerm)', new: '' },
  { rule: '10', name: 'another record of the same epoch is kept beside the term of the first', heldBy: FENCE_TEST, file: FENCE,
    old: '|| !isSameTerm(record.term, told.term))', new: ')' },
  { rule: '8', name: 'a deposed holder takes a dropped copy for a lost one', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'isOwnLoss(answer, this.#record)', new: 'answer.reason === DECLINED_NO_COPY' },
  { rule: '15', name: 'a member that was put out by a record which the register lost is waited for', heldBy: HOLDER_TEST, file: HOLDER,
    old: ': row.isRecorded && (answer.told', new: ': answer.reason === DECLINED_STALE && row.isRecorded && (answer.told' },
  { rule: '8', name: 'a store says that it has no copy before it judges the term', heldBy: STORE_TEST, file: 'src/kvs/core/store.js',
    old: 'const reason = DECLINED_BY_VERDICT', new: 'if (how === FENCE_JOIN && copy === undefined)\n            return { reason: DECLINED_NO_COPY, copy: undefined };\n        const reason = DECLINED_BY_VERDICT' },
  { rule: '8', name: 'a member that has no copy is waited for', heldBy: SET_TEST, file: SET,
    old: 'if (row.state === MemberState.ALIGNING && row.isPossible) {', new: 'if (nowMs < 0) {' },
  { rule: '8', name: 'a boot that is back with what it had passes for gone', heldBy: SET_TEST, file: SET,
    old: 'this.#noteBack(row);', new: '' },
  { rule: '10', name: 'an older record puts a later copy out', heldBy: FENCE_TEST, file: FENCE,
    old: 'return this.#term.number <= record.epoch;', new: 'return true;' },
  { rule: '11', name: 'a longer member is kept', file: SET,
    old: 'if (!row.isDiverged && this.#ports.isInHistory(at)) {', new: 'if (!row.isDiverged && (at.number >= lastNumber || this.#ports.isInHistory(at))) {',
    also: [{ file: SET, old: 'if (at.number === lastNumber)\n', new: 'if (at.number >= lastNumber)\n' }] },
  { rule: '11', name: 'a member aligned by its number only', file: PART,
    old: 'return this.#ring.some((each) => each.number === at.number && each.digest === at.digestA);', new: 'return true;',
    also: [
      { file: STORE, old: '|| digestAfter(copy.at.digestA, change.kind, change.id) !== change.digest', new: '' },
      { file: STORE, old: 'known === undefined || known.digest === change.digest', new: 'known !== null' },
      { file: PART, old: 'return at.digestA === this.#position.digestA;', new: 'return true;' },
    ] },
  { rule: '12', name: '4xx when the record is lost', file: PART,
    old: 'this.process.world.noReply(entry.id);', new: 'if (this.process.isAlive) this.process.world.said4xx(entry.id);' },
  { rule: '12', name: 'who is deposed keeps its lease where it has filled a copy', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'this.#releaseFilled();', new: '' },
  { rule: '13', name: 'hands back while it delivers', file: HOLDER,
    old: '        this.#handing = { ...record', new: '        this.#release();\n        this.#handing = { ...record',
    also: [
      { file: HOLDER, old: 'if (this.#state !== HolderState.READING && this.#state !== HolderState.HOLDER)\n            return false;\n        return this.#set.mayDeliver(', new: 'if (this.#state !== HolderState.HANDING_BACK && this.#state !== HolderState.READING && this.#state !== HolderState.HOLDER)\n            return false;\n        return this.#set.mayDeliver(' },
    ] },
  { rule: '13', name: 'lets go before it is known to be given away', file: HOLDER,
    old: '        this.#handing = { ...record', new: '        this.#release();\n        this.#handing = { ...record' },
  { rule: '13', name: 'stops until the register says what became of it', file: HOLDER,
    old: 'this.#stopGiving(this.#handing, nowMs);', new: 'void nowMs;' },
  { rule: '13', name: 'hands back with a single member, while a second one is filled', heldBy: HOLDER_TEST, file: HOLDER,
    old: '!set.isDoubled)', new: 'nowMs < 0)' },
  { rule: '13', name: 'a hand-back is sent though a member has died since', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'this.#changing === undefined && this.#set?.isLevel !== true', new: 'nowMs < 0' },
  { rule: '13', name: 'a register that takes no change is taken for one that does', heldBy: TALK_TEST, file: 'src/recovery/ownership/register-talk.js',
    old: 'Math.min(this.#unansweredMs, this.#unmadeMs)', new: 'this.#unansweredMs' },
  { rule: '14', name: 'a copy that had left is waited for where it can not be compared', heldBy: HOLDER_TEST, file: HOLDER,
    old: '!isOneLeft && !set.isHistoryKnown && heir !== undefined', new: 'false' },
  { rule: '14', name: 'a copy that has left is read before a member that is silent', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'row !== source && row.isRecorded && !row.isGone)', new: 'row !== source && row.isRecorded && this.#isUp(row))' },
  { rule: '14', name: 'the next holder empties the copy that had left', heldBy: SET_TEST, file: SET,
    old: 'if (!hasLeft)', new: 'if (row !== undefined)' },
  { rule: '7', name: 'who is dead, and never began, is all that is waited for', heldBy: HOLDER_TEST, file: FOUNDING,
    old: '(before.line.length === 0 || before.epoch > before.term.number)', new: 'before.epoch > 0' },
  { rule: '14', name: 'who is to be moved leaves one alone beside a holder that has not read all', heldBy: SET_TEST, file: SET,
    old: 'this.isPartial ? Math.min(replicas, 2) : 1', new: '1' },
  { rule: '14', name: 'the source of a PARTIAL holder is dropped', heldBy: SET_TEST, file: SET,
    old: 'if (row === this.#source)\n            return false;', new: '' },
  { rule: '14', name: 'PARTIAL: a diverged member is dropped', file: SET,
    old: 'return inStep >= 2;', new: 'return true;' },
  { rule: '14', name: 'a weak member that left is emptied when it is back', heldBy: HOLDER_TEST, file: SET,
    old: '(row.isInStep && row.isUnwanted', new: '(row.isInStep' },
  { rule: '14', name: 'reads on from any member', heldBy: SET_TEST, file: SET,
    old: 'return row.isRecorded && row.isInStep && !row.mayLeave;', new: 'return row.isRecorded && !row.mayLeave;' },
  { rule: '14', name: 'reads on from a member that a change under way takes out', heldBy: SET_TEST, file: SET,
    old: 'return row.isRecorded && row.isInStep && !row.mayLeave;', new: 'return row.isRecorded && row.isInStep;' },
  { rule: '14', name: 'a PARTIAL holder fills as if it had everything', file: PART,
    old: 'if (!this.#mayFill)', new: 'if (this.entries.size < 0)' },
  { rule: '15', name: 'who may not write its record again asks nobody', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'if (this.#isRewriteHeldUp(nowMs)) {', new: 'if (nowMs < 0) {' },
  { rule: '15', name: 'a record that names this process asks nobody', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'if (this.#known.read?.hasSession !== false && !isOurs)', new: 'if (this.#known.read?.hasSession !== false)' },
  { rule: '7', name: 'a copy that was emptied is waited for', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'if (isToldSo && isMemberOf(record.members, storeId, bootId))', new: 'if (storeId === "")' },
  { rule: '13', name: 'a second copy is waited for from the takeover on', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'this.#secondAwaitedMs = nowMs;', new: 'this.#secondAwaitedMs = this.#enteredMs;' },
  { rule: '13', name: 'a second copy is not looked at again before it is given', heldBy: HOLDER_TEST, file: HOLDER,
    old: '(this.#owner !== undefined && this.#isSecondAwaited(this.#owner, nowMs))', new: 'nowMs < 0' },
  { rule: '15', name: 'what stores were told is not believed', file: KNOWN,
    old: 'if (this.#newest !== undefined && !isNewer(told, this.#newest))', new: 'if (told.epoch >= 0)',
    also: [{ file: FENCE, old: 'if (this.#told !== undefined && term.number <= this.#told.epoch', new: 'if (this.#told !== undefined && term.number < 0' }] },
  { rule: '15', name: 'a loss is believed without asking every store', file: ANSWERS,
    old: 'return this.#stores.areAllKnown() && this.awaited().length === 0;', new: 'return this.#stores !== undefined;' },
  { rule: '15', name: 'a holder takes a rolled-back record for the truth', file: HOLDER,
    old: 'this.#noteRollback(stamped, nowMs);\n', new: "this.#lose(nowMs, 'another holder');\n", },
  { rule: '15', name: 'a taker does not hear every store that it reaches', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'if (this.#answers.haveReachableAnswered()) {\n            this.#takeOver', new: 'if (nowMs >= 0) {\n            this.#takeOver' },
  { rule: '15', name: 'a copy of a record that the register lost is out', heldBy: HOLDER_TEST, file: FENCE,
    old: 'return isMemberOf(told.members, storeId, bootId) && !isOfLine(record, told);', new: 'return false;',
    also: [{ file: OUTSIDE, old: '|| isEnded(told) || isOfLine(own, told) || this.#isHere(told))', new: '|| told.epoch > 0)' }] },
  { rule: '15', name: 'a store is filled before it has said what it was told', heldBy: HOLDER_TEST, file: HOLDER,
    old: '...taken, ...this.#answers.unheard, ...this', new: '...taken, ...this' },
  { rule: '15', name: 'records are not told', file: PART,
    old: 'const isKept = link.store.tell(', new: 'const isKept = record.epoch > 0 || link.store.tell(' },
  { rule: '16', name: 'a store is filled before its copy is adopted', heldBy: HOLDER_TEST, file: SET,
    old: 'taken.push(each.storeId);', new: 'void each;' },
  { rule: '16', name: 'a copy that comes back is not adopted', file: OUTSIDE,
    old: 'this.#ports.memory.adopt(member);', new: '' },
  { rule: '16', name: 'a partition begins empty as if its stores could not find their disks', file: HOLDER,
    old: 'this.#isGone(each) && !isMemberOf(others', new: 'each.bootId === "" && !isMemberOf(others' },
  { rule: '16', name: 'a copy that was taken in halfway passes for a whole one', heldBy: ADOPTED_TEST, file: HOLDER,
    old: '?? Infinity) <= copy.epoch', new: '?? Infinity) <= Infinity' },
  { rule: '16', name: 'a copy that was taken in halfway stands for others after a loss', heldBy: ADOPTED_TEST, file: GIVEN_UP,
    old: 'return isApart ?', new: 'return copy.epoch < 0 ?' },
  { rule: '16', name: 'a copy that stands alone is thought to have been brought by another of its epoch', heldBy: HOLDER_TEST, file: 'src/protocol/partition-record.js',
    old: 'return isAlone === true ?', new: 'return isAlone === null ?' },
  { rule: '16', name: 'a copy that stands alone is covered by one of its epoch that is read', heldBy: HOLDER_TEST, file: OUTSIDE,
    old: 'return isAlone !== true && ', new: 'return ' },
  { rule: '15, 16', name: 'a copy that stands alone has an epoch in which it never counted', heldBy: DISKS_TEST, file: GIVEN_UP,
    old: 'isApart ? { ...copy, isAlone: true }', new: 'isApart ? { ...copy, epoch: 4e9 - gaveUp.indexOf(copy) }' },
  { rule: '15, 16', name: 'epochs of two histories are taken for one', heldBy: HOLDER_TEST, file: GIVEN_UP,
    old: 'return isMixed ?', new: 'return line === null ?' },
  { rule: '16', name: 'an order for a loss gives up copies whose disks may come', heldBy: DISKS_TEST, file: HOLDER,
    old: 'wereGone ? { isGone: true }', new: 'wereGone === null ? { isGone: true }' },
  { rule: '16', name: 'two orders are needed where the register lost the record', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'if (wouldBeginEmpty && ', new: 'if (wereGone && ' },
  { rule: '16', name: 'an order gives up a store that it does not name', heldBy: HOLDER_TEST, file: HOLDER,
    old: ' && this.#mayGiveUp(storeIds, nowMs)) {', new: ') {' },
  { rule: '16', name: 'copies go with the one that is read before its mail is at two stores', heldBy: DISKS_TEST, file: HOLDER,
    old: '.slice(-GAVE_UP_MAX)', new: '.filter(({ epoch }) => epoch !== whole?.epoch)' },
  { rule: '16', name: 'an end forgets copies on late disks', heldBy: DISKS_TEST, file: HOLDER,
    old: 'lineWithout(lineAfter(record), this.#outside.uncovered(record))', new: 'lineAfter(record)' },
  { rule: '15', name: 'all stores are awaited though a copy that counts is back', heldBy: DISKS_TEST, file: HOLDER,
    old: '(this.#areAllGone(record.members) || (this.#isLossAtStake', new: '(true || (this.#isLossAtStake' },
  { rule: '15', name: 'a loss of what this process itself held is believed before all stores were heard', heldBy: HOLDER_TEST, file: HOLDER,
    old: '(isSameHolder(record.holder, self) || this.#ports.isProvenDead(record.holder))', new: 'this.#ports.isProvenDead(record.holder)' },
  { rule: '15', name: 'a loss needs no store any more, once one in another boot is silent', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'areAllGone(record.members) || (this.#isLossAtStake', new: 'areAllGone(record.members) || (false' },
  { rule: '16', name: 'copies of which some mail was taken in before a loss stand for each other when another is read back', heldBy: DISKS_TEST, file: HOLDER,
    old: 'eachAlone(gaveUp, before[0]?.epoch ?? 0, isWhole)', new: 'gaveUp' },
  { rule: '14, 16', name: 'copies stand for each other when another that had left is read', heldBy: HOLDER_TEST, file: HOLDER,
    old: 'eachAlone(all, record.epoch, () => false)', new: 'all' },
  { rule: '16', name: 'what is gone is given up for good in another boot of its store', file: OUTSIDE,
    old: 'if (member.isGone === true)', new: 'if (member.epoch < 0)' },
  { rule: '16', name: 'a copy that is back is not read, where no store is free', heldBy: DISKS_TEST, file: HOLDER,
    old: 'if (source === undefined)\n            return false;', new: 'if (source?.epoch !== -1)\n            return false;' },
  { rule: '17', name: 'who takes over delivers before it knows what operators decided', file: HOLDER,
    old: 'if (this.#set === undefined || !this.#hasRules)', new: 'if (this.#set === undefined)' },
  { rule: '17', name: 'a hold is forgotten at a takeover', file: PART,
    old: 'isHeld: held.has(id)', new: 'isHeld: held.size < 0' },
  { rule: '17', name: 'a hold is forgotten in a fill', file: STORE,
    old: 'copy.held = new Set(snapshot.held);', new: '' },
  { rule: '15', name: 'the record of an end goes before every store was told', isApart: true, file: ENDED,
    old: 'const isOpen = this.#untold(partition, ending).length > 0;', new: 'const isOpen = nowMs < 0;' },
  { rule: '15', name: 'a disk that is found after an end is not told of it', heldBy: ORPHANS_TEST, file: 'src/gateway/ownership/holdings.js',
    old: 'if (isMissed || ', new: 'if (' },
  { rule: '16', name: 'an end knows what its copies were told before a term that was taken only', heldBy: RECORD_TEST, file: 'src/protocol/partition-record.js',
    old: 'wasTakenOnly = term.number === epoch;', new: 'wasTakenOnly = false;' },
  { rule: '15', name: 'an end that a store was given up for knew all', heldBy: RECORD_TEST, file: 'src/gateway/ownership/given-up-rules.js',
    old: 'left: [], line };', new: 'left: [], line: [{ term: { number: 0, nonce: 0 }, epoch }] };' },
  { rule: '15', name: 'what a store was given up for is met nowhere', heldBy: UNRECORDED_TEST, file: 'src/gateway/ownership/unrecorded.js',
    old: '(this.#ports.register.givenUp().get(store.storeId) ?? [])', new: '[...this.#ports.register.givenUp().values()].flat()' },
  { rule: '15', name: 'who sees an end rests before all stores have answered', heldBy: DISKS_TEST, file: HOLDER,
    old: 'ended !== undefined && !this.#answers.haveReachableAnswered()', new: 'nowMs < 0' },
  { rule: '15', name: 'who sees an end asks its members alone', heldBy: ORPHANS_TEST, file: HOLDER,
    old: 'hasEnded || this.#mustAskAll()', new: 'this.#mustAskAll()' },
  { rule: '15', name: 'what an end did not know goes on as if that had not been', heldBy: DISKS_TEST, file: 'src/protocol/partition-record.js',
    old: 'const all = [{ term: end.term, epoch: end.epoch }, ...end.line, ...record.line];', new: 'const all = record.line;' },
  { rule: '15', name: 'terms are joined over what lies between them', heldBy: RECORD_TEST, file: 'src/protocol/partition-record.js',
    old: 'before.term.number > oldest.epoch + 1', new: 'before.term.number < 0' },
  { rule: '15', name: 'the oldest terms of a line are those that were added first', heldBy: RECORD_TEST, file: 'src/protocol/partition-record.js',
    old: 'return [...terms].sort((a, b) => b.epoch - a.epoch)', new: 'return [...terms]' },
  { rule: '15', name: 'a term that is added is forgotten in its own record', heldBy: RECORD_TEST, file: 'src/protocol/partition-record.js',
    old: 'oldest === added ? oldest : before', new: 'before' },
  { rule: '15', name: 'what a record gave up is dropped, for an end names it', heldBy: RECORD_TEST, file: 'src/protocol/partition-record.js',
    old: 'return { ...record, left, line', new: 'return { ...record, gaveUp: [], left, line' },
  { rule: '15', name: 'a beginning stands apart from what led to it', heldBy: ORPHANS_TEST, file: 'src/recovery/ownership/founding.js',
    old: 'isLoss ? line : lineUpTo(this.#term, line)', new: 'line' },
  { rule: '15', name: 'the line of what was lost reaches up to what began empty', heldBy: DISKS_TEST, file: 'src/recovery/ownership/founding.js',
    old: 'isLoss ? line : lineUpTo(this.#term, line)', new: 'lineUpTo(this.#term, line)' },
  { rule: '15', name: 'what was found first is taken, though a newer copy is there', heldBy: DISKS_TEST, file: HOLDER,
    old: '.unknownTo(end)?.epoch !== this.#known.believed?.epoch', new: '.unknownTo(end) === undefined' },
  { rule: '15', name: 'copies that an end was to drop are forgotten', heldBy: RECORD_TEST, file: 'src/protocol/partition-record.js',
    old: '[...record.left, ...toDrop].slice', new: '[...record.left].slice' },
  { rule: '15', name: 'what an end did not know is waited for with no copy left', heldBy: DISKS_TEST, file: HOLDER,
    old: 'if (isAnother || this.#ports.mayBegin())', new: 'if (this.#ports.mayBegin())' },
  { rule: '15', name: 'who is to have it again waits for what its end did not know', heldBy: DISKS_TEST, file: HOLDER,
    old: 'if (isAnother || this.#ports.mayBegin())', new: 'if (isAnother)' },
  { rule: '15', name: 'a beginning stands no higher than what is remembered', heldBy: ORPHANS_TEST, file: HOLDER,
    old: 'this.#known.noteEpoch(this.#ports.wallSeconds());', new: '' },
  { rule: '7', name: 'of another\'s partition nobody knows that its memory is gone', heldBy: HOLDER_TEST, file: HOLDER,
    old: '(this.#options.isOwn || this.#areAllGone(record.members))', new: 'this.#options.isOwn' },
  { rule: '15', name: 'what is older than the line is known', heldBy: DISKS_TEST, file: 'src/protocol/partition-record.js',
    old: 'return line.some((past) =>', new: 'return told.epoch < (line.at(-1)?.term.number ?? 0) || line.some((past) =>' },
  { rule: '15', name: 'what a line has no room for is forgotten', heldBy: RECORD_TEST, file: 'src/protocol/partition-record.js',
    old: 'before.term.number > oldest.epoch + 1', new: 'before.term.number > 0' },
  { rule: '15', name: 'an end forgets all terms of an entry in which a copy counted', heldBy: RECORD_TEST, file: 'src/protocol/partition-record.js',
    old: 'return isOneLater ?', new: 'return epoch < 0 ?' },
  { rule: '7, 15', name: 'a founding empties what was not asked', heldBy: DISKS_TEST, file: 'src/recovery/ownership/founding.js',
    old: 'const taken = [...back, ...unheard];', new: 'const taken = [...back];' },
  { rule: '15', name: 'a copy that the register lost is not read where no store is free', heldBy: DISKS_TEST, file: HOLDER,
    old: 'const gaveUp = [...given, ...forgotten];', new: 'const gaveUp = [...given];' },
  { rule: 'orphans', name: 'who has no key is gone never', isApart: true, file: ORPHANS,
    old: 'nowMs - sinceMs >= graceMs ? sinceMs : undefined', new: 'nowMs < 0 ? sinceMs : undefined' },
  { rule: 'orphans', name: 'a partition ends with mail in it', isApart: true, file: HOLDINGS,
    old: 'part.isClosed && isEmpty && holder.mayEnd', new: 'part.isClosed && holder.mayEnd' },
  { rule: 'files', name: 'a damaged file is believed', file: STORE,
    old: "if (this.#file?.isSound === false)", new: 'if (this.storeId === "")' },
  { rule: 'files', name: 'of a file that is too large as much is taken as fits', file: STORE,
    old: "return this.filedCount > this.limit ? 'its file is too large' : '';",
    new: "for (const { ids } of this.#file?.copies.values() ?? []) for (const id of ids) if (this.filedCount > this.limit) ids.delete(id);\n        return '';" },
  { rule: 'files', name: 'a file found late is of the boot that came after it', file: STORE,
    old: 'this.#file ??= this.#lateFile;', new: 'if (this.#lateFile !== undefined) this.#file ??= { ...this.#lateFile, bootId: this.bootId };' },
  { rule: 'G1', name: 'attempts before the commit point', file: PART,
    old: "if (entry.state !== 'ready')\n                continue;", new: "if (entry.state !== 'ready' && entry.state !== 'open')\n                continue;" },
  { rule: 'G9', name: '4xx before the withdrawal is everywhere', file: PART,
    old: "entry.state = 'withdrawing';", new: "entry.state = 'withdrawing';\n        this.process.world.said4xx(entry.id);" },
];

/** Patches that no longer fit the code in one place; they would test nothing. */
export function ownershipMisfits(): string[] {
  const found: string[] = [];
  for (const mutant of OWNERSHIP_MUTANTS) {
    for (const { file, old } of [mutant, ...(mutant.also ?? [])]) {
      const places = readFileSync(join(BUILD, file), 'utf8').split(old).length - 1;
      if (places !== 1) found.push(`${mutant.name}: its patch fits ${String(places)} places of ${file}, not one`);
    }
  }
  return found;
}

export interface OwnershipVerdict {
  readonly caught: boolean;
  /** The seed that found it and what it said. */
  readonly text: string;
}

function seedsFind(folder: string, extras: boolean): OwnershipVerdict {
  const main = join(folder, 'test', 'simulation', 'ownership', 'main.js');
  const { stdout, stderr } = spawnSync(process.execPath, [main, '--seeds', String(SEEDS), ...(extras ? [] : ['--no-extras'])], { encoding: 'utf8', timeout: 240_000 });
  const found = /FAILED (seed \d+: [^\n;]*)/.exec(stdout);
  const seed = /seed (\d+)/.exec(found?.[1] ?? '')?.[1];
  if (seed !== undefined && simulateOwnership(Number(seed), { extras }).failure !== '') return { caught: false, text: `seed ${seed} fails without it, too` };
  if (found !== null) return { caught: true, text: (found[1] ?? '').slice(0, 130) };
  return { caught: false, text: stdout === '' ? `it does not run: ${stderr.slice(0, 300)}` : `${String(SEEDS)} seeds found nothing wrong` };
}

export function tryOwnershipMutant(mutant: OwnershipMutant): OwnershipVerdict {
  const patches = [mutant, ...(mutant.also ?? [])];
  if (mutant.heldBy !== undefined) return judgeByTest(patches, mutant.heldBy);
  const folder = mkdtempSync(join(tmpdir(), 'ownership-mutant-'));
  try {
    for (const part of ['src/base', 'src/protocol', 'src/recovery/ownership', 'src/kvs/core/ownership', 'src/gateway/ownership',
      'src/register', 'src/admin-api', 'src/config/workers.js', 'test/simulation/ownership', 'test/simulation/patched-build.js', 'test/arguments.js']) {
      mkdirSync(join(folder, dirname(part)), { recursive: true });
      cpSync(join(BUILD, part), join(folder, part), { recursive: true, filter: (name) => !name.endsWith('.map') });
    }
    symlinkSync(join(BUILD, '..', 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
    const misfit = patch(folder, patches);
    if (misfit !== '') return { caught: false, text: misfit };
    // Without what seeds draw apart first: most mutants are near.
    const first: OwnershipVerdict = mutant.isApart === true ? { caught: false, text: '' } : seedsFind(folder, false);
    return first.caught ? first : seedsFind(folder, true);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The property that was broken (custody.ts); an assertion of the machines themselves; or a test. */
function checkerOf(text: string): string {
  return /^seed \d+: ([a-z ]+):/.exec(text)?.[1] ?? 'a test';
}

/** Runs all, or those named; true when each was caught. Prints a table. */
export function runOwnershipMutants(say: (text: string) => void, only: string): boolean {
  let all = true;
  say('| rule | removed | checker | where |\n|---|---|---|---|');
  for (const mutant of OWNERSHIP_MUTANTS) {
    if (!mutant.name.includes(only)) continue;
    const { caught, text } = tryOwnershipMutant(mutant);
    say(`| ${mutant.rule} | ${mutant.name} | ${caught ? checkerOf(text) : 'NONE'} | ${text} |`);
    if (!caught) all = false;
  }
  return all;
}
