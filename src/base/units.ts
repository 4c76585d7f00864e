/**
 * Sizes, times and counts as people write and read them. "KB" is 1000 bytes and "KiB" 1024, as the
 * standards say; a bare "K" could be either and is refused. What can't be read comes back as a reason.
 */

export type Parsed = { readonly ok: true; readonly value: number }
  | { readonly ok: false; readonly why: string };

const BYTE_UNITS: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ['b', 1],
  ['kb', 1e3],
  ['mb', 1e6],
  ['gb', 1e9],
  ['tb', 1e12],
  ['kib', 2 ** 10],
  ['mib', 2 ** 20],
  ['gib', 2 ** 30],
  ['tib', 2 ** 40],
]);

const DURATION_UNITS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1000],
  ['sec', 1000],
  ['m', 60_000],
  ['min', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
  ['w', 604_800_000],
]);

const SIZE = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i;
const DURATION = /^(?:\d+(?:\.\d+)?\s*[a-z]+\s*)+$/i;
const DURATION_PART = /(\d+(?:\.\d+)?)\s*([a-z]+)/gi;

/** "25MiB", "64 KB", "512" (bytes). A whole number of bytes. */
export function parseBytes(text: string): Parsed {
  const match = SIZE.exec(text.trim());
  const unit = BYTE_UNITS.get((match?.[2] ?? '?').toLowerCase());
  if (match === null || unit === undefined) {
    return {
      ok: false,
      why: `"${text}" is no size: write a number and B, KB, MB, GB, KiB, MiB or GiB, such as 25MiB`,
    };
  }
  const value = Number(match[1]) * unit;
  if (!Number.isSafeInteger(value)) {
    return { ok: false, why: `"${text}" is no whole number of bytes below 2^53` };
  }
  return { ok: true, value };
}

/** "250ms", "30s", "5min", "1h30m", "5d" in milliseconds. */
export function parseDuration(text: string): Parsed {
  const trimmed = text.trim();
  const why = `"${text}" is no time: write a number and ms, s, min, h or d, such as 30s or 1h30m`;
  if (!DURATION.test(trimmed)) return { ok: false, why };
  let value = 0;
  let lastUnit = Infinity;
  for (const part of trimmed.matchAll(DURATION_PART)) {
    const unit = DURATION_UNITS.get((part[2] ?? '').toLowerCase());
    if (unit === undefined) return { ok: false, why };
    if (unit >= lastUnit) {
      return { ok: false, why: `"${text}" does not go from larger units to smaller ones` };
    }
    lastUnit = unit;
    value += Number(part[1]) * unit;
  }
  value = Math.round(value);
  if (!Number.isSafeInteger(value)) return { ok: false, why: `"${text}" is too long a time` };
  return { ok: true, value };
}

const SHOWN_BYTES: readonly (readonly [string, number])[] = [
  ['TiB', 2 ** 40],
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
];

/** "25MiB", "1.5KiB", "512B": at most one decimal. */
export function formatBytes(bytes: number): string {
  for (const [unit, size] of SHOWN_BYTES) {
    // 1023.96 KiB would be shown as "1024KiB"; it goes to the larger unit.
    if (Math.abs(bytes) >= size * 0.99995) return oneDecimal(bytes / size) + unit;
  }
  return `${String(Math.round(bytes))}B`;
}

const SHOWN_TIMES: readonly (readonly [string, number])[] = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
];

/** The two largest units: "5d", "1h30min", "2.5s", "250ms". parseDuration reads it back. */
export function formatDuration(ms: number): string {
  if (ms < 0) return `-${formatDuration(-ms)}`;
  if (ms < 999.5) return `${oneDecimal(ms)}ms`;
  if (ms < 59_950) return `${oneDecimal(ms / 1000)}s`;
  let rest = Math.round(ms / 1000) * 1000;
  if (rest >= 86_400_000) rest = Math.round(rest / 3_600_000) * 3_600_000;
  else if (rest >= 3_600_000) rest = Math.round(rest / 60_000) * 60_000;
  let shown = '';
  for (const [unit, size] of SHOWN_TIMES) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) shown += String(count) + unit;
  }
  return shown;
}

/** "1,234,567". */
export function formatCount(count: number): string {
  const digits = String(Math.round(Math.abs(count)));
  let shown = digits.slice(-3);
  for (let end = digits.length - 3; end > 0; end -= 3) {
    shown = `${digits.slice(Math.max(0, end - 3), end)},${shown}`;
  }
  return count < 0 ? `-${shown}` : shown;
}

function oneDecimal(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** Times in answers: whole seconds since 1970. */
export function wholeSeconds(wallMs: number): number {
  return Math.floor(wallMs / 1000);
}
