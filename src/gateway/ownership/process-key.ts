/**
 * The key gateways/ID of this process (src/register/presence-key.ts), and the ties to it.
 *
 * A tie is a write of the key that finds the record of a partition unchanged (DESIGN, Ownership rule 7).
 * Partitions that ask in one turn share a write: each is a guard of it, and the one that fails is named.
 *
 * No timers: time comes by tick().
 */
import type { Clock, EventLog } from '../../platform/ports.js';
import { BrokenRule } from '../../base/json-shape.js';
import { gatewayKey } from '../../register/keys.js';
import { GUARDS_MAX } from '../../register/limits.js';
import type { Entry, Guard, Outcome, Register } from '../../register/port.js';
import { KeyState, PresenceKey, SESSION_TTL_MS } from '../../register/presence-key.js';
import type { Writer } from '../../register/presence-key.js';
import { decodeGateway, encodeGateway } from '../../register/records.js';
import type { GatewayRecord } from '../../register/records.js';

export interface ProcessKeyOptions {
  readonly gatewayId: string;
  /** What the key says. */
  readonly record: GatewayRecord;
}

export interface ProcessKeyPorts {
  readonly register: Register;
  readonly clock: Clock;
  readonly log: EventLog;
  /** The lock file of this machine proves that exactly this incarnation of this gateway is dead. */
  isProvenDead(incarnation: number): boolean;
  /** The key stands: at first, and each time again. */
  onHeld(): void;
  /** Once; nothing follows but close(). */
  onTaken(why: string): void;
}

export interface Tie {
  readonly guard: Guard;
  readonly onTied: (sessionId: number) => void;
  /** The guarded key stands at another revision. */
  readonly onStale: () => void;
  readonly onNoAnswer: () => void;
}

interface WaitingTie extends Tie {
  readonly sinceMs: number;
}

export class ProcessKey {
  readonly #clock: Clock;
  readonly #key: PresenceKey;
  #ties: WaitingTie[] = [];

  constructor({ gatewayId, record }: ProcessKeyOptions, ports: ProcessKeyPorts) {
    const { register, clock, log } = ports;
    this.#clock = clock;
    const value = encodeGateway(record);
    const key = gatewayKey(gatewayId);
    this.#key = new PresenceKey({ key, owner: `gateway ${gatewayId}`, yields: 'always' }, {
      register, clock, log,
      value: () => value,
      writerOf: (found) => writerOf(found, record, (incarnation) => ports.isProvenDead(incarnation)),
      onStanding: () => {
        ports.onHeld();
        this.tie();
      },
      onTaken: (why) => { ports.onTaken(why); },
    });
  }

  /** With which the key stands; 0: none. */
  session(): { readonly id: number; readonly endsMs: number } {
    return this.#key.session();
  }

  /** Asked by partitions: those that were added in one turn go together at the next tie(). */
  addTie(tie: Tie): void {
    this.#ties.push({ ...tie, sinceMs: this.#clock.nowMs() });
  }

  /** Sends the ties that wait, when the key stands. */
  tie(): void {
    if (this.#key.state !== KeyState.STANDING || this.#ties.length === 0) return;
    const ties = this.#ties.splice(0, GUARDS_MAX);
    this.#key.rewrite(ties.map(({ guard }) => guard), (outcome) => { this.#onOutcome(ties, outcome); });
  }

  /** What a watch tells of the key. */
  onNews(entry: Entry | undefined): void {
    this.#key.onNews(entry);
  }

  tick(nowMs: number): void {
    this.#key.tick(nowMs);
    const late = this.#ties.filter(({ sinceMs }) => nowMs - sinceMs >= SESSION_TTL_MS);
    if (late.length > 0) this.#ties = this.#ties.filter((tie) => !late.includes(tie));
    for (const { onNoAnswer } of late) onNoAnswer();
    this.tie();
  }

  /** Ends the session and deletes the key; `done` when that is known, or given up. */
  close(done: () => void): void {
    this.#ties = [];
    this.#key.close(done);
  }

  #onOutcome(ties: readonly Tie[], outcome: Outcome | undefined): void {
    if (outcome?.kind === 'done') {
      const { id } = this.#key.session();
      for (const { onTied } of ties) onTied(id);
    } else if (outcome?.kind === 'stale') {
      const sinceMs = this.#clock.nowMs();
      const stale = ties.filter((tie) => tie.guard.key === outcome.guard);
      const others = ties.filter((tie) => tie.guard.key !== outcome.guard);
      this.#ties.unshift(...others.map((tie) => ({ ...tie, sinceMs })));
      this.tie();
      for (const { onStale } of stale) onStale();
    } else for (const { onNoAnswer } of ties) onNoAnswer();
  }
}

function writerOf(
  value: string, own: GatewayRecord, isProvenDead: (incarnation: number) => boolean,
): Writer {
  const found = decodeGateway(value);
  if (found instanceof BrokenRule) {
    return { where: 'an unknown host (its record can not be read)', isLater: false };
  }
  const { incarnation, ordinal, host } = found;
  if (incarnation === own.incarnation && ordinal === own.ordinal) return 'we';
  if (isProvenDead(incarnation)) return 'nobody';
  const isLater = incarnation > own.incarnation;
  const later = isLater ? ', started after this one' : '';
  return { where: `host ${host} (incarnation ${String(incarnation)}${later})`, isLater };
}
