/**
 * THE LIFE OF A PARTITION IN THIS PROCESS: who may take it, in which order it is taken, and how it is given
 * away (docs/model, rules 9-17). Who counts while it is held: partition-set.ts.
 *
 *   IDLE ─ to be looked at / read ─► ASKING ─ may take (9) / change ─► CLAIMING ─ moved, and mine ─► FENCING
 *   FENCING ─ a recorded member has taken the term ─► WAITING_OUT ─ leases of older terms are out at a member
 *          / read the furthest ─► READING ─ everything read ─► HOLDER
 *
 *   ASKING       ─ another's, and well; or ended, and no store, all asked, has what it did not know ─► IDLE
 *   ASKING       ─ the record names us by a new term (13, or a change made late) / fence ─► FENCING
 *   ASKING       ─ no record, or every copy gone, and every store has answered, or was given up / found
 *                  ─► FOUNDING. What left is set aside with what was given up
 *   FOUNDING     ─ stores have the first term / change ─► CLAIMING ─ moved, and mine ─► HOLDER
 *   CLAIMING     ─ moved, founded, and leases may run that no living member can tell of ─► WAITING_OUT ─ all
 *                  are out ─► HOLDER
 *   FOUNDING     ─ the register moved, a newer record is known, or a copy of this one is back ─► ASKING
 *   CLAIMING     ─ another change came first, or no member can be read any more ─► ASKING
 *   WAITING_OUT  ─ the fenced member is away ─► FENCING
 *   READING      ─ source died, and no other copy will do (14) / forget, change ─► CLAIMING
 *   HOLDER       ─ the owner is back, doubled, the register answers / stop ─► HANDING_BACK ─ quiet, level,
 *                  heard / change; moved / release, forget ─► IDLE. Likewise to another that delivers for it;
 *                  and to nobody, empty, at its end
 *   READING      ─ the owner is back, all that count are in step / stop ─► HANDING_BACK: it reads the members
 *   HANDING_BACK ─ the owner is away again; the register does not answer / resume ─► HOLDER
 *   HANDING_BACK ─ PARTIAL, and so, or a member is not in step / resume ─► READING
 *   any that holds or takes ─ fenced by a higher term at a recorded member, another holder in the register,
 *                  every copy gone / forget (12) ─► LOST ─ tick ─► ASKING
 *   any that holds ─ fenced where a change under way may add a member / neither right nor commits until the
 *                  register has said who holds it ─► the same, or LOST
 *   ASKING, FENCING ─ a person gives copies up (16) ─► FOUNDING
 *   READING      ─ so, its source being away ─► FOUNDING, or CLAIMING with a copy that had left and is back
 *
 *   state         what is waited for                                 right to deliver
 *   IDLE          news of the register, or the time to look again    no
 *   ASKING        the record; members: has the holder's lease run    no
 *                 out? Every store, when the register is older than
 *                 what was told (15) or knows nothing
 *   FOUNDING      stores that acknowledge the first term             no
 *   CLAIMING      a moved revision. Unknown stays unknown (2)        no
 *   FENCING       one recorded member in its recorded boot           no
 *   WAITING_OUT   the end of leases of older terms there             no
 *   READING       all entries: PARTIAL                               yes, by lease at every member
 *   HOLDER        nothing                                            yes, likewise
 *   HANDING_BACK  quiet, level, members heard, a moved revision      for dots that were sent
 *   LOST          the next tick                                      no
 *
 * Nothing is changed before a member that counts has answered: without one there is nothing to take, and only
 * a member can say that the register is older than what was told (15). One that has no copy is fenced by who
 * is named, or by the owner that knows the holder dead: only that tells whether it was filled since.
 *
 * Order of a takeover: change of the record, known to have been made; fence; wait; read; then the others are
 * aligned, and only then members are changed. The set exists from READING on, so nothing can change them
 * earlier. Time comes in by tick(); nothing here waits for a promise.
 */
import { invariant } from '../../base/invariant.js';
import { GAVE_UP_MAX, MEMBERS_MAX } from '../../protocol/fields.js';
import type {
  GivenUpCopy, HolderId, PartitionRecord, PastTerm, RecordedMember, Term,
} from '../../protocol/partition-record.js';
import {
  NO_TERM, bareMember, holderKey, isEnded, isMemberOf, isSameHolder, isSameSet, isSameTerm,
  lineAfter, lineWith, lineWithout, mailOf, nobody,
} from '../../protocol/partition-record.js';
import {
  DECLINED_LOWER, DECLINED_NO_COPY, DECLINED_OTHER_NONCE, DECLINED_STALE,
} from '../../protocol/reasons.js';
import type { FoundBase } from './founding.js';
import { Founding, isFoundedApart, lacksCopy } from './founding.js';
import { eachAlone, forgottenCopies, withGivenUp } from './given-up-copies.js';
import { KnownRecords } from './known-records.js';
import type { PartitionMember } from './member.js';
import { MEMBER_STATE_NAMES, MemberState } from './member.js';
import { OutsideCopies } from './outside-copies.js';
import { PartitionSet } from './partition-set.js';
import type {
  AskAnswer, DeclinedAnswer, FencedAnswer, HolderOptions, HolderPorts, MemberPorts, Stamped,
} from './ports.js';
import { Question, RegisterTalk } from './register-talk.js';
import { StoreAnswers } from './store-answers.js';
import type { Away, WaitingValue } from './waiting.js';
import { AwayCause, Waiting, storesOf } from './waiting.js';

export const HolderState = {
  IDLE: 0,
  ASKING: 1,
  FOUNDING: 2,
  CLAIMING: 3,
  FENCING: 4,
  WAITING_OUT: 5,
  READING: 6,
  HOLDER: 7,
  HANDING_BACK: 8,
  LOST: 9,
} as const;
export type HolderStateValue = (typeof HolderState)[keyof typeof HolderState];
export const HOLDER_STATE_NAMES = [
  'IDLE', 'ASKING', 'FOUNDING', 'CLAIMING', 'FENCING', 'WAITING_OUT', 'READING', 'HOLDER', 'HANDING_BACK',
  'LOST',
] as const;

const S = HolderState;
const VALID: readonly (readonly number[])[] = [
  [S.ASKING],
  [S.IDLE, S.FOUNDING, S.CLAIMING, S.FENCING],
  [S.ASKING, S.CLAIMING],
  [S.ASKING, S.FENCING, S.WAITING_OUT, S.HOLDER],
  [S.WAITING_OUT, S.FOUNDING, S.LOST],
  [S.FENCING, S.READING, S.HOLDER, S.LOST],
  [S.HOLDER, S.HANDING_BACK, S.CLAIMING, S.FOUNDING, S.LOST],
  [S.HANDING_BACK, S.LOST],
  [S.READING, S.HOLDER, S.IDLE, S.LOST],
  [S.ASKING],
];

export function isValidHolderTransition(from: number, to: number): boolean {
  return VALID[from]?.includes(to) ?? false;
}

/** A change that makes this process holder, until the revision moves. */
interface Claim {
  readonly record: PartitionRecord;
  /** Its members were made for it and hold nothing. */
  readonly isFounding: boolean;
  /** Somebody had mail in it, and nobody has it any more, or it was given up. */
  readonly isLoss: boolean;
  /** Others may still use leases that no living member could tell of. */
  readonly mustWaitOut: boolean;
  /** Copies that counted last in this epoch have nothing that its member has not. */
  readonly covers?: number | undefined;
  /** By an operator's order: only while this process has no session (7). */
  readonly unlessSessionOf: HolderId | undefined;
}

interface Fenced {
  readonly member: RecordedMember;
  answer: FencedAnswer;
  askedMs: number;
}

const NO_MEMBERS: readonly RecordedMember[] = [];
/** The end of a lease is asked for anew no more often, should the store's clock run slower. */
const END_AGAIN_MS = 50;
/** So long a member is waited for that could be read, too. */
const OTHERS_WAIT_MS = 100;
/** So long a partition is not handed back for want of a second copy: a full store may refuse it for ever. */
const SECOND_WAIT_MS = 30_000;
const NO_GIVEN: readonly GivenUpCopy[] = [];
const NO_LINE: readonly PastTerm[] = [];

export class PartitionHolder {
  readonly #options: HolderOptions;
  readonly #ports: HolderPorts;
  readonly #talk: RegisterTalk;
  #state: HolderStateValue = HolderState.IDLE;
  #enteredMs = 0;
  readonly #known = new KnownRecords();
  #mustRead = true;
  #lookAtMs = -Infinity;
  #askedMs = -Infinity;
  readonly #answers: StoreAnswers;
  /** Since when members have said that the holder has no lease. */
  #leaseOutSinceMs = Infinity;
  /** Nobody has a copy of what the register names, nor has it in memory: is it the newest record? */
  #isLossAtStake = false;
  /** All is there to take it over, but for what other stores know. */
  #isTakeAtStake = false;
  #claim: Claim | undefined;
  /** Of the partition while it is ours. */
  #record: PartitionRecord | undefined;
  #provenDead: HolderId | undefined;
  #fenced: Fenced[] = [];
  #waitUntilMs = -Infinity;
  #founding: Founding | undefined;
  #set: PartitionSet | undefined;
  #hasRules = false;
  /** The change under way, of members or to the owner. */
  #changing: PartitionRecord | undefined;
  #isUnknown = false;
  #rolledBackTo: Stamped | undefined;
  #rolledBackMs = Infinity;
  /** Since when a hand-back has waited for a second copy. */
  #secondAwaitedMs = Infinity;
  #wantedMs = -Infinity;
  /** Since when no store has had a copy of what is held, or got one. */
  #unstoredSinceMs = Infinity;
  #tiedSession = 0;
  #isSourceAway = false;
  #owner: HolderId | undefined;
  #isQuiet = false;
  /** When the last change was found acknowledged everywhere: ends of the leases at the members. */
  readonly #leasesWhenLevel = new Map<PartitionMember, number>();
  /** What is written to give the partition away. Until that is known to have been made, all of it is kept. */
  #handing: PartitionRecord | undefined;
  /** A register that answers, and changes nothing, is not to stop it over and over. */
  #giveAgainMs = -Infinity;
  /** A term once left is never entered again. */
  #leftTerm: Term = NO_TERM;
  readonly #outside: OutsideCopies;

