/** Certificates as files: what is wrong with them in words that say what to do, and until when they are good. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { CertificateEnds, certificateFiles, endingText, watchCertificates } from '../../../../src/platform/node/certificate-ends.js';
import { certificateFacts, readPem } from '../../../../src/platform/node/certificates.js';
import { readServerTls } from '../../../../src/platform/node/server-tls.js';
import { readTlsFiles } from '../../../../src/platform/node/tls-transport.js';
import { selfSigned } from '../../../dialog/self-signed.js';
import { NO_LOG } from '../../../inbound/desk.js';

const DAY_MS = 24 * 3_600_000;
const first = selfSigned();
const second = selfSigned();
const skip = first === undefined || second === undefined ? 'openssl is missing' : false;

test('what can not be used is said in plain words', { skip }, () => {
  assert.ok(first !== undefined && second !== undefined);
  const { certFile, keyFile } = first;
  assert.throws(() => readServerTls({ ...first, keyFile: second.keyFile }), /: the key belongs to another certificate$/);
  const encrypted = `${keyFile}.encrypted`;
  execFileSync('openssl', ['pkey', '-in', keyFile, '-aes256', '-passout', 'pass:secret', '-out', encrypted], { stdio: 'ignore' });
  assert.throws(() => readPem('key', encrypted), /: the key is encrypted: store it without its passphrase \(openssl pkey /);
  for (const [kind, file] of [['cert', keyFile], ['key', certFile]] as const) {
    assert.throws(() => readPem(kind, file), / in PEM: there is no -----BEGIN … line of one in it$/);
  }
  const cut = `${certFile}.cut`;
  writeFileSync(cut, readFileSync(certFile, 'utf8').slice(0, 300));
  assert.throws(() => readPem('cert', cut), / in PEM: it is cut off or damaged$/);
  const [weakKey, weakCert] = [`${keyFile}.weak`, `${certFile}.weak`];
  const weak = ['req', '-x509', '-newkey', 'rsa:1024', '-nodes', '-subj', '/CN=mx.test', '-keyout', weakKey, '-out', weakCert];
  execFileSync('openssl', weak, { stdio: 'ignore' });
  assert.throws(() => readServerTls({ ...first, keyFile: weakKey, certFile: weakCert }), /: the key is too short: RSA needs 2048 bits/);
});

test('a certificate and a key of another type are no pair, which TLS does not notice; a chain behind it has keys of its own', { skip }, () => {
  const rsa = selfSigned('mx.test', 60, 'rsa');
  assert.ok(first !== undefined && second !== undefined && rsa !== undefined);
  for (const [one, other] of [[rsa, first], [first, rsa]] as const) {
    assert.throws(() => readServerTls({ ...one, keyFile: other.keyFile }), /: the key belongs to another certificate$/);
    assert.throws(() => readTlsFiles({ caFile: one.certFile, certFile: one.certFile, keyFile: other.keyFile }), /: the key belongs to another certificate$/);
    const chain = `${one.certFile}.chain`;
    writeFileSync(chain, readFileSync(one.certFile, 'utf8') + readFileSync(other.certFile, 'utf8'));
    assert.ok(readServerTls({ ...one, certFile: chain }).cert.length > 0);
    assert.throws(() => readServerTls({ ...other, certFile: chain }), /: the key belongs to another certificate$/);
  }
});

test('its end is told of two weeks before, once a day, and known to metrics', { skip }, () => {
  assert.ok(first !== undefined);
  const pem = readFileSync(first.certFile, 'utf8');
  const { beginsMs, endsMs } = certificateFacts(pem);
  assert.equal(Math.round((endsMs - beginsMs) / DAY_MS), 60);
  assert.equal(endingText(pem, beginsMs), '');
  assert.match(endingText(pem, beginsMs - 1), /^the certificate is not valid before /);
  assert.match(endingText(pem, endsMs - 14 * DAY_MS), /^the certificate expires in 14 days, /);
  assert.match(endingText(pem, endsMs), /^the certificate has expired: /);
  const said: string[] = [];
  const warn = (_event: string, _text: string, fields: Readonly<Record<string, unknown>> = {}): void => {
    said.push(`${String(fields['use'])} ${String(fields['why'])}`);
  };
  const certFile = `${first.certFile}.watched`;
  writeFileSync(certFile, pem);
  const { keyFile } = first;
  const certificates = new CertificateEnds([{ use: 'smtp', certFile, keyFile, caFile: undefined }], { ...NO_LOG, warn });
  certificates.look(endsMs - 15 * DAY_MS);
  assert.deepEqual([said, certificates.ends.get('smtp')], [[], endsMs]);
  for (let hour = 0; hour < 48; hour++) certificates.look(endsMs - 13 * DAY_MS + hour * DAY_MS / 24);
  assert.deepEqual(said.splice(0).map((text) => text.slice(0, 34)), ['smtp the certificate expires in 13', 'smtp the certificate expires in 12']);
  writeFileSync(certFile, 'nothing');
  certificates.look(endsMs - 5 * DAY_MS);
  assert.match(said.splice(0).join(), /^smtp '.*watched' is no certificate in PEM: /);
  assert.equal(certificates.ends.get('smtp'), endsMs, 'the one that is in force');
});

test('its end stays that of the one in force while the pair behind it is one that no listener takes', { skip }, () => {
  assert.ok(first !== undefined);
  const [certFile, keyFile] = [`${first.certFile}.live`, `${first.keyFile}.live`];
  copyFileSync(first.certFile, certFile);
  copyFileSync(first.keyFile, keyFile);
  const said: string[] = [];
  const warn = (_event: string, _text: string, { use, why }: Readonly<Record<string, unknown>> = {}): void => { said.push(`${String(use)}: ${String(why)}`); };
  const files = ['smtp', 'admin'].map((use) => ({ use, certFile, keyFile, caFile: undefined }));
  const certificates = new CertificateEnds(files, { ...NO_LOG, warn });
  certificates.look(Date.now());
  const { endsMs } = certificateFacts(readFileSync(certFile, 'utf8'));
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:1024', '-nodes', '-days', '900', '-subj', '/CN=mx.test', '-keyout', keyFile, '-out', certFile], { stdio: 'ignore' });
  certificates.look(Date.now());
  assert.deepEqual([...certificates.ends], [['smtp', endsMs], ['admin', endsMs]]);
  assert.deepEqual(said.map((text) => text.replace(/: .*: (the key is too short).*/, ': $1')), ['smtp: the key is too short', 'admin: the key is too short']);
});

