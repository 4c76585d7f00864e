/**
 * Keys from passwords, by Node's crypto in its threads: scrypt (RFC 7914) and what SCRAM stores (RFC 5802 3).
 */
import { createHash, createHmac, pbkdf2, scrypt } from 'node:crypto';
import { promisify } from 'node:util';

export interface ScryptCost {
  readonly logCost: number;
  readonly blockSize: number;
  readonly parallelization: number;
}

const KEY_BYTES = 32;
const derive = promisify(pbkdf2);

export function scryptKey(password: string, salt: Uint8Array, cost: ScryptCost): Promise<Uint8Array> {
  const { logCost, blockSize: r, parallelization: p } = cost;
  const N = 2 ** logCost;
  return new Promise((resolve, reject) => {
    // What it needs is 128 × N × r bytes, and a little.
    scrypt(password, salt, KEY_BYTES, { N, r, p, maxmem: 160 * N * r + 2 ** 20 }, (error, key) => {
      if (error === null) resolve(key);
      else reject(error);
    });
  });
}

/** StoredKey and ServerKey. */
export async function scramKeys(
  password: string, salt: Uint8Array, iterations: number,
): Promise<{ readonly storedKey: Uint8Array; readonly serverKey: Uint8Array }> {
  const salted = await derive(password, salt, iterations, KEY_BYTES, 'sha256');
  const clientKey = createHmac('sha256', salted).update('Client Key').digest();
  return {
    storedKey: createHash('sha256').update(clientKey).digest(),
    serverKey: createHmac('sha256', salted).update('Server Key').digest(),
  };
}
