/**
 * How one queue passes to this process: its claims at every member of its newest epoch (docs/PROTOCOL.md
 * "Claims", docs/model). One machine a queue; many run side by side, so that a thousand queues cost the
 * round trips of one.
 *
 *              begin / token 0 to all             all answer "would be granted", and count / CLAIM of the first store
 *     IDLE ───────────────────────────► PROBING ──────────────────────────────────────────┐
 *      ▲                                   │                                              ▼
 *      │ time / (asked to begin again)     │ lease runs, first period, other epoch,    CLAIMING ⟲ granted / CLAIM of the next
 *      │                                   │ store lost, unknown there                    │
 *   BACKED_OFF ◄───────────────────────────┴───── the same, token low / RELEASE ◄─────────┤ last granted / CONFIRM at the others
 *      ▲                                                                                  ▼
 *      └──── not confirmed, restarted, owner is back / RELEASE ◄──────────────────── CONFIRMING ── all confirm ──► HELD
 *
 *   state       waits for                               a lost store
 *   PROBING     CLAIMED (token 0) of every member       back off
 *   CLAIMING    CLAIMED of one store, by store ids      release the others, back off
 *   CONFIRMING  CLAIMED of all but the last claimed     release the others, back off
 *   BACKED_OFF  its time, drawn with jitter             –
 *   HELD        –                                       – (what it showed was true in that step; the mirrors see the loss)
 *
 * HELD goes to BACKED_OFF, and all is released, when one of the copies turns out not to count (claiming.ts).
 *
 * A fixed order keeps two claimants from holding half each for ever. After the last grant the other members are
 * asked again: a claim once granted says nothing when its store restarted since, or another claimed meanwhile.
 * Tokens only rise; that of a claim is above every token that any member has told.
 * Pure: stores are asked through ClaimPorts, answers come as onAnswer().
 */
import { invariant } from '../base/invariant.js';
import type { Claimed } from '../protocol/messages/claimed.js';
import { CLAIM_DENIED, CLAIM_GRACE, CLAIM_GRANTED, CLAIM_LEASE_RUNS, CLAIM_UNKNOWN, ROLE_MEMBER, ROLE_SPILLED } from '../protocol/reasons.js';

export const ClaimState = { IDLE: 0, PROBING: 1, CLAIMING: 2, CONFIRMING: 3, HELD: 4, BACKED_OFF: 5 } as const;
export type ClaimState = (typeof ClaimState)[keyof typeof ClaimState];
export const CLAIM_STATE_NAMES = ['IDLE', 'PROBING', 'CLAIMING', 'CONFIRMING', 'HELD', 'BACKED_OFF'] as const;

const VALID: readonly (readonly number[])[] = [
  [ClaimState.PROBING],
  [ClaimState.CLAIMING, ClaimState.BACKED_OFF],
  [ClaimState.CONFIRMING, ClaimState.HELD, ClaimState.BACKED_OFF],
  [ClaimState.HELD, ClaimState.BACKED_OFF],
  [ClaimState.IDLE, ClaimState.BACKED_OFF],
  [ClaimState.IDLE],
];

export function isValidClaimTransition(from: number, to: number): boolean {
  return VALID[from]?.includes(to) ?? false;
}

export type ClaimQuestion = 'probe' | 'claim' | 'confirm';

export interface ClaimPorts {
  nowMs(): number;
  /** From 0 up to 1: two claimants must not come back at the same moment for ever. */
  random(): number;
  /** False when the store can't be asked. */
  ask(storeId: string, question: ClaimQuestion, token: number): boolean;
  release(storeId: string, token: number): void;
  /** The boot that the store shows now. */
  bootIdOf(storeId: string): string;
  /** A member does not know the queue, or has no more than the name of a newer set: true when the others may be taken without it. */
  mayMiss(storeId: string, isNewer: boolean): boolean;
  /** All have answered, and what each showed is as it was: a claim changes it. One that does not count as a member; '' none. */
  doesNotCount(): string;
  /** Every claim stands. */
  onHeld(): void;
  /** Not now: `why` is for the log, `waitMs` what a store said of a lease or of its first period. */
  onBackedOff(why: ClaimFailure, storeId: string, waitMs: number): void;
}

export type ClaimFailure = 'lease runs' | 'first lease period' | 'another claims' | 'newer epoch' | 'store lost' | 'store restarted' | 'came back empty' | 'denied' | 'owner is back';

/** What a member said of the queue, and in which boot. */
interface Grant {
  readonly bootId: string;
  confirmed: boolean;
}

const BACK_OFF_FIRST_MS = 250;
const BACK_OFF_MAX_MS = 1000;

