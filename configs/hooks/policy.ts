/**
 * An example of a policy module (docs/HOOKS.md): who has not authenticated may not name one of our own people as the
 * author of a mail, and every mail is marked as checked.
 *
 *   smtp.hooks: [{module: policy.js, timeout: 1s, on_failure: defer}]
 */
import type { OnMessage } from 'twinpost/hooks';

const OUR_DOMAIN = '@example.com';
const HEADER_OCTETS_MAX = 64 * 1024;

const decoder = new TextDecoder('latin1');

/** The header, its folded lines joined. */
function headerOf(content: Uint8Array): string {
  const text = decoder.decode(content.subarray(0, HEADER_OCTETS_MAX));
  const end = text.indexOf('\r\n\r\n');
  return (end < 0 ? text : text.slice(0, end)).replace(/\r\n[ \t]+/g, ' ');
}

export const onMessage: OnMessage = ({ user, content }) => {
  const from = /^from:(.*)$/im.exec(headerOf(content))?.[1] ?? '';
  if (user === '' && from.toLowerCase().includes(OUR_DOMAIN)) {
    return { action: 'refuse', text: 'You are not one of us: authenticate to send as us' };
  }
  return { action: 'accept', fields: [{ name: 'X-Policy', value: user === '' ? 'checked' : 'checked; authenticated' }] };
};
