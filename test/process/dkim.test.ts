/**
 * Signatures by a whole gateway process: what it signs and what it does not, by the bytes that arrive; its own reports; keys
 * that are made by the command line, changed while it runs, or refused by config check and the start alike.
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { connect } from 'node:tls';

import { selfSigned } from '../dialog/self-signed.js';
import { readMaildir, sendRaw } from '../thirdparty/support.js';
import { ED25519, RSA, pem, recordOf, writeKey } from '../unit/gateway/dkim/node/new-keys.js';
import { startCluster, until } from './cluster.js';
import type { Cluster } from './cluster.js';
import { freePorts } from './free-ports.js';
import { sayAll } from './smtp-talk.js';
import { twinpost } from './twinpost.js';

const BOUND_MS = 20_000;
const tls = selfSigned();
const needsTls = { timeout: 120_000, skip: tls === undefined ? 'openssl is missing' : false };

/** The folded value of each signature of a message, from the top. */
function signaturesOf(mail: string): readonly string[] {
  const header = mail.slice(0, mail.indexOf('\r\n\r\n'));
  return header.split(/\r\n(?![ \t])/).filter((field) => field.startsWith('DKIM-Signature: ')).map((field) => field.replace(/(?<=:)\r\n /g, '').replace(/\r\n/g, ''));
}

async function metrics(cluster: Cluster): Promise<string> {
  return (await fetch(`http://127.0.0.1:${String(cluster.adminPort)}/metrics`)).text();
}

