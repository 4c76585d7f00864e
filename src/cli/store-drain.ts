/** `twinpost store drain`: every gateway of the group moves its queues away from a store, which may stop then. */
import type { Argv } from 'yargs';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { findGroup, reportMissing, withGroupOptions } from './group.js';

const POLL_MS = 500;

export function storeDrainCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'drain <store>',
    'move all queues away from a store',
    (args) =>
      withGroupOptions(args)
        .positional('store', { type: 'string', demandOption: true, describe: 'the store' })
        .option('undo', { type: 'boolean', describe: 'use it again' })
        .option('wait', { type: 'boolean', describe: 'until no queue is left there' })
        .example('$0 store drain store-1 --wait', 'before store-1 is taken out for good'),
    async (args) => {
      const { terminal } = context;
      const undo = args.undo === true;
      const group = await findGroup(args, context);
      let answers = await group.ask('gateway', (client) => client.drain(args.store, undo ? 'undo' : 'start'));
      if (answers.length === 0) throw new CliError('no gateway answers: nothing was moved');
      let left = answers.reduce((sum, { answer }) => sum + answer.mirrors, 0);
      while (!undo && args.wait === true && left > 0) {
        terminal.print(`${String(left)} mirrors still at ${args.store}`);
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
        answers = await group.ask('gateway', (client) => client.drain(args.store, 'look'));
        left = answers.reduce((sum, { answer }) => sum + answer.mirrors, 0);
      }
      for (const { id, answer } of answers) terminal.print(`${id}: ${answer.draining ? (answer.mirrors === 0 ? `nothing is left at ${args.store}` : `${String(answer.mirrors)} mirrors move away from ${args.store}`) : `${args.store} is used`}`);
      done(reportMissing(group.missing('gateway'), answers.length, false, terminal));
    },
  );
}
