/** What `up` shows: the one screen after the start, and the line of each second. Pure. */
import { formatCount } from '../../base/units.js';
import type { UpConfig } from '../../config/up-gateways.js';
import type { StatusAnswer, StoreAnswer } from '../../admin-api/gateway-answers.js';
import type { TallyAnswer } from '../../admin-api/sink-answers.js';
import { adminUrl } from '../admin-address.js';
import { counted, tableText } from '../tables.js';
import type { ProcessPlan } from './plan.js';
import { addressText } from '../../config/keys/values.js';

/** The worst first. */
const MIRROR_WORDS = ['DOWN', 'NG', 'RESYNC', 'SYNC'] as const;

export interface ScreenInput {
  readonly config: UpConfig;
  readonly processes: readonly { readonly plan: ProcessPlan; readonly pid: number }[];
  /** How the reader starts this program, for the lines to copy. */
  readonly command: string;
  readonly stateDir: string;
}

export function screenText(input: ScreenInput): string {
  const { config, command } = input;
  const [gateway] = config.gateways;
  const smtp = config.gateways.flatMap((each) => each.smtp.listen.slice(0, 1)).map(addressText);
  const [firstSmtp = ''] = smtp;
  const admins = config.gateways.map(({ admin }) => adminUrl(admin));
  const storeAdmins = config.stores.map(({ admin }) => adminUrl(admin));
  const metrics = [...admins, ...storeAdmins].map((url) => `${url}/metrics`);
  const rows = input.processes.map(({ plan, pid }) =>
    [plan.name, String(pid), plan.ports.map((port) => addressText(port.address)).join('  ')]);
  return [
    'Twinpost is up. Ctrl-C drains and stops it.',
    '',
    `  send mail to    ${smtp.join('  ')}`,
    `                  ${command} send --to ${firstSmtp} --count 10000 --rate 200 --resend`,
    `                  swaks --server ${firstSmtp} --from me@example.com --to you@example.net`,
    ...sinkLines(config, command),
    `  metrics         ${metrics.join('  ')}`,
    `  look inside     ${command} status --gateway ${admins[0] ?? ''} --watch`,
    `  state and logs  ${input.stateDir}`,
    '',
    tableText(
      [{ title: '  Process' }, { title: 'Pid', right: true }, { title: 'Listens on' }],
      rows.map(([name, ...rest]) => [`  ${name ?? ''}`, ...rest]),
    ),
    '',
    '  Mail is in memory on gateway and stores: kill -9 any one of them while mail flows, and nothing',
    '  accepted is lost. Killing all of them at once loses what was queued.',
    ...(config.sink?.admin === undefined ? [] : [
      '  The line below counts what was accepted (+: a gateway was killed, and what it took since it was',
      '  asked last is more), and of what send --resend has sent, what has arrived, gaps below the last that',
      '  has (under way, or lost), altered and repeated. When nothing is queued any more there are no gaps,',
      '  and as many have arrived as were sent.',
    ]),
    ...(config.gateways.length === 1 ? [] : [
      `  kill -9 ${gateway?.id ?? ''}: once its lease is over (10 s) another gateway delivers its mail.`,
      '  It is started again after 20 s, and 10 s later gets back what is left.',
    ]),
    '',
  ].join('\n');
}

function sinkLines({ sink }: UpConfig, command: string): readonly string[] {
  if (sink === undefined) return [];
  const at = `  it arrives at   ${addressText(sink.listen)} (the sink)`;
  if (sink.admin === undefined) return [at];
  return [at, `                  ${command} inbox --from ${addressText(sink.admin)}`];
}

/** What a gateway said, to make rates of its totals with what it said a second before. */
export interface GatewaySample {
  readonly name: string;
  readonly atMs: number;
  /** Undefined: it did not answer. */
  readonly status: StatusAnswer | undefined;
}

/**
 * What gateways have taken since `up` began. One that begins anew counts from zero: the last counts known of
 * the lives that are over are added. What a life took after that, nobody can tell.
 */
export class AcceptedTotal {
  #ended = 0;
  #isLeast = false;
  readonly #lives = new Map<string, Pick<StatusAnswer, 'incarnation' | 'received'>>();

