/**
 * The release before this one, built from this repository's history, so that its processes can run beside ours.
 *
 *   commit ─► git archive ─► folder of its own ─► tsc without checks ─► path of its entry
 *
 * With the same package-lock.json it runs on our node_modules, else it gets its own. No tests here.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { PROJECT, readOutsideSets } from '../../outside-sets.js';

/** To be moved on when a release is made, together with the commit in test/outside-sets.json. */
export const RELEASE_BEFORE = { name: '0.1.0', protocol: 1 } as const;

const STEP_MS = 120_000;
const run = promisify(execFile);

export interface OlderRelease {
  /** What node runs. */
  readonly entry: string;
  remove(): void;
}

export async function buildReleaseBefore(): Promise<OlderRelease> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-release-'));
  const remove = (): void => { rmSync(folder, { recursive: true, force: true }); };
  try {
    const { commit } = readOutsideSets(PROJECT).find(({ set }) => set === 'release-before') ?? {};
    assert.ok(commit !== undefined, 'the table of outside sets names the commit of the release before');
    const archive = join(folder, 'tree.tar');
    await run('git', ['archive', '--output', archive, commit], { cwd: PROJECT, timeout: STEP_MS });
    await run('tar', ['-xf', archive, '-C', folder], { timeout: STEP_MS });
    const isSame = readFileSync(join(folder, 'package-lock.json'), 'utf8') === readFileSync(join(PROJECT, 'package-lock.json'), 'utf8');
    if (isSame) symlinkSync(join(PROJECT, 'node_modules'), join(folder, 'node_modules'));
    else await run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, timeout: STEP_MS });
    // It was checked when it was made.
    writeFileSync(join(folder, 'tsconfig.src.json'), JSON.stringify({ extends: './tsconfig.json', include: ['src/**/*.ts'], compilerOptions: { noCheck: true, incremental: false } }));
    await run(process.execPath, [join(folder, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', 'tsconfig.src.json'], { cwd: folder, timeout: STEP_MS });
  } catch (error) {
    remove();
    throw error;
  }
  return { entry: join(folder, 'dist', 'src', 'bin', 'twinpost.js'), remove };
}
