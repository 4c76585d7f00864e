/**
 * Between what the register means and what etcd is asked. Keys stand below a prefix of their own
 * (/twinpost/CLUSTER/), which nobody above sees.
 *
 *     one transaction of n writes, none of which can fail another:
 *       success: [ txn { compare: key and guards at their revisions, and with their values,
 *                        success: put or delete, failure: range of the key and of each guard } × n ]
 */
import { keyRule } from '../limits.js';
import { isAt } from '../core/register-map.js';
import type { Change, LineWrite, WriteResult } from '../line.js';
import type { Entry, Range } from '../port.js';
import type { Received, Sent } from './definitions.js';

const EQUAL = 0;
const TARGET_MOD = 2;
const TARGET_VALUE = 3;
const EVENT_DELETE = 1;
/** Entries of one answer: half a megabyte of records, below every default limit. */
const PAGE_ENTRIES = 1_000;

export class EtcdMessages {
  readonly #prefix: string;

  /** `cluster`: several groups may share an etcd. */
  constructor(cluster: string) {
    this.#prefix = `/twinpost/${encodeURIComponent(cluster)}/`;
  }

  transaction(writes: readonly LineWrite[]): Sent<'TxnRequest'> {
    return {
      compare: [],
      success: writes.map((write) => ({ request_txn: this.#nested(write) })),
      failure: [],
    };
  }

  /** One result a write; fewer when the answer is not that of this transaction. */
  results(writes: readonly LineWrite[], { header, responses }: Received<'TxnResponse'>): WriteResult[] {
    const results: WriteResult[] = [];
    for (const [index, write] of writes.entries()) {
      const nested = responses[index]?.response_txn ?? undefined;
      if (nested === undefined || header === null) break;
      results.push(
        nested.succeeded ? { kind: 'done', revision: header.revision } : this.#stale(write, nested.responses),
      );
    }
    return results;
  }

  /** The next page of a range; at `revision` if that is not 0. */
  range(range: Range, after: Buffer | undefined, revision: number): Sent<'RangeRequest'> {
    if ('key' in range) return { key: this.#bytes(range.key), revision };
    const key = after ?? this.#bytes(range.prefix);
    return { key, range_end: this.#end(range.prefix), limit: PAGE_ENTRIES, revision };
  }

  /** Single keys, all at one revision. */
  keys(keys: readonly string[]): Sent<'TxnRequest'> {
    const success = keys.map((key) => ({ request_range: { key: this.#bytes(key) } }));
    return { compare: [], success, failure: [] };
  }

  /** What stands under the keys; undefined when the answer is not that of keys(). */
  entries(count: number, { responses }: Received<'TxnResponse'>): Entry[] | undefined {
    const ranges = responses.map(({ response_range }) => response_range ?? undefined);
    if (ranges.length !== count || ranges.includes(undefined)) return undefined;
    return ranges.flatMap((range) => range?.kvs ?? []).flatMap((kv) => this.entry(kv) ?? []);
  }

  /** Where the page behind this entry begins. */
  pageEnd({ key }: Received<'KeyValue'>): Buffer {
    return Buffer.concat([key, Buffer.of(0)]);
  }

  watch(prefix: string, afterRevision: number, id: number): Sent<'WatchRequest'> {
    const [key, range_end] = [this.#bytes(prefix), this.#end(prefix)];
    return {
      create_request: { key, range_end, start_revision: afterRevision + 1, watch_id: id, fragment: true },
    };
  }

  /** Undefined: somebody else's key, below our prefix by mistake. */
  entry({ key, value, mod_revision: revision, lease }: Received<'KeyValue'>): Entry | undefined {
    const name = this.#name(key);
    return name === undefined
      ? undefined
      : { key: name, value: value.toString('utf8'), revision, session: lease === 0 ? '' : String(lease) };
  }

  changes({ events }: Received<'WatchResponse'>): Change[] {
    const changes: Change[] = [];
    for (const { type, kv } of events) {
      const key = kv === null ? undefined : this.#name(kv.key);
      if (kv === null || key === undefined) continue;
      changes.push({
        key,
        revision: kv.mod_revision,
        entry: type === EVENT_DELETE ? undefined : this.entry(kv),
      });
    }
    return changes;
  }

  #nested({ key, ifRevision, ifValue, value, session, guards }: LineWrite): Sent<'TxnRequest'> {
    const bytes = this.#bytes(key);
    const success: Sent<'RequestOp'> = value === null
      ? { request_delete_range: { key: bytes } }
      : {
        request_put: {
          key: bytes,
          value: Buffer.from(value, 'utf8'),
          lease: session === '' ? 0 : Number(session),
        },
      };
    return {
      compare: [
        ...this.#compares(key, ifRevision, ifValue),
        ...guards.flatMap((guard) => this.#compares(guard.key, guard.revision, guard.value)),
      ],
      success: [success],
      failure: [key, ...guards.map((guard) => guard.key)].map((each) => ({
        request_range: { key: this.#bytes(each) },
      })),
    };
  }

  #compares(name: string, revision: number, value: string | undefined): Sent<'Compare'>[] {
    const key = this.#bytes(name);
    const compares: Sent<'Compare'>[] = [{ result: EQUAL, target: TARGET_MOD, key, mod_revision: revision }];
    if (value !== undefined) {
      compares.push({ result: EQUAL, target: TARGET_VALUE, key, value: Buffer.from(value, 'utf8') });
    }
    return compares;
  }

  #stale({ guards }: LineWrite, [own, ...others]: readonly Received<'ResponseOp'>[]): WriteResult {
    const entryOf = (response: Received<'ResponseOp'> | undefined): Entry | undefined => {
      const kv = response?.response_range?.kvs[0];
      return kv === undefined ? undefined : this.entry(kv);
    };
    const guard = guards.find(({ revision, value }, index) => !isAt(entryOf(others[index]), revision, value));
    return { kind: 'stale', entry: entryOf(own), guard: guard?.key ?? '' };
  }

  #bytes(key: string): Buffer {
    return Buffer.from(this.#prefix + key, 'utf8');
  }

  /** The first key behind all with the prefix: its last byte is ASCII, so one more is still a byte. */
  #end(prefix: string): Buffer {
    const end = this.#bytes(prefix);
    end[end.length - 1] = (end.at(-1) ?? 0) + 1;
    return end;
  }

  #name(key: Buffer): string | undefined {
    const text = key.toString('utf8');
    const name = text.startsWith(this.#prefix) ? text.slice(this.#prefix.length) : '';
    return keyRule(name) === '' ? name : undefined;
  }
}
