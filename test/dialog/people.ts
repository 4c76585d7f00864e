/** Users for tests of AUTH, whose passwords cost as little as verifiers may. */
import { createHash } from 'node:crypto';
import { Authenticator } from '../../src/gateway/inbound/auth/authenticator.js';
import { parseUsers } from '../../src/gateway/inbound/auth/users.js';
import { Verifiers } from '../../src/gateway/inbound/auth/verifiers.js';
import type { DeriveKey } from '../../src/gateway/inbound/auth/verifiers.js';
import { toAscii } from '../../src/platform/node/idna.js';
import { scramKeys, scryptKey } from '../../src/platform/node/password-key.js';
import { SystemSecrets } from '../../src/platform/node/secrets.js';

export const FAKE_KEY = new Uint8Array(32).fill(9);
export const deriveKey: DeriveKey = async (password, verifier) => (verifier.kind === 'scrypt'
  ? await scryptKey(password, verifier.salt, verifier)
  : (await scramKeys(password, verifier.salt, verifier.iterations)).storedKey);

export async function scramLine(name: string, password: string, addresses = ''): Promise<string> {
  const salt = createHash('sha256').update(name).digest().subarray(0, 16);
  const { storedKey, serverKey } = await scramKeys(password, salt, 4096);
  const fields = [4096, ...[salt, storedKey, serverKey].map((bytes) => Buffer.from(bytes).toString('base64'))];
  return `${name}:{SCRAM-SHA-256}${fields.join()}${addresses === '' ? '' : `:${addresses}`}`;
}

export async function scryptLine(name: string, password: string, addresses = ''): Promise<string> {
  const salt = createHash('sha256').update(name).digest().subarray(0, 16);
  const key = await scryptKey(password, salt, { logCost: 10, blockSize: 8, parallelization: 1 });
  const fields = [10, 8, 1, Buffer.from(salt).toString('base64'), Buffer.from(key).toString('base64')];
  return `${name}:{SCRYPT}${fields.join()}${addresses === '' ? '' : `:${addresses}`}`;
}

/** Users as their file has them. */
export function verifiersOf(lines: readonly string[]): Verifiers {
  return new Verifiers(parseUsers(lines.join('\n'), toAscii), { secrets: new SystemSecrets(), deriveKey });
}

export function authenticatorOf(users: readonly string[] | Verifiers, nowMs = (): number => performance.now()): Authenticator {
  const directory = users instanceof Verifiers ? users : verifiersOf(users);
  return new Authenticator(directory, FAKE_KEY, { secrets: new SystemSecrets(), clock: { nowMs, wallMs: () => 0 } });
}
