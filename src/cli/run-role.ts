/** Runs one role until it is told to stop: shared by the verbs gateway, store and sink. */
import type { CliContext, RunningRole } from './context.js';
import { CliError, startErrorText } from './context.js';

export async function runRole(
  name: string, start: () => Promise<RunningRole>, context: CliContext,
): Promise<number> {
  let role: RunningRole;
  try {
    role = await start();
  } catch (error) {
    throw new CliError(startErrorText(name, error));
  }
  // Not stdout: that belongs to the log lines.
  context.terminal.error(role.summary);
  await context.untilStopped();
  await role.stop();
  return 0;
}
