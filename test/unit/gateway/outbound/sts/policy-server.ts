/** HTTPS servers of domains that have policies, on one port of loopback: each shows a certificate of its own and answers as a test says. */
import { readFileSync } from 'node:fs';
import https from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import tls from 'node:tls';
import type { CertificateFiles } from '../../../../process/tls-hop.js';

export interface PolicySaid {
  readonly certificate: CertificateFiles;
  readonly status?: number;
  readonly type?: string;
  readonly text?: string;
  /** Instead of all that. */
  readonly answer?: (request: IncomingMessage, response: ServerResponse) => void;
}

export function policyText(mode: string, mx: readonly string[], maxAgeS = 86_400): string {
  return ['version: STSv1', `mode: ${mode}`, ...mx.map((name) => `mx: ${name}`), `max_age: ${String(maxAgeS)}`, ''].join('\r\n');
}

export class PolicyServer {
  /** By host. */
  readonly said = new Map<string, PolicySaid>();
  /** "GET host path", in the order in which they came; what came with a POST behind it. */
  readonly asked: string[] = [];
  readonly bodies: { readonly type: string; readonly bytes: Buffer }[] = [];
  readonly #server: https.Server;

  constructor(options: tls.TlsOptions = {}) {
    const contextOf = (name: string): tls.SecureContext | undefined => {
      const own = this.said.get(name)?.certificate;
      return own === undefined ? undefined : tls.createSecureContext({ cert: readFileSync(own.certFile), key: readFileSync(own.keyFile) });
    };
    this.#server = https.createServer({ ...options, SNICallback: (name, done) => { done(null, contextOf(name)); } }, (request, response) => {
      const host = request.headers.host ?? '';
      this.asked.push(`${request.method ?? ''} ${host} ${request.url ?? ''}`);
      const said = this.said.get(host);
      if (said?.answer !== undefined) return said.answer(request, response);
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => { pieces.push(piece); });
      request.on('end', () => {
        if (pieces.length > 0) this.bodies.push({ type: request.headers['content-type'] ?? '', bytes: Buffer.concat(pieces) });
        response.writeHead(said?.status ?? 200, { 'content-type': said?.type ?? 'text/plain; charset=utf-8', 'location': 'https://elsewhere.example/' });
        response.end(said?.text ?? '');
      });
    });
    this.#server.on('tlsClientError', () => undefined);
  }

  async listen(host = '127.0.0.1', port = 0): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, resolve);
    });
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
