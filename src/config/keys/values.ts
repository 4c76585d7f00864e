/**
 * Values as people write them: "25MiB", "30s", "127.0.0.1:2525", "smtp://host:25", each as a zod type that
 * gives the plain value and, when it can't, says what was expected. The reader of an error message sees the
 * text of `expected()` and, added by problems.ts, what the file says instead.
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import { parseBytes, parseDuration } from '../../base/units.js';
import { addressText as hostAndPort } from '../../base/address-text.js';
import { kinds } from './key.js';
import type { Kind } from './key.js';

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** A gateway as others name it: in `group` and in a store's `gateways`. */
export interface GatewayName {
  readonly id: string;
  /** How many processes it runs; undefined: as many as the section that names it. */
  readonly workers: number | undefined;
}

const TEXT_CHARACTERS_MAX = 1024;
const DNS_PORT = 53;

/** Everything a value may fail with goes through here, so that problems.ts can add what was found. */
function expected<T>(
  parse: (value: unknown) => T | undefined, what: string, kind: Kind = {},
): z.ZodType<T> {
  const type = z.unknown().transform((value, context) => {
    const parsed = parse(value);
    if (parsed === undefined) {
      context.addIssue({ code: 'custom', message: what, input: value });
      return z.NEVER;
    }
    return parsed;
  });
  return type.register(kinds, kind);
}

export function bytes(min: number, max: number): z.ZodType<number> {
  return expected((value) => {
    if (typeof value === 'number') {
      return Number.isInteger(value) && within(value, min, max) ? value : undefined;
    }
    if (typeof value !== 'string') return undefined;
    const parsed = parseBytes(value);
    return parsed.ok && within(parsed.value, min, max) ? parsed.value : undefined;
  }, `a size from ${showBytes(min)} to ${showBytes(max)} such as ${max < 1048576 ? '64KiB' : '25MiB'}`, {
    shown: exactBytes,
  });
}

export function duration(minMs: number, maxMs: number): z.ZodType<number> {
  return expected((value) => {
    if (typeof value !== 'string') return value === 0 && minMs === 0 ? 0 : undefined;
    const parsed = parseDuration(value);
    return parsed.ok && within(parsed.value, minMs, maxMs) ? parsed.value : undefined;
  }, `a time with its unit from ${showMs(minMs)} to ${showMs(maxMs)} such as 250ms, 30s, 5min or 5d`, {
    shown: exactTime, isWord: true,
  });
}

/** Bytes a second: "500B/s". */
export function byteRate(): z.ZodType<number> {
  return expected((value) => {
    if (value === 0) return 0;
    if (typeof value !== 'string' || !value.endsWith('/s')) return undefined;
    const parsed = parseBytes(value.slice(0, -2).trim());
    return parsed.ok && within(parsed.value, 0, 2 ** 30) ? parsed.value : undefined;
  }, 'a rate such as 500B/s or 1KiB/s, or 0 for none', { shown: (rate: number) => `${exactBytes(rate)}/s` });
}

export function count(min: number, max: number): z.ZodType<number> {
  return expected(
    (value) =>
      (typeof value === 'number' && Number.isInteger(value) && within(value, min, max) ? value : undefined),
    `a whole number from ${String(min)} to ${String(max)}`,
  );
}

/** A share of something: 0.25 or "25%". */
export function share(): z.ZodType<number> {
  return expected((value) => {
    const number =
      typeof value === 'string' && /^\d+(\.\d+)?%$/.test(value) ? Number(value.slice(0, -1)) / 100 : value;
    return typeof number === 'number' && number > 0 && number <= 1 ? number : undefined;
  }, 'a share above 0 up to 1, such as 0.25 or 25%', {
    shown: (part: number) => `${(part * 100).toFixed(10).replace(/\.?0+$/, '')}%`,
  });
}

export function flag(): z.ZodType<boolean> {
  return expected((value) => {
    if (typeof value === 'boolean') return value;
    if (value === 'on' || value === 'yes') return true;
    return value === 'off' || value === 'no' ? false : undefined;
  }, 'true or false', { isWord: true });
}

/** A role of a process rather than a property: these two words alone. */
export function onOrOff(): z.ZodType<boolean> {
  return expected((value) => (value === 'on' ? true : value === 'off' ? false : undefined), 'on or off', {
    shown: (isOn: boolean) => (isOn ? 'on' : 'off'), isWord: true,
  });
}

