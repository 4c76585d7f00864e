/**
 * Messages through the signer: what verifies, what is told when it can't sign, that few are under way at once, and that a
 * large body holds nobody up. The signature is checked by Node's own verify() over text that the test canonicalizes itself;
 * a real verifier does so in test/thirdparty/dkimpy.
 */
import assert from 'node:assert/strict';
import { createHash, createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';

import type { DkimKey } from '../../../../../src/gateway/dkim/node/dkim-keys.js';
import { DkimSigner } from '../../../../../src/gateway/dkim/node/dkim-signer.js';
import type { JudgedMessage } from '../../../../../src/gateway/inbound/hooks/message-hook.js';
import { DkimMetrics } from '../../../../../src/observability/dkim-metrics.js';
import { NO_LOG, WALL_MS } from '../../../../inbound/desk.js';
import { judged } from '../../inbound/hooks/judged.js';
import { ED25519, RSA } from './new-keys.js';

const HEADER = 'Received: from a\r\n\tby b\r\nFrom: Alice <a@x.example>\r\nSubject: one\r\nsubject: two\r\n';
const TAGS = { domain: 'x.example', keyFile: '', expiresAfterMs: undefined } as const;
const RSA_KEY: DkimKey = { ...TAGS, selector: 'r1', algorithm: 'rsa-sha256', key: RSA };
const ED_KEY: DkimKey = { ...TAGS, selector: 'e1', algorithm: 'ed25519-sha256', key: ED25519 };

class Kit {
  readonly metrics = new DkimMetrics();
  readonly told: string[] = [];
  readonly signer: DkimSigner;
  aheadMs = 0;
  /** Called when a body is hashed, and not signed yet. */
  onHashed = (): void => undefined;

  keys: readonly DkimKey[];

  constructor(keys: readonly DkimKey[] = [ED_KEY, RSA_KEY]) {
    this.keys = keys;
    const error = (event: string, _text: string, fields: object = {}): void => void this.told.push(`${event} ${JSON.stringify(fields)}`);
    this.signer = new DkimSigner({
      keys: { areNone: keys.length === 0, of: (domain) => (domain === 'x.example' ? this.keys : []) },
      clock: { nowMs: () => performance.now() + this.aheadMs, wallMs: () => this.#wallMs() }, log: { ...NO_LOG, error }, metrics: this.metrics,
    });
  }

  /** The fields, or the refusal. */
  sign(text: string | JudgedMessage): Promise<string> {
    return new Promise((resolve) => {
      const message = typeof text === 'string' ? messageOf(text) : text;
      this.signer.sign(message, () => true, (refusal, fields) => { resolve(refusal?.reply ?? Buffer.from(fields).toString('latin1')); });
    });
  }

  #wallMs(): number {
    this.onHashed();
    return WALL_MS;
  }

  counted(): Record<string, number> {
    return Object.fromEntries(this.metrics.messages);
  }
}

function messageOf(text: string, pieces = 1, isGone = (): boolean => false): JudgedMessage {
  const octets = Buffer.from(text, 'latin1');
  const size = Math.max(1, Math.ceil(octets.length / pieces));
  const content = Array.from({ length: pieces }, (_none, index) => octets.subarray(index * size, (index + 1) * size));
  return judged({}, content, isGone);
}

/** Of which it takes all of the share, however fast the machine is. */
function eachStepTakesATurn(t: TestContext): void {
  let nowMs = 0;
  t.mock.method(performance, 'now', () => (nowMs += 6));
}

/** As RFC 6376 3.4 and 3.7 say, without the code under test. `below`: what stands behind the signature. */
function isGood(signature: string, below: string, key: KeyObject): boolean {
  const tag = (name: string): string => new RegExp(`[;\\s]${name}=([^;]*)`).exec(signature)?.[1]?.replace(/\s/g, '') ?? '';
  const [header = '', ...rest] = below.split('\r\n\r\n');
  const blanks = (text: string): string => text.replace(/\r\n(?=[ \t])/g, '').replace(/[ \t]+/g, ' ');
  const lines = rest.join('\r\n\r\n').split('\r\n').map((line) => line.replace(/[ \t]+/g, ' ').replace(/ $/, ''));
  while (lines.at(-1) === '') lines.pop();
  const bodyHash = createHash('sha256').update(Buffer.from(lines.map((line) => `${line}\r\n`).join(''), 'latin1')).digest('base64');
  const fields = header.split(/\r\n(?![ \t])/).map((field) => blanks(field).replace(/^([^:]*?) ?: ?/, (_all, name: string) => `${name.toLowerCase()}:`).trimEnd());
  let signed = '';
  for (const name of tag('h').split(':')) {
    const at = fields.findLastIndex((field) => field.startsWith(`${name}:`));
    if (at >= 0) signed += `${fields.splice(at, 1)[0] ?? ''}\r\n`;
  }
  const own = blanks(signature.trimEnd()).replace(/^DKIM-Signature: /, 'dkim-signature:').replace(/ b=.*$/, ' b=');
  const data = Buffer.from(signed + own, 'latin1');
  const made = Buffer.from(tag('b'), 'base64');
  const isRsa = key.asymmetricKeyType === 'rsa';
  return tag('bh') === bodyHash && verify(isRsa ? 'sha256' : null, isRsa ? data : createHash('sha256').update(data).digest(), createPublicKey(key), made);
}

describe('the signer', () => {
  test('puts Ed25519 above RSA, and both verify, however the message is cut', async () => {
    for (const pieces of [1, 2, 3, 7, 40]) {
      const text = `${HEADER}\r\nHello \t you \r\n\r\n\r\nb\u00e4\r\n\r\n`;
      const fields = await new Kit().sign(messageOf(text, pieces));
      const [first = '', second = ''] = fields.split(/(?<=\r\n)(?=DKIM-Signature)/);
      assert.match(first, /^DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed\/relaxed; d=x\.example; s=e1;\r\n t=1795229168; h=from:from:to:cc:subject:subject:subject:date:/);
      assert.match(second, /^DKIM-Signature: v=1; a=rsa-sha256; c=relaxed\/relaxed; d=x\.example; s=r1;\r\n/);
      assert.ok(isGood(first, text, ED25519), first);
      assert.ok(isGood(second, text, RSA), second);
      assert.ok(!isGood(second, text.replace('Hello', 'hello'), RSA));
      assert.ok(!isGood(second, `Subject: three\r\n${text}`, RSA), 'one more Subject breaks it');
    }
  });

  test('says when its signature ends, where it does', async () => {
    const fields = await new Kit([{ ...RSA_KEY, expiresAfterMs: 86_400_000 }]).sign(`${HEADER}\r\nx\r\n`);
    assert.match(fields, / t=1795229168; x=1795315568; h=/);
  });

  test('leaves what has no key, or no plain From, as it is, and counts it', async () => {
    const kit = new Kit();
    for (const text of ['From: a@y.example\r\n\r\n', 'To: a@x.example\r\n\r\n', 'x\r\n\r\n', '\r\n']) assert.equal(await kit.sign(text), '', text);
    assert.deepEqual(kit.counted(), { 'no-key': 1, 'from': 1, 'header': 2 });
  });

  test('tells the client to come later when a key fails, and the log once', async () => {
    const broken: DkimKey = { ...RSA_KEY, key: generateKeyPairSync('x25519').privateKey };
    const kit = new Kit([ED_KEY, broken]);
    for (let i = 0; i < 3; i++) assert.equal(await kit.sign(`${HEADER}\r\nx\r\n`), '451 4.7.0 The message can not be signed now; try again later');
    assert.deepEqual([kit.counted(), kit.told.length], [{ failed: 3 }, 1]);
    assert.match(kit.told[0] ?? '', /^dkim \{"domain":"x\.example","why":"/);
    const report = await new Promise((resolve) => { kit.signer.signReport(Buffer.from(`${HEADER}\r\nx\r\n`), resolve); });
    assert.deepEqual([report, kit.metrics.reportsUnsigned], [undefined, 1]);
  });

  test('signs reports of a domain with a key, and none of others, which count as unsigned where any has one', async () => {
    const kit = new Kit();
    const text = 'From: Mail Delivery System <MAILER-DAEMON@x.example>\r\nTo: <b@y.example>\r\n\r\nx\r\n';
    const fields = await new Promise<Uint8Array | undefined>((resolve) => { assert.ok(kit.signer.signReport(Buffer.from(text), resolve)); });
    const [, rsa = ''] = Buffer.from(fields ?? []).toString('latin1').split(/(?<=\r\n)(?=DKIM-Signature)/);
    assert.ok(isGood(rsa, text, RSA));
    assert.equal(kit.signer.signReport(Buffer.from(text.replace('x.example', 'z.example')), () => assert.fail()), false);
    assert.deepEqual([kit.metrics.reportsSigned, kit.metrics.reportsUnsigned], [1, 1]);
    const without = new Kit([]);
    assert.equal(without.signer.signReport(Buffer.from(text), () => assert.fail()), false);
    assert.equal(without.metrics.reportsUnsigned, 0);
  });

  test('has a report wait for half a minute: then it leaves unsigned', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const kit = new Kit([RSA_KEY]);
    const told: unknown[] = [];
    assert.ok(kit.signer.signReport(Buffer.from(`${HEADER}\r\nx\r\n`), (fields) => { told.push(fields); }));
    t.mock.timers.tick(29_999);
    assert.deepEqual(told, []);
    t.mock.timers.tick(1);
    assert.deepEqual(told, [undefined]);
  });

  test('has a line of a thousand, and tells those behind to come later', async () => {
    const kit = new Kit([RSA_KEY]);
    const asked = Array.from({ length: 1003 }, () => kit.sign(`${HEADER}\r\nx\r\n`));
    assert.equal(await asked.at(-1), '451 4.3.2 Too many messages wait to be signed; try again later');
    const all = await Promise.all(asked);
    assert.equal(all.filter((text) => text.startsWith('DKIM-Signature: ')).length, 1002);
    assert.deepEqual(kit.counted(), { busy: 1, signed: 1002 });
    assert.match(await kit.sign(`${HEADER}\r\nx\r\n`), /^DKIM-Signature: /);
  });

  test('ends with the keys that it began with, though its domain has none any more', async () => {
    const kit = new Kit([RSA_KEY]);
    const asked = Array.from({ length: 5 }, () => kit.sign(`${HEADER}\r\nx\r\n`));
    kit.keys = [];
    for (const fields of await Promise.all(asked)) assert.match(fields, /^DKIM-Signature: /);
    assert.equal(await kit.sign(`${HEADER}\r\nx\r\n`), '');
    assert.deepEqual(kit.counted(), { 'signed': 5, 'no-key': 1 });
  });

  test('tells who comes to come later while those under way do not move', async () => {
    const kit = new Kit([RSA_KEY]);
    const large = `${HEADER}\r\n${'x'.repeat(3_000_000)}\r\n`;
    const before = [kit.sign(large), kit.sign(large), kit.sign(large)];
    kit.aheadMs = 11_000;
    assert.match(await kit.sign(large), /^451 4\.3\.2 /);
    for (const fields of await Promise.all(before)) assert.match(fields, /^DKIM-Signature: /);
    assert.match(await kit.sign(large), /^DKIM-Signature: /);
  });

  test('keeps no more header in its line than it may, and lets more come when that is signed', async () => {
    const kit = new Kit([RSA_KEY]);
    const large = `${HEADER}References: ${'<x@x.example> '.repeat(20_000)}\r\n\r\nx\r\n`;
    const all = await Promise.all(Array.from({ length: 80 }, () => kit.sign(large)));
    const busy = all.filter((text) => text.startsWith('451 4.3.2 ')).length;
    assert.ok(busy > 10 && busy < 30, String(busy));
    const again = await Promise.all(Array.from({ length: 40 }, () => kit.sign(large)));
    assert.ok(again.every((text) => text.startsWith('DKIM-Signature: ')), 'what has left it makes room');
  });

  test('drops whose client has gone, in its line and between two turns', async (t) => {
    const kit = new Kit([RSA_KEY]);
    eachStepTakesATurn(t);
    const large = `${HEADER}\r\n${'x'.repeat(3_000_000)}\r\n`;
    let haveGone = false;
    const leaving = (text: string): Promise<string> => kit.sign(messageOf(text, 1, () => haveGone));
    const asked = [leaving(large), kit.sign(large), ...Array.from({ length: 300 }, () => leaving(`${HEADER}\r\nx\r\n`))];
    haveGone = true;
    await Promise.all(asked);
    assert.deepEqual(kit.counted(), { abandoned: 301, signed: 1 });
  });

  test('of large bodies hashes 128 KiB a step, and of all together few a turn', async (t) => {
    const text = `${HEADER}\r\n${'a \r\n'.repeat(131_072)}`;
    const kit = new Kit([RSA_KEY]);
    eachStepTakesATurn(t);
    let turns = 0;
    let hashedCount = 0;
    kit.onHashed = () => { hashedCount++; };
    const count = (): void => {
      turns++;
      if (hashedCount < 2) setImmediate(count);
    };
    setImmediate(count);
    const signed = await Promise.all([kit.sign(messageOf(text)), kit.sign(messageOf(text, 3))]);
    // One MiB in all; the first step is done at once.
    assert.ok(turns >= 7, `${turns} turns`);
    for (const fields of signed) assert.ok(isGood(fields, text, RSA));
  });
});
