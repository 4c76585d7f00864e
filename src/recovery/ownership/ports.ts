/**
 * What the ownership of a partition needs of the world: the register, stores, and what the process has in
 * memory. Effects leave here and return nothing to wait for; what comes of them comes back as events of
 * PartitionHolder.
 *
 *   effect                              comes back as
 *   register.read                       onRecord | onNoAnswer
 *   register.change                     onApplied | onRecord (compare failed: what is there) | onNoAnswer
 *   register.tieSession                 onSessionTied | onRecord | onNoAnswer
 *   register.readRules                  onRules | onNoAnswer
 *   stores.ask                          onAsked
 *   stores.fence (members.align)        onFenced | onDeclined
 *   stores.found                        onFounded | onDeclined
 *   members.startFill                   set.onTermTaken, set.onFilled; set.onAcked of live changes
 *   members.startTail                   set.onAcked
 *   members.tell                        set.onTold
 *   memory.read                         onReadComplete | the link of the source is lost
 *   memory.stop                         onQuiet: no dot waits for its reply, everything is acknowledged
 *   a link comes or goes                onLinkUp | onLinkDown
 *   a watch of the register tells news  onNews
 *
 * An answer that does not come is no event: what is asked is asked again from tick().
 */
import type {
  GivenUpCopy, HolderId, PartitionRecord, RecordedMember, Term,
} from '../../protocol/partition-record.js';
import type { LeaseView } from './link-lease.js';

/**
 * Opaque: compared for being equal, by the register alone. It comes back with the same record, or never
 * (15.8).
 */
export type Revision = string;

/** A record as it was read. `record` is undefined when there is none. */
export interface Stamped {
  readonly revision: Revision;
  readonly record: PartitionRecord | undefined;
  /**
   * The session of the record's holder was there at the same revision. Its absence alone is no verdict (15).
   */
  readonly hasSession: boolean;
  /**
   * The register may be an older one than that of the processes before: every store is asked what it was told
   * (15).
   */
  readonly isDoubted?: boolean;
}

/** Where a copy stands: its last change, under which term it was applied there, and the digest up to it. */
export interface CopyPosition {
  /** -1: the copy is not complete. */
  readonly number: number;
  readonly term: Term;
  readonly digestA: number;
  readonly digestB: number;
}

/** A reachable store that can take a copy. */
export interface StoreChoice {
  readonly storeId: string;
  readonly bootId: string;
}

export interface SetOptions {
  readonly replicas: number;
  readonly minReplicas: number;
  /** How long a member that is not in step may hold commits up before it is dropped. */
  readonly dropAfterMs: number;
  /** How long a store that went away is waited for before another takes its place. */
  readonly replaceAfterMs: number;
  readonly tellAgainMs: number;
}

export interface HolderOptions extends SetOptions {
  readonly partition: string;
  readonly self: HolderId;
  /** The partition is one of this gateway's own. */
  readonly isOwn: boolean;
  /** Ask again, in everything that may get no answer. */
  readonly retryMs: number;
  /** A change whose outcome is not known after so long is read, then another is sent. */
  readonly changeTimeoutMs: number;
  /** What rendezvous order puts between two rescuers, times our place in it: as that is when it is asked. */
  readonly rescueDelayMs: number;
  /** Members asked in vain for so long: shown as copies away. */
  readonly awayAfterMs: number;
  /** How often somebody else's partition is looked at although nothing was told. */
  readonly lookAgainMs: number;
  /** A founding waits so long for a second store. */
  readonly foundWaitMs: number;
  /** No lease that anybody was granted before now runs longer. */
  readonly longestLeaseMs: number;
}

/** Effects for one member, and what of our history it is compared with. */
export interface MemberPorts {
  /** The number of the last change made. */
  lastNumber(): number;
  /**
   * Does the position lie in our history: same number, same digest, and is every change after it still in the
   * ring, ours or of the member that was read?
   */
  isInHistory(at: CopyPosition): boolean;
  lease(storeId: string): LeaseView;
  isUp(storeId: string, bootId: string): boolean;
  /** A reachable store that is none of these; with `only` this one or none. */
  chooseStore(taken: readonly string[], only: string): StoreChoice | undefined;
  align(member: RecordedMember): void;
  startTail(member: RecordedMember, after: number): void;
  startFill(member: RecordedMember): void;
  /** `isOut`: the copy counts no more, and may be dropped. */
  tell(member: RecordedMember, record: PartitionRecord, isOut: boolean): void;
  /** committedNumber or ackedByAllNumber went on. */
  onCommitted(): void;
  /** In the same boot it stands so many changes before what it had acknowledged. */
  onWentBack(member: RecordedMember, changes: number): void;
}

