/** `twinpost explain`: a file, a table of recipients and a scripted name server in, lines and an exit code out. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import type { Answer } from 'dns-packet';
import { pointerName } from '../../../src/base/reversed-address.js';
import { buildTable } from '../../../src/cli/table/build.js';
import { runCli } from '../../../src/cli/main.js';
import { formatMessageId } from '../../../src/base/text-id.js';
import { publicRecord } from '../../../src/gateway/dkim/node/public-record.js';
import { returnAddressesOf, rewritingOf } from '../../../src/gateway/returned/node/own-addresses.js';
import type { RouteOptions } from '../../../src/gateway/queue/router.js';
import { HttpsClient } from '../../../src/platform/node/https-client.js';
import { makeCertificates } from '../../process/tls-hop.js';
import { PolicyServer, policyText } from '../gateway/outbound/sts/policy-server.js';
import { NameServer } from '../platform/node/dns/name-server.js';
import { contextFor } from './played-context.js';

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

function texts(name: string, ...records: readonly string[]): readonly Answer[] {
  return records.map((record) => ({ type: 'TXT', name, data: record.match(/.{1,255}/g) ?? [] }));
}

const ZONE: Readonly<Record<string, readonly Answer[]>> = {
  'MX there.example': [
    { type: 'MX', name: 'there.example', data: { preference: 20, exchange: 'b.there.example' } },
    { type: 'MX', name: 'there.example', data: { preference: 10, exchange: 'a.there.example' } },
  ],
  'A a.there.example': [{ type: 'A', name: 'a.there.example', data: '8.8.8.8' }, { type: 'A', name: 'a.there.example', data: '10.0.0.1' }],
  'MX null.example': [{ type: 'MX', name: 'null.example', data: { preference: 0, exchange: '.' } }],
  'MX inside.example': [{ type: 'MX', name: 'inside.example', data: { preference: 0, exchange: 'c.inside.example' } }],
  'MX sts.example': ['a.sts.example', 'b.other.example'].map((exchange, at) => ({ type: 'MX', name: 'sts.example', data: { preference: at, exchange } })),
  'A a.sts.example': [{ type: 'A', name: 'a.sts.example', data: '127.0.0.1' }],
  'A b.other.example': [{ type: 'A', name: 'b.other.example', data: '127.0.0.1' }],
  'A mta-sts.sts.example': [{ type: 'A', name: 'mta-sts.sts.example', data: '127.0.0.1' }],
  'TXT _mta-sts.sts.example': [{ type: 'TXT', name: '_mta-sts.sts.example', data: 'v=STSv1; id=1' }],
  'MX dual.example': [{ type: 'MX', name: 'dual.example', data: { preference: 1, exchange: 'mx.dual.example' } }],
  'A mx.dual.example': [{ type: 'A', name: 'mx.dual.example', data: '127.0.0.1' }],
  'AAAA mx.dual.example': [{ type: 'AAAA', name: 'mx.dual.example', data: '::1' }],
  'PTR 2.0.0.127.in-addr.arpa': [{ type: 'PTR', name: '2.0.0.127.in-addr.arpa', data: 'two.test' }],
  'A two.test': [{ type: 'A', name: 'two.test', data: '127.0.0.2' }],
  [`PTR ${pointerName('::1')}`]: [{ type: 'PTR', name: pointerName('::1'), data: 'six.test' }],
  'AAAA six.test': [{ type: 'AAAA', name: 'six.test', data: '::1' }],
  'AAAA six.there.example': [{ type: 'AAAA', name: 'six.there.example', data: '2001:db8::1' }],
  'MX hosted.there.example': [{ type: 'MX', name: 'hosted.there.example', data: { preference: 1, exchange: 'six.there.example' } }],
  'MX silent.example': [{ type: 'MX', name: 'silent.example', data: { preference: 0, exchange: 'mx.late.example' } }],
  'MX untold.late.example': [{ type: 'MX', name: 'untold.late.example', data: { preference: 0, exchange: 'a.there.example' } }],
  'TXT s1._domainkey.sent.example': texts('s1._domainkey.sent.example', publicRecord(publicKey)),
  'TXT sent.example': texts('sent.example', 'v=spf1 a:two.test -all'),
  'TXT _dmarc.sent.example': texts('_dmarc.sent.example', 'v=DMARC1; p=quarantine; sp=none'),
  'TXT bare.example': texts('bare.example', 'v=spf1 -all'),
  'A c.inside.example': [{ type: 'A', name: 'c.inside.example', data: '127.0.0.1' }],
};

/** `https`: hosts on loopback count then. */
/** Of this machine, and of its loopback; the DNS confirms the first two. */
const SOURCES = [{ address: '127.0.0.2', name: 'two.test' }, { address: '::1', name: 'six.test' }, { address: '127.0.0.3', name: 'three.test' }];

