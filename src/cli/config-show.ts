/**
 * `twinpost config show FILE`: what a process would run by, every key with its value; with --changed what
 * differs from the defaults alone. Either is a file again, but for secrets that stand in it. Its hashes are
 * those of `status`. Without FILE: which configuration each process of the group runs by.
 */
import type { Argv } from 'yargs';
import type { ConfigurationAnswer } from '../admin-api/pages.js';
import { configurationHash, routesHash } from '../config/changes.js';
import { changedValue, effectiveValue, yamlOf } from '../config/effective.js';
import { loadAny, memoryBytesOf } from './config-file.js';
import type { CliContext } from './context.js';
import { UsageError } from './context.js';
import { findGroup, reportMissing, withGroupOptions } from './group.js';
import type { GroupArguments, Kind } from './group.js';
import { refusedFileLines } from './status-text.js';
import { printable, timeText } from './tables.js';

/** `routes_hash`: of a gateway. */
interface Hashes {
  readonly hash: string;
  readonly routes_hash?: string;
}

export function configShowCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'show [file]',
    'print a file with all defaults, or what of it is none; without FILE which configuration runs where',
    (args) =>
      withGroupOptions(args)
        .positional('file', { type: 'string', describe: 'the YAML file' })
        .option('changed', { type: 'boolean', describe: 'only what differs from the defaults' })
        .option('json', { type: 'boolean', describe: 'one JSON object; without FILE one a line' })
        .example('$0 config show gateway.yaml --changed', 'as postconf -n')
        .example('$0 config show', 'which configuration each process runs by'),
    async (args) => {
      const { file, changed = false, json = false } = args;
      if (file === undefined) {
        if (changed) throw new UsageError('config show --changed needs a FILE');
        done(await showRunning(args, json, context));
        return;
      }
      if (args.from !== undefined) throw new UsageError('config show takes a FILE, or --from ADDRESS');
      showFile(file, changed, json, context);
      done(0);
    },
  );
}

function showFile(file: string, isChanged: boolean, isJson: boolean, context: CliContext): void {
  const { terminal } = context;
  const { value, contents, config } = loadAny(file, context);
  const { gateway, stores } = config;
  const keys = { value, contents };
  const configuration =
    isChanged ? changedValue(value) : effectiveValue(value, config, memoryBytesOf(config));
  const ofGateway = { hash: configurationHash(keys), routes_hash: routesHash(keys) };
  const processes = [
    ...(gateway === undefined ? [] : [{ kind: 'gateway', id: gateway.id, ...ofGateway }]),
    ...stores.map(({ id, configurationHash: hash }) => ({ kind: 'store', id, hash })),
  ];
  if (isJson) terminal.print(JSON.stringify({ file, configuration, processes }));
  else {
    terminal.write(yamlOf(configuration));
    for (const one of processes) terminal.print(`# ${one.kind} ${hashesText(one.id, one)}`);
  }
}

async function showRunning(args: GroupArguments, isJson: boolean, context: CliContext): Promise<number> {
  const { terminal } = context;
  const group = await findGroup(args, context);
  const [gateways, stores] = await Promise.all([
    group.ask('gateway', (client) => client.status()), group.ask('store', (client) => client.storeStatus()),
  ]);
  const tell = (kind: Kind, id: string, configuration: (ConfigurationAnswer & Hashes) | undefined): void => {
    if (isJson) terminal.print(JSON.stringify({ kind, id, ...configuration }));
    else for (const line of runningLines(id, configuration, terminal.isTty)) terminal.print(line);
  };
  for (const { id, answer } of gateways) tell('gateway', id, answer.configuration);
  for (const { id, answer } of stores) tell('store', id, answer.configuration);
  const missing = group.missing('gateway', 'store');
  return reportMissing(missing, gateways.length + stores.length, isJson, terminal);
}

function runningLines(
  id: string, configuration: (ConfigurationAnswer & Hashes) | undefined, isTty: boolean,
): readonly string[] {
  if (configuration === undefined) return [printable(`${id}: it does not tell`)];
  const { since, read } = configuration;
  return [
    `${hashesText(id, configuration)}, since ${timeText(since)}, read ${timeText(read)}`,
    ...refusedFileLines(configuration, '', Date.now(), isTty),
  ];
}

function hashesText(id: string, { hash, routes_hash: routes }: Hashes): string {
  return printable(`${id}: configuration ${hash}${routes === undefined ? '' : `, routes ${routes}`}`);
}
