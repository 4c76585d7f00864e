/**
 * Which admin port a verb asks, with what token, and by which CA it is known: the one place that reads
 * TWINPOST_ADMIN, TWINPOST_TOKEN_FILE and TWINPOST_CA_FILE, so that every verb obeys them. What the command
 * line says goes first; the environment is next; then this machine.
 */
import { errorText } from '../base/error-text.js';
import type { Access } from '../platform/node/admin-request.js';
import { readOwnToken } from '../platform/node/admin-tokens.js';
import { readPem } from '../platform/node/certificates.js';
import { addressText } from '../config/keys/values.js';
import type { Address } from '../config/keys/values.js';
import type { CliContext } from './context.js';
import { CliError, UsageError } from './context.js';
import type { Options } from 'yargs';

export const GATEWAY_URL = 'http://127.0.0.1:8025';
export const STORE_URL = 'http://127.0.0.1:9401';

/** Of each verb that asks. */
export const ACCESS_OPTIONS = {
  'token-file': {
    type: 'string', requiresArg: true, describe: 'file with your token (or TWINPOST_TOKEN_FILE)',
  },
  'ca-file': {
    type: 'string', requiresArg: true,
    describe: 'CA of https admin addresses, else those of the system (or TWINPOST_CA_FILE)',
  },
} as const satisfies Record<string, Options>;

export interface AccessArguments {
  readonly 'token-file': string | undefined;
  readonly 'ca-file': string | undefined;
}

export function addressHelp(of: string, fallback: string): string {
  return `admin address of ${of} (default ${fallback}, or TWINPOST_ADMIN)`;
}

export interface AdminAddress {
  /** Without a slash at its end. */
  readonly url: string;
  readonly access: Access;
}

export function adminAddress(
  given: AccessArguments & { readonly from: string | undefined }, context: CliContext, fallback = GATEWAY_URL,
): AdminAddress {
  const from = given.from ?? context.environment['TWINPOST_ADMIN'] ?? fallback;
  const url = from.includes('://') ? from : `http://${from}`;
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new UsageError(`'${from}' is no admin address; an example: ${fallback}`);
  }
  return { url: url.replace(/\/+$/, ''), access: accessOf(given, context) };
}

/** Of a process whose configuration this is. */
export function adminUrl({ listen, tls }: { readonly listen: Address; readonly tls?: unknown }): string {
  return `${tls === undefined ? 'http' : 'https'}://${addressText(listen)}`;
}

export function accessOf(given: AccessArguments, { environment }: CliContext): Access {
  const tokenFile = given['token-file'] ?? environment['TWINPOST_TOKEN_FILE'];
  const caFile = given['ca-file'] ?? environment['TWINPOST_CA_FILE'];
  try {
    return {
      token: tokenFile === undefined ? undefined : readOwnToken(tokenFile),
      ca: caFile === undefined ? undefined : readPem('ca', caFile),
    };
  } catch (error) {
    throw new CliError(errorText(error));
  }
}
