/**
 * Numbers from repeated measurements: the middle and the range of rounds, the slope of a series.
 */
import { median } from './machine.js';

/** Rounds of one measurement. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** Undefined without a value. */
export function spreadOf(values: readonly number[]): Spread | undefined {
  return values.length === 0 ? undefined : { median: median(values), least: Math.min(...values), most: Math.max(...values) };
}

/** The slope of the straight line with the least squares through the points, in units of y for one of x; 0 for fewer than two. */
export function slopeOf(points: readonly (readonly [x: number, y: number])[]): number {
  const count = points.length;
  if (count < 2) return 0;
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / count;
  const meanY = points.reduce((sum, [, y]) => sum + y, 0) / count;
  let above = 0;
  let below = 0;
  for (const [x, y] of points) {
    above += (x - meanX) * (y - meanY);
    below += (x - meanX) ** 2;
  }
  return below === 0 ? 0 : above / below;
}
