/**
 * What files with certificates and keys hold, for those who judge them by themselves (cli/reception-files.ts)
 * and for the log: who a certificate is for and until when.
 */
import { X509Certificate, createPrivateKey } from 'node:crypto';
import tls from 'node:tls';
import type { SecureContextOptions } from 'node:tls';
import { cutText } from '../../base/cut-text.js';
import { errorText } from '../../base/error-text.js';
import { readText } from './changing-files.js';

export interface CertificateFacts {
  /** One line. */
  readonly subject: string;
  /** ISO 8601. */
  readonly expires: string;
  /** Unix time. */
  readonly beginsMs: number;
  readonly endsMs: number;
}

/** Of one that is for hundreds. */
const NAMES_BYTES_MAX = 500;

/** What TLS takes for a certificate with its key: texts in PEM. */
type PairMaterial = SecureContextOptions & { readonly cert: string; readonly key: string };

const OF_ANOTHER = 'the key belongs to another certificate';

/** What OpenSSL says, and what an operator can do about it. */
const TLS_WORDS: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/KEY_VALUES_MISMATCH/, OF_ANOTHER],
  [/BAD_DECRYPT|BAD_PASSWORD|MISSING_PASSPHRASE|INTERRUPTED_OR_CANCELLED/,
    'the key is encrypted: store it without its passphrase (openssl pkey -in KEY -out NEW)'],
  [/PEM_NO_START_LINE|OSSL_UNSUPPORTED/, 'there is no -----BEGIN … line of one in it'],
  [/PEM_BAD_|PEM_SHORT|ASN1/, 'it is cut off or damaged'],
  [/KEY_TOO_SMALL/, 'the key is too short: RSA needs 2048 bits, EC 224'],
  [/MD_TOO_WEAK/, 'it is signed with SHA-1 or MD5, which clients refuse'],
];

/** In plain words, if they are known; else OpenSSL's. */
export function tlsErrorText(error: unknown): string {
  const { code = '' } = error as NodeJS.ErrnoException;
  return TLS_WORDS.find(([pattern]) => pattern.test(code))?.[1] ?? errorText(error);
}

/**
 * The text of a file. Throws an Error that names it. What TLS takes for a certificate says TLS; but it takes
 * no text for none, and does not look at CAs.
 */
export function readPem(kind: 'cert' | 'key' | 'ca', file: string): string {
  const text = readText(file);
  try {
    if (text.trim() === '') throw new Error('it is empty');
    if (kind === 'ca') certificateFacts(text);
    else tls.createSecureContext({ [kind]: text });
  } catch (error) {
    const what = kind === 'key' ? 'key' : 'certificate';
    throw new Error(`'${file}' is no ${what} in PEM: ${tlsErrorText(error)}`);
  }
  return text;
}

/**
 * Throws an Error that names both files unless they are of one pair. TLS itself compares keys of one type
 * alone: it takes an RSA certificate with an EC key, and then no handshake succeeds. Certificates behind the
 * first one are its chain, and have keys of their own.
 */
export function checkPair(material: PairMaterial, certFile: string, keyFile: string): void {
  const { cert, key } = material;
  try {
    tls.createSecureContext(material);
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) throw new Error(OF_ANOTHER);
  } catch (error) {
    const pair = `'${certFile}' and '${keyFile}'`;
    throw new Error(`${pair} are no certificate with its key in PEM: ${tlsErrorText(error)}`);
  }
}

/** '' if the first certificate in a text is for the name; else what comes of it, and what to do. */
export function whyNotFor(hostName: string, pem: string): string {
  const certificate = new X509Certificate(pem);
  if (certificate.checkHost(hostName) !== undefined) return '';
  const names = certificate.subjectAltName ?? certificate.subject.replaceAll('\n', ', ');
  return `not for '${hostName}' (hostname): clients that know this gateway by that name, and look, refuse `
    + 'it: have one made that has it, too; where they know it by another name, nothing is to be done; it is '
    + `for ${cutText(names, NAMES_BYTES_MAX)}`;
}

/** Of the first certificate in a text that TLS takes. */
export function certificateFacts(pem: string): CertificateFacts {
  const { subject, validFrom, validTo } = new X509Certificate(pem);
  const [beginsMs, endsMs] = [Date.parse(validFrom), Date.parse(validTo)];
  const expires = new Date(endsMs).toISOString();
  return { subject: subject.replaceAll('\n', ', '), expires, beginsMs, endsMs };
}
