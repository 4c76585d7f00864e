/**
 * What `config check` says of a configuration that is sound, and seldom meant: lines of warning.
 */
import { isIP } from 'node:net';
import { addressText } from '../base/address-text.js';
import { formatDuration } from '../base/units.js';
import { leaseMinMs } from '../config/checks.js';
import type { GatewayConfig, StoreConfig } from '../config/types.js';
import { ownNames } from '../gateway/outbound/pure/source-choice.js';
import { readUsers } from '../gateway/inbound/users-file.js';
import { isLoopback } from '../platform/node/own-host.js';

/** Of a gateway that says nothing else. */
const FAILOVER_MS = 2000;
const HEARTBEAT_MS = 250;
/** TLS comes first there (RFC 8314 3.3), and with STARTTLS or not at all here. */
const TLS_FIRST_PORT = 465;
const STARTTLS_PORTS: readonly number[] = [25, 587];

/** `place`: of the whole. */
export function seldomMeant(
  place: string, gateway: GatewayConfig | undefined, stores: readonly StoreConfig[],
): readonly string[] {
  const leaseMs = leaseMinMs(FAILOVER_MS, HEARTBEAT_MS);
  const short = stores.filter((store) => store.leaseMs < leaseMs);
  const lines = short.map(({ section, places, leaseMs: found }) =>
    `${places[`${section}.lease`] ?? '?'}: ${section}.lease: warning: ${formatDuration(found)} is less than `
      + `gateways need by their defaults (${formatDuration(leaseMs)}: 3 × failover_timeout + 2 × heartbeat + `
      + `3s): they stop delivering in each stall`);
  const isForgetful = gateway?.register.kind === 'etcd' && gateway.stateDir === undefined;
  if (!isForgetful) return lines;
  return [...lines, `${place}: warning: gateway.state_dir is not set: nothing proves after a restart `
    + `that the process before has ended, and the gateway waits each time until its lease (10s) is over`];
}

/** Lines of warning about what a gateway is told to be, and can't be, or not to all. */
export function gatewayNotes(gateway: GatewayConfig): readonly string[] {
  const { routes, smtp: { relayCertificates } } = gateway;
  const ours = ownNames(gateway.hostName, gateway.sources);
  const notes: (readonly [key: string, text: string])[] = routes.flatMap(({ nextHop }, i) =>
    hopNotes(nextHop, ours).map((text) => [`gateway.routes[${String(i)}]`, text] as const));
  if (gateway.hostName.includes('_')) {
    const text = `'${gateway.hostName}' has an underscore, which no name of a host has (RFC 5321 2.3.5): `
      + 'others may refuse it in EHLO; take letters, digits and dashes';
    notes.push(['gateway.hostname', text]);
  }
  const wild = relayCertificates.find((name) => name.includes('*'));
  if (wild !== undefined) {
    const text = `'${wild}' is no pattern: it stands for a certificate with this very name, and no other`;
    notes.push(['gateway.smtp.relay_certificates', text]);
  }
  return warningLines(notes, gateway);
}

/** The same of users; all of their file is read. */
export function userNotes(gateway: GatewayConfig): readonly string[] {
  const { usersFile } = gateway.smtp;
  const whyNoScram = usersFile === undefined ? '' : readUsers(usersFile).whyNoScram;
  return whyNoScram === '' ? [] : warningLines([['gateway.smtp.users', whyNoScram]], gateway);
}

function warningLines(
  notes: readonly (readonly [key: string, text: string])[], { places }: GatewayConfig,
): readonly string[] {
  return notes.map(([key, text]) => `${places[key] ?? '?'}: ${key}: warning: ${text}`);
}

/** Of hosts that a route names; those of the DNS are called by name, at the port of all. */
function hopNotes(
  { protocol, host, port, isByMx, others = [], tls }: GatewayConfig['routes'][number]['nextHop'],
  ours: readonly string[],
): readonly string[] {
  const named = [
    ...(isByMx === true ? [] : [{ host, port, tls }]),
    ...others.map((other) => ({ ...other, tls: other.terms === undefined ? tls : other.terms.tls })),
  ];
  const notes = named.flatMap((hop) => {
    const isFirst = hop.tls?.isFirst === true;
    if (isFirst && STARTTLS_PORTS.includes(hop.port)) {
      return [`smtps://${addressText(hop.host, hop.port)}: servers begin in clear at that port, so that TLS `
        + `first fails ('wrong version number'): say smtp:// with tls: encrypt or verify, or port `
        + String(TLS_FIRST_PORT)];
    }
    if (protocol === 'smtp' && !isFirst && hop.port === TLS_FIRST_PORT) {
      return [`smtp://${addressText(hop.host, hop.port)}: servers begin with TLS at that port, so that no `
        + 'greeting comes: say smtps://'];
    }
    return [];
  });
  const own = protocol === 'lmtp' ? undefined
    : named.find((hop) => !isLoopback(hop.host) && ours.includes(hop.host.toLowerCase()));
  if (own !== undefined) {
    notes.push(`${addressText(own.host, own.port)} is a name of this gateway: if that leads to a gateway of `
      + 'this group, also by a balancer, its mail goes in a circle, and bounces');
  }
  const literal = named.find((hop) => {
    const { serverName = '', mustVerify = false } = hop.tls?.terms ?? {};
    return mustVerify && isIP(serverName === '' ? hop.host : serverName) !== 0;
  });
  if (literal === undefined) return notes;
  return [...notes, `tls: verify takes of '${literal.host}' a certificate for this address alone, and few `
    + 'have one: say the name that stands in it (server_name)'];
}
