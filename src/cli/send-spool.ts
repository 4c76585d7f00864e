/**
 * `twinpost send --spool DIR`: submits what `store export` or `queue export` wrote, in the order of its
 * names. To whom: export/spool-plan.ts.
 *
 *   NAME.json ─ all taken ─► NAME.sent    ─ some taken ─► NAME.json, those `sent`    ─ else ─► as it was
 *
 * Also one of which a report is owed stays: nobody makes that. A second run sends only what is left, and
 * knows by `sent_to` to which lists, that stand in several files, the first has sent. A process that is
 * killed between the server's 250 and the rename sends that one message again (RFC 1047: better twice than
 * never); of a list that stands in several files, maybe for each that is left.
 */
import { readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { formatCount } from '../base/units.js';
import { Sessions } from '../load/session.js';
import type { Target } from '../load/session.js';
import { SpoolClient, SpoolLost } from '../load/spool-client.js';
import type { SpoolMessage } from '../load/spool-client.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import type { AliasChoice, PlannedRecipient, SpooledRecipient } from './export/spool-plan.js';
import { SENT, SpoolPlanner, isUnfinished } from './export/spool-plan.js';
import { counted } from './tables.js';

/** A path may hold nearly anything, but no control character: that would be a command of its own. */
const address = z.string().max(1024).regex(/^[^\u0000-\u001f\u007f]*$/);
/** xtext and parameters (RFC 3461 4): visible ASCII. */
const parameter = z.string().max(1024).regex(/^[\x21-\x7e]+$/);
const notify = z.string().regex(/^(NEVER|(SUCCESS|FAILURE|DELAY)(,(SUCCESS|FAILURE|DELAY))*)$/).optional();
const recipient = z.looseObject({
  address: address.min(1),
  state: z.string(),
  notify,
  orcpt: parameter.optional(),
  alias: z.object({
    address: address.min(1).optional(), notify, keeps: z.literal(true).optional(),
  }).optional(),
  sent_to: address.optional(),
});
const envelope = z.looseObject({
  sender: address,
  recipients: z.array(recipient).max(100_000),
  ret: z.enum(['FULL', 'HDRS']).optional(),
  envid: parameter.optional(),
  flags: z.array(z.string()).prefault([]),
  queue_id: z.string().optional(),
  unreadable: z.unknown().optional(),
});
type EnvelopeFile = z.output<typeof envelope>;

/** A server that takes no connection so many times in a row is down. */
const CONNECT_FAILURES_MAX = 3;

export interface SendSpoolOptions {
  readonly folder: string;
  readonly to: Target;
  /** What is done with mail that an alias led on; undefined: it stays. */
  readonly aliases: AliasChoice | undefined;
  readonly timeoutMs: number;
  readonly json: boolean;
}

/** Answers the exit code: 0 when nothing is left to send. Rejects when `to` can't be used. */
export async function sendSpool(options: SendSpoolOptions, context: CliContext): Promise<number> {
  return await new SpoolRun(options, context).run();
}

class SpoolRun {
  readonly #options: SendSpoolOptions;
  readonly #context: CliContext;
  readonly #sessions: Sessions;
  readonly #planner: SpoolPlanner;
  #client: SpoolClient | undefined;
  #connectFailures = 0;
  #sent = 0;
  #failed = 0;
  #nothing = 0;

  constructor(options: SendSpoolOptions, context: CliContext) {
    this.#options = options;
    this.#context = context;
    this.#planner = new SpoolPlanner(options.aliases);
    this.#sessions = new Sessions(options.to, 'localhost', options.timeoutMs);
  }

  async run(): Promise<number> {
    const { folder, aliases } = this.#options;
    const files = listSpool(folder, '.json');
    if (aliases === 'original') this.#lookAt([...files, ...listSpool(folder, '.sent')]);
    let left: readonly string[];
    try {
      left = await this.#sendAll(files);
    } finally {
      await this.#client?.quit();
    }
    for (const file of left) this.#lookAgainAt(file);
    this.#report();
    return this.#failed === 0 ? 0 : 1;
  }

  /** Answers those of which something is left. */
  async #sendAll(files: readonly string[]): Promise<readonly string[]> {
    const left: string[] = [];
    for (const file of files) {
      if (this.#context.stopSignal.aborted || this.#connectFailures >= CONNECT_FAILURES_MAX) {
        this.#failed += 1;
        continue;
      }
      const trouble = await this.#sendFile(file);
      if (trouble === '') continue;
      this.#failed += 1;
      left.push(file);
      this.#context.terminal.error(`${file}: not sent: ${trouble.replaceAll('\n', ' ')}`);
    }
    return left;
  }

  /** A list stands in the files of several queues: what was asked of it, in one of them. */
  #lookAt(files: readonly string[]): void {
    for (const file of files) {
      const parsed = readEnvelope(file);
      if (typeof parsed !== 'string') this.#planner.look(parsed.queue_id ?? file, parsed.recipients);
    }
  }

  /** What was refused as one file asked for it may have been taken as a later one did. */
  #lookAgainAt(file: string): void {
    const parsed = readEnvelope(file);
    if (typeof parsed === 'string') return;
    const { recipients, covered, troubles } = this.#planner.plan(parsed.queue_id ?? file, parsed.recipients);
    if (covered.length === 0) return;
    this.#mark(file, parsed, new Set(covered));
    if (recipients.length > 0 || troubles.length > 0) return;
    this.#failed -= 1;
    this.#sent += 1;
    this.#context.terminal.error(`${file}: sent after all, with another file of its message`);
  }

  /** '' when the server has taken all that was to be sent, and no report is owed; else why not. */
  async #sendFile(file: string): Promise<string> {
    const parsed = readEnvelope(file);
    if (typeof parsed === 'string') return parsed;
    if (parsed.unreadable !== undefined) return 'its envelope could not be read when it was exported';
    if (!parsed.recipients.some(isUnfinished)) {
      this.#nothing += 1;
      return '';
    }
    const message = parsed.queue_id ?? file;
    const { recipients, covered, troubles } = this.#planner.plan(message, parsed.recipients);
    const done = new Set(covered);
    const trouble = recipients.length === 0 ? '' : await this.#submit(file, parsed, recipients, (taken) => {
      this.#planner.onTaken(message, taken);
      for (const one of taken.standsFor) done.add(one);
    });
    if (done.size > 0) this.#mark(file, parsed, done);
    const why = [trouble, ...troubles].filter((text) => text !== '').join('; ');
    if (why === '') this.#sent += 1;
    return why;
  }

  /** As #sendFile(), of these recipients. */
  async #submit(
    file: string, parsed: EnvelopeFile, recipients: readonly PlannedRecipient[],
    onTaken: (taken: PlannedRecipient) => void,
  ): Promise<string> {
    let content: Uint8Array;
    try {
      content = readFileSync(file.replace(/\.json$/, '.eml'));
    } catch (error) {
      return `its .eml can't be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`;
    }
    const client = await this.#connected();
    if (typeof client === 'string') return client;
    const result = await client.send(messageOf(parsed, recipients, content));
    if (result.lost) {
      client.destroy();
      this.#client = undefined;
    }
    for (const index of result.taken) {
      const taken = recipients[index];
      if (taken !== undefined) onTaken(taken);
    }
    return result.trouble;
  }

  /** What the server has taken is never sent again. */
  #mark(file: string, parsed: EnvelopeFile, taken: ReadonlySet<SpooledRecipient>): void {
    const recipients = parsed.recipients.map((one) =>
      (taken.has(one) ? { ...one, state: SENT, sent_to: this.#planner.addressOf(one) } : one));
    const isOver = !recipients.some(isUnfinished);
    const temporary = `${file}.tmp`;
    const whyUnwritten = whyNotDone(() => {
      const text = JSON.stringify({ ...parsed, recipients }, undefined, 1);
      writeFileSync(temporary, `${text}\n`, { mode: 0o600 });
      renameSync(temporary, file);
    });
    // A full disk takes another name all the same: else each run would send it again.
    const why = isOver
      ? whyNotDone(() => { renameSync(file, file.replace(/\.json$/, '.sent')); }) : whyUnwritten;
    if (why === '') return;
    const whom = [...taken].map((one) => `<${one.address}>`).join(', ');
    throw new CliError(`${file}: the server has taken it for ${whom}, and the file can't say so (${why}): `
      + 'each run would send that again. Make the folder writable, and set the state of these to "sent"');
  }

  async #connected(): Promise<SpoolClient | string> {
    const { host, port } = this.#options.to;
    try {
      this.#client ??= await SpoolClient.open(this.#sessions);
      this.#connectFailures = 0;
      return this.#client;
    } catch (error) {
      if (!(error instanceof SpoolLost)) throw error;
      this.#connectFailures += error.isHopeless ? CONNECT_FAILURES_MAX : 1;
      return `no connection to ${host}:${String(port)}: ${error.message}`;
    }
  }

  #report(): void {
    const { terminal } = this.#context;
    if (this.#options.json) {
      terminal.print(JSON.stringify({
        sent: this.#sent, failed: this.#failed, nothing_to_send: this.#nothing,
      }));
    } else {
      const rest = this.#nothing === 0 ? '' : `; ${formatCount(this.#nothing)} had no recipient left to try`;
      terminal.print(`sent ${counted(this.#sent, 'message')}, ${formatCount(this.#failed)} left${rest}`);
    }
  }
}

