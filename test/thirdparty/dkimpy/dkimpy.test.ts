/**
 * Signatures as dkimpy sees them, RSA and Ed25519: of a thousand odd messages by the signer alone, of those inside Python's
 * email test data, and of mail that went through a gateway process, whose sender's own signature still holds; and signatures
 * of dkimpy as a gateway sees them that checks senders, and as they are behind it.
 */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { Prng } from '../../../src/base/prng.js';
import { DkimSigner } from '../../../src/gateway/dkim/node/dkim-signer.js';
import type { DkimKey } from '../../../src/gateway/dkim/node/dkim-keys.js';
import { DkimMetrics } from '../../../src/observability/dkim-metrics.js';
import { wireContent, withLineEnds } from '../../../src/smtp/content-lines.js';
import { NO_LOG } from '../../inbound/desk.js';
import { findPythonWith } from '../../outside-sets.js';
import { ED25519, RSA, pem, recordOf, writeKey } from '../../unit/gateway/dkim/node/new-keys.js';
import { judged } from '../../unit/gateway/inbound/hooks/judged.js';
import { NameServer } from '../../unit/platform/node/dns/name-server.js';
import { freePorts } from '../../process/free-ports.js';
import { SmtpTalk } from '../../process/smtp-talk.js';
import { scriptOf } from '../../unit/gateway/inbound/sender-checks/zone.js';
import { mustRun, readMaildir, sendRaw, withMailbox } from '../support.js';
import { oddMail } from './odd-mail.js';

const PROGRAM = resolve('test/thirdparty/dkimpy/verify.py');
const ODD_MESSAGES = 1000;
const CHECKED_MESSAGES = 300;
const FROMS = [
  ' a@x.example', '\ta@x.example', ' Alice\r\n <a@X.Example>\t', ' "A, B" <a@x.example>, c@x.example', ' (c) a@x.example', '\r\n a@x.example', ' =?utf-8?b?w6Q=?= <a@x.example>  ',
] as const;

let folder = '';
const python = findPythonWith('dkim, nacl') ?? '';
before(() => { folder = mkdtempSync(join(tmpdir(), 'twinpost-dkimpy-')); });
after(() => { rmSync(folder, { recursive: true }); });

/** Tags a=, d= and s= of a signature, and 'good' or why not. */
type Told = readonly [a: string, d: string, s: string, result: string];

/** What dkimpy says of each message, by its name. */
async function verified(messages: ReadonlyMap<string, Buffer>): Promise<ReadonlyMap<string, readonly Told[]>> {
  const mails = mkdtempSync(join(folder, 'mails-'));
  for (const [name, message] of messages) writeFileSync(join(mails, name), message);
  const [rsa, ed25519] = [recordOf(pem(RSA)), recordOf(pem(ED25519))];
  const of = (domain: string): [string, string][] => [[`r1._domainkey.${domain}`, rsa], [`e1._domainkey.${domain}`, ed25519]];
  const domains = ['x.example', ...new Set([...messages.values()].flatMap((message) => [...message.toString('latin1').matchAll(/^DKIM-Signature: .* d=([^;\s]+);/gm)].map(([, domain]) => domain ?? '')))];
  const records = join(folder, 'records.json');
  writeFileSync(records, JSON.stringify(Object.fromEntries([...domains.flatMap(of), ['o1._domainkey.other.example', rsa]])));
  return new Map(Object.entries(JSON.parse(await mustRun(python, [PROGRAM, records, mails])) as Record<string, readonly Told[]>));
}

function newSigner(): DkimSigner {
  const keys = (domain: string): readonly DkimKey[] => [
    { domain, selector: 'e1', algorithm: 'ed25519-sha256', key: ED25519, keyFile: '', expiresAfterMs: undefined },
    { domain, selector: 'r1', algorithm: 'rsa-sha256', key: RSA, keyFile: '', expiresAfterMs: 7 * 86_400_000 },
  ];
  return new DkimSigner({ keys: { areNone: false, of: keys }, clock: { nowMs: () => performance.now(), wallMs: () => Date.now() }, log: NO_LOG, metrics: new DkimMetrics() });
}

/** The message behind its signatures, which may be none; cut into pieces by lot. */
function signed(signer: DkimSigner, message: Buffer, prng: Prng): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for (let at = 0; at < message.length;) {
    const end = Math.min(message.length, at + 1 + prng.below(prng.pick([3, 100, 5000])));
    pieces.push(message.subarray(at, end));
    at = end;
  }
  return new Promise((done, fail) => {
    signer.sign(judged({}, pieces), () => true, (refusal, fields) => {
      if (refusal === undefined) done(Buffer.concat([fields, message]));
      else fail(new Error(refusal.reply));
    });
  });
}

