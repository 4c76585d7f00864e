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

export interface Directory {
  /** So many checks at a time. */
  readonly checksAtOnce: number;
  /** Undefined: name or password is wrong. Rejects when nobody can tell now. */
  check(name: string, password: string): Promise<Account | undefined>;
  /** What was found right is right still. */
  isStill(account: Account): boolean;
  /** By the name of somebody who has authenticated. */
  find(name: string): Account | undefined;
  /** The users, where every one of them has what SCRAM needs. */
  readonly scramUsers: Pick<Users, 'find' | 'usual'> | undefined;
}
