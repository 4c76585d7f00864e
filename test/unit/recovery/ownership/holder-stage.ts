/** A PartitionHolder whose register, stores and memory are answered by hand; time goes on by ticks. */
import assert from 'node:assert/strict';
import type {
  HolderId, PartitionRecord, RecordedMember, Term,
} from '../../../../src/protocol/partition-record.js';
import { HolderState, PartitionHolder } from '../../../../src/recovery/ownership/holder.js';
import type { CopyPosition, HolderOptions, HolderPorts, Stamped } from '../../../../src/recovery/ownership/ports.js';

export const SELF: HolderId = { gatewayId: 'g1', incarnation: 2 };
export const OTHER: HolderId = { gatewayId: 'g2', incarnation: 1 };
export const OLDER: HolderId = { gatewayId: 'g1', incarnation: 1 };
export const AT: CopyPosition = { number: 7, term: { number: 1, nonce: 1 }, digestA: 5, digestB: 0 };

export function members(...names: string[]): RecordedMember[] {
  return names.map((name) => ({ storeId: name, bootId: 'b1' }));
}

export function recordOf(epoch: number, holder: HolderId, ...stores: string[]): PartitionRecord {
  return { epoch, term: { number: epoch, nonce: epoch }, holder, members: members(...stores), gaveUp: [], left: [], line: [] };
}

/** When leases end, for tests in which they do not. */
const LEASED_MS = 1e12;

interface Sent {
  readonly ticket: number;
  readonly record: PartitionRecord;
}

/** The register and the stores, answered by hand; time goes on in ticks of 100 ms. */
export class Stage {
  nowMs = 0;
  areStoresKnown = true;
  mayBegin = true;
  wallSeconds = 0;
  readonly up = new Map([['a', 'b1'], ['b', 'b1'], ['c', 'b1']]);
  readonly reads: number[] = [];
  rulesAsked = 0;
  rulesTicket = 0;
  readonly changes: Sent[] = [];
  /** Of each change, whose session stands in its way. */
  readonly guards: (HolderId | undefined)[] = [];
  readonly founds: { readonly storeId: string; readonly term: Term; readonly knownEpoch: number }[] = [];
  readonly fills: string[] = [];
  readonly adopts: string[] = [];
  readonly fences: string[] = [];
  /** Stores that were asked what they have. */
  readonly asks: string[] = [];
  readonly told: string[] = [];
  readonly released: string[] = [];
  readonly readFrom: string[] = [];
  /** Of each beginning, whether it was a loss. */
  readonly begun: boolean[] = [];
  losses = 0;
  readonly traced: string[] = [];
  readonly holder: PartitionHolder;
  readonly #leases = new Map<string, { bootId: string; endsMs: number }>();

