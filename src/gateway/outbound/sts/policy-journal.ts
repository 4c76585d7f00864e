/**
 * MTA-STS policies in a file of state_dir: a restart knows whose mail must not go in clear, before the DNS
 * and the domains' servers are asked again. Who keeps and uses them: sts-policies.ts.
 *
 *   mta-sts.policies   a line a policy: CRC-32 of the rest, domain, id, mode, when it was fetched
 *                      (milliseconds since 1970), max_age, names of hosts; mode "-": there is none any more.
 *                      Of lines of one domain the last counts. Appended; written anew, aside, when most of it
 *                      no longer counts
 *
 * One file and no file a domain: it is read in one go at the start, and takes no block of the disk for each
 * (docs/decisions/0035). A line that is damaged counts as not there. Writes wait in memory for the one under
 * way; what a crash loses is fetched again.
 */
import { open, rename } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { errorText } from '../../../base/error-text.js';
import { OnceInAWhile } from '../../../base/once-in-a-while.js';
import { makeFolder } from '../../../platform/node/make-folder.js';
import { syncFolder } from '../../../platform/node/sync-folder.js';
import type { Clock, EventLog } from '../../../platform/ports.js';
import { eachLine, sealedLine, unsealed } from '../../local/sealed-lines.js';
import { POLICY_BYTES_MAX } from '../pure/sts-policy.js';
import type { StsPolicy } from '../pure/sts-policy.js';

/** As it was had. */
export interface FetchedPolicy {
  readonly domain: string;
  /** Of the record that led to it. */
  readonly id: string;
  readonly policy: StsPolicy;
  readonly fetchedWallMs: number;
}

export interface PolicyJournalPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  /** All that count now, for a file written anew. */
  all(): Iterable<FetchedPolicy>;
}

const FILE = 'mta-sts.policies';
/** Nothing of ours grows so. */
const BOUNDS = { lineCharactersMax: POLICY_BYTES_MAX + 1024, fileBytesMax: 512 * 1024 * 1024 };
/** Lines that no longer count and are borne. */
const STALE_LINES_MIN = 1000;
/** Of a file written anew, at once. */
const LINES_AT_ONCE = 1000;
const TOLD_EVERY_MS = 60_000;
const GONE = '-';
const PLAIN = /^[!-~]+$/;

export class PolicyJournal {
  readonly #file: string;
  readonly #stateDir: string;
  readonly #ports: PolicyJournalPorts;
  readonly #telling = new OnceInAWhile(TOLD_EVERY_MS);
  #lines: string[] = [];
  /** It ends in the middle of a line, as far as is known: a crash has cut it, or a full disk. */
  #isCut = false;
  /** In the file. */
  #lineCount = 0;
  #liveCount = 0;
  #writing: Promise<void> | undefined;

  constructor(stateDir: string, ports: PolicyJournalPorts) {
    this.#stateDir = stateDir;
    this.#file = join(stateDir, FILE);
    this.#ports = ports;
  }

  /**
   * Before put(); once, or until it gives true: the file was read, or there is none. `take` hears of each in
   * the order of the file; undefined: there is none any more.
   */
  async load(take: (domain: string, fetched: FetchedPolicy | undefined) => void): Promise<boolean> {
    let damaged = 0;
    const onLine = (line: string): void => {
      this.#lineCount++;
      const read = readLine(line);
      if (read === undefined) damaged++;
      else take(read.domain, 'policy' in read ? read : undefined);
    };
    try {
      this.#isCut = await eachLine(this.#file, BOUNDS, onLine);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
        this.#tell('can not be read', errorText(error));
        return false;
      }
    }
    if (this.#isCut) damaged++;
    if (damaged > 0) this.#tell('is damaged in places, whose policies are fetched again', `${damaged} lines`);
    return true;
  }

  /** `liveCount`: domains that have one now. */
  put(fetched: FetchedPolicy, liveCount: number): void {
    const { domain, id, policy: { mode, mx, maxAgeS }, fetchedWallMs } = fetched;
    this.#add([domain, id, mode, fetchedWallMs, maxAgeS, mx.join(',')].join(' '), domain, liveCount);
  }

  drop(domain: string, liveCount: number): void {
    this.#add(`${domain} ${GONE}`, domain, liveCount);
  }

  /** When all is written. */
  async flushed(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  #add(rest: string, domain: string, liveCount: number): void {
    if (!PLAIN.test(domain)) return;
    this.#lines.push(sealedLine(rest));
    this.#liveCount = liveCount;
    this.#writing ??= this.#write();
  }

  async #write(): Promise<void> {
    // What else this turn brings goes along.
    await Promise.resolve();
    try {
      while (this.#lines.length > 0) {
        const count = this.#lineCount + this.#lines.length;
        if (count > 2 * this.#liveCount + STALE_LINES_MIN) await this.#writeAnew();
        else await this.#append();
      }
    } catch (error) {
      this.#lines = [];
      this.#tell('can not be written; policies are known until this process ends', errorText(error));
    }
    this.#writing = undefined;
  }

  async #append(): Promise<void> {
    makeFolder(this.#stateDir);
    const lines = this.#isCut ? ['\n', ...this.#lines] : this.#lines;
    this.#lines = [];
    const handle = await open(this.#file, 'a', 0o600);
    await writeAndClose(handle, async () => {
      this.#isCut = true;
      await handle.writeFile(lines.join(''));
      this.#isCut = false;
    });
    this.#lineCount += lines.length;
  }

  async #writeAnew(): Promise<void> {
    makeFolder(this.#stateDir);
    // They are among all that count, or do not count any more.
    this.#lines = [];
    const handle = await open(`${this.#file}.new`, 'w', 0o600);
    let count = 0;
    await writeAndClose(handle, async () => {
      let text: string[] = [];
      for (const { domain, id, policy: { mode, mx, maxAgeS }, fetchedWallMs } of this.#ports.all()) {
        if (!PLAIN.test(domain)) continue;
        text.push(sealedLine([domain, id, mode, fetchedWallMs, maxAgeS, mx.join(',')].join(' ')));
        count++;
        if (text.length < LINES_AT_ONCE) continue;
        await handle.writeFile(text.join(''));
        text = [];
      }
      await handle.writeFile(text.join(''));
      await handle.sync();
    });
    await rename(`${this.#file}.new`, this.#file);
    await syncFolder(this.#stateDir);
    this.#lineCount = count;
    this.#isCut = false;
  }

  #tell(what: string, why: string): void {
    const { clock, log } = this.#ports;
    if (!this.#telling.isDue(clock.nowMs())) return;
    log.warn('mta-sts', `the file of policies ${what}`, { file: this.#file, why });
  }
}

async function writeAndClose(handle: FileHandle, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } finally {
    await handle.close();
  }
}

function readLine(line: string): FetchedPolicy | { readonly domain: string } | undefined {
  const rest = unsealed(line);
  if (rest === undefined) return undefined;
  const [domain = '', id = '', mode, fetched, maxAge, mx = ''] = rest.split(' ');
  if (id === GONE) return { domain };
  if (mode !== 'enforce' && mode !== 'testing' && mode !== 'none') return undefined;
  const policy = { mode, mx: mx === '' ? [] : mx.split(','), maxAgeS: Number(maxAge) } as const;
  return { domain, id, policy, fetchedWallMs: Number(fetched) };
}
