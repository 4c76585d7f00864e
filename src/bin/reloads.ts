/**
 * A process reads its configuration again (docs/RELOAD.md): by SIGHUP, by `config reload`, by the admin HTTP.
 *
 *   asked ─► read and checked whole ─► compared ─► made ready ─► in force, all of it in one step
 *                   └ wrong              └ a key       └ can't be had: a port, a file, a route with mail
 *                                          that needs
 *                                          a restart ─► refused: nothing has changed; logged, shown by status
 *
 * One after another; who asks while one waits for its turn gets its answer. Not here: what follows the new
 * configuration (gateway/daemon/gateway-daemon.ts, kvs/daemon/store-daemon.ts), and how workers do it
 * together (worker-reloads.ts).
 */
import type { Order } from '../admin-api/orders.js';
import { cutText } from '../base/cut-text.js';
import { errorText } from '../base/error-text.js';
import type { FileReadAgain, RoleFile } from '../cli/context.js';
import type { KeysInFile, KeysOfRole } from '../config/changes.js';
import type { Path } from '../config/keys/key.js';
import { pathText } from '../config/problems.js';
import type { Renewal } from '../gateway/inbound/listener.js';
import { NotFollowed } from '../gateway/daemon/not-followed.js';
import type { EventLog } from '../platform/ports.js';
import type { ReloadComparison, ReloadEffects, ReloadOutcome } from '../platform/reloads.js';
import { NO_EFFECTS } from '../platform/reloads.js';

const IN_FORCE = 'the configuration was read again and is in force';
const REFUSED = 'the configuration was read again and is refused: the one before stays in force';

/** Of a file that is in force: they go to whoever has asked, and config check has all. */
const WARNINGS_MAX = 20;
const WARNING_BYTES_MAX = 1000;

/** Who is to go by another configuration. */
export interface ReloadTarget<C> {
  /** Rejects when it can't; nothing has changed until use(). */
  prepare(file: RoleFile<C>): Promise<Renewal>;
  /** For status. */
  refused(why: string): void;
}

type Place = Pick<FileReadAgain<unknown>, 'place'>;

interface ReloadsPorts<C> {
  readonly log: EventLog;
  readonly keysOf: KeysOfRole;
  /** What `config check` warns of; of a file that was found to be good. */
  readonly warningsOf: (file: FileReadAgain<C>) => readonly string[];
  readonly target: ReloadTarget<C>;
  /** What was ready could not be put in force: an error of our own, after which nothing is sure. */
  onBroken(error: unknown): void;
}

/** Ready to be put in force. */
export interface ReadyReload extends Renewal {
  warnings(): readonly string[];
  readonly changed: readonly string[];
  readonly hash: string;
}

export class Reloads<C> {
  readonly #ports: ReloadsPorts<C>;
  readonly #again: () => FileReadAgain<C>;
  /** Of what is in force. */
  #keys: KeysInFile;
  #running: Promise<unknown> = Promise.resolve();
  /** Has not begun: it serves all who ask until it does. */
  #waiting: { readonly orders: Order[]; readonly outcome: Promise<ReloadOutcome> } | undefined;
  #comparing: Promise<unknown> = Promise.resolve();
  /** Has not begun: as above. */
  #comparison: Promise<ReloadComparison> | undefined;

  constructor({ again, keys }: RoleFile<C>, ports: ReloadsPorts<C>) {
    this.#again = again;
    this.#keys = keys;
    this.#ports = ports;
  }

  /** Of what is in force. */
  get hash(): string {
    return this.#ports.keysOf.hash(this.#keys);
  }

