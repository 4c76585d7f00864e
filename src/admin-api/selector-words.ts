/** A selector as an operator would type it, for lists and status. Pure. */
import { formatBytes, formatDuration } from '../base/units.js';
import type { OrderTerms, Selector } from './queue-orders.js';

/** Ids that are told; of the others how many there are. */
const IDS_SHOWN_MAX = 3;

/** With where mail is led to, of a rebind. */
export function selectorWords(selector: Selector, { route }: OrderTerms = {}): string {
  const { ids = [], older_than_seconds: older, newer_than_seconds: newer } = selector;
  const { larger_than_bytes: larger, everything } = selector;
  const said = ([
    ['domain', selector.domain], ['rcpt', selector.recipient], ['sender', selector.sender],
    ['client', selector.client], ['queue', selector.queue], ['route', selector.route],
    ['site', selector.site], ['class', selector.queue_class],
    ['reply', selector.reply],
    ['older-than', older === undefined ? undefined : formatDuration(older * 1000)],
    ['newer-than', newer === undefined ? undefined : formatDuration(newer * 1000)],
    ['larger-than', larger === undefined ? undefined : formatBytes(larger)],
  ] as const).flatMap(([option, value]) =>
    (value === undefined ? [] : [`--${option} ${value === '' ? "'<>'" : value}`]));
  const named = ids.slice(0, IDS_SHOWN_MAX).map((id) => `--id ${id}`);
  const more = ids.length > IDS_SHOWN_MAX ? [`and ${String(ids.length - IDS_SHOWN_MAX)} more`] : [];
  const all = [...said, ...named, ...more, ...(everything === true ? ['--everything'] : [])].join(' ');
  return route === undefined ? all : `${all} by route ${route}`;
}