export class ClaimMachine {
  /** Of the claims: rises, and stays when they stand. */
  token: number;
  private current: ClaimState = ClaimState.IDLE;
  private readonly ports: ClaimPorts;
  private members: string[] = [];
  private epoch = 0;
  private readonly probed = new Set<string>();
  /** Members that do not know the queue any more and may be missed. */
  private readonly empty = new Set<string>();
  private readonly grants = new Map<string, Grant>();
  /** Stores that have a CLAIM of ours, granted or not yet answered. */
  private readonly claimed = new Set<string>();
  private claiming = 0;
  /** The newest epoch that was found in a probe to be above the one judged. */
  private overtakenBy = 0;
  private failures = 0;
  private retryMs = 0;

  constructor(token: number, ports: ClaimPorts) {
    this.token = token;
    this.ports = ports;
  }

  get state(): ClaimState {
    return this.current;
  }

  get isAsking(): boolean {
    return this.current === ClaimState.PROBING || this.current === ClaimState.CLAIMING || this.current === ClaimState.CONFIRMING;
  }

  /** When the back-off is over. */
  get retryAtMs(): number {
    return this.retryMs;
  }

  /** Whether the claim at this store stands as far as this machine knows. */
  holds(storeId: string): boolean {
    return this.current === ClaimState.HELD && this.grants.has(storeId);
  }

  /** Asks all `members` of epoch `epoch`. Back-off must be over: reset() first. */
  begin(members: readonly string[], epoch: number): void {
    this.members = [...members].sort();
    this.epoch = epoch;
    this.probed.clear();
    this.empty.clear();
    this.grants.clear();
    this.claimed.clear();
    this.transition(ClaimState.PROBING);
    for (const storeId of this.members) {
      if (!this.ports.ask(storeId, 'probe', 0)) {
        this.backOff('store lost', storeId, 0);
        return;
      }
    }
  }

  /** What was granted is not enough to take the queue: all of it is given back. */
  giveUp(why: ClaimFailure, storeId: string): void {
    if (this.current === ClaimState.HELD) this.backOff(why, storeId, 0);
  }

  /** The back-off is over, or what was held has been given up. */
  reset(): void {
    if (this.current === ClaimState.IDLE) return;
    this.transition(ClaimState.IDLE);
  }

  onAnswer(storeId: string, question: ClaimQuestion, answer: Claimed): void {
    if (!this.members.includes(storeId)) return;
    if (question === 'probe' && this.current === ClaimState.PROBING) this.onProbed(storeId, answer);
    else if (question === 'claim' && this.current === ClaimState.CLAIMING) this.onGranted(storeId, answer);
    else if (question === 'confirm' && this.current === ClaimState.CONFIRMING) this.onConfirmed(storeId, answer);
  }

  /** A store can't be reached, or has restarted: what it said while we were asking does not count. */
  onStoreLost(storeId: string): void {
    if (this.isAsking && this.members.includes(storeId)) this.backOff('store lost', storeId, 0);
  }

  /**
   * Whatever it is to the queue, its list was part of what was judged: what it showed is gone, and another may have
   * begun a set under the same number since. The round ends, and all is judged anew.
   */
  onStoreRestarted(storeId: string): void {
    if (this.isAsking) this.backOff('store restarted', storeId, 0);
  }

  private onProbed(storeId: string, answer: Claimed): void {
    if (answer.result === CLAIM_UNKNOWN) {
      if (!this.ports.mayMiss(storeId, false)) {
        this.backOff('came back empty', storeId, 0);
        return;
      }
      this.empty.add(storeId);
    } else if (answer.result === CLAIM_DENIED) {
      this.backOff('denied', storeId, 0);
      return;
    } else if (answer.waitMs > 0) {
      this.backOff(answer.result === CLAIM_LEASE_RUNS ? 'lease runs' : 'first lease period', storeId, answer.waitMs);
      return;
    } else if (answer.epoch > this.epoch && !this.isLeftOver(storeId, answer)) return;
    if (answer.token >= this.token) this.token = answer.token + 1;
    this.probed.add(storeId);
    if (this.probed.size < this.members.length) return;
    this.members = this.members.filter((member) => !this.empty.has(member));
    if (this.members.length === 0) {
      this.backOff('came back empty', storeId, 0);
      return;
    }
    const empty = this.ports.doesNotCount();
    if (empty !== '') {
      this.backOff('came back empty', empty, 0);
      return;
    }
    this.transition(ClaimState.CLAIMING);
    this.claiming = 0;
    this.claimNext();
  }

