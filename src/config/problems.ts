/**
 * Turns what is wrong with a file into one line each: `FILE:LINE: path: expected …, found …`. Owns the way
 * from a path of keys to the line of the file.
 */
import type { Document, LineCounter } from 'yaml';
import { isMap, isNode, isPair, isScalar } from 'yaml';
import type { z } from 'zod';
import { nearest } from '../base/nearest.js';
import { kinds, knownKeys, schemaAt } from './keys/key.js';
import { withoutQuery } from './keys/values.js';
import type { Path } from './keys/key.js';

/** One finding, before it has a line. */
export interface Problem {
  readonly path: Path;
  readonly text: string;
  /** The same without anything that stands in the file, where `text` quotes what nobody has understood. */
  readonly bare?: Bare;
  /** Point at the key itself (unknown keys), not at its value. */
  readonly atKey?: boolean;
  /** Only `bare` is told: what YAML made of it may stand on other lines than it points at. */
  readonly isOdd?: boolean;
}

interface Bare {
  readonly shownPath: Path;
  readonly text: string;
}

/** What is wrong with a file, as it is found. */
export class Problems {
  readonly all: Problem[] = [];

  add(path: Path, text: string): void {
    this.all.push({ path, text });
  }
}

const FOUND_CHARACTERS_MAX = 60;
/** No address takes them, but people write them; a refusal is no reason to print a password. */
const USER_AND_PASSWORD = /\/\/.*@/s;
/** Stands in each key that has a secret, or names a file with one. */
const SECRET_WORD = /secret|passw|token/i;
/** YAML takes a key of a secret and its value for one text where the blank between them is missing. */
const SECRET_IN_TEXT = new RegExp(`((?:${SECRET_WORD.source})\\w*\\s*[:=]?).*`, 'is');
const HIDDEN = '(hidden)';
/** A secret that got in as a blank or a comma is missing brings a sign along, and is longer (checks.ts). */
const WORD = /^[a-z0-9.]{1,15}$/i;

export function problemsOfIssues(error: z.ZodError, schema: z.ZodType, value: unknown): Problem[] {
  return problemsAt([], error.issues, schema, value);
}

function problemsAt(
  above: Path, issues: readonly z.core.$ZodIssue[], schema: z.ZodType, value: unknown,
): Problem[] {
  const problems: Problem[] = [];
  for (const issue of issues) {
    const path = [...above, ...issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))];
    const at = foundAt(value, path);
    const found = describeAt(at, path, schema);
    const add = (expected: string): void => {
      const plain = isWordOf(schema, path) && WORD.test(String(at)) ? found : bareWord(at);
      const bare = { shownPath: path, text: `expected ${expected}, found ${plain}` };
      problems.push({ path, text: `expected ${expected}, found ${found}`, bare });
    };
    switch (issue.code) {
      case 'unrecognized_keys':
        for (const key of issue.keys) problems.push(unknownKey(schema, path, key));
        break;
      case 'invalid_type':
        add(typeWord(issue.expected));
        break;
      case 'too_small':
        add(`at least ${String(issue.minimum)} of them`);
        break;
      case 'too_big':
        add(`at most ${String(issue.maximum)} of them`);
        break;
      case 'invalid_union': {
        // A mapping was meant for the choice that is one: what is wrong within it says more.
        const within =
          isMapping(valueAt(value, path)) ? issue.errors.find((each) => each.every(isWithin)) : undefined;
        if (within === undefined) add(issue.message);
        else problems.push(...problemsAt(path, within, schema, value));
        break;
      }
      default:
        add(issue.message);
    }
  }
  return problems;
}

/** The choice itself fits; something in it does not. */
function isWithin(issue: z.core.$ZodIssue): boolean {
  return issue.path.length > 0 || issue.code === 'unrecognized_keys';
}

