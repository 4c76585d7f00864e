/** How a process that must end says so. */
import fs from 'node:fs';

/** Another process has its id, or its queues: not a crash, but not to be taken for success. */
export const FENCED_EXIT_CODE = 3;

/**
 * The last line of a process, where its operator looks first: the log may be a file. At once, as nothing runs
 * afterwards.
 */
export function tellTerminal(line: string): void {
  try {
    fs.writeSync(process.stderr.fd, `${line}\n`);
  } catch {
    // Nobody reads there; the log has it.
  }
}
