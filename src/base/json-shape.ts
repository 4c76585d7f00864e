/**
 * What JSON of others must look like: answers of the admin HTTP, values of the register, files. Each is
 * written once, as a zod schema, from which the compiler derives the type: who makes such a value returns
 * that type, and who reads the bytes of a stranger gets the fields of the schema and no others, or the rule
 * that is broken, with its place. Never an exception.
 */
import { z } from 'zod';

export class BrokenRule {
  /** "stores[3].up: …"; without a place it is the whole value. */
  readonly rule: string;

  constructor(rule: string) {
    this.rule = rule;
  }
}

/** A list with a bound. */
export function listOf<T extends z.ZodType>(item: T, max: number): z.ZodReadonly<z.ZodArray<T>> {
  return z.array(item).max(max).readonly();
}

/** A schema with a rule of its own: `rule` answers '' or what is wrong. */
export function ruled<T extends z.ZodType>(schema: T, rule: (value: z.output<T>) => string): T {
  return schema.check(({ value, issues }) => {
    const message = rule(value);
    if (message !== '') issues.push({ code: 'custom', message, input: value });
  });
}

export function readShape<T>(schema: z.ZodType<T>, raw: unknown): T | BrokenRule {
  const { data, error } = schema.safeParse(raw);
  const issue = error?.issues[0];
  return issue === undefined ? data as T : new BrokenRule(`${placeOf(issue.path)}${issue.message}`);
}

export function readJson<T>(schema: z.ZodType<T>, text: string): T | BrokenRule {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    return new BrokenRule('no JSON');
  }
  return readShape(schema, raw);
}

function placeOf(path: readonly PropertyKey[]): string {
  const place = path.map((part) => (typeof part === 'number' ? `[${String(part)}]` : `.${String(part)}`));
  return path.length === 0 ? '' : `${place.join('').replace(/^\./, '')}: `;
}
