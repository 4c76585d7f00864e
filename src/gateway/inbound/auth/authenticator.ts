/**
 * Who may submit: the mechanisms of the users (directory.ts), and the check of their passwords. One for all
 * listeners of a process.
 */
import type { Clock, Secrets } from '../../../platform/ports.js';
import { PasswordChecks } from './password-checks.js';
import type { GiveUp, OnVerdict } from './password-checks.js';
import { LoginExchange, PlainExchange, ScramExchange } from './sasl.js';
import type { Exchange } from './sasl.js';
import type { Account, Directory } from './directory.js';

export interface AuthenticatorPorts {
  readonly secrets: Secrets;
  readonly clock: Clock;
}

export class Authenticator {
  readonly #directory: Directory;
  readonly #secrets: Secrets;
  readonly #fakeKey: Uint8Array;
  readonly #checks: PasswordChecks;

  /** `fakeKey`: the same at all processes of a group, so that an unknown name has one salt everywhere. */
  constructor(directory: Directory, fakeKey: Uint8Array, ports: AuthenticatorPorts) {
    this.#directory = directory;
    this.#secrets = ports.secrets;
    this.#fakeKey = fakeKey;
    this.#checks = new PasswordChecks({ ...ports, directory });
  }

  /** Best first. */
  get mechanisms(): readonly string[] {
    return mechanismsOf(this.#directory.scramUsers !== undefined);
  }

  /** undefined: the mechanism is not offered. */
  exchange(mechanism: string): Exchange | undefined {
    if (!this.mechanisms.includes(mechanism)) return undefined;
    if (mechanism === 'PLAIN') return new PlainExchange();
    const { scramUsers } = this.#directory;
    if (mechanism === 'LOGIN' || scramUsers === undefined) return new LoginExchange();
    return new ScramExchange(scramUsers, this.#secrets, this.#fakeKey);
  }

  /** What he may send from; undefined: he is no user any more by what he has authenticated with. */
  addressesOf(account: Account): readonly string[] | undefined {
    return this.#directory.addressesOf(account);
  }

  find(name: string): Account | undefined {
    return this.#directory.find(name);
  }

  check(name: string, password: string, clientKey: string, done: OnVerdict): GiveUp {
    return this.#checks.check(name, password, clientKey, done);
  }

  /** A client has guessed by a mechanism that needs no check here. */
  onWrong(clientKey: string): void {
    this.#checks.onWrong(clientKey);
  }
}

/** SCRAM only where every user has what it needs: a name that lacks it would show. */
export function mechanismsOf(haveScram: boolean): readonly string[] {
  return haveScram ? ['SCRAM-SHA-256', 'PLAIN', 'LOGIN'] : ['PLAIN', 'LOGIN'];
}
