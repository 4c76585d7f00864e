/** `twinpost queue orders`: orders for many messages, at all gateways; --cancel takes one back. */
import type { Argv } from 'yargs';
import type { Order } from '../admin-api/orders.js';
import type { LeftOrderAnswer, QueueOrderAnswer } from '../admin-api/queue-orders.js';
import { selectorWords } from '../admin-api/selector-words.js';
import { formatCount } from '../base/units.js';
import { NoAnswer } from './admin-client.js';
import type { CliContext } from './context.js';
import type { Group } from './group.js';
import { NOT_ALL_KNOW, findGroup, reportMissing, withGroupOptions } from './group.js';
import { orderOf } from './operator.js';
import { text, textOr } from './options.js';
import { listTimeText, printable, timeText } from './tables.js';

const NOT_THERE = 404;
const IS_OVER = 409;
const REGISTER_AWAY = 503;

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
      const taken = cancel === undefined ? undefined
        : await takeBack(group, cancel, orderOf('queue orders', args.reason));
      const answers = await group.ask('gateway', (client) => client.queueOrders());
      if (taken !== undefined) {
        const orders = answers.flatMap(({ answer }) => answer.orders);
        const said = takenText(taken, orders, group.missing('gateway').length === 0);
        if (said !== '') terminal.error(printable(`twinpost: ${said}`));
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
      if (taken === undefined) return done(code);
      if (json && taken.whyUntold !== '')
        terminal.print(JSON.stringify({ partial: true, left: null, error: taken.whyUntold }));
      // Code 3: somebody who did not hear of it may go on with it.
      const isTaken = taken.gateways.length > 0 || taken.isWithdrawn;
      if (taken.whyUntold !== '') done(NOT_ALL_KNOW);
      else done(code === 0 && !isTaken ? 1 : code);
    },
  );
}

/** What came of a cancel: it may be under way at gateways, and left in the register. */
interface Taken {
  readonly id: string;
  /** Gateways that have cancelled it. */
  readonly gateways: readonly string[];
  /** One had ended it before. */
  readonly isOver: boolean;
  readonly isWithdrawn: boolean;
  /** Why no gateway can say whether it is left in the register; '' when one does. */
  readonly whyUntold: string;
}

async function takeBack(group: Group, id: string, order: Order): Promise<Taken> {
  const gateways: string[] = [];
  let [isOver, isWithdrawn, isTold, whyAway] = [false, false, false, ''];
  for (const member of group.answering('gateway')) {
    const { client } = member;
    const here = await refusalOf(client.cancelOrder(id, order));
    if (here === undefined) gateways.push(member.id);
    else if (here.code === IS_OVER) isOver = true;
    // One that was started since, or away, does not know it.
    else if (here.code !== NOT_THERE) group.lose(member, here);
    const left = await refusalOf(client.withdrawOrder(id, order));
    isWithdrawn ||= left === undefined;
    if (left === undefined || left.code === NOT_THERE) isTold = true;
    else if (left.code === REGISTER_AWAY) whyAway = left.refusal;
    else group.lose(member, left);
  }
  return { id, gateways, isOver, isWithdrawn, whyUntold: isTold ? '' : whyAway };
}

async function refusalOf(asked: Promise<unknown>): Promise<NoAnswer | undefined> {
  try {
    await asked;
    return undefined;
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    return error;
  }
}

/** Where it was not taken back, or perhaps not all of it; else ''. */
function takenText(taken: Taken, orders: readonly QueueOrderAnswer[], isAllHeard: boolean): string {
  const { id, gateways, isOver, isWithdrawn, whyUntold } = taken;
  const untold = whyUntold === '' ? '' : `; whether it is left in the register can't be told: ${whyUntold}`;
  if (gateways.length > 0 && untold !== '') return `${id} is cancelled at ${gateways.join(', ')}${untold}`;
  if (gateways.length > 0 || isWithdrawn) return '';
  const whose = isAllHeard ? '' : ' at those who answered';
  const what = isOver ? `order ${id} ${overText(orders, id)}` : `no order ${id} is known`;
  return `${what}${whose}${untold}`;
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
  const { order, verb, selector, partitions, holders, done, who, reason, given, until } = left;
  const whom = holders.length === 0 ? `${String(partitions.length)} partitions` : holders.join(', ');
  const isOver = partitions.length === 0;
  const kept = left.in_grace === true ? `in its grace, keeps mail back until ${timeText(until)}` : undefined;
  const state = isOver ? 'over' : kept ?? `waiting for ${whom}`;
  const what = `${verb} ${selectorWords(selector, left)}: ${state}, ${formatCount(done)} done`;
  const where = `${isOver ? 'was ' : ''}in the register`;
  return `${order} ${where}, ${listTimeText(given)}  ${what}  ${who}: ${reason}`;
}
