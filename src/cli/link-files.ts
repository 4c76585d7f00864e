/**
 * What `config check` says of certificates beyond reception-files.ts: whether a store can use those of its
 * links, and any role those of the register and its admin port, and its tokens; whether they are for the ids
 * that show them; and which of all are to be renewed soon. That is no error: mail goes on until then.
 */
import { isMet } from '../config/strangers.js';
import type { GatewayConfig, Places, StoreConfig } from '../config/types.js';
import { workerIds } from '../config/workers.js';
import type { AdminFileNames } from '../platform/node/admin-files.js';
import { readTokens } from '../platform/node/admin-tokens.js';
import { certificateFiles, endingText } from '../platform/node/certificate-ends.js';
import type { TlsSections } from '../platform/node/certificate-ends.js';
import { readPem } from '../platform/node/certificates.js';
import { readServerTls } from '../platform/node/server-tls.js';
import { namesInPem, readTlsFiles } from '../platform/node/tls-transport.js';
import { FileFindings } from './file-findings.js';

/** Of a file of PEM: an own certificate, with those above it; each of several CAs. */
const OWN = /[^]+/;
const EACH = /-----BEGIN [^-]*CERTIFICATE-----[^]+?-----END [^-]*CERTIFICATE-----/g;

/** A line for each file of the register, of admin ports and of stores that can't be used. */
export function unusableLinkFiles(
  gateway: GatewayConfig | undefined, stores: readonly StoreConfig[],
): string[] {
  const lines = stores.flatMap(({ section, places, id, tls, admin }) => {
    const found = new FileFindings(places);
    if (tls !== undefined) {
      const { certFile, keyFile, caFile } = tls;
      found.judgePair(`${section}.tls`, certFile, keyFile, caFile, 'ca', () => readTlsFiles(tls));
      if (found.lines.length === 0) judgeNames(`${section}.tls.cert`, certFile, [id], found);
    }
    judgeAdmin(`${section}.admin`, admin, found);
    return found.lines;
  });
  return [...registerFiles(gateway ?? stores[0]), ...linksOf(gateway), ...adminOf(gateway), ...lines];
}

function adminOf(gateway: GatewayConfig | undefined): readonly string[] {
  if (gateway === undefined) return [];
  const found = new FileFindings(gateway.places);
  judgeAdmin('gateway.admin', gateway.admin, found);
  return found.lines;
}

function judgeAdmin(at: string, { tokensFile, tls }: AdminFileNames, found: FileFindings): void {
  if (tokensFile !== undefined) {
    const wanted = 'a file of tokens, a line each: NAME ROLE TOKEN';
    found.judge(`${at}.tokens_file`, wanted, () => readTokens(tokensFile));
  }
  if (tls === undefined) return;
  const files = { ...tls, clientCaFile: undefined };
  found.judgePair(`${at}.tls`, tls.certFile, tls.keyFile, tls.caFile, 'ca', () => readServerTls(files));
}

/** etcd's, of a file's one register. */
function registerFiles(role: GatewayConfig | StoreConfig | undefined): readonly string[] {
  if (role?.register?.kind !== 'etcd') return [];
  const { caFile, certFile, keyFile } = role.register;
  const found = new FileFindings(role.places);
  if (certFile !== undefined && keyFile !== undefined) {
    found.judgePair('register', certFile, keyFile, caFile, 'ca', () => {
      readTlsFiles({ caFile: caFile ?? certFile, certFile, keyFile });
    });
  } else if (caFile !== undefined) {
    found.judge('register.ca', 'a certificate in PEM', () => readPem('ca', caFile));
  }
  return found.lines;
}

/** Stores let in who shows a certificate with the id that it says it has (docs/PROTOCOL.md). */
function linksOf(gateway: GatewayConfig | undefined): readonly string[] {
  const certFile = gateway?.mirror.tls?.certFile;
  if (gateway === undefined || certFile === undefined) return [];
  const found = new FileFindings(gateway.places);
  judgeNames('gateway.mirror.tls.cert', certFile, workerIds(gateway.id, gateway.workers), found);
  return found.lines;
}

/** What can't be read has been told of. */
function judgeNames(key: string, certFile: string, ids: readonly string[], found: FileFindings): void {
  let names: readonly string[];
  try {
    names = namesInPem(readPem('cert', certFile));
  } catch {
    return;
  }
  const missing = ids.filter((id) => !names.includes(id));
  if (missing.length === 0) return;
  const wanted = `a certificate for ${missing.map((id) => `'${id}'`).join(', ')}, by a DNS name`;
  found.add(key, wanted, names.length === 0 ? 'one without names' : `one for ${names.join(', ')}`);
}

/** The name that strangers know it by stands in its certificate for mail. */
export function gatewayTls({ hostName, smtp, mirror, admin, register }: GatewayConfig): TlsSections {
  const ofSmtp = smtp.tls && { ...smtp.tls, hostName: smtp.listen.some(isMet) ? hostName : undefined };
  return { smtp: ofSmtp, links: mirror.tls, admin: admin.tls, ...registerTls(register) };
}

export function storeTls({ tls, admin, register }: StoreConfig): TlsSections {
  return { links: tls, admin: admin.tls, ...registerTls(register) };
}

/** One that is a file has no certificate. */
function registerTls(register: StoreConfig['register']): TlsSections {
  return register?.kind === 'etcd' ? { register } : {};
}

/**
 * All of them can be read, as was found before. Of next hops: their CAs, for `ca_file` of routes. Each file
 * is told of once, at the first key that names it.
 */
export function endingCertificates(
  gateway: GatewayConfig | undefined, stores: readonly StoreConfig[], nowMs: number,
): string[] {
  const found = [
    ...(gateway === undefined ? [] : ownFiles(gatewayTls(gateway), 'gateway', gateway.places)),
    ...stores.flatMap((store) => ownFiles(storeTls(store), store.section, store.places)),
    ...(gateway?.hopFiles ?? []).flatMap(({ at, caFile }) =>
      namedFile(caFile, `${at}.ca_file`, EACH, gateway?.places ?? {})),
  ];
  const told = new Set<string>();
  return found.flatMap(({ file, place, meant }) => {
    if (told.has(file)) return [];
    told.add(file);
    const whys = (readPem('cert', file).match(meant) ?? []).map((pem) => endingText(pem, nowMs));
    // Of several CAs one is enough.
    const [why = ''] = whys.includes('') ? [] : whys;
    return why === '' ? [] : [`${place}: warning: '${file}': ${why}`];
  });
}

interface NamedFile {
  readonly file: string;
  /** FILE:LINE: key. */
  readonly place: string;
  readonly meant: RegExp;
}

function ownFiles(tls: TlsSections, section: string, places: Places): readonly NamedFile[] {
  const isStore = section !== 'gateway';
  const keys: Readonly<Record<string, string>> = {
    smtp: 'gateway.smtp.tls.cert', links: isStore ? `${section}.tls.cert` : 'gateway.mirror.tls.cert',
    admin: `${section}.admin.tls.cert`, register: 'register.cert',
  };
  return certificateFiles(tls).flatMap(({ use, certFile }) =>
    namedFile(certFile, keys[use] ?? '', OWN, places));
}

function namedFile(
  file: string | undefined, key: string, meant: RegExp, places: Places,
): readonly NamedFile[] {
  return file === undefined ? [] : [{ file, place: `${places[key] ?? '?'}: ${key}`, meant }];
}
