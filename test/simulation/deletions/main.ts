/**
 * Deletes statements of the code that promises the most, one at a time and drawn by a seed, and asks whether
 * anything fails, in stages: the compiler and the unit tests near the file; seeds of both simulations;
 * scenarios; all unit tests; at last, processes whose links and lives are cut (of the client of etcd, the tests
 * with a real etcd). Each stage tries all that the one before did not catch, so that a run which is ended early
 * has tried each statement by the quick ones. What nothing misses is a statement that should go, or one that
 * needs a test. Which statements are drawn: statements.ts.
 *
 *     node dist/test/simulation/deletions/main.js [--seed N] [--count M] [--json FILE]
 *                                                  [--jobs J] [--sim-seeds S]
 *
 * Each try runs on a copy of the build in a folder of its own. A check that fails there is run again on the
 * build itself: it has caught the deletion only if it passes here. A hang is a failure. The compiler is
 * asked about the changed file alone. A scenario or far test that never comes to the statement is left out
 * (coverage.ts). FILE gets a line for each statement and stage; with the same FILE a run goes on where it was
 * ended. The exit code is 0 if at least 95 % of what compiles was caught.
 */
import { spawn } from 'node:child_process';
import {
  appendFileSync, cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { Prng } from '../../../src/base/prng.js';
import { numberOf, readArguments, runProgram } from '../../arguments.js';
import { Compiler } from './compiler.js';
import type { Place } from './coverage.js';
import { executedOf, firstDifference } from './coverage.js';
import type { Statement } from './statements.js';
import { statementsOf, withoutStatement } from './statements.js';

const PROJECT = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..', '..');
const FOLDERS = ['src/gateway/mirror', 'src/recovery', 'src/register', 'src/kvs/core'];
const CAUGHT_LEAST = 0.95;
const ETCD_CLIENT = 'src/register/etcd/';
const WITH_ETCD = ['contract', 'faults', 'security', 'end']
  .map((each) => `dist/test/thirdparty/etcd/etcd-${each}.test.js`);
const WITH_PROCESSES = ['link-faults', 'stream-faults', 'kill', 'heal', 'rescue', 'rolling', 'register-file']
  .map((each) => `dist/test/process/${each}.test.js`);
/** A unit test ends within seconds, a scenario or 60 seeds within one minute; the rest is for a busy machine. */
const UNIT_HANG_MS = 60_000;
const HANG_MS = 300_000;
/** One with processes within two minutes. */
const LONG_HANG_MS = 900_000;
const SHOWN_MAX = 90;
/** The build's last line, which a try has not. */
const SOURCE_MAP = /\/\/# sourceMappingURL=.*$/;

const STAGES = ['near', 'seeds', 'scenario', 'far', 'long'] as const;
type Stage = (typeof STAGES)[number];
const BY = ['compiler', 'unit', 'simulation', 'ownership', 'scenario', 'etcd', 'process'] as const;

interface Tried {
  readonly at: string;
  readonly text: string;
  /** The last one tried. */
  readonly stage: Stage;
  /** Of BY, or '' if nothing failed. */
  readonly by: (typeof BY)[number] | '';
  /** The check that failed. */
  readonly check: string;
}

interface Check {
  readonly by: (typeof BY)[number];
  /** Built program, from the root of the project, and its arguments. */
  readonly command: readonly string[];
  readonly hangMs: number;
}

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const read = (file: string): string => readFileSync(join(PROJECT, file), 'utf8');
/** Lines move as code changes, so the text belongs to what a try is known by. */
const nameOf = (tried: { readonly at: string; readonly text: string }): string => `${tried.at} ${tried.text}`;
const atOf = (statement: Statement): string => `${statement.file}:${String(statement.line)}`;

function filesBelow(folder: string, end: string): string[] {
  const names = readdirSync(join(PROJECT, folder), { recursive: true, encoding: 'utf8' }).sort();
  return names.filter((name) => name.endsWith(end)).map((name) => join(folder, name));
}

function draw(seed: number, count: number): Statement[] {
  const files = FOLDERS.flatMap((folder) => filesBelow(folder, '.ts'));
  const all = files.flatMap((file) => statementsOf(file, read(file)));
  const prng = new Prng(seed);
  const drawn: Statement[] = [];
  while (drawn.length < count && all.length > 0) drawn.push(...all.splice(prng.below(all.length), 1));
  return drawn;
}

/** Unit tests that import a file, or import what imports it; the direct ones first. */
class Importers {
  readonly #importsOf = new Map<string, ReadonlySet<string>>();

  of(file: string): string[] {
    const tests = filesBelow('test/unit', '.test.ts');
    const direct = tests.filter((test) => this.#imports(test).has(file));
    const near = tests.filter((test) => !direct.includes(test)
      && [...this.#imports(test)].some((between) => this.#imports(between).has(file)));
    return [...direct, ...near];
  }

  #imports(file: string): ReadonlySet<string> {
    const known = this.#importsOf.get(file);
    if (known !== undefined) return known;
    const names = ts.preProcessFile(read(file)).importedFiles.map(({ fileName }) => fileName);
    const inside = names.filter((name) => name.startsWith('.') && name.endsWith('.js'));
    const found = new Set(inside.map((name) => join(dirname(file), name.replace(/\.js$/, '.ts'))));
    for (const name of found) if (!existsSync(join(PROJECT, name))) found.delete(name);
    this.#importsOf.set(file, found);
    return found;
  }
}

const builtOf = (file: string): string => join('dist', file.replace(/\.ts$/, '.js'));

function checksFor(importers: Importers, file: string, stage: Stage, seeds: number): Check[] {
  const many = ['--seed', '1', '--seeds', String(seeds)];
  const each = (by: Check['by'], files: readonly string[], hangMs: number): Check[] =>
    files.map((name) => ({ by, command: [name], hangMs }));
  const near = importers.of(file);
  const isOfEtcd = file.startsWith(ETCD_CLIENT);
  switch (stage) {
    case 'near':
      return each('unit', near.map(builtOf), UNIT_HANG_MS);
    case 'far': {
      const far = filesBelow('test/unit', '.test.ts').filter((name) => !near.includes(name));
      return each('unit', far.map(builtOf), UNIT_HANG_MS);
    }
    case 'long':
      return isOfEtcd ? each('etcd', WITH_ETCD, LONG_HANG_MS) : each('process', WITH_PROCESSES, LONG_HANG_MS);
    case 'seeds':
      return isOfEtcd ? [] : [
        { by: 'simulation', command: ['dist/test/simulation/main.js', '--jobs', '1', ...many], hangMs: HANG_MS },
        { by: 'ownership', command: ['dist/test/simulation/ownership/main.js', ...many], hangMs: HANG_MS },
      ];
    case 'scenario':
      return isOfEtcd ? [] : each('scenario', filesBelow('test/scenario', '.test.ts').map(builtOf), HANG_MS);
  }
}

/** Does it end with 0, in time? */
function passes(root: string, { command, hangMs }: Check, env = process.env): Promise<boolean> {
  return new Promise((settle, reject) => {
    const args = [join(root, command[0] ?? ''), ...command.slice(1)];
    const limits = { timeout: hangMs, killSignal: 'SIGKILL' } as const;
    const child = spawn(process.execPath, args, { cwd: root, env, stdio: 'ignore', ...limits });
    child.on('error', reject);
    child.on('close', (code) => { settle(code === 0); });
  });
}

/**
 * Which of the drawn statements a check comes to: asked once a check, when the first try needs to know, and of
 * those that few statements come to. What a process that is killed came to is not known.
 */
class Reach {
  readonly #places: ReadonlyMap<Statement, Place>;
  readonly #executedBy = new Map<string, Promise<ReadonlySet<Place>>>();

  constructor(places: ReadonlyMap<Statement, Place>) {
    this.#places = places;
  }

  async mayNotice(check: Check, stage: Stage, statement: Statement): Promise<boolean> {
    const place = this.#places.get(statement);
    if ((stage !== 'scenario' && stage !== 'far') || place === undefined) return true;
    const name = check.command.join(' ');
    let executed = this.#executedBy.get(name);
    if (executed === undefined) {
      // Counting makes it slower.
      const slow = { ...check, hangMs: 2 * check.hangMs };
      executed = executedOf([...this.#places.values()], (env) => passes(PROJECT, slow, env));
      this.#executedBy.set(name, executed);
    }
    return (await executed).has(place);
  }
}

/** Where a statement begins in the build. */
function placeOf(statement: Statement, compiler: Compiler): Place {
  const whole = read(statement.file);
  const built = compiler.emitted(whole);
  const offset = firstDifference(built, compiler.emitted(withoutStatement(whole, statement)));
  return { file: join(PROJECT, builtOf(statement.file)), offset };
}

/** All that is beside dist is the project's own, by links. */
function copyProject(): string {
  const root = mkdtempSync(join(tmpdir(), 'deletion-'));
  for (const name of readdirSync(PROJECT)) {
    if (name !== 'dist' && !name.startsWith('.')) symlinkSync(join(PROJECT, name), join(root, name));
  }
  const isWanted = (name: string): boolean => !name.endsWith('.map');
  cpSync(join(PROJECT, 'dist'), join(root, 'dist'), { recursive: true, filter: isWanted });
  return root;
}

async function tryWithout(
  statement: Statement, stage: Stage, compiler: Compiler, checks: readonly Check[], reach: Reach,
): Promise<Tried> {
  const found = { at: atOf(statement), text: statement.text, stage };
  const whole = read(statement.file);
  const built = read(builtOf(statement.file)).replace(SOURCE_MAP, '');
  if (compiler.emitted(whole) !== built) {
    throw new Error(`the build has another ${statement.file} than src: run npm run build`);
  }
  const text = withoutStatement(whole, statement);
  const error = stage === 'near' ? compiler.errorIn(statement.file, text) : '';
  if (error !== '') return { ...found, by: 'compiler', check: error };
  const root = copyProject();
  try {
    writeFileSync(join(root, builtOf(statement.file)), compiler.emitted(text));
    for (const check of checks) {
      if (!await reach.mayNotice(check, stage, statement) || await passes(root, check)) continue;
      const name = check.command.join(' ');
      if (await passes(PROJECT, check)) return { ...found, by: check.by, check: name };
      say(`fails without any deletion, or is too slow: ${name}`);
    }
    return { ...found, by: '', check: '' };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Of each statement, the last stage that it was tried by. */
function knownOf(file: string): Map<string, Tried> {
  const lines = file !== '' && existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  const tries = lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Tried);
  return new Map(tries.map((tried) => [nameOf(tried), tried]));
}

function tell(tried: Tried): void {
  const by = tried.by === '' ? `not caught by ${tried.stage}` : tried.by;
  say(`${by}  ${tried.at}  ${tried.text.slice(0, SHOWN_MAX)}  ${tried.check}`);
}

function caughtOf(tries: readonly Tried[]): { readonly compiled: number; readonly caught: number } {
  const count = (by: string): number => tries.filter((tried) => tried.by === by).length;
  const compiled = tries.length - count('compiler');
  return { compiled, caught: compiled - count('') };
}

function isEnough(tries: readonly Tried[]): boolean {
  const { compiled, caught } = caughtOf(tries);
  return caught >= compiled * CAUGHT_LEAST;
}

function table(stage: Stage, tries: readonly Tried[]): void {
  const { compiled, caught } = caughtOf(tries);
  say(`\nafter ${stage}: ${String(tries.length)} drawn`);
  for (const by of BY) say(`  ${by}: ${String(tries.filter((tried) => tried.by === by).length)}`);
  say(`of what compiles: ${String(caught)} of ${String(compiled)} caught\n`);
}

async function main(): Promise<void> {
  const values = readArguments({
    seed: { type: 'string', default: '1' }, count: { type: 'string', default: '200' },
    jobs: { type: 'string', default: '1' }, 'sim-seeds': { type: 'string', default: '60' },
    json: { type: 'string', default: '' },
  });
  const seeds = numberOf('sim-seeds', values['sim-seeds'], 'whole');
  const json = values.json === '' ? '' : resolve(values.json);
  const known = knownOf(json);
  const drawn = draw(numberOf('seed', values.seed, 'whole'), numberOf('count', values.count, 'whole'));
  const compiler = new Compiler(PROJECT);
  const reach = new Reach(new Map(drawn.map((statement) => [statement, placeOf(statement, compiler)])));
  const importers = new Importers();
  const last = new Map<Statement, Tried>();
  for (const statement of drawn) {
    const before = known.get(nameOf({ at: atOf(statement), text: statement.text }));
    if (before !== undefined) last.set(statement, before);
  }
  for (const stage of STAGES) {
    const isOpen = (tried: Tried | undefined): boolean => tried === undefined
      || (tried.by === '' && STAGES.indexOf(tried.stage) < STAGES.indexOf(stage));
    const waiting = drawn.filter((statement) => isOpen(last.get(statement)));
    const work = async (): Promise<void> => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
        const checks = checksFor(importers, next.file, stage, seeds);
        const tried = await tryWithout(next, stage, compiler, checks, reach);
        last.set(next, tried);
        tell(tried);
        if (json !== '') appendFileSync(json, `${JSON.stringify(tried)}\n`);
      }
    };
    await Promise.all(Array.from({ length: numberOf('jobs', values.jobs, 'whole') }, work));
    table(stage, [...last.values()]);
  }
  process.exitCode = isEnough([...last.values()]) ? 0 : 1;
}

await runProgram('deletions', import.meta.url, main);
