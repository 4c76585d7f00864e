/** `twinpost config check FILE`: the effective configuration, or all that is wrong with the file. */
import type { Argv } from 'yargs';
import { effectiveYaml } from '../config/effective.js';
import { loadConfigFile } from '../config/load.js';
import type { GatewayConfig } from '../config/types.js';
import { readServerTls } from '../platform/node/server-tls.js';
import { defaultMemoryBytes } from '../platform/node/memory.js';
import { SECRET_VARIABLE } from './config-file.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';

/** What the start would refuse, and only a look into the files shows. */
function checkFiles(gateway: GatewayConfig | undefined): void {
  if (gateway?.smtp.tls === undefined) return;
  try {
    readServerTls(gateway.smtp.tls);
  } catch (error) {
    throw new CliError(`gateway: smtp.tls: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export function configCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command('config', 'check a configuration file', (config) =>
    config
      .command(
        'check <file>',
        'print the configuration in force, secrets hidden; exit code 1 and one line an error',
        (args) =>
          args
            .positional('file', { type: 'string', demandOption: true, describe: 'the YAML file' })
            .option('quiet', { alias: 'q', type: 'boolean', describe: 'print errors only' })
            .example('$0 config check configs/up.yaml', 'check this file and show every default'),
        (args) => {
          const result =
            loadConfigFile(args.file, { role: 'check', secret: context.environment[SECRET_VARIABLE] });
          if (!result.ok) throw new CliError(result.errors.join('\n'));
          const { gateway, stores } = result.config;
          checkFiles(gateway);
          const memoryBytes = defaultMemoryBytes((gateway ?? stores[0])?.oneHost === true);
          if (args.quiet !== true) {
            context.terminal.write(effectiveYaml(result.value, result.config, memoryBytes));
          }
          done(0);
        },
      )
      .example('$0 config check configs/up.yaml', 'check this file and show every default')
      .demandCommand(1, 'config what? twinpost config check FILE'),
  );
}
