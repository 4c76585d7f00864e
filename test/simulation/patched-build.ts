/**
 * A copy of the build with one rule taken out of it by textual patches, and what a test there says: for mutants that
 * seeds do not meet.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Patch {
  /** Built file, from the root of the build. */
  readonly file: string;
  /** Stands there in exactly one place. */
  readonly old: string;
  readonly new: string;
}

export const BUILD = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const TEST_MS_MAX = 300_000;

/** Why the patches do not fit; '' when they stand in the copy. */
export function patch(folder: string, patches: readonly Patch[]): string {
  for (const { file, old, new: put } of patches) {
    const parts = readFileSync(join(folder, file), 'utf8').split(old);
    if (parts.length !== 2) return `its patch fits ${String(parts.length - 1)} places of ${file}, not one`;
    writeFileSync(join(folder, file), parts.join(put));
  }
  return '';
}

/** Whether a test of this file (test/….test.ts) fails without the rule; it passes with it, as the test run shows. */
export function judgeByTest(patches: readonly Patch[], testFile: string): { readonly caught: boolean; readonly text: string } {
  const folder = mkdtempSync(join(tmpdir(), 'mutant-'));
  try {
    for (const part of ['src', 'test']) cpSync(join(BUILD, part), join(folder, part), { recursive: true, filter: (name) => !name.endsWith('.map') });
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
    symlinkSync(packagesFolder(), join(folder, 'node_modules'));
    const misfit = patch(folder, patches);
    if (misfit !== '') return { caught: false, text: misfit };
    const file = join(folder, testFile.replace(/\.ts$/, '.js'));
    const { stdout, status } = spawnSync(process.execPath, ['--test', '--test-reporter=tap', file], { encoding: 'utf8', timeout: TEST_MS_MAX });
    if (status === 0) return { caught: false, text: `${testFile} passes without it` };
    const names = [...stdout.matchAll(/^ *not ok \d+ - (.*)$/gm)].map(([, name]) => name ?? '');
    const [name] = names;
    return name === undefined ? { caught: false, text: `${testFile} does not run: ${stdout.slice(0, 300)}` } : { caught: true, text: `${testFile}, "${name}"` };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function packagesFolder(): string {
  let folder = BUILD;
  while (!existsSync(join(folder, 'node_modules'))) {
    if (folder === dirname(folder)) throw new Error('no folder above the build has node_modules');
    folder = dirname(folder);
  }
  return join(folder, 'node_modules');
}