export function oneOf<const T extends string>(words: readonly T[]): z.ZodType<T> {
  const parse = (value: unknown): T | undefined => words.find((word) => word === value);
  return expected(parse, `one of ${words.join(', ')}`, { isWord: true });
}

/** One line of text without control characters. */
export function text(what: string, kind?: Kind): z.ZodType<string> {
  return expected(
    (value) => (typeof value === 'string' && value !== '' && value.length <= TEXT_CHARACTERS_MAX
      && !/[\u0000-\u001f\u007f]/.test(value) ? value : undefined),
    what, kind,
  );
}

export function file(): z.ZodType<string> {
  return text('a file name', { isFile: true });
}

export function folder(): z.ZodType<string> {
  return text('a folder name', { isFile: true });
}

/** A file; the program gets what stands in it, without outer blanks. `what`: for an error. */
export function contentOf(what: string): z.ZodType<string> {
  return text('a file name', { content: { what, isAscii: false } });
}

/** As contentOf(), for a field of an HTTP header, which holds nothing else. */
export function asciiContentOf(what: string): z.ZodType<string> {
  return text('a file name', { content: { what, isAscii: true } });
}

export function secret(what: string): z.ZodType<string> {
  return text(what, { isSecret: true });
}

/**
 * Name of a queue: stands in the label of each of its entries (gateway/queue/label.ts). Not one of a queue
 * that stands beside another (gateway/queue/router.ts).
 */
const QUEUE_NAME = /^(?!.*!(tls|any)$)[\x20-\x7e]{1,200}$/;

export function queueName(): z.ZodType<string> {
  return expected(
    (value) => (typeof value === 'string' && QUEUE_NAME.test(value) ? value : undefined),
    'a queue name of 1 to 200 printable ASCII characters that do not end in !tls or !any',
  );
}

/** Ids of processes and host labels: they stand in frames, logs and file names. */
export function identifier(): z.ZodType<string> {
  return expected(
    (value) => (isIdentifier(value) ? value : undefined),
    'a name of 1 to 63 letters, digits, dots, dashes or underscores that starts with a letter or digit',
  );
}

/**
 * "gw-2", or {id: gw-2, workers: 4} where it runs another number of workers than the gateway that names it.
 */
export function groupMember(workersMax: number): z.ZodType<GatewayName> {
  return expected((value) => {
    if (isIdentifier(value)) return { id: value, workers: undefined };
    if (typeof value !== 'object' || value === null) return undefined;
    const { id, workers, ...others } = value as { readonly id?: unknown; readonly workers?: unknown };
    if (!isIdentifier(id) || Object.keys(others).length > 0) return undefined;
    if (workers === undefined) return { id, workers };
    return typeof workers === 'number' && Number.isInteger(workers) && within(workers, 1, workersMax)
      ? { id, workers } : undefined;
  }, `a gateway's id such as gw-2, or {id: gw-2, workers: 4} with at most ${String(workersMax)} workers`);
}

export function hostname(): z.ZodType<string> {
  return expected(
    (value) => (typeof value === 'string' && isHost(value) ? value.toLowerCase() : undefined),
    'a host name such as mx1.example.com',
  );
}

/** "host:port" or "[v6]:port" or a mapping with host and port. */
export function address(): z.ZodType<Address> {
  return expected((value) => {
    if (typeof value === 'string') return parseAddress(value);
    if (typeof value !== 'object' || value === null || Object.keys(value).length !== 2) return undefined;
    const { host, port } = value as { host?: unknown; port?: unknown };
    if (typeof host !== 'string' || typeof port !== 'number') return undefined;
    return parseAddress(host.includes(':') && !host.startsWith('[')
      ? `[${host}]:${String(port)}` : `${host}:${String(port)}`);
  }, 'an address such as 127.0.0.1:2525, [::1]:2525 or {host: 127.0.0.1, port: 2525}', {
    shown: addressText,
  });
}

