/** What the DNS says of a domain that is sent for, as who verifies reads it. Whole answers: dns-check.test.ts. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { test } from 'node:test';
import { Asker, domainFindings } from '../../../../src/gateway/explain/sender-findings.js';
import { publicRecord } from '../../../../src/gateway/dkim/node/public-record.js';
import type { DnsAnswer, Resolver } from '../../../../src/platform/resolver.js';

const KEY = 's1._domainkey.ours.example';
const RECORD = 'v=DKIM1; k=rsa; p=AAAA';

/** Of its key, SPF and DMARC, in this order. */
async function found(zone: Readonly<Record<string, readonly string[]>>, sharedWith = '', record = RECORD): Promise<readonly string[]> {
  const resolver: Resolver = {
    ask: (name, type, done) => {
      const records = zone[name];
      done((records === undefined ? { kind: 'no-name', isAuthentic: false } : { kind: 'found', records, isAuthentic: false }) as DnsAnswer<typeof type>);
    },
  };
  const findings = await domainFindings({ domain: 'ours.example', keys: [{ name: KEY, record, file: 'a.pem', sharedWith }] }, [], new Asker(resolver, true));
  return findings.map(({ verdict, text }) => `${verdict}: ${text}`);
}

test('a key counts by its tags: its version first, and each once', async () => {
  const good = `good: ${KEY} has the key that signs (DKIM)`;
  const late = `bad: ${KEY} does not begin with its version (v=): publish "${RECORD}"`;
  const twice = `bad: ${KEY} has a tag twice: publish "${RECORD}"`;
  for (const [record, told] of [
    [RECORD, good], ['p=AAAA', good], [' v = DKIM1 ;p=AA AA; ', good],
    ['k=rsa; v=DKIM1; p=AAAA', late], [`${RECORD}; p=BBBB`, twice], [`${RECORD};k = rsa`, twice],
  ] as const) assert.equal((await found({ [KEY]: [record] }))[0], told, record);
});

test('another key under the name is not to be replaced: mail that was signed with it is under way', async () => {
  const told = (shared: string): string => `bad: ${KEY} has another key than 'a.pem'${shared}: name the file whose key is published there (key_file), or publish "${RECORD}" under a new selector`;
  const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey;
  const pkcs1 = `v=DKIM1; p=${rsa.export({ type: 'pkcs1', format: 'der' }).toString('base64')}`;
  for (const record of [publicRecord(rsa), pkcs1, publicRecord(generateKeyPairSync('ed25519').publicKey)]) {
    assert.equal((await found({ [KEY]: [record] }))[0], told(''), record);
    assert.equal((await found({ [KEY]: [record] }, 's1._domainkey.news.ours.example'))[0], told(' (key_file of s1._domainkey.news.ours.example, too)'));
  }
});

test('what is published is no key, or a part of ours: it is published anew under its name', async () => {
  const wanted = publicRecord(generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey);
  const told = (what: string): string => `bad: ${KEY} ${what}: publish "${wanted}"`;
  const cut = 'has only the beginning of the key (p=); beyond 255 characters a record takes several texts';
  for (const [record, what] of [
    [wanted.slice(0, 255), cut], [wanted.slice(0, -8), cut],
    ['v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG', cut], ['v=DKIM1; k=rsa; p=AAAABBBB', 'has no usable key (p=)'],
    ['v=DKIM1; k=ed25519; p=AAAABBBB', 'has no usable key (p=)'],
  ] as const) assert.equal((await found({ [KEY]: [record] }, '', wanted))[0], told(what), record);
});

test('a record of SPF or DMARC is one by all of its first word', async () => {
  const dmarc = (policy: string): string => `good: _dmarc.ours.example has one DMARC record (${policy})`;
  const none = 'bad: _dmarc.ours.example has no DMARC record';
  for (const [records, told] of [
    [['v=DMARC1'], dmarc('none, as it names none')], [['v=DMARC1x; p=none', 'v = DMARC1 ; p=reject'], dmarc('reject')],
    [['v=DMARC10; p=none'], none], [['v=DMARC1 p=none'], none], [['p=none; v=DMARC1'], none],
  ] as const) assert.equal((await found({ '_dmarc.ours.example': records }))[2], told, records.join());
  const spf = 'good: ours.example has one SPF record';
  for (const [records, told] of [
    [['v=spf1'], spf], [['v=spf10 -all', 'V=SPF1 -all'], spf],
    [['v=spf1; -all'], 'bad: ours.example has no SPF record'],
  ] as const) assert.equal((await found({ 'ours.example': records }))[1], told, records.join());
});
