/**
 * The configuration of a running gateway: read again whole, checked, and put in force in one step, or not at all.
 * Real processes; the file is the one they were started with, written anew.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as tlsConnect } from 'node:tls';

import { runSend } from '../../src/load/run.js';
import { selfSigned } from '../dialog/self-signed.js';
import { ScriptedServer } from '../unit/gateway/outbound/scripted-server.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';
import { freePorts } from './free-ports.js';
import { muteServer } from './mute-server.js';
import { edit, fileOf, follows, refuses, reload, write, type Part } from './reload-kit.js';
import { SmtpTalk } from './smtp-talk.js';
import { twinpost } from './twinpost.js';

const BOUND_MS = 20_000;
/** A port that another program listens at. */
async function portOfAnother(t: TestContext): Promise<number> {
  const server = createServer().listen(0, HOST);
  t.after(() => { server.close(); });
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

async function toRcpt(talk: SmtpTalk, to: string): Promise<string> {
  await talk.say('RSET');
  assert.match(await talk.say('MAIL FROM:<a@client.example>'), /^250 /);
  return talk.say(`RCPT TO:<${to}>`);
}

async function metricOf({ adminPort }: Cluster, name: string): Promise<number> {
  const text = await (await fetch(`http://${HOST}:${String(adminPort)}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

async function sendTo(cluster: Cluster, domain: string, count: number): Promise<void> {
  const sent = await runSend({ host: HOST, port: cluster.smtpPort, connections: 2, count, domains: [domain] });
  assert.equal(sent.accepted, count, JSON.stringify(sent.replies));
}

/** A next hop that puts all mail off; its port. */
async function deferringServer(t: { after(run: () => void): void }): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.write('220 later.example\r\n');
    socket.on('data', (bytes) => {
      for (const line of bytes.toString('latin1').split('\r\n').filter((each) => each !== '')) {
        socket.write(/^(EHLO|RSET|NOOP)/.test(line) ? '250 later.example\r\n' : '451 4.3.0 Later\r\n');
        if (line.startsWith('QUIT')) socket.destroy();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  t.after(() => { server.close(); });
  return (server.address() as AddressInfo).port;
}

/** The name in the certificate that STARTTLS shows. */
async function certificateOf(port: number): Promise<string> {
  const socket = connect({ host: HOST, port });
  const talk = await SmtpTalk.over(socket);
  assert.match(await talk.say('STARTTLS'), /^220 /);
  socket.removeAllListeners('data');
  const secure = tlsConnect({ socket, rejectUnauthorized: false });
  await once(secure, 'secureConnect');
  const { CN } = secure.getPeerCertificate().subject;
  secure.destroy();
  return String(CN);
}

function firstRoute(gateway: Part): Part {
  const [first] = gateway['routes'] as Part[];
  assert.ok(first !== undefined);
  return first;
}

function leaveOutFirst(gateway: Part): void {
  gateway['routes'] = (gateway['routes'] as Part[]).slice(1);
}

describe('a gateway that reads its configuration again', { timeout: 600_000 }, () => {
  test('judges new sessions by it, and those that are there as before', async (t) => {
    const cluster = await startCluster();
    t.after(() => cluster.stop());
    const kept = await SmtpTalk.start(cluster.smtpPort);
    assert.match(await toRcpt(kept, 'x@far.example'), /^250 /);
    const before = await cluster.status();
    const changed = await follows(cluster, (gateway) => {
      gateway['smtp'] = { ...gateway['smtp'] as Part, relay_networks: ['10.0.0.0/8'], relay_domains: ['near.example'], postmaster: 'pm@near.example' };
    });
    assert.deepEqual(changed.toSorted(), ['gateway.smtp.postmaster', 'gateway.smtp.relay_domains', 'gateway.smtp.relay_networks']);
    const fresh = await SmtpTalk.start(cluster.smtpPort);
    assert.match(await toRcpt(fresh, 'x@far.example'), /^55\d /);
    assert.match(await toRcpt(fresh, 'x@near.example'), /^250 /);
    assert.match(await toRcpt(kept, 'x@far.example'), /^250 /, 'as it began');
    const after = await cluster.status();
    assert.notEqual(after.configuration?.hash, before.configuration?.hash);
    assert.equal(after.configuration?.routes_hash, before.configuration?.routes_hash);
    assert.deepEqual([after.pid, after.connections_in], [before.pid, 2]);
    for (const talk of [kept, fresh]) talk.close();
  });

  test('asks another table of recipients for new sessions, the one before for those that are there, and closes what nobody asks', async (t) => {
    const cluster = await startCluster();
    t.after(() => cluster.stop());
    const build = async (name: string): Promise<string> => {
      const file = join(cluster.folder, `${name}.table`);
      writeFileSync(`${file}.txt`, `${name}@near.example\n`);
      assert.equal((await twinpost(['table', 'build', `${file}.txt`, file])).code, 0);
      return file;
    };
    const [anna, bob] = [await build('anna'), await build('bob')];
    const open = (): number => readdirSync(`/proc/${String(cluster.gateway.pid)}/fd`).filter((fd) => {
      try {
        return readlinkSync(`/proc/${String(cluster.gateway.pid)}/fd/${fd}`).endsWith('.table');
      } catch {
        return false;
      }
    }).length;
    const listed = (recipients: string) => (gateway: Part): void => {
      gateway['smtp'] = { ...gateway['smtp'] as Part, recipients, relay_domains: ['near.example'] };
    };
    await follows(cluster, listed(anna));
    const kept = await SmtpTalk.start(cluster.smtpPort);
    assert.match(await toRcpt(kept, 'bob@near.example'), /^550 5\.1\.1 /);
    await follows(cluster, listed(bob));
    const fresh = await SmtpTalk.start(cluster.smtpPort);
    assert.match(await toRcpt(fresh, 'bob@near.example'), /^250 /);
    assert.match(await toRcpt(fresh, 'anna@near.example'), /^550 5\.1\.1 /);
    assert.match(await toRcpt(kept, 'anna@near.example'), /^250 /);
    assert.equal(open(), 2);
    kept.close();
    await until('the first table is closed', () => open() === 1, BOUND_MS, cluster.gateway);
    await refuses(cluster, listed(join(cluster.folder, 'none.table')), /gateway\.yaml:\d+: gateway\.smtp\.recipients: expected a table of recipients.*none\.table.*ENOENT/);
    assert.match(await toRcpt(fresh, 'bob@near.example'), /^250 /);
    assert.equal(open(), 1);
    fresh.close();
  });

  test('counts by limits that are new, and goes on counting by those that stay', async (t) => {
    const cluster = await startCluster();
    t.after(() => cluster.stop());
    const limited = (messages: number, more: Part = {}) => (gateway: Part): void => {
      gateway['smtp'] = { ...gateway['smtp'] as Part, limits: { exempt: [], client: { messages } }, ...more };
    };
    const mails = async (talk: SmtpTalk, count: number): Promise<string> => {
      let last = '';
      for (let i = 0; i < count; i++) {
        await talk.say('RSET');
        last = await talk.say('MAIL FROM:<a@client.example>');
      }
      return last;
    };
    const kept = await SmtpTalk.start(cluster.smtpPort);
    await follows(cluster, limited(3));
    const first = await SmtpTalk.start(cluster.smtpPort);
    assert.match(await mails(first, 2), /^250 /);
    await follows(cluster, limited(3, { recipient_limit: 200 }));
    const second = await SmtpTalk.start(cluster.smtpPort);
    assert.match(await mails(second, 1), /^250 /);
    assert.match(await mails(second, 1), /^45\d /, 'the fourth of this minute');
    assert.match(await mails(kept, 10), /^250 /, 'it began without limits');
    await follows(cluster, limited(1000));
    const third = await SmtpTalk.start(cluster.smtpPort);
    assert.match(await mails(third, 10), /^250 /);
    for (const talk of [kept, first, second, third]) talk.close();
  });

  test('counts the connections of a client whichever configuration they began under', async (t) => {
    const cluster = await startCluster();
    t.after(() => cluster.stop());
    const kept = await Promise.all([1, 2, 3].map(() => SmtpTalk.start(cluster.smtpPort)));
    await follows(cluster, (gateway) => { gateway['smtp'] = { ...gateway['smtp'] as Part, connections_per_client: 4 }; });
    const fourth = await SmtpTalk.start(cluster.smtpPort);
    assert.match(await fourth.say('NOOP'), /^250 /);
    const fifth = await SmtpTalk.start(cluster.smtpPort).catch(() => undefined);
    assert.equal(fifth === undefined || fifth.isOver || await fifth.say('NOOP') === '', true, 'one too many');
    for (const talk of [...kept, fourth]) talk.close();
  });

  test('sends what was deferred, and what waits for a next hop, by a route that was changed', async (t) => {
    const [dead = 0] = await freePorts(1);
    const later = await deferringServer(t);
    const cluster = await startCluster({
      routes: [{ domain: 'a.example', via: `smtp://${HOST}:${String(later)}` }, { domain: 'b.example', via: `smtp://${HOST}:${String(dead)}` }],
      gateway: { delivery: { retry: { first: '1h', max: '1h' } } },
    });
    t.after(() => cluster.stop());
    const via = `smtp://${HOST}:${String(cluster.sinkPort)}`;
    await sendTo(cluster, 'a.example', 5);
    await sendTo(cluster, 'b.example', 7);
    await until('all of the first is deferred', async () => (await cluster.status()).deferred >= 5, BOUND_MS, cluster.gateway);
    const diff = (): ReturnType<typeof twinpost> => twinpost(['config', 'diff', '--from', `${HOST}:${String(cluster.adminPort)}`]);
    assert.deepEqual(await diff(), { code: 0, out: 'gateway-1: nothing in the file has changed\nstore-a: nothing in the file has changed\nstore-b: nothing in the file has changed\n', error: '' });
    edit(cluster, (gateway) => {
      const [a, b] = gateway['routes'] as Part[];
      assert.ok(a !== undefined && b !== undefined);
      a['via'] = via;
      b['via'] = via;
    });
    assert.deepEqual(await diff(), { code: 0, out: 'gateway-1: gateway.routes; 12 queued messages go another way\nstore-a: nothing in the file has changed\nstore-b: nothing in the file has changed\n', error: '' });
    assert.equal((await cluster.sinkCounts()).messages, 0, 'looking changes nothing');
    assert.deepEqual(await reload(cluster), { code: 200, error: '', changed: ['gateway.routes'] });
    // The second needs nobody: it was not tried yet.
    await cluster.sinkHas(7, BOUND_MS);
    assert.equal((await cluster.sinkCounts()).messages, 7);
    const flushed = await twinpost(['queue', 'flush', '--domain', 'a.example', '--reason', 'a test', '--from', `${HOST}:${String(cluster.adminPort)}`]);
    assert.equal(flushed.code, 0, flushed.error);
    await cluster.sinkHas(12, BOUND_MS);
    await cluster.drained(BOUND_MS);
  });

  test('obeys a suspension by site with the routes of now', async (t) => {
    const cluster = await startCluster();
    t.after(() => cluster.stop());
    const leadTo = (host: string): Promise<unknown> => follows(cluster, (gateway) => { firstRoute(gateway)['via'] = `smtp://${host}:${String(cluster.sinkPort)}`; });
    await sendTo(cluster, 'a.example', 2);
    await cluster.drained(BOUND_MS);
    const { code, error } = await twinpost(['queue', 'suspend', '--site', 'localhost', '--reason', 'a test', '--from', `${HOST}:${String(cluster.adminPort)}`]);
    assert.equal(code, 0, error);
    await leadTo('localhost');
    await sendTo(cluster, 'a.example', 3);
    await sleep(2000);
    assert.equal((await cluster.sinkCounts()).messages, 2, 'its queue leads there now, and is suspended');
    assert.equal((await cluster.status()).queued_messages, 3);
    await leadTo(HOST);
    await cluster.sinkHas(5, BOUND_MS);
  });

  test('refuses to lose the route of mail that waits, and says how much that is', async (t) => {
    const cluster = await startCluster({ routes: [{ domain: 'a.example', via: `smtp://${HOST}:${String(await muteServer(t))}` }] });
    t.after(() => cluster.stop());
    await sendTo(cluster, 'a.example', 3);
    await refuses(cluster, leaveOutFirst, /gateway\.yaml:\d+: gateway\.routes: mail waits in a\.example \(3 messages\), and no route of this file has that name/);
    await sendTo(cluster, 'b.example', 4);
    await cluster.sinkHas(4, BOUND_MS);
    await follows(cluster, (gateway) => { firstRoute(gateway)['via'] = `smtp://${HOST}:${String(cluster.sinkPort)}`; });
    await cluster.drained(BOUND_MS);
    await follows(cluster, leaveOutFirst);
    await sendTo(cluster, 'a.example', 2);
    await cluster.sinkHas(9, BOUND_MS);
  });

  test('takes a route that is new, and lets go one that is gone', async (t) => {
    const cluster = await startCluster({ domains: ['a.example'] });
    t.after(() => cluster.stop());
    const log = (): string => cluster.gateway.log();
    await sendTo(cluster, 'a.example', 2);
    await cluster.drained(BOUND_MS);
    assert.equal((await cluster.status()).routes, 2);
    await follows(cluster, (gateway) => {
      const [, rest] = gateway['routes'] as Part[];
      const via = `smtp://${HOST}:${String(cluster.sinkPort)}`;
      gateway['routes'] = [{ domain: 'c.example', via, name: 'third' }, { domain: 'd.example', via }, rest];
    });
    assert.equal((await cluster.status()).routes, 3);
    await sendTo(cluster, 'a.example', 3);
    await sendTo(cluster, 'c.example', 4);
    await cluster.sinkHas(9, BOUND_MS);
    const queuesOf = (domain: string): readonly string[] => log().split('\n').filter((line) => line.includes('"event":"received"') && line.includes(`@${domain}`)).map((line) => (JSON.parse(line) as { readonly queue: string }).queue);
    await until('all is logged', () => queuesOf('a.example').length === 5 && queuesOf('c.example').length === 4, BOUND_MS, cluster.gateway);
    assert.deepEqual([...new Set(queuesOf('a.example'))], ['a.example', 'default']);
    assert.deepEqual([...new Set(queuesOf('c.example'))], ['third']);
  });

  test('takes mail that had begun by a route that was gone and is back where it leads now', async (t) => {
    const old = new ScriptedServer();
    t.after(() => { old.close(); });
    const cluster = await startCluster({ routes: [{ name: 'r', domain: 'a.example', via: `smtp://${HOST}:${String(await old.listen())}` }] });
    t.after(() => cluster.stop());
    const talk = await SmtpTalk.start(cluster.smtpPort);
    assert.match(await toRcpt(talk, 'x@a.example'), /^250 /);
    const [route] = await follows(cluster, leaveOutFirst);
    assert.equal(route, 'gateway.routes');
    const back = (more: Part) => (gateway: Part): void => {
      gateway['routes'] = [{ name: 'r', domain: 'a.example', via: `smtp://${HOST}:${String(cluster.sinkPort)}`, ...more }, ...gateway['routes'] as Part[]];
    };
    await refuses(cluster, back({ order: 'strict' }), /gateway\.yaml:\d+: gateway\.routes: route r was in force since the start, with another order, .*: that needs a restart/);
    await follows(cluster, back({}));
    await talk.say('DATA');
    assert.match(await talk.say('Subject: x\r\n\r\nhello\r\n.'), /^250 /);
    await sendTo(cluster, 'a.example', 3);
    await cluster.sinkHas(4, BOUND_MS);
    assert.equal(old.connections, 0);
    talk.close();
  });

  test('lets no route go while mail may still come back by it', async (t) => {
    const cluster = await startCluster({ routes: [{ name: 'r', domain: 'a.example', via: `smtp://${HOST}:${String(await deferringServer(t))}` }] });
    t.after(() => cluster.stop());
    await sendTo(cluster, 'a.example', 3);
    await refuses(cluster, leaveOutFirst, /mail waits in r \(3 messages\)/);
    for (const store of cluster.stores) store.freeze();
    await cluster.gateway.kill();
    cluster.gateway.start();
    await until('it answers', async () => (await cluster.status()).gateway !== '', BOUND_MS, cluster.gateway);
    await refuses(cluster, leaveOutFirst, /gateway\.yaml:\d+: gateway\.routes: route r is gone from this file, and queues that are still coming back from the stores may have mail for it: ask again/);
    for (const store of cluster.stores) store.thaw();
    await until('all is back', async () => (await cluster.status()).queued_messages === 3, BOUND_MS, cluster.gateway);
    await refuses(cluster, leaveOutFirst, /mail waits in r \(3 messages\)/);
    await follows(cluster, (gateway) => { firstRoute(gateway)['via'] = `smtp://${HOST}:${String(cluster.sinkPort)}`; });
    await cluster.sinkHas(3, BOUND_MS);
  });

  test('refuses a bad file whole, with its line, and goes on', async (t) => {
    const cluster = await startCluster();
    t.after(() => cluster.stop());
    const good = readFileSync(fileOf(cluster), 'utf8');
    const { hash } = (await cluster.status()).configuration ?? {};
    assert.equal(await metricOf(cluster, 'twinpost_config_last_reload_successful'), 1);
    for (const [text, why] of [
      [good.replace('"connections_per_client": 1000', '"connections_per_client": 0'), /gateway\.yaml:\d+: gateway\.smtp\.connections_per_client: expected .* found 0/],
      [`${good}\n  :::`, /gateway\.yaml:\d+: file: expected YAML/],
      ['{"sink": {}}', /gateway\.yaml:1: gateway: expected this section, found nothing/],
      [good.replace('"smtp": {', '"smtp": {"tls": {"cert": "no-cert", "key": "no-key"},'), /gateway\.yaml:\d+: gateway\.smtp\.tls\.cert: expected a certificate .*ENOENT \(and 1 more: /],
    ] as const) {
      write(fileOf(cluster), text);
      const { code, error } = await reload(cluster);
      assert.equal(code, 409, error);
      assert.match(error, why);
    }
    const { configuration } = await cluster.status();
    assert.equal(configuration?.hash, hash);
    assert.match(configuration?.refused ?? '', /tls\.cert/);
    assert.match(cluster.gateway.log(), /"level":"error".*"event":"reload".*"why":".*gateway\.yaml:\d+: .*"reason":"a test","who":"a tester"/);
    // A scrape within 50 ms of another one sees the same.
    await until('the metric says so', async () => await metricOf(cluster, 'twinpost_config_last_reload_successful') === 0);
    assert.match((await twinpost(['status', '--from', `${HOST}:${String(cluster.adminPort)}`])).out, /RELOAD {6}ERROR: refused .* ago: .*tls\.cert/);
    await sendTo(cluster, 'x.example', 5);
    await cluster.sinkHas(5, BOUND_MS);
    write(fileOf(cluster), good);
    assert.deepEqual(await reload(cluster), { code: 200, error: '', changed: [] });
    await until('the metric says so', async () => await metricOf(cluster, 'twinpost_config_last_reload_successful') === 1);
    assert.ok(Date.now() / 1000 - await metricOf(cluster, 'twinpost_config_last_reload_success_timestamp_seconds') < 60);
  });

  test('names the keys that need a restart, and follows none of the others then', async (t) => {
    const cluster = await startCluster();
    t.after(() => cluster.stop());
    await refuses(cluster, (gateway) => {
      gateway['memory'] = { limit: '600MiB' };
      gateway['host'] = 'another';
      gateway['smtp'] = { ...gateway['smtp'] as Part, relay_networks: ['10.0.0.0/8'] };
    }, /gateway\.yaml:\d+: .*gateway\.memory\.limit.*: expected what this process began with, found a change: that needs a restart/);
    edit(cluster, (gateway) => { gateway['rescue'] = 'off'; });
    const diff = await twinpost(['config', 'diff', '--from', `${HOST}:${String(cluster.adminPort)}`]);
    assert.equal(diff.code, 1);
    assert.match(diff.out, /^gateway-1: would be refused: \S+gateway\.yaml:\d+: gateway\.rescue: expected .* needs a restart\nstore-a: /);
    edit(cluster, (gateway) => { delete gateway['rescue']; });
    await refuses(cluster, (gateway) => { firstRoute(gateway)['order'] = 'strict'; }, /gateway\.routes\[0\]\.order: .*needs a restart/);
    await sendTo(cluster, 'x.example', 3);
    await cluster.sinkHas(3, BOUND_MS);
  });

  test('refuses all of it when a new port is taken, and keeps one open that is in both', async (t) => {
    const cluster = await startCluster();
    t.after(() => cluster.stop());
    const [free = 0] = await freePorts(1);
    const other = await portOfAnother(t);
    const listen = (...ports: readonly number[]) => (gateway: Part): void => {
      gateway['smtp'] = { ...gateway['smtp'] as Part, listen: ports.map((port) => `${HOST}:${String(port)}`) };
    };
    const taken = (gateway: Part): void => {
      listen(cluster.smtpPort, free, other)(gateway);
      (gateway['smtp'] as Part)['relay_networks'] = ['10.0.0.0/8'];
    };
    await refuses(cluster, taken, new RegExp(`port ${HOST}:${String(other)}: another program has it`));
    await assert.rejects(SmtpTalk.start(free), /ECONNREFUSED/, 'what was opened is closed again');
    const old = await SmtpTalk.start(cluster.smtpPort);
    assert.match(await toRcpt(old, 'x@far.example'), /^250 /);
    await follows(cluster, listen(cluster.smtpPort, free));
    const fresh = await SmtpTalk.start(free);
    assert.match(await toRcpt(fresh, 'x@far.example'), /^250 /);
    assert.match(await toRcpt(old, 'x@far.example'), /^250 /);
    await follows(cluster, listen(free));
    await assert.rejects(SmtpTalk.start(cluster.smtpPort), /ECONNREFUSED/, 'it is gone');
    assert.match(await toRcpt(old, 'x@far.example'), /^250 /, 'its sessions are not');
    await follows(cluster, listen(cluster.smtpPort));
    const again = await SmtpTalk.start(cluster.smtpPort);
    assert.match(await again.say('NOOP'), /^250 /);
    for (const talk of [old, fresh, again]) talk.close();
  });

  test('shows another certificate to the next STARTTLS, and offers it where there was none', async (t) => {
    const [own, other] = [selfSigned('mx.test'), selfSigned('other.test')];
    assert.ok(own !== undefined && other !== undefined, 'openssl makes them');
    const cluster = await startCluster();
    t.after(() => cluster.stop());
    const offers = async (): Promise<boolean> => {
      const talk = await SmtpTalk.start(cluster.smtpPort);
      const said = await talk.say('EHLO again.example');
      talk.close();
      return said.includes('STARTTLS');
    };
    const shown = (): Promise<string> => certificateOf(cluster.smtpPort);
    const certified = ({ certFile: cert, keyFile: key }: typeof own) => (gateway: Part): void => {
      gateway['smtp'] = { ...gateway['smtp'] as Part, tls: { cert, key } };
    };
    assert.equal(await offers(), false);
    await follows(cluster, certified(own));
    assert.equal(await offers(), true);
    assert.equal(await shown(), 'mx.test');
    await follows(cluster, certified(other));
    assert.equal(await shown(), 'other.test');
    // The files of the same name hold others: a reload does not wait until somebody looks.
    for (const [from, to] of [[own.certFile, other.certFile], [own.keyFile, other.keyFile]] as const) writeFileSync(to, readFileSync(from));
    await follows(cluster, () => undefined);
    assert.equal(await shown(), 'mx.test');
    assert.match(await (await fetch(`http://${HOST}:${String(cluster.adminPort)}/metrics`)).text(), /twinpost_certificate_\w*\{use="smtp"\}/);
    await follows(cluster, (gateway) => { delete (gateway['smtp'] as Part)['tls']; });
    assert.equal(await offers(), false);
  });

  test('says of a certificate for another name what config check says: by diff, by reload and in the log', async (t) => {
    const [own, other] = [selfSigned('mx.test'), selfSigned('other.test')];
    assert.ok(own !== undefined && other !== undefined, 'openssl makes them');
    // Strangers reach it, behind a balancer.
    const cluster = await startCluster();
    t.after(() => cluster.stop());
    const at = ['--from', `${HOST}:${String(cluster.adminPort)}`];
    const warning = (line: string): RegExp => new RegExp(`^${line}\\n {2}\\S+gateway\\.yaml:\\d+: gateway\\.smtp\\.tls\\.cert: warning: '\\S+' is not for 'mx\\.test' \\(hostname\\): .*; it is for DNS:other\\.test, [^\\n]*\\nstore-a: [^\\n]*\\nstore-b: [^\\n]*\\n$`);
    edit(cluster, (gateway) => {
      const { listen, ...smtp } = gateway['smtp'] as { readonly listen: readonly string[] };
      gateway['hostname'] = 'mx.test';
      gateway['smtp'] = { ...smtp, postmaster: 'ops@x.example', tls: { cert: own.certFile, key: own.keyFile }, listen: listen.map((address) => ({ address, proxy: ['10.9.0.0/16'] })) };
    });
    const right = await twinpost(['config', 'reload', ...at]);
    assert.equal(right.code, 0, right.out + right.error);
    assert.doesNotMatch(right.out, /warning/);
    for (const [from, to] of [[other.certFile, own.certFile], [other.keyFile, own.keyFile]] as const) writeFileSync(to, readFileSync(from));
    const diff = await twinpost(['config', 'diff', ...at]);
    assert.deepEqual([diff.code, diff.error], [0, '']);
    assert.match(diff.out, warning('gateway-1: nothing in the file has changed'));
    const wrong = await twinpost(['config', 'reload', ...at]);
    assert.deepEqual([wrong.code, wrong.error], [0, '']);
    assert.match(wrong.out, warning('gateway-1: configuration [0-9a-f]{12}, nothing in the file has changed, its certificates are read anew'));
    assert.match((await twinpost(['config', 'diff', '--json', ...at])).out, /"warnings":\["\S+gateway\.yaml:\d+: gateway\.smtp\.tls\.cert: warning: /);
    assert.doesNotMatch((await twinpost(['status', ...at])).out, /CERTIFICATE|certificate/, 'clients may know the service by another name');
    assert.match(cluster.gateway.log(), /"level":"warn",.*"event":"tls","use":"smtp",.*"why":"it is not for 'mx\.test' .*"msg":"a certificate is for another name"/);
  });

  test('ends what nobody goes by any more, and keeps it for a session that does', async (t) => {
    const cluster = await startCluster();
    t.after(() => cluster.stop());
    const module = join(cluster.folder, 'hook.mjs');
    writeFileSync(module, 'export function onMessage() { return { action: "accept", fields: [{ name: "X-Seen", value: "yes" }] }; }\n');
    const threads = (): number => Number(/^Threads:\s+(\d+)$/m.exec(readFileSync(`/proc/${String(cluster.gateway.pid)}/status`, 'utf8'))?.[1]);
    const judge = async (talk: SmtpTalk): Promise<string> => {
      assert.match(await toRcpt(talk, 'x@far.example'), /^250 /);
      await talk.say('DATA');
      return talk.say('Subject: x\r\n\r\nhello\r\n.');
    };
    const hooked = (timeout: string) => (gateway: Part): void => {
      gateway['smtp'] = { ...gateway['smtp'] as Part, hooks: [{ module, timeout, threads: 1 }] };
    };
    await follows(cluster, hooked('9s'));
    const kept = await SmtpTalk.start(cluster.smtpPort);
    assert.match(await judge(kept), /^250 /);
    const one = threads();
    for (const timeout of ['8s', '7s', '6s', '5s']) await follows(cluster, hooked(timeout));
    await until('those between have ended', () => threads() === one + 1, BOUND_MS, cluster.gateway);
    assert.match(await judge(kept), /^250 /);
    kept.close();
    await until('the first one has', () => threads() === one, BOUND_MS, cluster.gateway);
    await follows(cluster, (gateway) => { delete (gateway['smtp'] as Part)['hooks']; });
    await until('the last one has', () => threads() === one - 1, BOUND_MS, cluster.gateway);
  });

  test('logs at another level, and without the mail log', async (t) => {
    const cluster = await startCluster();
    t.after(() => cluster.stop());
    await follows(cluster, (gateway) => { gateway['log'] = { level: 'debug', mail: false }; });
    const from = cluster.gateway.logBytes;
    await sendTo(cluster, 'x.example', 3);
    await cluster.sinkHas(3, BOUND_MS);
    await until('a session has ended', () => cluster.gateway.logSince(from).includes('an SMTP connection has ended'), BOUND_MS, cluster.gateway);
    assert.doesNotMatch(cluster.gateway.logSince(from), /"event":"(received|delivered)"/);
    await follows(cluster, (gateway) => { gateway['log'] = { level: 'info', mail: true }; });
    await sendTo(cluster, 'x.example', 1);
    await until('mail is logged again', () => /"event":"delivered"/.test(cluster.gateway.logSince(from)), BOUND_MS, cluster.gateway);
  });

  test('loses no session and no mail in 100 reloads under load', async (t) => {
    const cluster = await startCluster({ gateway: { delivery: { concurrency: 10 } } });
    t.after(() => cluster.stop());
    const log = join(cluster.folder, 'send.log');
    const run = { isOver: false };
    const sending = runSend({ host: HOST, port: cluster.smtpPort, connections: 20, count: 20_000, domains: ['x.example'], log }).finally(() => { run.isOver = true; });
    // Beside those that stay, some that come all the time: the port is never closed.
    const coming = runSend({ host: HOST, port: cluster.smtpPort, connections: 4, count: 2_000, messagesPerConnection: 2, domains: ['y.example'] });
    let reloads = 0;
    while (!run.isOver || reloads < 100) {
      await follows(cluster, (gateway) => {
        gateway['smtp'] = { ...gateway['smtp'] as Part, recipient_limit: 500 + reloads, limits: { client: { recipients: 1_000_000 + reloads } } };
        gateway['delivery'] = { ...gateway['delivery'] as Part, concurrency: 5 + (reloads % 10), timeouts: { connect: `${String(5 + (reloads % 3))}s` } };
      });
      reloads += 1;
    }
    const sent = await sending;
    assert.deepEqual([sent.accepted, sent.resent, sent.connectionsOpened, sent.replies], [20_000, 0, 20, { 250: 20_000 }], JSON.stringify(sent));
    const came = await coming;
    assert.deepEqual([came.accepted, came.resent, came.connectionErrors, came.replies], [2_000, 0, {}, { 250: 2_000 }], JSON.stringify(came));
    t.diagnostic(`${String(reloads)} reloads, ${sent.acceptedPerSecond.toFixed(0)} messages a second`);
    await cluster.drained(60_000);
    const report = await cluster.verify(log, 22_000);
    for (const fault of ['lost', 'altered', 'unknown'] as const) assert.equal(report[fault].count, 0, `${fault}: ${JSON.stringify(report)}`);
  });
});

async function statusOf(cluster: Cluster, index: number): ReturnType<Cluster['status']> {
  const answer = await fetch(`http://${HOST}:${String(cluster.adminPort + index)}/api/v1/status`);
  return (await answer.json()) as Awaited<ReturnType<Cluster['status']>>;
}

describe('several processes', { timeout: 480_000 }, () => {
  test('all workers go by another configuration, by SIGHUP and when one is asked; or none does', async (t) => {
    const cluster = await startCluster({ workers: 2, gateway: { memory: { limit: '1GiB' } } });
    t.after(() => cluster.stop());
    const hashes = async (): Promise<readonly (string | undefined)[]> =>
      Promise.all([0, 1].map(async (index) => (await statusOf(cluster, index)).configuration?.hash));
    await until('both are there', async () => (await hashes()).length === 2, BOUND_MS, cluster.gateway);
    const [first] = await hashes();
    edit(cluster, (gateway) => { gateway['smtp'] = { ...gateway['smtp'] as Part, relay_networks: ['10.0.0.0/8'], relay_domains: ['near.example'] }; });
    cluster.gateway.signal('SIGHUP');
    await until('both have it', async () => (await hashes()).every((hash) => hash !== first), BOUND_MS, cluster.gateway);
    const [second, other] = await hashes();
    assert.equal(second, other);
    for (let i = 0; i < 6; i++) {
      const talk = await SmtpTalk.start(cluster.smtpPort);
      assert.match(await toRcpt(talk, 'x@far.example'), /^55\d /);
      talk.close();
    }
    const free = (await freePorts(1))[0] ?? 0;
    const taken = await portOfAnother(t);
    await refuses(cluster, (gateway) => {
      gateway['smtp'] = { ...gateway['smtp'] as Part, listen: [cluster.smtpPort, free, taken].map((port) => `${HOST}:${String(port)}`) };
    }, /another program has it/);
    assert.deepEqual(await hashes(), [second, second]);
    await assert.rejects(SmtpTalk.start(free), /ECONNREFUSED/);
    edit(cluster, (gateway) => { gateway['smtp'] = { ...gateway['smtp'] as Part, relay_networks: ['127.0.0.0/8'] }; });
    const asked = await twinpost(['config', 'reload', '--from', `${HOST}:${String(cluster.adminPort + 1)}`]);
    assert.equal(asked.code, 0, asked.error + asked.out);
    assert.match(asked.out, /gateway-1-[12]: configuration [0-9a-f]{12}, in force: gateway\.smtp\.relay_networks\n/);
    const [third] = await hashes();
    assert.notEqual(third, second);
    assert.deepEqual(await hashes(), [third, third]);
    await sendTo(cluster, 'far.example', 50);
    await cluster.sinkHas(50, BOUND_MS);
  });

  test('serve nobody at a new port before all of them go by it', async (t) => {
    const cluster = await startCluster({ workers: 2, gateway: { memory: { limit: '1GiB' } } });
    let stopped = 0;
    t.after(() => {
      if (stopped > 0) process.kill(stopped, 'SIGCONT');
      return cluster.stop();
    });
    await until('both take mail', async () => (await statusOf(cluster, 0)).ready && (await statusOf(cluster, 1)).ready, BOUND_MS, cluster.gateway);
    await sendTo(cluster, 'x.example', 10);
    const [free = 0] = await freePorts(1);
    edit(cluster, (gateway) => {
      gateway['smtp'] = { ...gateway['smtp'] as Part, listen: [`${HOST}:${String(cluster.smtpPort)}`, `${HOST}:${String(free)}`] };
    });
    stopped = (await statusOf(cluster, 1)).pid;
    process.kill(stopped, 'SIGSTOP');
    cluster.gateway.signal('SIGHUP');
    const greeting = (): Promise<string> => new Promise((resolve) => {
      const socket = connect(free, HOST);
      socket.once('data', (bytes) => { resolve(String(bytes)); socket.destroy(); });
      socket.once('error', ({ message }) => { resolve(message); });
    });
    await until('it is open', async () => !(await greeting()).includes('ECONNREFUSED'), BOUND_MS, cluster.gateway);
    assert.match(await greeting(), /^421 4\.3\.2 Not accepting mail now/);
    process.kill(stopped, 'SIGCONT');
    stopped = 0;
    await until('it is in force', async () => (await greeting()).startsWith('220 '), BOUND_MS, cluster.gateway);
  });

  test('name a worker that was started by a file that was refused, until it is started anew', async (t) => {
    const cluster = await startCluster({ workers: 2, gateway: { memory: { limit: '1GiB' } } });
    t.after(() => cluster.stop());
    const pidOf = async (): Promise<number> => (await statusOf(cluster, 1)).pid;
    const endsAndRuns = async (): Promise<void> => {
      await until('it answers', async () => await pidOf() > 0, BOUND_MS, cluster.gateway);
      const pid = await pidOf();
      const from = cluster.gateway.logBytes;
      process.kill(pid, 'SIGKILL');
      await until('it runs again', () => cluster.gateway.logSince(from).includes('the worker runs again'), BOUND_MS, cluster.gateway);
    };
    const good = readFileSync(fileOf(cluster), 'utf8');
    edit(cluster, (gateway) => { gateway['memory'] = { ...gateway['memory'] as Part, next_hop: 0.1 }; });
    await endsAndRuns();
    assert.match(cluster.gateway.log(), /"level":"error".*"event":"reload","worker":"gateway-1-2".*started by a file that is not in force/);
    write(fileOf(cluster), good);
    const refused = await reload(cluster);
    assert.deepEqual([refused.code, /worker gateway-1-2: .*gateway\.memory\.next_hop.* It runs another configuration than its fellows: end it, /.test(refused.error)], [409, true], refused.error);
    await endsAndRuns();
    assert.deepEqual(await reload(cluster), { code: 200, error: '', changed: [] });
  });

  test('config reload asks all gateways, names one that refuses, and status says whose routes differ', async (t) => {
    const cluster = await startCluster({ gateways: 2, group: true });
    t.after(() => cluster.stop());
    const order = (...args: readonly string[]): ReturnType<typeof twinpost> => twinpost([...args, '--from', `${HOST}:${String(cluster.adminPort)}`]);
    assert.doesNotMatch((await order('status')).out, /ROUTES DIFFER/);
    const slower = (gateway: Part): void => { firstRoute(gateway)['concurrency'] = 3; };
    edit(cluster, slower);
    const good = readFileSync(fileOf(cluster, 'gateway-2'), 'utf8');
    write(fileOf(cluster, 'gateway-2'), 'gateway: nothing');
    const half = await order('config', 'reload', '--reason', 'fewer at once');
    assert.equal(half.code, 1, half.error);
    assert.match(half.out, /^gateway-1: configuration [0-9a-f]{12}, in force: gateway\.routes\nstore-a: configuration [0-9a-f]{12}, nothing in the file has changed, its certificates are read anew\nstore-b: .*\nREFUSED: gateway-2 at \S+: it refused: \S+gateway-2\.yaml:1: gateway: expected .*; nothing was changed\n$/);
    assert.match((await order('status')).out, /ROUTES DIFFER: [0-9a-f]{12}: gateway-1; [0-9a-f]{12}: gateway-2; /);
    write(fileOf(cluster, 'gateway-2'), good);
    edit(cluster, slower, 'gateway-2');
    const whole = await order('config', 'reload', '--json');
    assert.equal(whole.code, 0, whole.error);
    assert.deepEqual(whole.out.trim().split('\n').map((line) => (JSON.parse(line) as { readonly changed: unknown }).changed), [[], ['gateway.routes'], [], []]);
    assert.doesNotMatch((await order('status')).out, /ROUTES DIFFER/);
    await cluster.gateways[1]?.gateway.kill();
    assert.equal((await order('config', 'reload')).code, 3, 'one has not heard');
  });
});