/** A resolver of DNS: "127.0.0.1", "[::1]:53". A name would need one. */
export function resolver(): z.ZodType<Address> {
  return expected((value) => {
    if (typeof value !== 'string') return undefined;
    const parsed = isIP(value) === 0 ? parseAddress(value) : { host: value, port: DNS_PORT };
    return parsed !== undefined && isIP(parsed.host) !== 0 && parsed.port !== 0 ? parsed : undefined;
  }, 'an IP address such as 127.0.0.1, or with a port, [::1]:53', { shown: addressText });
}

/** An address of this machine as ipaddr.js writes it. */
export function sourceAddress(): z.ZodType<string> {
  return expected(sourceOf, 'an IP address of this machine such as 192.0.2.10 or 2001:db8::10');
}

/** A source: its address, or its name in EHLO. */
export function sourceName(): z.ZodType<string> {
  return expected(
    (value) => sourceOf(value)
      ?? (typeof value === 'string' && isDomain(value) ? value.toLowerCase() : undefined),
    'an address or a name of gateway.sources such as 192.0.2.10 or mail1.example.com',
  );
}

/** Not one that is many, nor IPv4 in IPv6, nor of a link: that needs the name of an interface. */
function sourceOf(value: unknown): string | undefined {
  if (typeof value !== 'string' || isIP(value) === 0 || value.includes('%')) return undefined;
  const parsed = ipaddr.parse(value);
  return NO_SOURCES.includes(parsed.range()) ? undefined : parsed.toString();
}

const NO_SOURCES: readonly string[] = ['unspecified', 'broadcast', 'multicast', 'linkLocal', 'ipv4Mapped'];

/** A route's domain: "example.com", "*.example.com" or "*". */
export function routeDomain(): z.ZodType<string> {
  return expected((value) => {
    if (typeof value !== 'string') return undefined;
    if (value === '*') return value;
    const bare = value.startsWith('*.') ? value.slice(2) : value;
    return isDomain(bare) ? value.toLowerCase() : undefined;
  }, "a domain such as example.com, *.example.com, or '*' for all others");
}

/** Of an address or a name, "*" for any run of characters (base/wildcards.ts). */
export function pattern(): z.ZodType<string> {
  return expected(
    (value) => (typeof value === 'string' && /^[^\s\x00-\x1f\x7f]{1,320}$/.test(value) ? value : undefined),
    "a pattern of up to 320 characters without blanks, such as '*@news.example.com'",
  );
}

