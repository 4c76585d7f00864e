/** What many seeds came to, and which kinds of fault were never part of them. */
import type { FaultKind } from './plan.js';
import { ALL_KINDS } from './plan.js';
import type { RunResult } from './simulate.js';

/** With so many seeds each kind is on in forty of them: one that never fires can't fire. */
export const ALL_KINDS_SEEDS = 200;

export class Summary {
  seeds = 0;
  readonly failed: number[] = [];
  readonly fired = new Map<FaultKind, number>();
  private accepted = 0;
  private dots = 0;
  private excused = 0;
  private virtualMs = 0;
  private cpuMs = 0;

  /** `cpuMs`: what the seed took of the processor. */
  add(result: RunResult, cpuMs: number): void {
    this.seeds += 1;
    if (result.failure !== '') this.failed.push(result.seed);
    for (const [kind, count] of result.fired) this.fired.set(kind, (this.fired.get(kind) ?? 0) + count);
    this.accepted += result.accepted;
    this.dots += result.dots;
    this.excused += result.excused;
    this.virtualMs += result.virtualMs;
    this.cpuMs += cpuMs;
  }

  silentKinds(): FaultKind[] {
    return this.seeds < ALL_KINDS_SEEDS ? [] : ALL_KINDS.filter((kind) => !this.fired.has(kind));
  }

  lines(elapsedMs: number): string[] {
    const rows = [
      `${String(this.seeds)} seeds, ${String(this.failed.length)} failed${this.failed.length === 0 ? '' : `: ${this.failed.sort((a, b) => a - b).join(' ')}`}`,
      `${String(this.accepted)} messages accepted, ${String(this.dots)} final dots, ${String(this.excused)} copies lost with every holder; ${(this.virtualMs / 3_600_000).toFixed(1)} hours of virtual time in ${(elapsedMs / 1000).toFixed(1)} s, ${(this.cpuMs / Math.max(1, this.seeds)).toFixed(0)} ms of CPU a seed`,
      `faults: ${[...this.fired].sort().map(([kind, count]) => `${kind} ${String(count)}`).join(', ')}`,
    ];
    return rows;
  }
}
