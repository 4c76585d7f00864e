/**
 * The runner behind `npm test`. In this order: lint, the check of the pure floors, the sets of tests that
 * need npm alone, then the outside sets whose program is found (test/outside-sets.json). Ends with a table
 * and one plain line `N passed, N failed, N skipped`; the exit code is 0 only if something ran and nothing
 * failed. With TWINPOST_REQUIRE=all a skip is a failure, but that of a set which needs history that a clone lacks.
 *
 * Test files are listed from the sources, so that a compiled file whose source is gone never runs. Each set
 * has a bound in time; past it its processes are ended and the set has failed.
 *
 *     node dist/test/run.js [SET ...]      only these sets; 'lint' and 'floors' are sets too
 */
import { spawn } from 'node:child_process';
import { setMaxListeners } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { run } from 'node:test';
import { fileURLToPath } from 'node:url';

import type { OutsideSet } from './outside-sets.js';
import { readOutsideSets, whyNot } from './outside-sets.js';

const PROJECT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const REQUIRE_ALL = process.env['TWINPOST_REQUIRE'] === 'all';

interface Outcome {
  readonly set: string;
  state: 'run' | 'skipped';
  passed: number;
  failed: number;
  skipped: number;
  seconds: number;
  readonly packages: string;
  /** Why it was skipped, or how it ended badly. */
  note: string;
}

interface TestSet {
  readonly set: string;
  /** Folder or file below test/. */
  readonly path: string;
  /** Files at the same time. */
  readonly concurrency: number;
  readonly minutes: number;
  /** Names of files that measure, and run one at a time after the others. */
  readonly alone?: readonly string[];
}

/** They compare costs, or fill the machine themselves. */
const ALONE = ['memory', 'restart-cost'];

const OWN_SETS: readonly TestSet[] = [
  { set: 'tidy', path: 'tidy.test.ts', concurrency: 1, minutes: 2 },
  { set: 'unit', path: 'unit', concurrency: 2, minutes: 15 },
  { set: 'dialog', path: 'dialog', concurrency: 2, minutes: 5 },
  { set: 'attacks', path: 'attacks', concurrency: 2, minutes: 8 },
  { set: 'scenario', path: 'scenario', concurrency: 2, minutes: 15 },
  { set: 'simulation', path: 'simulation', concurrency: 2, minutes: 20 },
  { set: 'fuzz', path: 'fuzz', concurrency: 1, minutes: 12 },
  { set: 'process', path: 'process', concurrency: 3, minutes: 50, alone: ALONE },
  { set: 'operator', path: 'operator', concurrency: 1, minutes: 15 },
  { set: 'chaos', path: 'chaos', concurrency: 1, minutes: 7 },
];
const OUTSIDE_MINUTES = 5;
/** A file that has failed may leave sockets behind that keep its process: it must not use up its set's time. */
const FILE_MINUTES = 8;
/** After its bound a set has so long to end its processes. */
const GRACE_MS = 10_000;
const SLOW_FILE_SECONDS = 20;

