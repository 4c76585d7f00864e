/**
 * The last step of a build: puts the program and what it imports into few files, dist/bundle, for most of
 * what a process needs to start is finding and reading 700 small ones (docs/decisions/0048). Tests of single
 * parts import the parts; whoever runs the program runs the bundle.
 */
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const BUILT = new URL('..', import.meta.url);
const BUNDLE = fileURLToPath(new URL('../bundle/', BUILT));

/** The program, and the threads that it starts by the names of their files. */
const ENTRIES = [
  'bin/twinpost.js',
  'gateway/inbound/hooks/node/thread-entry.js',
  'gateway/inbound/sender-checks/node/check-thread-entry.js',
  'gateway/returned/node/report-entry.js',
];

// Chunks are named by their content: those of the build before would stay.
rmSync(BUNDLE, { recursive: true, force: true });
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
