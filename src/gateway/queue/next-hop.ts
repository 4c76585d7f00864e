/** A next hop as text: as people write it, and with all that two must share to be one. Pure. */
import { addressText } from '../../base/address-text.js';
import type { HostTerms, NextHop, NextHopAuth, NextHopTls, TlsNeed } from '../mail-types.js';

/** Behind every host of an MX record. */
export const FALLBACK_PREFERENCE = 65_536;

/** Behind the name of a queue; no name of a route ends so (config/keys/values.ts). */
export const NEED_MARKS: Readonly<Record<TlsNeed, string>> = { required: '!tls', optional: '!any' };

/** What may tell a next hop from others that lead to the same host, and share no connection with it. */
export interface HopTerms {
  readonly tlsNeed?: TlsNeed | undefined;
  readonly auth?: NextHopAuth | undefined;
  readonly sources?: readonly string[] | undefined;
}

/** Behind what status calls it: " (as user, from 192.0.2.1)". `policies`: what its domains ask for. */
export function termsText({ tlsNeed, auth, sources }: HopTerms, policies: readonly string[] = []): string {
  const [source, ...others] = sources ?? [];
  const more = others.length === 0 ? '' : ` and ${String(others.length)} more`;
  const terms = [
    ...(tlsNeed === undefined ? [] : [NEED_MARKS[tlsNeed]]),
    ...(auth === undefined ? [] : [`as ${auth.user}`]),
    ...(source === undefined ? [] : [`from ${source}${more}`]),
    ...policies,
  ];
  return terms.length === 0 ? '' : ` (${terms.join(', ')})`;
}

/** Of a queue, for operators: one that no route leads out of has none. */
export function nextHopOf(
  { routed, route }: { readonly routed: boolean; readonly route: { readonly nextHop: NextHop } },
): string {
  return routed ? nextHopUrl(route.nextHop) : 'no route';
}

/** "smtps://mx.example.net:465"; by MX, "mx://example.com:25", the destination domain. */
export function nextHopUrl({ protocol, host, port, isByMx, tls }: NextHop): string {
  const scheme = isByMx === true ? 'mx' : `${protocol}${tls?.isFirst === true ? 's' : ''}`;
  return `${scheme}://${addressText(host, port)}`;
}

/** Connections of one serve another only where these are the same. */
export function nextHopKey(hop: NextHop): string {
  const { protocol, host, port, isByMx } = hop;
  return `${isByMx === true ? 'mx' : protocol} ${host} ${String(port)}${termsKey(hop)}`;
}

/** All but where it leads first. One begun unjudged serves no `verify`, one of a user no other, nor one
 * from another address. */
export function termsKey({ tls, auth, others = [], tlsNeed, sources }: NextHop): string {
  const more = others.map(({ host, port, preference, terms }) =>
    [' or', host, port, preference].join(' ') + (terms === undefined ? '' : ` own${hostKey(terms)}`));
  const from = sources === undefined ? '' : ` from ${sources.join()}`;
  return hostKey({ tls, auth }) + from + more.join('') + (tlsNeed === undefined ? '' : ` ${tlsNeed}`);
}

function hostKey({ tls, auth }: HostTerms): string {
  return tlsKey(tls) + authKey(auth);
}

function tlsKey(tls: NextHopTls | undefined): string {
  if (tls === undefined) return '';
  const { level, isFirst, terms: { serverName, caFile = '' } } = tls;
  return ` ${level}${isFirst ? ' first' : ''} ${serverName} ${caFile}`;
}

/** Two files of one user may hold two passwords. */
function authKey(auth: NextHopAuth | undefined): string {
  return auth === undefined ? '' : ` as ${JSON.stringify([auth.user, auth.passwordFile])}`;
}