const BOTH: readonly Told[] = [['ed25519-sha256', 'x.example', 'e1', 'good'], ['rsa-sha256', 'x.example', 'r1', 'good']];

describe('dkimpy', () => {
  test('verifies both signatures of a thousand odd messages', { timeout: 240_000 }, async () => {
    const signer = newSigner();
    const prng = new Prng(6376);
    const messages = new Map<string, Buffer>();
    for (let seed = 0; seed < ODD_MESSAGES; seed++) {
      const message = Buffer.from(oddMail(seed, prng.pick(FROMS)), 'latin1');
      messages.set(`${String(seed).padStart(4, '0')}.eml`, await signed(signer, message, prng));
    }
    const told = await verified(messages);
    assert.equal(told.size, ODD_MESSAGES);
    for (const [name, results] of told) assert.deepEqual(results, BOTH, `${name}:\n${messages.get(name)?.toString('latin1').slice(0, 4000) ?? ''}`);
  });

  test("verifies those of Python's email tests that have one plain From", { timeout: 120_000 }, async () => {
    const withTests = findPythonWith('test.test_email');
    assert.ok(withTests !== undefined, 'no Python here has test.test_email (Debian: libpython3.11-testsuite)');
    const messages = new Map<string, Buffer>();
    const prng = new Prng(8463);
    const script = 'import os, test.test_email; print(os.path.join(os.path.dirname(test.test_email.__file__), "data"))';
    const data = (await mustRun(withTests, ['-c', script])).trim();
    const names = readdirSync(data).filter((name) => name.endsWith('.txt'));
    for (const name of names) messages.set(name, await signed(newSigner(), Buffer.from(withLineEnds(readFileSync(join(data, name)))), prng));
    const told = await verified(messages);
    const signedNames = [...told].filter(([, results]) => results.length > 0);
    assert.ok(signedNames.length >= 20, `${signedNames.length} of ${names.length} were signed`);
    for (const [name, results] of signedNames) assert.deepEqual(results.map(([, , , result]) => result), ['good', 'good'], name);
  });

  test('finds each signature broken by what a relay must not do', { timeout: 60_000 }, async () => {
    const text = 'From: a@x.example\r\nSubject: s\r\n\r\none two\r\n';
    const good = (await signed(newSigner(), Buffer.from(text), new Prng(1))).toString('latin1');
    const at = good.indexOf('From: a@');
    const [fields, message] = [good.slice(0, at), good.slice(at)];
    const variants = new Map([
      ['blanks', `${fields}Received: r\r\n${message.replace('Subject: s', 'SUBJECT :  s \t').replace('one two\r\n', 'one \t two  \r\n\r\n')}`.replace('SUBJECT :', 'SUBJECT:')],
      ['body', `${fields}${message}more\r\n`],
      ['word', `${fields}${message.replace('one two', 'onetwo')}`],
      ...['From: b@y.example', 'Subject: t', 'To: c@z.example', 'Cc: c', 'Date: d', 'Message-ID: <m>', 'Reply-To: r', 'MIME-Version: 1.0', 'Content-Type: text/html', 'Content-Transfer-Encoding: base64']
        .map((field) => [`added ${field.split(':', 1)[0] ?? ''}`, `${fields}${field}\r\n${message}`] as const),
    ].map(([name = '', variant = '']) => [name, Buffer.from(variant, 'latin1')] as const));
    for (const [name, results] of await verified(variants)) {
      assert.equal(results.length, 2);
      assert.equal(results.every(([, , , result]) => result === 'good'), name === 'blanks', `${name}: ${results.join(' ')}`);
      if (name !== 'blanks') assert.ok(results.every(([, , , result]) => result !== 'good'), name);
    }
  });

  test('verifies what a gateway delivers, and the signature that a message brought', { timeout: 120_000 }, async () => {
    mkdirSync(join(folder, 'keys'));
    const rsa = writeKey(join(folder, 'keys'), 'rsa.pem', pem(RSA, 'pkcs1'));
    const ed25519 = writeKey(join(folder, 'keys'), 'ed.pem', pem(ED25519));
    const foreign = join(folder, 'foreign.eml');
    writeFileSync(foreign, 'From: a@x.example\r\nTo: b@y.example\r\nSubject: brought  two\r\n\r\nbody \r\n\r\n\r\n');
    const sent = [
      ...Array.from({ length: 40 }, (_none, seed) => Buffer.from(oddMail(5000 + seed, FROMS[seed % FROMS.length] ?? ''), 'latin1')),
      Buffer.from(await mustRun(python, [PROGRAM, 'sign', rsa, foreign]), 'latin1'),
      Buffer.from(`From: a@x.example\r\n\r\n${'a line of a large body \r\n'.repeat(200_000)}`),
      Buffer.from('From: c@elsewhere.example\r\n\r\nnot ours\r\n'),
    ];
    await withMailbox(async (cluster) => {
      for (const [index, message] of sent.entries()) {
        assert.match(await sendRaw(cluster.smtpPort, message, 'odd@a.example', ' BODY=8BITMIME'), /^250 /);
        await cluster.sinkHas(index + 1);
      }
      const kept = readMaildir(cluster.maildir);
      assert.equal(kept.length, sent.length);
      const told = await verified(new Map(kept.map((message, index) => [`${String(index).padStart(4, '0')}.eml`, message])));
      for (const [index, message] of sent.entries()) {
        const all = kept[index] ?? Buffer.alloc(0);
        const added = all.toString('latin1', 0, all.length - message.length);
        assert.ok(all.subarray(added.length).equals(message), `message ${index} is altered behind what stands in front`);
        const isOurs = index < sent.length - 1;
        assert.match(added, isOurs ? /^DKIM-Signature: [^]*\r\nDKIM-Signature: [^]*\r\nReceived: [^\r\n]*\r\n(?:[ \t][^\r\n]*\r\n)*$/ : /^Received: /);
        const brought: readonly Told[] = index === sent.length - 3 ? [['rsa-sha256', 'other.example', 'o1', 'good']] : [];
        assert.deepEqual(told.get(`${String(index).padStart(4, '0')}.eml`), isOurs ? [...BOTH, ...brought] : [], `message ${index}`);
      }
    }, { gateway: { dkim: [{ domain: 'x.example', selector: 'r1', key_file: rsa }, { domain: 'X.example', selector: 'e1', key_file: ed25519 }] } });
  });

  test('signs three hundred odd messages that a gateway finds right, and that are right behind it', { timeout: 240_000 }, async (t) => {
    const key = writeKey(folder, 'other.pem', pem(RSA, 'pkcs1'));
    const mails = mkdtempSync(join(folder, 'signed-'));
    for (let seed = 0; seed < CHECKED_MESSAGES; seed++) {
      writeFileSync(join(mails, `${String(seed).padStart(4, '0')}.eml`), oddMail(9000 + seed, FROMS[seed % FROMS.length] ?? ''), 'latin1');
    }
    await mustRun(python, [PROGRAM, 'sign-all', key, mails]);
    const names = await NameServer.start(t, scriptOf({ 'TXT o1._domainkey.other.example': [recordOf(pem(RSA))] }));
    const [port = 0] = await freePorts(1);
    const forged = 'Authentication-Results: mx.test;\r\n\tdkim=fail\r\n';
    await withMailbox(async (cluster) => {
      const talk = await SmtpTalk.start(port);
      await talk.say('XCLIENT ADDR=192.0.2.1 PORT=40000');
      await talk.say('EHLO mail.other.example');
      for (const [index, name] of readdirSync(mails).sort().entries()) {
        const message = Buffer.concat([Buffer.from(index % 3 === 0 ? forged : ''), readFileSync(join(mails, name))]);
        for (const line of ['MAIL FROM:<a@other.example> BODY=8BITMIME', 'RCPT TO:<odd@a.example>', 'DATA']) await talk.say(line);
        talk.send(Buffer.from(wireContent(message)).toString('latin1'));
        assert.match(await talk.reply(), /^250 /, name);
        await cluster.sinkHas(index + 1);
      }
      talk.close();
      const kept = readMaildir(cluster.maildir);
      assert.equal(kept.length, CHECKED_MESSAGES);
      const told = await verified(new Map(kept.map((message, index) => [`${String(index).padStart(4, '0')}.eml`, message])));
      for (const [index, message] of kept.entries()) {
        const text = message.toString('latin1');
        assert.match(text, /^Authentication-Results: mx\.test;\r\n\tspf=none [^]*?;\r\n\tdkim=pass header\.d=other\.example /, text.slice(0, 3000));
        assert.equal(text.includes(`\r\nX-Original-${forged}`), index % 3 === 0);
        assert.deepEqual(told.get(`${String(index).padStart(4, '0')}.eml`), [['rsa-sha256', 'other.example', 'o1', 'good']], text.slice(0, 3000));
      }
    }, {
      gateway: {
        dns: { resolvers: [`127.0.0.1:${String(names.port)}`] },
        smtp: { listen: [{ address: `127.0.0.1:${String(port)}`, xclient: ['127.0.0.0/8'], authentication_results: true }], authserv_id: 'mx.test', relay_domains: ['a.example'] },
      },
    });
  });
});
