/** `twinpost version`. */
import type { Argv } from 'yargs';
import { PROTOCOL_VERSION } from '../protocol/versions.js';
import type { CliContext } from './context.js';

export function versionCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'version',
    'print the version',
    (args) =>
      args.example('$0 version', `twinpost 0.2.0, protocol ${String(PROTOCOL_VERSION)}, node v20.20.2`),
    () => {
      context.terminal.print(
        `twinpost ${context.version}, protocol ${String(PROTOCOL_VERSION)}, node ${process.version}`,
      );
      done(0);
    },
  );
}