  constructor(options: HolderOptions, ports: HolderPorts) {
    this.#options = options;
    this.#ports = ports;
    this.#talk = new RegisterTalk(options.changeTimeoutMs, options.retryMs);
    this.#answers = new StoreAnswers(ports.stores);
    this.#outside = new OutsideCopies(ports, (event) => { this.#trace(event); });
  }

  get state(): HolderStateValue {
    return this.#state;
  }

  /** Whose acknowledgements and leases count; undefined while nothing is held. */
  get set(): PartitionSet | undefined {
    return this.#set;
  }

  get record(): PartitionRecord | undefined {
    return this.#record;
  }

  /** Of the record that is ours, or else of the newest one met: whose copies count. */
  get members(): readonly RecordedMember[] {
    return (this.#record ?? this.#known.newest)?.members ?? NO_MEMBERS;
  }

  /** Of members: those whose copies may still be. */
  get #counting(): readonly RecordedMember[] {
    return this.members.filter((member) => !this.#isGone(member));
  }

  /** What does not answer, for the text that asks for a person, and its order. */
  get away(): Away {
    if (this.#state === HolderState.FOUNDING) return { cause: AwayCause.HELD, stores: this.refusingStores };
    const unheard = [...this.#unheardStores()].sort();
    if (unheard.length > 0) {
      const isLoss = this.#state === HolderState.ASKING && this.#isLossAtStake;
      return { cause: isLoss ? AwayCause.ALL_GONE : AwayCause.REGISTER_BEHIND, stores: unheard };
    }
    const stores = storesOf(this.#awaited());
    return { cause: stores.length === 0 ? AwayCause.MEMORY : AwayCause.COPIES, stores };
  }

  /** What would be left with these given up: nothing, but for what the stores have that were heard. */
  get wouldBeginEmpty(): boolean {
    if (this.#state === HolderState.FOUNDING) return false;
    return this.#unheardStores().length === 0 || (this.#set === undefined && !this.#someMemberAnswered());
  }

  /** Held in the memory of this process, or about to begin, and for a while no store takes it. */
  isUnstored(nowMs: number): boolean {
    if (this.#state === HolderState.FOUNDING) return this.#founding?.isUnbegun(nowMs) === true;
    return this.#set !== undefined && nowMs - this.#unstoredSinceMs >= this.#options.awayAfterMs;
  }

  /** Of FOUNDING: stores with a copy of another process that lives. */
  get refusingStores(): readonly string[] {
    return this.#founding?.refusingStores ?? [];
  }

  /** Stores of members that are not up in the boot that counts. */
  get silentStores(): readonly string[] {
    return storesOf(this.members.filter((member) => !this.#isUp(member)));
  }

  /**
   * Copies that may still be, of members: not where the store is up in another boot. A PARTIAL holder whose
   * members have none goes on when one that left is back.
   */
  #awaited(): readonly RecordedMember[] {
    const members = this.#counting;
    if (members.length > 0 || this.#set === undefined) return members;
    return this.#set.spared.filter((copy) => !this.#isUp(copy));
  }

  /** Copies that left, were not emptied, and may have mail that is nowhere else. */
  #spared(record: PartitionRecord | undefined): readonly RecordedMember[] {
    if (this.#set !== undefined) return this.#set.spared;
    // One that counts again is still named as left until the next change of members.
    return (record?.left ?? NO_MEMBERS).filter((copy) => !this.#isGone(copy)
      && !isMemberOf(record?.members ?? NO_MEMBERS, copy.storeId, copy.bootId)
      && (!this.#isUp(copy) || this.#answers.byStore.get(copy.storeId)?.hasCopy !== false));
  }

  /**
   * To be taken in. Of what only the record names it is not known in which record it counted last: none
   * stands for another.
   */
  #asGivenUp(copies: readonly RecordedMember[], { epoch }: PartitionRecord): readonly GivenUpCopy[] {
    const known = this.#set?.spared ?? NO_GIVEN;
    return copies.map(({ storeId, bootId }) =>
      known.find((each) => each.epoch > 0 && isMemberOf([each], storeId, bootId))
        ?? { storeId, bootId, epoch, isAlone: true });
  }

  /** Who may have it in memory, if nobody else has. */
  get lastHolder(): HolderId {
    return (this.#record ?? this.#known.newest)?.holder ?? nobody(this.#options.partition);
  }

  get term(): Term {
    return this.#record?.term ?? NO_TERM;
  }

  /** The record that says that it has ended, as long as none is known that is newer. */
  get ended(): PartitionRecord | undefined {
    const record = this.#record === undefined ? this.#known.believed : undefined;
    return record !== undefined && isEnded(record) ? record : undefined;
  }

  /** New mail may be taken, to be committed. */
  get mayAccept(): boolean {
    if (this.#state !== HolderState.READING && this.#state !== HolderState.HOLDER) return false;
    return this.#set !== undefined && this.#set.isHistoryKnown && this.#set.mayCommit;
  }

  /** What operators decided is known, as of after it was taken: before that nothing is started (17). */
  get hasRules(): boolean {
    return this.#hasRules;
  }

  /** RIGHT BEFORE EACH FINAL DOT. */
  mayDeliver(nowMs: number): boolean {
    if (this.#set === undefined || !this.#hasRules) return false;
    if (this.#state !== HolderState.READING && this.#state !== HolderState.HOLDER) return false;
    return this.#set.mayDeliver(nowMs, this.#set.isEmptyPossible ? this.#sessionEndsMs() : Infinity);
  }

  /** Of the session that the record is tied to. */
  #sessionEndsMs(): number {
    const { id, endsMs } = this.#ports.session();
    return id === this.#tiedSession ? endsMs : -Infinity;
  }

  /** For status, log and metrics. */
  waitsFor(nowMs: number): WaitingValue {
    if (this.#talk.isSilent(nowMs)) return Waiting.REGISTER;
    const isLate = nowMs - this.#enteredMs >= this.#options.awayAfterMs;
    if (this.#state === HolderState.WAITING_OUT) return Waiting.LEASE;
    if (this.#state === HolderState.FENCING && isLate) return Waiting.COPIES_AWAY;
    if (this.#isReadingInVain(nowMs)) return Waiting.COPIES_AWAY;
    if (this.#isRewriteHeldUp(nowMs)) {
      const isLong = nowMs - this.#rolledBackMs >= this.#options.replaceAfterMs
        && this.#answers.haveReachableAnswered();
      return isLong ? Waiting.COPIES_AWAY : Waiting.STORES;
    }
    if (this.#state === HolderState.FOUNDING && this.#founding?.isRefusedForLong(nowMs) === true) {
      return Waiting.COPIES_AWAY;
    }
    if (this.#state !== HolderState.ASKING) {
      return this.isUnstored(nowMs) ? Waiting.STORES : Waiting.NOTHING;
    }
    if (this.#mustAskAll() && !this.#answers.areComplete()) {
      return this.#isUnheardForLong(nowMs) ? Waiting.COPIES_AWAY : Waiting.STORES;
    }
    if (isLate && this.isUntaken) return Waiting.LEASE;
    // That this process lives says nothing of a copy.
    const isOurs = isSameHolder(this.lastHolder, this.#options.self);
    if (this.#known.read?.hasSession !== false && !isOurs) return Waiting.NOTHING;
    if (this.#someMemberAnswered()) return this.#isLeaseRunningOut() ? Waiting.LEASE : Waiting.NOTHING;
    if (!isLate) return Waiting.NOTHING;
    // Another store may know of a newer record: before it has answered, no person is asked.
    return this.#answers.haveReachableAnswered() ? Waiting.COPIES_AWAY : Waiting.NOTHING;
  }

  // ── the register says ───────────────────────────────────────────────────────────────────────────

  /** A watch, or anything else, says that the record, or a session, may have changed. */
  onNews(nowMs: number): void {
    this.#mustRead = true;
    this.#talk.hurry();
    this.tick(nowMs);
  }

  onRecord(ticket: number, stamped: Stamped, nowMs: number): void {
    const question = this.#talk.answered(ticket);
    const isYoung = this.#talk.wasAskedSince(ticket);
    const newest = this.#known.newest;
    const isOlder = newest !== undefined && (stamped.record === undefined
      || stamped.record.epoch < newest.epoch);
    // An answer from before what we know now. A newer record is news whenever it was asked for.
    if (isOlder && !isYoung) {
      this.#mustRead = true;
      return;
    }
    if (question === Question.READ) {
      this.#mustRead = false;
      this.#lookAtMs = nowMs + this.#options.lookAgainMs;
    }
    const isUnmoved = stamped.revision === this.#known.read?.revision;
    // News of what we know already, as of our own change, holds nothing up.
    if (isUnmoved && question !== Question.READ) this.#talk.pause(nowMs);
    this.#learn(stamped, nowMs);
    // Refused although nothing has moved: the memory to be given up has a session, so it is not given up.
    if (isUnmoved && question === Question.CHANGE && this.#claim?.unlessSessionOf !== undefined) {
      this.#dropClaim(nowMs, 'its holder has a session');
    }
    this.tick(nowMs);
  }

  /** The change that was asked under this ticket has been made. */
  onApplied(ticket: number, revision: string, nowMs: number): void {
    const record = this.#talk.answered(ticket) === Question.CHANGE ? this.#changing : undefined;
    if (record === undefined || record.epoch < (this.#known.newest?.epoch ?? 0)) {
      this.#mustRead = true;
      return;
    }
    this.#learn({ revision, record, hasSession: true }, nowMs);
    this.tick(nowMs);
  }

  /** No answer, and none will come: what was asked may still be done. */
  onNoAnswer(ticket: number, nowMs: number): void {
    const question = this.#talk.over(ticket);
    if (question === Question.NONE) return;
    this.#talk.pause(nowMs);
    this.#noteSilence(question, nowMs);
  }

  onSessionTied(ticket: number, sessionId: number): void {
    if (this.#talk.answered(ticket) === Question.TIE) this.#tiedSession = sessionId;
  }

  onRules(ticket: number, nowMs: number): void {
    if (this.#talk.answered(ticket) === Question.RULES) this.#hasRules = true;
    this.tick(nowMs);
  }

  // ── stores say ──────────────────────────────────────────────────────────────────────────────────

  onLinkUp(storeId: string, bootId: string, nowMs: number): void {
    // It answers this before it says where it stands.
    if (this.#set !== undefined) this.#ports.stores.ask(storeId, this.#options.self);
    this.#set?.onLinkUp(storeId, bootId, nowMs);
    this.#fenced = this.#fenced.filter((each) => each.member.storeId !== storeId
      || each.member.bootId === bootId);
    this.#founding?.onLinkUp(storeId, bootId);
    if (this.#state === HolderState.FENCING || this.#state === HolderState.WAITING_OUT) this.#fenceAll(nowMs);
    if (this.#state === HolderState.ASKING) this.#askedMs = -Infinity;
  }

  onLinkDown(storeId: string, nowMs: number): void {
    this.#set?.onLinkDown(storeId, nowMs);
    this.#answers.forget(storeId);
    this.#outside.onLinkDown(storeId);
    this.#founding?.onLinkDown(storeId);
    this.#fenced = this.#fenced.filter((each) => each.member.storeId !== storeId);
    if (this.#state === HolderState.WAITING_OUT && this.#fenced.length === 0
      && this.#waitUntilMs === -Infinity) {
      this.#enter(HolderState.FENCING, nowMs, 'the fenced member is away');
    }
  }

  onAsked(storeId: string, bootId: string, answer: AskAnswer, nowMs: number): void {
    this.#noteTold(answer.told);
    this.#noteForgotten(answer.told);
    this.#answers.note(storeId, bootId, answer, nowMs);
    if (this.#state !== HolderState.ASKING) return;
    this.#noteEmptied(storeId, bootId, answer);
    this.#consider(nowMs);
  }

  onFenced(storeId: string, bootId: string, answer: FencedAnswer, nowMs: number): void {
    const record = this.#record;
    if (record === undefined || !isSameTerm(answer.term, record.term)) return;
    if (this.#set !== undefined) {
      const row = this.#set.rowOf(storeId, bootId);
      if (row !== undefined) this.#set.onAligned(row, answer.at, nowMs);
      return;
    }
    if (!isMemberOf(record.members, storeId, bootId)) return;
    // One that was set aside may have been begun to be filled meanwhile, by who was deposed.
    if (isFoundedApart(answer.at, record) || answer.at.number < 0) {
      this.#noteApart(storeId, bootId);
      return;
    }
    const known = this.#fenced.find((each) => each.member.storeId === storeId);
    if (known === undefined) this.#fenced.push({ member: { storeId, bootId }, answer, askedMs: nowMs });
    else known.answer = answer;
    if (this.#state === HolderState.FENCING) {
      this.#enter(HolderState.WAITING_OUT, nowMs, `${storeId} is fenced`);
    }
    this.#waitOut(nowMs);
  }

  /**
   * It is recorded, so it was filled, and was told so: what it has not any more is not on its way either. A
   * founding that came to nothing had begun there, and what that made was dropped.
   */
  #noteEmptied(storeId: string, bootId: string, { hasCopy, told }: AskAnswer): void {
    const record = this.#known.believed;
    if (hasCopy || record === undefined || told === undefined) return;
    const isToldSo = isSameTerm(told.term, record.term) && told.epoch >= record.epoch;
    if (isToldSo && isMemberOf(record.members, storeId, bootId)) this.#noteApart(storeId, bootId);
  }

  #noteApart(storeId: string, bootId: string): void {
    if (!this.#known.noteApart(storeId, bootId)) return;
    this.#trace(`${storeId}/${bootId} has no copy, though it is named`);
  }

  onFounded(storeId: string, bootId: string, term: Term): void {
    if (this.#state === HolderState.FOUNDING) this.#founding?.onFounded(storeId, bootId, term);
  }

  /** A store declined a request of ours, or told that this partition was fenced there. */
  onDeclined(storeId: string, bootId: string, answer: DeclinedAnswer, nowMs: number): void {
    this.#noteTold(answer.told);
    this.#known.noteEpoch(answer.term.number);
    if (this.#state === HolderState.FOUNDING) {
      this.#founding?.onDeclined(storeId, bootId, answer, nowMs);
      return;
    }
    if (this.#record === undefined || !isSameTerm(answer.asked, this.#record.term)) return;
    this.#noteForgotten(answer.told);
    const row = this.#set?.rowOf(storeId, bootId);
    const counts = row === undefined ? isMemberOf(this.#record.members, storeId, bootId) : row.isPossible;
    // Who takes over changes the record first. A founder fences first: it may do so
    // where we are about to join.
    if (answer.reason === DECLINED_LOWER && counts && (row === undefined || row.isRecorded)
      && answer.term.number > this.#record.term.number) {
      this.#lose(nowMs, `fenced at ${storeId} by term ${String(answer.term.number)}`);
      return;
    }
    if (row !== undefined && isOwnLoss(answer, this.#record)) this.#set?.onNoCopy(row, nowMs);
    else if (row !== undefined) this.#set?.onUnfit(row, refusedBy(answer), nowMs);
    if (counts) this.#mustRead = true;
    if (row === undefined && counts && answer.reason === DECLINED_OTHER_NONCE) {
      this.#lose(nowMs, `${storeId} knows another term of this number: the register was rolled back`);
      return;
    }
    // Before the record stood it had one, or it would not be a member.
    if (row === undefined && counts && answer.reason === DECLINED_NO_COPY) this.#noteApart(storeId, bootId);
    // Who took over by a register that was rolled back has read a copy that had left. Where such a one has
    // put this copy out, it was dropped: it can be neither read nor filled here.
    const isOutdated = row === undefined ? answer.reason === DECLINED_STALE
      : row.isRecorded && (answer.told?.epoch ?? 0) > this.#record.epoch;
    if (isOutdated) this.#lose(nowMs, `${storeId} knows a newer record than the register`);
  }

  /** An answer to a heartbeat names a fence: called before the answer may renew anything (link-lease.ts). */
  onFenceNotice(storeId: string, bootId: string, term: Term, nowMs: number): void {
    const record = this.#record;
    if (record === undefined || term.number <= record.term.number) return;
    const row = this.#set?.rowOf(storeId, bootId);
    // It knows a record of ours above that term, which it would refuse since: the fence is taken back there.
    if (row !== undefined && row.toldEpoch >= term.number) {
      this.#set?.onTakenBack(row, nowMs);
      return;
    }
    if (row === undefined ? isMemberOf(record.members, storeId, bootId) : row.isRecorded) {
      this.#lose(nowMs, `fenced at ${storeId} by term ${String(term.number)}`);
    } else if (row !== undefined) {
      this.#known.noteEpoch(term.number);
      if (row.isPossible) this.#mustRead = true;
      this.#set?.onUnfit(row, term.number, nowMs);
    }
  }

  // ── memory says ─────────────────────────────────────────────────────────────────────────────────

  /** Index and ring of the source are known: others can be compared with it. */
  onHistoryRead(nowMs: number): void {
    const set = this.#set;
    if (set === undefined) return;
    set.historyKnown();
    for (const row of [...set.rows]) {
      const bootId = this.#ports.stores.bootOf(row.storeId);
      if (row !== set.source && bootId !== '') set.onLinkUp(row.storeId, bootId, nowMs);
    }
  }

  onReadComplete(nowMs: number): void {
    this.#set?.readComplete();
    if (this.#state !== HolderState.READING) return;
    this.#enter(HolderState.HOLDER, nowMs, 'everything is read');
    this.tick(nowMs);
  }

  /** After memory.stop(): no dot waits for its reply, and nothing new was started. */
  onQuiet(nowMs: number): void {
    this.#isQuiet = true;
    this.tick(nowMs);
  }

  /**
   * All mail of a copy that had been given up is committed in this record; so is that of the copies which
   * counted in one record with it (3).
   */
  onAdopted(member: RecordedMember, nowMs: number): void {
    const gaveUp = this.#record?.gaveUp ?? NO_GIVEN;
    const copy = gaveUp.find((each) => isMemberOf([member], each.storeId, each.bootId));
    if (this.#set === undefined || copy === undefined) return;
    for (const each of gaveUp) if (mailOf(each) === mailOf(copy)) this.#outside.noteOut(each);
    this.tick(nowMs);
  }

  /** There is no such copy any more, or the rest of it can't be read: it says nothing of the others. */
  onGivenUpGone(member: RecordedMember, nowMs: number): void {
    const isGivenUp = isMemberOf(this.#record?.gaveUp ?? NO_GIVEN, member.storeId, member.bootId);
    if (this.#set === undefined || !isGivenUp) return;
    this.#outside.noteOut(member);
    this.tick(nowMs);
  }

  // ── orders ──────────────────────────────────────────────────────────────────────────────────────

  /**
   * An owner that has been up for long enough (13). What is not read here yet it reads where we would: at the
   * members, each of which has all of it. Nothing stops here for a register that may be away: it is asked
   * first; call this again.
   */
  handBack(owner: HolderId, nowMs: number): void {
    const mayGo = this.#state === HolderState.HOLDER
      || (this.#state === HolderState.READING && this.#set?.isInStep === true);
    if (!mayGo || this.#set === undefined || isSameHolder(owner, this.#options.self)) return;
    // A change that was sent is settled first: made late, it would come in the middle of this.
    if (this.#isUnknown || this.#rolledBackTo !== undefined || nowMs < this.#giveAgainMs
      || this.#isSecondAwaited(owner, nowMs)) return;
    if (!this.#talk.hasJustAnswered(nowMs)) {
      this.#mustRead = true;
      return;
    }
    this.#owner = owner;
    this.#isQuiet = false;
    this.#leasesWhenLevel.clear();
    this.#enter(HolderState.HANDING_BACK, nowMs, `to ${holderKey(owner)}`);
    this.#ports.memory.stop();
  }

  /**
   * What is handed back is forgotten here: with a single member it would be lost by the death of one store. A
   * second one is filled first, but not waited for without end.
   */
  #isSecondAwaited(owner: HolderId, nowMs: number): boolean {
    const set = this.#set;
    if (set === undefined || set.isPartial || owner.incarnation === 0) return false;
    // An owner that was away meanwhile begins anew.
    if (set.areEnough || nowMs - this.#wantedMs >= this.#options.lookAgainMs) {
      this.#secondAwaitedMs = Infinity;
    }
    this.#wantedMs = nowMs;
    // Who has begun to wait goes on, though the store may be full, and put off for a moment.
    if (this.#secondAwaitedMs === Infinity && !set.isDoubled) this.#secondAwaitedMs = nowMs;
    return this.#secondAwaitedMs !== Infinity && nowMs - this.#secondAwaitedMs < SECOND_WAIT_MS;
  }

  /** What was given up may still come back (16). */
  get mayEnd(): boolean {
    return this.#state === HolderState.HOLDER && this.givenUp.length === 0;
  }

  /**
   * Copies of what it holds that were given up and may come back. One that is gone is taken in should it be
   * found after all, but nobody waits for it.
   */
  get givenUp(): readonly GivenUpCopy[] {
    return this.#state === HolderState.HOLDER ? this.#awaitedBack : NO_GIVEN;
  }

  get #awaitedBack(): readonly GivenUpCopy[] {
    return (this.#record?.gaveUp ?? NO_GIVEN).filter((copy) => copy.isGone !== true || this.#isUp(copy));
  }

  /** It is needed no more, and empty: nobody is to hold it. */
  end(nowMs: number): void {
    if (this.mayEnd) this.handBack(nobody(this.#options.partition), nowMs);
  }

  /** The owner is away again before the change was sent: goes on as it was. */
  keep(nowMs: number): void {
    if (this.#state === HolderState.HANDING_BACK && this.#handing === undefined) {
      this.#goOnAfterAll(nowMs, 'not handed back');
    }
  }

  #goOnAfterAll(nowMs: number, why: string): void {
    this.#owner = undefined;
    const before = this.#set?.isPartial === true ? HolderState.READING : HolderState.HOLDER;
    this.#enter(before, nowMs, why);
    this.#ports.memory.resume();
  }

  relocate(storeId: string, isStopping = false): void {
    this.#set?.relocate(storeId, isStopping);
  }

  /** It waits for a person, and an order that gives these stores up is for it. */
  awaitsOrder(storeIds: readonly string[], nowMs: number): boolean {
    return this.waitsFor(nowMs) === Waiting.COPIES_AWAY && this.#mayGiveUp(storeIds, nowMs);
  }

  /**
   * May it go on without what these stores have? They are all that is away; who names none means what only a
   * process had in memory, which nobody gives up by naming stores.
   *
   *   it waits in                      the order names                     it goes on
   *   ASKING for stores that must      each that has said nothing          as if they knew nothing
   *   answer
   *   HOLDER that may not write its    likewise                            by writing it
   *   record again
   *   ASKING, FENCING, IDLE            stores of all copies that count     with FOUNDING
   *   READING whose source is away     likewise; when all of these are     with FOUNDING, or from a copy that
   *                                    gone, of those that had left        had left and is back
   *   the same, all copies gone        none                                with FOUNDING, unless the process
   *                                                                        that had it has a session
   */
  #mayGiveUp(storeIds: readonly string[], nowMs: number): boolean {
    // Who waits for a change says so first, and goes on as it was (13).
    if (this.#state === HolderState.HANDING_BACK || this.#known.read === undefined) return false;
    const isWaiting = this.#state === HolderState.FENCING || this.#state === HolderState.IDLE
      || (this.#state === HolderState.ASKING && this.#answers.haveReachableAnswered())
      || this.#isReadingInVain(nowMs) || this.#isRewriteHeldUp(nowMs);
    const { stores } = this.away;
    const isMeant = (storeIds.length === 0) === (stores.length === 0)
      && stores.every((store) => storeIds.includes(store));
    if (!isWaiting || !isMeant) return false;
    if (this.#unheardStores().length > 0) return this.#ports.stores.areAllKnown();
    return (this.#record ?? this.#known.newest) !== undefined
      && !this.#counting.some((each) => this.#isUp(each));
  }

  /** THE ONE ORDER of a person (16): false when it is not for this one, or one of these copies answers. */
  giveUp(storeIds: readonly string[], nowMs: number): boolean {
    if (!this.#mayGiveUp(storeIds, nowMs)) return false;
    const unheard = this.#unheardStores();
    if (unheard.length === 0) {
      this.#giveUpCopies(false, nowMs);
      return true;
    }
    const { wouldBeginEmpty } = this;
    const wereGone = this.#isLossAtStake;
    this.#goOnWithout(unheard, nowMs);
    // Whoever gave it was told that nothing is left: it named the stores of copies, too.
    if (wouldBeginEmpty && this.#state === HolderState.ASKING && this.#mayGiveUp(storeIds, nowMs)) {
      this.#giveUpCopies(wereGone, nowMs);
    }
    return true;
  }

  /** `wereGone`: their stores were up in another boot before they fell silent: their disks may be back. */
  #giveUpCopies(wereGone: boolean, nowMs: number): void {
    const record = this.#record ?? this.#known.newest;
    if (record === undefined) return;
    const given = this.#counting;
    // With these goes what they alone had: a copy that left has the rest.
    const spared = this.#spared(record);
    // What only the record names is of an older history: it is not read, but taken in.
    const read = this.#set === undefined ? NO_MEMBERS : spared.filter((each) => this.#isUp(each));
    const asGone = wereGone ? { isGone: true as const } : {};
    const added = [...this.#asGivenUp(spared.filter((each) => !read.includes(each)), record),
      ...given.map(({ storeId, bootId }) => ({ storeId, bootId, epoch: record.epoch, ...asGone }))];
    this.#goOnFrom(record, read.map(bareMember), added, given.length === 0, nowMs);
  }

  #goOnFrom(
    record: PartitionRecord, rest: readonly RecordedMember[], added: readonly GivenUpCopy[],
    isMemoryAtStake: boolean, nowMs: number,
  ): void {
    if (this.#state === HolderState.IDLE) this.#enter(HolderState.ASKING, nowMs, 'copies given up');
    if (this.#set !== undefined) this.#forget();
    if (rest.length === 0) this.#foundWithout(record, added, isMemoryAtStake, nowMs);
    else this.#takeOver(this.#readFrom(rest, record, added), nowMs, 'copies given up');
  }

  /** Its mail is lost, but for that of copies which are still to be taken in. */
  #foundWithout(
    record: PartitionRecord, added: readonly GivenUpCopy[], isMemoryAtStake: boolean, nowMs: number,
  ): void {
    const gaveUp = withGivenUp(record, [...this.#goneOf(record, added), ...added]);
    const left = record.left.filter(({ storeId, bootId }) => !isMemberOf(gaveUp, storeId, bootId));
    // What this process itself does not have any more, nobody has.
    const isOther = !isSameHolder(record.holder, this.#options.self);
    const unlessSessionOf = isMemoryAtStake && isOther ? record.holder : undefined;
    this.#found({ isLoss: true, gaveUp, left, line: lineAfter(record), unlessSessionOf }, nowMs);
  }

  /**
   * Members whose stores are up in another boot. One may only have started without its disk, and be back with
   * the file of the boot that counts.
   */
  #goneOf({ members, epoch }: PartitionRecord, stay: readonly RecordedMember[]): readonly GivenUpCopy[] {
    const others = [...this.#known.apart, ...stay];
    return members
      .filter((each) => this.#isGone(each) && !isMemberOf(others, each.storeId, each.bootId))
      .map(({ storeId, bootId }) => ({ storeId, bootId, epoch, isGone: true as const }));
  }

  /**
   * No store takes a founding: where what was set aside is back, or what the register has lost, none is free.
   * One of these copies is read instead, like one that had left. One that was fenced by no term since was not
   * taken in by anybody: it has all that those have which counted with it. They go when its mail is where it
   * is safe, not before.
   */
  #readBack({ gaveUp: given, left, line: before, unlessSessionOf }: FoundBase, nowMs: number): boolean {
    const forgotten = forgottenCopies(this.#answers.byStore, before, given);
    const gaveUp = [...given, ...forgotten];
    const back = gaveUp.filter((copy) => this.#answers.of(copy) !== undefined);
    const whole = back.find((copy) => this.#isWhole(copy));
    const source = whole ?? back[0];
    if (source === undefined) return false;
    const told = forgotten.includes(source) ? this.#answers.of(source)?.told : undefined;
    const line = told === undefined ? before : lineWith(before, { term: told.term, epoch: told.epoch });
    const isWhole = (copy: GivenUpCopy): boolean =>
      this.#isWhole(copy) || (whole !== undefined && mailOf(copy) === mailOf(whole));
    const others = eachAlone(gaveUp, before[0]?.epoch ?? 0, isWhole)
      .filter(({ storeId, bootId }) => !isMemberOf([source], storeId, bootId)).slice(-GAVE_UP_MAX);
    const term = this.#nextTerm();
    const record = {
      epoch: term.number, term, holder: this.#options.self, members: [bareMember(source)],
      gaveUp: others, left, line,
    };
    const covers = whole?.isAlone === true ? undefined : whole?.epoch;
    const claim = { record, isFounding: false, isLoss: true, mustWaitOut: false, covers };
    this.#claimFor({ ...claim, unlessSessionOf }, nowMs, `what was set aside at ${source.storeId} is back`);
    return true;
  }

  /** Who takes a copy in fences it first, by a term above the record that set it aside. */
  #isWhole(copy: GivenUpCopy): boolean {
    return (this.#answers.of(copy)?.termNumber ?? Infinity) <= copy.epoch;
  }

  /** Goes on from copies that had left: what was taken in since may be in none of those that stay. */
  #readFrom(
    left: readonly RecordedMember[], record: PartitionRecord, added: readonly GivenUpCopy[],
  ): PartitionRecord {
    const all = withGivenUp(record, [...this.#goneOf(record, [...left, ...added]), ...added]);
    const gaveUp = eachAlone(all, record.epoch, () => false);
    return { ...record, members: left.map(bareMember), gaveUp };
  }

  /** What these stores may know is given up: a loss, or what others were told, is believed without them. */
  #goOnWithout(unheard: readonly string[], nowMs: number): void {
    for (const storeId of unheard) this.#answers.giveUp(storeId);
    // Who holds it writes its record again at the next tick.
    if (this.#state === HolderState.ASKING) this.#consider(nowMs);
  }

  // ── time ────────────────────────────────────────────────────────────────────────────────────────

  tick(nowMs: number): void {
    const overdue = this.#talk.expire(nowMs);
    if (overdue !== Question.NONE) this.#noteSilence(overdue, nowMs);
    switch (this.#state) {
      case HolderState.IDLE:
        if (this.#mustRead || nowMs >= this.#lookAtMs) this.#lookAt(nowMs);
        break;
      case HolderState.ASKING:
        if (nowMs >= this.#lookAtMs) this.#mustRead = true;
        this.#ask(nowMs);
        this.#consider(nowMs);
        break;
      case HolderState.FOUNDING:
        if (nowMs >= this.#lookAtMs) this.#mustRead = true;
        this.#goOnFounding(nowMs);
        break;
      case HolderState.FENCING:
      case HolderState.WAITING_OUT:
        this.#goOnTaking(nowMs);
        break;
      case HolderState.READING:
      case HolderState.HOLDER:
      case HolderState.HANDING_BACK:
        this.#goOnHolding(nowMs);
        break;
      case HolderState.LOST:
        this.#enter(HolderState.ASKING, nowMs, 'looks again');
        break;
      case HolderState.CLAIMING:
        this.#goOnClaiming(nowMs);
        break;
    }
    this.#speak(nowMs);
  }

  // ── who may take (9) ────────────────────────────────────────────────────────────────────────────

  #lookAt(nowMs: number): void {
    this.#mustRead = true;
    this.#enter(HolderState.ASKING, nowMs, 'to be looked at');
  }

  /**
   * The register was put back, and has gone on by another line. Of what was undone there is no copy, as every
   * store has said by now, and who held it has had time to write it again: the mail of the record that is in
   * the register does not wait for it any longer (15).
   */
  #isOvertaken(nowMs: number): boolean {
    return this.#known.isOffLine
      && nowMs - this.#enteredMs >= this.#options.awayAfterMs && !this.#someMemberAnswered();
  }

  /**
   * The register knows nothing, or less than somebody was told; or all would be lost if it were right (15).
   */
  #mustAskAll(): boolean {
    const { read, believed } = this.#known;
    if (read === undefined) return false;
    return read.isDoubted === true || read.record === undefined || believed !== read.record
      || this.#isLossAtStake;
  }

  /** Once every copy was gone, only one that answers ends it: a store may have fallen silent again. */
  #noteLoss(): void {
    const record = this.#known.believed;
    const { self } = this.#options;
    this.#isLossAtStake = record !== undefined && record === this.#known.read?.record && !isEnded(record)
      && (isSameHolder(record.holder, self) || this.#ports.isProvenDead(record.holder))
      && (this.#areAllGone(record.members) || (this.#isLossAtStake && !this.#someMemberAnswered()));
  }

  #someMemberAnswered(): boolean {
    return this.#known.members.some((member) => this.#answers.of(member) !== undefined);
  }

  /**
   * Its store has answered in the boot that counts. One that has no copy may have dropped it just when a
   * change that names it was on its way: only the fence tells that for sure (#noteApart).
   */
  #hasSpoken({ storeId, bootId }: RecordedMember): boolean {
    return this.#answers.byStore.get(storeId)?.bootId === bootId;
  }

  /** Whose session is only missing, and who lives, renews it. */
  #isLeaseRunningOut(): boolean {
    return this.#known.members.some((member) => this.#answers.of(member)?.isRunningOut);
  }

  #ask(nowMs: number): void {
    this.#noteLoss();
    const record = this.#known.believed;
    const askedMs = nowMs - this.#askedMs;
    // Rescuers hear of the end of a lease at one time, whenever each asked: their turns are shorter than the
    // time between two questions.
    const isDue = askedMs >= this.#options.retryMs
      || (askedMs >= END_AGAIN_MS && this.#answers.isLeaseOver(nowMs));
    if (!isDue || this.#mustRead) return;
    this.#askedMs = nowMs;
    const about = record?.holder ?? this.#options.self;
    // Where no member answers, another store may know of a newer record: the register
    // may have been rolled back.
    const hasEnded = record !== undefined && isEnded(record);
    const isAll = hasEnded || this.#mustAskAll() || this.#isTakeAtStake
      || (nowMs - this.#enteredMs >= this.#options.awayAfterMs && !this.#someMemberAnswered());
    const stores = isAll ? this.#ports.stores.all()
      : (record?.members ?? NO_MEMBERS).map((member) => member.storeId);
    for (const storeId of stores) {
      if (this.#ports.stores.bootOf(storeId) !== '') this.#ports.stores.ask(storeId, about);
    }
  }

  #consider(nowMs: number): void {
    this.#noteLoss();
    if (this.#mustRead || this.#known.read === undefined) return;
    this.#forgetUnended();
    if (this.#mustAskAll() && !this.#answers.areComplete()) return;
    if (this.#isOvertaken(nowMs)) {
      this.#trace(`epoch ${String(this.#known.newest?.epoch)} was undone, and no copy of it is left`);
      this.#known.noteOvertaken();
      // These told of the leases of another holder.
      this.#answers.clear();
      this.#askedMs = -Infinity;
      return;
    }
    const record = this.#known.believed;
    if (record === undefined || isEnded(record)) this.#considerEnded(record, nowMs);
    else if (isSameHolder(record.holder, this.#options.self)) this.#considerOwnName(record, nowMs);
    else if (this.#isFromDead(record)) this.#takeFromDead(record, nowMs);
    else this.#considerAnother(record, nowMs);
  }

  /** Who is to have it begins it anew; what its end did not know may have no copy left, or a newer one. */
  #forgetUnended(): void {
    const end = this.#known.endBehind;
    if (end === undefined) return;
    const isAnother = this.#answers.haveReachableAnswered()
      && this.#answers.unknownTo(end)?.epoch !== this.#known.believed?.epoch;
    if (isAnother || this.#ports.mayBegin()) this.#known.noteUnended(undefined);
  }

  /**
   * Who is to have it begins it anew, and takes in whatever comes up. Others look whether a store has what
   * the end of it did not know: that is taken over, like what never ended (15).
   */
  #considerEnded(ended: PartitionRecord | undefined, nowMs: number): void {
    if (this.#ports.mayBegin()) {
      // What has ended names every copy that there may be: one that was not told is away.
      const left = ended?.members ?? NO_MEMBERS;
      const line = ended === undefined ? NO_LINE : lineAfter(ended);
      // What was given up may have had it.
      const isLoss = ended === undefined && this.#answers.isSomeGivenUp;
      this.#found({ isLoss, gaveUp: [], left, line, unlessSessionOf: undefined }, nowMs);
      return;
    }
    if (ended !== undefined && !this.#answers.haveReachableAnswered()) return;
    const unended = ended === undefined ? undefined : this.#answers.unknownTo(ended);
    if (unended === undefined) {
      this.#rest(nowMs);
      return;
    }
    this.#known.noteUnended(unended);
    this.#trace(`has ended, but for mail of epoch ${String(unended.epoch)}, which was undone`);
    // These told of nobody's leases.
    this.#answers.clear();
    this.#askedMs = -Infinity;
  }

  /**
   * The record bears our name: by a hand-back, by a change of ours that was made late,
   * or by a term that we left.
   */
  #considerOwnName(record: PartitionRecord, nowMs: number): void {
    const isNew = record.term.number > this.#leftTerm.number;
    if (this.#areAllGone(record.members)) this.#foundLost(record, nowMs);
    else if (!record.members.some((member) => this.#hasSpoken(member))) return;
    else if (isNew && this.#known.read?.record === record) {
      this.#enterTerm(record, nowMs, 'the record names us');
    } else this.#takeOnceHeard(record, nowMs, 'the record names us by a term that was left');
  }

  /**
   * The lock file proves it. What belongs to another gateway is for that one to take; but of what no store
   * has any more, this process alone knows that nobody has it in memory.
   */
  #isFromDead(record: PartitionRecord): boolean {
    return (this.#options.isOwn || this.#areAllGone(record.members)) && this.#known.isInRegister(record)
      && this.#ports.isProvenDead(record.holder);
  }

  /** There is nobody to wait for, and no memory to lose. */
  #takeFromDead(record: PartitionRecord, nowMs: number): void {
    this.#provenDead = record.holder;
    if (this.#areAllGone(record.members)) this.#foundLost(record, nowMs);
    else if (record.members.some((member) => this.#hasSpoken(member))) {
      this.#takeOnceHeard(record, nowMs, `${holderKey(record.holder)} is proven dead`);
    }
  }

  /** Nobody has what the record names, and no store knows of a newer one (15). */
  #foundLost(record: PartitionRecord, nowMs: number): void {
    this.#foundWithout(record, this.#asGivenUp(this.#spared(record), record), false, nowMs);
  }

  /** Stores without whose answer nothing is done. */
  #unheardStores(): readonly string[] {
    const isAsking = this.#state === HolderState.ASKING && this.#mustAskAll();
    if (!isAsking && this.#rolledBackTo === undefined) return [];
    return this.#answers.awaited();
  }

  /** A store that only starts a little later than this process is no matter for a person. */
  #isUnheardForLong(nowMs: number): boolean {
    const { awayAfterMs, replaceAfterMs } = this.#options;
    return this.#ports.stores.areAllKnown() && this.#answers.haveReachableAnswered()
      && nowMs - this.#enteredMs >= (this.#isLossAtStake ? awayAfterMs : replaceAfterMs);
  }

  #considerAnother(record: PartitionRecord, nowMs: number): void {
    const { isUntaken } = this;
    const isOut = record.members.some((member) => this.#answers.of(member)?.leaseLeftMs === 0);
    if (!isOut && !isUntaken) {
      this.#leaseOutSinceMs = Infinity;
      const isHeld = this.#someMemberAnswered();
      if ((isHeld || record.members.length === 0) && this.#known.hasSession) this.#rest(nowMs);
      return;
    }
    if (this.#leaseOutSinceMs === Infinity) this.#leaseOutSinceMs = nowMs;
    const outMs = nowMs - this.#leaseOutSinceMs;
    const { awayAfterMs, rescueDelayMs, replaceAfterMs, self } = this.#options;
    const isPredecessor = record.holder.gatewayId === self.gatewayId;
    const isSessionGone = this.#known.read?.hasSession === false && !this.#mustAskAll();
    // Who was just named is about to take it.
    const patienceMs = (isPredecessor ? 0 : rescueDelayMs) + (isOut ? 0 : awayAfterMs);
    const mayTake = outMs >= replaceAfterMs || ((isPredecessor || isSessionGone) && outMs >= patienceMs);
    const who = holderKey(record.holder);
    const why = isOut ? `the lease of ${who} has run out` : `${who} has taken its term at no copy`;
    if (mayTake) this.#takeOnceHeard(record, nowMs, why);
  }

  /**
   * The record names another process, which has taken its term at no copy that answers: it holds nothing of
   * it, whatever lease it has there for other partitions. So it is when it is cut off from the register as
   * soon as that names it.
   */
  get isUntaken(): boolean {
    const record = this.#known.believed;
    if (this.#state !== HolderState.ASKING || record === undefined) return false;
    const { number } = record.term;
    return this.#someMemberAnswered()
      && record.members.every((member) => (this.#answers.of(member)?.termNumber ?? 0) < number);
  }

  #areAllGone(members: readonly RecordedMember[]): boolean {
    return members.every((member) => this.#isGone(member));
  }

  /** Its store is up, in another boot, or has emptied it. */
  #isGone({ storeId, bootId }: RecordedMember): boolean {
    const boot = this.#ports.stores.bootOf(storeId);
    return boot !== '' && (boot !== bootId || isMemberOf(this.#known.apart, storeId, bootId));
  }

  #rest(nowMs: number): void {
    this.#answers.awaitAll();
    this.#enter(HolderState.IDLE, nowMs, 'nothing to take');
  }

  // ── taking: change, fence, wait, read ───────────────────────────────────────────────────────────

  /**
   * Each store that can be reached has said what it was told: one that answers may have left by a record that
   * the register has forgotten (15).
   */
  #takeOnceHeard(record: PartitionRecord, nowMs: number, why: string): void {
    if (this.#answers.haveReachableAnswered()) {
      this.#takeOver(record, nowMs, why);
    } else if (!this.#isTakeAtStake) {
      this.#isTakeAtStake = true;
      this.#askedMs = -Infinity;
      this.#ask(nowMs);
    }
  }

  #takeOver(record: PartitionRecord, nowMs: number, why: string, unlessSessionOf?: HolderId): void {
    const term = this.#nextTerm();
    const claimed = { ...record, epoch: term.number, term, holder: this.#options.self,
      line: lineAfter(record) };
    const claim = { record: claimed, isFounding: false, isLoss: false, mustWaitOut: false };
    this.#claimFor({ ...claim, unlessSessionOf }, nowMs, why);
  }

  #claimFor(claim: Claim, nowMs: number, why: string): void {
    this.#claim = claim;
    this.#record = undefined;
    this.#fenced = [];
    this.#outside.forget();
    this.#talk.hurry();
    this.#enter(HolderState.CLAIMING, nowMs, why);
  }

  /**
   * A claim is sent again only while a copy can be read: the holder that it deposes may be alive, and the
   * last copy. One that was sent may still be made: then the record names us, and that is looked at like any
   * other.
   */
  #goOnClaiming(nowMs: number): void {
    const claim = this.#claim;
    if (claim === undefined || claim.isFounding || !this.#talk.mayAsk(nowMs)
      || claim.record.members.some((each) => this.#isUp(each))) {
      return;
    }
    this.#dropClaim(nowMs, 'no member can be read any more');
  }

  #dropClaim(nowMs: number, why: string): void {
    if (this.#state !== HolderState.CLAIMING) return;
    this.#talk.dropped();
    this.#claim = undefined;
    this.#changing = undefined;
    this.#isUnknown = false;
    this.#enter(HolderState.ASKING, nowMs, why);
  }

  #enterTerm(record: PartitionRecord, nowMs: number, why: string): void {
    this.#record = record;
    this.#hasRules = false;
    this.#fenced = [];
    this.#waitUntilMs = -Infinity;
    this.#changing = undefined;
    this.#enter(HolderState.FENCING, nowMs, why);
    this.#fenceAll(nowMs);
  }

  #fenceAll(nowMs: number): void {
    const record = this.#record;
    // What was founded has our term everywhere; no member of it can tell of leases elsewhere.
    if (record === undefined || this.#waitUntilMs !== -Infinity) return;
    for (const member of record.members) {
      if (this.#ports.stores.bootOf(member.storeId) !== member.bootId) continue;
      const known = this.#fenced.find((each) => each.member.storeId === member.storeId);
      if (known !== undefined) known.askedMs = nowMs;
      this.#ports.stores.fence(member, record.term, this.#provenDead);
    }
    this.#askedMs = nowMs;
  }

  #goOnTaking(nowMs: number): void {
    if (this.#waitUntilMs !== -Infinity) {
      if (nowMs >= this.#waitUntilMs) this.#holdEmpty(nowMs);
      return;
    }
    if (nowMs - this.#askedMs >= this.#options.retryMs) this.#fenceAll(nowMs);
    this.#waitOut(nowMs);
    const record = this.#record;
    if (this.#state !== HolderState.FENCING || record === undefined || !this.#areAllGone(record.members)) {
      return;
    }
    // Whoever held it before us is deposed, and every copy is surely gone, if this is the newest record.
    this.#lose(nowMs, 'every copy is gone');
  }

  /**
   * At one member no lease of an older term is left: nobody delivers any more. Then the furthest
   * fenced member is read. The others are given a moment to answer: one that is further would be filled anew,
   * where one that is behind needs only a tail.
   */
  #waitOut(nowMs: number): void {
    if (this.#state !== HolderState.WAITING_OUT
      || !this.#fenced.some(({ answer }) => answer.olderLeaseMs === 0)) {
      return;
    }
    if (nowMs - this.#enteredMs < OTHERS_WAIT_MS && this.#isFenceAwaited()) return;
    let furthest: Fenced | undefined;
    for (const each of this.#fenced) {
      if (furthest === undefined || isFurther(each.answer, furthest.answer)) furthest = each;
    }
    if (furthest !== undefined) this.#startReading(furthest, nowMs);
  }

  /** A member that can be reached has not answered yet. */
  #isFenceAwaited(): boolean {
    const members = this.#record?.members ?? NO_MEMBERS;
    return members.some((member) => this.#isUp(member)
      && !this.#fenced.some(({ member: { storeId } }) => storeId === member.storeId));
  }

  #startReading({ member, answer: { at } }: Fenced, nowMs: number): void {
    const record = this.#record;
    invariant(record !== undefined, 'only what the record says is ours is read');
    this.#ports.memory.read(member, at);
    this.#isSourceAway = false;
    const set = this.#makeSet(record, nowMs);
    const source = set.rowOf(member.storeId, member.bootId);
    invariant(source !== undefined, 'a recorded member is read');
    this.#enter(HolderState.READING, nowMs, `from ${member.storeId} at ${String(at.number)}`);
    set.readFrom(source, at.number, nowMs);
  }

  #makeSet(record: PartitionRecord, nowMs: number): PartitionSet {
    this.#set = new PartitionSet(this.#options, this.#memberPorts(), record, nowMs, (row, before, after) => {
      this.#trace(
        `member ${row.storeId}/${row.bootId} ${MEMBER_STATE_NAMES[before]} -> ${MEMBER_STATE_NAMES[after]}`,
      );
    });
    this.#fenced = [];
    this.#answers.awaitAll();
    for (const { told } of this.#answers.byStore.values()) this.#noteForgotten(told);
    return this.#set;
  }

  // ── founding (7) ────────────────────────────────────────────────────────────────────────────────

  #found(base: FoundBase, nowMs: number): void {
    if (this.#record !== undefined) this.#leftTerm = this.#record.term;
    this.#record = undefined;
    this.#enter(HolderState.FOUNDING, nowMs, base.isLoss ? 'every copy is lost' : 'a new partition');
    const { members, stores } = this.#ports;
    const ports = {
      members, stores, nextTerm: () => this.#firstTerm(),
      isUp: (copy: RecordedMember) => this.#isUp(copy), isGone: (copy: RecordedMember) => this.#isGone(copy),
    };
    this.#founding = new Founding(this.#options, ports, base, this.#known.newest, nowMs);
  }

  #goOnFounding(nowMs: number): void {
    const founding = this.#founding;
    if (founding === undefined) return;
    const over = founding.overFor(this.#known.newest);
    if (over !== '') {
      this.#enter(HolderState.ASKING, nowMs, over);
      return;
    }
    const founded = founding.record(this.#options.self, nowMs);
    if (founded === undefined) {
      // A path was away for a moment: what its store has is asked again before it may be emptied.
      this.#askUnheard(nowMs);
      if (founding.isUnbegun(nowMs) && this.#readBack(founding.base, nowMs)) return;
      founding.ask(this.#answers.byStore, this.#answers.unheard, nowMs);
      return;
    }
    const { isLoss, line, unlessSessionOf } = founding.base;
    const isWhole = (copy: GivenUpCopy): boolean => this.#isWhole(copy);
    const record = { ...founded, gaveUp: eachAlone(founded.gaveUp, line[0]?.epoch ?? 0, isWhole) };
    const mustWaitOut = founding.mustWaitOut(this.#provenDead);
    this.#claimFor({ record, isFounding: true, isLoss, mustWaitOut, unlessSessionOf }, nowMs, 'founded');
  }

  #enterFounded(claim: Claim, nowMs: number): void {
    this.#record = claim.record;
    this.#hasRules = false;
    this.#changing = undefined;
    if (claim.mustWaitOut) {
      this.#enter(HolderState.WAITING_OUT, nowMs, 'leases that nobody can tell of');
      this.#waitUntilMs = nowMs + this.#options.longestLeaseMs;
    } else {
      this.#holdEmpty(nowMs);
    }
  }

  #holdEmpty(nowMs: number): void {
    const record = this.#record;
    invariant(record !== undefined, 'what is founded has a record');
    this.#waitUntilMs = -Infinity;
    this.#ports.memory.begin(this.#claim?.isLoss ?? false);
    const set = this.#makeSet(record, nowMs);
    set.allHaveTerm(nowMs);
    for (const row of set.rows) if (!this.#isUp(row)) set.onLinkDown(row.storeId, nowMs);
    this.#enter(HolderState.HOLDER, nowMs, 'founded');
    this.onHistoryRead(nowMs);
  }

  // ── holding ─────────────────────────────────────────────────────────────────────────────────────

  #goOnHolding(nowMs: number): void {
    const set = this.#set;
    if (set === undefined) return;
    if (this.#state === HolderState.HANDING_BACK && this.#isHeldUp(set, nowMs)) this.keep(nowMs);
    if (this.#state === HolderState.READING && !this.#hasSource(set, nowMs)) return;
    this.#askUnheard(nowMs);
    set.tick(nowMs);
    const isStored = set.rows.some((row) => row.isFed || (row.isRecorded && row.isInStep));
    this.#unstoredSinceMs = isStored ? Infinity : Math.min(this.#unstoredSinceMs, nowMs);
    const isQuiet = this.#state === HolderState.HANDING_BACK && this.#isQuiet && !this.#isUnknown;
    if (isQuiet && this.#areAllHeard(set)) {
      // One that was gone is back since.
      if (this.#owner?.incarnation === 0 && this.#awaitedBack.length > 0) this.keep(nowMs);
      else this.#give(set);
    }
    if (this.#state === HolderState.HOLDER && this.#record !== undefined) {
      this.#outside.adoptThoseBack(this.#record, set.areEnough);
    }
  }

  /**
   * A member that acknowledges nothing would hold it up, and it has to be here to go on reading; so would a
   * change that the register has not answered, and, where a member has died since, the filling of another.
   */
  #isHeldUp(set: PartitionSet, nowMs: number): boolean {
    return this.#isUnknown || (set.isPartial && !set.isInStep)
      || (this.#owner !== undefined && this.#isSecondAwaited(this.#owner, nowMs));
  }

  /**
   * Each member has all, and has answered a heartbeat since: what is forgotten here is there. One that has
   * died is known by its silence only later.
   */
  #areAllHeard(set: PartitionSet): boolean {
    const before = this.#leasesWhenLevel;
    if (!set.isLevel) {
      before.clear();
      return false;
    }
    let areHeard = true;
    for (const row of set.rows) {
      if (!row.isRecorded) continue;
      const { endsMs } = row.lease;
      const endedMs = before.get(row);
      // One may have joined since.
      if (endedMs === undefined) before.set(row, endsMs);
      if (endedMs === undefined || endsMs <= endedMs) areHeard = false;
    }
    return areHeard;
  }

  /** False when the source died and rule 9 begins anew (14). */
  #hasSource(set: PartitionSet, nowMs: number): boolean {
    const { source } = set;
    if (source === undefined) return true;
    const other = set.otherSource();
    // One that is to be moved away may go when another, which has all of it, is read.
    if (source.isInStep && !(source.isUnwanted && other?.isUnwanted === false)) {
      if (this.#isSourceAway) this.#readOn(source);
      return true;
    }
    this.#isSourceAway = true;
    if (other !== undefined) {
      set.switchSource(other);
      this.#trace(`PARTIAL reads on from ${other.storeId}`);
      this.#readOn(other);
      return true;
    }
    // The source itself will do for another beginning, if nothing was adopted yet, or it
    // can't be brought in step.
    const isSourceFit = set.isHistoryKnown && !source.isDiverged;
    const isOtherUp = set.rows.some((row) => (row !== source || !isSourceFit) && row.isRecorded
      && !row.isGone && this.#isUp(row));
    // One that counts, and is silent, lacks less; so does the source, when it is back.
    const isOneLeft = isOtherUp || !source.isGone
      || set.rows.some((row) => row !== source && row.isRecorded && !row.isGone);
    // Before the history is known nothing was made that the heir could lack, and it can't be compared.
    const { heir } = set;
    const isHeirRead = !isOneLeft && !set.isHistoryKnown && heir !== undefined;
    const left = isOneLeft ? undefined : isHeirRead ? heir : set.lastResort;
    const isDue = isOtherUp ? source.isGone || nowMs - source.weakSinceMs >= this.#options.dropAfterMs
      : source.isGone && (isHeirRead || heir === undefined) && (left === undefined || this.#isUp(left));
    if (!isDue || !set.records.isSettled || this.#rolledBackTo !== undefined) return true;
    // Without the register nothing would begin, and the source may be back before it is: it is asked first.
    if (!this.#talk.hasJustAnswered(nowMs)) {
      this.#mustRead = true;
      return true;
    }
    const record = set.records.known;
    this.#trace('PARTIAL source died: the takeover begins anew');
    this.#forget();
    // What committed while that one counted is there: the changes it lacks did not, or are lost.
    const rest = left === undefined ? record : this.#readFrom([left], record, NO_GIVEN);
    this.#takeOver(rest, nowMs, 'the member that was read is away');
    return false;
  }

  /** Everything that could be read, or read on from, is silent. */
  #isReadingInVain(nowMs: number): boolean {
    const set = this.#set;
    if (set?.source === undefined || nowMs - set.source.weakSinceMs < this.#options.awayAfterMs) return false;
    return set.rows.every((row) => row.state === MemberState.NG || row.isEmptied)
      && this.#awaited().length > 0;
  }

  #readOn(source: PartitionMember): void {
    this.#isSourceAway = false;
    this.#ports.memory.readOn(source);
  }

  #isUp(member: RecordedMember): boolean {
    return this.#ports.stores.bootOf(member.storeId) === member.bootId;
  }

  /**
   * All that the next one needs is at the members. The change is to be known before anything is let go: else
   * nobody would hold the partition while the register is away.
   */
  #give(set: PartitionSet): void {
    const owner = this.#owner;
    if (this.#handing !== undefined || owner === undefined || this.#changing !== undefined
      || this.#rolledBackTo !== undefined) return;
    const record = set.records.known;
    const term = this.#nextTerm();
    const left = set.strays(record.members, NO_MEMBERS);
    const isEnd = owner.incarnation === 0;
    // What has ended names every copy that there may still be: each is to be dropped.
    const copies = isEnd
      ? { members: [...record.members, ...left].slice(0, MEMBERS_MAX), gaveUp: NO_GIVEN, left: NO_MEMBERS }
      : { members: record.members, left };
    const line = isEnd ? lineWithout(lineAfter(record), this.#outside.uncovered(record)) : lineAfter(record);
    this.#handing = { ...record, epoch: term.number, term, holder: owner, line, ...copies };
    this.#talk.hurry();
  }

  /** It has stopped, and is deposed: nobody has to wait for what it was leased. */
  #release(): void {
    for (const row of this.#set?.rows ?? []) if (row.isRecorded) this.#ports.stores.release(row);
    this.#trace('released');
  }

  /**
   * It is deposed, so no record will name what it filled since: a store that took our lease for a sign of a
   * copy in use would let nobody found there while this process lives.
   */
  #releaseFilled(): void {
    for (const row of this.#set?.rows ?? []) {
      if (row.isFed && !row.isRecorded) this.#ports.stores.release(row);
    }
  }

  /**
   * Whether it was given away is not known. Until it is, this process is one that may have been deposed: it
   * delivers while its leases run at all members, which whoever comes next waits for (9). But an end drops
   * copies: nothing is begun that might come to stand in them.
   */
  #stopGiving(handing: PartitionRecord, nowMs: number): void {
    if (isEnded(handing)) return;
    this.#handing = undefined;
    this.#giveAgainMs = nowMs + this.#options.lookAgainMs;
    this.#goOnAfterAll(nowMs, 'the register does not answer');
  }

  #noteForgotten(told: PartitionRecord | undefined): void {
    if (this.#record !== undefined) this.#outside.noteForgotten(this.#record, told);
  }

  /** What nobody has said what it was told, and what is to be taken in, is not emptied. */
  #memberPorts(): MemberPorts {
    const { members } = this.#ports;
    return {
      ...members,
      chooseStore: (taken, only) => members.chooseStore([
        ...taken, ...this.#answers.unheard, ...this.#outside.forgottenStores,
      ], only),
    };
  }

  /** Stores that were not asked yet, or not in this boot: one may know what the register has lost (15). */
  #askUnheard(nowMs: number): void {
    if (nowMs - this.#askedMs < this.#options.retryMs) return;
    this.#askedMs = nowMs;
    const { stores } = this.#ports;
    for (const storeId of stores.all()) {
      if (stores.bootOf(storeId) === '' || !this.#answers.isUnheard(storeId)) continue;
      stores.ask(storeId, this.#options.self);
    }
  }

  /** Fenced, or another holder: stop at once, nobody gets a reply (12). */
  #lose(nowMs: number, why: string): void {
    if (this.#state === HolderState.LOST) return;
    if (this.#handing !== undefined) this.#release();
    this.#forget();
    this.#mustRead = true;
    this.#enter(HolderState.LOST, nowMs, why);
  }

  #forget(): void {
    if (this.#record !== undefined) this.#leftTerm = this.#record.term;
    if (this.#set !== undefined) this.#ports.memory.forget();
    this.#set = undefined;
    this.#record = undefined;
    this.#changing = undefined;
    this.#handing = undefined;
    this.#isUnknown = false;
    this.#rolledBackTo = undefined;
    this.#secondAwaitedMs = Infinity;
    this.#unstoredSinceMs = Infinity;
    this.#fenced = [];
    this.#outside.forget();
    this.#waitUntilMs = -Infinity;
    this.#talk.dropped();
  }

  // ── the conversation with the register ──────────────────────────────────────────────────────────

  #learn(stamped: Stamped, nowMs: number): void {
    const before = this.#known.read;
    if (this.#known.learn(stamped)) this.#talk.learned();
    if (this.#handing !== undefined) this.#learnHanding(stamped, before, nowMs);
    else if (this.#claim !== undefined && this.#state === HolderState.CLAIMING) {
      this.#learnClaim(stamped, before, nowMs);
    }
    else if (this.#state === HolderState.FOUNDING) {
      if (before !== undefined && stamped.revision !== before.revision) {
        this.#enter(HolderState.ASKING, nowMs, 'another change came first');
      }
    } else if (this.#record !== undefined) this.#judge(stamped, before, nowMs);
  }

  /** It has stopped: whoever holds it now, it is given away. */
  #learnHanding(stamped: Stamped, before: Stamped | undefined, nowMs: number): void {
    const own = this.#record;
    const { record } = stamped;
    if (own === undefined || stamped.revision === before?.revision) return;
    if (record === undefined || record.epoch <= own.epoch || isSameTerm(record.term, own.term)) {
      // Another change came first: this one can't be made any more, or the register was put back.
      this.#handing = undefined;
      this.#judge(stamped, before, nowMs);
      return;
    }
    this.#release();
    this.#forget();
    this.#mustRead = true;
    this.#lookAtMs = nowMs + this.#options.lookAgainMs;
    this.#enter(HolderState.IDLE, nowMs, 'handed back');
  }

  #learnClaim(stamped: Stamped, before: Stamped | undefined, nowMs: number): void {
    const { record } = stamped;
    const claim = this.#claim;
    if (claim === undefined) return;
    const isOurs = record !== undefined
      && isSameTerm(record.term, claim.record.term) && isSameHolder(record.holder, this.#options.self);
    if (isOurs) {
      this.#changing = undefined;
      this.#isUnknown = false;
      if (claim.isFounding) {
        this.#enterFounded(claim, nowMs);
        return;
      }
      if (claim.isLoss) this.#ports.memory.noteLoss();
      if (claim.covers !== undefined) this.#outside.cover(claim.covers);
      this.#enterTerm(record, nowMs, `term ${String(record.term.number)}`);
    } else if (before !== undefined && stamped.revision !== before.revision) {
      this.#claim = undefined;
      this.#changing = undefined;
      this.#isUnknown = false;
      this.#enter(HolderState.ASKING, nowMs, 'another change came first');
    }
  }

  /** What the register says of a partition that is ours, as far as we know. */
  #judge(stamped: Stamped, before: Stamped | undefined, nowMs: number): void {
    const own = this.#record;
    const { record } = stamped;
    if (own === undefined) return;
    if (record === undefined || record.epoch < own.epoch || (record.epoch === own.epoch
      && !isSameTerm(record.term, own.term))) {
      this.#noteRollback(stamped, nowMs);
      return;
    }
    if (!isSameHolder(record.holder, this.#options.self) || !isSameTerm(record.term, own.term)) {
      this.#releaseFilled();
      this.#lose(nowMs, `${holderKey(record.holder)} holds it in epoch ${String(record.epoch)}`);
      return;
    }
    if (before !== undefined && stamped.revision === before.revision) return;
    this.#settle(record, nowMs);
  }

  #settle(record: PartitionRecord, nowMs: number): void {
    const before = this.#record?.gaveUp ?? NO_GIVEN;
    this.#record = record;
    this.#outside.settled(record);
    this.#changing = undefined;
    this.#isUnknown = false;
    if (this.#rolledBackTo !== undefined) this.#trace('the record stands again');
    this.#rolledBackTo = undefined;
    this.#talk.hurry();
    const set = this.#set;
    if (set === undefined) return;
    const members = record.members.map(({ storeId, bootId }) => `${storeId}/${bootId}`).join(' ');
    // Before what it allows: the log shows that no reply came earlier.
    this.#trace(`record ${String(record.epoch)} ${members} at ${String(nowMs)}`);
    set.settled(record);
    for (const member of before) {
      if (!isMemberOf(record.gaveUp, member.storeId, member.bootId)) set.release(member);
    }
    // In the turn of the replies that wait for it: members know what they are from the same moment on as
    // clients do.
    set.tell(nowMs);
  }

  /** A store that may know better is silent, and our leases do not show that nobody has taken it. */
  #isRewriteHeldUp(nowMs: number): boolean {
    const set = this.#set;
    if (set === undefined || this.#rolledBackTo === undefined || this.#answers.areComplete()) return false;
    return set.isEmptyPossible || !set.hasAllLeases(nowMs);
  }

  /** The register is older than what we know: it was rolled back, or lost. Nobody stops for that (15). */
  #noteRollback(stamped: Stamped, nowMs: number): void {
    if (this.#set === undefined) {
      this.#lose(nowMs, 'the register is older than the change that made us holder');
      return;
    }
    if (this.#rolledBackTo === undefined) {
      this.#trace('the register was rolled back');
      this.#rolledBackMs = nowMs;
      // What was asked to be changed is asked anew, of what the register says now.
      this.#talk.dropped();
      // What stores were told by now is asked again.
      this.#answers.clear();
      this.#askedMs = -Infinity;
    }
    this.#rolledBackTo = stamped;
  }

  /**
   * May we write our record again? When our leases run, or every store has answered and none knows a newer
   * one. One that does tells of a takeover which the register has forgotten: it is not ours any more.
   */
  #mayRewrite(set: PartitionSet, nowMs: number): boolean {
    if (set.hasAllLeases(nowMs) && !set.isEmptyPossible) return true;
    const own = this.#record;
    if (own === undefined || !this.#answers.areComplete()) return false;
    const newest = this.#known.newest;
    if (newest === undefined || newest.epoch <= own.epoch || isSameTerm(newest.term, own.term)) return true;
    this.#lose(nowMs, `stores were told of epoch ${String(newest.epoch)} of another term`);
    return false;
  }

  #speak(nowMs: number): void {
    if (!this.#talk.mayAsk(nowMs)) return;
    if (this.#mustRead) {
      this.#ports.register.read(this.#talk.ask(Question.READ, nowMs));
      return;
    }
    const stamped = this.#known.read;
    if (stamped === undefined) return;
    // Not sent yet, and a member has died since: what is forgotten here would be nowhere.
    if (this.#changing === undefined && this.#set?.isLevel !== true) this.#handing = undefined;
    if (this.#handing !== undefined) this.#change(stamped, this.#handing, nowMs);
    else if (this.#state === HolderState.CLAIMING && this.#claim !== undefined) {
      this.#change(stamped, this.#claim.record, nowMs, this.#claim.unlessSessionOf);
    } else if (this.#record !== undefined && !this.#hasRules) {
      this.#ports.register.readRules(this.#talk.ask(Question.RULES, nowMs), stamped.revision);
    } else if (this.#set !== undefined && this.#record !== undefined) {
      this.#speakOfMembers(this.#set, this.#record, stamped, nowMs);
    }
  }

  #speakOfMembers(set: PartitionSet, own: PartitionRecord, stamped: Stamped, nowMs: number): void {
    if (this.#rolledBackTo !== undefined) {
      if (this.#mayRewrite(set, nowMs)) this.#changeMembers(set, own, this.#rolledBackTo, own.members, nowMs);
      return;
    }
    const target = set.target(nowMs);
    this.#outside.noteUndone(set, this.#state === HolderState.HOLDER);
    const isWanted = !isSameSet(target, own.members) || set.isEpochTooLow || set.isLeftOver
      || this.#outside.isChangeWanted(set, own, target);
    if ((isWanted || !set.records.isSettled) && set.records.maySend(target)) {
      this.#changeMembers(set, own, stamped, target, nowMs);
    } else if (!set.records.isSettled || this.#isUnknown) {
      this.#changeMembers(set, own, stamped, own.members, nowMs);
    } else if (set.isEmptyPossible && this.#ports.session().id !== this.#tiedSession) {
      this.#ports.register.tieSession(this.#talk.ask(Question.TIE, nowMs), stamped.revision);
    }
  }

  #changeMembers(set: PartitionSet, own: PartitionRecord, base: Stamped, members: readonly RecordedMember[],
    nowMs: number): void {
    const gaveUp = this.#outside.gaveUpWith(set, own, members);
    const left = set.strays(members, this.#outside.adopted)
      .filter(({ storeId, bootId }) => !isMemberOf(gaveUp, storeId, bootId));
    const line = this.#outside.lineWithUndone(own);
    const record = { ...own, epoch: this.#known.nextEpoch(), members, gaveUp, left, line };
    // The session of now stands behind an empty record: it was there before anybody could find one.
    const session = this.#ports.session();
    if (members.length === 0 && set.records.fewestMembers > 0 && nowMs < session.endsMs) {
      this.#tiedSession = session.id;
    }
    if (set.records.maySend(members)) set.sent(record);
    this.#change(base, record, nowMs);
  }

  #change(base: Stamped, record: PartitionRecord, nowMs: number, unlessSessionOf?: HolderId): void {
    this.#changing = record;
    const ticket = this.#talk.ask(Question.CHANGE, nowMs);
    this.#ports.register.change(ticket, base.revision, record, unlessSessionOf);
  }

  #noteSilence(question: number, nowMs: number): void {
    // What it was to change may be known by now, from an answer to something else.
    if (question === Question.CHANGE && this.#changing !== undefined) {
      if (!this.#isUnknown) this.#trace('outcome unknown');
      this.#isUnknown = true;
      this.#mustRead = true;
    }
    if (this.#handing !== undefined) this.#stopGiving(this.#handing, nowMs);
  }

  // ── small things ────────────────────────────────────────────────────────────────────────────────

  #noteTold(told: PartitionRecord | undefined): void {
    if (told === undefined || !this.#known.noteTold(told)) return;
    this.#talk.learned();
    this.#mustRead = true;
  }

  /**
   * Of a beginning. What the partition had may have ended, and be forgotten by all who could be asked: a disk
   * that is found later must not take that end for newer.
   */
  #firstTerm(): Term {
    this.#known.noteEpoch(this.#ports.wallSeconds());
    return this.#nextTerm();
  }

  #nextTerm(): Term {
    return { number: this.#known.nextEpoch(), nonce: this.#ports.nonce() };
  }

  #enter(to: HolderStateValue, nowMs: number, why: string): void {
    if (to === HolderState.ASKING) {
      this.#answers.clear();
      this.#askedMs = -Infinity;
      this.#leaseOutSinceMs = Infinity;
      this.#isLossAtStake = false;
      this.#isTakeAtStake = false;
      this.#provenDead = undefined;
      this.#known.noteUnended(undefined);
      this.#mustRead = true;
    }
    this.#enteredMs = nowMs;
    this.#transition(to, why);
  }

  #transition(to: HolderStateValue, why: string): void {
    const from = this.#state;
    invariant(isValidHolderTransition(from, to),
      `a partition goes from ${HOLDER_STATE_NAMES[from]} to ${HOLDER_STATE_NAMES[to]}: ${why}`);
    this.#state = to;
    this.#trace(`${HOLDER_STATE_NAMES[from]} -> ${HOLDER_STATE_NAMES[to]}: ${why}`);
  }

  #trace(event: string): void {
    this.#ports.trace(`${this.#options.partition} ${event}`);
  }
}

/** It has no copy, and knows no later term or record: by such a one what a deposed holder had is dropped. */
function isOwnLoss({ reason, term, told }: DeclinedAnswer, record: PartitionRecord): boolean {
  return reason === DECLINED_NO_COPY && term.number <= record.term.number
    && (told?.epoch ?? 0) <= record.epoch;
}

/** Only a record younger than this can show the store that what it refused by never came to be. */
function refusedBy({ reason, term, told }: DeclinedAnswer): number {
  return lacksCopy(reason) ? 0 : Math.max(term.number, told?.epoch ?? 0);
}

/**
 * A later term's last change is further than any number of an older one (11: a longer copy is no better one).
 */
function isFurther(a: FencedAnswer, b: FencedAnswer): boolean {
  if (a.at.term.number !== b.at.term.number) return a.at.term.number > b.at.term.number;
  return a.at.number > b.at.number;
}

