/** `twinpost config check --dns`, by a scripted name server. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import packet from 'dns-packet';
import type { Answer } from 'dns-packet';
import { pointerName } from '../../../src/base/reversed-address.js';
import { runCli } from '../../../src/cli/main.js';
import { publicRecord } from '../../../src/gateway/dkim/node/public-record.js';
import { scramLine } from '../../dialog/people.js';
import { NameServer } from '../platform/node/dns/name-server.js';
import { contextFor } from './played-context.js';

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey;
const KEY = 's1._domainkey.ours.example';

type Zone = Readonly<Record<string, readonly string[] | 'fails'>>;

const NO_KEY = '! twinpost: dns: advice: reports to senders are from gw.test (hostname), and dkim has no key for it: many take none that are not signed';

const GOOD: Zone = {
  'A gw.test': ['192.0.2.7'], 'PTR 7.2.0.192.in-addr.arpa': ['other.test', 'GW.test'], 'TXT gw.test': ['v=spf1 a -all'],
  'A arpa': [], [`TXT ${KEY}`]: [publicRecord(publicKey)], 'TXT ours.example': ['something else', 'v=spf1 a:gw.test -all'], 'TXT _dmarc.ours.example': ['v=DMARC1; p=reject'],
};

interface More { readonly isQuiet?: boolean; readonly routes?: readonly object[]; readonly smtp?: object; readonly tls_reports?: object; readonly dkim?: readonly object[]; readonly users?: readonly string[] }

async function check(t: TestContext, zone: Zone, sources: readonly { readonly address: string; readonly name: string }[] = [], { isQuiet = false, users = [], ...more }: More = {}): Promise<readonly [number, ...string[]]> {
  const names = await NameServer.start(t, (question) => {
    const [type = '', name = ''] = question.split(' ');
    const data = zone[question];
    if (data === 'fails') return { rcode: 2 };
    if (data === undefined) return { rcode: 3 };
    return { flags: name === 'arpa' ? packet.AUTHENTIC_DATA : 0, answers: data.map((one) => ({ type, name, ttl: 1, data: type === 'TXT' ? one.match(/.{1,255}/g) : type === 'MX' ? { preference: 10, exchange: one } : one }) as Answer) };
  });
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-dns-check-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  writeFileSync(join(folder, 'a.secret'), 'sixteen-characters-and-more', { mode: 0o600 });
  writeFileSync(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  writeFileSync(join(folder, 'users'), users.join('\n'), { mode: 0o600 });
  const file = join(folder, 'gateway.yaml');
  writeFileSync(file, JSON.stringify({
    gateway: {
      id: 'gw-1', host: 'box-1', secret: 'sixteen-characters-and-more', state_dir: folder, hostname: 'gw.test', sources,
      dns: { resolvers: [`127.0.0.1:${String(names.port)}`] },
      dkim: [{ domain: 'ours.example', selector: 's1', key_file: 'key.pem' }],
      routes: [{ domain: '*', via: 'mx' }],
      stores: ['s1', 's2'].map((id, at) => ({ id, host: `box-${String(at + 2)}`, paths: [{ name: 'A', address: `127.0.0.1:${String(7401 + at)}` }] })),
      ...more,
    },
  }));
  const printed: string[] = [];
  const code = await runCli(['config', 'check', file, '--dns', ...(isQuiet ? ['--quiet'] : [])], contextFor(printed));
  return [code, ...printed.filter((line) => isQuiet || /^(# dns: |! )/.test(line))];
}

describe('config check --dns', () => {
  test('asks blocklists whether they live', async (t) => {
    const [two, one] = ['A 2.0.0.127.', 'A 1.0.0.127.'];
    const [code, ...said] = await check(t, {
      ...GOOD, [`${two}good.example`]: ['127.0.0.2'], [`${two}all.example`]: ['127.0.0.2'], [`${one}all.example`]: ['127.0.0.2'],
      [`${two}shut.example`]: ['127.255.255.254'], [`${two}mute.example`]: 'fails',
    }, [], { smtp: { listen: [{ address: '127.0.0.1:2525', dnsbl: ['good.example', 'all.example', 'none.example', 'shut.example', 'mute.example'] }] } });
    assert.equal(code, 1);
    assert.deepEqual(said.filter((line) => line.includes('blocklist')).map((line) => line.replace(/^! /, '')).slice(0, 4), [
      '# dns: the blocklist good.example lives (RFC 5782 5)',
      'twinpost: dns: the blocklist all.example lists everybody: 127.0.0.1, too (RFC 5782 5)',
      'twinpost: dns: the blocklist none.example lists nobody: not even 127.0.0.2 (RFC 5782 5)',
      'twinpost: dns: the blocklist shut.example will not tell: it answered 127.255.255.254',
    ]);
    assert.match(said.at(-1) ?? '', /^! twinpost: dns: no answer of the blocklist mute\.example: /);
  });

  test('finds the DMARC record of the organizational domain (RFC 7489 6.6.3)', async (t) => {
    const dkim = [{ domain: 'news.ours.example', selector: 's1', key_file: 'key.pem' }];
    const zone = { ...GOOD, 'TXT s1._domainkey.news.ours.example': [publicRecord(publicKey)], 'TXT news.ours.example': ['v=spf1 a:gw.test -all'] };
    const [code, ...said] = await check(t, zone, [], { dkim });
    assert.equal(code, 0, said.join('\n'));
    assert.ok(said.includes('# dns: _dmarc.ours.example has one DMARC record (reject), which news.ours.example is under'), said.join('\n'));
    const [none, ...missing] = await check(t, { ...zone, 'TXT _dmarc.ours.example': [] }, [], { dkim });
    assert.equal(none, 1);
    assert.ok(missing.includes('! twinpost: dns: _dmarc.news.ours.example has no DMARC record'), missing.join('\n'));
    const [odd, ...odds] = await check(t, { ...zone, 'TXT _dmarc.ours.example': ['v=DMARC1; p=all'] }, [], { dkim });
    assert.equal(odd, 1);
    assert.ok(odds.includes('! twinpost: dns: _dmarc.ours.example says p=all, which is no policy (DMARC): publish none, quarantine or reject'), odds.join('\n'));
    const [two, ...several] = await check(t, { ...zone, 'TXT _dmarc.ours.example': ['v=DMARC1; p=reject', 'v=DMARC1; p=none'] }, [], { dkim });
    assert.equal(two, 1);
    assert.ok(several.includes('! twinpost: dns: _dmarc.ours.example has 2 DMARC records: none of them counts'), several.join('\n'));
  });

  for (const [domain, at, code, text] of [
    ['a.mail.ours.example', 'mail.ours.example', 0, 'advice'], ['a.mail.ours.example', 'ours.example', 0, 'good'],
    // A suffix that registries keep, and one that a company put on the list.
    ['dept.gov.uk', 'gov.uk', 0, 'advice'], ['ours.github.io', 'github.io', 0, 'advice'], ['a.dept.gov.uk', 'dept.gov.uk', 0, 'good'], ['ours.example', 'example', 1, 'bad'],
    ['1.2.3.4.5.6.7.8.example', '3.4.5.6.7.8.example', 0, 'advice'], ['1.2.3.4.5.6.7.8.example', '2.3.4.5.6.7.8.example', 1, 'bad'],
  ] as const) {
    test(`the DMARC record at ${at} is ${text} for ${domain}`, async (t) => {
      const dkim = [{ domain, selector: 's1', key_file: 'key.pem' }];
      const zone = {
        ...GOOD, 'TXT _dmarc.ours.example': [], [`TXT s1._domainkey.${domain}`]: [publicRecord(publicKey)], [`TXT ${domain}`]: ['v=spf1 a:gw.test -all'],
        [`TXT _dmarc.${at}`]: ['v=DMARC1; p=reject'],
      };
      const [seen, ...said] = await check(t, zone, [], { dkim });
      assert.equal(seen, code, said.join('\n'));
      const none = `_dmarc.${domain} has no DMARC record`;
      assert.ok(said.includes({
        good: `# dns: _dmarc.${at} has one DMARC record (reject), which ${domain} is under`,
        advice: `! twinpost: dns: advice: ${none}, and that of _dmarc.${at} is found by the tree walk of RFC 9989 alone: many go by the list of public suffixes (RFC 7489), and find none`,
        bad: `! twinpost: dns: ${none}`,
      }[text]), said.join('\n'));
    });
  }

  test('says what is as it should be', async (t) => {
    assert.deepEqual(await check(t, GOOD), [
      0,
      '# dns: 192.0.2.7 leads back to gw.test (PTR)', '# dns: gw.test has one SPF record', '# dns: reports of gw.test (EHLO) by 192.0.2.7: SPF says pass', `# dns: ${KEY} has the key that signs (DKIM)`,
      '# dns: ours.example has one SPF record', '# dns: _dmarc.ours.example has one DMARC record (reject)', NO_KEY, '# dns: the resolver looks at DNSSEC: DANE is used',
    ]);
  });

  test('asks for the key of the host name, which reports are from; SPF judges them by EHLO, and not by it', async (t) => {
    const dkim = [{ domain: 'GW.test', selector: 's1', key_file: 'key.pem' }];
    const zone = { ...GOOD, 'PTR 2.0.0.127.in-addr.arpa': ['two.test'], 'A two.test': ['127.0.0.2'], 'TXT two.test': ['v=spf1 a -all'], 'TXT s1._domainkey.gw.test': [publicRecord(publicKey)], 'TXT _dmarc.gw.test': ['v=DMARC1; p=none'] };
    const [code, ...lines] = await check(t, zone, [{ address: '127.0.0.2', name: 'two.test' }], { dkim });
    assert.deepEqual([code, ...lines.slice(3)], [
      0, '# dns: gw.test (hostname) has an address', '# dns: s1._domainkey.gw.test has the key that signs (DKIM)', '# dns: _dmarc.gw.test has one DMARC record (none)', '# dns: the resolver looks at DNSSEC: DANE is used',
    ]);
  });

  for (const [who, more, users] of [
    ['users', { smtp: { listen: ['127.0.0.1:2525'], users: 'users' } }, ['anna@GW.test']],
    ['verp', { routes: [{ domain: '*', via: 'mx', verp: { domain: 'gw.test', secret_file: 'a.secret' } }] }, []],
    ['srs', { smtp: { listen: ['127.0.0.1:2525'], srs: { domain: 'gw.test', secret_file: 'a.secret' } } }, []],
  ] as const) {
    test(`looks at SPF of the host name where mail is sent from it: ${who}`, async (t) => {
      const dkim = [{ domain: 'gw.test', selector: 's1', key_file: 'key.pem' }];
      const zone = { ...GOOD, 'PTR 2.0.0.127.in-addr.arpa': ['two.test'], 'A two.test': ['127.0.0.2'], 'TXT two.test': ['v=spf1 a -all'], 'MX gw.test': ['gw.test'], 'TXT s1._domainkey.gw.test': [publicRecord(publicKey)], 'TXT _dmarc.gw.test': ['v=DMARC1; p=none'] };
      const [code, ...lines] = await check(t, zone, [{ address: '127.0.0.2', name: 'two.test' }], { ...more, dkim, users: await Promise.all(users.map((name) => scramLine(name, 'secret'))) });
      assert.deepEqual([code, lines.filter((line) => line.includes('mail of gw.test'))], [1, ['! twinpost: dns: mail of gw.test by 127.0.0.2: SPF says fail']], lines.join('\n'));
    });
  }

  test('says with --quiet only what is not', async (t) => {
    assert.deepEqual(await check(t, GOOD, [], { isQuiet: true }), [0, NO_KEY]);
    assert.deepEqual(await check(t, { ...GOOD, 'TXT gw.test': [] }, [], { isQuiet: true }), [0, '! twinpost: dns: advice: gw.test has no SPF record', NO_KEY]);
  });

  for (const [what, code, changed, line] of [
    ['no address', 1, { 'A gw.test': undefined }, '! twinpost: dns: gw.test (said in EHLO) has no address'],
    ['a PTR that leads elsewhere', 1, { 'PTR 7.2.0.192.in-addr.arpa': ['other.test'] }, '! twinpost: dns: 192.0.2.7 does not lead back to gw.test: its PTR record says other.test'],
    ['no PTR', 1, { 'PTR 7.2.0.192.in-addr.arpa': undefined }, '! twinpost: dns: 192.0.2.7 does not lead back to gw.test: its PTR record says nothing'],
    ['no SPF of its own name', 0, { 'TXT gw.test': undefined }, '! twinpost: dns: advice: gw.test has no SPF record'],
    ['an SPF record of its own name that lets its address send nothing', 1, { 'TXT gw.test': ['v=spf1 -all'] }, '! twinpost: dns: reports of gw.test (EHLO) by 192.0.2.7: SPF says fail'],
    ['an SPF record of its own name that nobody can read', 1, { 'TXT gw.test': ['v=spf1 junk -all'] }, '! twinpost: dns: reports of gw.test (EHLO) by 192.0.2.7: SPF says permerror'],
    ['another key', 1, { [`TXT ${KEY}`]: [publicRecord(other)] }, new RegExp(`^! twinpost: dns: ${KEY} has another key than '\\S+key\\.pem': name the file whose key is published there \\(key_file\\), or publish "v=DKIM1; .*" under a new selector$`)],
    ['a key twice', 1, { [`TXT ${KEY}`]: [publicRecord(other), publicRecord(publicKey)] }, `! twinpost: dns: ${KEY} has 2 records, and which of them counts is not said: publish "${publicRecord(publicKey)}"`],
    ['a key of another kind', 1, { [`TXT ${KEY}`]: [publicRecord(publicKey).replace('k=rsa', 'k=ed25519')] }, `! twinpost: dns: ${KEY} says that its key is of kind ed25519: publish "${publicRecord(publicKey)}"`],
    ['a key for another hash', 1, { [`TXT ${KEY}`]: [`${publicRecord(publicKey)}; h=sha1`] }, `! twinpost: dns: ${KEY} says that it is for sha1, and we sign by sha256: publish "${publicRecord(publicKey)}"`],
    ['a key for another service', 1, { [`TXT ${KEY}`]: [`${publicRecord(publicKey)}; s=tlsrpt`] }, `! twinpost: dns: ${KEY} says that it is for tlsrpt, and not for email (s=): publish "${publicRecord(publicKey)}"`],
    ['a key for email, too', 0, { [`TXT ${KEY}`]: [`${publicRecord(publicKey)}; s=tlsrpt : email`] }, `# dns: ${KEY} has the key that signs (DKIM)`],
    ['a key of another version', 1, { [`TXT ${KEY}`]: [publicRecord(publicKey).replace('DKIM1', 'DKIM2')] }, `! twinpost: dns: ${KEY} says that it is of version DKIM2: publish "${publicRecord(publicKey)}"`],
    ['a key that is revoked', 1, { [`TXT ${KEY}`]: ['v=DKIM1; k=rsa; p='] }, `! twinpost: dns: ${KEY} has an empty key (p=), which revokes it: publish "${publicRecord(publicKey)}"`],
    ['a key on trial', 0, { [`TXT ${KEY}`]: [`${publicRecord(publicKey)}; t=s:y`] }, `! twinpost: dns: advice: ${KEY} has the key that signs (DKIM), and says that this is a test (t=y): its signatures count as none`],
    ['no look at DNSSEC', 0, { 'A arpa': undefined }, '! twinpost: dns: advice: the resolver does not say of arpa, a signed name, that it is (AD): it does not look at DNSSEC, and DANE is not used; have it validate, or name one that does (dns.resolvers)'],
    ['nobody who tells of DNSSEC', 3, { 'A arpa': 'fails' }, '! twinpost: dns: whether the resolver looks at DNSSEC can\'t be told: no answer on A of arpa: 127.0.0.1: SERVFAIL'],
    ['no key', 1, { [`TXT ${KEY}`]: undefined }, `! twinpost: dns: ${KEY} has no record: publish "${publicRecord(publicKey)}"`],
    ['two SPF records', 1, { 'TXT ours.example': ['v=spf1 a', 'V=SPF1 mx'] }, '! twinpost: dns: ours.example has 2 SPF records: none of them counts'],
    ['no DMARC', 1, { 'TXT _dmarc.ours.example': undefined }, '! twinpost: dns: _dmarc.ours.example has no DMARC record'],
    ['a DMARC policy that is none', 1, { 'TXT _dmarc.ours.example': ['v=DMARC1; p=nonsense'] }, '! twinpost: dns: _dmarc.ours.example says p=nonsense, which is no policy (DMARC): publish none, quarantine or reject'],
    ['a DMARC policy of subdomains that is none', 1, { 'TXT _dmarc.ours.example': ['v=DMARC1; p=reject; sp=nobody'] }, '! twinpost: dns: _dmarc.ours.example says sp=nobody, which is no policy (DMARC): publish none, quarantine or reject'],
    ['a DMARC policy in capitals', 0, { 'TXT _dmarc.ours.example': ['v=DMARC1; p=Reject; sp=NONE'] }, '# dns: _dmarc.ours.example has one DMARC record (Reject)'],
    ['no answer', 3, { 'TXT ours.example': 'fails' }, '! twinpost: dns: no answer on TXT of ours.example: 127.0.0.1: SERVFAIL'],
  ] as const) {
    test(`says that there is ${what}`, async (t) => {
      const zone = Object.fromEntries(Object.entries({ ...GOOD, ...changed }).filter(([, data]) => data !== undefined)) as Zone;
      const [seen, ...lines] = await check(t, zone);
      assert.equal(seen, code);
      assert.ok(lines.some((one) => (typeof line === 'string' ? one === line : line.test(one))), lines.join('\n'));
    });
  }

  test('names another entry of dkim that has the same file, where another key is published', async (t) => {
    const dkim = ['ours.example', 'news.ours.example'].map((domain) => ({ domain, selector: 's1', key_file: 'key.pem' }));
    const [, ...lines] = await check(t, { ...GOOD, [`TXT ${KEY}`]: [publicRecord(other)] }, [], { dkim });
    assert.match(lines.join('\n'), /^! twinpost: dns: s1\._domainkey\.ours\.example has another key than '\S+key\.pem' \(key_file of s1\._domainkey\.news\.ours\.example, too\): /m);
  });

  test('advises a key for each domain that users send from', async (t) => {
    const dkim = [{ domain: 'ours.example', selector: 's1', key_file: 'key.pem' }];
    const smtp = { listen: ['127.0.0.1:2525'], users: 'users' };
    const users = await Promise.all(['anna@ours.example', 'bea@Keyless.example'].map((name) => scramLine(name, 'secret')));
    const [code, ...lines] = await check(t, GOOD, [], { dkim, smtp, users: [...users, `${await scramLine('eve', 'secret')}:*,@second.example,a@keyless.example`] });
    assert.equal(code, 0);
    assert.deepEqual(lines.filter((line) => line.includes('users')), ["! twinpost: dns: advice: users send from 'keyless.example', 'second.example', and dkim has no key for these: their mail gets no signature here"]);
    const [, ...all] = await check(t, GOOD, [], { dkim, smtp, users: users.slice(0, 1) });
    assert.deepEqual(all.filter((line) => line.includes('users')), []);
  });

  test('looks up the next hops that routes name, and what they alone see of us is advice', async (t) => {
    const routes = [{ domain: '*', via: ['smtp://localhost:26', 'smtp://127.0.0.1:27'], fallback: ['smtp://localhost:28'] }];
    const zone: Zone = { [`TXT ${KEY}`]: [publicRecord(publicKey)], 'TXT ours.example': ['v=spf1 a', 'v=spf1 mx'], 'TXT _dmarc.ours.example': ['v=DMARC1; p=reject'] };
    assert.deepEqual(await check(t, zone, [], { routes }), [
      0, '! twinpost: dns: advice: gw.test (said in EHLO) has no address', '! twinpost: dns: advice: gw.test has no SPF record',
      `# dns: ${KEY} has the key that signs (DKIM)`, '! twinpost: dns: advice: ours.example has 2 SPF records: none of them counts',
      '# dns: _dmarc.ours.example has one DMARC record (reject)', NO_KEY, '# dns: next hop localhost has an address',
    ]);
    const [only] = await check(t, { ...GOOD, 'PTR 7.2.0.192.in-addr.arpa': ['other.test'] }, [], { routes });
    assert.equal(only, 0);
    const [of, ...bySource] = await check(t, { ...zone, 'TXT ours.example': ['v=spf1 -all'], 'TXT two.test': ['v=spf1 -all'] }, [{ address: '127.0.0.2', name: 'two.test' }], { routes });
    assert.deepEqual([of, ...bySource.filter((line) => /PTR|SPF says/.test(line))], [
      0, '! twinpost: dns: advice: source 127.0.0.2 (two.test in EHLO): its PTR record says nothing, and not two.test',
      '! twinpost: dns: advice: reports of two.test (EHLO) by 127.0.0.2: SPF says fail', '! twinpost: dns: advice: mail of ours.example by 127.0.0.2: SPF says fail',
    ]);
    const [code, ...lines] = await check(t, GOOD, [], { routes: [...routes, { domain: 'a.example', via: 'smtp://smrthost.example:25' }] });
    assert.deepEqual([code, lines.at(-1)], [1, '! twinpost: dns: next hop smrthost.example: it has no address']);
    const late = await check(t, GOOD, [], { routes: [...routes, { domain: 'a.example', via: 'mx', fallback: ['smtp://smarthost.late:25'] }] });
    assert.deepEqual([late[0], late.at(-1)], [3, '! twinpost: dns: next hop smarthost.late: no answer on its address: EAI_AGAIN']);
  });

  const sources = [{ address: '127.0.0.2', name: 'two.test' }, { address: '::1', name: 'six.test' }];
  const OF_SOURCES: Zone = {
    ...GOOD, 'PTR 2.0.0.127.in-addr.arpa': ['two.test'], 'A two.test': ['127.0.0.2'], 'TXT two.test': ['v=spf1 a -all'],
    [`PTR ${pointerName('::1')}`]: ['six.test'], 'AAAA six.test': ['::1'], 'TXT six.test': ['v=spf1 a -all'],
    'TXT ours.example': ['something else', 'v=spf1 a:two.test include:six.test -all'],
  };

  test('looks at each source, and of the host name only whether it has an address', async (t) => {
    const [code, ...lines] = await check(t, OF_SOURCES, sources);
    assert.equal(code, 0);
    assert.deepEqual(lines.slice(0, 6), [
      '# dns: 127.0.0.2 and two.test lead to each other (PTR, EHLO)', '# dns: ::1 and six.test lead to each other (PTR, EHLO)',
      '# dns: two.test has one SPF record', '# dns: reports of two.test (EHLO) by 127.0.0.2: SPF says pass',
      '# dns: six.test has one SPF record', '# dns: reports of six.test (EHLO) by ::1: SPF says pass',
    ]);
    assert.ok(lines.includes('# dns: mail of ours.example by 127.0.0.2: SPF says pass'), lines.join('\n'));
    assert.ok(lines.includes('# dns: mail of ours.example by ::1: SPF says pass'), lines.join('\n'));
    assert.deepEqual(lines.filter((line) => line.includes('gw.test') && line !== NO_KEY), ['# dns: gw.test (hostname) has an address']);
    const six = await check(t, { ...OF_SOURCES, 'A gw.test': [], 'AAAA gw.test': ['::7'] }, sources);
    assert.equal(six[0], 0, six.join('\n'));
    const [none, ...told] = await check(t, { ...OF_SOURCES, 'A gw.test': [] }, sources);
    assert.equal(none, 1);
    assert.ok(told.includes('! twinpost: dns: gw.test (hostname) has neither an address nor an MX record: reports are from there, and many refuse mail of a domain that the DNS does not know; publish A or AAAA'), told.join('\n'));
    // What sends on takes an MX record for a domain that is there (RFC 5321 5.1); not one that says it takes no mail.
    const byMx = await check(t, { ...OF_SOURCES, 'A gw.test': [], 'MX gw.test': ['mx.elsewhere.example'] }, sources);
    assert.deepEqual([byMx[0], byMx.filter((line) => /hostname/.test(String(line)) && line !== NO_KEY)], [0, ['# dns: gw.test (hostname) has an MX record']]);
    const [nullMx] = await check(t, { ...OF_SOURCES, 'A gw.test': [], 'MX gw.test': ['.'] }, sources);
    assert.equal(nullMx, 1);
    for (const type of ['A', 'MX']) {
      const [late] = await check(t, { ...OF_SOURCES, 'A gw.test': [], [`${type} gw.test`]: 'fails' }, sources);
      assert.equal(late, 3, type);
    }
    const own = await check(t, { ...OF_SOURCES, 'PTR 2.0.0.127.in-addr.arpa': ['gw.test'], 'A gw.test': ['127.0.0.2'], 'TXT ours.example': ['v=spf1 a:gw.test -all'] }, [{ address: '127.0.0.2', name: 'gw.test' }]);
    assert.deepEqual([own[0], own.filter((line) => /hostname/.test(String(line)) && line !== NO_KEY)], [0, []]);
  });

  for (const [what, code, changed, line] of [
    ['leads elsewhere', 1, { 'PTR 2.0.0.127.in-addr.arpa': ['other.test'] }, '! twinpost: dns: source 127.0.0.2 (two.test in EHLO): its PTR record says other.test, and not two.test'],
    ['has a name with another address', 1, { 'AAAA six.test': ['::2'] }, '! twinpost: dns: source ::1 (six.test in EHLO): AAAA of six.test says ::2'],
    ['may not send for a domain that signs', 1, { 'TXT ours.example': ['v=spf1 a:two.test -all'] }, '! twinpost: dns: mail of ours.example by ::1: SPF says fail'],
    ['may not send reports by its own name', 1, { 'TXT six.test': ['v=spf1 ip6:::2 -all'] }, '! twinpost: dns: reports of six.test (EHLO) by ::1: SPF says fail'],
    ['is not answered for', 3, { 'A two.test': 'fails' }, '! twinpost: dns: source 127.0.0.2 (two.test in EHLO): no answer on A of two.test: 127.0.0.1: SERVFAIL'],
  ] as const) {
    test(`says of a source that it ${what}`, async (t) => {
      const [seen, ...lines] = await check(t, { ...OF_SOURCES, ...changed }, sources);
      assert.equal(seen, code);
      assert.ok(lines.includes(line), lines.join('\n'));
    });
  }

  const RETURNING: More = {
    routes: [{ domain: '*', via: 'mx', verp: { domain: 'bounces.ours.example', secret_file: 'a.secret' } }],
    smtp: { listen: ['127.0.0.1:2525'], srs: { domain: 'srs.ours.example', secret_file: 'a.secret' }, feedback: { address: 'fbl@FBL.ours.example' } },
    tls_reports: { organization: 'Ours', contact: 'postmaster@tls.ours.example' },
  };
  const OF_RETURNS: Zone = {
    ...OF_SOURCES, 'TXT bounces.ours.example': ['v=spf1 a:two.test include:six.test -all'], 'MX bounces.ours.example': ['other.test', 'GW.test'], 'A other.test': ['192.0.2.26'],
    'TXT srs.ours.example': ['v=spf1 a:two.test -all'], 'MX srs.ours.example': ['mx.elsewhere.example'], 'A mx.elsewhere.example': ['93.184.216.34'],
    'MX tls.ours.example': ['mx.elsewhere.example'],
  };

  test('looks at the domains that SPF judges by, that reports come back to, and that they are signed for', async (t) => {
    const [code, ...lines] = await check(t, OF_RETURNS, sources, RETURNING);
    assert.equal(code, 1);
    const without = await check(t, OF_RETURNS, sources);
    assert.deepEqual(lines.filter((line) => !without.includes(line)), [
      '# dns: bounces.ours.example has one SPF record', '# dns: mail of bounces.ours.example by 127.0.0.2: SPF says pass', '# dns: mail of bounces.ours.example by ::1: SPF says pass',
      '# dns: srs.ours.example has one SPF record', '# dns: mail of srs.ours.example by 127.0.0.2: SPF says pass', '! twinpost: dns: mail of srs.ours.example by ::1: SPF says fail',
      '# dns: MX of bounces.ours.example leads to gw.test',
      '! twinpost: dns: advice: MX of srs.ours.example leads to mx.elsewhere.example, and not to gw.test: reports to it come back only if that leads to a gateway of this group',
      '! twinpost: dns: fbl.ours.example has no MX record: reports to it do not come back; publish "MX 10 gw.test."',
      '# dns: mail to postmaster@tls.ours.example (tls_reports.contact) goes to mx.elsewhere.example',
      '! twinpost: dns: advice: reports on TLS are from tls.ours.example (tls_reports.contact), and dkim has no key for it: many take none that are not signed',
    ]);
  });

  for (const [what, code, changed, line] of [
    ['one name, which is unknown', 1, { 'MX srs.ours.example': ['mial1.test'] }, '! twinpost: dns: MX of srs.ours.example leads to mial1.test, which has no address: reports to it do not come back; publish "MX 10 gw.test."'],
    ['two names, and both are unknown', 1, { 'MX srs.ours.example': ['mial2.test', 'mial1.test'] }, '! twinpost: dns: MX of srs.ours.example leads to mial2.test, mial1.test, none of which has an address: reports to it do not come back; publish "MX 10 gw.test."'],
    ['two names, and one is unknown', 0, { 'MX srs.ours.example': ['mx.elsewhere.example', 'mial1.test'] }, '! twinpost: dns: advice: MX of srs.ours.example leads to mx.elsewhere.example, mial1.test, and mial1.test has no address: take it out, or give it an address'],
    ['two names, and one is unknown: what is said of the other', 0, { 'MX srs.ours.example': ['mial1.test', 'mx.elsewhere.example'] }, '! twinpost: dns: advice: MX of srs.ours.example leads to mx.elsewhere.example, and not to gw.test: reports to it come back only if that leads to a gateway of this group'],
    ['our own and one that is unknown', 0, { 'MX srs.ours.example': ['gw.test', 'mial1.test'] }, '! twinpost: dns: advice: MX of srs.ours.example leads to gw.test, mial1.test, and mial1.test has no address: take it out, or give it an address'],
    ['our own, which is unknown', 1, { 'MX srs.ours.example': ['gw.test'], 'A gw.test': [] }, '! twinpost: dns: MX of srs.ours.example leads to gw.test, which has no address: reports to it do not come back; give gw.test an address'],
    ['our own and one that nobody tells of', 0, { 'MX srs.ours.example': ['gw.test', 'late.test'], 'A late.test': 'fails' }, '# dns: MX of srs.ours.example leads to gw.test'],
    ['a name of IPv6 alone', 0, { 'A mx.elsewhere.example': [], 'AAAA mx.elsewhere.example': ['::25'] }, '! twinpost: dns: advice: MX of srs.ours.example leads to mx.elsewhere.example, and not to gw.test: reports to it come back only if that leads to a gateway of this group'],
    ['a name that nobody tells of', 3, { 'A mx.elsewhere.example': 'fails' }, '! twinpost: dns: no answer on A of mx.elsewhere.example: 127.0.0.1: SERVFAIL'],
  ] as const) {
    test(`looks whether the MX of return addresses leads to a host: ${what}`, async (t) => {
      const smtp = { listen: ['127.0.0.1:2525'], srs: { domain: 'srs.ours.example', secret_file: 'a.secret' } };
      const [seen, ...lines] = await check(t, { ...OF_RETURNS, 'TXT srs.ours.example': ['v=spf1 a:two.test include:six.test -all'], ...changed }, sources, { smtp });
      assert.equal(seen, code, lines.join('\n'));
      assert.ok(lines.includes(line), lines.join('\n'));
    });
  }

  const AWAY: Zone = { ...GOOD, 'MX ours.example': ['mx.elsewhere.example'], 'A mx.elsewhere.example': ['93.184.216.34'], 'MX fbl.ours.example': ['gw.test'] };
  const READ = {
    smtp: { listen: ['127.0.0.1:2525'], postmaster: 'ops@Ours.example', feedback: { address: 'fbl@fbl.ours.example', forward_to: 'abuse@ours.example' } },
    tls_reports: { organization: 'Ours', contact: 'tls@ours.example' },
  };
  const readers = (lines: readonly (string | number)[]): readonly string[] => lines.map(String).filter((line) => line.includes('dns: mail to '));

  test('says where mail to readers goes whom the file names, and that it bounces where it would come back', async (t) => {
    const away = await check(t, AWAY, [], READ);
    assert.deepEqual([away[0], readers(away)], [0, [
      '# dns: mail to ops@ours.example (smtp.postmaster) goes to mx.elsewhere.example', '# dns: mail to abuse@ours.example (smtp.feedback.forward_to) goes to mx.elsewhere.example',
      '# dns: mail to tls@ours.example (tls_reports.contact) goes to mx.elsewhere.example',
    ]]);
    const here = await check(t, { ...AWAY, 'MX ours.example': ['GW.test'] }, [], READ);
    const why = 'bounces (5.4.6): mail for ours.example loops back to gw.test; name an address that is read elsewhere, or give its domain a route to its mailboxes';
    assert.deepEqual([here[0], readers(here)], [1, [
      `! twinpost: dns: mail to ops@ours.example (smtp.postmaster) ${why}`, `! twinpost: dns: mail to abuse@ours.example (smtp.feedback.forward_to) ${why}`,
      `! twinpost: dns: mail to tls@ours.example (tls_reports.contact) ${why}`,
    ]]);
    const ofReturns = await check(t, AWAY, [], { smtp: { ...READ.smtp, postmaster: 'ops@fbl.ours.example' } });
    assert.deepEqual([ofReturns[0], readers(ofReturns)[0]], [1, `! twinpost: dns: mail to ops@fbl.ours.example (smtp.postmaster) ${why.replace('ours.example', 'fbl.ours.example')}`]);
  });

  for (const [what, code, changed, told] of [
    ['has no address', 1, { 'A mx.elsewhere.example': [], 'AAAA mx.elsewhere.example': [] }, '! twinpost: dns: mail to ops@ours.example (smtp.postmaster) waits (4.4.1): mx.elsewhere.example: it has no address; name an address that is read elsewhere, or give its domain a route to its mailboxes'],
    ['has a private address', 1, { 'A mx.elsewhere.example': ['10.1.2.3'] }, '! twinpost: dns: mail to ops@ours.example (smtp.postmaster) waits (4.4.1): mx.elsewhere.example: 10.1.2.3 is a private address, which is not connected to (delivery.mx.allow_private_addresses); name an address that is read elsewhere, or give its domain a route to its mailboxes'],
    ['is one that nobody tells of', 3, { 'A mx.elsewhere.example': 'fails' }, '! twinpost: dns: mail to ops@ours.example (smtp.postmaster): mx.elsewhere.example: no answer on its address: 127.0.0.1: SERVFAIL'],
    ['stands beside one that has an address', 0, { 'A mx.elsewhere.example': [], 'MX ours.example': ['mx.elsewhere.example', 'two.elsewhere.example'], 'A two.elsewhere.example': ['93.184.216.34'] }, '# dns: mail to ops@ours.example (smtp.postmaster) goes to two.elsewhere.example'],
  ] as const) {
    test(`asks whether mail to readers can go to the host, which ${what}`, async (t) => {
      const [seen, ...lines] = await check(t, { ...AWAY, ...changed }, [], { smtp: { listen: ['127.0.0.1:2525'], postmaster: 'ops@ours.example' } });
      assert.deepEqual([seen, readers(lines)], [code, [told]]);
    });
  }

  test('does not ask of readers where a route leads to their mailboxes, and says when nobody answers', async (t) => {
    const routes = [{ domain: 'ours.example', via: 'smtp://127.0.0.1:26' }, { domain: '*', via: 'mx' }];
    const inside = await check(t, { ...AWAY, 'MX ours.example': ['gw.test'] }, [], { ...READ, routes });
    assert.deepEqual([inside[0], readers(inside)], [0, []]);
    const late = await check(t, { ...AWAY, 'MX ours.example': 'fails' }, [], { smtp: READ.smtp });
    assert.deepEqual([late[0], readers(late)[0]], [3, '! twinpost: dns: mail to ops@ours.example (smtp.postmaster): no answer on MX of ours.example: 127.0.0.1: SERVFAIL']);
  });

  test('is not asked where a source is no address of this machine: the file is refused, with its line', async (t) => {
    const [code, line] = await check(t, OF_SOURCES, [...sources, { address: '192.0.2.77', name: 'gone.test' }]);
    assert.equal(code, 1);
    assert.match(line ?? '', /gateway\.yaml:1: gateway\.sources\[2\]\.address: expected an address of this machine, found '192\.0\.2\.77', which no interface has$/);
  });
});
