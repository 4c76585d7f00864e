/** `twinpost gateway`: accepts, mirrors and delivers mail until told to stop. Its verb: gateway-retire.ts. */
import type { Argv } from 'yargs';
import { gatewayFile } from './config-file.js';
import type { CliContext } from './context.js';
import { requireLogFile } from './folders.js';
import { gatewayRetireCommand } from './gateway-retire.js';
import { ownText } from './options.js';
import { runRole } from './run-role.js';

export function gatewayCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'gateway',
    'run a gateway: SMTP in, queues, mirrors, SMTP out',
    (args) => {
      gatewayRetireCommand(args, context, done);
      return args
        .option('config', { alias: 'c', ...ownText('configuration file with a section gateway') })
        .option('state-dir', ownText('folder of what it knows of itself, instead of gateway.state_dir'))
        .option('log-file', ownText('instead of log.file'))
        .example('$0 gateway --config configs/gateway.yaml', 'run the gateway of this file');
    },
    async (args) => {
      const file = gatewayFile(args.config, args['state-dir'], context, 'gateway', (gateway) =>
        ({ ...gateway, log: { ...gateway.log, file: args['log-file'] ?? gateway.log.file } }));
      requireLogFile(file.config, args['log-file']);
      done(await runRole('gateway', () => context.roles.gateway(file), context));
    },
  );
}