export interface RegisterPort {
  read(ticket: number): void;
  /**
   * One compare-and-set on the revision; with `unlessSessionOf` it fails also while that
   * process has a session.
   */
  change(ticket: number, expected: Revision, record: PartitionRecord, unlessSessionOf?: HolderId): void;
  /** A session of this process, made in a transaction that finds this revision. */
  tieSession(ticket: number, expected: Revision): void;
  /** What operators decided, at this revision or later (17). */
  readRules(ticket: number, revision: Revision): void;
}

export interface StorePort {
  /** All stores that may know of the partition: for a register that was lost. */
  all(): readonly string[];
  /** There is no other: the list of stores was read. Before it was, that all have answered says nothing. */
  areAllKnown(): boolean;
  /** Of a store that is up: its boot. '' when it is not. */
  bootOf(storeId: string): string;
  /** Has the lease of this holder run out there, what was told there, where does the copy stand? */
  ask(storeId: string, holder: HolderId): void;
  /** Our term to a recorded member. `provenDead`: whose leases need not be waited for. */
  fence(member: RecordedMember, term: Term, provenDead: HolderId | undefined): void;
  /** A new, empty copy under a term that no record has yet; not where a record is known that is newer. */
  found(storeId: string, bootId: string, term: Term, knownEpoch: number): void;
  /** Gives back what this partition was leased there (13). */
  release(member: RecordedMember): void;
}

export interface MemoryPort {
  /** Reads all of it from this member, which stands at `at`; goes on from another when told so again. */
  read(source: RecordedMember, at: CopyPosition): void;
  readOn(source: RecordedMember): void;
  /** An empty partition begins. `isLoss`: it was not empty, and nobody has it any more. */
  begin(isLoss: boolean): void;
  /** The same, but for a copy that had been set aside before, which is read next. */
  noteLoss(): void;
  /** Everything of the partition is dropped, clients are closed without a reply (12). */
  forget(): void;
  /** No new delivery starts, no new mail is taken; onQuiet when the rest is done (13). */
  stop(): void;
  /** Goes on after stop(). */
  resume(): void;
  /**
   * A copy that was given up is back: it is fenced, for whoever held it may still commit there,
   * then its mail is taken in anew (16). onAdopted when every member has all of it, however few they are:
   * its store is filled only then.
   */
  adopt(copy: GivenUpCopy): void;
}

export interface HolderPorts {
  readonly register: RegisterPort;
  readonly stores: StorePort;
  readonly members: MemberPorts;
  readonly memory: MemoryPort;
  /** What nobody has is begun: this gateway is to have it. */
  mayBegin(): boolean;
  /** The lock file of this machine proves that exactly this process is dead. */
  isProvenDead(holder: HolderId): boolean;
  /**
   * Monotonic end of this process's session, reckoned from before it was last renewed; and which one it is.
   */
  session(): { readonly id: number; readonly endsMs: number };
  /** Unequal for two processes that found or take at once. */
  nonce(): number;
  /** Seconds of the wall clock: what begins now stands above what began and ended before. */
  wallSeconds(): number;
  trace(event: string): void;
}

/** What a store answers to ask(). */
export interface AskAnswer {
  /** It holds a copy of the partition in this boot. */
  readonly hasCopy: boolean;
  /** What is left of the lease of the holder that was asked for; 0 when it has run out. */
  readonly leaseLeftMs: number;
  /** Of the highest term that was taken there. */
  readonly termNumber: number;
  readonly told: PartitionRecord | undefined;
}

/** What a store answers to fence() when it takes the term. */
export interface FencedAnswer {
  readonly term: Term;
  readonly at: CopyPosition;
  /** What is left of leases of older terms; 0 when all are out. */
  readonly olderLeaseMs: number;
}

export interface DeclinedAnswer {
  /** One of protocol/reasons.ts. */
  readonly reason: number;
  /** What we asked under. */
  readonly asked: Term;
  /** What is known there. */
  readonly term: Term;
  readonly told: PartitionRecord | undefined;
}
