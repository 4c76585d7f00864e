/**
 * `twinpost store export` and `twinpost queue export`: messages as .eml and envelope JSON, from a store (or the file that
 * it left when it stopped) with no gateway alive, or from a gateway. Nothing is changed where they come from.
 */
import type { Argv } from 'yargs';
import type { MemberAnswer } from '../admin-api/pages.js';
import { formatBytes, formatCount } from '../base/units.js';
import { crc32 } from '../platform/node/checksum.js';
import { MessagePacker } from '../platform/node/packer.js';
import { GATEWAY_URL, STORE_URL, TOKEN_HELP, addressHelp, adminAddress } from './admin-address.js';
import { AdminClient, allRows } from './admin-client.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { ExportFolder } from './export/folder.js';
import type { ExportedQueue } from './export/exported-message.js';
import { exportPages } from './export/pages.js';
import { checkSpillFile, exportSpill } from './export/spill.js';
import { counted } from './tables.js';

const DEFAULT_URLS = { gateway: GATEWAY_URL, store: STORE_URL } as const;
const PROGRESS_MS = 200;

function exportOptions(args: Argv, kind: MemberAnswer['kind']) {
  return args
    .positional('dir', { type: 'string', demandOption: true, describe: 'folder to fill; empty, or --force' })
    .option('queue', { type: 'string', array: true, nargs: 1, requiresArg: true, describe: 'a queue by name; may be given again' })
    .option('everything', { type: 'boolean', default: false, describe: 'all queues' })
    .option('from', { type: 'string', requiresArg: true, describe: addressHelp(`the ${kind}`, DEFAULT_URLS[kind]) })
    .option('token', { type: 'string', requiresArg: true, describe: TOKEN_HELP })
    .option('force', { type: 'boolean', default: false, describe: 'into a folder that has files already' })
    .option('json', { type: 'boolean', default: false, describe: 'the counts as one JSON object' });
}

type ExportArguments = Awaited<ReturnType<ReturnType<typeof exportOptions>['parseAsync']>>;

export function storeExportCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'export <dir>',
    'write messages as .eml and envelope JSON, straight from a store; no gateway is needed, nothing is changed',
    (args) =>
      exportOptions(args, 'store')
        .option('spill', { type: 'string', requiresArg: true, describe: 'read this spill file instead of a store that runs' })
        .example('$0 store export --queue example.com mails', 'then: twinpost send --spool mails --to HOST:PORT'),
    async (args) => {
      if (args.spill !== undefined) await checkSpillFile(args.spill, { crc32, packer: new MessagePacker() });
      const run = new Export(args, context, 'store');
      if (args.spill === undefined) await run.fromStore();
      else await run.fromSpill(args.spill);
      done(run.report());
    },
  );
}

export function queueExportCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'export <dir>',
    'write messages as .eml and envelope JSON; nothing is changed',
    (args) => exportOptions(args, 'gateway').example('$0 queue export --everything mails', 'all that the gateway holds'),
    async (args) => {
      const run = new Export(args, context, 'gateway');
      await run.fromGateway();
      done(run.report());
    },
  );
}

class Export {
  readonly #args: ExportArguments;
  readonly #context: CliContext;
  readonly #packer = new MessagePacker();
  readonly #folder: ExportFolder;
  readonly #url: string;
  readonly #token: string | undefined;
  #queues = 0;
  #damage = '';
  #damagedFile = '';
  #saidMs = 0;

  constructor(args: ExportArguments, context: CliContext, kind: MemberAnswer['kind']) {
    if ((args.queue === undefined) === !args.everything) throw new CliError('which messages? --queue NAME, or --everything');
    this.#args = args;
    this.#context = context;
    const { url, token } = adminAddress(args, context, DEFAULT_URLS[kind]);
    this.#url = url;
    this.#token = token;
    this.#folder = new ExportFolder(args.dir, args.force);
  }