  constructor(options: Partial<HolderOptions> = {}) {
    this.holder = new PartitionHolder({
      partition: 'g1/0', self: SELF, isOwn: true, retryMs: 200, changeTimeoutMs: 700, rescueDelayMs: 200,
      awayAfterMs: 3000, lookAgainMs: 1500, foundWaitMs: 1000, longestLeaseMs: 2000, replicas: 2,
      minReplicas: 1, dropAfterMs: 300, replaceAfterMs: 4000, tellAgainMs: 500, ...options,
    }, this.#ports());
  }

  get state(): number {
    return this.holder.state;
  }

  tick(times = 1): void {
    for (let i = 0; i < times; i++) {
      this.nowMs += 100;
      this.holder.tick(this.nowMs);
    }
  }

  /** Ticks until the register is read, and answers. */
  answerRead(revision: string, record: PartitionRecord | undefined, hasSession = false): void {
    const before = this.reads.length;
    for (let i = 0; i < 30 && this.reads.length === before; i++) this.tick();
    const ticket = this.reads.at(-1);
    assert.ok(ticket !== undefined && this.reads.length > before, 'the register is read');
    this.holder.onRecord(ticket, { revision, record, hasSession } satisfies Stamped, this.nowMs);
  }

  /** The last change is made. */
  apply(revision: string): PartitionRecord {
    const change = this.changes.at(-1);
    assert.ok(change !== undefined, 'a change was sent');
    this.holder.onApplied(change.ticket, revision, this.nowMs);
    return change.record;
  }

  /** Every store has answered a heartbeat. */
  heard(): void {
    for (const lease of this.#leases.values()) lease.endsMs += 1;
    this.tick();
  }

  /** Every term is taken there, if no other is given. */
  asked(storeId: string, hasCopy: boolean, leaseLeftMs = 0, told?: PartitionRecord, termNumber = Number.MAX_SAFE_INTEGER): void {
    this.holder.onAsked(storeId, this.up.get(storeId) ?? '', { hasCopy, leaseLeftMs, termNumber, told }, this.nowMs);
  }

  /** A new partition, held with a and b. */
  hold(): void {
    this.answerRead('none', undefined);
    for (const storeId of this.up.keys()) this.asked(storeId, false);
    this.tick();
    const term = this.founds.at(-1)?.term;
    assert.ok(term !== undefined);
    for (const storeId of ['a', 'b']) this.holder.onFounded(storeId, 'b1', term);
    this.tick();
    this.apply('r1');
    assert.equal(this.state, HolderState.HOLDER);
    this.tick(3);
  }

  /** The mail of a dead predecessor is being read from a. */
  takeFrom(...stores: string[]): PartitionRecord {
    this.answerRead('r1', recordOf(1, OLDER, ...stores));
    for (const storeId of this.up.keys()) this.asked(storeId, stores.includes(storeId));
    this.tick();
    const record = this.apply('r2');
    this.holder.onFenced('a', 'b1', { term: record.term, at: AT, olderLeaseMs: 0 }, this.nowMs);
    assert.equal(this.state, stores.length > 1 ? HolderState.WAITING_OUT : HolderState.READING);
    this.tick();
    assert.equal(this.state, HolderState.READING, 'the others had a moment to answer');
    return record;
  }

  /** A change is sent that makes it ours; the register says this for so long. */
  untilClaimed(record: PartitionRecord): void {
    for (let i = 0; i < 60 && this.state !== HolderState.CLAIMING; i++) {
      this.tick();
      const ticket = this.reads.at(-1);
      if (ticket !== undefined) this.holder.onRecord(ticket, { revision: 'r1', record, hasSession: false }, this.nowMs);
    }
  }

  /** The term that was claimed is taken at this store, and all is read there. */
  async untilHeld(storeId: string, term: Term): Promise<void> {
    this.holder.onFenced(storeId, 'b1', { term, at: AT, olderLeaseMs: 0 }, this.nowMs);
    this.tick();
    await Promise.resolve();
    this.holder.onHistoryRead(this.nowMs);
    this.holder.onReadComplete(this.nowMs);
    assert.equal(this.state, HolderState.HOLDER);
  }

  row(storeId: string): { state: number; isRecorded: boolean } | undefined {
    return this.holder.set?.rows.find((row) => row.storeId === storeId);
  }

  #ports(): HolderPorts {
    return {
      register: {
        read: (ticket) => { this.reads.push(ticket); },
        change: (ticket, _expected, record, unlessSessionOf) => {
          this.changes.push({ ticket, record });
          this.guards.push(unlessSessionOf);
        },
        tieSession: () => { /* Not met here. */ },
        readRules: (ticket) => {
          this.rulesAsked += 1;
          this.rulesTicket = ticket;
          queueMicrotask(() => { this.holder.onRules(ticket, this.nowMs); });
        },
      },
      stores: {
        all: () => [...this.up.keys()],
        areAllKnown: () => this.areStoresKnown,
        bootOf: (storeId) => this.up.get(storeId) ?? '',
        ask: (storeId) => { this.asks.push(storeId); },
        fence: ({ storeId }) => { this.fences.push(storeId); },
        found: (storeId, _bootId, term, knownEpoch) => { this.founds.push({ storeId, term, knownEpoch }); },
        release: ({ storeId }) => { this.released.push(storeId); },
      },
      members: {
        lastNumber: () => AT.number,
        isInHistory: (at) => at.digestA === AT.digestA,
        lease: (storeId) => {
          const lease = this.#leases.get(storeId) ?? { bootId: 'b1', endsMs: LEASED_MS };
          this.#leases.set(storeId, lease);
          return lease;
        },
        isUp: (storeId, bootId) => this.up.get(storeId) === bootId,
        chooseStore: (taken, only) => {
          const storeId = [...this.up.keys()].find((each) => !taken.includes(each)
            && (only === '' || only === each));
          return storeId === undefined ? undefined : { storeId, bootId: this.up.get(storeId) ?? '' };
        },
        align: () => { /* Answered by hand. */ },
        startTail: () => { /* Likewise. */ },
        startFill: ({ storeId }) => { this.fills.push(storeId); },
        tell: ({ storeId }, { epoch }) => { this.told.push(`${storeId} ${String(epoch)}`); },
        onCommitted: () => { /* Not looked at. */ },
        onWentBack: () => { /* Not met here. */ },
      },
      memory: {
        read: ({ storeId }) => { this.readFrom.push(storeId); },
        readOn: ({ storeId }) => { this.readFrom.push(storeId); },
        begin: (isLoss) => { this.begun.push(isLoss); },
        noteLoss: () => { this.losses += 1; },
        forget: () => { /* Nothing to do. */ },
        stop: () => { /* Not met here. */ },
        resume: () => { /* Likewise. */ },
        adopt: ({ storeId }) => { this.adopts.push(storeId); },
      },
      mayBegin: () => this.mayBegin,
      isProvenDead: (holder) => holder.gatewayId === 'g1' && holder.incarnation < SELF.incarnation,
      session: () => ({ id: 1, endsMs: Infinity }),
      nonce: () => 77,
      wallSeconds: () => this.wallSeconds,
      trace: (event) => { this.traced.push(event); },
    };
  }
}

/** FOUNDING over copies that were given up, with no store to take the new ones yet. */
export function foundingAfterGiveUp(options: Partial<HolderOptions> = {}): Stage {
  const stage = new Stage(options);
  stage.up.delete('a');
  stage.up.delete('b');
  stage.answerRead('r1', recordOf(4, OTHER, 'a', 'b'));
  stage.asked('c', false);
  assert.equal(stage.holder.giveUp(['a', 'b'], stage.nowMs), true);
  assert.equal(stage.state, HolderState.FOUNDING);
  return stage;
}