  reload(order: Order): Promise<ReloadOutcome> {
    if (this.#waiting !== undefined) {
      this.#waiting.orders.push(order);
      return this.#waiting.outcome;
    }
    const orders = [order];
    const outcome = this.#running.then(() => {
      this.#waiting = undefined;
      const running = this.#reload(orders);
      this.#running = running;
      return running;
    });
    this.#waiting = { orders, outcome };
    return outcome;
  }

  /** Or why not, beginning with FILE:LINE where it is about one. */
  async prepare(): Promise<ReadyReload | string> {
    try {
      const read = this.#read();
      if (read.why !== '') return read.why;
      const { file, changed } = read;
      const renewal = await placed(file, this.#ports.target.prepare(file));
      return this.#ready(file, changed, renewal);
    } catch (error) {
      return firstOf(errorText(error));
    }
  }

  /** What prepare() would find, without a port that is opened for it. One at a time: anybody may ask. */
  compare(effects: (file: RoleFile<C>) => Promise<ReloadEffects>): Promise<ReloadComparison> {
    this.#comparison ??= this.#comparing.then(() => {
      this.#comparison = undefined;
      const comparing = this.#compare(effects);
      this.#comparing = comparing;
      return comparing;
    });
    return this.#comparison;
  }

  async #compare(effects: (file: RoleFile<C>) => Promise<ReloadEffects>): Promise<ReloadComparison> {
    let changed: readonly string[] = [];
    try {
      const read = this.#read();
      changed = read.changed;
      if (read.why !== '') return { why: read.why, changed, warnings: [], ...NO_EFFECTS };
      const found = await placed(read.file, effects(read.file));
      return { why: '', changed, warnings: this.#warningsOf(read.file), ...found };
    } catch (error) {
      return { why: firstOf(errorText(error)), changed, warnings: [], ...NO_EFFECTS };
    }
  }

  /** Throws when the file is bad; `why`: a key of it needs a restart. */
  #read(): { readonly file: FileReadAgain<C>; readonly changed: readonly string[]; readonly why: string } {
    const file = this.#again();
    const { changed, needRestart } = this.#ports.keysOf.changes(this.#keys, file.keys);
    return { file, changed, why: needRestart.length === 0 ? '' : restartText(file, needRestart) };
  }

  #ready(file: FileReadAgain<C>, changed: readonly string[], { use, drop }: Renewal): ReadyReload {
    const { keys } = file;
    return {
      changed, drop, hash: this.#ports.keysOf.hash(keys), warnings: () => this.#warningsOf(file),
      use: () => {
        try {
          use();
        } catch (error) {
          this.#ports.onBroken(error);
        }
        this.#keys = keys;
      },
    };
  }

  /** One outcome: each who has ordered it is in the log. */
  async #reload(orders: readonly Order[]): Promise<ReloadOutcome> {
    const { log, target } = this.#ports;
    const ready = await this.prepare();
    if (typeof ready === 'string') {
      for (const { reason, who } of orders) log.error('reload', REFUSED, { why: ready, reason, who });
      target.refused(ready);
      return { why: ready, changed: [], warnings: [] };
    }
    const { changed, hash, warnings } = ready;
    ready.use();
    for (const { reason, who } of orders) {
      log.info('reload', IN_FORCE, { configuration: hash, changed: [...changed], reason, who });
    }
    return { why: '', changed, warnings: warnings() };
  }

  /** Files may be gone since they were judged: that refuses nothing. */
  #warningsOf(file: FileReadAgain<C>): readonly string[] {
    let lines: readonly string[];
    try {
      lines = this.#ports.warningsOf(file);
    } catch (error) {
      lines = [`warnings can't be told: ${errorText(error)}`];
    }
    const more = lines.length - WARNINGS_MAX;
    return [
      ...lines.slice(0, WARNINGS_MAX).map((line) => cutText(line, WARNING_BYTES_MAX)),
      ...(more > 0 ? [`and ${String(more)} more warnings: twinpost config check FILE`] : []),
    ];
  }
}

/** What is about a key names its place. */
async function placed<T>({ place }: Place, made: Promise<T>): Promise<T> {
  try {
    return await made;
  } catch (error) {
    if (!(error instanceof NotFollowed)) throw error;
    throw new Error(`${place(error.key)}: ${pathText(error.key)}: ${error.message}`);
  }
}

/** Of a file with many mistakes. */
function firstOf(text: string): string {
  const [first = '', ...more] = text.split('\n');
  return more.length === 0 ? first : `${first} (and ${String(more.length)} more: twinpost config check FILE)`;
}

function restartText({ place }: Place, paths: readonly Path[]): string {
  const [first = []] = paths;
  const names = [...new Set(paths.map(pathText))];
  return `${place(first)}: ${names.join(', ')}: expected what this process began with, found a `
    + 'change: that needs a restart';
}
