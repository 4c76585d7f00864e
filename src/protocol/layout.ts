/**
 * A message whose control part has a fixed number of elements, from one table: a field for each element, in
 * order. Its type, its encoder and its decoder follow from that, so that they can't differ.
 *
 * The table says what a peer's element must be (fields.ts, wire-record.ts); the first field that it breaks is
 * the rule that the decoder names. What a rule of several fields says is added by the message itself.
 */
import type { Packer } from '../platform/ports.js';
import type { Check } from './fields.js';
import { isText, plainText, unpackControl } from './fields.js';
import { InvalidMessage } from './invalid.js';

/** An element that is packed in another form than that in which it is used. */
export interface PackedField<T> {
  readonly pack: (value: T) => unknown;
  readonly read: (value: unknown) => T | InvalidMessage;
}

type Fields<T> = { readonly [Name in keyof T]: Check<T[Name]> | PackedField<T[Name]> };

export interface Layout<T> {
  readonly encode: (packer: Packer, message: T) => Uint8Array;
  readonly decode: (packer: Packer, control: Uint8Array) => T | InvalidMessage;
}

export type MessageOf<L> = L extends Layout<infer T> ? T : never;

export function layout<T extends object>(fields: Fields<T>): Layout<Readonly<T>> {
  const all =
    (Object.keys(fields) as (keyof T & string)[]).map((name) => ({ name, ...packedField(fields[name]) }));
  return {
    encode: (packer, message) => encodeElements(packer, all.map(({ name, pack }) => pack(message[name]))),
    decode: (packer, control) => {
      const values = unpackControl(packer, control, all.length);
      if (values instanceof InvalidMessage) return values;
      const message: Partial<T> = {};
      let at = 0;
      for (const { name, read } of all) {
        const value = read(values[at]);
        if (value instanceof InvalidMessage) return new InvalidMessage(name);
        message[name] = value;
        at += 1;
      }
      return message as T;
    },
  };
}

/** `read` yields undefined for what breaks a rule. */
export function packed<T>(
  pack: (value: T) => unknown, read: (value: unknown) => T | undefined,
): PackedField<T> {
  return { pack, read: (value) => read(value) ?? BROKEN };
}

/** Text for people, made to fit when it is sent. */
export const PLAIN_TEXT: PackedField<string> =
  packed(plainText, (value) => (isText(value) ? value : undefined));

/** [] for none. */
export function orNone<T>({ pack, read }: PackedField<T>): PackedField<T | undefined> {
  return {
    pack: (value) => (value === undefined ? [] : pack(value)),
    read: (value) => (Array.isArray(value) && value.length === 0 ? undefined : read(value)),
  };
}

function encodeElements(packer: Packer, elements: readonly unknown[]): Uint8Array {
  return packer.pack(elements);
}

const BROKEN = new InvalidMessage('');

function packedField<T>(field: Check<T> | PackedField<T>): PackedField<T> {
  if (typeof field !== 'function') return field;
  return { pack: (value) => value, read: (value) => (field(value) ? value : BROKEN) };
}
