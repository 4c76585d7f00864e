/** Whether new mail is taken: reckoned from what the routes say when something has changed. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Readiness } from '../../../../src/gateway/queue/readiness.js';
import type { AdmissionVerdict, Route } from '../../../../src/gateway/mail-types.js';

const ROUTE = { queueClass: 'mail', nextHop: { protocol: 'smtp', host: 'h', port: 25 }, ordering: 'fifo', concurrency: 4, lengthMax: 100 } as const;

class Kit {
  readonly routes: readonly Route[];
  readonly readiness: Readiness;
  canFound = true;
  wallMs = 1000;
  looks = 0;
  version = 1;
  readonly #told = new Map<Route, AdmissionVerdict>();

  constructor(count: number) {
    this.routes = Array.from({ length: count }, (_none, index) => ({ ...ROUTE, queueName: `q${String(index)}`, label: `mail/q${String(index)}` }));
    this.readiness = new Readiness({
      routes: this.routes,
      wallMs: () => this.wallMs,
      admissionOf: (route) => {
        this.looks += 1;
        return this.#told.get(route) ?? '';
      },
      canFound: () => this.canFound,
    });
  }

  /** The queue of a route says this, and that something of it has changed. */
  tell(index: number, admission: AdmissionVerdict): void {
    this.quietly(index, admission);
    this.readiness.lookAgain();
  }

  quietly(index: number, admission: AdmissionVerdict): void {
    const route = this.routes[index];
    assert.ok(route !== undefined);
    this.#told.set(route, admission);
  }

  get isReady(): boolean {
    return this.readiness.isReady(this.version);
  }

  get refused(): readonly string[] {
    return this.readiness.refused.map(({ route, reason, sinceWallMs }) => `${route.queueName} ${reason} ${String(sinceWallMs)}`);
  }
}


describe('readiness', () => {
  test('holds while not more than half of the routes are stuck, and comes back by itself', () => {
    const kit = new Kit(4);
    assert.equal(kit.isReady, true);
    for (const [index, reason] of (['short', 'no-store', 'recovering'] as const).entries()) {
      assert.equal(kit.isReady, true, `${String(index)} of 4`);
      kit.tell(index, reason);
    }
    assert.equal(kit.isReady, false, '3 of 4');
    kit.tell(1, 'short');
    assert.equal(kit.isReady, false, 'another reason is none to open');
    kit.tell(1, '');
    assert.equal(kit.isReady, true);
  });

  test('ends when the only route is stuck', () => {
    const kit = new Kit(1);
    kit.tell(0, 'recovering');
    assert.equal(kit.isReady, false);
  });

  test('names every refused route with its reason, since when it is refused at all', () => {
    const kit = new Kit(3);
    kit.tell(2, 'short');
    assert.equal(kit.isReady, true);
    kit.wallMs = 2000;
    kit.tell(2, 'recovering');
    kit.tell(0, 'queue-full');
    assert.equal(kit.isReady, true);
    assert.deepEqual(kit.refused.toSorted(), ['q0 queue-full 2000', 'q2 recovering 1000']);
    kit.tell(2, '');
    assert.equal(kit.isReady, true);
    assert.deepEqual(kit.refused, ['q0 queue-full 2000']);
  });

  test('does not end by limits, which answer for themselves', () => {
    const kit = new Kit(2);
    kit.tell(0, 'memory');
    kit.tell(1, 'share');
    assert.deepEqual([kit.isReady, kit.refused.length, kit.readiness.stuckCount], [true, 2, 0]);
    kit.tell(1, 'short');
    kit.tell(0, 'short');
    assert.deepEqual([kit.isReady, kit.readiness.stuckCount], [false, 2]);
    kit.tell(0, 'memory');
    assert.deepEqual([kit.isReady, kit.readiness.stuckCount], [true, 1]);
  });

  test('looks at all routes when a store has changed, and once a second at what no change tells of', () => {
    const kit = new Kit(1);
    assert.equal(kit.isReady, true);
    kit.quietly(0, 'no-store');
    assert.equal(kit.isReady, true, 'nothing was told of a change');
    kit.version += 1;
    assert.equal(kit.isReady, false);
    kit.readiness.tick(0);
    assert.equal(kit.isReady, false);
    kit.quietly(0, '');
    kit.readiness.tick(999);
    assert.equal(kit.isReady, false);
    kit.readiness.tick(1000);
    assert.equal(kit.isReady, true);
  });

  test('asks no route while nothing has changed', () => {
    const kit = new Kit(1000);
    assert.equal(kit.isReady, true);
    kit.looks = 0;
    for (let index = 0; index < 1000; index++) assert.equal(kit.isReady, true);
    assert.equal(kit.looks, 0);
  });

  test('of a gateway without routes is that stores are there', () => {
    const kit = new Kit(0);
    assert.equal(kit.isReady, true);
    kit.canFound = false;
    kit.version += 1;
    assert.equal(kit.isReady, false);
  });

  test('forgets what was refused of routes that are gone, and keeps it of those that stay', () => {
    const kit = new Kit(3);
    kit.tell(0, 'short');
    kit.tell(1, 'no-store');
    assert.deepEqual([kit.isReady, kit.readiness.stuckCount], [false, 2]);
    kit.readiness.renew(kit.routes.slice(1));
    assert.deepEqual([kit.isReady, kit.readiness.stuckCount, kit.readiness.routeCount, kit.refused], [true, 1, 2, ['q1 no-store 1000']]);
    kit.readiness.renew([]);
    assert.deepEqual([kit.isReady, kit.refused], [true, []]);
  });
});
