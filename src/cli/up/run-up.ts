/**
 * `twinpost up` from start to end:
 *
 *   check ports ─► keep the register ─► start stores, sink, gateways ─► all are ready ─► screen
 *   ─► a line a second …
 *   … SIGINT or SIGTERM ─► gateways drain ─► stores ─► sink ─► exit 0
 *
 * The gateways go first, while next hop and mirrors still answer; each process has a bound, past it SIGKILL.
 * What they can't deliver the stores write to their files. Owns the run's folder: a temporary one is removed
 * after a clean stop, unless mail is left in it.
 */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeFolder } from '../../platform/node/make-folder.js';
import { addressText } from '../../config/keys/values.js';
import { upConfig } from '../../config/up-gateways.js';
import type { UpConfig } from '../../config/up-gateways.js';
import { adminAbove, workerIds } from '../../config/workers.js';
import { defaultMemoryBytes } from '../../platform/node/memory.js';
import type { StatusAnswer } from '../../admin-api/gateway-answers.js';
import type { TallyAnswer } from '../../admin-api/sink-answers.js';
import { accessOf, adminUrl } from '../admin-address.js';
import { AdminClient } from '../admin-client.js';
import { REGISTER_VARIABLE, SECRET_VARIABLE, UP_GATEWAY_VARIABLE, UP_VARIABLE } from '../config-file.js';
import { loadFor } from '../config-file.js';
import type { CliContext } from '../context.js';
import { CliError, UsageError } from '../context.js';
import { requireStateDir } from '../folders.js';
import { counted, printable } from '../tables.js';
import { allProcesses, logFileOf, planUp } from './plan.js';
import type { ProcessPlan, UpPlan } from './plan.js';
import { busyPortsText } from './ports.js';
import { ProcessLog } from './process-log.js';
import { AcceptedTotal, screenText, statusLine } from './screen.js';
import type { GatewaySample } from './screen.js';
import { CRASH_LOOP_DEATHS, Supervised } from './supervised.js';
import { openUpRegister } from './up-register.js';

const LINE_MS = 1_000;
/** A gateway with two empty stores is ready in well under a second. */
const READY_MS = 20_000;
const READY_POLL_MS = 50;
const STORE_STOP_MS = 10_000;
const SINK_STOP_MS = 5_000;
/** On top of delivery.stop_timeout. */
const GATEWAY_STOP_EXTRA_MS = 12_000;
/** One that stands still must not hold up the line of each second. */
const ASK_MS = 800;
const SECRET_BYTES = 32;

export interface UpOptions {
  readonly config: string | undefined;
  readonly stateDir: string | undefined;
  readonly gateways: number;
}

export async function runUp(options: UpOptions, context: CliContext): Promise<number> {
  const file = options.config === undefined ? undefined : path.resolve(options.config);
  const loaded = loadFor('up', file, undefined, context);
  const choice = loaded.gateway;
  if (options.gateways > 1 && (choice?.workers ?? 1) > 1) {
    const said = `${loaded.file} says workers: ${String(choice?.workers)}`;
    throw new UsageError(`--gateways: ${said}; take that out, each gateway has one process here`);
  }
  const config = upConfig(loaded, options.gateways, defaultMemoryBytes(true));
  const temporary = options.stateDir === undefined;
  const stateDir = options.stateDir === undefined
    ? path.join(os.tmpdir(), `twinpost-${String(process.pid)}`) : path.resolve(options.stateDir);
  const gateways = options.gateways === 1 ? '' : ` --gateways ${String(options.gateways)}`;
  const configured = file === undefined ? '' : ` --config ${file}`;
  const again = `twinpost up${configured}${gateways} --state-dir ${stateDir}`;
  const plan = planUp(config, file, stateDir);
  if (plan === undefined) {
    throw new CliError(
      `${config.file}:1: file: expected the sections gateway and stores for up, found only a part`,
    );
  }
  const busy = await busyPortsText(allProcesses(plan).flatMap((one) => one.ports));
  if (busy !== '') throw new CliError(busy);
  makeStateDir(stateDir);
  if (choice !== undefined) requireStateDir(choice, undefined);
  const register = await openUpRegister(
    choice?.register ?? { kind: 'file', stateDir, isServed: true }, choice?.stateDir ?? stateDir, stateDir,
  );
  try {
    const up = new Up(plan, config, { stateDir, registerDir: register.folder, again }, context);
    await run(up, config, stateDir, context);
    // The folder of a process that dies again and again is left, to be looked at.
    if (!temporary || up.crashed || up.messagesLeft > 0) return 0;
  } finally {
    await register.close();
  }
  fs.rmSync(stateDir, { recursive: true, force: true });
  return 0;
}

