import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PAGE_NEXT, decodeEntryPage } from '../../../../src/protocol/entry-page.js';
import { ENTRY_ROW_BYTES, entryPosition } from '../../../../src/protocol/entry-rows.js';
import { FLAG_SHARED } from '../../../../src/protocol/change-rows.js';
import { change, deleting, fingerprint, found, storing } from '../core/section-kit.js';
import { testStore } from './test-gateway.js';
import { TOKEN, tokensFile } from '../../platform/node/token-file.js';

const OWN = { host: '127.0.0.1', port: 0 };

describe('the export of a store', () => {
  test('gives a partition in bounded pages, content included, and changes nothing', async (t) => {
    const running = await testStore({ admin: { listen: OWN } });
    t.after(() => running.stop());
    const { store } = running;
    const copy = found(store);
    for (let i = 0; i < 12; i += 1) change(store, copy, ...Array.from({ length: 100 }, (_none, k) => storing(i * 100 + k + 1, `body ${String(k)}`, 'head', k === 5 ? FLAG_SHARED : 0)));
    change(store, copy, deleting(400, 50), storing(9_999, 'x'.repeat(5_000_000)), storing(10_000, 'last'));
    store.blocks.pull(copy, 0, 2_000, 7, 1 << 20);
    const before = [fingerprint(store, copy)];
    store.blocks.pull(copy, 0, 2_000, 7, 1 << 20);
    const cursor = [copy.pullRow, copy.pullPosition];
    const positions: number[] = [];
    const sizes: number[] = [];
    let next: string | null = '0';
    while (next !== null) {
      const response: Response = await fetch(`http://127.0.0.1:${String(running.adminPort)}/api/v1/export?partition=g1/1&after=${next}`);
      assert.equal(response.status, 200);
      const page = decodeEntryPage(new Uint8Array(await response.arrayBuffer()));
      assert.ok(page !== undefined);
      const view = new DataView(page.rows.buffer, page.rows.byteOffset, page.rows.length);
      for (let row = 0; row < page.rows.length; row += ENTRY_ROW_BYTES) positions.push(entryPosition(view, row));
      sizes.push(page.rows.length / ENTRY_ROW_BYTES);
      next = response.headers.get(PAGE_NEXT);
    }
    assert.deepEqual(sizes, [500, 500, 150, 1, 1]);
    assert.deepEqual([positions.length, positions[0], positions.at(-1)], [1_152, 1, 1_203]);
    assert.deepEqual([copy.pullRow, copy.pullPosition], cursor);
    assert.deepEqual([fingerprint(store, copy)], before);
  });

  test('gives a copy that is in no record, as a gateway left it that was filling it', async (t) => {
    const running = await testStore({ admin: { listen: OWN } });
    t.after(() => running.stop());
    const copy = found(running.store);
    change(running.store, copy, storing(1, 'body'), storing(2, 'body'), storing(3, 'body'));
    copy.isComplete = false;
    const url = `http://127.0.0.1:${String(running.adminPort)}/api/v1`;
    const { rows } = (await (await fetch(`${url}/partitions`)).json()) as { readonly rows: readonly { readonly partition: string }[] };
    assert.deepEqual(rows.map(({ partition }) => partition), ['g1/1'], 'the command finds it by its name');
    const page = decodeEntryPage(new Uint8Array(await (await fetch(`${url}/export?partition=g1/1`)).arrayBuffer()));
    assert.equal((page?.rows.length ?? 0) / ENTRY_ROW_BYTES, 3);
  });

  test('wants the token, knows no other partitions, and refuses a cursor that is none', async (t) => {
    const running = await testStore({ admin: { listen: OWN, tokensFile: tokensFile() } });
    t.after(() => running.stop());
    found(running.store);
    const url = `http://127.0.0.1:${String(running.adminPort)}/api/v1/export?partition=g1/`;
    const status = async (more: string, headers: Record<string, string>): Promise<number> => (await fetch(url + more, { headers })).status;
    const authorization = `Bearer ${TOKEN}`;
    assert.equal(await status('1', {}), 401);
    assert.equal(await status('1', { authorization }), 200);
    assert.equal(await status('2', { authorization }), 404);
    assert.equal(await status('1&after=-3', { authorization }), 400);
    assert.equal(await status('1&after=x', { authorization }), 400);
  });
});

test('a page that is cut short or has odd rows is no page', () => {
  assert.equal(decodeEntryPage(new Uint8Array(3)), undefined);
  assert.equal(decodeEntryPage(Uint8Array.of(41, 0, 0, 0, ...new Uint8Array(41))), undefined);
  assert.equal(decodeEntryPage(Uint8Array.of(40, 0, 0, 0, ...new Uint8Array(40))), undefined, 'position 0');
  assert.deepEqual(decodeEntryPage(new Uint8Array(4))?.rows.length, 0);
});
