/**
 * `twinpost store export` and `twinpost queue export`: messages as .eml and envelope JSON, from a store (or
 * the file that it left when it stopped) with no gateway alive, or from a gateway. Nothing is changed where
 * they come from.
 */
import type { Argv } from 'yargs';
import type { MemberAnswer } from '../admin-api/pages.js';
import { formatBytes, formatCount } from '../base/units.js';
import type { Access } from '../platform/node/admin-request.js';
import { crc32 } from '../platform/node/checksum.js';
import { MessagePacker } from '../platform/node/packer.js';
import { numberOf } from '../protocol/partition-record.js';
import { ACCESS_OPTIONS, GATEWAY_URL, STORE_URL, addressHelp, adminAddress } from './admin-address.js';
import { AdminClient, allRows } from './admin-client.js';
import type { CliContext } from './context.js';
import { CliError, UsageError } from './context.js';
import { ExportFolder } from './export/folder.js';
import type { ExportSource } from './export/exported-message.js';
import { exportPages } from './export/pages.js';
import type { EntrySource } from './export/pages.js';
import { checkSpillFile, exportSpill } from './export/spill.js';
import { text } from './options.js';
import { counted } from './tables.js';

const DEFAULT_URLS = { gateway: GATEWAY_URL, store: STORE_URL } as const;
const PROGRESS_MS = 200;

function exportOptions(args: Argv, kind: MemberAnswer['kind']) {
  return args
    .positional('dir', { type: 'string', demandOption: true, describe: 'folder to fill; empty, or --force' })
    .option('queue', {
      type: 'string', array: true, nargs: 1, requiresArg: true,
      describe: 'a queue by name; may be given again',
    })
    .option('everything', { type: 'boolean', default: false, describe: 'all queues' })
    .option('from', {
      type: 'string', requiresArg: true, describe: addressHelp(`the ${kind}`, DEFAULT_URLS[kind]),
    })
    .options(ACCESS_OPTIONS)
    .option('force', { type: 'boolean', default: false, describe: 'into a folder that has files already' })
    .option('json', { type: 'boolean', default: false, describe: 'the counts as one JSON object' });
}

type ExportArguments = Awaited<ReturnType<ReturnType<typeof exportOptions>['parseAsync']>>;

