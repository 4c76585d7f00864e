/** Reads of a client: what is asked in one turn goes to the register in few calls. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { DEFAULT_CLIENT_OPTIONS, RegisterClient } from '../../../../src/register/client/register-client.js';
import type { ReadResult } from '../../../../src/register/port.js';
import { SimulatedLine } from '../../../../src/register/simulated/simulated-line.js';
import { SimulatedWorld } from '../simulated-world.js';

class CountingLine extends SimulatedLine {
  readonly sizes: number[] = [];

  override range(...[ranges, done]: Parameters<SimulatedLine['range']>): void {
    this.sizes.push(ranges.length);
    super.range(ranges, done);
  }
}

test('keys of one turn go in as few calls as operations allow, a prefix by itself', async () => {
  const world = new SimulatedWorld();
  const line = new CountingLine(world.register, world.time);
  const options = { ...DEFAULT_CLIENT_OPTIONS, operationsMax: 10, probeMs: 60_000, silenceMs: 70_000 };
  const { time, log } = world;
  const soon = (run: () => void): void => {
    time.soon(run);
  };
  const client = new RegisterClient(options, { line, clock: time, soon, random: () => 0.5, log });
  const results: ReadResult[] = [];
  const keep = (result: ReadResult): void => {
    results.push(result);
  };
  for (let i = 0; i < 25; i++) client.read({ key: `k/${String(i)}` }, keep);
  client.read({ prefix: 'k/' }, keep);
  await world.until(() => results.length === 26, 'all are answered');
  assert.deepEqual(line.sizes.sort((a, b) => a - b), [1, 5, 10, 10]);
  assert.ok(results.every(({ kind }) => kind === 'entries'));
  client.close();
});
