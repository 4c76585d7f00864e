/**
 * Users by the verifiers of their file (users.ts): a password is right when its hash is the verifier's. A
 * hash costs 0.1 s of a thread on purpose; an unknown name costs one, too.
 */
import type { Secrets } from '../../../platform/ports.js';
import type { Account, Directory } from './directory.js';
import type { ScramVerifier, ScryptVerifier, User, Users } from './users.js';

/** Derives the key of a verifier from a password, outside the loop's thread. */
export type DeriveKey = (password: string, verifier: ScryptVerifier | ScramVerifier) => Promise<Uint8Array>;

export interface VerifierPorts {
  readonly secrets: Secrets;
  readonly deriveKey: DeriveKey;
}

/** For names that nobody has. */
const NOBODY: ScryptVerifier = {
  kind: 'scrypt', logCost: 15, blockSize: 8, parallelization: 1,
  salt: new Uint8Array(16), hash: new Uint8Array(32),
};

export class Verifiers implements Directory {
  readonly checksAtOnce = 2;
  /** Those in force; may be exchanged at any time. */
  users: Pick<Users, 'find' | 'haveScram'>;
  readonly #ports: VerifierPorts;

  constructor(users: Pick<Users, 'find' | 'haveScram'>, ports: VerifierPorts) {
    this.users = users;
    this.#ports = ports;
  }

  get scramUsers(): Pick<Users, 'find'> | undefined {
    return this.users.haveScram ? this.users : undefined;
  }

  async check(name: string, password: string): Promise<Account | undefined> {
    const user = this.users.find(name);
    const verifier = user?.verifier ?? NOBODY;
    const key = await this.#ports.deriveKey(password, verifier);
    const wanted = verifier.kind === 'scrypt' ? verifier.hash : verifier.storedKey;
    return this.#ports.secrets.equal(key, wanted) ? user : undefined;
  }

  /** By identity: a file that was read anew has other users. */
  isStill(account: Account): boolean {
    return this.users.find(account.name) === account;
  }

  find(name: string): User | undefined {
    return this.users.find(name);
  }
}
