/**
 * "\"anna\"@example.com" is the mailbox anna@example.com (RFC 5321 4.1.2): for whoever looks an address up.
 * What goes on to others stays as it was written.
 */

const QUOTE = 0x22;
/** Of a local part that needs no quotes: atoms (RFC 5322 3.2.3, RFC 6532) joined by dots. */
const DOT_STRING = /^[\w!#$%&'*+/=?^`{|}~\u00a0-\uffff-]+(?:\.[\w!#$%&'*+/=?^`{|}~\u00a0-\uffff-]+)*$/;

/** Without the quotes of its local part, if that needs none. */
export function withoutNeedlessQuotes(address: string): string {
  if (address.charCodeAt(0) !== QUOTE) return address;
  const at = address.lastIndexOf('@');
  const local = address.slice(1, at - 1).replace(/\\(.)/g, '$1');
  return DOT_STRING.test(local) ? local + address.slice(at) : address;
}
