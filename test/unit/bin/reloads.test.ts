/** Readings of a configuration, one after another, src/bin/reloads.ts: who asks while one waits for its turn is in the log, too. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Reloads } from '../../../src/bin/reloads.js';
import type { GatewayFile } from '../../../src/cli/context.js';
import { KEYS_OF_GATEWAY } from '../../../src/config/changes.js';
import { parseConfig } from '../../../src/config/load.js';
import { KeptLog } from '../gateway/admin/kept-log.js';

const parsed = parseConfig(`
gateway:
  id: gw-1
  host: box-1
  secret: a secret of 16 or more characters
  stores: [{id: s1, host: box-2, paths: [{name: A, address: '127.0.0.1:7401'}]}, {id: s2, host: box-3, paths: [{name: A, address: '127.0.0.1:7402'}]}]
  routes: [{domain: '*', via: 'smtp://127.0.0.1:26'}]
`, 'f.yaml', { role: 'gateway', stateDir: '/state' });
assert.ok(parsed.ok);
const FILE = { keys: parsed, place: () => 'f.yaml:1', again: () => FILE } as unknown as GatewayFile;

test('each who has ordered a reading is in the log with its outcome, those who joined one that waits as well', async () => {
  for (const why of ['', 'no such port']) {
    const log = new KeptLog();
    let readings = 0;
    const reloads = new Reloads(FILE, {
      log, keysOf: KEYS_OF_GATEWAY, warningsOf: () => [], onBroken: () => { assert.fail(); },
      target: {
        prepare: () => {
          readings += 1;
          return why === '' ? Promise.resolve({ use: () => undefined, drop: () => undefined }) : Promise.reject(new Error(why));
        },
        refused: () => undefined,
      },
    });
    const asked = ['ann', 'bob', 'eve'].map((who) => reloads.reload({ who, reason: `of ${who}` }));
    assert.deepEqual((await Promise.all(asked)).map((outcome) => outcome.why), [why, why, why]);
    assert.equal(readings, 1);
    assert.deepEqual(log.lines.map(({ fields }) => [fields['who'], fields['reason'], fields['why'] ?? '']), ['ann', 'bob', 'eve'].map((who) => [who, `of ${who}`, why]));
  }
});

test('a comparison serves all who ask before it begins, and one runs at a time', async () => {
  const reloads = new Reloads(FILE, {
    log: new KeptLog(), keysOf: KEYS_OF_GATEWAY, warningsOf: () => [], onBroken: () => { assert.fail(); },
    target: { prepare: () => assert.fail(), refused: () => undefined },
  });
  let begun = 0;
  let ended = 0;
  const effects = async (): Promise<{ following: number; secrets: [] }> => {
    assert.equal(begun++, ended, 'none runs');
    await new Promise((resolve) => { setTimeout(resolve, 20); });
    return { following: ++ended, secrets: [] };
  };
  const compare = async (): Promise<number> => (await reloads.compare(effects)).following;
  const first = [compare(), compare(), compare()];
  await new Promise((resolve) => { setTimeout(resolve, 5); });
  const second = [compare(), compare()];
  assert.deepEqual([await Promise.all(first), await Promise.all(second), begun], [[1, 1, 1], [2, 2], 2]);
});

test('both answers bring what config check warns of, bounded; what can not be told refuses nothing', async () => {
  const told = async (warningsOf: () => readonly string[], why = ''): Promise<readonly (readonly string[])[]> => {
    const prepare = (): Promise<{ use: () => undefined; drop: () => undefined }> =>
      why === '' ? Promise.resolve({ use: () => undefined, drop: () => undefined }) : Promise.reject(new Error(why));
    const reloads = new Reloads(FILE, {
      log: new KeptLog(), keysOf: KEYS_OF_GATEWAY, warningsOf, onBroken: () => { assert.fail(); }, target: { prepare, refused: () => undefined },
    });
    const compared = await reloads.compare(async () => { await prepare(); return { following: 0, secrets: [] }; });
    const reloaded = await reloads.reload({ who: 'ann', reason: 'new certificate' });
    assert.deepEqual([compared.why, reloaded.why], [why, why]);
    return [compared.warnings, reloaded.warnings];
  };
  assert.deepEqual(await told(() => ['one', 'two']), [['one', 'two'], ['one', 'two']]);
  const bounded = [...Array<string>(20).fill('x'.repeat(1000)), 'and 5 more warnings: twinpost config check FILE'];
  assert.deepEqual(await told(() => Array<string>(25).fill('x'.repeat(5000))), [bounded, bounded]);
  const gone = ["warnings can't be told: 'a.crt' can't be read: ENOENT"];
  assert.deepEqual(await told(() => { throw new Error("'a.crt' can't be read: ENOENT"); }), [gone, gone]);
  assert.deepEqual(await told(() => assert.fail(), 'no such port'), [[], []]);
});
