/**
 * Who may submit: the users in force, their mechanisms, and the check of their passwords. One for all
 * listeners of a process. Users may be exchanged while sessions run (users-file.ts).
 */
import type { Clock, Secrets } from '../../../platform/ports.js';
import { PasswordChecks } from './password-checks.js';
import type { DeriveKey, Verdict } from './password-checks.js';
import { LoginExchange, PlainExchange, ScramExchange } from './sasl.js';
import type { Exchange } from './sasl.js';
import type { User, Users } from './users.js';

export interface AuthenticatorPorts {
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly deriveKey: DeriveKey;
}

export class Authenticator {
  users: Users;
  readonly #secrets: Secrets;
  readonly #fakeKey: Uint8Array;
  readonly #checks: PasswordChecks;

  /** `fakeKey`: the same at all processes of a group, so that an unknown name has one salt everywhere. */
  constructor(users: Users, fakeKey: Uint8Array, ports: AuthenticatorPorts) {
    this.users = users;
    this.#secrets = ports.secrets;
    this.#fakeKey = fakeKey;
    this.#checks = new PasswordChecks({ ...ports, find: (name) => this.users.find(name) });
  }

  /** Best first; SCRAM only where every user has what it needs, for a name that lacks it would show. */
  get mechanisms(): readonly string[] {
    return this.users.haveScram ? ['SCRAM-SHA-256', 'PLAIN', 'LOGIN'] : ['PLAIN', 'LOGIN'];
  }

  /** undefined: the mechanism is not offered. */
  exchange(mechanism: string): Exchange | undefined {
    if (!this.mechanisms.includes(mechanism)) return undefined;
    if (mechanism === 'PLAIN') return new PlainExchange();
    if (mechanism === 'LOGIN') return new LoginExchange();
    return new ScramExchange(this.users, this.#secrets, this.#fakeKey);
  }

  find(name: string): User | undefined {
    return this.users.find(name);
  }

  check(name: string, password: string, clientKey: string, done: (verdict: Verdict) => void): void {
    this.#checks.check(name, password, clientKey, done);
  }
}