async function inFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-dkim-'));
  try {
    await body(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('twinpost dkim key makes a key that signs, and the record of it', { timeout: 120_000 }, async () => {
  await inFolder(async (folder) => {
    const out = path.join(folder, 'x.pem');
    const made = await twinpost(['dkim', 'key', 'X.example', '--selector', 's2026', '--out', out]);
    assert.equal(made.code, 0, made.error);
    assert.equal(statSync(out).mode & 0o777, 0o600);
    assert.equal(made.out.trimEnd().split('\n').length, 1);
    const [, name, strings = ''] = /^(\S+) IN TXT \( (.*) \)\n$/.exec(made.out) ?? [];
    assert.equal(name, 's2026._domainkey.x.example.');
    const parts = [...strings.matchAll(/"([^"]*)"/g)].map(([, part = '']) => part);
    assert.ok(parts.length === 2 && parts.every((part) => part.length <= 255));
    assert.equal(parts.join(''), recordOf(readFileSync(out, 'utf8')));
    const second = path.join(folder, 'x.ed25519.pem');
    const other = await twinpost(['dkim', 'key', 'x.example', '--selector', 's2026e', '--ed25519', '--out', second]);
    assert.ok(other.out.includes(`"${recordOf(readFileSync(second, 'utf8'))}"`), other.out);
    for (const [args, said] of [
      [['x.example', '--selector', 's', '--out', out], /^twinpost: dkim key: '.*x\.pem' can't be written: it is there already, and is left as it is\n$/],
      [['x.example', '--selector', 's', '--out', path.join(folder, 'no', 'x.pem')], /can't be written: ENOENT\n$/],
      [['x example', '--selector', 's', '--out', `${out}2`], /^twinpost: dkim key: expected a domain such as .*, found "x example"\n$/],
      [['x.example', '--selector', 's_1', '--out', `${out}2`], /^twinpost: dkim key: expected a selector such as .*, found "s_1"\n$/],
      [['x.example', '--out', `${out}2`], /^twinpost: --selector is missing; twinpost dkim/],
    ] as const) {
      const refused = await twinpost(['dkim', 'key', ...args]);
      assert.match(refused.error, said);
      assert.notEqual(refused.code, 0);
      assert.equal(refused.error.trimEnd().split('\n').length, 1, refused.error);
    }
    assert.equal(existsSync(`${out}2`), false);
  });
});

test('what comes from our own is signed over all that is put in front, mail of strangers is not, and reports are', needsTls, async () => {
  assert.ok(tls !== undefined);
  const { certFile: cert, keyFile: key } = tls;
  await inFolder(async (folder) => {
    const rsa = writeKey(folder, 'rsa.pem', pem(RSA));
    const usersFile = path.join(folder, 'users');
    writeFileSync(usersFile, (await twinpost(['user', 'alice@x.example'], 'secret\n')).out);
    writeFileSync(path.join(folder, 'adds.mjs'), "export const onMessage = () => ({ action: 'accept', fields: [{ name: 'List-Id', value: 'added' }] });");
    const [submission = 0, stranger = 0] = await freePorts(2);
    const cluster = await startCluster({
      sinkSection: { maildir: true },
      routes: [{ domain: 'refused.example', via: 'smtp://127.0.0.1:1', name: 'refused' }],
      gateway: {
        hostname: 'mx.x.example',
        dkim: [{ domain: 'x.example', selector: 'r1', key_file: rsa, expires_after: '7d' }, { domain: 'x.example', selector: 'e1', key_file: writeKey(folder, 'ed.pem', pem(ED25519)) }, { domain: 'mx.x.example', selector: 'r1', key_file: rsa }],
        delivery: { lifetime: '3s', retry: { first: '1s', max: '1s' } },
        smtp: {
          listen: [{ address: `127.0.0.1:${String(submission)}`, role: 'submission', tls: 'implicit' }, `127.0.0.1:${String(stranger)}`],
          tls: { cert, key }, users: usersFile, relay_networks: ['192.0.2.0/24'], relay_domains: ['a.example'], postmaster: 'ops@a.example',
          hooks: [{ module: path.join(folder, 'adds.mjs') }],
        },
      },
    });
    try {
      const login = `AUTH PLAIN ${Buffer.from('\0alice@x.example\0secret').toString('base64')}`;
      const submit = async (to: string, content: string): Promise<void> => {
        const said = await sayAll(connect({ port: submission, host: '127.0.0.1', rejectUnauthorized: false }), ['EHLO a', login, 'MAIL FROM:<alice@x.example>', `RCPT TO:<${to}>`, 'DATA', `${content}\r\n.`, 'QUIT']);
        assert.match(said, /250 2\.0\.0 Ok: queued as /);
      };
      const arrived = async (count: number): Promise<string> => {
        await cluster.sinkHas(count);
        return readMaildir(cluster.maildir)[count - 1]?.toString('latin1') ?? '';
      };
      await submit('b@a.example', 'From: Alice <alice@x.example>\r\n\r\nhello');
      const first = await arrived(1);
      const [ed25519 = '', rsaField = '', none] = signaturesOf(first);
      assert.equal(none, undefined);
      assert.match(ed25519, /a=ed25519-sha256; c=relaxed\/relaxed; d=x\.example; s=e1; t=\d+; h=/);
      assert.match(rsaField, /a=rsa-sha256; c=relaxed\/relaxed; d=x\.example; s=r1; t=\d+; x=\d+; h=from:from:to:cc:subject:date:date:message-id:message-id:reply-to:.*list-id;/);
      assert.match(first, /^DKIM-Signature: [^]*\r\nReceived: [^]*\r\nDate: [^]*\r\nMessage-ID: [^]*\r\nList-Id: added\r\nFrom: Alice <alice@x\.example>\r\n\r\nhello\r\n$/);
      await submit('b@a.example', 'From: The Boss <boss@x.example>\r\n\r\nnot hers');
      assert.match(await arrived(2), /^Received: /);
      assert.match(await sendRaw(stranger, Buffer.from('From: alice@x.example\r\n\r\nforged\r\n'), 'b@a.example'), /^250 /);
      assert.match(await arrived(3), /^Received: [^]*\r\nList-Id: added\r\nFrom: alice@x\.example\r\n\r\nforged\r\n$/);
      await submit('c@refused.example', 'From: alice@x.example\r\n\r\nbounces');
      const report = await arrived(await reportIndex(cluster));
      const [, signature = ''] = [...signaturesOf(report)];
      assert.equal(signature, '', 'one key of its own domain, one signature');
      assert.match(signaturesOf(report)[0] ?? '', /a=rsa-sha256; .* d=mx\.x\.example; s=r1;/);
      assert.match(report, /^DKIM-Signature: [^]*\r\nDate: [^]*\r\nFrom: Mail Delivery System <MAILER-DAEMON@mx\.x\.example>\r\n/);
      const counted = await metrics(cluster);
      assert.match(counted, /^twinpost_dkim_messages_total\{result="signed"\} 2$/m);
      assert.match(counted, /^twinpost_dkim_messages_total\{result="not-theirs"\} 1$/m);
      assert.match(counted, /^twinpost_dkim_reports_total\{result="signed"\} 1$/m);
      assert.match(counted, /^twinpost_stale_files\{file="dkim"\} 0$/m);
    } finally {
      await cluster.stop();
    }
  });
});

/** How many messages the sink has once the report of the third submission is among them. */
async function reportIndex(cluster: Cluster): Promise<number> {
  const isReport = (mail: Buffer): boolean => mail.includes('MAILER-DAEMON@mx.x.example');
  await until('the report arrives', () => readMaildir(cluster.maildir).some(isReport), BOUND_MS * 2, cluster.gateway);
  return readMaildir(cluster.maildir).findIndex(isReport) + 1;
}

test('a key that changes signs from then on, and one that can\'t be used does not', { timeout: 240_000 }, async () => {
  await inFolder(async (folder) => {
    const file = writeKey(folder, 'rsa.pem', pem(RSA));
    const cluster = await startCluster({ sinkSection: { maildir: true }, gateway: { dkim: [{ domain: 'x.example', selector: 'r1', key_file: file }] } });
    try {
      const lastSignature = async (count: number): Promise<string> => {
        assert.match(await sendRaw(cluster.smtpPort, Buffer.from('From: a@x.example\r\n\r\nx\r\n'), 'b@a.example'), /^250 /);
        await cluster.sinkHas(count);
        const [signature = ''] = signaturesOf(readMaildir(cluster.maildir)[count - 1]?.toString('latin1') ?? '');
        return / b=(.*)$/.exec(signature)?.[1]?.replace(/ /g, '') ?? '';
      };
      assert.equal((await lastSignature(1)).length, 344);
      renameSync(writeKey(folder, 'next.pem', pem(RSA), 0o644), file);
      await until('the log refuses the key', () => /"level":"error",[^\n]*"event":"dkim",[^\n]*everybody on this machine may read/.test(cluster.gateway.log()), BOUND_MS, cluster.gateway);
      assert.equal((await lastSignature(2)).length, 344);
      assert.deepEqual((await cluster.status()).reception?.stale_files, ['dkim']);
      renameSync(writeKey(folder, 'next.pem', pem(generateKeyPairSync('rsa', { modulusLength: 3072 }).privateKey)), file);
      await until('the log tells of the key', () => /"level":"info",[^\n]*"event":"dkim"/.test(cluster.gateway.log()), BOUND_MS, cluster.gateway);
      assert.equal((await lastSignature(3)).length, 512);
    } finally {
      await cluster.stop();
    }
  });
});

test('keys that can\'t be used are a line each with the place of their key, the same from config check and from the start', { timeout: 240_000 }, async () => {
  await inFolder(async (folder) => {
    const file = path.join(folder, 'gateway.yaml');
    const config = (dkim: string): string => `gateway:
  id: gw-1
  host: box-1
  secret: sixteen-characters-and-more
  dkim:
${dkim}  routes: [{domain: '*', via: 'smtp://127.0.0.1:1'}]
  mirror: {replicas: 1}
  stores: [{id: s1, host: box-2, paths: [{name: A, address: '127.0.0.1:1'}]}]
  admin: {listen: '127.0.0.1:0'}
  state_dir: state
  smtp: {listen: ['127.0.0.1:0']}
`;
    writeKey(folder, 'rsa.pem', pem(RSA));
    writeKey(folder, 'ed.pem', pem(ED25519));
    writeKey(folder, 'short.pem', pem(generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey));
    chmodSync(writeKey(folder, 'open.pem', pem(RSA)), 0o644);
    const entry = (name: string, selector: string, more = ''): string => `    - {domain: x.example, selector: ${selector}, key_file: ${name}.pem${more}}\n`;
    const wanted = 'expected a private key in PEM, RSA of 2048 bits or more, or Ed25519 beside one, found: ';
    for (const [dkim, lines] of [
      [entry('short', 'a') + entry('absent', 'b') + entry('open', 'c'), [
        `gateway.yaml:6: gateway.dkim[0].key_file: ${wanted}'FOLDER/short.pem' is an RSA key of 1024 bits; 2048 or more are needed (RFC 8301)`,
        `gateway.yaml:7: gateway.dkim[1].key_file: ${wanted}'FOLDER/absent.pem' can't be read: ENOENT`,
        `gateway.yaml:8: gateway.dkim[2].key_file: ${wanted}everybody on this machine may read or write 'FOLDER/open.pem': chmod o-rw`,
      ]],
      [entry('ed', 'a'), [`gateway.yaml:6: gateway.dkim[0].key_file: ${wanted}an Ed25519 key alone; x.example needs an RSA key too: many who verify know no other, and would take its mail for unsigned`]],
      [entry('rsa', 'a') + entry('ed', 'b') + entry('rsa', 'c'), [`gateway.yaml:8: gateway.dkim[2].key_file: ${wanted}a second RSA key of x.example; it may have one, and one of the other kind`]],
      [entry('rsa', 'a') + entry('ed', 'A'), ["gateway.yaml:7: gateway.dkim[1].selector: expected each name of a key once, found 'a._domainkey.x.example' again"]],
      [entry('rsa', 'a', ', expires_after: 2d'), ['gateway.yaml:6: gateway.dkim[0].expires_after: expected at least delivery.lifetime (432000000 ms), found 172800000 ms: the signature of mail that waits would end before it arrives']],
      [entry('rsa', 'a_b'), ['gateway.yaml:6: gateway.dkim[0].selector: expected a selector such as s2026: letters, digits and dashes, in labels with dots between them, 63 at most, found "a_b"']],
    ] as const) {
      writeFileSync(file, config(dkim));
      const [checked, started] = await Promise.all([twinpost(['config', 'check', file]), twinpost(['gateway', '--config', file])]);
      assert.deepEqual(checked.error.trimEnd().split('\n').map((line) => line.replaceAll(folder, 'FOLDER')), lines.map((line) => `FOLDER/${line}`));
      assert.deepEqual([checked.code, started.code, started.error], [1, 1, checked.error]);
    }
    writeFileSync(file, config(entry('rsa', 'a', ', expires_after: 5d') + entry('ed', 'b')));
    const good = await twinpost(['config', 'check', file]);
    assert.equal(good.code, 0, good.error);
    assert.match(good.out, /expires_after: 5d/);
  });
});
