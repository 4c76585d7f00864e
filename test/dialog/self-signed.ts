/** Certificates for tests of TLS, made by openssl in a folder that goes with the process; undefined where there is none. */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServerTlsFiles } from '../../src/platform/node/server-tls.js';

const KEYS = {
  ec: ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
  rsa: ['-newkey', 'rsa:2048', '-nodes'],
  weak: ['-newkey', 'rsa:1024', '-nodes'],
};

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'inbound-tls-'));
  process.once('exit', () => { rmSync(folder, { recursive: true, force: true }); });
  return folder;
}

export function selfSigned(name = 'mx.test', days = 60, kind: keyof typeof KEYS = 'ec'): ServerTlsFiles | undefined {
  const folder = newFolder();
  const [keyFile, certFile] = [join(folder, 'key'), join(folder, 'cert')];
  try {
    // It may be verified, too, by who connects to loopback.
    const names = `subjectAltName=DNS:${name},IP:127.0.0.1`;
    const own = ['-days', String(days), '-subj', `/CN=${name}`, '-addext', names, '-keyout', keyFile, '-out', certFile];
    execFileSync('openssl', ['req', '-x509', ...KEYS[kind], ...own], { stdio: 'ignore' });
  } catch {
    return undefined;
  }
  return { keyFile, certFile, clientCaFile: undefined };
}
