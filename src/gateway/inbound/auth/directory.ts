/**
 * Who knows the users: a file with verifiers (auth/verifiers.ts), or somebody who is asked by HTTP
 * (gateway/inbound/users-by-http.ts).
 */
import type { Users } from './users.js';

/** Somebody whose password was right, as his session keeps him: another one stands for another password. */
export interface Account {
  readonly name: string;
  /** As senderKeyOf() makes them (users.ts); where they are not kept elsewhere. */
  readonly addresses?: readonly string[];
}

/** Of all accounts that are remembered: who is asked by HTTP may name many addresses of each. */
export const ACCOUNT_CHARACTERS_MAX = 32 * 1024 * 1024;
/** Of an account, and of each address, besides its text. */
const ENTRY_CHARACTERS = 50;

export interface Directory {
  /** So many checks at a time. */
  readonly checksAtOnce: number;
  /** For so long a password that was right is not checked again. */
  readonly keptMs: number;
  /**
   * `password`: normalized. Undefined: name or password is wrong. Rejects when nobody can tell now. `before`:
   * who it was when this name and this password were right the last time, if that is remembered.
   */
  check(name: string, password: string, before: Account | undefined): Promise<Account | undefined>;
  /**
   * What he may send from now, as senderKeyOf() makes it; undefined: what was found right is not any more, or
   * not known to be. Asked for each message.
   */
  addressesOf(account: Account): readonly string[] | undefined;
  /** By a name for which somebody else vouches. */
  find(name: string): Account | undefined;
  /** The users, where every one of them has what SCRAM needs. */
  readonly scramUsers: Pick<Users, 'find' | 'usual'> | undefined;
}

export function charactersOf({ name, addresses = [] }: Account): number {
  const ofName = name.length + ENTRY_CHARACTERS;
  return addresses.reduce((sum, { length }) => sum + length + ENTRY_CHARACTERS, ofName);
}
