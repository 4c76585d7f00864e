/** The address that a recipient was given by, before an alias changed it: ORCPT tells it. Pure. */
import { ALIAS_CHANGED } from '../mail-types.js';
import type { Recipient } from '../mail-types.js';

/**
 * '': no alias changed it. What ORCPT says is xtext (RFC 3461 4), or has `\x{…}` for what is not ASCII
 * (RFC 6533 3).
 */
export function givenAddress({ notify, orcpt }: Recipient): string {
  if ((notify & ALIAS_CHANGED) === 0) return '';
  const given = orcpt.slice(orcpt.indexOf(';') + 1);
  const codes = orcpt.toLowerCase().startsWith('utf-8;') ? /\\x\{([0-9A-F]{2,5})\}/g : /\+([0-9A-F]{2})/g;
  return given.replace(codes, (_all, code: string) => String.fromCodePoint(Number.parseInt(code, 16)));
}
