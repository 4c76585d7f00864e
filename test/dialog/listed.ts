/** Tables of recipients for tests: built from lines as operators write them, by the real builder, and opened from their file. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { buildTable } from '../../src/cli/table/build.js';
import { TableFile } from '../../src/gateway/inbound/recipients-file.js';

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
