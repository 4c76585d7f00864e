/**
 * What `config check` warns of in a configuration that is sound, and in the files that it names, which can be
 * read, as was found before. `config reload` and `config diff` say the same of what a process has read. Not
 * here, as the process that runs has both: folders and ports; nor users, whose file may be large, and of whom
 * its log says it (config-check.ts).
 */
import type { GatewayConfig, StoreConfig } from '../config/types.js';
import type { FileReadAgain } from './context.js';
import { gatewayNotes, seldomMeant } from './config-notes.js';
import { endingCertificates } from './link-files.js';
import { looseFiles, unknownRoutes } from './reception-files.js';
import { receptionWarnings } from './reception-warnings.js';

/** A line each. `place`: of the whole. */
export function configWarnings(
  place: string, gateway: GatewayConfig | undefined, stores: readonly StoreConfig[], nowMs: number,
): readonly string[] {
  const found = [...endingCertificates(gateway, stores, nowMs), ...seldomMeant(place, gateway, stores)];
  if (gateway === undefined) return found;
  return [
    ...found, ...unknownRoutes(gateway), ...looseFiles(gateway), ...receptionWarnings(gateway),
    ...gatewayNotes(gateway),
  ];
}

/** Of a file that a gateway has read again. */
export function gatewayWarnings({ config, place }: FileReadAgain<GatewayConfig>): readonly string[] {
  return configWarnings(place([]), config, [], Date.now());
}

/** The same of a store. */
export function storeWarnings({ config, place }: FileReadAgain<StoreConfig>): readonly string[] {
  return configWarnings(place([]), undefined, [config], Date.now());
}
