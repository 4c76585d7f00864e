/**
 * The files that a gateway needs, as `config check` and its start judge them: certificates with their keys,
 * users, the table of recipients, keys of DKIM, passwords for next hops, modules of hooks. Most are read
 * again when they change; that they can't be used should be known before. What is wrong is told as for any
 * other key: FILE:LINE: key: expected ….
 */
import { statSync } from 'node:fs';
import type { GatewayConfig } from '../config/types.js';
import { KEY_WANTED, readDkimKey, whyNotBeside } from '../gateway/dkim/node/dkim-keys.js';
import type { DkimKey } from '../gateway/dkim/node/dkim-keys.js';
import { whyNotLoaded } from '../gateway/inbound/hooks/node/module-thread.js';
import { TableFile, checkTable } from '../gateway/inbound/recipients-file.js';
import { readUsers } from '../gateway/inbound/users-file.js';
import { readPem } from '../platform/node/certificates.js';
import { readPassword } from '../platform/node/password-files.js';
import { readServerTls } from '../platform/node/server-tls.js';
import { readTlsFiles } from '../platform/node/tls-transport.js';
import { FileFindings } from './file-findings.js';

/** In one line. */
const NAMES_MAX = 20;

/** A line for each that can't be used. */
export function unusableFiles(config: GatewayConfig): readonly string[] {
  const { smtp, mirror, hopFiles, dkim, places } = config;
  const { tls, usersFile, recipientsFile } = smtp;
  const found = new FileFindings(places);
  if (tls !== undefined) {
    const { certFile, keyFile, clientCaFile } = tls;
    const together = (): unknown => readServerTls(tls);
    found.judgePair('gateway.smtp.tls', certFile, keyFile, clientCaFile, 'client_ca', together);
  }
  if (mirror.tls !== undefined) {
    const files = mirror.tls;
    const { certFile, keyFile, caFile } = files;
    found.judgePair('gateway.mirror.tls', certFile, keyFile, caFile, 'ca', () => readTlsFiles(files));
  }
  if (usersFile !== undefined) {
    const wanted = 'a file of users, a line each as twinpost user NAME makes it';
    found.judge('gateway.smtp.users', wanted, () => readUsers(usersFile));
  }
  if (recipientsFile !== undefined) {
    const wanted = 'a table of recipients, as twinpost table build makes it';
    found.judge('gateway.smtp.recipients', wanted, () => { checkTable(recipientsFile); });
  }
  for (const { at, caFile, passwordFile } of hopFiles) {
    if (caFile !== undefined) {
      found.judge(`${at}.ca_file`, 'a certificate in PEM', () => readPem('ca', caFile));
    }
    if (passwordFile === undefined) continue;
    const wanted = 'a file with a password, one line';
    found.judge(`${at}.auth.password_file`, wanted, () => readPassword(passwordFile));
  }
  judgeDkimKeys(dkim, found);
  return found.lines;
}

/** Each by itself; then whether those of a domain go together. */
function judgeDkimKeys(dkim: GatewayConfig['dkim'], found: FileFindings): void {
  const placeOf = (index: number): string => `gateway.dkim[${String(index)}].key_file`;
  const keys: DkimKey[] = [];
  dkim.forEach((each, index) => {
    found.judge(placeOf(index), KEY_WANTED, () => { keys.push(readDkimKey(each)); });
  });
  if (keys.length < dkim.length) return;
  const ofDomain = new Map<string, DkimKey[]>(keys.map(({ domain }) => [domain, []]));
  for (const key of keys) ofDomain.get(key.domain)?.push(key);
  keys.forEach((key, index) => {
    const why = whyNotBeside(key, ofDomain.get(key.domain) ?? []);
    if (why !== '') found.add(placeOf(index), KEY_WANTED, why);
  });
}

/** As unusableFiles(), of the modules of `smtp.hooks`: each is loaded as a gateway would load it. */
export async function unusableModules({ smtp, places }: GatewayConfig): Promise<readonly string[]> {
  const found = new FileFindings(places);
  for (const [index, hook] of smtp.hooks.entries()) {
    const why = hook.kind === 'module' ? await whyNotLoaded(hook.file, hook.heapBytes) : undefined;
    if (why === undefined) continue;
    found.add(`gateway.smtp.hooks[${String(index)}].module`, 'a module with a function onMessage', why);
  }
  return found.lines;
}

/** No error: mail to the others goes on. The table can be read, as was found before. */
export function unknownRoutes({ smtp, routes, places }: GatewayConfig): readonly string[] {
  const { recipientsFile } = smtp;
  if (recipientsFile === undefined) return [];
  const table = new TableFile(recipientsFile);
  table.close();
  const known = new Set(routes.map(({ name }) => name));
  const unknown = table.head.routes.filter((name) => !known.has(name));
  if (unknown.length === 0) return [];
  const key = 'gateway.smtp.recipients';
  return [`${places[key] ?? '?'}: ${key}: warning: the table names routes that gateway.routes does not have: `
    + `${quotedNames(unknown)}; mail to these recipients is told to come later (451)`];
}

/** Of many only the first. */
export function quotedNames(names: readonly string[]): string {
  const hidden = names.length - NAMES_MAX;
  const more = hidden > 0 ? ` and ${String(hidden)} more` : '';
  return `${names.slice(0, NAMES_MAX).map((name) => `'${name}'`).join(', ')}${more}`;
}

/** No error: who else has an account on this machine, the operator knows. */
export function looseFiles({ smtp, mirror, places }: GatewayConfig): readonly string[] {
  const secrets = [
    ['gateway.smtp.users', smtp.usersFile], ['gateway.smtp.tls.key', smtp.tls?.keyFile],
    ['gateway.mirror.tls.key', mirror.tls?.keyFile],
  ] as const;
  return secrets.flatMap(([key, file]) => file === undefined || (statSync(file).mode & 0o004) === 0 ? [] : [
    `${places[key] ?? '?'}: ${key}: warning: everybody on this machine may read '${file}': chmod o-r`,
  ]);
}
