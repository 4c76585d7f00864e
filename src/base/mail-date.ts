/**
 * Dates as header fields write them (RFC 5322 3.3), in UTC, without the Date of the language, which pure code
 * does not have.
 */

const DAY_NAMES = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
const MONTH_NAMES = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const DAY_SECONDS = 86_400;
/** 1970-01-01 was a Thursday. */
const EPOCH_WEEKDAY = 4;
/** Days from 0000-03-01 to 1970-01-01: years that begin in March have their leap day last. */
const EPOCH_DAYS = 719_468;
/** Days of 400 years, of which the calendar repeats itself. */
const ERA_DAYS = 146_097;

/** "Sat, 21 Nov 2026 02:46:08 +0000" of milliseconds since the Unix epoch. */
export function mailDate(wallMs: number): string {
  const seconds = Math.floor(wallMs / 1000);
  const day = Math.floor(seconds / DAY_SECONDS);
  const ofDay = seconds - day * DAY_SECONDS;
  const { year, month, date } = civil(day);
  const time = [Math.floor(ofDay / 3600), Math.floor(ofDay / 60) % 60, ofDay % 60].map(twoDigits).join(':');
  const weekday = (((day + EPOCH_WEEKDAY) % 7) + 7) % 7;
  const named = `${DAY_NAMES[weekday] ?? ''}, ${twoDigits(date)} ${MONTH_NAMES[month] ?? ''}`;
  return `${named} ${String(year).padStart(4, '0')} ${time} +0000`;
}

/**
 * Month counted from 0. The method is that of Howard Hinnant's "chrono-Compatible Low-Level Date Algorithms".
 */
function civil(day: number): { readonly year: number; readonly month: number; readonly date: number } {
  const shifted = day + EPOCH_DAYS;
  const era = Math.floor(shifted / ERA_DAYS);
  const ofEra = shifted - era * ERA_DAYS;
  const leapDays = Math.floor(ofEra / 1460) - Math.floor(ofEra / 36_524) + Math.floor(ofEra / 146_096);
  const yearOfEra = Math.floor((ofEra - leapDays) / 365);
  const ofYear = ofEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const marchMonth = Math.floor((5 * ofYear + 2) / 153);
  const date = ofYear - Math.floor((153 * marchMonth + 2) / 5) + 1;
  const month = marchMonth < 10 ? marchMonth + 2 : marchMonth - 10;
  return { year: yearOfEra + era * 400 + (month < 2 ? 1 : 0), month, date };
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}
