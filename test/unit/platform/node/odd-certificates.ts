/** Public keys and certificates that no openssl makes, or not within a second. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';

export function element(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag, 0x82, content.length >> 8, content.length & 0xff]), content]);
}

/** RSAPublicKey, with a modulus of nobody's. */
export function rsaKeyOf(bits: number, exponent = '010001'): Buffer {
  const modulus = randomBytes(bits / 8);
  modulus[0] = 0x80;
  return element(0x30, element(0x02, Buffer.from([0]), modulus), element(0x02, Buffer.from(exponent, 'hex')));
}

/** SubjectPublicKeyInfo. `algorithm`: all of it in hex, RSA where nothing is said. */
export function spkiOf(key: Uint8Array, algorithm = '300d06092a864886f70d0101010500'): Buffer {
  return element(0x30, Buffer.from(algorithm, 'hex'), element(0x03, Buffer.from([0]), key));
}

/** On a known curve, which it tells by its numbers instead of its name. */
export function explicitCurve(): Buffer {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256', paramEncoding: 'explicit' });
  return publicKey.export({ type: 'spki', format: 'der' });
}

/** `oid` in hex. */
export function extension(oid: string, value: Uint8Array): Buffer {
  return element(0x30, element(0x06, Buffer.from(oid, 'hex')), element(0x04, value));
}

export function nameOf(text: string): Buffer {
  return element(0x30, element(0x31, element(0x30, Buffer.from('0603550403', 'hex'), element(0x0c, Buffer.from(text)))));
}

/** By whom and for whom the name is. */
export function certificateOf(spki: Uint8Array, extensions: readonly Uint8Array[] = [], name = nameOf('x')): Buffer {
  const signed = Buffer.from('300a06082a8648ce3d040302', 'hex');
  const times = ['250101000000Z', '350101000000Z'].map((time) => element(0x17, Buffer.from(time, 'latin1')));
  const shown = element(0x30, Buffer.from('a003020102020101', 'hex'), signed, name, element(0x30, ...times), name, spki, ...(extensions.length === 0 ? [] : [element(0xa3, element(0x30, ...extensions))]));
  return element(0x30, shown, signed, element(0x03, Buffer.from('003006020101020101', 'hex')));
}

export function pemOf(der: Uint8Array): string {
  return `-----BEGIN CERTIFICATE-----\n${(Buffer.from(der).toString('base64').match(/.{1,64}/g) ?? []).join('\n')}\n-----END CERTIFICATE-----\n`;
}