/** Atoms joined by dots (RFC 5322 3.2.3). */
const DOT_ATOM = /^[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*$/;

/** An address without quotes, its domain in lower case. */
export function mailAddress(): z.ZodType<string> {
  return expected(
    (value) => {
      if (typeof value !== 'string') return undefined;
      const at = value.lastIndexOf('@');
      const [local, domain] = [value.slice(0, at), value.slice(at + 1).toLowerCase()];
      return at > 0 && DOT_ATOM.test(local) && isDomain(domain) ? `${local}@${domain}` : undefined;
    },
    'an address such as ops@example.com',
  );
}

/** A domain as addresses have it. */
export function domain(): z.ZodType<string> {
  return expected(
    (value) => (typeof value === 'string' && isDomain(value) ? value.toLowerCase() : undefined),
    'a domain such as fwd.example.com',
  );
}

/** What return addresses begin with, in front of a plus sign. */
export function returnPrefix(): z.ZodType<string> {
  return expected(
    (value) => (typeof value === 'string' && /^[a-z0-9]{1,16}$/i.test(value) && !/^srs[01]$/i.test(value)
      ? value.toLowerCase() : undefined),
    'letters and digits, 16 at most, and not srs0 or srs1',
  );
}

/** Where a domain keeps a key in DNS: labels joined by dots (RFC 6376 3.1). */
export function selector(): z.ZodType<string> {
  return expected(
    (value) => (typeof value === 'string' && value.length <= 63 && isDomain(value)
      ? value.toLowerCase() : undefined),
    'a selector such as s2026: letters, digits and dashes, in labels with dots between them, 63 at most',
  );
}

/** A domain that anyone may send to; ".example.com" means all below it. */
export function relayDomain(): z.ZodType<string> {
  return expected(
    (value) => (typeof value === 'string' && isDomain(value.startsWith('.') ? value.slice(1) : value)
      ? value.toLowerCase() : undefined),
    'a domain such as example.com, or .example.com for all below it',
  );
}

export interface NextHopValue {
  readonly protocol: 'smtp' | 'lmtp';
  /** '' of `mx`: it is the destination domain then. */
  readonly host: string;
  readonly port: number;
  readonly isByMx: boolean;
  /** smtps: TLS before the greeting. */
  readonly isTlsFirst: boolean;
}

const SMTP_PORT = 25;
/** Of submissions by smtps (RFC 8314 7.3). */
const SMTPS_PORT = 465;

const NEXT_HOPS_MAX = 8;

/** One host by name. */
export function nextHopHost(): z.ZodType<NextHopValue> {
  return expected((value) => {
    const hop = typeof value === 'string' ? parseNextHop(value) : undefined;
    return hop?.isByMx === false ? hop : undefined;
  }, 'a next hop such as smtp://mail.example.com:25, as via or fallback has it', { shown: nextHopAsWritten });
}

export function isSameHop(one: NextHopValue, other: NextHopValue): boolean {
  return nextHopAsWritten(one) === nextHopAsWritten(other);
}

/** One, or a list of them. */
export function nextHops(): z.ZodType<readonly NextHopValue[]> {
  return expected((value) => {
    const texts: readonly unknown[] = Array.isArray(value) ? value : [value];
    const hops = texts.flatMap((text) => (typeof text === 'string' ? parseNextHop(text) ?? [] : []));
    const isWhole = hops.length === texts.length && hops.length > 0 && hops.length <= NEXT_HOPS_MAX;
    return isWhole ? hops : undefined;
  }, 'mx, or a next hop such as smtp://mail.example.com:25, smtps://mail.example.com or '
    + `lmtp://127.0.0.1:24, or a list of ${String(NEXT_HOPS_MAX)} at most`, {
    shown: (hops: readonly NextHopValue[]) => {
      const [first = '', ...more] = hops.map(nextHopAsWritten);
      return more.length === 0 ? first : [first, ...more];
    },
  });
}

/** A port beside `mx` is for places where all hosts have another one. */
function parseNextHop(value: string): NextHopValue | undefined {
  const byMx = /^mx(?::([1-9]\d{0,4}))?$/.exec(value);
  if (byMx !== null) {
    const port = Number(byMx[1] ?? SMTP_PORT);
    return port > 65_535 ? undefined : { protocol: 'smtp', host: '', port, isByMx: true, isTlsFirst: false };
  }
  const [, scheme, place = ''] = /^(smtp|smtps|lmtp):\/\/(.+)$/.exec(value) ?? [];
  if (scheme === undefined) return undefined;
  const isTlsFirst = scheme === 'smtps';
  const hasPort = /^\[.*\]:|^[^[:]*:/.test(place);
  const parsed = parseAddress(isTlsFirst && !hasPort ? `${place}:${String(SMTPS_PORT)}` : place);
  const protocol = scheme === 'lmtp' ? 'lmtp' : 'smtp';
  return parsed === undefined ? undefined : { protocol, ...parsed, isByMx: false, isTlsFirst };
}

function nextHopAsWritten(hop: NextHopValue): string {
  if (!hop.isByMx) return `${hop.protocol}${hop.isTlsFirst ? 's' : ''}://${addressText(hop)}`;
  return hop.port === SMTP_PORT ? 'mx' : `mx:${String(hop.port)}`;
}

/** "https://10.1.0.5:2379": where etcd answers. */
export function etcdUrl(): z.ZodType<string> {
  return expected((value) => {
    const match = typeof value === 'string' ? /^https?:\/\/([^/?#@]+)\/?$/.exec(value) : null;
    const parsed = match === null ? undefined : parseAddress(match[1] ?? '');
    return parsed === undefined || parsed.port === 0 ? undefined : String(value).replace(/\/$/, '');
  }, 'an address of etcd such as https://10.1.0.5:2379');
}

const HIDDEN_QUERY = '?(hidden)';

/** Where secrets go as they are: encrypted, or not off this machine. */
export function secretUrl(): z.ZodType<string> {
  return expected((value) => {
    // What was printed is no address to ask: it would be asked without the key.
    if (typeof value !== 'string' || !URL.canParse(value) || value.endsWith(HIDDEN_QUERY)) return undefined;
    const { protocol, hostname, username, password } = new URL(value);
    const isOwn = protocol === 'http:' && ['127.0.0.1', '[::1]', 'localhost'].includes(hostname);
    return (protocol === 'https:' || isOwn) && username + password === '' ? value : undefined;
  }, 'an address such as https://users.example.com/check, or http:// on loopback', { shown: withoutQuery });
}

/** Keys of an API stand there. */
export function withoutQuery(url: string): string {
  return url.replace(/[?#].*$/s, HIDDEN_QUERY);
}

/** Of a server, without a path: "http://127.0.0.1:11333". */
export function serverUrl(): z.ZodType<string> {
  return expected((value) => {
    if (typeof value !== 'string' || !URL.canParse(value)) return undefined;
    const { protocol, username, password, pathname, search, hash } = new URL(value);
    const isPlain = username + password === '' && pathname === '/' && search === '' && hash === '';
    return isPlain && (protocol === 'http:' || protocol === 'https:') ? value : undefined;
  }, 'an address without a path, such as http://127.0.0.1:11333');
}

/**
 * "127.0.0.0/8", "::1", "10.1.2.3". A client is known by its IPv4 address, also where a socket has that in
 * IPv6: nobody would be in a network of those.
 */
export function network(): z.ZodType<string> {
  return expected(
    (value) => (typeof value === 'string' && isNetwork(value) ? value.toLowerCase() : undefined),
    'a network such as 10.0.0.0/8 (no bits set behind its length), 192.168.1.7 or fd00::/8 (IPv4 as such, '
      + 'not as ::ffff:…)',
  );
}

export function parseAddress(value: string): Address | undefined {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s/]+)):(\d{1,5})$/.exec(value);
  if (match === null) return undefined;
  const host = match[1] ?? match[2] ?? '';
  const port = Number(match[3]);
  if (port > 65535 || (match[1] === undefined && !isHost(host))) return undefined;
  return { host, port };
}

export function addressText({ host, port }: Address): string {
  return hostAndPort(host, port);
}

function isIdentifier(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/.test(value);
}

function isHost(value: string): boolean {
  return value.length <= 253 && /^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$/.test(value);
}

/**
 * As addresses have them (RFC 5321 4.1.2): reception takes no underscore, so a route or relay domain with one
 * would match nothing.
 */
function isDomain(value: string): boolean {
  return value.length <= 253
    && value.split('.').every((label) => /^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/.test(label));
}

function isNetwork(value: string): boolean {
  const slash = value.indexOf('/');
  const version = isIP(slash === -1 ? value : value.slice(0, slash));
  if (version === 0) return false;
  const address = ipaddr.parse(slash === -1 ? value : value.slice(0, slash));
  if (address.range() === 'ipv4Mapped') return false;
  if (slash === -1) return true;
  const bits = value.slice(slash + 1);
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > (version === 6 ? 128 : 32)) return false;
  // "10.1.2.3/8" is more likely a host, or a typing error, than all of 10.0.0.0/8.
  const first = (version === 6 ? ipaddr.IPv6 : ipaddr.IPv4).networkAddressFromCIDR(value);
  return first.toNormalizedString() === address.toNormalizedString();
}

function within(value: number, min: number, max: number): boolean {
  return value >= min && value <= max;
}

function showBytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let rest = value;
  while (rest >= 1024 && rest % 1024 === 0 && unit < units.length - 1) {
    rest /= 1024;
    unit++;
  }
  return `${String(rest)}${units[unit] ?? 'B'}`;
}

function showMs(value: number): string {
  if (value % 86_400_000 === 0 && value > 0) return `${String(value / 86_400_000)}d`;
  if (value % 1000 === 0) return `${String(value / 1000)}s`;
  return `${String(value)}ms`;
}

/** Largest first: a value is shown in the largest unit that divides it, so that it is the one in force. */
const BYTE_UNITS = [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]] as const;
const TIME_UNITS = [['d', 86_400_000], ['h', 3_600_000], ['min', 60_000], ['s', 1000]] as const;

function exactBytes(value: number): string {
  return exact(value, BYTE_UNITS, 'B');
}

function exactTime(ms: number): string {
  return exact(ms, TIME_UNITS, 'ms');
}

function exact(value: number, units: readonly (readonly [string, number])[], least: string): string {
  const [unit, size] = units.find(([, each]) => value !== 0 && value % each === 0) ?? [least, 1];
  return `${String(value / size)}${unit}`;
}
