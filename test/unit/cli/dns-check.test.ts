/** `twinpost config check --dns`, by a scripted name server. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import type { Answer } from 'dns-packet';
import { runCli } from '../../../src/cli/main.js';
import { publicRecord } from '../../../src/gateway/dkim/node/public-record.js';
import { NameServer } from '../platform/node/dns/name-server.js';
import { contextFor } from './played-context.js';

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey;
const KEY = 's1._domainkey.ours.example';

type Zone = Readonly<Record<string, readonly string[] | 'fails'>>;

const GOOD: Zone = {
  'A gw.test': ['192.0.2.7'], 'PTR 7.2.0.192.in-addr.arpa': ['other.test', 'GW.test'], 'TXT gw.test': ['v=spf1 a -all'],
  [`TXT ${KEY}`]: [publicRecord(publicKey)], 'TXT ours.example': ['something else', 'v=spf1 a:gw.test -all'], 'TXT _dmarc.ours.example': ['v=DMARC1; p=reject'],
};

async function check(t: TestContext, zone: Zone): Promise<readonly [number, ...string[]]> {
  const names = await NameServer.start(t, (question) => {
    const [type = '', name = ''] = question.split(' ');
    const data = zone[question];
    if (data === 'fails') return { rcode: 2 };
    return data === undefined ? { rcode: 3 } : { answers: data.map((one) => ({ type, name, ttl: 1, data: type === 'TXT' ? one.match(/.{1,255}/g) : one }) as Answer) };
  });
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-dns-check-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  writeFileSync(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  const file = join(folder, 'gateway.yaml');
  writeFileSync(file, JSON.stringify({
    gateway: {
      id: 'gw-1', host: 'box-1', secret: 'sixteen-characters-and-more', state_dir: folder, hostname: 'gw.test',
      dns: { resolvers: [`127.0.0.1:${String(names.port)}`] },
      dkim: [{ domain: 'ours.example', selector: 's1', key_file: 'key.pem' }],
      routes: [{ domain: '*', via: 'mx' }],
      stores: ['s1', 's2'].map((id, at) => ({ id, host: `box-${String(at + 2)}`, paths: [{ name: 'A', address: `127.0.0.1:${String(7401 + at)}` }] })),
    },
  }));
  const printed: string[] = [];
  const code = await runCli(['config', 'check', file, '--quiet', '--dns'], contextFor(printed));
  return [code, ...printed];
}

describe('config check --dns', () => {
  test('says what is as it should be', async (t) => {
    assert.deepEqual(await check(t, GOOD), [
      0,
      '# dns: 192.0.2.7 leads back to gw.test (PTR)', '# dns: gw.test has one SPF record', `# dns: ${KEY} has the key that signs (DKIM)`,
      '# dns: ours.example has one SPF record', '# dns: _dmarc.ours.example has one DMARC record',
    ]);
  });

  for (const [what, code, changed, line] of [
    ['no address', 1, { 'A gw.test': undefined }, '! twinpost: dns: gw.test (hostname, said in EHLO) has no address'],
    ['a PTR that leads elsewhere', 1, { 'PTR 7.2.0.192.in-addr.arpa': ['other.test'] }, '! twinpost: dns: 192.0.2.7 does not lead back to gw.test: its PTR record says other.test'],
    ['no PTR', 1, { 'PTR 7.2.0.192.in-addr.arpa': undefined }, '! twinpost: dns: 192.0.2.7 does not lead back to gw.test: its PTR record says nothing'],
    ['no SPF of its own name', 0, { 'TXT gw.test': undefined }, '! twinpost: dns: advice: gw.test has no SPF record'],
    ['another key', 1, { [`TXT ${KEY}`]: [publicRecord(other)] }, `! twinpost: dns: ${KEY} has another key: publish "${publicRecord(publicKey)}"`],
    ['no key', 1, { [`TXT ${KEY}`]: undefined }, `! twinpost: dns: ${KEY} has no record: publish "${publicRecord(publicKey)}"`],
    ['two SPF records', 1, { 'TXT ours.example': ['v=spf1 a', 'V=SPF1 mx'] }, '! twinpost: dns: ours.example has 2 SPF records: none of them counts'],
    ['no DMARC', 1, { 'TXT _dmarc.ours.example': undefined }, '! twinpost: dns: _dmarc.ours.example has no DMARC record'],
    ['no answer', 3, { 'TXT ours.example': 'fails' }, '! twinpost: dns: no answer on TXT of ours.example: 127.0.0.1: SERVFAIL'],
  ] as const) {
    test(`says that there is ${what}`, async (t) => {
      const zone = Object.fromEntries(Object.entries({ ...GOOD, ...changed }).filter(([, data]) => data !== undefined)) as Zone;
      const [seen, ...lines] = await check(t, zone);
      assert.equal(seen, code);
      assert.ok(lines.includes(line), lines.join('\n'));
    });
  }
});
