/**
 * A line of the mail log for people: when, who, what, which message, the words, then the other fields as they
 * stand in the line. What clients and next hops said stays escaped: no terminal obeys it.
 *
 *   2026-01-31 10:00:00.123  gw-1  delivered  000H3ZK9Q4D  from=a@example.org … reply="250 OK"
 */
import { paint, printable } from '../tables.js';
import type { Colour } from '../tables.js';
import type { LogFields } from '../../observability/log-filter.js';

const COLOURS: Readonly<Record<string, Colour>> = {
  delivered: 'green', deferred: 'yellow', held: 'yellow', suspended: 'yellow', bounced: 'red', expired: 'red',
  rejected: 'red', removed: 'red', crash: 'red', error: 'red', warn: 'yellow',
};
const EVENT_COLUMNS = 9;
const PLAIN_VALUE = /^[^\s"=]+$/;
/** Said by the beginning of the line, or by every line of a process. */
const SAID: ReadonlySet<string> =
  new Set(['level', 'time', 'event', 'gateway', 'name', 'pid', 'msg', 'queue_id']);

export function lineText(fields: LogFields, isTty: boolean): string {
  const { time, level, event, gateway, name, queue_id: id, msg } = fields;
  const what = printable(wordOf(event));
  const colour = COLOURS[what] ?? COLOURS[wordOf(level)];
  const shown = what.padEnd(EVENT_COLUMNS);
  const rest = Object.entries(fields).filter(([key]) => !SAID.has(key)).map(([key, value]) =>
    `${printable(key)}=${valueText(value)}`);
  const words = [wordOf(time).replace('T', ' ').replace('Z', ''), wordOf(gateway) || wordOf(name)];
  return [
    ...words.map(printable), colour === undefined ? shown : paint(shown, colour, isTty),
    ...[wordOf(id), wordOf(msg)].filter((word) => word !== '').map(printable), rest.join(' '),
  ].join('  ').trimEnd();
}

function wordOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function valueText(value: unknown): string {
  if (typeof value === 'string' && PLAIN_VALUE.test(value)) return printable(value);
  return printable(JSON.stringify(value));
}
