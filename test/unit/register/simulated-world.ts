/**
 * A contract world over the simulated register: the scenario's scheduler, stepped until what is waited for
 * has come.
 */
import assert from 'node:assert/strict';

import { Prng } from '../../../src/base/prng.js';
import { DEFAULT_CLIENT_OPTIONS, RegisterClient } from '../../../src/register/client/register-client.js';
import { SimulatedLine } from '../../../src/register/simulated/simulated-line.js';
import { SimulatedRegister } from '../../../src/register/simulated/simulated-register.js';
import type { Timeline } from '../../../src/register/simulated/simulated-register.js';
import { KeptLog } from '../../scenario/ports.js';
import { Scheduler } from '../../scenario/scheduler.js';
import type { World } from './contract.js';

const TICK_MS = 100;
const WAIT_MS = 60_000;

export class SimulatedWorld implements World {
  readonly scheduler = new Scheduler();
  readonly prng: Prng;
  readonly time: Timeline;
  readonly register: SimulatedRegister;
  readonly log = new KeptLog(() => this.scheduler.nowMs, () => {});

  constructor(seed = 1) {
    this.prng = new Prng(seed);
    const { scheduler } = this;
    this.time = {
      nowMs: () => scheduler.nowMs,
      wallMs: () => scheduler.nowMs,
      after: (delayMs, run) => {
        scheduler.after(delayMs, run);
      },
      soon: (run) => {
        scheduler.soon(run);
      },
    };
    this.register = new SimulatedRegister(this.time, this.prng.fork());
  }

  client(): RegisterClient {
    const prng = this.prng.fork();
    const client = new RegisterClient(DEFAULT_CLIENT_OPTIONS, {
      line: new SimulatedLine(this.register, this.time),
      clock: this.time,
      soon: (run) => {
        this.scheduler.soon(run);
      },
      random: () => prng.next(),
      log: this.log,
    });
    const tick = (): void => {
      client.tick();
      this.scheduler.after(TICK_MS, tick);
    };
    this.scheduler.after(TICK_MS, tick);
    return client;
  }

  until(isTrue: () => boolean, what: string): Promise<void> {
    const endMs = this.scheduler.nowMs + WAIT_MS;
    while (!isTrue()) {
      assert.ok(
        this.scheduler.step() && this.scheduler.nowMs < endMs,
        `${what}: not so within ${String(WAIT_MS)} ms`,
      );
    }
    return Promise.resolve();
  }

  run(ms: number): void {
    this.scheduler.runUntil(this.scheduler.nowMs + ms);
  }

  nowMs(): number {
    return this.scheduler.nowMs;
  }

  stop(): Promise<void> {
    return Promise.resolve();
  }
}
