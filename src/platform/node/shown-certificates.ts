/**
 * The certificates that a peer shows in a handshake of TLS, looked at before OpenSSL has them: it decodes
 * each of their keys, and verifies whatever chain they make, in one go on the loop, before anybody can judge
 * it (docs/decisions/0055). tls-wire.ts hands over what came, and gives TLS what comes out, record by record,
 * until the handshake is over. In TLS 1.2 certificates come in clear (RFC 5246 7.4.2). In 1.3 they are
 * encrypted (RFC 8446 4.4.2); the secret of that part of the handshake TLS tells as soon as it knows it
 * ('keylog', RFC 8446 7.1), which is before it has the first record that needs it.
 *
 *   a whole record           what is done
 *   handshake, in clear      its messages are looked at
 *   change_cipher_spec       in 1.2: OVER, a session goes on; in 1.3 it says nothing
 *   application data         1.3: decrypted, its messages are looked at; without a secret: REFUSED
 *   one of SSL 2             REFUSED: TLS would find other records behind it than this
 *   the rest                 for TLS to judge, at once where it is no record at all
 *
 *   a message                what is done
 *   certificate              OVER, for there is one; REFUSED: what may take long (bounded-chain.ts)
 *   compressed certificate   REFUSED: nobody asked for one (RFC 8879)
 *   hello of a server        it is 1.2, unless a secret is told, or it asks for another hello
 *   finished, encrypted      OVER: a session goes on
 *   the rest                 passed over
 *
 * Records that TLS would refuse are given to it. What was refused here TLS never sees.
 */
import { createDecipheriv, createHash, createHmac } from 'node:crypto';
import type { CipherGCMTypes } from 'node:crypto';
import { TOO_MANY, whyNotBounded } from './bounded-chain.js';
import { PiecedOctets } from './pieced-octets.js';

/** Of a message that is kept until it is whole: of certificates, with their extensions. */
const MESSAGE_BYTES_MAX = 64 * 1024;

const HEADER_BYTES = 5;
/** RFC 5246 6.2.3; RFC 8446 5.2 lets it have less. */
const RECORD_BYTES_MAX = HEADER_BYTES + 16 * 1024 + 2048;
const TAG_BYTES = 16;
const OF_SSL_2 = 0x80;
const MAJOR_VERSION = 3;
const CHANGE_CIPHER_SPEC = 20;
const HANDSHAKE = 22;
const APPLICATION_DATA = 23;

const MESSAGE_HEADER_BYTES = 4;
const SERVER_HELLO = 2;
const CERTIFICATE = 11;
const FINISHED = 20;
const COMPRESSED_CERTIFICATE = 25;
const OF_INTEREST = [SERVER_HELLO, CERTIFICATE, FINISHED];

/** The random of a hello that bids the client say another one (RFC 8446 4.1.3). */
const AGAIN = createHash('sha256').update('HelloRetryRequest').digest();
/** Of a hello, behind its version. */
const RANDOM_AT = 2;

const SHA_256_BYTES = 32;
const IV_BYTES = 12;
/** By the octets of the secret; of two the first record tells which. RFC 8446 B.4, those that Node offers. */
const CIPHERS = {
  sha256: [['aes-128-gcm', 16], ['chacha20-poly1305', 32]], sha384: [['aes-256-gcm', 32]],
} as const;

type CipherName = CipherGCMTypes | 'chacha20-poly1305';

interface RecordKey {
  readonly cipher: CipherName;
  readonly key: Buffer;
  readonly iv: Buffer;
}

/** Which side shows them. */
export type Shower = 'server' | 'client';

export class ShownCertificates {
  readonly #label: string;
  /** Of a record that has not come whole. */
  readonly #record = new PiecedOctets();
  /** Of a message that has not come whole, as far as it is of interest. */
  readonly #message = new PiecedOctets();
  /** How many that is to have: its header, until that is known. */
  #messageBytes = MESSAGE_HEADER_BYTES;
  /** Octets of a message that is of none. */
  #passOver = 0;
  /** By its messages, as long as no secret is told. */
  #isOlder = false;
  #keys: RecordKey[] = [];
  #sequence = 0n;
  #isOver = false;

  constructor(shower: Shower) {
    this.#label = `${shower.toUpperCase()}_HANDSHAKE_TRAFFIC_SECRET `;
  }

  /** Nothing that comes now shows a certificate. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** A line of 'keylog', before the records that it is for. */
  onSecret(line: Buffer): void {
    if (this.#keys.length > 0 || !line.toString('latin1').startsWith(this.#label)) return;
    const secret = Buffer.from(line.toString('latin1').trimEnd().split(' ')[2] ?? '', 'hex');
    const hash = secret.length === SHA_256_BYTES ? 'sha256' : 'sha384';
    const iv = expanded(secret, hash, 'iv', IV_BYTES);
    this.#keys = CIPHERS[hash].map(([cipher, keyBytes]) =>
      ({ cipher, key: expanded(secret, hash, 'key', keyBytes), iv }));
  }

