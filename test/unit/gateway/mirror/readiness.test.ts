/** Whether new mail is taken: reckoned from the queues that changed, however many others there are. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Placement } from '../../../../src/gateway/mirror/placement.js';
import { PayloadSlabs } from '../../../../src/gateway/mirror/payload-slabs.js';
import { QueueMirror } from '../../../../src/gateway/mirror/queue-mirror.js';
import type { StorePort } from '../../../../src/gateway/mirror/store-port.js';
import type { DirtySink } from '../../../../src/gateway/mirror/queue-mirror.js';
import { Readiness } from '../../../../src/gateway/mirror/readiness.js';
import { EntryTable } from '../../../../src/gateway/queue/entry-table.js';
import { MailQueue } from '../../../../src/gateway/queue/mail-queue.js';

const ROUTE = { queueName: 'q', queueClass: 'mail', nextHop: { protocol: 'smtp', host: 'h', port: 25 }, ordering: 'fifo', concurrency: 4, lengthMax: 100 } as const;
const QUIET: DirtySink = { onAdopted: () => {}, onDirty: () => {}, onLarge: () => {}, onCharged: () => {}, onPressing: () => {}, creditOf: () => 0 };
const MIN_REPLICAS = 1;

/** A mirror whose number of mirrors in sync a test sets, and that counts who asks for it. */
class Counted extends QueueMirror {
  inSyncNow = MIN_REPLICAS;
  looks = 0;

  override get inSyncCount(): number {
    this.looks += 1;
    return this.inSyncNow;
  }
}

/** A store that is reached and has no room. */
class FullStore implements StorePort {
  readonly storeId = 'store-a';
  readonly bootId = 'boot';
  readonly version = 2;
  readonly canSend = true;
  readonly unackedBytes = 0;
  readonly leaseEndsMs = Infinity;
  readonly leaseTerm = 1;
  readonly credit = 0;
  isUp = true;

  request(): number {
    return 1;
  }

  flush(): void {}

  askCredit(): void {}
}

class Kit {
  readonly mirrors: (Counted | undefined)[] = [];
  readonly stores: FullStore[] = [];
  /** How often stores were chosen for a first queue. */
  choices = 0;
  readonly readiness: Readiness;
  private readonly table = new EntryTable(1);
  private readonly slabs = new PayloadSlabs({ mark: () => true, isPast: true });

  constructor() {
    const placement = new Placement({ gatewayHost: undefined, places: new Map() }, { stores: () => this.tellStores() });
    this.readiness = new Readiness(MIN_REPLICAS, { placement, mirrorOf: (handle) => this.mirrors[handle] });
  }

  private tellStores(): readonly StorePort[] {
    this.choices += 1;
    return this.stores;
  }

  add(isOwn = true, routed = true): Counted {
    const handle = this.mirrors.length;
    const queue = new MailQueue({ handle, identity: { ownerId: 'gw-1', birth: 1, serial: handle }, name: 'q', route: ROUTE, routed }, this.table);
    const mirror = new Counted(queue, MIN_REPLICAS, this.slabs, QUIET);
    mirror.isOwn = isOwn;
    this.mirrors.push(mirror);
    this.readiness.onChanged(mirror);
    return mirror;
  }

  set(mirror: Counted, inSync: number): void {
    mirror.inSyncNow = inSync;
    this.readiness.onChanged(mirror);
  }

  remove(mirror: Counted): void {
    this.mirrors[mirror.handle] = undefined;
    this.readiness.onChanged(mirror);
  }

  get isReady(): boolean {
    return this.readiness.mayCommit(1);
  }
}

describe('readiness', () => {
  test('holds while fewer than half of the queues lack a mirror that a message needs', () => {
    const kit = new Kit();
    const [a, b, c] = [kit.add(), kit.add(), kit.add()];
    assert.equal(kit.isReady, true);
    kit.set(a, 0);
    assert.equal(kit.isReady, true);
    kit.set(b, 0);
    assert.equal(kit.isReady, false);
    kit.set(b, 1);
    assert.equal(kit.isReady, true);
    kit.remove(c);
    assert.equal(kit.isReady, false, 'one of two');
    kit.remove(a);
    assert.equal(kit.isReady, true);
  });

  test('does not ask those that no new mail goes to, nor one that is gone and changes all the same', () => {
    const kit = new Kit();
    kit.set(kit.add(false), 0);
    kit.set(kit.add(true, false), 0);
    const gone = kit.add();
    kit.add();
    kit.remove(gone);
    kit.set(gone, 0);
    assert.equal(kit.isReady, true);
  });

  test('without any queue needs stores for the first', () => {
    const kit = new Kit();
    assert.equal(kit.isReady, false);
    const first = kit.add();
    assert.equal(kit.isReady, true);
    kit.remove(first);
    assert.equal(kit.isReady, false);
  });

  test('without any queue is asked of the stores when something of them has changed, and a full one counts', () => {
    const kit = new Kit();
    assert.equal(kit.isReady, false);
    const store = new FullStore();
    kit.stores.push(store);
    assert.equal(kit.readiness.mayCommit(2), true, 'what is too full answers 452 for itself');
    store.isUp = false;
    const { choices } = kit;
    assert.equal(kit.readiness.mayCommit(2), true, 'nothing was told of a change');
    assert.equal(kit.choices, choices);
    assert.equal(kit.readiness.mayCommit(3), false);
  });

  test('looks at a queue once when it comes, however many come behind it', () => {
    const kit = new Kit();
    for (let i = 0; i < 1000; i++) {
      kit.add();
      assert.equal(kit.isReady, true);
    }
    for (const mirror of kit.mirrors) assert.equal(mirror?.looks, 1);
  });
});
