/**
 * What a bench of one piece is asked for, beside what it measured: each goal is stated once, where it is judged. Exit
 * code 1 tells whoever calls the bench that one is not met; no test of CI asks for a time.
 */
import { judge } from './goals.js';

export interface Bound {
  readonly what: string;
  readonly value: number;
  readonly atMost: number;
  readonly unit: string;
}

/** A line each. */
export function verdictsOn(bounds: readonly Bound[]): { readonly lines: readonly string[]; readonly exitCode: 0 | 1 } {
  const goals = bounds.map((bound) => judge({ subject: '', goal: `${bound.what} ≤ ${String(bound.atMost)}${bound.unit}`, ...bound }));
  return {
    lines: goals.map(({ isMet, goal, measured }) => `${isMet === true ? 'met    ' : 'NOT MET'}  ${goal}: ${measured}`),
    exitCode: goals.every(({ isMet }) => isMet === true) ? 0 : 1,
  };
}

/** Prints them. */
export function sayVerdicts(bounds: readonly Bound[]): void {
  const { lines, exitCode } = verdictsOn(bounds);
  for (const line of lines) console.log(line);
  process.exitCode = exitCode;
}
