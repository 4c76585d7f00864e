/** A next hop as text: as the configuration has it, and with all that two must share to be one. Pure. */
import type { NextHop } from './types.js';

/** "smtps://mx.example.net:465" */
export function nextHopUrl({ protocol, host, port, tls }: NextHop): string {
  return `${protocol}${tls?.isFirst === true ? 's' : ''}://${host}:${String(port)}`;
}

/** Connections of one serve another only where these are the same: one begun unjudged serves no `verify`. */
export function nextHopKey({ protocol, host, port, tls }: NextHop): string {
  const place = `${protocol} ${host} ${String(port)}`;
  if (tls === undefined) return place;
  const { level, isFirst, terms: { serverName, caFile = '' } } = tls;
  return `${place} ${level}${isFirst ? ' first' : ''} ${serverName} ${caFile}`;
}
