/**
 * Claims of one queue, played without stores: what each is asked is answered by the test.
 */
import assert from 'node:assert/strict';
import { MessagePacker } from '../../../src/platform/node/packer.js';
import type { Claimed } from '../../../src/protocol/messages/claimed.js';
import { RELEASE } from '../../../src/protocol/message-types.js';
import { CLAIM_GRANTED, CLAIM_TOKEN_LOW, ROLE_MEMBER } from '../../../src/protocol/reasons.js';
import type { CensusRow } from '../../../src/recovery/census.js';
import { Claiming } from '../../../src/recovery/claiming.js';
import type { QueueJob, RecoveryStore } from '../../../src/recovery/queue-job.js';
import { SetHints } from '../../../src/recovery/set-hints.js';
import { StoreViews } from '../../../src/recovery/store-views.js';

export const BOTH = ['a', 'b'];

/** `writer`: the gateway, and by default the same process of it; '' is not told, or of no account. */
export function row(storeId: string, role: number, number: number, writer: string, epoch = 3, members: readonly string[] = BOTH, incarnation = 1): CensusRow {
  return { storeId, ownerId: 'gw-1', birth: 1, serial: 1, name: 'q', queueClass: 'mail', role, epoch, members, number, digestA: 0, digestB: 0, count: 0, bytes: 0, holder: 'gw-1', holderToken: 1, writer: { gatewayId: writer, incarnation } };
}

/** Gateway gw-1 takes the queue back from stores a and b, in a group of two if no other is named. */
export class Story {
  readonly told: string[] = [];
  olderMayLive = false;
  readonly job: QueueJob;
  /** RELEASE requests as they went out. */
  readonly released: unknown[] = [];
  readonly claiming: Claiming;
  private readonly views: StoreViews;

  constructor(group: readonly string[] = ['gw-1', 'gw-2'], version = 2) {
    const packer = new MessagePacker();
    const log = { debug: () => undefined, info: () => undefined, error: () => undefined, warn: (_event: string, text: string) => { this.told.push(text); } };
    this.views = new StoreViews('gw-1', packer);
    for (const storeId of BOTH) {
      const store: RecoveryStore = { storeId, bootId: 'boot', isUp: true, version, leaseMs: 1000, graceMs: 0, flush: () => undefined, request: (type, control) => this.note(type, packer.unpack(control)) };
      this.views.add(store);
    }
    for (const view of this.views.all()) view.listed = true;
    this.claiming = new Claiming({ gatewayId: 'gw-1', token: 5, group }, {
      packer, log, views: this.views, hints: new SetHints([], log), nowMs: () => 0, random: () => 0, olderMayLive: () => this.olderMayLive, needFlush: () => undefined, onClaimed: () => undefined,
    });
    this.job = this.claiming.newJob(row('a', ROLE_MEMBER, 10, ''), 'key', 7);
  }

  private note(type: number, control: unknown): number {
    if (type === RELEASE) this.released.push(control);
    return 1;
  }

  /** It had the queue at store a alone, and lost it. */
  served(): this {
    const alone = row('a', ROLE_MEMBER, 5, 'gw-1', 2, ['a']);
    this.job.rows.set('a', alone);
    this.round(alone);
    this.grant('claim', alone);
    assert.equal(this.job.state, 'claimed');
    this.job.restart('waiting', 0);
    return this;
  }

  /** A claim that was asked, or its confirmation. */
  grant(question: 'claim' | 'confirm', { storeId, role, epoch, members, number, writer }: CensusRow): this {
    this.job.machine.onAnswer(storeId, question, { handle: 7, result: CLAIM_GRANTED, token: 5, epoch, members, number, digestA: 0, digestB: 0, count: 0, bytes: 0, role, waitMs: 0, sameBoot: true, holderWallMs: 0, writer });
    return this;
  }

  /** A claim that was asked is refused: another has a higher token. */
  refuse({ storeId, role, epoch, members, number, writer }: CensusRow): this {
    this.job.machine.onAnswer(storeId, 'claim', { handle: 7, result: CLAIM_TOKEN_LOW, token: 9, epoch, members, number, digestA: 0, digestB: 0, count: 0, bytes: 0, role, waitMs: 0, sameBoot: false, holderWallMs: 0, writer });
    return this;
  }

  /** A round of probes, answered so. */
  round(...answers: readonly CensusRow[]): this {
    this.claiming.judge(this.job, this.views.answering(), 0);
    for (const { storeId, role, epoch, members, number, writer } of answers) {
      const answer: Claimed = { handle: 7, result: CLAIM_TOKEN_LOW, token: 1, epoch, members, number, digestA: 0, digestB: 0, count: 0, bytes: 0, role, waitMs: 0, sameBoot: false, holderWallMs: 0, writer };
      this.claiming.note(this.job, storeId, answer);
      this.job.machine.onAnswer(storeId, 'probe', answer);
    }
    return this;
  }
}
