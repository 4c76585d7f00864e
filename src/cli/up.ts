/** `twinpost up`: two stores, a gateway and a sink on this machine, kept alive (cli/up/run-up.ts). */
import type { Argv } from 'yargs';
import type { CliContext } from './context.js';
import { runUp } from './up/run-up.js';

export function upCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'up',
    'try it out: stores, gateway and sink on this machine',
    (args) =>
      args
        .option('config', { alias: 'c', type: 'string', requiresArg: true, describe: 'file with gateway, stores and sink (default: built in, as configs/up.yaml)' })
        .option('state-dir', { type: 'string', requiresArg: true, describe: 'folder for state and logs (default: a temporary one)' })
        .example('$0 up', 'then, elsewhere: twinpost send --count 1000'),
    async (args) => { done(await runUp({ config: args.config, stateDir: args['state-dir'] }, context)); },
  );
}
