/** `twinpost queue orders`: orders for many messages, at all gateways; --cancel takes one back. */
import type { Argv } from 'yargs';
import type { LeftOrderAnswer, QueueOrderAnswer } from '../admin-api/queue-orders.js';
import { selectorWords } from '../admin-api/selector-words.js';
import { formatCount } from '../base/units.js';
import { NoAnswer } from './admin-client.js';
import type { CliContext } from './context.js';
import { findGroup, reportMissing, withGroupOptions } from './group.js';
import { orderOf } from './operator.js';
import { text, textOr } from './options.js';
import { printable, listTimeText } from './tables.js';

export function queueOrdersCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'orders',
    'orders under way, and those of the last minutes',
    (args) =>
      withGroupOptions(args)
        .option('cancel', text('an order to take back: what it has not ended goes on'))
        .option('reason', textOr('cancelled', 'with --cancel: why, for the log'))
        .option('json', { type: 'boolean', describe: 'one JSON object a line: an order at a gateway' })
        .example('$0 queue orders', 'what is under way'),
    async (args) => {
      const { terminal } = context;
      const json = args.json === true;
      const group = await findGroup(args, context);
      const { cancel } = args;
      let cancelled = 0;
      let isOver = false;
      if (cancel !== undefined) {
        const order = orderOf('queue orders', args.reason);
        for (const member of group.members.filter(({ kind }) => kind === 'gateway')) {
          const { client } = member;
          // It may be under way here, and left in the register.
          for (const take of [client.cancelOrder, client.withdrawOrder]) {
            try {
              await take.call(client, cancel, order);
              cancelled += 1;
            } catch (error) {
              // One that was started since, or away, does not know it.
              if (!(error instanceof NoAnswer)) throw error;
              if (error.code === 409) isOver = true;
              else if (error.code !== 404) group.lose(member, error);
            }
          }
        }
      }
      const answers = await group.ask('gateway', (client) => client.queueOrders());
      if (cancel !== undefined && cancelled === 0) {
        const whose = group.missing('gateway').length === 0 ? '' : ' at those who answered';
        const over = isOver ? overText(answers.flatMap(({ answer }) => answer.orders), cancel) : 'is known';
        terminal.error(printable(`twinpost: ${isOver ? 'order' : 'no order'} ${cancel} ${over}${whose}`));
      }
      for (const { id, answer } of answers) {
        for (const order of answer.orders)
          terminal.print(json ? JSON.stringify(order) : printable(lineOf(id, order)));
      }
      const left = leftOf(answers.map(({ answer }) => answer.left));
      for (const one of left) terminal.print(json ? JSON.stringify(one) : printable(leftLine(one)));
      const isNone = left.length === 0 && answers.every(({ answer: { orders } }) => orders.length === 0);
      if (!json && isNone) terminal.print('no orders');
      const code = reportMissing(group.missing('gateway'), answers.length, json, terminal);
      if (cancel === undefined) return done(code);
      // Code 3: somebody who did not hear of it may go on with it.
      done(code === 0 && cancelled === 0 ? 1 : code);
    },
  );
}

/** It can't be taken back any more. */
function overText(all: readonly QueueOrderAnswer[], id: string): string {
  const parts = all.filter(({ order }) => order === id);
  const sum = (of: (part: QueueOrderAnswer) => number): string =>
    formatCount(parts.reduce((total, part) => total + of(part), 0));
  const phase = parts.every((part) => part.phase === 'done') ? 'done' : 'cancelled';
  return `is over: ${phase}, ${sum(({ done }) => done)} of ${sum(({ matched }) => matched)}`;
}

function lineOf(gateway: string, answer: QueueOrderAnswer): string {
  const { order, verb, phase, looked_share: looked, dry_run: isDry, matched, done } = answer;
  const { selector, who, reason, given } = answer;
  const meant = selector === undefined ? '' : ` ${selectorWords(selector, answer)}`;
  const how = isDry ? ' (dry run)' : '';
  // Whoever gave it took it back because of that.
  const isNone = phase === 'cancelled' && matched === 0 && looked >= 1;
  const state = isNone ? 'no message was meant' : phase;
  const what = `${verb}${meant}${how}: ${state}, ${formatCount(done)} of ${formatCount(matched)}`;
  return `${order} at ${gateway}, ${listTimeText(given)}  ${what}  ${who}: ${reason}`;
}

/** Each once, with what all gateways did. A holder that answers is one that it does not wait for. */
export function leftOf(told: readonly (readonly LeftOrderAnswer[])[]): readonly LeftOrderAnswer[] {
  const left = new Map<string, LeftOrderAnswer>();
  for (const one of told.flat()) {
    const known = left.get(one.order);
    const holders = one.holders.filter((id) => known?.holders.includes(id) !== false);
    // Who has heard that it is over tells of none.
    const partitions = one.partitions.length > 0 ? one.partitions : known?.partitions ?? [];
    left.set(one.order, { ...one, partitions, holders, done: one.done + (known?.done ?? 0) });
  }
  return [...left.values()];
}

function leftLine(left: LeftOrderAnswer): string {
  const { order, verb, selector, partitions, holders, done, who, reason, given } = left;
  const whom = holders.length === 0 ? `${String(partitions.length)} partitions` : holders.join(', ');
  const isOver = partitions.length === 0;
  const state = isOver ? 'over' : `waiting for ${whom}`;
  const what = `${verb} ${selectorWords(selector, left)}: ${state}, ${formatCount(done)} done`;
  const where = `${isOver ? 'was ' : ''}in the register`;
  return `${order} ${where}, ${listTimeText(given)}  ${what}  ${who}: ${reason}`;
}
