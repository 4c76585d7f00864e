/** PROXY headers of both versions: who is named, what is refused, and that no cut of them is read as another. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { PROXY_OCTETS_MAX, readProxyHeader } from '../../../../src/gateway/inbound/policy/proxy-header.js';

const SIGNATURE = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a];

function line(text: string): Buffer {
  return Buffer.from(text + '\r\n', 'latin1');
}

function binary(command: number, family: number, rest: readonly number[]): Buffer {
  return Buffer.from([...SIGNATURE, command, family, rest.length >> 8, rest.length & 0xff, ...rest]);
}

const TCP4 = [192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x34, 0, 25];
const TCP6 = [0x20, 0x01, 0x0d, 0xb8, ...new Array<number>(11).fill(0), 9, ...new Array<number>(15).fill(0), 1, 0x12, 0x34, 0, 25];

/** By the definition: bit by bit over the polynomial, here with a table. */
function crc32c(bytes: Uint8Array): number {
  const table = Array.from({ length: 256 }, (_none, byte) => {
    let value = byte;
    for (let bit = 0; bit < 8; bit++) value = (value & 1) !== 0 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
    return value >>> 0;
  });
  return (bytes.reduce((crc, byte) => (table[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8), 0xffffffff) ^ 0xffffffff) >>> 0;
}

const SOUND: readonly (readonly [Buffer, string])[] = [
  [line('PROXY TCP4 192.0.2.7 10.0.0.1 4660 25'), '192.0.2.7'],
  [line('PROXY TCP6 2001:db8::9 ::1 4660 25'), '2001:db8::9'],
  [line('PROXY TCP6 ::ffff:192.0.2.7 ::1 4660 25'), '192.0.2.7'],
  [line('PROXY UNKNOWN'), ''],
  [line('PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535'), ''],
  [binary(0x21, 0x11, TCP4), '192.0.2.7'],
  [binary(0x21, 0x21, TCP6), '2001:db8::9'],
  [binary(0x20, 0x00, []), ''],
  [binary(0x20, 0x11, TCP4), ''],
  [binary(0x20, 0x11, []), ''],
  [binary(0x20, 0x21, TCP4), ''],
  [binary(0x20, 0x11, [...TCP4, 0x03, 0, 4, 0, 0, 0, 0]), ''],
  [binary(0x21, 0x31, new Array<number>(216).fill(65)), ''],
  [binary(0x21, 0x11, [...TCP4, 0x20, 0, 5, 7, 0, 0, 0, 0, 0x04, 0, 0]), '192.0.2.7'],
];

describe('a PROXY header', () => {
  test('names the client, or nobody', () => {
    for (const [header, address] of SOUND) {
      const read = readProxyHeader(header);
      assert.ok(typeof read === 'object');
      const { own, ...named } = read;
      assert.deepEqual(named, { octets: header.length, address, port: address === '' ? 0 : 4660 });
      assert.equal(own, address !== '' ? '' : header[12] === 0x20 ? 'local' : 'unknown');
      const withMore = Buffer.concat([header, Buffer.from('EHLO x\r\n')]);
      assert.deepEqual(readProxyHeader(withMore), read);
    }
  });

  test('that has not come whole is waited for, wherever it is cut', () => {
    for (const [header] of SOUND) {
      for (let octets = 0; octets < header.length; octets++) {
        assert.equal(readProxyHeader(header.subarray(0, octets)), undefined, `${header.toString('latin1')} cut at ${String(octets)}`);
      }
    }
  });

  test('that is none is refused', () => {
    const lines = [
      'PROXY', 'PROXY TCP4', 'PROXY TCP4 192.0.2.7 10.0.0.1 4660', 'PROXY TCP4 192.0.2.7 10.0.0.1 4660 25 x',
      'PROXY TCP4 192.0.2.7  10.0.0.1 4660 25', 'PROXY TCP4 2001:db8::9 ::1 4660 25', 'PROXY TCP4 0x7f.1 10.0.0.1 1 1',
      'PROXY TCP4 127.1 10.0.0.1 1 1', 'PROXY TCP6 192.0.2.7 10.0.0.1 1 1', 'PROXY TCP6 fe80::1%eth0 ::1 1 1',
      'PROXY TCP4 192.0.2.7 10.0.0.1 65536 25', 'PROXY TCP4 192.0.2.7 10.0.0.1 -1 25', 'PROXY UDP4 192.0.2.7 10.0.0.1 1 1',
      'proxy TCP4 192.0.2.7 10.0.0.1 1 1', 'EHLO client.example', `PROXY UNKNOWN ${'x'.repeat(100)}`,
    ];
    for (const text of lines) assert.equal(typeof readProxyHeader(line(text)), 'string', text);
    assert.equal(typeof readProxyHeader(Buffer.from('PROXY UNKNOWN\n')), 'string');
    const binaries = [
      binary(0x11, 0x11, TCP4), binary(0x22, 0x11, TCP4), binary(0x21, 0x11, TCP4.slice(1)), binary(0x21, 0x21, TCP4),
      binary(0x21, 0x11, [...TCP4, 0x20]), binary(0x21, 0x11, [...TCP4, 0x20, 0, 5, 1]),
      binary(0x21, 0x11, [...TCP4, 0x03, 0, 4, 0, 0, 0, 0]), binary(0x21, 0x11, [...TCP4, 0x03, 0, 2, 0, 0]),
    ];
    for (const header of binaries) assert.equal(typeof readProxyHeader(header), 'string', header.toString('hex'));
    const startOf = (octets: number): Buffer => binary(0x21, 0x11, new Array<number>(octets - 16).fill(0)).subarray(0, 16);
    assert.equal(readProxyHeader(startOf(4096)), undefined, 'more must come');
    assert.equal(readProxyHeader(startOf(4097)), 'PROXY header of 4097 octets: expected at most 4096');
  });

  test('that is none is told with what it says and the rule that it breaks', () => {
    const told: readonly (readonly [Uint8Array, string])[] = [
      [line('EHLO client.example'), "no PROXY header: it begins with 'EHLO client.example??'"],
      [line('PROXY TCP4 192.0.2.7 10.0.0.1 65536 25'), "PROXY header 'PROXY TCP4 192.0.2.7 10.0.0.1 65536 25': expected two ports up to 65535"],
      [line('PROXY UDP4 \x00 10.0.0.1 1 1'), "PROXY header 'PROXY UDP4 ? 10.0.0.1 1 1': expected TCP4, TCP6 or UNKNOWN"],
      [line('PROXY TCP4 ::1 ::1 1 1'), "PROXY header 'PROXY TCP4 ::1 ::1 1 1': expected two addresses of TCP4"],
      [line('PROXY TCP4 192.0.2.7 10.0.0.1 1 1 x'), "PROXY header 'PROXY TCP4 192.0.2.7 10.0.0.1 1 1 x': expected nothing behind the ports"],
      [Buffer.from('PROXY UNKNOWN\n'), "PROXY header 'PROXY UNKNOW': expected CR before LF"],
      [binary(0x11, 0x11, TCP4), 'PROXY header of version 1: expected 2'],
      [binary(0x22, 0x11, TCP4), 'PROXY header with command 2: expected LOCAL (0) or PROXY (1)'],
      [binary(0x21, 0x21, TCP4), 'PROXY header of 28 octets: expected 52 with its addresses'],
    ];
    for (const [header, why] of told) assert.equal(readProxyHeader(header), why);
  });

  test('with a checksum must have the right one', () => {
    const header = binary(0x21, 0x11, [...TCP4, 0x03, 0, 4, 0, 0, 0, 0]);
    header.writeUInt32BE(crc32c(header), header.length - 4);
    assert.deepEqual(readProxyHeader(header), { octets: header.length, address: '192.0.2.7', port: 4660, own: '' });
    header[17] = 1;
    assert.equal(typeof readProxyHeader(header), 'string');
  });

  test('of any bytes is a header, a broken rule, or more to come; never longer than what is there', () => {
    const start = fc.constantFrom(Buffer.from('PROXY '), Buffer.from('PROXY TCP4 '), Buffer.from([...SIGNATURE, 0x21, 0x11, 0]), Buffer.from([]));
    fc.assert(fc.property(start, fc.uint8Array({ maxLength: 200 }), (head, tail) => {
      const bytes = Buffer.concat([head, tail]);
      const read = readProxyHeader(bytes);
      if (typeof read === 'object') assert.ok(read.octets <= bytes.length && read.octets > 0);
      if (read === undefined) assert.ok(bytes.length < PROXY_OCTETS_MAX);
    }), { numRuns: 3000 });
  });
});
