/** `twinpost store resync`: one copy of a partition is emptied and filled again from its gateway. */
import type { Argv } from 'yargs';
import type { Order } from '../admin-api/orders.js';
import { NoAnswer } from './admin-client.js';
import type { AdminClient } from './admin-client.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { longExample } from './examples.js';
import { findGroup, reportMissing, withGroupOptions } from './group.js';
import { orderOf } from './operator.js';
import { REASON, neededText } from './options.js';
import { printable } from './tables.js';

export function storeResyncCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'resync <store>',
    'empty one copy of a partition and fill it again; never the last',
    (args) =>
      longExample(withGroupOptions(args)
        .positional('store', {
          type: 'string', demandOption: true, describe: 'the store whose copy is made anew',
        })
        .option('partition', neededText('the partition, as gw-1/3'))
        .option('reason', REASON)
        .option('json', { type: 'boolean', describe: 'one JSON object a line: a gateway that has the copy' }),
        '$0 store resync store-1 --partition gw-1/3 --reason "it differs"',
        'after store verify said DIFFERS'),
    async (args) => {
      const { terminal } = context;
      const json = args.json === true;
      const order = orderOf('store resync', args.reason);
      const group = await findGroup(args, context);
      const answers =
        await group.ask('gateway', (client) => resync(client, args.partition, args.store, order));
      const having = answers.filter(({ answer }) => answer !== NO_SUCH_COPY);
      for (const { id, answer } of having) {
        const done = `the copy of ${args.partition} at ${args.store} is filled again`;
        const { partition, store } = args;
        terminal.print(json ? JSON.stringify({ gateway: id, partition, store, why_not: answer })
          : printable(`${id}: ${answer === '' ? done : answer}`));
      }
      const code = reportMissing(group.missing('gateway'), answers.length, json, terminal);
      if (having.length === 0 && answers.length > 0) {
        throw new CliError(`no gateway that answers has a copy of '${args.partition}' at '${args.store}'; `
          + `twinpost status --all shows them`);
      }
      done(having.some(({ answer }) => answer !== '') ? 1 : code);
    },
  );
}

const NO_SUCH_COPY = 'no such copy';

/** '' when it is done, else why not. */
async function resync(client: AdminClient, partition: string, store: string, order: Order): Promise<string> {
  try {
    await client.resync(partition, { store, ...order });
    return '';
  } catch (error) {
    if (!(error instanceof NoAnswer) || error.code !== 404 && error.code !== 409) throw error;
    return error.code === 404 ? NO_SUCH_COPY : error.why;
  }
}
