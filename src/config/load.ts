/**
 * Reads one YAML file into a frozen Config, or into the list of all that is wrong with it, one line each:
 * `FILE:LINE: path: expected …, found …`. Steps: YAML → keys/schema.ts (single values) → checks.ts (rules
 * between them) → build.ts (typed result). A step runs only if the one before found nothing.
 */
import { readFileSync, statSync } from 'node:fs';
import type { Stats } from 'node:fs';
import path from 'node:path';
import { LineCounter, parseDocument } from 'yaml';
import type { Document } from 'yaml';
import { buildConfig } from './build.js';
import type { KeysInFile } from './changes.js';
import { checkFile } from './checks.js';
import type { Path } from './keys/key.js';
import { fileSchema } from './keys/schema.js';
import { Problems, bareWord, lineOf, mayHaveSecret, pathText, problemsOfIssues } from './problems.js';
import type { Problem } from './problems.js';
import type { Config } from './types.js';

/** Far above any real routing table; a mistaken path to a mailbox is not read into memory. */
const FILE_BYTES_MAX = 32 * 1024 * 1024;

export interface LoadOptions {
  /**
   * `gateway` and `store` are roles on their own; `up` is all of them on one machine; `check` takes what the
   * file looks like.
   */
  readonly role: 'gateway' | 'store' | 'sink' | 'up' | 'check';
  /** Used by sections that name no secret (TWINPOST_SECRET). */
  readonly secret?: string | undefined;
  /** Overrides gateway.state_dir. */
  readonly stateDir?: string | undefined;
  /** Folder of a register file that an upper process keeps and serves; it stands for `register: file`. */
  readonly registerDir?: string | undefined;
}

export type LoadResult =
  | KeysInFile & { readonly ok: true; readonly config: Config; readonly place: (path: Path) => string }
  | { readonly ok: false; readonly errors: readonly string[] };

export function loadConfigFile(file: string, options: LoadOptions): LoadResult {
  let text: string;
  try {
    // Looked at first: a pipe would keep a gateway that reads it again waiting for ever.
    const { size } = regular(file);
    if (size > FILE_BYTES_MAX) {
      return refused([
        `${file}:1: file: expected at most ${String(FILE_BYTES_MAX)} bytes, found ${String(size)}`,
      ]);
    }
    text = readFileSync(file, 'utf8');
  } catch (error) {
    return refused([`${file}:1: file: expected a file that can be read, found `
      + `${(error as NodeJS.ErrnoException).code ?? String(error)}`]);
  }
  return parseConfig(text, file, options);
}

function regular(file: string): Stats {
  const stats = statSync(file);
  if (stats.isDirectory()) throw Object.assign(new Error('a folder'), { code: 'EISDIR' });
  if (!stats.isFile()) throw Object.assign(new Error('no regular file'), { code: 'a pipe or a device' });
  return stats;
}

export function parseConfig(text: string, file: string, options: LoadOptions): LoadResult {
  const lines = new LineCounter();
  // Its warnings quote what stands in the file.
  const document = parseDocument(text, {
    lineCounter: lines, prettyErrors: false, uniqueKeys: true, logLevel: 'error',
  });
  const [error] = document.errors;
  if (error !== undefined) {
    // The others follow from it: of one tab there are ten.
    const { line } = lines.linePos(error.pos[0]);
    const why = mayHaveSecret(text.split('\n'), line) ? codeWords(error.code) : firstLine(error.message);
    return refused([`${file}:${String(line)}: file: expected YAML, found: ${why}`]);
  }
  const value = plainValue(document);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refused([`${file}:1: file: expected a mapping with the sections gateway, store, stores, sink, `
      + `found ${bareWord(value)}`]);
  }
  const parsed = fileSchema.safeParse(value);
  if (!parsed.success) {
    return refused(report(file, text, document, lines, problemsOfIssues(parsed.error, fileSchema, value)));
  }
  const up = options.role === 'up' || (options.role === 'check' && parsed.data.stores !== undefined);
  const secretFromEnvironment = options.secret !== undefined || options.role === 'up'
    || (options.role === 'check' && up);
  const problems = checkFile(parsed.data, {
    up, secretFromEnvironment, stateDir: options.stateDir,
    isRegisterServed: options.registerDir !== undefined,
  });
  if (problems.length > 0) return refused(report(file, text, document, lines, problems));
  const late = new Problems();
  const contents = new Map<string, string>();
  const place = (at: Path): string =>
    `${file}:${String(lineOf(document, lines, { path: at, text: '' }))}`;
  const context = {
    file, folder: path.dirname(path.resolve(file)), up, environmentSecret: options.secret,
    stateDir: options.stateDir, registerDir: options.registerDir, contents, place,
  };
  const config = buildConfig(parsed.data, context, late);
  if (late.all.length > 0) return refused(report(file, text, document, lines, late.all));
  return { ok: true, config, value: parsed.data, contents, place };
}

/** A document with more aliases than yaml allows (a bomb) has no value. */
function plainValue(document: Document): unknown {
  try {
    return document.toJS() as unknown;
  } catch {
    return undefined;
  }
}

function report(
  file: string, fileText: string, document: Document, lines: LineCounter, problems: readonly Problem[],
): string[] {
  const fileLines = fileText.split('\n');
  return problems
    .map((problem) => {
      const { path: at, text, bare, isOdd } = problem;
      const line = lineOf(document, lines, problem);
      const isBare = isOdd === true || mayHaveSecret(fileLines, line);
      const told = isBare && bare !== undefined ? bare : { shownPath: at, text };
      return { line, text: `${pathText(told.shownPath)}: ${told.text}` };
    })
    .sort((a, b) => a.line - b.line)
    .map(({ line, text }) => `${file}:${String(line)}: ${text}`);
}

function refused(errors: readonly string[]): LoadResult {
  return { ok: false, errors };
}

/** "block scalar header": what YAML itself says quotes the line. */
function codeWords(code: string): string {
  return `${code.toLowerCase().replaceAll('_', ' ')} (the line may have a secret, and is not shown)`;
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? text;
}
