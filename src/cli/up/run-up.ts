/**
 * `twinpost up` from start to end:
 *
 *   check ports ─► keep the register ─► start stores, sink, gateway ─► wait for /readyz ─► screen ─► a line a second …
 *   … SIGINT or SIGTERM ─► gateway drains ─► stores ─► sink ─► exit 0
 *
 * The gateway goes first, while next hop and mirrors still answer; each has a bound, past it SIGKILL. Owns
 * the run's folder: a temporary one is removed after a clean stop.
 */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeFolder } from '../../platform/node/make-folder.js';
import type { Config } from '../../config/types.js';
import type { StatusAnswer } from '../../admin-api/gateway-answers.js';
import { AdminClient } from '../admin-client.js';
import { REGISTER_VARIABLE, SECRET_VARIABLE, UP_VARIABLE, loadFor } from '../config-file.js';
import type { CliContext } from '../context.js';
import { CliError } from '../context.js';
import { printable } from '../tables.js';
import { allProcesses, addressText, planUp } from './plan.js';
import type { ProcessPlan, UpPlan } from './plan.js';
import { busyPortsText } from './ports.js';
import { ProcessLog } from './process-log.js';
import { screenText, statusLine } from './screen.js';
import type { Sample } from './screen.js';
import { CRASH_LOOP_DEATHS, Supervised } from './supervised.js';
import { openUpRegister } from './up-register.js';

const LINE_MS = 1_000;
/** A gateway with two empty stores is ready in well under a second. */
const READY_MS = 20_000;
const READY_POLL_MS = 50;
const STORE_STOP_MS = 10_000;
const SINK_STOP_MS = 5_000;
/** On top of delivery.stop_timeout. */
const GATEWAY_STOP_EXTRA_MS = 5_000;
const SECRET_BYTES = 32;

export interface UpOptions {
  readonly config: string | undefined;
  readonly stateDir: string | undefined;
}

export async function runUp(options: UpOptions, context: CliContext): Promise<number> {
  const file = options.config === undefined ? undefined : path.resolve(options.config);
  const config = loadFor('up', file, undefined, context);
  const temporary = options.stateDir === undefined;
  const stateDir = options.stateDir === undefined ? path.join(os.tmpdir(), `twinpost-${String(process.pid)}`) : path.resolve(options.stateDir);
  const plan = planUp(config, file, stateDir);
  if (plan === undefined) throw new CliError(`${config.file}:1: file: expected the sections gateway and stores for up, found only a part`);
  const busy = await busyPortsText(allProcesses(plan).flatMap((one) => one.ports));
  if (busy !== '') throw new CliError(busy);
  makeStateDir(stateDir);
  const choice = config.gateway?.register ?? { kind: 'file', stateDir, isServed: true };
  const register = await openUpRegister(choice, config.gateway?.stateDir ?? stateDir, stateDir);
  try {
    const up = new Up(plan, config.gateway?.delivery.stopTimeoutMs ?? 0, stateDir, register.folder, context);
    await run(up, config, stateDir, context);
    // The folder of a process that dies again and again is left, to be looked at.
    if (!temporary || up.crashed) return 0;
  } finally {
    await register.close();
  }
  fs.rmSync(stateDir, { recursive: true, force: true });
  return 0;
}

/** Until it is told to stop, and has stopped. */
async function run(up: Up, config: Config, stateDir: string, context: CliContext): Promise<void> {
  const client = new AdminClient(`http://${addressText(config.gateway?.admin.listen ?? { host: '127.0.0.1', port: 8025 })}`, config.gateway?.admin.token);
  void context.untilStopped();
  up.start();
  await up.untilReady(client);
  if (!context.stopSignal.aborted) {
    const processes = up.all.map(({ plan: one, supervised }) => ({ plan: one, pid: supervised.pid }));
    context.terminal.write(`${screenText({ config, processes, command: commandText(context.entry), stateDir })}\n`);
  }
  await up.follow(client);
  await up.stop();
}

