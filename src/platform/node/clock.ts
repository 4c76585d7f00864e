/**
 * The real Clock, and the ticker that drives the machines. The ticker keeps the promise that
 * machines which judge silence rely on: between two ticks lies at least one full poll of the sockets.
 * Node runs timers before it reads sockets, so after a blocked turn two plain timers could fire with the
 * peer's answer still unread in the kernel.
 */
import type { Clock } from '../ports.js';

export class SystemClock implements Clock {
  nowMs(): number {
    return performance.now();
  }

  wallMs(): number {
    return Date.now();
  }
}

export interface Ticker {
  stop(): void;
}

/** Calls tick(nowMs) about every `intervalMs`, each time after the sockets were polled, until stopped. */
export function startTicker(clock: Clock, intervalMs: number, tick: (nowMs: number) => void): Ticker {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let immediate: NodeJS.Immediate | undefined;
  // The check phase, where immediates run, comes right after the poll phase of the same turn.
  const afterPoll = (): void => {
    if (stopped) return;
    timer = setTimeout(onTimer, intervalMs);
    tick(clock.nowMs());
  };
  const onTimer = (): void => {
    immediate = setImmediate(afterPoll);
  };
  timer = setTimeout(onTimer, intervalMs);
  return {
    stop: () => {
      stopped = true;
      clearTimeout(timer);
      clearImmediate(immediate);
    },
  };
}
