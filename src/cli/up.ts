/** `twinpost up`: two stores, one gateway or several, and a sink on this machine (cli/up/run-up.ts). */
import type { Argv } from 'yargs';
import { UP_GATEWAYS_MAX } from '../config/up-gateways.js';
import type { CliContext } from './context.js';
import { UsageError } from './context.js';
import { numberOr, text } from './options.js';
import { runUp } from './up/run-up.js';

export function upCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'up',
    'try it out: stores, gateway and sink on this machine',
    (args) =>
      args
        .option('config', {
          alias: 'c', ...text('file with gateway, stores and sink (default: built in, as configs/up.yaml)'),
        })
        .option('state-dir', text('folder for state and logs (default: a temporary one)'))
        .option('gateways', numberOr(1, 'how many gateways: kill one, and another delivers its mail'))
        .example('$0 up', 'then, elsewhere: twinpost send --count 1000')
        .example('$0 up --gateways 2', 'to see a rescue: kill -9 one of the two'),
    async (args) => {
      const { config, gateways } = args;
      if (!Number.isInteger(gateways) || gateways < 1 || gateways > UP_GATEWAYS_MAX) {
        throw new UsageError(`--gateways: expected a whole number from 1 to ${String(UP_GATEWAYS_MAX)}`);
      }
      done(await runUp({ config, stateDir: args['state-dir'], gateways }, context));
    },
  );
}
