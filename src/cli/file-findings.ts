/**
 * Lines of `config check` about files that a configuration names, as for any other key that is wrong:
 * FILE:LINE: key: expected …, found: ….
 */
import { errorText } from '../base/error-text.js';
import type { GatewayConfig } from '../config/types.js';
import { readPem } from '../platform/node/certificates.js';

export class FileFindings {
  readonly lines: string[] = [];
  readonly #places: GatewayConfig['places'];

  constructor(places: GatewayConfig['places']) {
    this.#places = places;
  }

  add(key: string, wanted: string, why: string): void {
    const oneLine = why.replace(/\s*\n\s*/g, '; ');
    this.lines.push(`${this.#places[key] ?? '?'}: ${key}: expected ${wanted}, found: ${oneLine}`);
  }

  /** False when it can't be used. */
  judge(key: string, wanted: string, read: () => unknown): boolean {
    try {
      read();
      return true;
    } catch (error) {
      this.add(key, wanted, errorText(error));
      return false;
    }
  }

  /** Each file by itself, for it has a key of its own; then whether they go together. */
  judgePair(
    at: string, certFile: string, keyFile: string, caFile: string | undefined, caKey: string,
    together: () => unknown,
  ): void {
    const each = [
      this.judge(`${at}.cert`, 'a certificate in PEM', () => readPem('cert', certFile)),
      this.judge(`${at}.key`, 'a key in PEM', () => readPem('key', keyFile)),
      caFile === undefined
        || this.judge(`${at}.${caKey}`, 'a certificate in PEM', () => readPem('ca', caFile)),
    ];
    if (each.includes(false)) return;
    this.judge(`${at}.key`, 'the key of the certificate, in PEM', together);
  }
}
