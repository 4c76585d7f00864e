/**
 * What a client of TLS 1.3 sends that sends KeyUpdates (RFC 8446 4.6.3): Node sends none, so the records are
 * made here, from the secret that it logs.
 */
import { createCipheriv, createHmac } from 'node:crypto';
import type { ConnectionOptions } from 'node:tls';

/** How the connection is to be made, before anything is sent over it. */
export const KEY_UPDATE_TLS = {
  minVersion: 'TLSv1.3', ciphers: 'TLS_AES_128_GCM_SHA256', rejectUnauthorized: false,
} as const satisfies ConnectionOptions;

const KEY_BYTES = 16;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 5;
const HANDSHAKE = 22;
const DATA = 23;
/** KeyUpdate, one octet long: update_requested. */
const ASKS_FOR_ANOTHER = Uint8Array.of(24, 0, 0, 1, 1);
const LOGGED = /^CLIENT_TRAFFIC_SECRET_0 \w+ (\w+)/;

/** HKDF-Expand-Label, without a context (7.1): one block is enough. */
function expanded(secret: Buffer, label: string, bytes: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Uint8Array.of(0, bytes, name.length), name, Uint8Array.of(0, 1)]);
  return createHmac('sha256', secret).update(info).digest().subarray(0, bytes);
}

/** The first record of each secret: its number is 0 (5.3). */
function record(secret: Buffer, type: number, content: Uint8Array): Buffer {
  const header = Uint8Array.of(DATA, 3, 3, 0, content.length + 1 + TAG_BYTES);
  const cipher = createCipheriv('aes-128-gcm', expanded(secret, 'key', KEY_BYTES), expanded(secret, 'iv', IV_BYTES));
  cipher.setAAD(header);
  const sealed = [cipher.update(content), cipher.update(Uint8Array.of(type)), cipher.final(), cipher.getAuthTag()];
  return Buffer.concat([header, ...sealed], HEADER_BYTES + content.length + 1 + TAG_BYTES);
}

/** Of a line of the 'keylog' event. */
export function clientSecret(line: string): Buffer | undefined {
  const hex = LOGGED.exec(line)?.[1];
  return hex === undefined ? undefined : Buffer.from(hex, 'hex');
}

/** So many of them, each of which asks for one in return, and a line behind them. */
export function keyUpdates(firstSecret: Buffer, count: number, line: string): Buffer {
  const records: Buffer[] = [];
  let secret = firstSecret;
  for (let i = 0; i < count; i++) {
    records.push(record(secret, HANDSHAKE, ASKS_FOR_ANOTHER));
    secret = expanded(secret, 'traffic upd', secret.length);
  }
  records.push(record(secret, DATA, Buffer.from(line)));
  return Buffer.concat(records);
}
