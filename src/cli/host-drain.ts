/**
 * `twinpost host drain HOST`: may this machine be rebooted? Its stores are drained at every gateway, as
 * `store drain` does it, until no other host needs anything of it; then it says yes. Its gateway goes on as
 * it is: what it has is at stores of other hosts, and its group delivers that when it is gone.
 *
 *   HOST is unknown                          ─► 2, with the hosts that are known; 3 when somebody is missing
 *   something is missing (host-verdict.ts)   ─► 1, nothing was moved
 *   drained ─► nothing is only there         ─► yes, 0; 3 when somebody could not be asked
 *           └─ time is up, or it can't leave ─► no, 1; copies go on leaving until --undo
 *   --undo  ─► its stores are used again     ─► 0
 *           └─ there is none at HOST         ─► 1; 3 when somebody is missing
 */
import type { Argv } from 'yargs';
import type { DrainOrder, Order } from '../admin-api/orders.js';
import { allRows } from './admin-client.js';
import type { AdminClient } from './admin-client.js';
import type { CliContext, Terminal } from './context.js';
import { CliError, UsageError } from './context.js';
import { longExample } from './examples.js';
import { NOT_ALL_KNOW, findGroup, missingText, reportMissing, withGroupOptions } from './group.js';
import type { Group, Missing } from './group.js';
import {
  hostName, hostsOf, lacking, onlyThere, partsOf, stillThere, unitedMembers, yesLines,
} from './host-verdict.js';
import type { CopiesThere, DrainTold, HostParts, RegisterSeen } from './host-verdict.js';
import { durationArgument } from './numbers.js';
import { orderOf } from './operator.js';
import { REASON, textOr } from './options.js';
import { printable } from './tables.js';
import { drainAt, drainLines } from './store-drain.js';

const EXIT_CODES = 'exit code: 0 yes, 1 no, 3 yes as far as could be asked, 2 wrong usage';
const POLL_MS = 500;
/** What takes no longer needs no line about how far it is. */
const QUIET_MS = 2_000;

export function hostCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command('host', 'a machine with a gateway, a store or both', (host) =>
    host
      .command(
        'drain <host>',
        'may it be rebooted? moves away what only it has, then says yes',
        (args) =>
          longExample(withGroupOptions(args, EXIT_CODES)
            .positional('host', {
              type: 'string', demandOption: true, describe: '`host` of its gateway and store in their files',
            })
            .option('reason', REASON)
            .option('undo', { type: 'boolean', describe: 'it is back: use its stores again' })
            .option('timeout', textOr('10min', 'wait no longer than this'))
            .option('json', { type: 'boolean', describe: 'one JSON object at the end' }),
            '$0 host drain host-1 --reason "new kernel"', 'and behind the reboot the same with --undo'),
        async (args) => {
          const order = { ...orderOf('host drain', args.reason), undo: args.undo === true };
          if (args.only === true) throw new UsageError('host drain asks the whole group: leave --only out');
          const endMs = performance.now() + durationArgument('timeout', args.timeout);
          const group = await findGroup(args, context);
          const drain = new HostDrain(args.host, group, args.json === true, context.terminal);
          done(order.undo ? await drain.undo(order) : await drain.run(order, endMs));
        },
      )
      .demandCommand(1, 'host what? twinpost host --help lists the verbs'));
}

class HostDrain {
  readonly #host: string;
  readonly #group: Group;
  readonly #json: boolean;
  readonly #terminal: Terminal;
  #said = '';
  /** As the gateways answered last. */
  #told: readonly DrainTold[] = [];
  /** Stores there that live, and did not say what they have. */
  #silent: readonly Missing[] = [];

  constructor(host: string, group: Group, json: boolean, terminal: Terminal) {
    this.#host = host;
    this.#group = group;
    this.#json = json;
    this.#terminal = terminal;
  }