/** Lines of a stack that lie inside Node: they say nothing about our fault. */
const NODE_FRAMES = /\n\s+at [^\n]*\(?node:[^\n]*/g;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

function outcomeOf(set: string, packages = ''): Outcome {
  return { set, state: 'run', passed: 0, failed: 0, skipped: 0, seconds: 0, packages, note: '' };
}

/** A check that is a program of its own: passes if it exits with 0. */
async function runCheck(set: string, script: string, args: readonly string[]): Promise<Outcome> {
  const outcome = outcomeOf(set);
  const started = performance.now();
  say(`\n== ${set}`);
  const code = await new Promise<number | null>((resolve) => {
    const child = spawn(process.execPath, [join(PROJECT, 'node_modules', script), ...args], { cwd: PROJECT, stdio: ['ignore', 'inherit', 'inherit'] });
    child.on('error', () => resolve(null));
    child.on('close', resolve);
  });
  outcome.seconds = (performance.now() - started) / 1000;
  if (code === 0) outcome.passed = 1;
  else outcome.failed = 1;
  return outcome;
}

/** The compiled tests of a folder (or one file) below test/, in a fixed order. */
function testFiles(path: string): string[] {
  const source = join(PROJECT, 'test', path);
  if (!existsSync(source)) return [];
  const names = path.endsWith('.ts') ? [''] : readdirSync(source, { recursive: true, encoding: 'utf8' });
  const isTest = (name: string): boolean => name === '' || (name.endsWith('.test.ts') && !name.split('/').includes('node_modules'));
  return names.filter(isTest).sort().map((name) => join(PROJECT, 'dist', 'test', path, name).replace(/\.ts$/, '.js'));
}

async function runTests(set: TestSet, packages = ''): Promise<Outcome> {
  const outcome = outcomeOf(set.set, packages);
  const files = testFiles(set.path);
  if (files.length === 0) {
    outcome.state = 'skipped';
    outcome.skipped = 1;
    outcome.note = 'has no tests yet';
    return outcome;
  }
  say(`\n== ${set.set} (${files.length} ${files.length === 1 ? 'file' : 'files'})`);
  const started = performance.now();
  const abort = new AbortController();
  const bound = setTimeout(() => {
    outcome.failed++;
    outcome.note = `not done after ${set.minutes} minutes`;
    abort.abort();
  }, set.minutes * 60_000);
  // The runner listens once a file; ten are what Node takes for a leak.
  setMaxListeners(files.length + 10, abort.signal);
  const slow: string[] = [];
  const isAlone = (file: string): boolean => set.alone?.includes(basename(file, '.test.js')) === true;
  const runFiles = async (some: readonly string[], concurrency: number): Promise<void> => {
    if (some.length === 0 || abort.signal.aborted) return;
    const stream = run({ files: [...some], concurrency, timeout: FILE_MINUTES * 60_000, signal: abort.signal });
    await new Promise<void>((resolve) => {
      stream.on('test:pass', (test) => notePass(outcome, test));
      stream.on('test:fail', (test) => noteFail(outcome, test));
      stream.on('test:complete', (test) => noteFile(slow, test));
      stream.on('test:stderr', (output) => void process.stderr.write(output.message));
      stream.on('close', resolve);
      stream.on('error', () => resolve());
      stream.on('end', resolve);
      abort.signal.addEventListener('abort', () => setTimeout(resolve, GRACE_MS));
      stream.resume();
    });
  };
  await runFiles(files.filter((file) => !isAlone(file)), set.concurrency);
  await runFiles(files.filter(isAlone), 1);
  clearTimeout(bound);
  if (slow.length > 0) say(`  took long in ${set.set}: ${slow.join(', ')}`);
  outcome.seconds = (performance.now() - started) / 1000;
  if (outcome.passed + outcome.failed + outcome.skipped === 0) {
    outcome.failed++;
    outcome.note = 'no test ran';
  }
  return outcome;
}

/** A file that has ended, if it took long: told, so that somebody looks why. */
function noteFile(slow: string[], { name, file, details }: TestEvent): void {
  const seconds = (details.duration_ms ?? 0) / 1000;
  if (name === file && seconds >= SLOW_FILE_SECONDS) slow.push(`${basename(name, '.test.js')} ${seconds.toFixed(0)} s`);
}

/** What the events of node:test carry, as far as it is used here. */
interface TestEvent {
  readonly name: string;
  readonly file?: string;
  readonly line?: number;
  readonly skip?: string | boolean;
  readonly todo?: string | boolean;
  readonly details: { readonly type?: string; readonly error?: unknown; readonly duration_ms?: number };
}

function notePass(outcome: Outcome, test: TestEvent): void {
  if (test.details.type === 'suite') return;
  if (test.skip !== undefined || test.todo !== undefined) {
    outcome.skipped++;
    say(`  skipped: ${test.name}`);
  } else {
    outcome.passed++;
  }
}

function noteFail(outcome: Outcome, test: TestEvent): void {
  const error = test.details.error as { failureType?: string; cause?: unknown } | undefined;
  // A parent fails with its children, which have been told already.
  if (error?.failureType === 'subtestsFailed') return;
  outcome.failed++;
  const cause = error?.cause ?? error;
  const text = (cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)).replace(NODE_FRAMES, '');
  const place = test.file === undefined ? '' : ` (${test.file.replace(`${PROJECT}/`, '')}:${test.line ?? 0})`;
  say(`\n  FAILED: ${test.name}${place}\n${text.replace(/^/gm, '    ')}\n`);
}