  /**
   * A newer epoch than the one judged: mostly all is judged anew, with what this store shows. When it is shown again by one
   * that is none of that set, being filled anew, it is all that is left of it: a member that came back empty.
   */
  private isLeftOver(storeId: string, { epoch, role }: Claimed): boolean {
    const isAgain = epoch <= this.overtakenBy && role !== ROLE_MEMBER && role !== ROLE_SPILLED;
    this.overtakenBy = Math.max(this.overtakenBy, epoch);
    if (isAgain && this.ports.mayMiss(storeId, true)) {
      this.empty.add(storeId);
      return true;
    }
    this.backOff(isAgain ? 'came back empty' : 'newer epoch', storeId, 0);
    return false;
  }

  private claimNext(): void {
    const storeId = this.members[this.claiming];
    invariant(storeId !== undefined, 'there is a member left to claim at');
    if (this.ports.ask(storeId, 'claim', this.token)) this.claimed.add(storeId);
    else this.backOff('store lost', storeId, 0);
  }

  private onGranted(storeId: string, answer: Claimed): void {
    if (storeId !== this.members[this.claiming]) return;
    if (answer.result !== CLAIM_GRANTED) {
      this.claimed.delete(storeId);
      this.backOff(failureOf(answer), storeId, answer.waitMs, answer.token);
      return;
    }
    // The old owner's last change of the set came between the probe and the claim.
    if (answer.epoch > this.epoch) {
      this.backOff('newer epoch', storeId, 0);
      return;
    }
    this.grants.set(storeId, { bootId: this.ports.bootIdOf(storeId), confirmed: false });
    this.claiming += 1;
    if (this.claiming < this.members.length) {
      this.claimNext();
      return;
    }
    const last = this.grants.get(storeId);
    if (last !== undefined) last.confirmed = true;
    if (this.members.length === 1) {
      this.hold();
      return;
    }
    this.transition(ClaimState.CONFIRMING);
    for (const [member, grant] of this.grants) {
      if (grant.confirmed || this.ports.ask(member, 'confirm', this.token)) continue;
      this.backOff('store lost', member, 0);
      return;
    }
  }

  private onConfirmed(storeId: string, answer: Claimed): void {
    const grant = this.grants.get(storeId);
    if (grant === undefined) return;
    if (answer.result !== CLAIM_GRANTED) {
      this.claimed.delete(storeId);
      this.backOff('another claims', storeId, 0);
      return;
    }
    if (!answer.sameBoot || this.ports.bootIdOf(storeId) !== grant.bootId) {
      this.backOff('store restarted', storeId, 0);
      return;
    }
    if (answer.waitMs > 0) {
      this.backOff('owner is back', storeId, answer.waitMs);
      return;
    }
    grant.confirmed = true;
    for (const other of this.grants.values()) if (!other.confirmed) return;
    this.hold();
  }

  private hold(): void {
    this.failures = 0;
    this.transition(ClaimState.HELD);
    this.ports.onHeld();
  }

  /** Gives back what was claimed, so that its owner can have the queue, and waits a while. */
  private backOff(why: ClaimFailure, storeId: string, waitMs: number, tokenTold = 0): void {
    for (const claimed of this.claimed) this.ports.release(claimed, this.token);
    this.claimed.clear();
    this.grants.clear();
    // Not before: what was granted is released by the token it was granted under.
    if (tokenTold >= this.token) this.token = tokenTold + 1;
    this.failures += 1;
    const most = Math.min(BACK_OFF_MAX_MS, BACK_OFF_FIRST_MS * 2 ** Math.min(this.failures, 10));
    // A newer epoch is no conflict: it is judged and asked for at once.
    const delay = why === 'newer epoch' ? 0 : BACK_OFF_FIRST_MS + this.ports.random() * (most - BACK_OFF_FIRST_MS);
    this.retryMs = this.ports.nowMs() + delay;
    this.transition(ClaimState.BACKED_OFF);
    this.ports.onBackedOff(why, storeId, waitMs);
  }

  /** The only writer of the state. */
  private transition(to: ClaimState): void {
    invariant(isValidClaimTransition(this.current, to), `a claim goes from ${CLAIM_STATE_NAMES[this.current]} to ${CLAIM_STATE_NAMES[to]}, which no arrow allows`);
    this.current = to;
  }
}

function failureOf(answer: Claimed): ClaimFailure {
  switch (answer.result) {
    case CLAIM_LEASE_RUNS: return 'lease runs';
    case CLAIM_GRACE: return 'first lease period';
    case CLAIM_UNKNOWN: return 'store restarted';
    case CLAIM_DENIED: return 'denied';
    default: return 'another claims';
  }
}
