/**
 * Addresses of type utf-8 where only ASCII may stand: the forms of RFC 6533 3 for ORCPT and for reports.
 *
 *   dörte@example.net    ─ utf8AddressText ─►    d\x{F6}rte@example.net         utf-8-addr-xtext
 *                        ◄─ utf8AddressOf ──
 */

/** Characters that stand for themselves: printable, but "\", "+" and "=". */
const PLAIN = /^[!-*,-<>-[\]-~]$/;

/** An address in ASCII. */
export function utf8AddressText(address: string): string {
  let text = '';
  for (const character of address) text += PLAIN.test(character) ? character : escaped(character);
  return text;
}

/** Back again; what stands for no character stays as it is. */
export function utf8AddressOf(text: string): string {
  return text.replace(/\\x\{([0-9A-F]{2,6})\}/g, (escape, hex: string) => {
    const code = Number.parseInt(hex, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : escape;
  });
}

/** An ORCPT as it was received, in ASCII: what is in 7-bit form stays as it is. */
export function unitextAsXtext(orcpt: string): string {
  let text = '';
  for (const character of orcpt) text += character <= '\x7f' ? character : escaped(character);
  return text;
}

function escaped(character: string): string {
  return `\\x{${(character.codePointAt(0) ?? 0).toString(16).toUpperCase()}}`;
}
