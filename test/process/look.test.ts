/**
 * What an operator sees of single messages, at two gateways and real next hops: where one is and why, before and after
 * the gateway that had it was killed; its content; ages that add up to the summary; and its life in two mail logs.
 */
import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { SMTPServer } from 'smtp-server';
import type { ShownEntry } from '../../src/admin-api/look.js';
import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until, type Cluster, type GatewayHandle } from './cluster.js';
import { SmtpTalk } from './smtp-talk.js';
import { twinpost } from './twinpost.js';

const REASON = ['--reason', 'a test'];
const LEASE_MS = 4_000;
const MIRROR = { lease: `${String(LEASE_MS)}ms`, failover_timeout: '200ms', heartbeat: '50ms' };
const TEXT = 'Subject: a test\r\nMessage-ID: <look@talk.example>\r\n\r\nfirst line\r\n..a dot\r\n\ttab\r\n';
/** As it is without dot-stuffing. */
const PLAIN = TEXT.replace('\r\n..', '\r\n.');

type Shown = ShownEntry & { readonly gateway: string };
type Answer = Awaited<ReturnType<typeof twinpost>>;

function ask({ adminPort }: GatewayHandle, ...args: readonly string[]): Promise<Answer> {
  return twinpost([...args, '--from', `${HOST}:${String(adminPort)}`]);
}

function jsonLines<T>({ out }: Answer): T[] {
  return out.split('\n').filter((one) => one.startsWith('{')).map((one) => JSON.parse(one) as T);
}

async function show(gateway: GatewayHandle, id: string): Promise<Shown | undefined> {
  return jsonLines<Shown>(await ask(gateway, 'queue', 'show', id, '--json'))[0];
}

/** The queue id in the reply. */
async function submit({ smtpPort }: GatewayHandle, ...recipients: readonly string[]): Promise<string> {
  const talk = await SmtpTalk.start(smtpPort);
  await talk.say('MAIL FROM:<alice@senders.example>');
  for (const to of recipients) await talk.say(`RCPT TO:<${to}>`);
  await talk.say('DATA');
  const reply = await talk.say(`${TEXT}.`);
  talk.close();
  assert.match(reply, /^250 /);
  return /\b[0-9A-HJKMNP-TV-Z]{11}\b/.exec(reply)?.[0] ?? '';
}

/** Takes mail, and answers the final dot when it is let. */
async function slowServer(t: { after(run: () => void): void }): Promise<{ readonly port: number; readonly taken: () => string; answer(): void }> {
  let content = '';
  let done: (() => void) | undefined;
  const server = new SMTPServer({
    authOptional: true, disabledCommands: ['STARTTLS', 'AUTH'],
    onData: (stream, _session, callback) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => { chunks.push(chunk); });
      stream.on('end', () => {
        content = Buffer.concat(chunks).toString('latin1');
        done = callback;
      });
    },
  });
  await new Promise<void>((resolve) => { server.listen(0, HOST, resolve); });
  t.after(() => { server.close(); });
  return { port: (server.server.address() as AddressInfo).port, taken: () => content, answer: () => { done?.(); } };
}

async function gatewaysOf(cluster: Cluster): Promise<readonly [GatewayHandle, GatewayHandle]> {
  const [first, second] = cluster.gateways;
  assert.ok(first !== undefined && second !== undefined);
  await Promise.all([first.inSync(1), second.inSync(1)]);
  return [first, second];
}