  async run(order: Order, endMs: number): Promise<number> {
    const before = await this.#parts();
    const missing = lacking(before, await this.#register(before));
    if (missing.length > 0) return this.#no(before, missing, 'nothing was moved');
    const left = await this.#move(before, order, endMs);
    const after = await this.#parts();
    const register = await this.#register(after);
    const reasons = [...left, ...lacking(after, register)];
    if (reasons.length > 0) {
      return this.#no(after, reasons, 'its stores are drained all the same; ask again with the same command, '
        + `or twinpost host drain ${this.#host} --undo uses them again`);
    }
    return this.#yes(after, register);
  }

  async undo(order: DrainOrder): Promise<number> {
    const { stores } = await this.#parts();
    if (stores.length === 0) return this.#noneToUndo();
    const told = await this.#drains(stores, order);
    const lines = told.flatMap(({ gateway, answer }) => drainLines(gateway, answer.store, answer));
    if (this.#json) this.#terminal.print(JSON.stringify({ host: this.#host, undone: true, stores }));
    else for (const line of lines) this.#terminal.print(printable(line));
    const missing = this.#group.missing('gateway');
    reportMissing(missing, told.length, this.#json, this.#terminal);
    if (told.some(({ answer }) => !answer.kept)) return 1;
    return missing.length > 0 ? NOT_ALL_KNOW : 0;
  }

  #noneToUndo(): number {
    const missing = this.#group.missing('gateway');
    if (this.#json) this.#terminal.print(JSON.stringify({ host: this.#host, undone: false, stores: [] }));
    const who = missing.length === 0 ? '' : ' that those who answer know';
    this.#terminal.error(printable(`twinpost: nothing to undo: there is no store at ${this.#host}${who}`));
    return reportMissing(missing, 1, this.#json, this.#terminal) || 1;
  }

  /** What is left at the end, as reasons against it. */
  async #move(parts: HostParts, order: Order, endMs: number): Promise<readonly string[]> {
    const beganMs = performance.now();
    await this.#drains(parts.stores, order);
    for (;;) {
      // The first look comes after the gateways have had time to see what can move.
      await new Promise((resolve) => { setTimeout(resolve, POLL_MS); });
      this.#told = await this.#drains(parts.stores);
      const { reasons, isStuck } = stillThere(this.#told);
      const now = await this.#parts();
      const left = reasons.length > 0 ? reasons : onlyThere(now, await this.#copies(now));
      if (left.length === 0 || isStuck || performance.now() >= endMs) return left;
      if (performance.now() - beganMs >= QUIET_MS) this.#progress(left);
    }
  }

  #progress(left: readonly string[]): void {
    const line = left.join('; ');
    if (!this.#json && line !== this.#said) this.#terminal.print(printable(line));
    this.#said = line;
  }

  #yes(parts: HostParts, register: RegisterSeen): number {
    const missing = this.#unasked();
    const lines = yesLines(parts, register, this.#told);
    this.#verdict(parts, missing.length === 0, [], lines);
    if (!this.#json) {
      const who = missing.map(({ id }) => id).join(', ');
      const verdict = missing.length === 0 ? `yes: ${this.#host} may be rebooted`
        : `not known: ${who} did not answer; of those who did nobody needs ${this.#host}`;
      const again = `when it is back: twinpost host drain ${this.#host} --undo --reason WHY`;
      const notes = parts.stores.length === 0 ? lines : [...lines, again];
      for (const line of [verdict, ...notes.map((each) => `  ${each}`)]) {
        this.#terminal.print(printable(line));
      }
    }
    for (const one of missing) this.#partial(one);
    return missing.length > 0 ? NOT_ALL_KNOW : 0;
  }

  #no(parts: HostParts, reasons: readonly string[], then: string): number {
    this.#verdict(parts, false, reasons, [then]);
    if (!this.#json) {
      for (const reason of reasons) {
        this.#terminal.print(printable(`no: ${this.#host} may not be rebooted: ${reason}`));
      }
      this.#terminal.print(printable(`  ${then}`));
    }
    for (const one of this.#unasked()) this.#partial(one);
    return 1;
  }

  #verdict(
    { gateways, stores }: HostParts, isYes: boolean, reasons: readonly string[], notes: readonly string[],
  ): void {
    if (!this.#json) return;
    this.#terminal.print(JSON.stringify({
      host: this.#host, may_reboot: isYes, reasons, notes,
      gateways: gateways.map(({ gateway, queued_messages }) => ({ gateway, queued_messages })),
      stores,
    }));
  }

  #partial(missing: Missing): void {
    reportMissing([missing], 1, this.#json, this.#terminal);
  }

  #unasked(): readonly Missing[] {
    return [...this.#group.missing('gateway'), ...this.#silent];
  }

  async #parts(): Promise<HostParts> {
    const answers = await this.#group.ask('gateway', (client) => client.status());
    const [first] = this.#group.missing('gateway');
    if (answers.length === 0) {
      throw new CliError(first === undefined
        ? 'there is no gateway in this group: nothing was done' : `nobody answers: ${missingText(first)}`);
    }
    const statuses = answers.map(({ answer }) => answer);
    const parts = partsOf(this.#host, statuses);
    if (parts.gateways.length + parts.stores.length > 0) return parts;
    const known = hostsOf(statuses).join(', ');
    // One that does nothing to mail, as it never started or is retired, hides no host.
    const ids = this.#group.unheard.map(({ id }) => id).join(', ');
    if (ids !== '') {
      throw new CliError(`not known: nothing of those who answer is at a host '${this.#host}' (there are: `
        + `${known}), and where these are nobody says: ${ids}`, NOT_ALL_KNOW);
    }
    throw new UsageError(`nothing of this group is at a host '${this.#host}'; there are: ${known}`);
  }

  /** What all gateways that know these stores have there; with an order it is given first. */
  async #drains(stores: readonly string[], order?: DrainOrder): Promise<readonly DrainTold[]> {
    const told: DrainTold[] = [];
    for (const store of stores) {
      const answers = await this.#group.ask('gateway', (client) => drainAt(client, store, order));
      for (const { id: gateway, answer } of answers) if (answer !== undefined) told.push({ gateway, answer });
    }
    return told;
  }

