/** A file of tokens for an admin port, that goes with the process. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const TOKEN = 'a-token-of-this-test';

/** `lines`: default one of ann, who may do all, with TOKEN. */
export function tokensFile(...lines: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-tokens-'));
  process.once('exit', () => { rmSync(folder, { recursive: true, force: true }); });
  const file = join(folder, 'tokens');
  writeFileSync(file, (lines.length === 0 ? [`ann content,operate ${TOKEN}`] : lines).map((line) => `${line}\n`).join(''), { mode: 0o600 });
  return file;
}
