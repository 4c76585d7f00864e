/** The programs among the tests, `npm run simulate` and `npm run chaos`: what they say to arguments they don't know. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const BOUND_MS = 30_000;

function run(file: string, ...args: readonly string[]): { readonly code: number | null; readonly out: string; readonly error: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [fileURLToPath(new URL(file, import.meta.url)), ...args], { encoding: 'utf8', timeout: BOUND_MS });
  return { code: status, out: stdout, error: stderr };
}

const BAD: readonly (readonly [file: string, args: readonly string[], line: RegExp])[] = [
  ['../simulation/main.js', ['--seed', 'x'], /^simulate: --seed takes a whole number, got 'x'; --help shows what there is\n$/],
  ['../simulation/main.js', ['--seeds', ''], /^simulate: --seeds takes a whole number, got ''; /],
  ['../simulation/main.js', ['--sede', '3'], /^simulate: Unknown option '--sede'; /],
  ['../simulation/main.js', ['12'], /^simulate: Unexpected argument '12'; /],
  ['../chaos/main.js', ['--minutes', 'x'], /^chaos: --minutes takes a number above 0, got 'x'; /],
  ['../chaos/main.js', ['--minutes'], /^chaos: Option '--minutes <value>' argument missing; /],
  ['../chaos/main.js', ['--kinds', 'kill gateway,kill time'], /^chaos: --kinds: there is no 'kill time'; there are kill gateway, /],
];

describe('the programs of the tests', () => {
  for (const [file, args, line] of BAD) {
    test(`say in one line what is wrong with "${args.join(' ')}"`, () => {
      const { code, out, error } = run(file, ...args);
      assert.deepEqual([code, out], [2, '']);
      assert.match(error, line);
      assert.equal(error.split('\n').length, 2, error);
    });
  }

  for (const [file, option] of [['../simulation/main.js', '--keep-going'], ['../chaos/main.js', '--minutes']] as const) {
    test(`show with --help what there is: ${option}`, () => {
      const { code, out, error } = run(file, '--help');
      assert.deepEqual([code, error], [0, '']);
      assert.ok(out.includes(option) && out.includes('npm run '), out);
      assert.doesNotMatch(out, /^ ?\*|import /m);
    });
  }
});