  /**
   * What came next. What may go on is given, as much at once as can be: only the records behind a hello need
   * the secret that it brings. Returns why the peer is refused, or ''. Once it is over the rest is given as
   * it is.
   */
  take(bytes: Uint8Array, give: (records: Uint8Array) => void): string {
    const isMore = this.#record.length > 0;
    if (isMore) this.#record.add(bytes);
    const came = isMore ? this.#record.bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    let given = 0;
    let at = 0;
    while (!this.#isOver && came.length - at >= HEADER_BYTES) {
      const type = came[at] ?? 0;
      if ((type & OF_SSL_2) !== 0) return 'it does not begin with a record of TLS';
      const recordBytes = HEADER_BYTES + came.readUInt16BE(at + 3);
      const isRecord = came[at + 1] === MAJOR_VERSION && recordBytes <= RECORD_BYTES_MAX;
      const end = isRecord ? at + recordBytes : came.length;
      if (came.length < end) break;
      if (type !== HANDSHAKE && this.#keys.length === 0 && given < at) {
        give(came.subarray(given, at));
        given = at;
      }
      const why = this.#judged(came.subarray(at, end));
      if (why !== '') return why;
      at = end;
    }
    if (this.#isOver) at = came.length;
    if (given < at) give(came.subarray(given, at));
    if (isMore && at === 0) return '';
    this.#record.clear();
    if (at < came.length) this.#record.add(came.subarray(at));
    return '';
  }

  #judged(record: Buffer): string {
    const content = record.subarray(HEADER_BYTES);
    switch (record[0]) {
      case CHANGE_CIPHER_SPEC:
        this.#isOver = this.#isOlder && this.#keys.length === 0;
        return '';
      case HANDSHAKE:
        return this.#messages(content);
      case APPLICATION_DATA:
        return this.#encrypted(record);
      default:
        return '';
    }
  }

  #encrypted(record: Buffer): string {
    const plain = this.#decrypted(record);
    if (plain === undefined) return 'a record of its handshake can not be read';
    let end = plain.length;
    while (end > 0 && plain[end - 1] === 0) end--;
    return plain[end - 1] === HANDSHAKE ? this.#messages(plain.subarray(0, end - 1)) : '';
  }

  #decrypted(record: Buffer): Buffer | undefined {
    const sequence = this.#sequence++;
    for (const each of this.#keys) {
      const plain = decryptedBy(each, sequence, record);
      if (plain === undefined) continue;
      this.#keys = [each];
      return plain;
    }
    return undefined;
  }

  #messages(content: Buffer): string {
    const message = this.#message;
    for (let at = 0; at < content.length && !this.#isOver;) {
      const passed = Math.min(this.#passOver, content.length - at);
      this.#passOver -= passed;
      at += passed;
      const wanted = this.#messageBytes - message.length;
      message.add(content.subarray(at, at + wanted));
      at = Math.min(content.length, at + wanted);
      if (message.length < this.#messageBytes) return '';
      const why = this.#messageBytes === MESSAGE_HEADER_BYTES ? this.#begun(message.bytes)
        : this.#seen(message.bytes);
      if (why !== '') return why;
    }
    return '';
  }

  /** The header of a message. */
  #begun(header: Buffer): string {
    const type = header[0] ?? 0;
    const length = header.readUIntBE(1, 3);
    if (type === COMPRESSED_CERTIFICATE) return 'it shows certificates that are compressed';
    if (OF_INTEREST.includes(type)) {
      if (length > MESSAGE_BYTES_MAX) return TOO_MANY;
      this.#messageBytes += length;
      return length === 0 ? this.#seen(header) : '';
    }
    this.#passOver = length;
    this.#message.clear();
    return '';
  }

  #seen(message: Buffer): string {
    const type = message[0] ?? 0;
    const content = message.subarray(MESSAGE_HEADER_BYTES);
    const why = type === CERTIFICATE ? whyNotRead(content, this.#keys.length > 0) : '';
    this.#isOver = type === CERTIFICATE || (type === FINISHED && this.#keys.length > 0);
    const random = content.subarray(RANDOM_AT, RANDOM_AT + AGAIN.length);
    this.#isOlder ||= type === SERVER_HELLO && !random.equals(AGAIN);
    this.#message.clear();
    this.#messageBytes = MESSAGE_HEADER_BYTES;
    return why;
  }
}

/** `content`: of a Certificate message, of TLS 1.3 or 1.2. */
function whyNotRead(content: Buffer, isNewer: boolean): string {
  const chain: Uint8Array[] = [];
  // In 1.3 a context stands before the list, and extensions behind each of it.
  let at = 3 + (isNewer ? 1 + (content[0] ?? 0) : 0);
  while (at + 3 <= content.length) {
    const from = at + 3;
    const end = from + content.readUIntBE(at, 3);
    chain.push(content.subarray(from, end));
    at = end + (isNewer && end + 2 <= content.length ? 2 + content.readUInt16BE(end) : 0);
  }
  return at > content.length ? 'the certificates that it shows can not be read' : whyNotBounded(chain);
}

/** RFC 8446 5.2 and 5.3; undefined: not by this key. */
function decryptedBy({ cipher, key, iv }: RecordKey, sequence: bigint, record: Buffer): Buffer | undefined {
  const nonce = Buffer.from(iv);
  nonce.writeBigUInt64BE(nonce.readBigUInt64BE(IV_BYTES - 8) ^ sequence, IV_BYTES - 8);
  const tagAt = record.length - TAG_BYTES;
  if (tagAt < HEADER_BYTES) return undefined;
  const decipher = createDecipheriv(cipher as CipherGCMTypes, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(record.subarray(0, HEADER_BYTES)).setAuthTag(record.subarray(tagAt));
  const plain = decipher.update(record.subarray(HEADER_BYTES, tagAt));
  try {
    decipher.final();
    return plain;
  } catch {
    return undefined;
  }
}

/** HKDF-Expand-Label without context (RFC 8446 7.1), of no more than one block. */
function expanded(secret: Buffer, hash: 'sha256' | 'sha384', label: string, bytes: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`, 'latin1');
  const info = Buffer.concat([Buffer.from([0, bytes, name.length]), name, Buffer.from([0, 1])]);
  return createHmac(hash, secret).update(info).digest().subarray(0, bytes);
}
