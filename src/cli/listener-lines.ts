/** What clients meet at each SMTP listener, for `config check`: its role, TLS, and the AUTH offered. */
import type { GatewayConfig, ListenerConfig } from '../config/types.js';
import { mechanismsOf } from '../gateway/inbound/auth/authenticator.js';
import { readUsers } from '../gateway/inbound/users-file.js';
import { addressText } from '../base/address-text.js';

const TLS_WORDS: Readonly<Record<ListenerConfig['tls'], string>> = {
  off: 'no TLS', starttls: 'STARTTLS', implicit: 'TLS before the greeting',
};

/** A line each. The users' file can be read, as was found before. */
export function listenerLines({ smtp }: GatewayConfig): readonly string[] {
  const { usersFile } = smtp;
  const users = usersFile === undefined ? undefined : readUsers(usersFile);
  const mechanisms = mechanismsOf(users?.haveScram === true);
  const why = users === undefined || users.whyNoScram === '' ? '' : ` (${users.whyNoScram})`;
  return smtp.listen.map(({ host, port, role, tls, proxyNetworks }) => {
    const auth = role === 'submission' ? `AUTH ${mechanisms.join(' ')} within TLS${why}` : 'no AUTH';
    const proxy = proxyNetworks.length === 0 ? '' : ', behind a PROXY header';
    return `${addressText(host, port)}: ${role}, ${TLS_WORDS[tls]}, ${auth}${proxy}`;
  });
}
