/**
 * Tables of recipients for tests: built from lines as operators write them, by the real builder, and opened from their file;
 * and a server that is asked by HTTP and answers what such a table says.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { buildTable } from '../../src/cli/table/build.js';
import { RecipientsByHttp } from '../../src/gateway/inbound/recipients-by-http.js';
import { TableFile } from '../../src/gateway/inbound/recipients-file.js';
import { domainKey } from '../../src/gateway/inbound/recipients/listing.js';
import { LookupMeter } from '../../src/observability/reception-metrics.js';

/** The table stays readable until it is closed: its file is gone at once. */
export function tableOf(lines: readonly string[]): TableFile {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-table-'));
  try {
    writeFileSync(join(folder, 'text'), lines.join('\n'));
    buildTable(join(folder, 'text'), join(folder, 'table'), () => undefined);
    return new TableFile(join(folder, 'table'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Whoever asks it by HTTP. A table that is closed answers nobody. */
export async function askedOf(file: TableFile): Promise<{ readonly table: RecipientsByHttp; close(): void }> {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (bytes: Buffer) => { body += bytes.toString(); });
    request.on('end', () => {
      const { address } = JSON.parse(body) as { readonly address: string };
      try {
        const listing = file.find(address) ?? file.find(domainKey(address.slice(address.lastIndexOf('@') + 1)));
        const said = listing === undefined ? undefined : { ...(listing.route === '' ? {} : { route: listing.route }), ...(listing.to.length === 0 ? {} : { to: listing.to }) };
        response.writeHead(said === undefined ? 404 : 200).end(JSON.stringify(said));
      } catch {
        response.writeHead(500).end();
      }
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const quiet = (): void => undefined;
  const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/`;
  const table = new RecipientsByHttp(
    { url, timeoutMs: 5000, token: '', keptMs: 60_000, missingKeptMs: 60_000 },
    { clock: { nowMs: () => performance.now(), wallMs: () => 0 }, log: { debug: quiet, info: quiet, warn: quiet, error: quiet }, meter: new LookupMeter() },
  );
  return {
    table,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