test('the end of a renewed one is known within a minute, once all of it is in force: its key, and the CA beside it', { skip }, (t) => {
  const soon = selfSigned('mx.test', 10);
  assert.ok(first !== undefined && soon !== undefined);
  const [certFile, keyFile, caFile] = [`${soon.certFile}.renewed`, `${soon.keyFile}.renewed`, `${soon.certFile}.ca`];
  copyFileSync(soon.certFile, certFile);
  copyFileSync(soon.keyFile, keyFile);
  copyFileSync(soon.certFile, caFile);
  t.mock.timers.enable({ apis: ['setInterval'] });
  const said: string[] = [];
  const warn = (_event: string, _text: string, { why }: Readonly<Record<string, unknown>> = {}): void => { said.push(String(why)); };
  const { ends } = watchCertificates({ smtp: { certFile, keyFile, clientCaFile: caFile } }, { ...NO_LOG, warn });
  const endOf = (file: string): number => certificateFacts(readFileSync(file, 'utf8')).endsMs;
  const endAfter = (minutes: number): number | undefined => {
    t.mock.timers.tick(minutes * 60_000);
    return ends.get('smtp');
  };
  assert.equal(endAfter(0), endOf(soon.certFile));
  said.splice(0);
  copyFileSync(first.certFile, certFile);
  assert.equal(endAfter(1), endOf(soon.certFile), 'of another key');
  copyFileSync(first.keyFile, keyFile);
  writeFileSync(caFile, '');
  assert.equal(endAfter(1), endOf(soon.certFile), 'without its CA');
  copyFileSync(first.certFile, caFile);
  assert.equal(endAfter(1), endOf(first.certFile));
});

test('that it is for another name than that of this host is told of once for each, beside its end', { skip }, () => {
  const other = selfSigned('other.test', 10);
  assert.ok(first !== undefined && other !== undefined);
  const [certFile, keyFile] = [`${first.certFile}.named`, `${first.keyFile}.named`];
  const put = (from: typeof other): void => {
    copyFileSync(from.certFile, certFile);
    copyFileSync(from.keyFile, keyFile);
  };
  put(first);
  const said: string[] = [];
  const warn = (_event: string, text: string, { use, why }: Readonly<Record<string, unknown>> = {}): void => { said.push(`${String(use)}: ${text}: ${String(why)}`); };
  const pair = { certFile, keyFile, clientCaFile: undefined };
  const certificates = new CertificateEnds(certificateFiles({ smtp: { ...pair, hostName: 'MX.test' }, admin: pair }), { ...NO_LOG, warn });
  const now = Date.now();
  certificates.look(now);
  assert.equal(said.length, 0);
  put(other);
  const misnamed = "smtp: a certificate is for another name: it is not for 'MX.test' (hostname): clients that know this gateway by that name, and look, refuse it: have one made that has it, too; where they know it by another name, nothing is to be done; it is for DNS:other.test, IP Address:127.0.0.1";
  let at = now;
  const told = (): readonly string[] => {
    certificates.look(at += 60_000);
    return said.splice(0).filter((text) => !text.includes('to be renewed'));
  };
  assert.deepEqual(told(), [misnamed]);
  at += 3 * 86_400_000;
  assert.deepEqual(told(), [], 'not again the days after');
  writeFileSync(keyFile, '');
  assert.deepEqual(told(), [], 'what was read before stays in force');
  put(first);
  assert.deepEqual(told(), []);
  put(other);
  assert.deepEqual(told(), [misnamed], 'another one is in force');
  certificates.lookAt(certificateFiles({ smtp: { ...pair, hostName: 'MX.test' } }), at);
  assert.deepEqual(told(), [misnamed], 'all is read anew');
});

test('a pair that does not fit is told of', { skip }, () => {
  assert.ok(first !== undefined && second !== undefined);
  const said: string[] = [];
  const warn = (_event: string, _text: string, { why }: Readonly<Record<string, unknown>> = {}): void => { said.push(String(why)); };
  new CertificateEnds([{ use: 'links', certFile: first.certFile, keyFile: second.keyFile, caFile: undefined }], { ...NO_LOG, warn }).look(0);
  assert.match(said.join(), /: the key belongs to another certificate$/);
});
