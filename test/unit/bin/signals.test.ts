/** SIGHUP while a daemon starts: it ends nothing, and is not forgotten; to who waits at a terminal it is as Ctrl-C. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HangUps, Signals } from '../../../src/bin/signals.js';

test('a hang-up that comes before anybody follows counts then, and each one after it', () => {
  const before = process.listeners('SIGHUP');
  const hangUps = new HangUps();
  const asked: string[] = [];
  process.emit('SIGHUP');
  process.emit('SIGHUP');
  hangUps.reload({ reload: ({ who }) => Promise.resolve(asked.push(who)) });
  assert.deepEqual(asked, ['SIGHUP'], 'once for what came');
  process.emit('SIGHUP');
  assert.equal(asked.length, 2);
  for (const listener of process.listeners('SIGHUP')) if (!before.includes(listener)) process.off('SIGHUP', listener);
});

test('nothing is asked for where none has come', () => {
  const before = process.listeners('SIGHUP');
  const hangUps = new HangUps();
  hangUps.reload({ reload: () => assert.fail() });
  for (const listener of process.listeners('SIGHUP')) if (!before.includes(listener)) process.off('SIGHUP', listener);
});

test('what comes is passed on to processes below, a hang-up also when it came before there were any', () => {
  const before = [process.listeners('SIGHUP'), process.listeners('SIGUSR2')];
  const hangUps = new HangUps();
  process.emit('SIGHUP');
  const passed: string[] = [];
  hangUps.pass((signal) => { passed.push(signal); });
  assert.deepEqual(passed, ['SIGHUP']);
  process.emit('SIGUSR2');
  process.emit('SIGHUP');
  assert.deepEqual(passed, ['SIGHUP', 'SIGUSR2', 'SIGHUP']);
  for (const listener of process.listeners('SIGHUP')) if (before[0]?.includes(listener) !== true) process.off('SIGHUP', listener);
  for (const listener of process.listeners('SIGUSR2')) if (before[1]?.includes(listener) !== true) process.off('SIGUSR2', listener);
});

test('a terminal that hangs up stops a verb that waits, and no daemon', () => {
  const before = new Map((['SIGHUP', 'SIGINT', 'SIGTERM'] as const).map((name) => [name, process.listeners(name)] as const));
  process.on('SIGHUP', () => undefined);
  const [daemon, verb] = [new Signals(false), new Signals(true)];
  void daemon.untilStopped();
  void verb.untilStopped();
  process.emit('SIGHUP');
  assert.deepEqual([daemon.aborted.aborted, verb.aborted.aborted], [false, true]);
  for (const [name, listeners] of before) {
    for (const listener of process.listeners(name)) if (!listeners.includes(listener)) process.off(name, listener);
  }
});
