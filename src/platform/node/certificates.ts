/**
 * What files with certificates and keys hold, for those who judge them by themselves (cli/reception-files.ts)
 * and for the log: who a certificate is for and until when.
 */
import { X509Certificate } from 'node:crypto';
import tls from 'node:tls';
import { readText } from './changing-files.js';

export interface CertificateFacts {
  /** One line. */
  readonly subject: string;
  /** ISO 8601. */
  readonly expires: string;
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
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`'${file}' is no ${what} in PEM: ${why}`);
  }
  return text;
}

/** Of the first certificate in a text that TLS takes. */
export function certificateFacts(pem: string): CertificateFacts {
  const { subject, validTo } = new X509Certificate(pem);
  return { subject: subject.replaceAll('\n', ', '), expires: new Date(validTo).toISOString() };
}
