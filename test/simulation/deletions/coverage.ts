/**
 * Which places of the build a program executes, as V8 counts it (NODE_V8_COVERAGE, in its threads and child
 * processes too): a check that never comes to a statement cannot miss it, and need not run without it.
 * What a process that is killed has executed is not known: such a program is not asked here.
 */
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A built file, absolute, and an offset in its text. */
export interface Place {
  readonly file: string;
  readonly offset: number;
}

interface Counted {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

interface Script {
  readonly url: string;
  readonly functions: readonly { readonly ranges: readonly Counted[] }[];
}

/** Where two texts begin to differ: there a deleted statement stood. */
export function firstDifference(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return at;
}

/** Those of `places` that are executed by what `run` starts with this environment. */
export async function executedOf(
  places: readonly Place[], run: (environment: NodeJS.ProcessEnv) => Promise<unknown>,
): Promise<ReadonlySet<Place>> {
  const folder = mkdtempSync(join(tmpdir(), 'coverage-'));
  try {
    await run({ ...process.env, NODE_V8_COVERAGE: folder });
    const executed = new Set<Place>();
    for (const name of readdirSync(folder)) {
      const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as { result: readonly Script[] };
      const scripts = new Map(result.map((script) => [script.url, script]));
      for (const place of places) {
        const script = scripts.get(pathToFileURL(place.file).href);
        if (script !== undefined && isExecuted(script, place.offset)) executed.add(place);
      }
    }
    return executed;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The innermost range around an offset counts. */
function isExecuted({ functions }: Script, offset: number): boolean {
  let inner: Counted | undefined;
  for (const { ranges } of functions) {
    for (const range of ranges) {
      if (offset < range.startOffset || offset >= range.endOffset) continue;
      const length = range.endOffset - range.startOffset;
      if (inner === undefined || length <= inner.endOffset - inner.startOffset) inner = range;
    }
  }
  return inner !== undefined && inner.count > 0;
}
