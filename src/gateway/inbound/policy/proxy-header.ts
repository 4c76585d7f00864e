/**
 * The header that a balancer puts in front of a connection to say whose it is: the PROXY protocol, versions 1
 * and 2 (https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt, sections 2.1 and 2.2).
 *
 *   1   "PROXY TCP4|TCP6 source destination port port" CR LF, or "PROXY UNKNOWN …" CR LF; 107 octets at most
 *   2   12 octets of signature · version and command · family · length (2) · addresses · fields (TLV)
 *
 * LOCAL and UNKNOWN name nobody: the connection is the balancer's own, for its health checks. What the fields
 * say of TLS between client and balancer is not TLS between us and anybody. A checksum field (CRC-32C) must
 * be right, but of LOCAL, which is taken whatever stands in it. Pure. Not here: from whom a header is taken
 * (session.ts), and how long it may take.
 */
import ipaddr from 'ipaddr.js';
import { latin1Text } from '../../../base/utf8.js';

/** Version 2 can say 64 KiB; addresses, and certificates' names in the fields, fit in this. */
export const PROXY_OCTETS_MAX = 4096;

const LINE_OCTETS_MAX = 107;
const SIGNATURE = Uint8Array.of(0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a);
const LINE_START = Uint8Array.of(0x50, 0x52, 0x4f, 0x58, 0x59, 0x20);
const FIXED_OCTETS = 16;
const VERSION_2 = 0x20;
const COMMAND_LOCAL = 0;
const COMMAND_PROXY = 1;
/** Address family and transport: TCP over IPv4, TCP over IPv6. */
const TCP4 = 0x11;
const TCP6 = 0x21;
const ADDRESSES_OCTETS_TCP4 = 12;
const ADDRESSES_OCTETS_TCP6 = 36;
const FIELD_CRC32C = 0x03;
const FIELD_HEAD_OCTETS = 3;
const LF = 0x0a;
const CR = 0x0d;
/** CRC-32C (Castagnoli), reflected. */
const CRC32C_POLYNOMIAL = 0x82f63b78;

export interface ProxyHeader {
  /** Octets of the header; behind them the client speaks. */
  readonly octets: number;
  /** Whose connection it is; '' when it names nobody. */
  readonly address: string;
  /** Of the client; 0 when it names nobody. */
  readonly port: number;
  /** It names nobody, and what it says instead; else ''. */
  readonly own: '' | 'local' | 'unknown';
}

/** Of what is no header, for the log. */
const QUOTED_OCTETS_MAX = 32;

/** undefined: more must come. A text: the rule that is broken, and by what. */
export function readProxyHeader(bytes: Uint8Array): ProxyHeader | string | undefined {
  if (startsLike(bytes, LINE_START)) return bytes.length < LINE_START.length ? undefined : readLine(bytes);
  if (!startsLike(bytes, SIGNATURE)) {
    return `no PROXY header: it begins with ${quoted(bytes, QUOTED_OCTETS_MAX)}`;
  }
  if (bytes.length < FIXED_OCTETS) return undefined;
  const [command = 0, family = 0] = [bytes[12], bytes[13]];
  const octets = FIXED_OCTETS + twoOctets(bytes, 14);
  if ((command & 0xf0) !== VERSION_2) return `PROXY header of version ${command >> 4}: expected 2`;
  if (octets > PROXY_OCTETS_MAX) {
    return `PROXY header of ${octets} octets: expected at most ${PROXY_OCTETS_MAX}`;
  }
  return bytes.length < octets ? undefined : readBinary(bytes.subarray(0, octets), command & 0x0f, family);
}

/** What there is of `bytes` is the beginning of `pattern`, or has all of it. */
function startsLike(bytes: Uint8Array, pattern: Uint8Array): boolean {
  const octets = Math.min(bytes.length, pattern.length);
  for (let at = 0; at < octets; at++) if (bytes[at] !== pattern[at]) return false;
  return true;
}