/** Two at a time, for most of them wait for their program; then those that fill the machine, one by one. */
async function runOutside(wanted: (set: string) => boolean): Promise<Outcome[]> {
  const sets = readOutsideSets(PROJECT).filter(({ set }) => wanted(set));
  const outcomes = new Map<string, Outcome>();
  const runAll = async (left: OutsideSet[]): Promise<void> => {
    for (let outside = left.shift(); outside !== undefined; outside = left.shift()) {
      outcomes.set(outside.set, await runOutsideSet(outside));
    }
  };
  const shared = sets.filter(({ alone = false }) => !alone);
  await Promise.all([runAll(shared), runAll(shared)]);
  await runAll(sets.filter(({ alone = false }) => alone));
  return sets.flatMap(({ set }) => outcomes.get(set) ?? []);
}

async function runOutsideSet(outside: OutsideSet): Promise<Outcome> {
  const { set, packages: installed, unpacked = [], npm, minutes = OUTSIDE_MINUTES, concurrency = 1 } = outside;
  const packages = [...installed, ...unpacked, ...(npm === undefined ? [] : [`npm:${npm}`])].join(' ');
  const reason = whyNot(outside);
  if (reason !== '') return { ...outcomeOf(set, packages), state: 'skipped', skipped: 1, note: reason };
  return runTests({ set, path: join('thirdparty', set), concurrency, minutes }, packages);
}

function printTable(outcomes: readonly Outcome[]): void {
  const rows = outcomes.map((outcome) => [
    outcome.set,
    outcome.state === 'run' ? 'run' : 'skipped',
    String(outcome.passed),
    String(outcome.failed),
    String(outcome.skipped),
    outcome.seconds.toFixed(1),
    outcome.packages === '' ? '-' : outcome.packages,
    outcome.note,
  ]);
  const table = [['set', 'state', 'passed', 'failed', 'skipped', 'seconds', 'Debian package', ''], ...rows];
  const widths = table[0]?.map((_title, column) => Math.max(...table.map((row) => (row[column] ?? '').length))) ?? [];
  say('');
  for (const row of table) say(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ').trimEnd());
}

async function main(): Promise<void> {
  const only = process.argv.slice(2);
  const wanted = (set: string): boolean => only.length === 0 || only.includes(set);
  const outcomes: Outcome[] = [];
  const lintArguments = ['--max-warnings', '0', 'src', 'test', 'bench'];
  // Each keeps one processor busy.
  outcomes.push(...(await Promise.all([
    ...(wanted('lint') ? [runCheck('lint', 'eslint/bin/eslint.js', lintArguments)] : []),
    ...(wanted('floors') ? [runCheck('floors', 'typescript/bin/tsc', ['-p', 'tsconfig.pure.json'])] : []),
  ])));
  for (const set of OWN_SETS) {
    if (!wanted(set.set)) continue;
    const outcome = await runTests(set);
    // A set of ours without tests is not there yet: nothing of it was skipped.
    if (outcome.state === 'run') outcomes.push(outcome);
  }
  outcomes.push(...(await runOutside(wanted)));
  printTable(outcomes);
  const sum = (of: (outcome: Outcome) => number): number => outcomes.reduce((total, outcome) => total + of(outcome), 0);
  const passed = sum((outcome) => outcome.passed);
  const failed = sum((outcome) => outcome.failed);
  const skipped = sum((outcome) => outcome.skipped);
  if (REQUIRE_ALL && skipped > 0) say('\nTWINPOST_REQUIRE=all: a skip is a failure');
  say(`\n${passed} passed, ${failed} failed, ${skipped} skipped`);
  process.exitCode = failed > 0 || passed === 0 || (REQUIRE_ALL && skipped > 0) ? 1 : 0;
}

await main();
// A test process that hangs on must not keep the result back.
setTimeout(() => process.exit(), GRACE_MS).unref();
