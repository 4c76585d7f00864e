/**
 * Lower case, for addresses that are the same whatever their case. Signs stay as they are: their lower case
 * is that of a letter, and U+212A, the sign of kelvin, would make of its bearer somebody else in ASCII.
 */

/** Of ohm, kelvin and angstrom. */
const SIGN = /[\u2126\u212a\u212b]/;
const OTHERS = /[^\u2126\u212a\u212b]+/g;

export function foldCase(text: string): string {
  return SIGN.test(text) ? text.replace(OTHERS, (part) => part.toLowerCase()) : text.toLowerCase();
}
