/** `twinpost explain`: a file, a table of recipients and a scripted name server in, lines and an exit code out. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import type { Answer } from 'dns-packet';
import { buildTable } from '../../../src/cli/table/build.js';
import { runCli } from '../../../src/cli/main.js';
import { HttpsClient } from '../../../src/platform/node/https-client.js';
import { makeCertificates } from '../../process/tls-hop.js';
import { PolicyServer, policyText } from '../gateway/outbound/sts/policy-server.js';
import { NameServer } from '../platform/node/dns/name-server.js';
import { contextFor } from './played-context.js';

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
  'A c.inside.example': [{ type: 'A', name: 'c.inside.example', data: '127.0.0.1' }],
};

/** `https`: hosts on loopback count then. */
async function explain(t: TestContext, to: string | { readonly recipient: string; readonly https: HttpsClient }, ...more: readonly string[]): Promise<{ readonly code: number; readonly out: readonly string[]; readonly errors: readonly string[] }> {
  const [args, https] = typeof to === 'string' ? [[to, ...more], undefined] : [[to.recipient, ...more], to.https];
  const names = await NameServer.start(t, (question) => {
    const answers = ZONE[question];
    if (answers !== undefined) return { answers };
    return question.endsWith('late.example') ? { rcode: 2 } : { rcode: question.endsWith('there.example') ? 0 : 3 };
  });
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-explain-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  writeFileSync(join(folder, 'recipients'), 'anna@ours.example route=box\nlist@ours.example to=anna@ours.example,x@there.example\n');
  buildTable(join(folder, 'recipients'), join(folder, 'recipients.table'), () => undefined);
  const file = join(folder, 'gateway.yaml');
  writeFileSync(file, JSON.stringify({
    gateway: {
      id: 'gw-1', host: 'box-1', secret: 'sixteen-characters-and-more', state_dir: folder, hostname: 'gw.test',
      dns: { resolvers: [`127.0.0.1:${String(names.port)}`] },
      delivery: { mx: { allow_private_addresses: https !== undefined } },
      smtp: { listen: ['127.0.0.1:2525', '127.0.0.1:2587'], relay_domains: ['ours.example'], recipients: 'recipients.table' },
      routes: [
        { name: 'box', via: 'lmtp://127.0.0.1:24', tls: 'none' },
        { domain: 'ours.example', via: ['smtps://one.ours.example', 'smtps://two.ours.example'] },
        { domain: '*', via: 'mx' },
        { domain: '*', name: 'bulk', when: { senders: ['*@news.example'], listeners: ['*:2587'] }, via: 'smtp://127.0.0.1:2527' },
      ],
      stores: ['s1', 's2'].map((id, at) => ({ id, host: `box-${String(at + 2)}`, paths: [{ name: 'A', address: `127.0.0.1:${String(7401 + at)}` }] })),
    },
  }));
  const printed: string[] = [];
  const code = await runCli(['explain', ...args, '--config', file], contextFor(printed, {}, undefined, https));
  const isError = (line: string): boolean => line.startsWith('! ');
  return { code, out: printed.filter((line) => !isError(line)), errors: printed.filter(isError) };
}

describe('explain', () => {
  test('names queue, hosts in their order, and the addresses that count', async (t) => {
    const { code, out } = await explain(t, 'x@there.example');
    assert.deepEqual([code, ...out], [
      0,
      'to        x@there.example', 'queue     default/there.example', 'next hop  mx://there.example:25',
      'host      10 a.there.example:25  8.8.8.8; 10.0.0.1 is a private address, which is not connected to',
      'host      20 b.there.example:25  it has no address',
      'tls       may', 'retries   after 5min to 1h, for 5d',
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

  for (const [recipient, code, line] of [
    ['x@null.example', 1, 'NO WAY    5.1.10 the domain null.example takes no mail (null MX)'],
    ['x@nowhere.example', 1, 'NO WAY    5.1.2 the domain nowhere.example does not exist'],
    ['x@late.example', 3, 'NO WAY    4.4.3 no answer on MX of late.example: 127.0.0.1: SERVFAIL'],
    ['x@inside.example', 1, 'NO WAY    4.4.1 no host has an address that is connected to'],
  ] as const) {
    test(`says why there is no way to ${recipient}`, async (t) => {
      const told = await explain(t, recipient);
      assert.equal(told.code, code);
      assert.ok(told.out.includes(line), told.out.join('\n'));
    });
  }

  const certificates = makeCertificates();
  for (const [what, text, code, lines] of [
    ['names a host', policyText('enforce', ['*.sts.example']), 0, ['mta-sts   enforce for 1d: *.sts.example']],
    ['names none', policyText('enforce', ['x.sts.example']), 1, ['NO WAY    4.7.5 the MTA-STS policy of sts.example names none of its MX hosts', 'mta-sts   enforce for 1d: x.sts.example']],
    ['is none', 'nothing', 0, ['mta-sts   none to be had: invalid']],
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
      assert.equal(hosts.at(-1), `host      1 b.other.example:25  127.0.0.1${what === 'is none' ? '' : '; not named by the policy of the domain'}`);
    });
  }

  test('says what reception would answer to who is not there, and what is no address', async (t) => {
    const unknown = await explain(t, 'nobody@ours.example');
    assert.deepEqual([unknown.code, unknown.errors.length], [1, 1]);
    assert.match(unknown.errors[0] ?? '', /^! (twinpost: )?mail to nobody@ours\.example would be refused: 550 5\.1\.1 /);
    const none = await explain(t, 'nobody');
    assert.deepEqual([none.code, none.errors], [2, ['! twinpost: \'nobody\' is no address: domain is missing']]);
  });
});