  /** One whose admin address nobody knows is not asked: all gateways have told what they have there. */
  async #copies(parts: HostParts): Promise<readonly CopiesThere[]> {
    const there = this.#group.without(({ kind, id }) => kind !== 'store' || !parts.stores.includes(id));
    const answers = await there.ask('store', membersByHolder);
    this.#silent = there.missing('store').filter(({ id, how }) => how !== 'not asked' && lives(parts, id));
    return answers.map(({ id: store, answer: byHolder }) => ({ store, byHolder }));
  }

  /** Asked of gateways elsewhere: they need it when this host is gone. */
  async #register(parts: HostParts): Promise<RegisterSeen> {
    const ids = parts.elsewhere.map(({ gateway }) => gateway);
    const answers = await this.#group.ask('gateway', (client) => client.register());
    const told = answers.filter(({ id }) => ids.includes(id)).map(({ answer }) => answer);
    return { members: unitedMembers(told), addresses: this.#addresses(parts) };
  }

  #addresses({ gateways, stores }: HostParts): ReadonlySet<string> {
    const ids = gateways.map(({ gateway }) => gateway);
    const there = this.#group.members.filter(({ kind, id }) =>
      (kind === 'store' ? stores : ids).includes(id));
    return new Set(there.map(({ client }) => hostName(client.url)));
  }
}

/** A gateway has a link to it. */
function lives({ gateways, elsewhere }: HostParts, id: string): boolean {
  return [...gateways, ...elsewhere].some(({ stores }) => stores.some(({ store, up }) => store === id && up));
}

async function membersByHolder(client: AdminClient): Promise<ReadonlyMap<string | null, number>> {
  const byHolder = new Map<string | null, number>();
  for await (const { member, holder } of allRows(client, (cursor) => client.storePartitions(cursor))) {
    if (member) byHolder.set(holder, (byHolder.get(holder) ?? 0) + 1);
  }
  return byHolder;
}
