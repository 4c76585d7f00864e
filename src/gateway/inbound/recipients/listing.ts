/**
 * What a table of recipients says of an address, and the port by which reception asks it. Behind it is a file
 * (table-layout.ts, read by gateway/inbound/recipients-file.ts, made by `twinpost table build`), or somebody
 * who is asked by HTTP (gateway/inbound/recipients-by-http.ts). Lines of the file:
 *
 *   anna@example.com                                      taken; goes where its domain leads
 *   bob@example.com     route=box-17                      taken; goes by the route of this name
 *   info@example.com    to=anna@example.com,x@d.example   an alias: goes to these
 *   @example.org        …                                 every other address of the domain; as above
 */
import { foldCase } from '../../../base/fold-case.js';
import { withoutNeedlessQuotes } from '../../../base/needless-quotes.js';

/** `route` '' and no `to`: where the domain leads. */
export interface Listing {
  readonly route: string;
  readonly to: readonly string[];
}

/** Somebody must be asked first: learn(). */
export const NOT_ASKED = Symbol('not asked');

export interface RecipientTable {
  /**
   * `key`: see tableKey. Undefined: there is no such address. Throws when the table can't be read: nobody
   * knows.
   */
  find(key: string): Listing | undefined | typeof NOT_ASKED;
  /**
   * Asks for these; `done`, which may be called at once: whatever there is to know can be found. `isFull`:
   * too many wait, and of some nobody was asked.
   */
  learn?(keys: readonly string[], done: (isFull?: boolean) => void): void;
}

/** Longest list of an alias. */
export const ALIAS_TARGETS_MAX = 1000;

/**
 * How an address stands in a table: lower case, for mailboxes that differ in case only do not exist, without
 * quotes that it does not need, and the domain as routes know it. `domain` is lower-case A-labels.
 */
export function tableKey(address: string, domain: string): string {
  const plain = withoutNeedlessQuotes(address);
  return `${foldCase(plain.slice(0, plain.lastIndexOf('@')))}@${domain}`;
}

/** The key of the line that stands for all other addresses of a domain. */
export function domainKey(domain: string): string {
  return `@${domain}`;
}
