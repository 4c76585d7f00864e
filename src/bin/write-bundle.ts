/**
 * The last step of a build: puts the program and what it imports into few files, dist/bundle, for most of
 * what a process needs to start is finding and reading 700 small ones (docs/decisions/0048). Tests of single
 * parts import the parts; whoever runs the program runs the bundle.
 */
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const BUILT = new URL('..', import.meta.url);
const BUNDLE = fileURLToPath(new URL('../bundle/', BUILT));

/** The files of one build are written within. */
const BUILD_MS = 60_000;

/** The program, and the threads that it starts by the names of their files. */
const ENTRIES = [
  'bin/twinpost.js',
  'gateway/explain/sender-thread-entry.js',
  'gateway/look/node/log-thread-entry.js',
  'gateway/inbound/hooks/node/thread-entry.js',
  'gateway/inbound/sender-checks/node/check-thread-entry.js',
  'gateway/returned/node/report-entry.js',
];

/**
 * Chunks are named by their content. Those of the build before stay: a process that was started from it may
 * load one yet, for a build in place comes before the restart. Older ones go.
 */
function dropOlder(): void {
  const before = statSync(join(BUNDLE, 'twinpost.js'), { throwIfNoEntry: false })?.mtimeMs;
  if (before === undefined) return;
  for (const name of readdirSync(BUNDLE)) {
    const file = join(BUNDLE, name);
    if (statSync(file).mtimeMs < before - BUILD_MS) rmSync(file);
  }
}

dropOlder();
await build({
  entryPoints: ENTRIES.map((entry) => fileURLToPath(new URL(entry, BUILT))),
  entryNames: '[name]',
  outdir: BUNDLE,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20',
  // It finds its compiled part by its own place.
  external: ['msgpackr'],
  // What CommonJS packages ask for at run time.
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module';\n"
      + 'const require = requireFrom(import.meta.url);',
  },
  sourcemap: true,
  logLevel: 'warning',
});
