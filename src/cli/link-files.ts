/**
 * What `config check` says of certificates beyond reception-files.ts: whether a store can use those of its
 * links, and which of all are to be renewed soon. That is no error: mail goes on until then.
 */
import { errorText } from '../base/error-text.js';
import type { GatewayConfig, StoreConfig } from '../config/types.js';
import { certificateFiles, endingText } from '../platform/node/certificate-ends.js';
import { readPem } from '../platform/node/certificates.js';
import { readTlsFiles } from '../platform/node/tls-transport.js';

/** A line for each store whose files can't be used. */
export function unusableLinkFiles(configFile: string, stores: readonly StoreConfig[]): string[] {
  return stores.flatMap(({ id, tls }) => {
    if (tls === undefined) return [];
    try {
      readTlsFiles(tls);
      return [];
    } catch (error) {
      const wanted = 'a certificate with its key and the CA, in PEM';
      return [`${configFile}: store ${id}: tls: expected ${wanted}, found: ${errorText(error)}`];
    }
  });
}

/** All of them can be read, as was found before. */
export function endingCertificates(
  configFile: string, gateway: GatewayConfig | undefined, stores: readonly StoreConfig[], nowMs: number,
): string[] {
  const files = [
    ...certificateFiles(gateway?.smtp.tls, gateway?.mirror.tls),
    ...stores.flatMap(({ tls }) => certificateFiles(undefined, tls)),
  ];
  return [...new Set(files.map(({ file }) => file))].flatMap((file) => {
    const why = endingText(readPem('cert', file), nowMs);
    return why === '' ? [] : [`${configFile}: warning: '${file}': ${why}`];
  });
}
