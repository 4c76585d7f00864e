/**
 * Which admin port a verb asks, and with what token: the one place that reads TWINPOST_ADMIN and
 * TWINPOST_TOKEN, so that every verb obeys them. What the command line says goes first; the environment is
 * next; then this machine.
 */
import type { CliContext } from './context.js';
import { UsageError } from './context.js';

export const GATEWAY_URL = 'http://127.0.0.1:8025';
export const STORE_URL = 'http://127.0.0.1:9401';

/** Shown with the option of a verb. */
export const TOKEN_HELP =
  'bearer token of the group (or TWINPOST_TOKEN, which other users of this machine do not see)';

export function addressHelp(of: string, fallback: string): string {
  return `admin address of ${of} (default ${fallback}, or TWINPOST_ADMIN)`;
}

export interface AdminAddress {
  /** Without a slash at its end. */
  readonly url: string;
  readonly token: string | undefined;
}

export function adminAddress(
  given: { readonly from: string | undefined; readonly token: string | undefined },
  { environment }: CliContext, fallback = GATEWAY_URL,
): AdminAddress {
  const from = given.from ?? environment['TWINPOST_ADMIN'] ?? fallback;
  const url = from.includes('://') ? from : `http://${from}`;
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new UsageError(`'${from}' is no admin address; an example: ${fallback}`);
  }
  return { url: url.replace(/\/+$/, ''), token: given.token ?? environment['TWINPOST_TOKEN'] };
}