describe('one message', { timeout: 360_000 }, () => {
  test('that waits for a next hop that is down says why in the list, in the log once, and at its end, where its sender is told', async (t) => {
    const reports: string[] = [];
    const senders = new SMTPServer({
      authOptional: true, disabledCommands: ['STARTTLS', 'AUTH'],
      onData: (stream, _session, callback) => {
        const chunks: Buffer[] = [];
        stream.on('data', (chunk: Buffer) => { chunks.push(chunk); });
        stream.on('end', () => {
          reports.push(Buffer.concat(chunks).toString('latin1'));
          callback();
        });
      },
    });
    await new Promise<void>((resolve) => { senders.listen(0, HOST, resolve); });
    t.after(() => { senders.close(); });
    const { port } = senders.server.address() as AddressInfo;
    const down = `${HOST}[${HOST}]:1`;
    const cluster = await startCluster({
      sink: false,
      routes: [{ domain: 'senders.example', via: `smtp://${HOST}:${String(port)}` }, { domain: '*', via: `smtp://${HOST}:1`, tls: 'none' }],
      gateway: { delivery: { lifetime: '40s', retry: { first: '500ms', max: '1s' } } },
    });
    t.after(() => cluster.stop());
    const [gateway] = cluster.gateways;
    assert.ok(gateway !== undefined);
    const id = await submit(gateway, 'p@down.example', 'q@down.example');
    interface Row { readonly recipients: readonly { readonly address: string; readonly delay_reason?: string }[] }
    const listed = async (): Promise<readonly string[]> =>
      jsonLines<Row>(await ask(gateway, 'queue', 'list', '--json')).flatMap(({ recipients }) => recipients.map((one) => `${one.address} ${one.delay_reason ?? ''}`));
    await until('the list says why', async () => (await listed()).filter((line) => line.includes('ECONNREFUSED')).length === 2, 20_000);
    const rows = await listed();
    const why = rows[0]?.replace('p@down.example ', '') ?? '';
    assert.deepEqual(rows, [`p@down.example ${why}`, `q@down.example ${why}`]);
    interface Line { readonly event: string; readonly attempt: number; readonly relay?: string; readonly dsn: string; readonly reply: string; readonly last?: string; readonly tls?: string }
    const log = join(cluster.folder, 'gateway.log');
    const life = async (): Promise<readonly Line[]> =>
      jsonLines<Line>(await twinpost(['logs', '--json', '--id', id, '--to', 'q@down.example', log])).filter(({ event }) => event !== 'read');
    await until('its end is told', () => reports.length === 1, 60_000);
    await until('and logged', async () => (await life()).length >= 2);
    const [waits, expired, ...more] = await life();
    assert.deepEqual([waits?.event, waits?.attempt, waits?.relay, waits?.dsn, waits?.reply, waits?.tls], ['deferred', 0, down, '4.4.1', why, undefined]);
    assert.deepEqual([expired?.event, expired?.reply, expired?.last, more], ['expired', 'delivery time expired', why, []]);
    assert.match(reports[0] ?? '', /<q@down\.example>: it could not be delivered in time; at last: the next mail\s+server could not be reached/);
    assert.match(reports[0] ?? '', /^Status: 4\.4\.1/m);
  });

  test('is shown with the one thing that keeps it, counted once in all ages, and its content is that which the next hop gets', async (t) => {
    const slow = await slowServer(t);
    const cluster = await startCluster({
      gateways: 2, group: true,
      routes: [{ domain: 'down.example', via: `smtp://${HOST}:1` }, { domain: '*.down.example', via: `smtp://${HOST}:1`, name: 'below' }, { domain: 'slow.example', via: `smtp://${HOST}:${String(slow.port)}` }],
    });
    t.after(() => cluster.stop());
    const [first, second] = await gatewaysOf(cluster);

    const waiting = await submit(second, 'bob@down.example');
    await until('its next hop is found down', async () => /^the next hop \S+:1 is down for /.test((await show(first, waiting))?.why ?? ''));
    const queued = await show(first, waiting);
    assert.deepEqual([queued?.gateway, queued?.owner, queued?.sender, queued?.state], ['gateway-2', 'gateway-2', 'alice@senders.example', 'queued']);
    assert.deepEqual(queued?.recipients.map(({ address, state }) => [address, state]), [['bob@down.example', 'waiting']]);
    assert.deepEqual(queued.copies.map(({ store, has }) => [store, has]).sort(), [['store-a', true], ['store-b', true]]);
    assert.equal((await ask(first, 'queue', 'hold', '--id', waiting, ...REASON)).code, 0);
    const held = await ask(first, 'queue', 'show', waiting);
    assert.equal(held.code, 0);
    assert.match(held.out, /^ {2}state +held: it is held: \S+: a test$/m);
    assert.match(held.out, /^ {2}gateway +gateway-2$/m);
    assert.match(held.out, /^ {2}bob@down\.example +held/m);

    await submit(second, 'x@a.down.example', 'y@B.down.example', 'z@a.down.example');
    const ages = await ask(first, 'queue', 'ages', '--queue', 'below');
    assert.match(ages.out, /^TOTAL +1 +1( +0){9}\na\.down\.example +1 +1( +0){9}\nb\.down\.example +1 +1( +0){9}$/m, 'once in all');

    const sending = await submit(first, 'eve@slow.example');
    await until('it has the content', () => slow.taken() !== '');
    const active = await show(second, sending);
    assert.deepEqual([active?.state, active?.why, active?.recipients[0]?.state], ['active', 'it is being delivered', 'in delivery']);
    const content = await ask(second, 'queue', 'cat', sending);
    assert.deepEqual([content.code, content.error, content.out], [0, '', slow.taken()]);
    assert.ok(content.out.startsWith('Received: ') && content.out.endsWith(PLAIN), content.out);
    await until('who has read it is in the log', () => first.gateway.log().includes(`"event":"read","queue_id":"${sending}","messages":1,"client":"${HOST}"`));
    const header = await ask(second, 'queue', 'cat', sending, '--headers');
    assert.deepEqual([header.code, header.error, header.out], [0, '', slow.taken().slice(0, slow.taken().indexOf('\r\n\r\n') + 2)]);
    await until('who has read that alone is in the log', () => first.gateway.log().includes(`"event":"read","queue_id":"${sending}","part":"header","messages":1`));
    assert.match((await ask(first, 'queue', 'show', sending)).out, /^ {2}message-id +<look@talk\.example>$/m);
    slow.answer();
    await until('it was delivered', async () => (await show(first, sending)) === undefined);
    const gone = await ask(first, 'queue', 'show', sending, waiting);
    assert.deepEqual([gone.code, gone.error], [1, `twinpost: no gateway that answers has message ${sending} in a queue: twinpost find --id ${sending} asks their logs\n`]);
    assert.match(gone.out, new RegExp(waiting));
    assert.equal((await ask(first, 'queue', 'cat', sending)).code, 1);

    assert.equal((await ask(second, 'queue', 'export', '--everything', join(cluster.folder, 'exported'))).code, 0);
    await until('an export is in the log', () => second.gateway.log().includes('"event":"read","queue":"down.example","class":"mail","messages":1'));
    for (const verb of ['show', 'cat']) {
      const odd = await ask(first, 'queue', verb, '../x');
      assert.deepEqual([odd.code, odd.error], [2, `twinpost: queue ${verb}: '../x' is no queue id; twinpost queue list shows them\n`]);
    }
  });

  test('is found where it is after a takeover, counted in the ages, and followed to its end through both logs', async (t) => {
    const cluster = await startCluster({
      // Longer than a command takes on a busy machine: it is asked before the takeover.
      gateways: 2, group: true, domains: ['a.example', 'b.example'], store: { lease: '12s' }, gateway: { mirror: { ...MIRROR, lease: '12s' } },
    });
    t.after(() => cluster.stop());
    const [first, second] = await gatewaysOf(cluster);
    assert.equal((await ask(first, 'queue', 'suspend', '*.example', ...REASON)).code, 0);
    const id = await submit(first, 'bob@a.example');
    for (const { smtpPort } of [first, second]) await runSend({ host: HOST, port: smtpPort, count: 60, connections: 5, domains: ['a.example', 'b.example'] });

    const summed = jsonLines<{ readonly messages: number }>(await ask(first, 'queue', 'summary', '--json')).reduce((sum, { messages }) => sum + messages, 0);
    assert.equal(summed, 121);
    for (const by of ['domain', 'queue', 'sender-domain']) {
      const ages = await ask(second, 'queue', 'ages', '--json', '--by', by);
      assert.equal(ages.code, 0, ages.error);
      const [total, ...rows] = jsonLines<{ readonly kind: string; readonly messages: number; readonly counts: readonly number[] }>(ages);
      assert.deepEqual([total?.kind, total?.messages, total?.counts[0]], ['total', summed, summed], by);
      assert.equal(rows.reduce((sum, { messages }) => sum + messages, 0), summed, by);
    }
    const found = await ask(second, 'queue', 'find', '--sender', 'alice@*', '--json');
    assert.deepEqual([found.code, jsonLines<Shown>(found).map(({ queue_id: queueId, gateway }) => [queueId, gateway])], [0, [[id, 'gateway-1']]], found.error);
    assert.equal((await ask(second, 'queue', 'find', '--sender', 'nobody@*')).code, 1);
    const chosen = await ask(second, 'queue', 'ages', '--domain', 'a.*', '--sender', 'alice@*');
    assert.match(chosen.out, /^TOTAL +1 +1( +0){9}\na\.example +1 +1( +0){9}$/m);

    await first.gateway.kill();
    const silent = await ask(second, 'queue', 'show', id, '--json');
    assert.equal(silent.code, 3, 'nobody who answers has it yet');
    await until('its partition is taken over', async () => (await show(second, id))?.gateway === 'gateway-2', 30_000, second.gateway);
    const rescued = await show(second, id);
    assert.deepEqual([rescued?.owner, rescued?.state], ['gateway-1', 'queued']);
    assert.match(rescued?.why ?? '', /^its queue is suspended by \S+: a test$/);
    const content = await ask(second, 'queue', 'cat', id);
    assert.ok(content.out.endsWith(PLAIN), content.out);
    assert.equal((await ask(second, 'queue', 'resume', '*.example', ...REASON, '--only')).code, 0);
    await cluster.sinkHas(121);
    assert.equal((await ask(second, 'queue', 'show', id)).code, 3, 'it is gone, or the dead one has it');

    const files = [join(cluster.folder, 'gateway-2.log'), join(cluster.folder, 'gateway.log')];
    interface Line { readonly event: string; readonly gateway?: string; readonly queue_id: string }
    for (const choice of [['--id', id], ['--message-id', '<look@talk.example>']]) {
      await until('it was logged', async () => (await twinpost(['logs', ...choice, ...files])).out.includes('delivered'));
      const life = jsonLines<Line>(await twinpost(['logs', '--json', ...choice, ...files])).filter(({ event }) => event !== 'read');
      assert.deepEqual(life.map(({ event, gateway }) => [event, gateway]), [['received', 'gateway-1'], ['delivered', 'gateway-2']], choice.join(' '));
      assert.ok(life.every((line) => line.queue_id === id));
    }
    const words = await twinpost(['logs', '--to', '*@a.example', ...files]);
    assert.match(words.out, new RegExp(`^\\d{4}-\\d\\d-\\d\\d \\S+ {2}gateway-2 {2}delivered {2}${id} {2}queue=a\\.example .*to=bob@a\\.example `, 'm'));
  });
});