const SECRET = 'one line, and sixteen characters';
const CLOCK = { nowMs: () => 0, wallMs: () => Date.now() - 3 * 86_400_000 };

interface Explained { readonly recipient: string; readonly https?: HttpsClient; readonly sources?: typeof SOURCES; readonly route?: readonly string[]; readonly feedback?: object; readonly dkim?: readonly string[]; readonly keyFile?: string; readonly recipients?: string | object }

async function explain(t: TestContext, to: string | Explained, ...more: readonly string[]): Promise<{ readonly code: number; readonly out: readonly string[]; readonly errors: readonly string[] }> {
  const { recipient, https, sources = [], route, feedback, dkim = [], keyFile = 'key.pem', recipients = 'recipients.table' }: Explained = typeof to === 'string' ? { recipient: to } : to;
  const args = [recipient, ...more];
  const names = await NameServer.start(t, (question) => {
    const answers = ZONE[question];
    if (answers !== undefined) return { answers };
    return question.endsWith('late.example') ? { rcode: 2 } : { rcode: question.endsWith('there.example') ? 0 : 3 };
  });
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-explain-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  writeFileSync(join(folder, 'recipients'), 'anna@ours.example route=box\nlist@ours.example to=anna@ours.example,x@there.example\n');
  writeFileSync(join(folder, 'own.secret'), `${SECRET}\n`, { mode: 0o600 });
  writeFileSync(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  buildTable(join(folder, 'recipients'), join(folder, 'recipients.table'), () => undefined);
  const file = join(folder, 'gateway.yaml');
  writeFileSync(file, JSON.stringify({
    gateway: {
      id: 'gw-1', host: 'box-1', secret: 'sixteen-characters-and-more', state_dir: folder, hostname: 'gw.test',
      sources,
      dkim: dkim.map((domain) => ({ domain, selector: 's1', key_file: keyFile })),
      // Nobody's: what limits mail now is told where a gateway runs (test/process/explain-limits.test.ts).
      admin: { listen: '127.0.0.1:1' },
      dns: { resolvers: [`127.0.0.1:${String(names.port)}`] },
      delivery: { mx: { allow_private_addresses: https !== undefined || sources.length > 0 } },
      smtp: { listen: ['127.0.0.1:2525', '127.0.0.1:2587'], relay_domains: ['ours.example'], recipients, ...(feedback === undefined ? {} : { feedback, postmaster: 'ann@there.example', srs: { domain: 'fwd.example', secret_file: 'own.secret' } }) },
      routes: [
        { name: 'box', via: 'lmtp://127.0.0.1:24', tls: 'none' },
        { domain: 'ours.example', via: ['smtps://localhost', 'smtps://two.ours.example'] },
        { name: 'typo', via: ['smtp://smrthost.example:25', 'smtp://mailhub.example:25'] },
        { name: 'six', via: 'smtp://[::1]:26025' },
        { name: 'both', via: 'smtp://dual.hosts:25' },
        { name: 'backed', via: 'mx', fallback: ['smtp://192.0.2.9:25', 'smtp://127.0.0.9:25'] },
        { name: 'late', via: ['smtp://mailhub.example:25', 'smtp://smarthost.late:25'] },
        { domain: '*', via: 'mx', ...(route === undefined ? {} : { sources: route }) },
        ...(feedback === undefined ? [] : [{ name: 'news', via: 'mx', verp: { domain: 'bounces.example', secret_file: 'own.secret', returned: 'forward' } }]),
        { domain: '*', name: 'bulk', when: { senders: ['*@news.example'], listeners: ['*:2587'] }, via: 'smtp://127.0.0.1:2527' },
      ],
      stores: ['s1', 's2'].map((id, at) => ({ id, host: `box-${String(at + 2)}`, paths: [{ name: 'A', address: `127.0.0.1:${String(7401 + at)}` }] })),
    },
  }));
  const printed: string[] = [];
  const code = await runCli(['explain', ...args, '--config', file], contextFor(printed, {}, undefined, https));
  const isError = (line: string): boolean => line.startsWith('! ');
  const untold: readonly string[] = printed.filter((line) => line === 'limits    not told: no answer from http://127.0.0.1:1: connection refused; is it running? --gateway ADDRESS names another gateway or store');
  if (printed.some((line) => line.startsWith('queue '))) assert.ok(untold.length > 0);
  return { code, out: printed.filter((line) => !isError(line) && !untold.includes(line)), errors: printed.filter(isError) };
}

const OWN_ALONE = 'senders   users, and clients of relay_networks and relay_certificates; nobody else';

describe('explain', () => {
  test('names queue, hosts in their order, and the addresses that count', async (t) => {
    const { code, out } = await explain(t, 'x@there.example');
    assert.deepEqual([code, ...out], [
      0,
      'to        x@there.example', OWN_ALONE, 'queue     default/there.example', 'next hop  mx://there.example:25',
      'host      10 a.there.example:25  8.8.8.8; 10.0.0.1 is a private address, which is not connected to (delivery.mx.allow_private_addresses)',
      'host      20 b.there.example:25  it has no address',
      'tls       may', 'dane      none asked for: no believed resolver says that the MX records are signed', 'retries   after 5min to 1h, for 5d',
    ]);
  });

  test('follows an alias to each whom it leads to', async (t) => {
    const { code, out } = await explain(t, 'list@ours.example', '--json');
    const told = out.map((line) => JSON.parse(line) as { readonly address: string; readonly queue: string; readonly next_hop: string; readonly tls: string });
    assert.deepEqual([code, told.map(({ address, queue, next_hop: hop, tls }) => [address, queue, hop, tls])], [0, [
      ['anna@ours.example', 'box', 'lmtp://127.0.0.1:24', 'none'],
      ['x@there.example', 'default/there.example', 'mx://there.example:25', 'may'],
    ]]);
  });

  test('by where the mail comes from, and by which listener', async (t) => {
    const queueOf = async (...args: string[]): Promise<string> => ((JSON.parse((await explain(t, 'x@there.example', '--json', ...args)).out[0] ?? '')) as { readonly queue: string }).queue;
    const [bulk, late] = [['--from', 'a@news.example'], ['--listener', '127.0.0.1:2587']];
    assert.deepEqual([await queueOf(...bulk), await queueOf(...late), await queueOf(...bulk, ...late)], ['default/there.example', 'default/there.example', 'bulk']);
    const none = await explain(t, 'x@there.example', '--listener', '127.0.0.1:1');
    assert.deepEqual([none.code, none.errors], [2, ['! twinpost: no listener \'127.0.0.1:1\'; there are: 127.0.0.1:2525, 127.0.0.1:2587']]);
  });

  test('takes a reverse-path as MAIL does, in its brackets or without, and nothing else', async (t) => {
    const of = async (from: string): Promise<readonly (string | number)[]> => {
      const { code, out, errors } = await explain(t, 'x@there.example', '--listener', '127.0.0.1:2587', '--from', from);
      return [code, ...out.filter((line) => line.startsWith('queue')), ...errors];
    };
    for (const from of ['a@news.example', '<a@news.example>', '<@relay.example:a@News.example>']) assert.deepEqual(await of(from), [0, 'queue     bulk'], from);
    for (const from of ['', '<>']) assert.deepEqual(await of(from), [0, 'queue     default/there.example'], from);
    for (const [from, why] of [
      ['bad from@@', 'local part'], ['News <a@news.example>', 'local part'], ['a@news.example ', 'domain'], ['<a@news.example> ', 'there is more behind it'],
      ['a@news.example>', 'there is more behind it'], ['a', 'domain is missing'], ['postmaster', 'domain is missing'],
    ] as const) {
      assert.deepEqual(await of(from), [2, `! twinpost: '${from}' is no reverse-path (${why}): say USER@DOMAIN, or <> for the null one`]);
    }
  });

  for (const [recipient, code, line] of [
    ['x@null.example', 1, 'NO WAY    5.1.10 the domain null.example takes no mail (null MX)'],
    ['x@nowhere.example', 1, 'NO WAY    5.1.2 the domain nowhere.example does not exist'],
    ['x@late.example', 3, `CAN'T TELL 4.4.3 no answer on MX of late.example: 127.0.0.1: SERVFAIL`],
    ['x@six.there.example', 1, 'NO WAY    4.4.1 six.there.example has IPv6 addresses only, and no source of IPv6 is configured'],
    ['x@hosted.there.example', 1, 'host      1 six.there.example:25  it has IPv6 addresses only, and no source of IPv6 is configured'],
    ['x@inside.example', 1, 'NO WAY    4.4.1 no host has an address that is connected to'],
    ['default/untold.late.example!tls', 3, `CAN'T TELL 4.7.5 mail to untold.late.example must have TLS, and whether a policy proves its hosts is not known now`],
    ['x@silent.example', 3, `CAN'T TELL 4.4.3 mx.late.example: no answer on its address: 127.0.0.1: SERVFAIL`],
  ] as const) {
    test(`says why there is no way to ${recipient}`, async (t) => {
      const told = await explain(t, recipient);
      assert.equal(told.code, code);
      assert.ok(told.out.includes(line), told.out.join('\n'));
    });
  }

  test('looks up the hosts that a route names: one without an address is no way', async (t) => {
    const of = async (queue: string): Promise<readonly (string | number)[]> => {
      const { code, out } = await explain(t, queue);
      return [code, ...out.filter((line) => /^(host|NO WAY|CAN'T)/.test(line))];
    };
    assert.deepEqual(await of('ours.example'), [0, 'host      0 localhost:465  127.0.0.1', 'host      1 two.ours.example:465  it has no address']);
    assert.deepEqual(await of('six'), [1, 'host      0 [::1]:26025  it has no address', 'NO WAY    4.4.1 no host has an address that is connected to']);
    assert.ok((await explain(t, 'six')).out.includes('next hop  smtp://[::1]:26025'));
    assert.deepEqual(await of('box'), [0, 'host      0 127.0.0.1:24']);
    assert.deepEqual(await of('typo'), [
      1, 'host      0 smrthost.example:25  it has no address', 'host      1 mailhub.example:25  it has no address',
      'NO WAY    4.4.1 no host has an address that is connected to',
    ]);
    assert.deepEqual(await of('late'), [
      3, 'host      0 mailhub.example:25  it has no address', 'host      1 smarthost.late:25  no answer on its address: EAI_AGAIN',
      `CAN'T TELL 4.4.3 smarthost.late: no answer on its address: EAI_AGAIN`,
    ]);
  });

  test('says that nobody could tell whether the domain has a policy', async (t) => {
    const { code, out } = await explain(t, 'x@untold.late.example');
    assert.equal(code, 0);
    assert.ok(out.includes('mta-sts   no answer: 127.0.0.1: SERVFAIL'), out.join('\n'));
  });

  test('says what an address of the gateway\'s own is, and goes on with whom it stands for', async (t) => {
    const lines = async (recipient: string, feedback: object, ...args: readonly string[]): Promise<readonly string[]> => {
      const { code, out, errors } = await explain(t, { recipient, feedback }, ...args);
      return [String(code), ...out.filter((line) => /^(to|is|queue|next)/.test(line)), ...errors];
    };
    const feedback = { address: 'fbl@ours.example', forward_to: 'anna@ours.example' };
    const box = ['queue     box', 'next hop  lmtp://127.0.0.1:24'];
    const there = ['queue     default/there.example', 'next hop  mx://there.example:25'];
    const verp = returnAddressesOf([{ name: 'news', verp: { domain: 'bounces.example', prefix: 'b', secrets: [SECRET], validMs: 86_400_000 * 10, returned: 'forward' } } as unknown as RouteOptions], CLOCK).get('news');
    const made = verp?.written(12345, 'x@there.example', 'anna@ours.example') ?? '';
    const id = formatMessageId(12345);
    assert.deepEqual(await lines(made, feedback), ['0', `to        ${made}`, `is        a return address of route news (verp), made for message ${id} 3 days ago: mail goes on to anna@ours.example`, ...box]);
    const forged = made.replace('+', '+x');
    assert.deepEqual(await lines(forged, feedback), ['1', `! twinpost: mail to ${forged} would be refused: 550 5.1.1 This address was not made here`]);
    const srs = rewritingOf({ srs: { domain: 'fwd.example', secrets: [SECRET] } }, CLOCK)?.rewritten('y@there.example') ?? '';
    assert.deepEqual(await lines(srs, feedback), ['0', `to        ${srs}`, 'is        a reverse-path that was rewritten here (smtp.srs): mail goes on to y@there.example', ...there]);
    const read = 'is        an address that every mail server has: smtp.postmaster names its reader: mail goes on to ann@there.example';
    for (const role of ['abuse@ours.example', 'postmaster@bounces.example', 'postmaster']) assert.deepEqual(await lines(role, feedback), ['0', `to        ${role}`, read, ...there]);
    const loop = 'is        the address of feedback loops (smtp.feedback)';
    assert.deepEqual(await lines('FBL@ours.example', feedback), ['0', 'to        FBL@ours.example', `${loop}: mail goes on to anna@ours.example`, ...box]);
    assert.deepEqual(await lines('fbl@ours.example', { address: 'fbl@ours.example' }), ['0', 'to        fbl@ours.example', `${loop}, and mail ends here`]);
    const unlisted = await lines('fbl@ours.example', { address: 'fbl@ours.example', forward_to: 'team@ours.example' });
    assert.deepEqual(unlisted.slice(0, 4), ['0', 'to        fbl@ours.example', `${loop}: mail goes on to team@ours.example`, 'queue     ours.example']);
    const { out } = await explain(t, { recipient: 'fbl@ours.example', feedback: { address: 'fbl@ours.example' } }, '--json');
    assert.deepEqual(out.map((line) => JSON.parse(line) as unknown), [{ recipient: 'fbl@ours.example', is: 'the address of feedback loops (smtp.feedback)', stands_for: '' }]);
  });

  const certificates = makeCertificates();
  for (const [what, text, code, lines] of [
    ['names a host', policyText('enforce', ['*.sts.example']), 0, ['mta-sts   enforce for 1d: *.sts.example']],
    ['names none', policyText('enforce', ['x.sts.example']), 1, ['NO WAY    4.7.5 the MTA-STS policy of sts.example names none of its MX hosts', 'mta-sts   enforce for 1d: x.sts.example']],
    ['is none', 'nothing', 0, ['mta-sts   none to be had: invalid: a line of it has no colon']],
  ] as const) {
    test(`says the policy of a domain that ${what}`, { skip: certificates === undefined ? 'openssl is missing' : false }, async (t) => {
      assert.ok(certificates !== undefined);
      const server = new PolicyServer();
      const https = new HttpsClient({ port: await server.listen(), ca: readFileSync(certificates.caFile, 'latin1') });
      t.after(() => { server.close(); });
      server.said.set('mta-sts.sts.example', { certificate: certificates.issue('mta-sts.sts.example'), text });
      const told = await explain(t, { recipient: 'x@sts.example', https });
      assert.equal(told.code, code);
      const hosts = told.out.filter((line) => line.startsWith('host'));
      assert.deepEqual(told.out.filter((line) => /^(NO WAY|mta-sts)/.test(line)), lines);
      assert.equal(hosts.at(-1), `host      1 b.other.example:25  ${what === 'is none' ? '127.0.0.1' : 'the MTA-STS policy of the domain does not name it'}`);
      const backed = await explain(t, { recipient: 'backed/sts.example', https });
      const terms = 'not while a host fails by its TLSA records or the policy';
      const [there, here] = ['192.0.2.9:25  it has no address', '127.0.0.9:25  127.0.0.1'].map((host) => `host      fallback ${host}`);
      const shown = { 'names a host': [`${there}; over TLS alone, and ${terms}`, `${here}; ${terms}`], 'names none': [], 'is none': [there, here] };
      assert.deepEqual(backed.out.filter((line) => line.includes('fallback')), shown[what]);
    });
  }

  test('says from which source mail would leave, what it says in EHLO, and whether the DNS confirms it', async (t) => {
    const both = await explain(t, { recipient: 'x@dual.example', sources: SOURCES, route: ['two.test', '::1'] });
    assert.equal(both.code, 0);
    assert.deepEqual(both.out.filter((line) => /^(host|source)/.test(line)), [
      'host      1 mx.dual.example:25  ::1 127.0.0.1', 'source    127.0.0.2  two.test in EHLO, confirmed by the DNS',
      'source    ::1  six.test in EHLO, confirmed by the DNS',
    ]);
    const one = await explain(t, { recipient: 'x@dual.example', sources: SOURCES, route: ['127.0.0.3'] });
    assert.deepEqual(one.out.filter((line) => /^(host|source)/.test(line)), [
      'host      1 mx.dual.example:25  127.0.0.1; ::1: no IPv6 source is confirmed for it',
      'source    127.0.0.3  three.test in EHLO, not confirmed: its PTR record says nothing, and not three.test',
    ]);
    const unconfirmed = await explain(t, { recipient: 'x@dual.example', sources: [{ address: '::1', name: 'other.test' }] });
    assert.deepEqual(unconfirmed.out.filter((line) => /^(host|source)/.test(line)), [
      'host      1 mx.dual.example:25  127.0.0.1; ::1: no IPv6 source is confirmed for it',
      'source    ::1  other.test in EHLO, not confirmed: its PTR record says six.test, and not other.test',
    ]);
    const named = await explain(t, { recipient: 'anna@ours.example', sources: SOURCES.slice(0, 2) });
    assert.deepEqual(named.out.filter((line) => line.startsWith('source')), ['source    127.0.0.2  two.test in EHLO, confirmed by the DNS']);
    // The system knows it by both families: the other is left out (pure/source-choice.ts).
    const onlySix = await explain(t, { recipient: 'both', sources: SOURCES.slice(1, 2) });
    assert.deepEqual(onlySix.out.filter((line) => /^(host|source)/.test(line)), ['host      0 dual.hosts:25  ::1', 'source    ::1  six.test in EHLO, confirmed by the DNS']);
  });

  test('says of those who send by MX what receivers find: the DKIM key, SPF from each source, DMARC', async (t) => {
    const senders = async (recipient: string, ...more: readonly string[]): Promise<readonly string[]> => {
      const { out } = await explain(t, { recipient, sources: SOURCES.slice(0, 2), dkim: ['sent.example', 'silent.late.example'] }, ...more);
      return out.filter((line) => line.startsWith('sender ') || line.startsWith('{"sender"'));
    };
    const good = [
      'sender    s1._domainkey.sent.example has the key that signs (DKIM)', 'sender    sent.example has one SPF record',
      'sender    mail of sent.example by 127.0.0.2: SPF says pass', 'sender    WRONG: mail of sent.example by ::1: SPF says fail',
      'sender    _dmarc.sent.example has one DMARC record (quarantine)',
    ];
    assert.deepEqual(await senders('x@dual.example', '--from', 'a@Sent.example'), good);
    const all = await senders('x@dual.example');
    assert.deepEqual(all.slice(0, good.length), good);
    assert.match(all.at(-1) ?? '', /^sender {4}no answer on TXT of _dmarc\.silent\.late\.example: /);
    const bare = [
      'sender    advice: dkim has no key for bare.example: its mail gets no signature here', 'sender    bare.example has one SPF record',
      ...['127.0.0.2', '::1'].map((address) => `sender    WRONG: mail of bare.example by ${address}: SPF says fail`),
      'sender    WRONG: _dmarc.bare.example has no DMARC record',
    ];
    assert.deepEqual(await senders('x@dual.example', '--from', 'a@bare.example'), bare);
    const [json = ''] = await senders('x@dual.example', '--from', 'a@sent.example', '--json');
    const { sender } = JSON.parse(json) as { readonly sender: readonly { readonly verdict: string; readonly text: string }[] };
    assert.deepEqual(sender.map(({ verdict }) => verdict), ['good', 'good', 'good', 'bad', 'good']);
    // Nobody outside sees it.
    assert.deepEqual(await senders('anna@ours.example', '--from', 'a@sent.example'), []);
  });

  test('leads a domain as its mail goes, and a queue by its name', async (t) => {
    const lines = async (to: string): Promise<readonly (string | number)[]> => {
      const { code, out, errors } = await explain(t, to);
      return [code, ...out.filter((line) => /^(to|is|queue|next|NO WAY)/.test(line)), ...errors];
    };
    const there = ['queue     default/there.example', 'next hop  mx://there.example:25'];
    assert.deepEqual(await lines('There.example'), [0, 'to        There.example', 'is        a domain', ...there]);
    assert.deepEqual(await lines('nowhere.example'), [1, 'to        nowhere.example', 'is        a domain', 'queue     default/nowhere.example', 'next hop  mx://nowhere.example:25', 'NO WAY    5.1.2 the domain nowhere.example does not exist']);
    assert.deepEqual(await lines('default/there.example'), [0, 'to        default/there.example', 'is        a queue', ...there]);
    assert.deepEqual(await lines('box'), [0, 'to        box', 'is        a queue', 'queue     box', 'next hop  lmtp://127.0.0.1:24']);
    assert.deepEqual(await lines('ours.example'), [0, 'to        ours.example', 'is        a queue', 'queue     ours.example', 'next hop  smtps://localhost:465']);
    assert.deepEqual(await lines('default'), [2, '! twinpost: route default has a queue for each domain: say the domain, or default/DOMAIN']);
    assert.deepEqual((await explain(t, 'there.example', '--from', 'a@news.example', '--listener', '127.0.0.1:2587')).out.filter((line) => line.startsWith('queue')), ['queue     bulk']);
  });

  test('says of an address, a domain and a queue that is one domain\'s who may send there, and not of others', async (t) => {
    const senders = async (to: string): Promise<string | undefined> => {
      const { out } = await explain(t, to);
      const lines = out.filter((line) => line.startsWith('senders'));
      assert.ok(lines.length <= 1);
      return lines[0];
    };
    const anybody = 'senders   anybody: it is in relay_domains';
    assert.deepEqual([await senders('anna@ours.example'), await senders('ours.example')], [anybody, anybody]);
    assert.deepEqual([await senders('x@there.example'), await senders('there.example')], [OWN_ALONE, OWN_ALONE]);
    const some = "senders   users, and clients of relay_networks and relay_certificates; others only to addresses of the gateway's own";
    assert.equal(await senders('gw.test'), some);
    assert.deepEqual([await senders('box'), await senders('default/there.example'), await senders('postmaster@gw.test')], [undefined, undefined, undefined]);
  });

  test('takes the file of `twinpost up`, as config check does', async () => {
    const printed: string[] = [];
    const code = await runCli(['explain', 'anna@example.com', '--config', 'configs/up.yaml', '--gateway', '127.0.0.1:1'], contextFor(printed));
    assert.deepEqual([code, printed.slice(0, 4)], [0, ['to        anna@example.com', OWN_ALONE, 'queue     default', 'next hop  smtp://127.0.0.1:2526']], printed.join('\n'));
  });

  test('says where it looked when no gateway answers', async () => {
    const printed: string[] = [];
    const code = await runCli(['explain', 'anna@example.com', '--gateway', '127.0.0.1:1'], contextFor(printed));
    assert.deepEqual([code, printed], [3, ['! twinpost: no answer from http://127.0.0.1:1: connection refused; is it running? --gateway ADDRESS names another one, --config FILE goes by a file']]);
  });

  test('can\'t tell who is there where a directory must be asked', async (t) => {
    const { code, errors } = await explain(t, { recipient: 'anna@ours.example', recipients: { http: 'http://127.0.0.1:1/' } });
    assert.deepEqual([code, errors], [3, ['! twinpost: who is there in ours.example is asked for by HTTP (smtp.recipients), and not here']]);
  });

  test('a file that nothing can be told by is wrong usage', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'twinpost-explain-'));
    t.after(() => { rmSync(folder, { recursive: true }); });
    const [broken, none] = [join(folder, 'broken.yaml'), join(folder, 'none.yaml')];
    writeFileSync(broken, 'gateway: {id: [');
    for (const file of [broken, none]) {
      const printed: string[] = [];
      assert.equal(await runCli(['explain', 'anna@example.com', '--config', file], contextFor(printed)), 2, printed.join('\n'));
    }
    const { code, errors } = await explain(t, { recipient: 'x@dual.example', sources: SOURCES, dkim: ['sent.example'], keyFile: 'gone.pem' });
    assert.deepEqual([code, errors.length], [2, 1], errors.join('\n'));
  });

  test('says what reception would answer to who is not there, and what is no address', async (t) => {
    const unknown = await explain(t, 'nobody@ours.example');
    assert.deepEqual([unknown.code, unknown.errors.length], [1, 1]);
    assert.match(unknown.errors[0] ?? '', /^! (twinpost: )?mail to nobody@ours\.example would be refused: 550 5\.1\.1 /);
    const none = await explain(t, 'nobody');
    assert.deepEqual([none.code, none.errors], [2, ['! twinpost: \'nobody\' is no address (domain is missing), no domain and no queue; there are the routes box, ours.example, typo, six, both, backed, late, default, bulk']]);
  });
});