  /** After one more look; with a + when it is at least so much. */
  after(now: readonly GatewaySample[]): string {
    for (const { name, status } of now) {
      if (status === undefined) continue;
      const { incarnation, received } = status;
      const known = this.#lives.get(name);
      if (known !== undefined && known.incarnation !== incarnation) {
        this.#ended += known.received;
        this.#isLeast = true;
      }
      this.#lives.set(name, { incarnation, received });
    }
    const total = [...this.#lives.values()].reduce((sum, { received }) => sum + received, this.#ended);
    const isLeast = this.#isLeast || now.some(({ status }) => status === undefined);
    return `${formatCount(total)}${isLeast ? '+' : ''}`;
  }
}

/** Of several gateways the sums, and the words of each that has any. `total`: as AcceptedTotal says. */
export function statusLine(
  now: readonly GatewaySample[], before: readonly GatewaySample[], total: string, tally?: TallyAnswer,
): string {
  const answers = now.map(({ status }) => status).filter((status) => status !== undefined);
  const arrived = tally === undefined ? '' : `   ${tallyText(tally)}`;
  if (answers.length === 0) {
    const none = now.length === 1 ? 'gateway does not answer' : 'no gateway answers';
    return `${none}   accepted ${total}${arrived}`;
  }
  const rate = (of: (status: StatusAnswer) => number): string => {
    return `${formatCount(now.reduce((sum, sample) => sum + perSecond(sample, before, of), 0))}/s`;
  };
  const isAlone = now.length === 1;
  const queued = now.map(({ name, status }) => {
    const count = status === undefined ? 'DOWN' : formatCount(status.queued_messages);
    return isAlone ? count : `${name} ${count}`;
  });
  const words = answers.map((status) => {
    const text = `${readyText(status)}${waitingText(status)}`;
    return isAlone || text === '' ? text : `   ${status.gateway}${text}`;
  });
  const [accepted, sent] = [rate(({ received }) => received), rate(({ delivered }) => delivered)];
  const counts = `accepted ${total} (${accepted})   delivered ${sent}   queued ${queued.join('  ')}`;
  return `${counts}${arrived}   ${mirrorWords(answers)}${words.join('')}`;
}

/**
 * Gaps are also what is under way, and what `send` was refused and did not send again. What is lost behind
 * the last that arrived makes none: the sink does not know how many were sent.
 */
function tallyText({ arrived, missing, altered, repeated, complete }: TallyAnswer): string {
  // A sink that was started again does not know what came before.
  const away = complete ? `gaps ${formatCount(missing)} ` : '';
  return `arrived ${formatCount(arrived)} ${away}altered ${formatCount(altered)} `
    + `repeated ${formatCount(repeated)}`;
}

/** A restarted gateway counts from zero: its first second tells no rate. */
function perSecond(
  now: GatewaySample, before: readonly GatewaySample[], of: (status: StatusAnswer) => number,
): number {
  const last = before.find(({ name }) => name === now.name);
  if (now.status === undefined || last?.status?.incarnation !== now.status.incarnation) return 0;
  const seconds = (now.atMs - last.atMs) / 1000;
  return seconds <= 0 ? 0 : Math.max(0, (of(now.status) - of(last.status)) / seconds);
}

function readyText({ ready, not_ready_reason: reason }: StatusAnswer): string {
  return ready ? '' : `   NOT READY: ${reason}`;
}

function waitingText({ partitions_waiting: waiting, register_away: away }: StatusAnswer): string {
  const waits = waiting === 0 ? '' : `   ${counted(waiting, 'partition')} WAITING`;
  return away === '' ? waits : `${waits}   REGISTER AWAY`;
}

/** Of each store the worst that any gateway says. */
function mirrorWords(answers: readonly StatusAnswer[]): string {
  const stores = answers[0]?.stores.map(({ store }) => store) ?? [];
  return stores.map((name) => {
    const seen = answers.flatMap((answer) => answer.stores.filter(({ store }) => store === name));
    const words = seen.map(mirrorWord);
    return `${name} ${MIRROR_WORDS.find((word) => words.includes(word)) ?? ''}`;
  }).join('  ');
}

/** The worst state of any partition's copy at this store. */
function mirrorWord(store: StoreAnswer): typeof MIRROR_WORDS[number] {
  if (!store.up) return 'DOWN';
  if (store.partitions_ng > 0) return 'NG';
  return store.partitions_resync > 0 ? 'RESYNC' : 'SYNC';
}
