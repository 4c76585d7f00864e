/** How status and the log name the next hop of a queue. */
import type { NextHop } from './types.js';

/** "smtp://mail.example.com:25"; by MX, "mx://example.com:25", the destination domain. */
export function nextHopText({ protocol, host, port, isByMx }: NextHop): string {
  return `${isByMx === true ? 'mx' : protocol}://${host}:${String(port)}`;
}
