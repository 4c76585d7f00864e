/** Asks an admin port for pages of entries (protocol/entry-page.ts), one after another, into a folder. */
import type { Packer } from '../../platform/ports.js';
import type { FoundEntries } from '../admin-client.js';
import { CliError } from '../context.js';
import { exportRows } from './entries.js';
import type { ExportSource } from './exported-message.js';
import type { ExportFolder } from './folder.js';

/** The page behind `next`, '' being the first; undefined when what is exported has gone. */
export type EntrySource = (next: string) => Promise<FoundEntries | undefined>;

/** Answers after the last page. What has gone meanwhile ends quietly. */
export async function exportPages(
  packer: Packer, ask: EntrySource, source: ExportSource, folder: ExportFolder, onPage: () => void,
): Promise<void> {
  for (let next: string | undefined = ''; next !== undefined;) {
    const found: FoundEntries | undefined = await ask(next);
    if (found === undefined) return;
    exportRows(packer, folder, source, found.page.rows, found.page.payload, () => undefined);
    onPage();
    if (found.next === next) {
      throw new CliError(`${source.name} has a page that leads to itself: what answers is no Twinpost`);
    }
    next = found.next;
  }
}
