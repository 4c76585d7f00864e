/** Queues that back off: woken when their time has come, and not kept when they are not ours any more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DueTimes } from '../../../../src/gateway/queue/due-times.js';
import type { MailQueue } from '../../../../src/gateway/queue/mail-queue.js';
import { World } from '../../../scenario/world.js';

test('a queue that backs off is woken once when its time has come; one whose partition went is not', () => {
  const world = World.started();
  world.submit(['q1']);
  world.submit(['q2']);
  world.run(100);
  const [stays, goes] = [...world.gateway.core?.registry.queues() ?? []];
  assert.ok(stays !== undefined && goes !== undefined);
  const woken: MailQueue[] = [];
  const due = new DueTimes({ clock: { nowMs: () => 0, wallMs: () => 0 }, onDue: () => undefined, onWake: (queue) => { woken.push(queue); } });
  due.wakeAt(stays, 1000);
  due.wakeAt(goes, 1000);
  due.forget(goes);
  due.tick(999);
  assert.deepEqual(woken, []);
  for (const nowMs of [1000, 2000]) due.tick(nowMs);
  assert.deepEqual(woken, [stays]);
});
