/** Keys of signatures as files: which can be used, alone and together, and that a bad one never replaces a good one. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync, unlinkSync } from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { DkimKeys, readDkimKey, whyNotBeside } from '../../../../../src/gateway/dkim/node/dkim-keys.js';
import type { DkimKeyOptions } from '../../../../../src/gateway/dkim/node/dkim-keys.js';
import { NO_LOG } from '../../../../inbound/desk.js';
import { until } from '../../../../process/cluster.js';
import { ED25519, RSA, pem, writeKey } from './new-keys.js';

const folder = mkdtempSync(join(os.tmpdir(), 'twinpost-dkim-'));
after(() => { rmSync(folder, { recursive: true }); });

function optionsOf(keyFile: string, domain = 'x.example'): DkimKeyOptions {
  return { domain, selector: 's1', keyFile, expiresAfterMs: undefined };
}

function why(text: string, mode?: number): string {
  try {
    return readDkimKey(optionsOf(writeKey(folder, 'judged.pem', text, mode))).algorithm;
  } catch (error) {
    return (error as Error).message.replace(folder, '');
  }
}

test('RSA of 2048 bits or more and Ed25519 are keys, in PKCS #1 and PKCS #8', () => {
  assert.equal(why(pem(RSA)), 'rsa-sha256');
  assert.equal(why(pem(RSA, 'pkcs1')), 'rsa-sha256');
  assert.equal(why(pem(ED25519)), 'ed25519-sha256');
  assert.equal(why(pem(RSA), 0o640), 'rsa-sha256');
});

test('others are refused, each in words that say what to do', () => {
  const short = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey;
  assert.equal(why(pem(short)), "'/judged.pem' is an RSA key of 1024 bits; 2048 or more are needed (RFC 8301)");
  assert.match(why(pem(generateKeyPairSync('rsa', { modulusLength: 2040 }).privateKey)), /RSA key of 2040 bits/);
  assert.match(why(pem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)), /a key of type ec; DKIM knows RSA and Ed25519$/);
  assert.match(why(pem(generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).privateKey)), /a key of type rsa-pss/);
  assert.match(why(RSA.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' }).toString()), /is no private key in PEM: the key is encrypted: store it without its passphrase/);
  assert.match(why(''), /is no private key in PEM: there is no -----BEGIN/);
  assert.match(why(pem(RSA).slice(0, 800)), /is no private key in PEM: /);
  assert.match(why('x'.repeat(100_000)), /is no file with a key$/);
  for (const mode of [0o604, 0o602, 0o644]) assert.match(why(pem(RSA), mode), /^everybody on this machine may read or write '\/judged\.pem': chmod o-rw$/);
  assert.throws(() => readDkimKey(optionsOf(join(folder, 'absent.pem'))), /absent\.pem' can't be read: ENOENT$/);
  assert.throws(() => readDkimKey(optionsOf(folder)), /is no file with a key$/);
});

test('a domain has one RSA key, and beside it one of Ed25519', () => {
  const rsa = readDkimKey(optionsOf(writeKey(folder, 'rsa.pem', pem(RSA))));
  const ed25519 = readDkimKey(optionsOf(writeKey(folder, 'ed.pem', pem(ED25519))));
  assert.deepEqual([whyNotBeside(rsa, [rsa, ed25519]), whyNotBeside(ed25519, [rsa, ed25519]), whyNotBeside(rsa, [rsa])], ['', '', '']);
  assert.match(whyNotBeside(ed25519, [ed25519]), /^an Ed25519 key alone; x\.example needs an RSA key too: many who verify know no other/);
  const another = { ...rsa };
  assert.match(whyNotBeside(another, [rsa, another]), /^a second RSA key of x\.example/);
});

test('a key that changes is read anew, and one that can\'t be used never replaces it', { timeout: 60_000 }, async () => {
  const told: string[] = [];
  const stale: (boolean | undefined)[] = [];
  const note = (event: string, text: string, fields: object = {}): void => void told.push(`${event} ${text} ${JSON.stringify(fields)}`);
  const file = writeKey(folder, 'followed.pem', pem(RSA));
  const edFile = writeKey(folder, 'followed-ed.pem', pem(ED25519));
  const keys = new DkimKeys([optionsOf(file), optionsOf(edFile)], { log: { ...NO_LOG, info: note, error: note }, onRead: (isStale) => void stale.push(isStale) });
  try {
    const inForce = (): string => keys.of('x.example').map(({ key }) => pem(key)).join('');
    assert.deepEqual(keys.of('x.example').map(({ algorithm }) => algorithm), ['ed25519-sha256', 'rsa-sha256']);
    assert.deepEqual(keys.of('y.example'), []);
    const before = inForce();
    for (const [text, mode, said] of [
      ['nonsense', 0o600, /^dkim a new key for signatures can't be used, the old one stays .*is no private key in PEM/],
      [pem(RSA), 0o644, /everybody on this machine may read or write/],
      [pem(ED25519), 0o600, /it is of the other kind/],
    ] as const) {
      const count = told.length;
      renameSync(writeKey(folder, 'next.pem', text, mode), file);
      await until('it is looked at', () => told.length > count, 10_000);
      assert.match(told.at(-1) ?? '', said);
      assert.deepEqual([inForce(), stale.at(-1)], [before, true]);
    }
    unlinkSync(file);
    await until('it is missed', () => told.at(-1)?.includes('ENOENT') === true, 10_000);
    assert.equal(inForce(), before);
    const other = pem(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey);
    writeKey(folder, 'next.pem', other);
    renameSync(join(folder, 'next.pem'), file);
    await until('it is read anew', () => told.at(-1)?.includes('a key for signatures was read anew') === true, 10_000);
    assert.deepEqual([inForce(), stale.at(-1)], [pem(ED25519) + other, false]);
  } finally {
    keys.close();
  }
});

test('a key that stays may change to one of its kind while others are read', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const file = writeKey(folder, 'rotated.pem', pem(RSA));
  const more = writeKey(folder, 'more.pem', pem(RSA));
  const keys = new DkimKeys([optionsOf(file)], { log: NO_LOG, onRead: () => undefined });
  try {
    const [before] = keys.of('x.example');
    const reading = keys.prepare([optionsOf(file), ...Array.from({ length: 500 }, (_, i) => optionsOf(more, `${String(i)}.example`))]);
    renameSync(writeKey(folder, 'next.pem', pem(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey)), file);
    t.mock.timers.tick(1000);
    assert.notEqual(keys.of('x.example')[0], before);
    const ready = await reading;
    assert.ok(!('why' in ready), 'why' in ready ? ready.why : '');
    const [after] = keys.of('x.example');
    ready();
    assert.deepEqual([keys.of('x.example')[0] === after, keys.domains.length], [true, 501]);
  } finally {
    keys.close();
  }
});

test('other keys are read before they count, those that stay are not read again, and one that can\'t be used changes nothing', async () => {
  const stale: (boolean | undefined)[] = [];
  const file = writeKey(folder, 'stays.pem', pem(RSA));
  const keys = new DkimKeys([optionsOf(file)], { log: NO_LOG, onRead: (isStale) => void stale.push(isStale) });
  try {
    const [before] = keys.of('x.example');
    const y = optionsOf(writeKey(folder, 'new.pem', pem(RSA)), 'y.example');
    const ready = await keys.prepare([optionsOf(file), y]);
    assert.ok(!('why' in ready));
    assert.deepEqual(keys.domains, ['x.example']);
    ready();
    assert.deepEqual(keys.domains, ['x.example', 'y.example']);
    assert.equal(keys.of('x.example')[0], before);
    for (const [more, index, why] of [
      [[optionsOf(join(folder, 'absent.pem'), 'z.example')], 2, /ENOENT/],
      [[{ ...y, selector: 's2' }], 2, /a second RSA key of y\.example/],
    ] as const) {
      const refused = await keys.prepare([optionsOf(file), y, ...more]);
      assert.ok('why' in refused);
      assert.equal(refused.index, index);
      assert.match(refused.why, why);
    }
    assert.deepEqual(keys.domains, ['x.example', 'y.example']);
    const none = await keys.prepare([]);
    assert.ok(!('why' in none));
    none();
    assert.deepEqual([keys.areNone, keys.of('x.example'), stale.at(-1)], [true, [], undefined]);
  } finally {
    keys.close();
  }
});
