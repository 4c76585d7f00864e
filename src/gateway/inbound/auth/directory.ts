/**
 * Who knows the users: a file with verifiers (auth/verifiers.ts), or somebody who is asked by HTTP
 * (gateway/inbound/users-by-http.ts).
 */
import type { Users } from './users.js';

/** Somebody whose password was right. */
export interface Account {
  readonly name: string;
  /** Lower case (users.ts). */
  readonly addresses: readonly string[];
}

/** Of all accounts that are remembered: who is asked by HTTP may name many addresses of each. */
export const ACCOUNT_CHARACTERS_MAX = 32 * 1024 * 1024;
/** Of an account, and of each address, besides its text. */
const ENTRY_CHARACTERS = 50;

export interface Directory {
  /** So many checks at a time. */
  readonly checksAtOnce: number;
  /** find() may not know somebody any more who is a user still. */
  readonly mayForget: boolean;
  /** `password`: normalized. Undefined: name or password is wrong. Rejects when nobody can tell now. */
  check(name: string, password: string): Promise<Account | undefined>;
  /** What was found right is right still. */
  isStill(account: Account): boolean;
  /** By the name of somebody who has authenticated. */
  find(name: string): Account | undefined;
  /** The users, where every one of them has what SCRAM needs. */
  readonly scramUsers: Pick<Users, 'find' | 'usual'> | undefined;
}

export function charactersOf({ name, addresses }: Account): number {
  const ofName = name.length + ENTRY_CHARACTERS;
  return addresses.reduce((sum, { length }) => sum + length + ENTRY_CHARACTERS, ofName);
}
