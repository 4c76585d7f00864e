/**
 * Users by the verifiers of their file (users.ts): a password is right when its hash is the verifier's. A
 * hash costs time of a thread on purpose, some 0.1 s; an unknown name costs what most others do.
 */
import type { Secrets } from '../../../platform/ports.js';
import { prepared } from './saslprep.js';
import type { Account, Directory } from './directory.js';
import type { ScramVerifier, ScryptVerifier, User, Users } from './users.js';

/** Derives the key of a verifier from a password, outside the loop's thread. */
export type DeriveKey = (password: string, verifier: ScryptVerifier | ScramVerifier) => Promise<Uint8Array>;

export interface VerifierPorts {
  readonly secrets: Secrets;
  readonly deriveKey: DeriveKey;
}

const KEPT_MS = 600_000;

type KnownUsers = Pick<Users, 'find' | 'haveScram' | 'usual'>;

export class Verifiers implements Directory {
  readonly checksAtOnce = 2;
  readonly keptMs = KEPT_MS;
  /** Those in force; may be exchanged at any time. */
  users: KnownUsers;
  readonly #ports: VerifierPorts;

  constructor(users: KnownUsers, ports: VerifierPorts) {
    this.users = users;
    this.#ports = ports;
  }

  get scramUsers(): Pick<Users, 'find' | 'usual'> | undefined {
    return this.users.haveScram ? this.users : undefined;
  }

  async check(name: string, password: string): Promise<Account | undefined> {
    const user = this.users.find(name);
    const verifier = user?.verifier ?? this.users.usual;
    if (verifier === undefined) return undefined;
    const key = await this.#ports.deriveKey(prepared(password), verifier);
    const wanted = verifier.kind === 'scrypt' ? verifier.hash : verifier.storedKey;
    return this.#ports.secrets.equal(key, wanted) ? user : undefined;
  }

  /** By identity: who was changed in a file that was read anew is another object, who was not is the same. */
  addressesOf(account: Account): readonly string[] | undefined {
    const user = this.users.find(account.name);
    return user === account ? user.addresses : undefined;
  }

  find(name: string): User | undefined {
    return this.users.find(name);
  }
}