/** Until it is told to stop, and has stopped. */
async function run(up: Up, config: UpConfig, stateDir: string, context: CliContext): Promise<void> {
  void context.untilStopped();
  up.start();
  await up.untilReady();
  if (!context.stopSignal.aborted) {
    const processes = up.all.map(({ plan: one, supervised }) => ({ plan: one, pid: supervised.pid }));
    context.terminal.write(
      `${screenText({ config, processes, command: commandText(context.entry), stateDir })}\n`,
    );
  }
  await up.follow();
  await up.stop();
}

interface UpRun {
  readonly stateDir: string;
  readonly registerDir: string | undefined;
  /** The command that goes on from there. */
  readonly again: string;
}

class Up {
  readonly all: readonly { readonly plan: ProcessPlan; readonly supervised: Supervised }[];
  crashed = false;
  /** What the stores held when all gateways had stopped. */
  messagesLeft = 0;
  readonly #context: CliContext;
  readonly #gatewayStopMs: number;
  readonly #plan: UpPlan;
  readonly #stateDir: string;
  readonly #again: string;
  readonly #gateways: readonly { readonly name: string; readonly client: AdminClient }[];
  readonly #stores: readonly AdminClient[];
  readonly #sink: AdminClient | undefined;
  /** It does not know what came before. */
  #sinkCountsAnew = false;
  #lineShown = false;

  constructor(plan: UpPlan, config: UpConfig, { stateDir, registerDir, again }: UpRun, context: CliContext) {
    this.#plan = plan;
    this.#context = context;
    this.#stateDir = stateDir;
    this.#again = again;
    this.#gatewayStopMs = (config.gateway?.delivery.stopTimeoutMs ?? 0) + GATEWAY_STOP_EXTRA_MS;
    const access = accessOf({ 'token-file': undefined, 'ca-file': undefined }, context);
    this.#gateways = config.gateways.flatMap(({ id, admin, workers }) =>
      workerIds(id, workers).map((name, index) =>
        ({ name, client: new AdminClient(adminUrl(adminAbove(admin, index)), access, ASK_MS) })));
    this.#stores = config.stores.map(({ admin }) => new AdminClient(adminUrl(admin), access));
    const sinkAdmin = config.sink?.admin;
    this.#sink = sinkAdmin === undefined
      ? undefined : new AdminClient(`http://${addressText(sinkAdmin)}`, access, ASK_MS);
    const shared = {
      ...context.environment,
      [UP_VARIABLE]: String(config.gateways.length),
      ...(registerDir === undefined ? {} : { [REGISTER_VARIABLE]: registerDir }),
      [SECRET_VARIABLE]: context.environment[SECRET_VARIABLE] ?? randomBytes(SECRET_BYTES).toString('hex'),
    };
    const events = {
      onStarted: (one: Supervised, again: boolean) => {
        if (!again) return;
        this.#say(`${one.name} runs again as pid ${String(one.pid)}`);
        if (one.name === this.#plan.sink?.name) this.#sinkCountsAnew = true;
      },
      onDied: (one: Supervised, how: string, deaths: number, againInMs: number) => {
        this.#onDied(one, how, deaths, againInMs);
      },
    };
    this.all = allProcesses(plan).map((one) => {
      const { gatewayNumber: own } = one;
      const number = own === undefined ? {} : { [UP_GATEWAY_VARIABLE]: String(own) };
      const log = new ProcessLog(logFileOf(stateDir, one.name));
      const options = { plan: one, entry: context.entry, environment: { ...shared, ...number } };
      return { plan: one, supervised: new Supervised(options, log, events) };
    });
  }

