/**
 * What clients meet at each SMTP listener, for `config check`: its role, TLS, the AUTH offered, who may
 * say who a client is, and blocklists.
 */
import type { GatewayConfig, ListenerConfig } from '../config/types.js';
import { mechanismsOf } from '../gateway/inbound/auth/authenticator.js';
import { readUsers } from '../gateway/inbound/users-file.js';
import { addressText } from '../base/address-text.js';

const TLS_WORDS: Readonly<Record<ListenerConfig['tls'], string>> = {
  off: 'no TLS', starttls: 'STARTTLS', implicit: 'TLS before the greeting',
};

const NAMES_MAX = 5;

function named(what: string, names: readonly string[]): string {
  if (names.length === 0) return '';
  const more = names.length > NAMES_MAX ? ` and ${String(names.length - NAMES_MAX)} more` : '';
  return `, ${what} ${names.slice(0, NAMES_MAX).join(' ')}${more}`;
}

/** A line each. The users' file can be read, as was found before. */
export function listenerLines({ smtp }: GatewayConfig): readonly string[] {
  const { usersFile } = smtp;
  const users = usersFile === undefined ? undefined : readUsers(usersFile);
  const mechanisms = mechanismsOf(users?.haveScram === true);
  const why = users === undefined || users.whyNoScram === '' ? '' : ` (${users.whyNoScram})`;
  return smtp.listen.map(({ host, port, role, tls, proxyNetworks, blocklists, ...listener }) => {
    const auth = role === 'submission' ? `AUTH ${mechanisms.join(' ')} within TLS${why}` : 'no AUTH';
    const believed = listener.xclientLogin ? 'XCLIENT, with logins, of' : 'XCLIENT of';
    const proxies = named('a PROXY header of', proxyNetworks) + named(believed, listener.xclientNetworks);
    return `${addressText(host, port)}: ${role}, ${TLS_WORDS[tls]}, ${auth}${proxies}`
      + named('dnsbl', blocklists);
  });
}