function isMapping(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** "a.b[0].c"; the file itself has the empty path. */
export function pathText(path: Path): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${String(part)}]`;
    else text += text === '' ? part : `.${part}`;
  }
  return text === '' ? 'file' : text;
}

/** The line of the deepest part of the path that the file has. */
export function lineOf(document: Document, lines: LineCounter, problem: Problem): number {
  for (let depth = problem.path.length; depth > 0; depth--) {
    const path = problem.path.slice(0, depth);
    const key = keyOffset(document, path);
    const node = document.getIn(path, true);
    const value = isNode(node) ? node.range?.[0] : undefined;
    // A mapping or list starts on the line below its key; the key says more. Plain values stand on their own
    // line.
    const offset = problem.atKey === true || !isScalar(node) ? (key ?? value) : (value ?? key);
    if (offset !== undefined) return lines.linePos(offset).line;
  }
  return 1;
}

/** A short form that is no mapping, such as an address alone, stands where the mapping would. */
function foundAt(value: unknown, path: Path): unknown {
  const found = valueAt(value, path);
  if (found !== undefined || path.length === 0) return found;
  const whole = valueAt(value, path.slice(0, -1));
  return typeof whole === 'object' ? undefined : whole;
}

/** Also a secret that YAML reads as a number, and a token with a tab in it, stay secret. */
function describeAt(value: unknown, path: Path, schema: z.ZodType): string {
  const at = schemaAt(schema, path);
  return at !== undefined && kinds.get(at)?.isSecret === true ? bareWord(value) : describe(value);
}

function isWordOf(schema: z.ZodType, path: Path): boolean {
  const at = schemaAt(schema, path);
  return at !== undefined && kinds.get(at)?.isWord === true;
}

export function bareWord(value: unknown): string {
  const isPlain = value !== undefined && value !== null && typeof value !== 'object';
  return isPlain ? `a ${typeof value} that is not shown` : describe(value);
}

/**
 * Whether the line may have a secret, or a part of one: the blank behind a key, a quote or a comma may be
 * missing, and YAML takes the secret for something else. A line without a key goes on with the one above.
 */
export function mayHaveSecret(fileLines: readonly string[], line: number): boolean {
  for (let at = Math.min(line, fileLines.length) - 1; at >= 0; at--) {
    const text = fileLines[at] ?? '';
    if (SECRET_WORD.test(text)) return true;
    if (text.includes(':')) return false;
  }
  return false;
}

function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'an empty value';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : `a list of ${String(value.length)}`;
  if (typeof value === 'object') return 'a mapping';
  if (typeof value !== 'string') return String(value as number | boolean);
  const nameless = value.replace(USER_AND_PASSWORD, `//${HIDDEN}@`);
  const open = nameless.includes('://') ? withoutQuery(nameless) : nameless;
  const plain = open.replace(SECRET_IN_TEXT, `$1${HIDDEN}`);
  const shown = plain.length > FOUND_CHARACTERS_MAX ? `${plain.slice(0, FOUND_CHARACTERS_MAX)}…` : plain;
  return JSON.stringify(shown);
}

function unknownKey(schema: z.ZodType, path: Path, key: string): Problem {
  const known = knownKeys(schema, path);
  const glued = known.find((one) => key.startsWith(`${one}:`));
  const meant = nearest(key, known);
  const all = `known keys: ${known.join(', ')}`;
  const sure = glued === undefined ? all : `a blank is missing behind '${glued}:'`;
  const hint = glued === undefined && meant !== undefined ? `did you mean '${meant}'?` : sure;
  const expected = 'expected a known key, found';
  return {
    path: [...path, key], text: `${expected} '${key}'; ${hint}`, atKey: true, isOdd: /^[{[]/.test(key),
    bare: { shownPath: [...path, HIDDEN], text: `${expected} one that is not shown; ${sure}` },
  };
}

function typeWord(type: string): string {
  if (type === 'object' || type === 'record') return 'a mapping';
  return type === 'array' ? 'a list' : `a ${type}`;
}

function valueAt(value: unknown, path: Path): unknown {
  let at = value;
  for (const part of path) {
    if (typeof at !== 'object' || at === null) return undefined;
    at = (at as Record<string | number, unknown>)[part];
  }
  return at;
}

function keyOffset(document: Document, path: Path): number | undefined {
  const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  if (!isMap(parent)) return undefined;
  const name = path[path.length - 1];
  const pair = parent.items.find((item) => isPair(item) && isScalar(item.key) && item.key.value === name);
  return isScalar(pair?.key) ? pair.key.range?.[0] : undefined;
}