class Up {
  readonly all: readonly { readonly plan: ProcessPlan; readonly supervised: Supervised }[];
  crashed = false;
  readonly #context: CliContext;
  readonly #gatewayStopMs: number;
  readonly #plan: UpPlan;
  #lineShown = false;

  constructor(
    plan: UpPlan, stopTimeoutMs: number, stateDir: string, registerDir: string | undefined, context: CliContext,
  ) {
    this.#plan = plan;
    this.#context = context;
    this.#gatewayStopMs = stopTimeoutMs + GATEWAY_STOP_EXTRA_MS;
    const environment = {
      ...context.environment,
      [UP_VARIABLE]: '1',
      ...(registerDir === undefined ? {} : { [REGISTER_VARIABLE]: registerDir }),
      [SECRET_VARIABLE]: context.environment[SECRET_VARIABLE] ?? randomBytes(SECRET_BYTES).toString('hex'),
    };
    const events = {
      onStarted: (one: Supervised, again: boolean) => { if (again) this.#say(`${one.name} runs again as pid ${String(one.pid)}`); },
      onDied: (one: Supervised, how: string, deaths: number, againInMs: number) => { this.#onDied(one, how, deaths, againInMs); },
    };
    this.all = allProcesses(plan).map((one) => ({
      plan: one,
      supervised: new Supervised({ plan: one, entry: context.entry, environment }, new ProcessLog(path.join(stateDir, `${one.name}.log`)), events),
    }));
  }

  start(): void {
    for (const { supervised } of this.all) supervised.start();
  }

  /** Returns all the same after a while: the lines then say what is missing. */
  async untilReady(client: AdminClient): Promise<void> {
    const endMs = performance.now() + READY_MS;
    while (performance.now() < endMs && !this.#context.stopSignal.aborted) {
      const status = await client.status().catch(() => undefined);
      if (status?.ready === true) return;
      await this.#pause(READY_POLL_MS);
    }
  }

  async follow(client: AdminClient): Promise<void> {
    const { terminal, stopSignal } = this.#context;
    let before: Sample | undefined;
    while (!stopSignal.aborted) {
      const status: StatusAnswer | undefined = await client.status().catch(() => undefined);
      const nowMs = performance.now();
      const line = printable(statusLine(status, before, nowMs));
      if (terminal.isTty) {
        terminal.write(`\r${line.slice(0, Math.max(20, terminal.columns - 1))}\u001b[K`);
        this.#lineShown = true;
      } else {
        terminal.print(line);
      }
      before = status === undefined ? undefined : { atMs: nowMs, received: status.received, delivered: status.delivered, incarnation: status.incarnation };
      await this.#pause(LINE_MS);
    }
  }

  async stop(): Promise<void> {
    this.#say('stopping: the gateway drains first (Ctrl-C again kills)');
    this.#context.onSecondSignal(() => {
      for (const { supervised } of this.all) supervised.kill();
    });
    const named = (plans: readonly ProcessPlan[]): readonly Supervised[] => this.all.filter(({ plan }) => plans.includes(plan)).map(({ supervised }) => supervised);
    await Promise.all(named([this.#plan.gateway]).map((one) => one.stop(this.#gatewayStopMs)));
    await Promise.all(named(this.#plan.stores).map((one) => one.stop(STORE_STOP_MS)));
    await Promise.all(named(this.#plan.sink === undefined ? [] : [this.#plan.sink]).map((one) => one.stop(SINK_STOP_MS)));
    for (const { supervised } of this.all) supervised.log.close();
    this.#say('stopped');
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
    throw new CliError(`--state-dir: '${folder}' can't be made: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
}

function commandText(entry: string): string {
  const relative = path.relative(process.cwd(), entry);
  return `node ${relative.startsWith('..') ? entry : relative}`;
}
