/**
 * A register client on the real clock: ticked until it is closed. Its ticker keeps the process
 * alive, as a listener would.
 */
import { SystemClock, startTicker } from '../../platform/node/clock.js';
import type { Ticker } from '../../platform/node/clock.js';
import type { EventLog } from '../../platform/ports.js';
import { RegisterClient } from '../client/register-client.js';
import type { RegisterClientOptions } from '../client/register-client.js';
import type { Line } from '../line.js';

const TICK_MS = 100;

export function soon(run: () => void): void {
  setImmediate(run);
}

export class RunningClient extends RegisterClient {
  readonly #ticker: Ticker;

  constructor(options: RegisterClientOptions, line: Line, log: EventLog) {
    const clock = new SystemClock();
    super(options, { line, clock, soon, random: Math.random, log });
    this.#ticker = startTicker(clock, TICK_MS, () => {
      this.tick();
    });
  }

  override close(): void {
    this.#ticker.stop();
    super.close();
  }
}
