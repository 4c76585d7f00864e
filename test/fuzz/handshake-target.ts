/**
 * Handshakes of TLS in somebody else's hands, as they come before TLS has them: of 1.2 in clear, of 1.3 encrypted, over any
 * records, in any pieces, with certificates whose keys are read or not, changed or not. What must hold:
 *
 *   one that was not changed   goes on as it came where all keys are read; else nothing of its certificates goes on
 *   any other                  no exception; what goes on is what came, from its beginning
 */
import assert from 'node:assert/strict';
import { createCipheriv, createHmac } from 'node:crypto';
import type { CipherGCMTypes } from 'node:crypto';
import type { Prng } from '../../src/base/prng.js';
import { ShownCertificates } from '../../src/platform/node/shown-certificates.js';
import { certificateOf, explicitCurve, rsaKeyOf, spkiOf } from '../unit/platform/node/odd-certificates.js';
import { CA, LEAF } from './certificates.js';
import { tally } from './field.js';
import { changed } from './inputs.js';

const READ = [LEAF.der, CA.der, certificateOf(spkiOf(rsaKeyOf(8192)))];
const NOT_READ = [certificateOf(explicitCurve()), certificateOf(spkiOf(rsaKeyOf(8200))), certificateOf(spkiOf(rsaKeyOf(1024, '0100000001')))];
/** By cipher: octets of its key, of the secret, and which hash. */
const SUITES = [['aes-128-gcm', 16, 32, 'sha256'], ['chacha20-poly1305', 32, 32, 'sha256'], ['aes-256-gcm', 32, 48, 'sha384']] as const;

interface Flight {
  readonly bytes: Buffer;
  /** Of 'keylog', once the first record has gone on; '' in 1.2. */
  readonly line: string;
}

function sized(octets: number, content: Uint8Array): Buffer {
  const length = Buffer.alloc(octets);
  length.writeUIntBE(content.length, 0, octets);
  return Buffer.concat([length, content]);
}

const noise = (octets: number, random: Prng): Buffer => Buffer.from(Array.from({ length: octets }, () => random.below(256)));
const message = (type: number, content: Uint8Array): Buffer => Buffer.concat([Buffer.from([type]), sized(3, content)]);
const record = (type: number, content: Uint8Array): Buffer => Buffer.concat([Buffer.from([type, 3, 3]), sized(2, content)]);

/** Cut anywhere, as records may be. */
function inRecords(content: Buffer, random: Prng, sealed: (piece: Buffer) => Buffer): Buffer {
  const records: Buffer[] = [];
  for (let at = 0; at < content.length;) {
    const end = Math.min(content.length, at + 1 + random.below(random.pick([100, 4000, 16_000])));
    records.push(sealed(content.subarray(at, end)));
    at = end;
  }
  return Buffer.concat(records);
}

function older(chain: readonly Buffer[], random: Prng): Flight {
  const certificates = message(11, sized(3, Buffer.concat(chain.map((each) => sized(3, each)))));
  const messages = Buffer.concat([message(2, Buffer.alloc(70)), certificates, message(12, noise(100, random)), message(14, Buffer.alloc(0))]);
  return { bytes: inRecords(messages, random, (piece) => record(22, piece)), line: '' };
}

function newer(chain: readonly Buffer[], random: Prng): Flight {
  const [cipher, keyBytes, secretBytes, hash] = random.pick(SUITES);
  const secret = noise(secretBytes, random);
  const expanded = (label: string, bytes: number): Buffer =>
    createHmac(hash, secret).update(Buffer.concat([Buffer.from([0, bytes]), sized(1, Buffer.from(`tls13 ${label}`)), Buffer.from([0, 1])])).digest().subarray(0, bytes);
  const [key, iv] = [expanded('key', keyBytes), expanded('iv', 12)];
  let sequence = 0;
  const sealed = (piece: Buffer): Buffer => {
    const nonce = Buffer.from(iv);
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ sequence++) >>> 0, 8);
    const plain = Buffer.concat([piece, Buffer.from([22]), Buffer.alloc(random.below(3))]);
    const sealing = createCipheriv(cipher as CipherGCMTypes, key, nonce, { authTagLength: 16 });
    const header = Buffer.from([23, 3, 3, 0, 0]);
    header.writeUInt16BE(plain.length + 16, 3);
    sealing.setAAD(header);
    return Buffer.concat([header, sealing.update(plain), sealing.final(), sealing.getAuthTag()]);
  };
  const entries = chain.map((each) => Buffer.concat([sized(3, each), sized(2, noise(random.below(9), random))]));
  const messages = Buffer.concat([
    message(8, Buffer.alloc(6)), message(11, Buffer.concat([Buffer.alloc(1), sized(3, Buffer.concat(entries))])), message(15, noise(80, random)), message(20, secret),
  ]);
  const bytes = Buffer.concat([record(22, message(2, Buffer.alloc(70))), record(20, Buffer.from([1])), inRecords(messages, random, sealed)]);
  return { bytes, line: `SERVER_HANDSHAKE_TRAFFIC_SECRET 00 ${secret.toString('hex')}\n` };
}

export function handshakeInput(random: Prng): void {
  const isOdd = random.below(2) === 0;
  const chain = Array.from({ length: 1 + random.below(4) }, () => random.pick(READ));
  if (isOdd) chain.splice(random.below(chain.length + 1), 0, random.pick(NOT_READ));
  const { bytes, line } = random.below(2) === 0 ? older(chain, random) : newer(chain, random);
  const came = Buffer.from(changed(bytes, random));
  const shown = new ShownCertificates('server');
  const given: Buffer[] = [];
  let why = '';
  for (let at = 0; at < came.length && why === '';) {
    const end = Math.min(came.length, at + 1 + random.below(random.pick([50, 4096])));
    why = shown.take(came.subarray(at, end), (records) => {
      given.push(Buffer.from(records));
      if (line !== '') shown.onSecret(Buffer.from(line));
    });
    at = end;
  }
  const whole = Buffer.concat(given);
  assert.ok(came.subarray(0, whole.length).equals(whole), 'what goes on is what came');
  tally(why === '' ? 'shown' : 'refused');
  if (!came.equals(bytes)) return;
  assert.equal(why !== '', isOdd, why);
  if (why === '') assert.equal(whole.length, came.length, 'nothing is held back');
  else assert.match(why, /^it shows a certificate whose key is not read/);
}
