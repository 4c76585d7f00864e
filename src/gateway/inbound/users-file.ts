/**
 * The file of users (auth/users.ts): read at the start, and again when it changes, then step by step. One
 * that can't be used never replaces a good one; that is told once.
 */
import { errorText } from '../../base/error-text.js';
import { readText, stampOf } from '../../platform/node/changing-files.js';
import { toAscii } from '../../platform/node/idna.js';
import { inSteps } from '../../platform/node/in-steps.js';
import { scramKeys, scryptKey } from '../../platform/node/password-key.js';
import { SystemSecrets } from '../../platform/node/secrets.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import { Authenticator } from './auth/authenticator.js';
import { UsersByHttp } from './users-by-http.js';
import type { HttpServiceOptions, HttpServicePorts } from './http-service.js';
import { parseUsers, usersIn } from './auth/users.js';
import type { Users } from './auth/users.js';
import { Verifiers } from './auth/verifiers.js';
import type { DeriveKey } from './auth/verifiers.js';

const LOOK_MS = 1000;
/** What an unknown name's salt is made with, of the secret that a group shares. */
const FAKE_KEY_LABEL = Buffer.from('twinpost salts of unknown names');

/** Throws an Error that names the file and the line. */
export function readUsers(file: string): Users {
  const text = readText(file);
  try {
    return parseUsers(text, toAscii);
  } catch (error) {
    throw new Error(`'${file}': ${errorText(error)}`);
  }
}

/** In many turns; rejects likewise. */
async function readAnew(file: string, before: Users): Promise<Users> {
  const text = readText(file);
  try {
    return await inSteps(usersIn(text, toAscii, before));
  } catch (error) {
    throw new Error(`'${file}': ${errorText(error)}`);
  }
}

/** Users in force, and the end of looking after their file. */
export interface RunningUsers {
  readonly authenticator: Authenticator;
  close(): void;
}

export interface UsersPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  /** The file can't be used, and who was read before stays; or it can. */
  onRead(isStale: boolean): void;
}

/** Throws as readUsers(). */
export function followUsers(file: string, secret: Uint8Array, ports: UsersPorts): RunningUsers {
  const secrets = new SystemSecrets();
  const fakeKey = secrets.hmacSha256(secret, FAKE_KEY_LABEL);
  const { clock } = ports;
  // Before it is read: one that is replaced meanwhile is read again.
  let stamp = stampOf(file);
  let users = readUsers(file);
  const verifiers = new Verifiers(users, { secrets, deriveKey });
  const authenticator = new Authenticator(verifiers, fakeKey, { secrets, clock });
  ports.onRead(false);
  tellScram(users, ports.log);
  let isReading = false;
  const timer = setInterval(() => {
    const now = stampOf(file);
    if (now === stamp || isReading) return;
    stamp = now;
    isReading = true;
    readAnew(file, users).then((read) => {
      users = read;
      verifiers.users = users;
      ports.onRead(false);
      ports.log.info('users', 'the file of users was read anew', { users: users.count });
      tellScram(users, ports.log);
    }, (error: unknown) => {
      const why = errorText(error);
      ports.onRead(true);
      ports.log.error('users', 'the new file of users can\'t be used, the old users stay', { why });
    }).finally(() => { isReading = false; });
  }, LOOK_MS).unref();
  return { authenticator, close: () => { clearInterval(timer); } };
}

function tellScram({ whyNoScram: why }: Users, log: EventLog): void {
  if (why !== '') log.warn('users', 'SCRAM-SHA-256 is not offered', { why });
}

/** Somebody else knows the users: passwords go there as they are, so no name has a salt. */
export function askUsers(options: HttpServiceOptions, ports: HttpServicePorts): RunningUsers {
  const directory = new UsersByHttp(options, ports);
  const secrets = new SystemSecrets();
  const { clock } = ports;
  const authenticator = new Authenticator(directory, secrets.randomBytes(32), { secrets, clock });
  return { authenticator, close: () => undefined };
}

const deriveKey: DeriveKey = async (password, verifier) => {
  if (verifier.kind === 'scrypt') return await scryptKey(password, verifier.salt, verifier);
  return (await scramKeys(password, verifier.salt, verifier.iterations)).storedKey;
};
