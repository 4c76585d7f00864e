/**
 * An example of a policy module (docs/HOOKS.md): who has not authenticated may not name one of our own people as the
 * author of a mail, and every mail is marked as checked. Readers differ in which of two From fields they show, and what
 * stands behind the octets that are looked at is not known: a stranger's mail has one From there, and its whole header.
 *
 *   smtp.hooks: [{module: policy.js, timeout: 1s, on_failure: defer}]
 */
import type { OnMessage } from 'twinpost/hooks';

const OUR_DOMAIN = '@example.com';
const HEADER_OCTETS_MAX = 64 * 1024;

const decoder = new TextDecoder('latin1');

/** The header, its folded lines joined; undefined when it is longer. */
function headerOf(content: Uint8Array): string | undefined {
  const text = decoder.decode(content.subarray(0, HEADER_OCTETS_MAX));
  const end = text.indexOf('\r\n\r\n');
  if (end < 0 && content.length > HEADER_OCTETS_MAX) return undefined;
  return (end < 0 ? text : text.slice(0, end)).replace(/[\r\n]+[ \t]+/g, ' ');
}

/** Of each From field, without blanks and comments, which an address may have within. */
function authorsOf(header: string): string[] {
  return [...header.matchAll(/^from[ \t]*:(.*)$/gim)]
    .map(([, value = '']) => value.replace(/\([^()]*\)|\s/g, '').toLowerCase());
}

export const onMessage: OnMessage = ({ user, content }) => {
  if (user === '') {
    const [author, ...more] = authorsOf(headerOf(content) ?? '');
    if (author === undefined || more.length > 0) {
      return { action: 'refuse', text: 'Expected one From field (RFC 5322 3.6), in a header of 64 KiB at most' };
    }
    if (author.includes(OUR_DOMAIN)) {
      return { action: 'refuse', text: 'You are not one of us: authenticate to send as us' };
    }
  }
  return { action: 'accept', fields: [{ name: 'X-Policy', value: user === '' ? 'checked' : 'checked; authenticated' }] };
};
