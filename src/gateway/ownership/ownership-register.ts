/**
 * The register as the partitions of one gateway process see it: questions of one partition at a time, one session for
 * the process, and who else lives. register-bridge.ts makes it of src/register; holdings.ts asks.
 *
 * Nothing given here is called from inside a call: a machine is not entered twice.
 */
import type { HolderId } from '../../protocol/partition-record.js';
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
}

export interface OwnershipRegister {
  readonly self: HolderId;
  /** Monotonic end of this process's session, reckoned from before it was last renewed, and which one it is; 0: none. */
  session(): { readonly id: number; readonly endsMs: number };
  portOf(partition: string, sink: RegisterSink): RegisterPort;
  /** Partitions met in the register so far, of whatever gateway; `told` is called for each later one. */
  watchPartitions(told: (partition: string) => void): void;
  /** By gateway id; without those whose session is over. */
  living(): ReadonlyMap<string, LivingGateway>;
  /** The lock file of this machine proves that exactly this process is dead. */
  isProvenDead(holder: HolderId): boolean;
  /** '' while the register answers; else why it does not, with what to do. */
  readonly away: string;
}
