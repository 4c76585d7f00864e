/**
 * Lower case, for addresses that are the same whatever their case. Signs stay as they are: their lower case
 * is that of a letter, and U+212A, the sign of kelvin, would make of its bearer somebody else in ASCII.
 */

/** Of ohm, kelvin and angstrom. */
const SIGN = /[\u2126\u212a\u212b]/;
const OTHERS = /[^\u2126\u212a\u212b]+/g;

/** Text with any of them is no keyword. */
const BEYOND_ASCII = /[\u0080-\uffff]/;

export function foldCase(text: string): string {
  return SIGN.test(text) ? text.replace(OTHERS, (part) => part.toLowerCase()) : text.toLowerCase();
}

/**
 * Upper case, to be compared with keywords in ASCII. What has a character beyond ASCII is none, and stays as
 * it is: U+017F becomes an "S" in upper case and U+0131 an "I", and a filter in front of us would let them
 * pass.
 */
export function upperKeyword(text: string): string {
  return BEYOND_ASCII.test(text) ? text : text.toUpperCase();
}
