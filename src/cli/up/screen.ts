/** What `up` shows: the one screen after the start, and the line of each second. Pure. */
import { formatCount } from '../../base/units.js';
import type { Config } from '../../config/types.js';
import type { StatusAnswer, StoreAnswer } from '../../admin-api/gateway-answers.js';
import { counted, tableText } from '../tables.js';
import type { ProcessPlan } from './plan.js';
import { addressText } from './plan.js';

export interface ScreenInput {
  readonly config: Config;
  readonly processes: readonly { readonly plan: ProcessPlan; readonly pid: number }[];
  /** How the reader starts this program, for the lines to copy. */
  readonly command: string;
  readonly stateDir: string;
}

export function screenText(input: ScreenInput): string {
  const { config, command } = input;
  const gateway = config.gateway;
  const smtp = gateway?.smtp.listen[0];
  const smtpText = smtp === undefined ? '' : addressText(smtp);
  const admin = gateway === undefined ? '' : `http://${addressText(gateway.admin.listen)}`;
  const storesMetrics = config.stores.map((store) => `http://${addressText(store.admin.listen)}/metrics`).join('  ');
  const rows = input.processes.map(({ plan, pid }) => [plan.name, String(pid), plan.ports.map((port) => addressText(port.address)).join('  ')]);
  return [
    'Twinpost is up. Ctrl-C drains and stops it.',
    '',
    `  send mail to    ${smtpText}`,
    `                  ${command} send --to ${smtpText} --count 1000`,
    `                  swaks --server ${smtpText} --from me@example.com --to you@example.net`,
    config.sink === undefined ? '' : `  it arrives at   ${addressText(config.sink.listen)} (the sink)`,
    `  metrics         ${admin}/metrics  ${storesMetrics}`,
    `  look inside     ${command} status --gateway ${admin} --watch`,
    `  state and logs  ${input.stateDir}`,
    '',
    tableText([{ title: '  Process' }, { title: 'Pid', right: true }, { title: 'Listens on' }], rows.map(([name, ...rest]) => [`  ${name ?? ''}`, ...rest])),
    '',
    '  Mail is in memory on gateway and stores: kill -9 any one of them while mail flows, and nothing',
    '  accepted is lost. Killing all of them at once loses what was queued.',
    '',
  ].filter((line, i) => line !== '' || i !== 5).join('\n');
}

/** Counts of the second before, to make rates of totals. */
export interface Sample {
  readonly atMs: number;
  readonly received: number;
  readonly delivered: number;
  readonly incarnation: number;
}

export function statusLine(status: StatusAnswer | undefined, before: Sample | undefined, nowMs: number): string {
  if (status === undefined) return 'gateway does not answer';
  // A restarted gateway counts from zero.
  const same = before?.incarnation === status.incarnation ? before : undefined;
  const rate = (total: number, last: number | undefined): string => {
    const seconds = same === undefined ? 0 : (nowMs - same.atMs) / 1000;
    return `${formatCount(last === undefined || seconds <= 0 ? 0 : Math.max(0, (total - last) / seconds))}/s`;
  };
  const mirrors = status.stores.map((store) => `${store.store} ${mirrorWord(store)}`).join('  ');
  const ready = status.ready ? '' : `   NOT READY: ${status.not_ready_reason}`;
  return `accepted ${rate(status.received, same?.received)}   delivered ${rate(status.delivered, same?.delivered)}   queued ${formatCount(status.queued_messages)}   ${mirrors}${ready}${waitingText(status)}`;
}

function waitingText({ partitions_waiting: waiting, register_away: away }: StatusAnswer): string {
  return `${waiting === 0 ? '' : `   ${counted(waiting, 'partition')} WAITING`}${away === '' ? '' : '   REGISTER AWAY'}`;
}

/** The worst state of any partition's copy at this store. */
function mirrorWord(store: StoreAnswer): string {
  if (!store.up) return 'DOWN';
  if (store.partitions_ng > 0) return 'NG';
  return store.partitions_resync > 0 ? 'RESYNC' : 'SYNC';
}
