/**
 * The release before this one, built from this repository's history, so that its processes can run beside ours.
 *
 *   commit ─► git archive ─► folder of its own ─► tsc without checks ─► path of its entry
 *
 * With the same package-lock.json it runs on our node_modules, else it gets its own. No tests here.
 */
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** To be moved on when a release is made, together with PROTOCOL_VERSION_OLDEST. */
export const RELEASE_BEFORE = { name: '0.1.0', protocol: 1, commit: '2fa7fc38ea0fd435574d7b17895156304f9c3c32' } as const;

const PROJECT = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');
const STEP_MS = 120_000;
const run = promisify(execFile);

export interface OlderRelease {
  /** What node runs. */
  readonly entry: string;
  remove(): void;
}

/** '' when it can be built here, else why not. */
export function whyNoReleaseBefore(): string {
  const found = spawnSync('git', ['cat-file', '-e', `${RELEASE_BEFORE.commit}^{commit}`], { cwd: PROJECT, encoding: 'utf8' });
  if (found.error !== undefined) return `release ${RELEASE_BEFORE.name} can't be built: git: ${found.error.message}`;
  return found.status === 0 ? '' : `release ${RELEASE_BEFORE.name} (commit ${RELEASE_BEFORE.commit.slice(0, 7)}) is not in this clone: get its whole history with git fetch --unshallow`;
}

export async function buildReleaseBefore(): Promise<OlderRelease> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-release-'));
  const remove = (): void => { rmSync(folder, { recursive: true, force: true }); };
  try {
    const archive = join(folder, 'tree.tar');
    await run('git', ['archive', '--output', archive, RELEASE_BEFORE.commit], { cwd: PROJECT, timeout: STEP_MS });
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
