/**
 * The log file of a role under rotation: who renames it, as logrotate does, finds that the process goes on in
 * a new file of the old name, within a second, or at once by SIGUSR2. A file that was truncated in its place
 * (copytruncate) needs nothing: lines are appended.
 */
import type { LogDestination } from '../platform/node/log-destination.js';
import type { EventLog } from '../platform/ports.js';

const LOOK_MS = 1_000;

/** For the life of the process. */
export function followLogFile(file: string, destination: LogDestination, log: EventLog): void {
  let isFailing = false;
  let isBusy = false;
  const look = async (): Promise<void> => {
    if (isBusy) return;
    isBusy = true;
    try {
      if (await destination.isInPlace()) return;
      await destination.reopen();
      isFailing = false;
      log.info('log', 'the log file was opened anew', { file });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const text = 'the log file can not be opened anew; the old one is written on';
      if (!isFailing) log.error('log', text, { file, why });
      isFailing = true;
    } finally {
      isBusy = false;
    }
  };
  setInterval(() => { void look(); }, LOOK_MS).unref();
  process.on('SIGUSR2', () => { void look(); });
}