  async fromStore(): Promise<void> {
    const client = await this.#clientOf('store');
    for await (const row of allRows(client, (cursor) => client.storeQueues(cursor))) {
      const { owner, birth, serial } = row;
      const queue = { name: row.queue_name, queueClass: row.queue_class, owner, birth, serial };
      if (!this.#isWanted(queue)) continue;
      await this.#pages(client, queue, (next) => `/api/v1/export?${new URLSearchParams({ owner, birth: String(birth), serial: String(serial), after: next === '' ? '0' : next }).toString()}`);
    }
    this.#mustHaveFound();
  }

  async fromGateway(): Promise<void> {
    const client = await this.#clientOf('gateway');
    const { gateway } = await client.status();
    const done = new Set<string>();
    for await (const row of allRows(client, (cursor) => client.queues(cursor))) {
      // Queues of one name come together, in one folder.
      const queue = { name: row.queue_name, queueClass: row.queue_class, owner: gateway, birth: 0, serial: 0 };
      const key = JSON.stringify([queue.name, queue.queueClass]);
      if (done.has(key) || !this.#isWanted(queue)) continue;
      done.add(key);
      await this.#pages(client, queue, (next) => `/api/v1/queues/${encodeURIComponent(queue.name)}/export?${new URLSearchParams({ class: queue.queueClass, cursor: next }).toString()}`);
    }
    this.#mustHaveFound();
  }

  async fromSpill(file: string): Promise<void> {
    const { rule, queues } = await exportSpill(file, { crc32, packer: this.#packer }, (queue) => this.#isWanted(queue), this.#folder, () => { this.#progress(); });
    this.#queues = queues;
    this.#damage = rule;
    this.#damagedFile = file;
    if (rule === '') this.#mustHaveFound();
  }

  /** The counts; the exit code. */
  report(): number {
    const { terminal } = this.#context;
    const { messages, bytes, unreadable } = this.#folder;
    if (terminal.errorIsTty && !this.#args.json) terminal.error('');
    if (this.#args.json) terminal.print(JSON.stringify({ queues: this.#queues, messages, bytes, unreadable, damage: this.#damage }));
    else {
      terminal.print(`${counted(messages, 'message')} (${formatBytes(bytes)}) of ${counted(this.#queues, 'queue')} in ${this.#args.dir}`);
      if (unreadable > 0) terminal.print(`${formatCount(unreadable)} of them have an envelope that this release can't read`);
    }
    if (this.#damage !== '') terminal.error(`twinpost: ${this.#damagedFile}: the file is damaged (${this.#damage}); what stood in front of that was written`);
    return this.#damage === '' ? 0 : 1;
  }

  /** TWINPOST_ADMIN names one address, whatever is exported. */
  async #clientOf(kind: MemberAnswer['kind']): Promise<AdminClient> {
    const client = new AdminClient(this.#url, this.#token);
    const members = await client.group();
    const self = members.find((member) => member.self);
    if (self?.kind === kind) return client;
    const others = members.filter((member) => member.kind === kind).map(({ id, admin }) => (admin === null ? id : `${id} at ${admin}`));
    throw new CliError(`${this.#url} is ${self === undefined ? 'no Twinpost' : `the ${self.kind} ${self.id}`}; --from ADDRESS names a ${kind}${others.length === 0 ? '' : `: ${others.join(', ')}`}`);
  }

  async #pages(client: AdminClient, queue: ExportedQueue, path: (next: string) => string): Promise<void> {
    this.#queues += 1;
    await exportPages(this.#packer, (next) => client.entries(path(next)), queue, this.#folder, () => { this.#progress(); });
  }

  #isWanted(queue: ExportedQueue): boolean {
    return this.#args.everything || this.#args.queue?.includes(queue.name) === true;
  }

  #mustHaveFound(): void {
    if (this.#queues > 0 || this.#args.everything) return;
    throw new CliError(`there is no queue '${this.#args.queue?.join("', '") ?? ''}' there`);
  }

  #progress(): void {
    const { terminal } = this.#context;
    const nowMs = performance.now();
    if (!terminal.errorIsTty || this.#args.json || nowMs - this.#saidMs < PROGRESS_MS) return;
    this.#saidMs = nowMs;
    terminal.error(`${counted(this.#folder.messages, 'message')}, ${formatBytes(this.#folder.bytes)}\r`);
  }
}