  start(): void {
    for (const { supervised } of this.all) supervised.start();
    this.#context.onPassedSignal((signal) => {
      for (const { supervised } of this.all) supervised.pass(signal);
    });
  }

  /** Returns all the same after a while: the lines then say what is missing. */
  async untilReady(): Promise<void> {
    const endMs = performance.now() + READY_MS;
    while (performance.now() < endMs && !this.#context.stopSignal.aborted) {
      const answers = await this.#ask();
      if (answers.every(({ status }) => status?.ready === true)) return;
      await this.#pause(READY_POLL_MS);
    }
  }

  async follow(): Promise<void> {
    const { terminal, stopSignal } = this.#context;
    const total = new AcceptedTotal();
    let before: readonly GatewaySample[] = [];
    while (!stopSignal.aborted) {
      const nextMs = performance.now() + LINE_MS;
      const [now, tally] = await Promise.all([this.#ask(), this.#askSink()]);
      const line = printable(statusLine(now, before, total.after(now), tally));
      if (terminal.isTty) {
        terminal.write(`\r${line.slice(0, Math.max(20, terminal.columns - 1))}\u001b[K`);
        this.#lineShown = true;
      } else {
        terminal.print(line);
      }
      before = now;
      await this.#pause(Math.max(0, nextMs - performance.now()));
    }
  }

  async stop(): Promise<void> {
    const first = this.#gateways.length === 1 ? 'the gateway drains' : 'the gateways drain';
    this.#say(`stopping: ${first} first (Ctrl-C again kills)`);
    this.#context.onSecondSignal(() => {
      for (const { supervised } of this.all) supervised.kill();
    });
    const named = (plans: readonly ProcessPlan[]): readonly Supervised[] =>
      this.all.filter(({ plan }) => plans.includes(plan)).map(({ supervised }) => supervised);
    await Promise.all(named(this.#plan.gateways).map((one) => one.stop(this.#gatewayStopMs)));
    await this.#countLeft();
    await Promise.all(named(this.#plan.stores).map((one) => one.stop(STORE_STOP_MS)));
    await Promise.all(named(this.#plan.sink === undefined ? [] : [this.#plan.sink]).map((one) =>
      one.stop(SINK_STOP_MS)));
    for (const { supervised } of this.all) supervised.log.close();
    this.#say('stopped');
  }

  /** Of two stores both have all of it, of more each a part: at least what one of them has. */
  async #countLeft(): Promise<void> {
    const counts = this.#stores.map((store) => store.storeStatus().then(({ messages }) => messages, () => 0));
    this.messagesLeft = Math.max(0, ...await Promise.all(counts));
    if (this.messagesLeft === 0) return;
    const left = `${counted(this.messagesLeft, 'message')} or more could not be delivered`;
    this.#say(`${left} and wait in ${this.#stateDir}: go on with ${this.#again}`);
  }

  /** Undefined: it does not answer. */
  #ask(): Promise<readonly GatewaySample[]> {
    return Promise.all(this.#gateways.map(async ({ name, client }) => {
      const status: StatusAnswer | undefined = await client.status().catch(() => undefined);
      return { name, status, atMs: performance.now() };
    }));
  }

  /** Undefined: it does not answer, or there is none. */
  async #askSink(): Promise<TallyAnswer | undefined> {
    const tally = await this.#sink?.tally().catch(() => undefined);
    return tally === undefined ? undefined : { ...tally, complete: tally.complete && !this.#sinkCountsAnew };
  }

  #onDied(one: Supervised, how: string, deaths: number, againInMs: number): void {
    this.#say(`${one.name} died (${how}); started again in ${String(Math.round(againInMs))} ms`);
    if (deaths < CRASH_LOOP_DEATHS) return;
    this.crashed = true;
    this.#say(`${one.name} dies again and again (${String(deaths)} times in a row). Its last words:`);
    for (const line of one.log.lastLines(3)) this.#say(`    ${printable(line).slice(0, 300)}`);
  }

  /** On a line of its own, above the line that is rewritten. */
  #say(text: string): void {
    const { terminal } = this.#context;
    terminal.print(this.#lineShown ? `\r\u001b[K${text}` : text);
    this.#lineShown = false;
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#context.stopSignal }).catch(() => undefined);
  }
}

function makeStateDir(folder: string): void {
  try {
    // Logs name senders and recipients: for this user only.
    makeFolder(folder, 0o700);
  } catch (error) {
    throw new CliError(
      `--state-dir: '${folder}' can't be made: ${(error as NodeJS.ErrnoException).code ?? String(error)}`,
    );
  }
}

function commandText(entry: string): string {
  const relative = path.relative(process.cwd(), entry);
  return `node ${relative.startsWith('..') ? entry : relative}`;
}