function readLine(bytes: Uint8Array): ProxyHeader | string | undefined {
  const end = bytes.subarray(0, LINE_OCTETS_MAX).indexOf(LF);
  if (end < 0 && bytes.length < LINE_OCTETS_MAX) return undefined;
  const lineOctets = end < 0 ? LINE_OCTETS_MAX : end - 1;
  const bad = (rule: string): string => `PROXY header ${quoted(bytes, lineOctets)}: ${rule}`;
  if (end < 0) return bad(`expected CR LF within ${LINE_OCTETS_MAX} octets`);
  if (bytes[end - 1] !== CR) return bad('expected CR before LF');
  const words = latin1Text(bytes, LINE_START.length, end - 1).split(' ');
  const octets = end + 1;
  const [family, source = '', destination = '', sourcePort = '', destinationPort = '', ...more] = words;
  if (family === 'UNKNOWN') return { octets, address: '', port: 0, own: 'unknown' };
  if (family !== 'TCP4' && family !== 'TCP6') return bad('expected TCP4, TCP6 or UNKNOWN');
  const isAddress = family === 'TCP4' ? isIPv4 : isIPv6;
  if (!isAddress(source) || !isAddress(destination)) return bad(`expected two addresses of ${family}`);
  if (!isPort(sourcePort) || !isPort(destinationPort)) return bad('expected two ports up to 65535');
  if (more.length > 0) return bad('expected nothing behind the ports');
  return { octets, address: normal(source), port: Number(sourcePort), own: '' };
}

function readBinary(header: Uint8Array, command: number, family: number): ProxyHeader | string {
  const octets = header.length;
  // Whatever family and addresses it has: they must be ignored (section 2.2).
  if (command === COMMAND_LOCAL) return { octets, address: '', port: 0, own: 'local' };
  const isIpv6 = family === TCP6;
  const hasAddresses = family === TCP4 || isIpv6;
  const addressOctets = !hasAddresses ? 0 : isIpv6 ? ADDRESSES_OCTETS_TCP6 : ADDRESSES_OCTETS_TCP4;
  if (octets < FIXED_OCTETS + addressOctets) {
    return `PROXY header of ${octets} octets: expected ${FIXED_OCTETS + addressOctets} with its addresses`;
  }
  // Of other families the length of the addresses is not known here, and with it where the fields begin.
  const fieldsAt = FIXED_OCTETS + addressOctets;
  if (hasAddresses && !areFieldsSound(header, fieldsAt)) {
    return 'PROXY header with fields (TLV) that run over its end, or a wrong checksum (CRC-32C)';
  }
  if (command !== COMMAND_PROXY) {
    return `PROXY header with command ${command}: expected LOCAL (0) or PROXY (1)`;
  }
  if (!hasAddresses) return { octets, address: '', port: 0, own: 'unknown' };
  const source = header.subarray(FIXED_OCTETS, FIXED_OCTETS + (isIpv6 ? 16 : 4));
  const port = twoOctets(header, fieldsAt - 4);
  return { octets, address: normal(ipaddr.fromByteArray([...source]).toString()), port, own: '' };
}

function areFieldsSound(header: Uint8Array, from: number): boolean {
  let at = from;
  while (at < header.length) {
    const valueAt = at + FIELD_HEAD_OCTETS;
    const next = valueAt + twoOctets(header, at + 1);
    if (valueAt > header.length || next > header.length) return false;
    if (header[at] === FIELD_CRC32C && (next - valueAt !== 4 || !isChecked(header, valueAt))) return false;
    at = next;
  }
  return true;
}

/** The checksum is that of the header with zeros in its place. */
function isChecked(header: Uint8Array, at: number): boolean {
  const told = new DataView(header.buffer, header.byteOffset).getUint32(at);
  // Not slice(), which is no copy of a Buffer.
  const copy = new Uint8Array(header);
  copy.fill(0, at, at + 4);
  return crc32c(copy) === told;
}

function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 0 ? crc >>> 1 : (crc >>> 1) ^ CRC32C_POLYNOMIAL;
  }
  return (crc ^ 0xffffffff) >>> 0;
}

function twoOctets(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
}

function isPort(text: string): boolean {
  return /^(0|[1-9]\d{0,4})$/.test(text) && Number(text) <= 65_535;
}

function isIPv4(text: string): boolean {
  return ipaddr.IPv4.isValidFourPartDecimal(text);
}

function isIPv6(text: string): boolean {
  return !text.includes('%') && ipaddr.IPv6.isValid(text);
}

function quoted(bytes: Uint8Array, octetsMax: number): string {
  const text = latin1Text(bytes, 0, Math.min(bytes.length, octetsMax));
  return `'${text.replace(/[^ -~]/g, '?')}'`;
}

/** IPv4 in its IPv6 form is IPv4. */
function normal(address: string): string {
  return ipaddr.process(address).toString();
}
