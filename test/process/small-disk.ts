/** A disk that is soon full: a tmpfs of its own, where the machine lets a test mount one. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class SmallDisk {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Undefined where nobody may mount. */
  static mount(kib: number): SmallDisk | undefined {
    const folder = mkdtempSync(join(tmpdir(), 'twinpost-small-disk-'));
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${kib}k`, 'tmpfs', folder], { stdio: 'ignore' });
      return new SmallDisk(folder);
    } catch {
      rmSync(folder, { recursive: true });
      return undefined;
    }
  }

  /** Holds so much more, or less. */
  resize(kib: number): void {
    execFileSync('mount', ['-o', `remount,size=${kib}k`, this.folder], { stdio: 'ignore' });
  }

  unmount(): void {
    execFileSync('umount', ['-l', this.folder], { stdio: 'ignore' });
    rmSync(this.folder, { recursive: true });
  }
}
