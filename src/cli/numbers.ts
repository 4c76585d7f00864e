/** Arguments with a unit or a range, refused by one line that names the option. */
import { parseDuration } from '../base/units.js';
import { parseAddress } from '../config/keys/values.js';
import type { Address } from '../config/keys/values.js';
import { UsageError } from './context.js';

export function durationArgument(option: string, value: string): number {
  const parsed = parseDuration(value);
  if (!parsed.ok) throw new UsageError(`--${option}: ${parsed.why}`);
  return parsed.value;
}

const TIME = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)?$/;

/** In milliseconds since 1970; of this machine's zone where none is said. */
export function timeArgument(option: string, value: string): number {
  const ms = TIME.test(value) ? Date.parse(value.replace(' ', 'T')) : NaN;
  if (Number.isNaN(ms)) {
    throw new UsageError(`--${option}: '${value}' is no time; an example: 2026-12-24T18:00`);
  }
  return ms;
}

export function addressArgument(option: string, value: string): Address {
  const address = parseAddress(value);
  if (address === undefined) {
    throw new UsageError(`--${option}: '${value}' is no address; an example: 127.0.0.1:2525`);
  }
  return address;
}

export function shareArgument(option: string, value: number): number {
  if (!(value >= 0 && value <= 1)) {
    throw new UsageError(`--${option} is a share from 0 to 1, found ${String(value)}`);
  }
  return value;
}

export function countArgument(option: string, value: number, min: number, max: number): number {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new UsageError(
      `--${option} is a whole number from ${String(min)} to ${String(max)}, found ${String(value)}`,
    );
  }
  return value;
}
