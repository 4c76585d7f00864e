/** One watch over a line that is answered by hand, and what a client that has it takes for a word of the register. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { DEFAULT_CLIENT_OPTIONS, RegisterClient } from '../../../../src/register/client/register-client.js';
import { Watching } from '../../../../src/register/client/watching.js';
import { PROBE_KEY } from '../../../../src/register/keys.js';
import type { Change, ChangesHandler, Line, LineHandlers, RangeAnswer } from '../../../../src/register/line.js';
import type { Range, WatchListener } from '../../../../src/register/port.js';
import { KeptLog } from '../../../scenario/ports.js';

class WatchedLine implements Line {
  readonly ranges: { readonly ranges: readonly Range[]; readonly done: (answer: RangeAnswer) => void }[] = [];
  readonly handlers: ChangesHandler[] = [];
  resets = 0;
  #line: LineHandlers | undefined;

  open(handlers: LineHandlers): void { this.#line = handlers; }

  up(): void { this.#line?.onUp('here'); }

  transact(): void {}

  range(ranges: readonly Range[], done: (answer: RangeAnswer) => void): void { this.ranges.push({ ranges, done }); }

  watch(_prefixes: readonly string[], _after: number, handler: ChangesHandler): { close(): void } {
    this.handlers.push(handler);
    return { close: () => {} };
  }

  grant(): void {}

  renew(): void {}

  revoke(): void {}

  reset(): void { this.resets += 1; }

  close(): void {}
}

function listener(told: string[]): WatchListener {
  return {
    onSnapshot: (entries) => { told.push(`all ${entries.map(({ value }) => value).join()}`); },
    onChange: ({ value }) => { told.push(value); },
    onDeleted: (key) => { told.push(`no ${key}`); },
    onAway: () => { told.push('away'); },
  };
}

function changed(value: string, revision: number): Change {
  return { key: 'a', revision, entry: { key: 'a', value, revision, session: '' } };
}

test('a change that the read has told already, or an older one, is not told again', () => {
  const told: string[] = [];
  const line = new WatchedLine();
  const watching = new Watching(['a'], listener(told));
  watching.ask(line, 0, () => {});
  line.ranges[0]?.done({ kind: 'entries', revision: 5, entries: [{ key: 'a', value: 'five', revision: 5, session: '' }] });
  line.handlers[0]?.onChanges([changed('four', 4), changed('five', 5), changed('six', 6)]);
  assert.deepEqual(told, ['all five', 'six']);
});

test('what a watch hears is a word of the register: none is asked for, and its line is not given up', () => {
  const { probeMs, silenceMs } = DEFAULT_CLIENT_OPTIONS;
  const line = new WatchedLine();
  const soon: (() => void)[] = [];
  let nowMs = 0;
  const client = new RegisterClient(DEFAULT_CLIENT_OPTIONS, {
    line, clock: { nowMs: () => nowMs, wallMs: () => nowMs }, soon: (run) => { soon.push(run); }, random: () => 0.5, log: new KeptLog(() => nowMs, () => {}),
  });
  line.up();
  client.watch(['a'], listener([]));
  while (soon.length > 0) soon.shift()?.();
  line.ranges[0]?.done({ kind: 'entries', revision: 1, entries: [] });
  for (let revision = 2; nowMs < 2 * silenceMs; revision += 1) {
    nowMs += probeMs / 4;
    line.handlers[0]?.onChanges([changed('x', revision)]);
    client.tick();
  }
  const probes = (): number => line.ranges.filter(({ ranges: [first] }) => first !== undefined && 'key' in first && first.key === PROBE_KEY).length;
  assert.deepEqual([probes(), line.resets], [0, 0]);
  for (let i = 0; i < 4; i += 1) {
    nowMs += probeMs / 4;
    client.tick();
  }
  assert.equal(probes(), 1, 'silent for so long');
});
