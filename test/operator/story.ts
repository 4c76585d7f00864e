/**
 * A story of an operator at night: what is told, what is typed, what comes back. Each is an executable test with real
 * processes, and its section of docs/RUNBOOK.md, between marks with its name: the test fails when the section does not
 * have these words and commands. Written anew by
 *
 *     TWINPOST_WRITE_RUNBOOK=1 node dist/test/run.js operator
 *
 * and those with etcd likewise by test/thirdparty/etcd/host-drain.test.ts and local-rules.test.ts beside it.
 *
 * Output of commands stands there as it came, with ports and times of this run made plain; it is not compared.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { HOST, type Cluster, type GatewayHandle } from '../process/cluster.js';
import { twinpost } from '../process/twinpost.js';

/** Sizes that CI has no time for, and whoever has a machine for it (CONTRIBUTING.md). */
export function sized<T>(ci: T, full: T): T {
  return process.env['TWINPOST_STORY_SIZE'] === 'full' ? full : ci;
}

const RUNBOOK = fileURLToPath(new URL('../../../docs/RUNBOOK.md', import.meta.url));
const LINES_SHOWN_MAX = 14;
const COLUMNS_SHOWN_MAX = 150;

export interface Said {
  readonly code: number | null;
  readonly out: string;
  readonly error: string;
}

/** Where commands are typed. */
export interface Stage extends Pick<Cluster, 'sinkPort'> {
  /** Of the first gateway, which is asked. */
  readonly adminPort: number;
  readonly gateways: readonly Pick<GatewayHandle, 'adminPort'>[];
  /** Where and how it is asked, if not in clear. */
  readonly asked?: readonly string[];
}

export class Story {
  readonly #name: string;
  readonly #stage: Stage;
  /** Words and blocks of commands, as they stand in the document. */
  readonly #parts: { readonly text: string; readonly commands: readonly string[] }[] = [];

  /** What differs from run to run, and what stands for it in the document. */
  readonly #plainOf = new Map<string, string>();

  constructor(name: string, stage: Stage) {
    this.#name = name;
    this.#stage = stage;
  }

  /** A word of this run, in commands and outputs, stands in the document as another one. */
  call(word: string, plain: string): void {
    this.#plainOf.set(word, plain);
  }

  /** Words between commands. */
  tell(text: string): void {
    this.#parts.push({ text, commands: [] });
  }

  /**
   * `twinpost …`, asked of the first gateway. `shown`: lines of its output that the document has; default all.
   * `interrupted`: Ctrl-C is pressed then.
   */
  async type(args: readonly string[], shown: (line: string) => boolean = () => true, interrupted?: Promise<unknown>): Promise<Said> {
    const { adminPort, asked = ['--from', `${HOST}:${String(adminPort)}`] } = this.#stage;
    const said = await twinpost([...args, ...asked], '', interrupted);
    const command = this.#plain(`twinpost ${args.map((word) => (/^[\w./:=@-]+$/.test(word) ? word : `'${word}'`)).join(' ')}`);
    const lines = this.#plain(`${said.out}${said.error}`).split('\n').filter((line) => line !== '' && shown(line));
    const cut = lines.slice(0, LINES_SHOWN_MAX).map((line) => (line.length > COLUMNS_SHOWN_MAX ? `${line.slice(0, COLUMNS_SHOWN_MAX - 1)}…` : line));
    const exit = [...(interrupted === undefined ? [] : ['^C']), ...(said.code === 0 ? [] : [`[exit code ${String(said.code)}]`])];
    this.#parts.push({ text: ['```', `$ ${command}`, ...cut, ...exit, '```'].join('\n'), commands: [command] });
    return said;
  }

  /** The last word: the document tells this story, too. */
  end(): void {
    const page = readFileSync(RUNBOOK, 'utf8');
    const [begin, end] = [`<!-- ${this.#name}: begin -->`, `<!-- ${this.#name}: end -->`];
    const [from, to] = [page.indexOf(begin), page.indexOf(end)];
    assert.ok(from >= 0 && to > from, `docs/RUNBOOK.md has the marks of ${this.#name}`);
    if (process.env['TWINPOST_WRITE_RUNBOOK'] === '1') {
      const section = this.#parts.map(({ text }) => text).join('\n\n');
      writeFileSync(RUNBOOK, `${page.slice(0, from + begin.length)}\n\n${section}\n\n${page.slice(to)}`);
      return;
    }
    const section = page.slice(from, to);
    const told = this.#parts.filter(({ commands }) => commands.length === 0).map(({ text }) => text);
    for (const words of told) assert.ok(section.includes(words), `docs/RUNBOOK.md tells of ${this.#name}: ${words}`);
    const typed = [...section.matchAll(/^\$ (.*)$/gm)].map(([, command]) => command);
    assert.deepEqual(typed, this.#parts.flatMap(({ commands }) => commands), `commands of ${this.#name} in docs/RUNBOOK.md`);
  }

  /** Without what differs from run to run. */
  #plain(text: string): string {
    const { sinkPort, gateways } = this.#stage;
    let plain = text.replaceAll(`127.0.0.1[127.0.0.1]:${String(sinkPort)}`, 'mx.example.com:25').replaceAll(`127.0.0.1:${String(sinkPort)}`, 'mx.example.com:25');
    gateways.forEach(({ adminPort }, index) => { plain = plain.replaceAll(`127.0.0.1:${String(adminPort)}`, `box-${String(index + 1)}:8025`); });
    for (const [word, as] of this.#plainOf) plain = plain.replaceAll(word, as);
    return plain.replace(/\b\w+@[\w-]+: /g, 'ann@box-1: ').replace(/gateway-(\d)-\d+-\d+/g, 'gateway-$1-7-1').replace(/\bcli-[0-9a-f]{12}\b/g, 'cli-3f2a9c41b7d0');
  }
}