/** '' when it is done. */
function whyNotDone(act: () => void): string {
  try {
    act();
    return '';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

/** All such files below the folder, in the order of their names. */
function listSpool(folder: string, ending: string): readonly string[] {
  let names: string[];
  try {
    names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  } catch (error) {
    throw new CliError(`${folder} can't be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
  return names.filter((name) => name.endsWith(ending)).sort().map((name) => path.join(folder, name));
}

function readEnvelope(file: string): EnvelopeFile | string {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    return error instanceof SyntaxError
      ? 'no JSON' : `it can't be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`;
  }
  const parsed = envelope.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.slice(0, 3).map((issue) => `${issue.path.join('.')}: ${issue.message}`);
  return `no envelope: ${issues.join('; ')}`;
}

function messageOf(
  parsed: EnvelopeFile, recipients: readonly PlannedRecipient[], content: Uint8Array,
): SpoolMessage {
  return {
    sender: parsed.sender, recipients, ret: parsed.ret, envid: parsed.envid, content,
    is8bit: parsed.flags.includes('8bitmime'),
    requiresTls: parsed.flags.includes('requiretls'),
    isUtf8: parsed.flags.includes('smtputf8')
      || [parsed.sender, ...recipients.map((one) => one.address)].some(isInternational),
  };
}

function isInternational(address: string): boolean {
  return /[^\0-\x7f]/.test(address);
}

