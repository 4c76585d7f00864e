/**
 * Which partitions the one order of a person is about: those that wait for copies that are away, and no others. No store
 * can be reached here, and the register answers as the test says.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Holdings } from '../../../../src/gateway/ownership/holdings.js';
import type { LivingGateway, MetPartition, OwnershipRegister, RegisterSink } from '../../../../src/gateway/ownership/ownership-register.js';
import type { Mirrors } from '../../../../src/gateway/mirror/mirrors.js';
import type { AbsentBodies } from '../../../../src/gateway/queue/absent-bodies.js';
import type { AdoptedMail } from '../../../../src/gateway/recovered/adopted-mail.js';
import type { MemoryGauge } from '../../../../src/gateway/queue/memory-gauge.js';
import type { QueueRegistry } from '../../../../src/gateway/queue/queue-registry.js';
import type { RecoveredQueues } from '../../../../src/gateway/recovered/recovered-queues.js';
import { MessagePacker } from '../../../../src/platform/node/packer.js';
import type { HolderId, PartitionRecord, RecordedMember } from '../../../../src/protocol/partition-record.js';
import type { EndedCopy, LeftOrder, QueueRule } from '../../../../src/register/records.js';
import { AwayCause, awayText } from '../../../../src/recovery/ownership/waiting.js';
import { KeptLog } from '../admin/kept-log.js';

const SELF: HolderId = { gatewayId: 'gw-1', incarnation: 8 };
const BEFORE: HolderId = { gatewayId: 'gw-1', incarnation: 7 };
const RESCUER: HolderId = { gatewayId: 'gw-2', incarnation: 3 };
const [A, B, C]: readonly RecordedMember[] = ['store-a', 'store-b', 'store-c'].map((storeId) => ({ storeId, bootId: '01' }));
const LONG_MS = 60_000;

interface Kept {
  readonly holder: HolderId;
  readonly members: readonly (RecordedMember | undefined)[];
  readonly hasSession?: boolean;
}

/** Partition N of gw-1 is as the Nth of these; changes get no answer. */
class PlayedRegister implements OwnershipRegister {
  readonly self = SELF;
  readonly away = '';
  readonly heardMs = 0;
  readonly #kept: readonly Kept[];
  #answers: (() => void)[] = [];

  constructor(kept: readonly Kept[]) {
    this.#kept = kept;
  }

