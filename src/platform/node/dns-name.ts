/**
 * Whether a certificate is for a host by the DNS names in its subjectAltName alone (RFC 8461 3.3, 4.2), where
 * Node would take the common name of one that has none. For servers that the policy of a domain speaks of
 * (client-transport.ts), and those that hold such policies (https-client.ts).
 */
import tls from 'node:tls';
import type { PeerCertificate } from 'node:tls';

/** As Node's checkServerIdentity: undefined when it is. */
export function checkDnsName(name: string, certificate: PeerCertificate): Error | undefined {
  // Missing where there is none, whatever the type says.
  const { subjectaltname } = certificate as Partial<PeerCertificate>;
  const names = subjectaltname ?? '';
  if (/(^|, )DNS:/.test(names)) return tls.checkServerIdentity(name, certificate);
  const error = new Error(`the certificate has no DNS name in subjectAltName, and is to be for ${name}`);
  return Object.assign(error, { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
}
