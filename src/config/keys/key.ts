/**
 * What a key of the file is, besides its zod type: what the program calls it, how its value is written, and
 * what becomes of it. schema.ts declares each key once with these; the types of the program (Made), its
 * values (made), `config check` and `config show` (shown) follow from there.
 *
 *   file     window: 8MiB        token_file: users.token
 *   value    window: 8388608     token_file: users.token       (zod: checked, defaults filled in)
 *   made     windowBytes: …      token: what stands in it      (made)
 */
import { z } from 'zod';

export type Path = readonly (string | number)[];

/** Of a single value. */
export interface Kind {
  /** As people write it; else as it is. */
  readonly shown?: (value: never) => unknown;
  /** Shown nowhere: what is printed ends in tickets and logs. */
  readonly isSecret?: boolean;
  /** One word of a few, or a time: what stands there instead is shown, if it is one word. */
  readonly isWord?: boolean;
  /** Names a file, against the folder of the configuration. */
  readonly isFile?: boolean;
  /** Names a file whose content counts. */
  readonly content?: Content;
}

export interface Content {
  /** For an error. */
  readonly what: string;
  readonly isAscii: boolean;
}

export const kinds = z.registry<Kind>();
const names = z.registry<{ readonly name: string }>();

declare const NAME: unique symbol;

/** A key that the program calls otherwise: in its own words, with the unit last. */
export function named<const Name extends string, Schema extends z.ZodType>(
  name: Name, schema: Schema,
): Schema & { readonly [NAME]: Name } {
  names.add(schema, { name });
  return schema as Schema & { readonly [NAME]: Name };
}

export function nameOf(key: string, schema: z.ZodType | undefined): string {
  return (schema === undefined ? undefined : names.get(schema)?.name) ?? key;
}

type NameOf<Schema, Key> = Schema extends { readonly [NAME]: infer Name extends string } ? Name : Key;

/** What the program gets for a schema. A key that may be left out is there, and undefined. */
export type Made<Schema> =
  Schema extends z.ZodOptional<infer Inner> ? Made<Inner> | undefined
  : Schema extends z.ZodPrefault<infer Inner> ? Made<Inner>
  : Schema extends z.ZodPipe<infer _From, infer Inner> ? Made<Inner>
  : Schema extends z.ZodUnion<infer Options> ? Made<Options[number]>
  : Schema extends z.ZodArray<infer Element> ? readonly Made<Element>[]
  : Schema extends z.ZodObject<infer Shape>
    ? { readonly [Key in keyof Shape as NameOf<Shape[Key], Key>]: Made<Shape[Key]> }
  : z.output<Schema>;

/** The few parts of zod's own description of a schema that are needed to walk it. */
interface Def {
  /** Of defaults and what may be left out. */
  readonly innerType?: z.ZodType;
  /** Behind a first step. */
  readonly out?: z.ZodType;
  /** Of a choice. */
  readonly options?: readonly z.ZodType[];
  readonly element?: z.ZodType;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
}

/** Without what stands around it; of a choice the part that is a mapping, or the first that is none. */
function core(schema: z.ZodType, isMapping: boolean): z.ZodType {
  let at = schema;
  while (!kinds.has(at)) {
    const { innerType, out, options } = at.def as Def;
    const chosen = options?.find((option) => ((option.def as Def).shape !== undefined) === isMapping);
    const next = innerType ?? out ?? chosen;
    if (next === undefined) break;
    at = next;
  }
  return at;
}

/** Of the key at this path; undefined where there is none. */
export function schemaAt(schema: z.ZodType, path: Path): z.ZodType | undefined {
  let at: z.ZodType | undefined = core(schema, true);
  for (const part of path) {
    if (at === undefined) return undefined;
    const { element, shape } = at.def as Def;
    const next: z.ZodType | undefined = typeof part === 'number' ? element : shape?.[part];
    at = next === undefined ? undefined : core(next, true);
  }
  return at;
}

/** Keys that the schema knows at this path. */
export function knownKeys(schema: z.ZodType, path: Path): readonly string[] {
  return Object.keys((schemaAt(schema, path)?.def as Def | undefined)?.shape ?? {});
}

interface Visitor {
  single(kind: Kind, value: unknown, path: Path): unknown;
  nameOf(key: string, schema: z.ZodType | undefined): string;
  /** Without it all are. */
  isKept?(schema: z.ZodType | undefined, value: unknown): boolean;
}

function walk(schema: z.ZodType | undefined, value: unknown, path: Path, visitor: Visitor): unknown {
  if (value === undefined || schema === undefined) return value;
  const isList = Array.isArray(value);
  const at = core(schema, typeof value === 'object' && !isList);
  const kind = kinds.get(at);
  if (kind !== undefined) return visitor.single(kind, value, path);
  const { element, shape } = at.def as Def;
  if (isList) return value.map((each: unknown, i) => walk(element, each, [...path, i], visitor));
  if (shape === undefined) return value;
  const values: Readonly<Record<string, unknown>> = { ...(value as object) };
  const keys = [...new Set([...Object.keys(values), ...Object.keys(shape)])]
    .filter((key) => visitor.isKept?.(shape[key], values[key]) ?? true);
  return Object.fromEntries(keys.map((key) =>
    [visitor.nameOf(key, shape[key]), walk(shape[key], values[key], [...path, key], visitor)]));
}

/** What the program works with, out of a checked value. `path`: where that stands in the file. */
export function made<Schema extends z.ZodType>(
  schema: Schema, value: z.output<Schema>, path: Path,
  files: { absolute(file: string): string; content(file: string, content: Content, path: Path): string },
): Made<Schema> {
  return walk(schema, value, path, {
    single: ({ isFile, content }, single, at) => {
      if (typeof single !== 'string') return single;
      if (content !== undefined) return files.content(single, content, at);
      return isFile === true ? files.absolute(single) : single;
    },
    nameOf,
  }) as Made<Schema>;
}

const MASK = '(hidden)';

const IN_WORDS_OF_FILE: Visitor = {
  single: ({ isSecret, shown: show }, single) => {
    if (isSecret === true) return MASK;
    return show === undefined ? single : show(single as never);
  },
  nameOf: (key) => key,
};

/** A checked value in the words of the file. */
export function shown(schema: z.ZodType, value: unknown): unknown {
  return walk(schema, value, [], IN_WORDS_OF_FILE);
}

/** The same without keys that say what holds when they are left out. */
export function shownChanges(schema: z.ZodType, value: unknown): unknown {
  return walk(schema, value, [], {
    ...IN_WORDS_OF_FILE, isKept: (of, single) => single !== undefined && !isDefault(of, single),
  });
}

function isDefault(schema: z.ZodType | undefined, value: unknown): boolean {
  const leftOut = schema?.safeParse(undefined);
  return leftOut?.success === true && JSON.stringify(leftOut.data) === JSON.stringify(value);
}
