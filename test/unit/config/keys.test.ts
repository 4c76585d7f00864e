/** Each key is declared once: its name, unit and default agree wherever they are seen. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { z } from 'zod';
import { kinds, made, nameOf, named, shown } from '../../../src/config/keys/key.js';
import { fileSchema } from '../../../src/config/keys/schema.js';
import * as v from '../../../src/config/keys/values.js';
import { STORE_DEFAULTS } from '../../../src/kvs/core/store.js';
import { DEFAULT_TIMEOUTS } from '../../../src/gateway/outbound/pure/session-states.js';
import { OUTBOUND_DEFAULTS } from '../../default-options.js';

interface Def {
  readonly type: string;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly innerType?: z.ZodType;
  readonly out?: z.ZodType;
  readonly element?: z.ZodType;
  readonly options?: readonly z.ZodType[];
}

interface Key {
  /** In the words of the file: "gateway.mirror.lease". */
  readonly path: string;
  readonly schema: z.ZodType;
}

/** All keys of the file, each with its schema as a section has it. */
function keysIn(schema: z.ZodType, above = ''): readonly Key[] {
  const { shape = {}, innerType, out, element, options = [] } = schema.def as Def;
  const own = Object.entries(shape).flatMap(([key, inner]) =>
    [{ path: above + key, schema: inner }, ...keysIn(inner, `${above}${key}.`)]);
  const inner = kinds.has(schema) ? [] : [innerType, out, element, ...options].filter((each) => each !== undefined);
  return [...own, ...inner.flatMap((each) => keysIn(each, above))];
}

/** The last word of a path. */
function keyOf(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1);
}

/** Without default or `?`; undefined for a section, a list, a choice. */
function singleOf(schema: z.ZodType): z.ZodType | undefined {
  if (kinds.has(schema)) return schema;
  const { innerType } = schema.def as Def;
  return innerType === undefined ? undefined : singleOf(innerType);
}

const ALL = keysIn(fileSchema);
/** With the value of each key that has one when nothing is said. */
const DEFAULTED = ALL.flatMap(({ path, schema }) => {
  const single = singleOf(schema);
  if (single === undefined || (schema.def as Def).type !== 'prefault') return [];
  return [{ path, single, value: schema.parse(undefined) }];
});
const FILES = { absolute: (file: string) => path.resolve('/etc', file), content: (file: string) => `in ${file}` };

describe('the keys of a file', () => {
  test('are called in the words of the program, with their unit last', () => {
    assert.ok(ALL.length > 150, `${String(ALL.length)} keys are found`);
    const wrong = ALL.flatMap(({ path, schema }) => {
      const name = nameOf(keyOf(path), schema);
      const single = singleOf(schema);
      const takes = (texts: readonly string[]): boolean =>
        texts.some((text) => typeof single?.safeParse(text).data === 'number');
      // In `limits`, beside counts: what is limited, not how much of it.
      const isSize = takes(['64KiB', '64MiB', '64KiB/s']) && !path.endsWith('.data');
      const unit = takes(['5s']) ? 'Ms' : isSize ? 'Bytes' : '';
      return name.includes('_') || !name.includes(unit) ? [`${path} is ${name}`] : [];
    });
    assert.deepEqual(wrong, []);
  });

  test('have defaults that are read back as they are shown', () => {
    assert.ok(DEFAULTED.length > 90, `${String(DEFAULTED.length)} defaults are found`);
    for (const { path, single, value } of DEFAULTED) {
      assert.deepEqual(single.parse(shown(single, value)), value, path);
    }
  });

  test('have their numbers by default in the examples', () => {
    /** The example shows another value on purpose. */
    const otherwise = ['gateway.routes.lanes', 'store.gateways.workers'];
    const wrong = DEFAULTED.flatMap(({ path, single, value }) => {
      const [section = ''] = path.split('.');
      if (typeof value !== 'number' || section === 'stores' || otherwise.includes(path)) return [];
      const text = readFileSync(`configs/${section === 'register' ? 'gateway' : section}.yaml`, 'utf8');
      const said = [...text.matchAll(new RegExp(`\\b${keyOf(path)}: (\\d[^\\s,}#]*)`, 'g'))].map(([, each = '']) => each);
      const isSaid = said.some((each) => {
        const read = single.safeParse(parse(each));
        return read.success && read.data === value;
      });
      return isSaid ? [] : [`${path}: ${String(shown(single, value))}, the example says ${said.join(' and ')}`];
    });
    assert.deepEqual(wrong, []);
  });

  test('and the parts that are run without a file take the same by default', () => {
    const store = fileSchema.parse({ store: { id: 's', host: 'h', paths: [{ name: 'A', address: '127.0.0.1:1' }] } }).store;
    assert.deepEqual([STORE_DEFAULTS.leaseMs, STORE_DEFAULTS.ringBytes], [store?.lease, store?.ring]);
    assert.deepEqual(OUTBOUND_DEFAULTS.timeouts, DEFAULT_TIMEOUTS);
  });
});

describe('a declaration', () => {
  const section = z.strictObject({
    window: named('windowBytes', v.bytes(0, 2 ** 30).prefault('8MiB')),
    token_file: named('token', v.asciiContentOf('a file with a token').optional()),
    users: z.union([v.file(), z.strictObject({ http: named('url', v.secretUrl()) })]),
    listen: z.array(z.preprocess((value) => ({ address: value }), z.strictObject({ address: v.address() }))),
    secret: v.secret('a secret of one line'),
    log: named('logFile', v.file().optional()),
  });

  test('says what the program gets: its names, file names against the folder, contents of files', () => {
    const value = section.parse({ token_file: 't', users: 'u', listen: ['[::1]:25'], secret: 'word' });
    const built = made(section, value, [], FILES);
    // Its type is inferred: this line would not compile otherwise.
    const { windowBytes, logFile }: { readonly windowBytes: number; readonly logFile: string | undefined } = built;
    assert.deepEqual([windowBytes, logFile], [8 * 2 ** 20, undefined]);
    assert.deepEqual(built, {
      windowBytes: 8 * 2 ** 20, token: 'in t', users: '/etc/u', listen: [{ address: { host: '::1', port: 25 } }],
      secret: 'word', logFile: undefined,
    });
  });

  test('of a choice follows what was said', () => {
    const value = section.parse({ users: { http: 'https://a.example/b' }, listen: [], secret: 'word' });
    assert.deepEqual(made(section, value, [], FILES).users, { url: 'https://a.example/b' });
  });

  test('says how a value is shown, and which is not', () => {
    const value = section.parse({ users: 'u', listen: ['[::1]:25'], secret: 'word' });
    const text = { window: '8MiB', users: 'u', listen: [{ address: '[::1]:25' }], secret: '(hidden)' };
    assert.deepEqual(JSON.parse(JSON.stringify(shown(section, value))), text);
  });
});
