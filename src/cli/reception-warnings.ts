/**
 * What `config check` warns of at the side of reception: it would start by this configuration, but not take
 * mail as its operator means. Files can be read, as was found before (reception-files.ts).
 */
import { hasRoute, isMet } from '../config/strangers.js';
import type { GatewayConfig } from '../config/types.js';
import { RelayPolicy } from '../gateway/inbound/policy/relay-policy.js';
import { TableFile } from '../gateway/inbound/recipients-file.js';
import { toAscii } from '../platform/node/idna.js';
import { readPem, whyNotFor } from '../platform/node/certificates.js';
import { quotedNames } from './reception-files.js';

/** A line each. */
export function receptionWarnings(gateway: GatewayConfig): readonly string[] {
  const { places } = gateway;
  return [
    ['gateway.smtp.relay_domains', unroutedDomains(gateway)] as const,
    ['gateway.smtp.relay_domains', closedDomains(gateway)] as const, ...nameWarnings(gateway),
    ...guessWarnings(gateway), ...ownNameWarnings(gateway),
  ].flatMap(([key, text]) => (text === '' ? [] : [`${places[key] ?? '?'}: ${key}: warning: ${text}`]));
}

function unroutedDomains({ routes, smtp }: GatewayConfig): string {
  if (mayRouteByTable(smtp)) return '';
  const routed = new Set(routes.flatMap(({ domains }) => domains));
  const unrouted = smtp.relayDomains.filter((domain) => !hasRoute(routed, domain));
  if (unrouted.length === 0) return '';
  return `gateway.routes has no route for ${quotedNames(unrouted)}: mail to them is refused with 550, though `
    + 'their domain is relayed for';
}

/** A route says where mail goes, and not that strangers may send it there: one's own domain needs both. */
function closedDomains({ routes, smtp: { listen, relayDomains } }: GatewayConfig): string {
  if (!listen.some((listener) => listener.role === 'relay' && isMet(listener))) return '';
  const policy = new RelayPolicy({ networks: [], domains: relayDomains }, toAscii);
  const closed = routes.filter(({ nextHop }) => nextHop.protocol === 'lmtp').flatMap(({ domains }) => domains)
    .filter((domain) => domain !== '*' && !policy.isRelayDomain(domain.replace(/^\*\./, 'x.')));
  if (closed.length === 0) return '';
  return `strangers who send to ${quotedNames(closed)} are refused with 550 (relaying denied), though a `
    + 'route leads to mailboxes (lmtp): add it here, *.x.example as .x.example';
}

/** Of what others answer by HTTP nothing is known here. */
function mayRouteByTable({ recipientsFile, recipientsByHttp }: GatewayConfig['smtp']): boolean {
  if (recipientsFile === undefined) return recipientsByHttp !== undefined;
  const table = new TableFile(recipientsFile);
  table.close();
  return table.head.routes.length > 0;
}

/** Of a gateway that strangers talk to: what they think of its name. */
function nameWarnings({ hostName, smtp: { listen, tls } }: GatewayConfig): (readonly [string, string])[] {
  if (!listen.some(isMet)) return [];
  const single = hostName.includes('.') ? '' : `'${hostName}' has one label, which many servers refuse in `
    + 'EHLO (RFC 5321 2.3.5): say the whole name of this host';
  const certificate = certificateWarning(hostName, tls?.certFile);
  return [['gateway.hostname', single], ['gateway.smtp.tls.cert', certificate]];
}

/** Three guesses end a session, and the next one begins: by themselves sessions bound nobody. */
function guessWarnings({ smtp: { listen, rates } }: GatewayConfig): (readonly [string, string])[] {
  if (rates.client.errors > 0) return [];
  return listen.flatMap((listener, i) => {
    if (listener.role !== 'submission' || !isMet(listener)) return [];
    const why = 'strangers may guess passwords here as often as they like: bound it with limits: '
      + '{client: {errors: 30}} (in any minute; SMTP commands that are refused count too)';
    return [[`gateway.smtp.listen[${String(i)}].role`, why] as const];
  });
}

/** Whoever filters by the field believes all that bears our name, by whatever listener it came in. */
function ownNameWarnings({ smtp: { listen } }: GatewayConfig): (readonly [string, string])[] {
  const id = listen.find(({ authservId }) => authservId !== '')?.authservId;
  if (id === undefined) return [];
  return listen.flatMap((listener, i) => {
    if (listener.authservId !== '' || !isMet(listener)) return [];
    const why = `a field 'Authentication-Results: ${id}; …' that a client writes himself stays as it is `
      + 'here, though another listener says the like: set authentication_results: true, or let your own '
      + 'filters alone connect';
    return [[`gateway.smtp.listen[${String(i)}].role`, why] as const];
  });
}

function certificateWarning(hostName: string, file: string | undefined): string {
  const why = file === undefined ? '' : whyNotFor(hostName, readPem('cert', file));
  return why === '' ? '' : `'${file ?? ''}' is ${why}`;
}