export function storeExportCommand(cli: Argv, context: CliContext, done: (code: number) => void): Argv {
  return cli.command(
    'export <dir>',
    'write messages as .eml and envelope JSON, straight from a store; no gateway is needed, nothing is '
      + 'changed',
    (args) =>
      exportOptions(args, 'store')
        .option('partition', {
          type: 'string', array: true, nargs: 1, requiresArg: true,
          describe: 'all of a partition, as gw-1/3; may be given again',
        })
        .option('spill', text('read this spill file instead of a store that runs'))
        .example(
          '$0 store export --queue example.com mails', 'then: twinpost send --spool mails --to HOST:PORT',
        ),
    async (args) => {
      if (args.spill !== undefined) await checkSpillFile(args.spill, { crc32, packer: new MessagePacker() });
      const run = new Export(args, context, 'store', args.partition);
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
    (args) => exportOptions(args, 'gateway')
      .example('$0 queue export --everything mails', 'all that the gateway holds'),
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
  readonly #partitions: readonly string[];
  readonly #url: string;
  readonly #access: Access;
  #damage = '';
  #damagedFile = '';
  #saidMs = 0;

  constructor(
    args: ExportArguments, context: CliContext, kind: MemberAnswer['kind'],
    partitions: readonly string[] = [],
  ) {
    if ((args.queue === undefined && partitions.length === 0) === !args.everything) {
      throw new UsageError(
        `which messages? --queue NAME${kind === 'store' ? ', --partition NAME' : ''}, or --everything`,
      );
    }
    this.#partitions = partitions;
    this.#args = args;
    this.#context = context;
    const { url, access } = adminAddress(args, context, DEFAULT_URLS[kind]);
    this.#url = url;
    this.#access = access;
    this.#folder = new ExportFolder(args.dir, args.force, (source, { queue_name: name, unreadable }) =>
      this.#isWanted(name, source.name, unreadable !== undefined));
  }

  async fromStore(): Promise<void> {
    const client = await this.#clientOf('store');
    for await (const row of allRows(client, (cursor) => client.storePartitions(cursor))) {
      const { partition, owner } = row;
      if (this.#args.queue === undefined && !this.#isWanted('', partition, false)) continue;
      await this.#pages({ name: partition, owner, number: numberOf(partition) }, (next) =>
        client.partitionEntries(partition, next));
    }
    this.#mustHaveFound();
  }

  async fromGateway(): Promise<void> {
    const client = await this.#clientOf('gateway');
    const { gateway } = await client.status();
    const done = new Set<string>();
    for await (const row of allRows(client, (cursor) => client.queues(cursor))) {
      // Queues of one name come together, in one folder.
      const { queue_name: name, queue_class: queueClass } = row;
      const key = JSON.stringify([name, queueClass]);
      if (done.has(key) || !this.#isWanted(name, '', false)) continue;
      done.add(key);
      await this.#pages({ name, owner: gateway, number: undefined }, (next) =>
        client.queueEntries(name, queueClass, next));
    }
    this.#mustHaveFound();
  }

  async fromSpill(file: string): Promise<void> {
    this.#damage = await exportSpill(file, { crc32, packer: this.#packer }, this.#folder, () => {
      this.#progress();
    });
    this.#damagedFile = file;
    if (this.#damage === '') this.#mustHaveFound();
  }

  /** The counts; the exit code. */
  report(): number {
    const { terminal } = this.#context;
    const { queues, messages, bytes, unreadable } = this.#folder;
    if (terminal.errorIsTty && !this.#args.json) terminal.error('');
    if (this.#args.json) {
      terminal.print(JSON.stringify({ queues, messages, bytes, unreadable, damage: this.#damage }));
    } else {
      terminal.print(`${counted(messages, 'message')} (${formatBytes(bytes)}) of ${counted(queues, 'queue')} `
        + `in ${this.#args.dir}`);
      if (unreadable > 0) {
        terminal.print(`${formatCount(unreadable)} of them have an envelope that this release can't read`);
      }
    }
    if (this.#damage !== '') {
      terminal.error(`twinpost: ${this.#damagedFile}: the file is damaged (${this.#damage}); what stood in `
        + `front of that was written`);
    }
    return this.#damage === '' ? 0 : 1;
  }

  /** TWINPOST_ADMIN names one address, whatever is exported. */
  async #clientOf(kind: MemberAnswer['kind']): Promise<AdminClient> {
    const client = new AdminClient(this.#url, this.#access);
    const members = await client.group();
    const self = members.find((member) => member.self);
    if (self?.kind === kind) return client;
    const others = members.filter((member) => member.kind === kind).map(({ id, admin }) =>
      (admin === null ? id : `${id} at ${admin}`));
    throw new CliError(
      `${this.#url} is ${self === undefined ? 'no Twinpost' : `the ${self.kind} ${self.id}`}; --from ADDRESS `
        + `names a ${kind}${others.length === 0 ? '' : `: ${others.join(', ')}`}`,
    );
  }

  async #pages(source: ExportSource, ask: EntrySource): Promise<void> {
    await exportPages(this.#packer, ask, source, this.#folder, () => { this.#progress(); });
  }

  /** What can't be read goes along with every queue: nobody can tell whose it is. */
  #isWanted(queueName: string, partition: string, isUnreadable: boolean): boolean {
    if (this.#args.everything || this.#partitions.includes(partition)) return true;
    return this.#args.queue !== undefined && (isUnreadable || this.#args.queue.includes(queueName));
  }

  #mustHaveFound(): void {
    if (this.#folder.queues > 0 || this.#args.everything) return;
    throw new CliError(
      `there is no mail of '${[...(this.#args.queue ?? []), ...this.#partitions].join("', '")}' there`,
    );
  }

  #progress(): void {
    const { terminal } = this.#context;
    const nowMs = performance.now();
    if (!terminal.errorIsTty || this.#args.json || nowMs - this.#saidMs < PROGRESS_MS) return;
    this.#saidMs = nowMs;
    terminal.error(`${counted(this.#folder.messages, 'message')}, ${formatBytes(this.#folder.bytes)}\r`);
  }
}