  portOf(partition: string, sink: RegisterSink): ReturnType<OwnershipRegister['portOf']> {
    const { holder, members, hasSession = false } = this.#kept[Number(partition.split('/')[1])] ?? assert.fail(partition);
    const record: PartitionRecord = {
      epoch: 5, term: { number: 4, nonce: 9 }, holder, members: members.filter((one) => one !== undefined), gaveUp: [], left: [], line: [],
    };
    return {
      read: (ticket) => { this.#answers.push(() => { sink.onRecord(ticket, { revision: '1', record, hasSession }); }); },
      change: () => undefined,
      tieSession: () => undefined,
      readRules: () => undefined,
    };
  }

  heldByOthers(): [] {
    return [];
  }

  answer(): void {
    const answers = this.#answers;
    this.#answers = [];
    for (const answer of answers) answer();
  }

  session(): { readonly id: number; readonly endsMs: number } {
    return { id: 1, endsMs: Number.MAX_SAFE_INTEGER };
  }

  readonly version = 1;

  /** None of another gateway is met. */
  partitions(): Iterable<MetPartition> {
    return [];
  }

  partition(): undefined {
    return undefined;
  }

  leave(): void {
    // None ends here.
  }

  deleteEnded(): void {
    // None ends here.
  }

  givenUp(): ReadonlyMap<string, readonly EndedCopy[]> {
    return new Map();
  }

  addGivenUp(): void {
    // None ends here.
  }

  removeGivenUp(): void {
    // None ends here.
  }

  setRetired(): void {
    // Nobody is retired here.
  }

  retired(): ReadonlySet<string> {
    return new Set();
  }

  queueRules(): ReadonlyMap<string, QueueRule> {
    return new Map();
  }

  setQueueRule(): void {
    // No queue is concerned here.
  }

  leftOrders(): ReadonlyMap<string, LeftOrder> {
    return new Map();
  }

  changeLeftOrder(): void {
    // None is left here.
  }

  hostOf(): undefined {
    return undefined;
  }

  living(): ReadonlyMap<string, LivingGateway> {
    return new Map();
  }

  isProvenDead(): boolean {
    return false;
  }
}

interface Played {
  readonly holdings: Holdings;
  readonly register: PlayedRegister;
  readonly log: KeptLog;
  pass(ms: number): void;
}

function played(kept: readonly Kept[]): Played {
  const [register, log] = [new PlayedRegister(kept), new KeptLog()];
  let nowMs = 1000;
  // No store is up and nothing is held: of these nothing else is used.
  const mirrors = { stores: [], storeOf: () => undefined, stateVersion: 0, placement: {} } as unknown as Mirrors;
  const recovered = { onAllRead: () => undefined, entryCount: 0 } as unknown as RecoveredQueues;
  const holdings = new Holdings({
    gatewayId: 'gw-1', partitions: kept.length, group: ['gw-1', 'gw-2'], rescue: true, replicas: 2, minReplicas: 1,
    replaceAfterMs: 30_000, leaseMs: 10_000, orphans: { graceMs: 600_000, areOurs: false }, blockEntries: 100, blockBytes: 100_000,
  }, {
    clock: { nowMs: () => nowMs, wallMs: () => nowMs }, packer: new MessagePacker(), log, register, mirrors, recovered,
    adopted: {} as unknown as AdoptedMail,
    registry: {} as unknown as QueueRegistry, memory: {} as unknown as MemoryGauge, absent: {} as unknown as AbsentBodies,
    counters: { recoveredMessages: 0, epochs: 0 }, random: () => 0.5, areStoresKnown: () => true,
    forget: () => undefined, obeyRules: () => undefined, isPassedOver: () => false, wake: () => undefined,
  });
  const pass = (ms: number): void => {
    for (const untilMs = nowMs + ms; nowMs < untilMs; nowMs += 100) {
      holdings.tick(nowMs);
      register.answer();
    }
  };
  return { holdings, register, log, pass };
}

const AWAY: Kept = { holder: BEFORE, members: [A, B] };
const HALF: Kept = { holder: BEFORE, members: [A, C] };
const OTHERS: Kept = { holder: BEFORE, members: [C] };
const MEMORY: Kept = { holder: RESCUER, members: [] };
const SERVED: Kept = { holder: RESCUER, members: [A, B], hasSession: true };

describe('copies that are given up', () => {
  test('are those of partitions that wait for a person, have no other copy, and are served by nobody', () => {
    const { holdings, pass } = played([AWAY, HALF, OTHERS, SERVED, MEMORY]);
    pass(LONG_MS);
    assert.deepEqual(holdings.waiting().map(({ partition, waitsFor, copies }) => [partition, waitsFor, copies]), [
      ['gw-1/0', 'copies away', ['store-a', 'store-b']], ['gw-1/1', 'copies away', ['store-a', 'store-c']],
      ['gw-1/2', 'copies away', ['store-c']], ['gw-1/4', 'copies away', []],
    ]);
    assert.deepEqual(holdings.giveUp(['store-a']), []);
    assert.deepEqual(holdings.giveUp(['store-b', 'store-a', 'store-z']), ['gw-1/0']);
    assert.deepEqual(holdings.giveUp(['store-a', 'store-c']), ['gw-1/1', 'gw-1/2']);
  });

  test('at stores are not the memory of a process, which is given up by itself', () => {
    const { holdings, pass } = played([AWAY, MEMORY, SERVED]);
    pass(LONG_MS);
    assert.deepEqual(holdings.giveUp(['store-z']), []);
    assert.deepEqual(holdings.giveUp([]), ['gw-1/1']);
  });

  test('are not given up before somebody has waited for them', () => {
    const { holdings, pass } = played([AWAY, MEMORY]);
    pass(1000);
    assert.deepEqual([holdings.giveUp(['store-a', 'store-b']), holdings.giveUp([])], [[], []]);
  });

  test('are asked for in the log, once', () => {
    const { log, pass } = played([AWAY, SERVED]);
    pass(LONG_MS);
    assert.deepEqual(log.lines.filter(({ level }) => level === 'error').map(({ text, fields }) => [text, fields]), [
      ['a partition waits for a person', { partition: 'gw-1/0', why: awayText({ cause: AwayCause.COPIES, stores: ['store-a', 'store-b'] }, BEFORE) }],
    ]);
  });
});
