/**
 * The register as the partitions of one gateway process see it: questions of one partition at a time, one
 * session for the process, and who else lives. register-bridge.ts makes it of src/register; holdings.ts asks.
 *
 * Nothing given here is called from inside a call: a machine is not entered twice.
 */
import type { HolderId } from '../../protocol/partition-record.js';
import type { EndedCopy, LeftOrder, QueueRule, RetiredRule } from '../../register/records.js';
import type { RegisterPort, Stamped } from '../../recovery/ownership/ports.js';

/** Where the answers to one partition's questions go: the events of PartitionHolder, without the clock. */
export interface RegisterSink {
  onRecord(ticket: number, stamped: Stamped): void;
  onApplied(ticket: number, revision: string): void;
  onNoAnswer(ticket: number): void;
  onSessionTied(ticket: number, sessionId: number): void;
  onRules(ticket: number): void;
  /** The record, or the session of its holder, may have changed. */
  onNews(): void;
}

/** A gateway process with a session. */
export interface LivingGateway {
  readonly holder: HolderId;
  /** Monotonic time since when it has been seen with this session. */
  readonly sinceMs: number;
  /** Gateways that its configuration names as its group; none: all that the register knows. */
  readonly group: readonly string[];
}

/** A partition's record, as a watch told it last. */
export interface MetPartition {
  readonly partition: string;
  /** Stores with copies that count. */
  readonly stores: readonly string[];
  /** Nobody holds it any more, and nobody need. */
  readonly isEnded: boolean;
}

/** Partitions that one gateway holds, as the register told last. */
export interface LastHeld {
  readonly holder: string;
  /** Its key stood there. */
  readonly isLiving: boolean;
  readonly partitions: readonly string[];
}

export interface OwnershipRegister {
  readonly self: HolderId;
  /**
   * Monotonic end of this process's session, reckoned from before it was last renewed, and which one it is;
   * 0: none.
   */
  session(): { readonly id: number; readonly endsMs: number };
  portOf(partition: string, sink: RegisterSink): RegisterPort;
  /** Nobody asks for the partition any more: portOf() may be called for it again. */
  leave(partition: string): void;
  /** Rises with all news of partitions, gateways and rules. */
  readonly version: number;
  /** When the register answered last, on the monotonic clock. */
  readonly heardMs: number;
  /** What others hold, as told last, by holder. */
  heldByOthers(): readonly LastHeld[];
  /** Of whatever gateway, as told last: none of a record that can't be read. */
  partitions(): Iterable<MetPartition>;
  /** Undefined: a record that can't be read, or none. */
  partition(name: string): MetPartition | undefined;
  /** Deletes the record of a partition that has ended, if it still says so. */
  deleteEnded(partition: string): void;
  /** By store that an operator gave up: partitions that have ended, of which it may have a copy. */
  givenUp(): ReadonlyMap<string, readonly EndedCopy[]>;
  /** Writes that a store may have copies of these; '' when it is done, else of those left, and why. */
  addGivenUp(
    storeId: string, by: RetiredRule, copies: readonly EndedCopy[],
    done: (why: string, left: readonly EndedCopy[]) => void,
  ): void;
  /** The store has been told of these. */
  removeGivenUp(storeId: string, copies: readonly EndedCopy[]): void;
  /** Ids of gateways that operators have retired. */
  retired(): ReadonlySet<string>;
  /** Writes, or with undefined takes back, that a gateway is retired; '' when it is done, else why not. */
  setRetired(gatewayId: string, rule: RetiredRule | undefined, done: (why: string) => void): void;
  /** Rules of operators over queues, by id, as told last. The same map until one of them has changed. */
  queueRules(): ReadonlyMap<string, QueueRule>;
  /** Writes, or with undefined cancels, the rule of this id; '' when it is done, else why not. */
  setQueueRule(id: string, rule: QueueRule | undefined, done: (why: string) => void): void;
  /** Orders that are left for mail that nobody had who was asked, as queueRules() tells rules. */
  leftOrders(): ReadonlyMap<string, LeftOrder>;
  /**
   * Changes the order of this id, of which `change` gets what stands there and says what is to: undefined is
   * none. '' when it is done, else why not.
   */
  changeLeftOrder(
    id: string, change: (known: LeftOrder | undefined) => LeftOrder | undefined, done: (why: string) => void,
  ): void;
  /** By gateway id; without those whose session is over. */
  living(): ReadonlyMap<string, LivingGateway>;
  /** Label of a gateway's machine, as its key said last, also when that is gone; undefined: never told. */
  hostOf(gatewayId: string): string | undefined;
  /** The lock file of this machine proves that exactly this process is dead. */
  isProvenDead(holder: HolderId): boolean;
  /** '' while the register answers; else why it does not, with what to do. */
  readonly away: string;
}
