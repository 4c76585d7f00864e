/**
 * What a gateway keeps beside its mail, joined: control queues and their records, messages met in crashes, messages
 * that are held. core.ts calls it with time, recovery (queue/recovered-queues.ts) with what comes back.
 *
 *   fatal error ─► notes ─► file (gateway-daemon.ts) ─► recordCrash(): control queues alone to the mirrors ─► end
 *   next start  ─► onNotes() ─► records, once the control queue is back ─► notes() empty: the file may go
 */
import type { Mirrors } from '../mirror/mirrors.js';
import type { QueueMirror } from '../mirror/queue-mirror.js';
import type { ControlQueuesPorts } from './control-queues.js';
import { ControlQueues } from './control-queues.js';
import type { CrashNote } from './crash-record.js';
import { CrashRecord, InHand } from './crash-record.js';
import type { QueueChange } from './kept-waits.js';
import { KeptWaits } from './kept-waits.js';
import type { HoldOutcome, HoldRequest, MessageHoldsPorts } from './message-holds.js';
import { MessageHolds } from './message-holds.js';

export interface GatewayControlOptions {
  readonly gatewayId: string;
  readonly incarnation: number;
}

export interface GatewayControlPorts extends ControlQueuesPorts, Omit<MessageHoldsPorts, 'control' | 'crashes' | 'whenKept'> {
  readonly mirrors: Mirrors;
}

export class GatewayControl {
  readonly queues: ControlQueues;
  readonly crashes: CrashRecord;
  readonly holds: MessageHolds;
  readonly inHand = new InHand();
  private readonly keptWaits: KeptWaits;
  private readonly incarnation: number;
  private readonly ports: GatewayControlPorts;
  /** Of crashes that the mirrors may not know of yet. */
  private notes: readonly CrashNote[] = [];

  constructor(options: GatewayControlOptions, ports: GatewayControlPorts) {
    this.incarnation = options.incarnation;
    this.ports = ports;
    this.queues = new ControlQueues(options.gatewayId, ports);
    this.crashes = new CrashRecord(this.queues);
    this.keptWaits = new KeptWaits(ports.clock, this.queues);
    this.holds = new MessageHolds({ ...ports, control: this.queues, crashes: this.crashes, whenKept: (ownerId, then) => { this.keptWaits.wait([ownerId], [], then); } });
  }

  /** Crashes before this process, as its machine has noted them. */
  onNotes(notes: readonly CrashNote[]): void {
    this.notes = notes;
    this.crashes.note(notes);
  }

  /** What has to be noted on this machine: crashes that are in no record at the mirrors. */
  get unkeptNotes(): readonly CrashNote[] {
    return this.notes;
  }

  /** The process meets a fatal error: what it had in hand, and what was noted before. */
  notesOfCrash(): readonly CrashNote[] {
    return [...this.notes, ...this.inHand.notesOf(this.incarnation)];
  }

  /** Tells the mirrors, as far as that can be done at once. Nothing but the records is sent: all else may be half done. */
  recordCrash(): void {
    const notes = this.inHand.notesOf(this.incarnation);
    if (notes.length === 0) return;
    this.crashes.note(notes);
    for (const mirror of this.queues.mirrors()) this.ports.mirrors.sender.flushOnly(mirror);
  }

  // ---- operators ----

  hold(request: HoldRequest): readonly HoldOutcome[] {
    return this.holds.hold(request);
  }

  release(request: HoldRequest): readonly HoldOutcome[] {
    return this.holds.release(request);
  }

  delete(request: HoldRequest): readonly HoldOutcome[] {
    return this.holds.delete(request);
  }

  /**
   * `done(true)` once the mirrors have acknowledged what these owners' records say now, and these changes;
   * `done(false)` at a bound.
   */
  whenKept(owners: Iterable<string>, done: (kept: boolean) => void, changes: readonly QueueChange[] = []): void {
    this.keptWaits.wait(owners, changes, done);
  }

  // ---- time ----

  /** Called a few times in a tenth of a second, last: answers leave before anything is done that may end the process. */
  quickTick(): void {
    this.keptWaits.tick();
  }

  tick(): void {
    this.crashes.tick();
    this.queues.tick();
    if (this.notes.length > 0 && this.crashes.pending.length === 0 && this.queues.isMirrored) this.notes = [];
  }

  // ---- recovery ----

  onEntry(mirror: QueueMirror, row: number, sound: boolean): void {
    this.queues.onEntry(mirror, row, sound);
  }

  /** A control queue is whole. */
  onWhole(mirror: QueueMirror): void {
    this.crashes.tick();
    this.holds.onBack(mirror.queue.identity.ownerId);
  }
}
