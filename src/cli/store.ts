/** `twinpost store`: holds mirrored partitions in memory until told to stop. */
import type { Argv } from 'yargs';
import type { Config, StoreConfig } from '../config/types.js';
import { storeFile } from './config-file.js';
import type { CliContext } from './context.js';
import { CliError, UsageError } from './context.js';
import { requireLogFile, requireStateDir } from './folders.js';
import { ownText } from './options.js';
import { runRole } from './run-role.js';
import { storeDrainCommand } from './store-drain.js';
import { storeExportCommand } from './store-export.js';
import { storeResyncCommand } from './store-resync.js';
import { storeStatusCommand } from './store-status.js';
import { storeVerifyCommand } from './store-verify.js';

export function storeCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'store',
    'run a store: copies of partitions, in memory',
    (args) => {
      storeStatusCommand(args, context, done);
      storeVerifyCommand(args, context, done);
      storeDrainCommand(args, context, done);
      storeResyncCommand(args, context, done);
      storeExportCommand(args, context, done);
      return args
        .option('config', { alias: 'c', ...ownText('configuration file with a section store') })
        .option('id', ownText('which one, when the file describes several'))
        .option('state-dir', ownText('folder for what it still holds when it stops, instead of state_dir'))
        .option('log-file', ownText('instead of log.file'))
        .example('$0 store --config configs/store.yaml', 'run the store of this file');
    },
    async (args) => {
      const { 'state-dir': folder, 'log-file': logFile } = args;
      const file = storeFile(args.config, context, (config) => {
        const store = storeOf(config, args.id);
        const log = { ...store.log, file: logFile ?? store.log.file };
        return { ...store, stateDir: folder ?? store.stateDir, log };
      });
      requireStateDir(file.config, folder);
      requireLogFile(file.config, logFile);
      done(await runRole('store', () => context.roles.store(file), context));
    },
  );
}

function storeOf({ stores, file }: Config, id: string | undefined): StoreConfig {
  const store = id === undefined ? stores[0] : stores.find((candidate) => candidate.id === id);
  if (store === undefined) {
    const known = stores.map((candidate) => candidate.id).join(', ');
    throw new CliError(stores.length === 0
      ? `${file}:1: store: expected this section, found nothing`
      : `no store '${id ?? ''}' in ${file}; there are: ${known}`);
  }
  if (id === undefined && stores.length > 1) {
    throw new UsageError(`${file} describes ${String(stores.length)} stores: which one? --id `
      + `${stores.map((candidate) => candidate.id).join(' or --id ')}`);
  }
  return store;
}
