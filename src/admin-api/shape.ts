/**
 * Shapes of JSON: what a value must look like, written once as a value of this program, from which the
 * compiler derives the type. Who answers returns that type, so a field that is renamed, forgotten or new
 * fails to compile; who asks reads the bytes of a stranger through the same shape, so nothing that is not in
 * it comes further.
 *
 *   shape(raw) ─► the value, with the fields of the shape and no others │ Broken, with the place and the rule
 *
 * Everything has a bound: the length of a text, of a name, of a list. Pure, no I/O.
 */

/** Texts for people: causes, replies of other servers, commands to copy. */
const TEXT_CHARACTERS_MAX = 64 * 1024;
/**
 * Ids, names of queues, addresses: the longest is an address of 256 octets for each half (RFC 5321 4.5.3.1).
 */
const NAME_CHARACTERS_MAX = 1024;
/** The longest list is a page of the management table: 1,000 queues at a few stores each. */
const LIST_MAX = 100_000;

/** Why a value is not of a shape, and where in it. */
export class Broken {
  /** "stores[3].up"; '' is the whole value. */
  readonly place: string;
  readonly rule: string;

  constructor(rule: string, place = '') {
    this.rule = rule;
    this.place = place;
  }

  /** As seen from one level further out. */
  within(place: string): Broken {
    const separator = this.place === '' || this.place.startsWith('[') ? '' : '.';
    return new Broken(this.rule, `${place}${separator}${this.place}`);
  }

  get text(): string {
    return this.place === '' ? this.rule : `${this.place}: ${this.rule}`;
  }
}

export type Shape<T> = (raw: unknown) => T | Broken;
/** The type of what a shape lets through. */
export type ShapeOf<S> = S extends (raw: unknown) => infer R ? Exclude<R, Broken> : never;

type Shapes = Readonly<Record<string, Shape<unknown>>>;
type Fields<S extends Shapes> = { readonly [K in keyof S]: ShapeOf<S[K]> };

export const text: Shape<string> = (raw) => (typeof raw === 'string' && raw.length <= TEXT_CHARACTERS_MAX
  ? raw : expected(`a text of at most ${String(TEXT_CHARACTERS_MAX)} characters`));

export const name: Shape<string> = (raw) => (typeof raw === 'string' && raw.length <= NAME_CHARACTERS_MAX
  ? raw : expected(`a name of at most ${String(NAME_CHARACTERS_MAX)} characters`));

export const flag: Shape<boolean> = (raw) => (typeof raw === 'boolean' ? raw : expected('true or false'));

/** Counts, bytes, whole seconds since 1970. */
export const integer: Shape<number> = (raw) =>
  (Number.isSafeInteger(raw) ? (raw as number) : expected('a whole number'));

/** A part of a whole, 0 to 1. */
export const share: Shape<number> = (raw) =>
  (typeof raw === 'number' && raw >= 0 && raw <= 1 ? raw : expected('a number from 0 to 1'));

export function oneOf<const W extends string>(...words: readonly W[]): Shape<W> {
  return (raw) => words.find((word) => word === raw) ?? expected(`one of ${words.join(', ')}`);
}

export function orNull<T>(shape: Shape<T>): Shape<T | null> {
  return (raw) => (raw === null ? null : shape(raw));
}

export function list<T>(shape: Shape<T>): Shape<readonly T[]> {
  return (raw) => {
    if (!Array.isArray(raw) || raw.length > LIST_MAX) {
      return expected(`a list of at most ${String(LIST_MAX)}`);
    }
    const values: T[] = [];
    for (const [index, one] of (raw as readonly unknown[]).entries()) {
      const value = shape(one);
      if (value instanceof Broken) return value.within(`[${String(index)}]`);
      values.push(value);
    }
    return values;
  };
}

/** An object with these fields, and perhaps those. What else the stranger sent is left out. */
export function object<F extends Shapes, O extends Shapes = Record<never, never>>(
  fields: F, perhaps?: O,
): Shape<Fields<F> & Partial<Fields<O>>> {
  const wanted = Object.entries(fields);
  const optional = Object.entries(perhaps ?? {});
  return (raw) => {
    if (typeof raw !== 'object' || raw === null) return expected('an object');
    const values: Record<string, unknown> = {};
    const read = ([key, shape]: readonly [string, Shape<unknown>]): Broken | undefined => {
      const value =
        shape(Object.hasOwn(raw, key) ? (raw as Readonly<Record<string, unknown>>)[key] : undefined);
      if (value instanceof Broken) return value.within(key);
      values[key] = value;
      return undefined;
    };
    for (const field of wanted) {
      const broken = read(field);
      if (broken !== undefined) return broken;
    }
    for (const field of optional) {
      const broken = Object.hasOwn(raw, field[0]) ? read(field) : undefined;
      if (broken !== undefined) return broken;
    }
    return values as Fields<F> & Partial<Fields<O>>;
  };
}

function expected(what: string): Broken {
  return new Broken(`expected ${what}`);
}
