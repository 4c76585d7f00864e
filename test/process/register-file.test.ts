/**
 * `register: file` that is lost, put back from an older copy, or started from a copy of state_dir: all mail that is
 * queued is delivered once, and no incarnation and no message id comes again. One that can't be written is away.
 */
import assert from 'node:assert/strict';
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';
import { SmtpTalk } from './smtp-talk.js';

const LEASE_MS = 4_000;
const COUNT = 40;
const BOUND_MS = 120_000;
const SHORT = {
  store: { lease: `${String(LEASE_MS)}ms` },
  gateway: { mirror: { partitions: 4, lease: `${String(LEASE_MS)}ms`, failover_timeout: '200ms', heartbeat: '50ms' } },
};

/** What must not come again. */
class Seen {
  readonly #incarnations = new Set<number>();
  readonly #ids = new Set<string>();
  queued = 0;

  /** The gateway runs: who it is, and more mail, each with an id of its own. */
  async note(cluster: Cluster): Promise<void> {
    const { incarnation } = await cluster.status();
    assert.ok(!this.#incarnations.has(incarnation), `incarnation ${String(incarnation)} again`);
    this.#incarnations.add(incarnation);
    const talk = await SmtpTalk.start(cluster.smtpPort);
    for (let i = 0; i < 3; i++) {
      await talk.say('MAIL FROM:<>');
      await talk.say('RCPT TO:<one@a.example>');
      await talk.say('DATA');
      const id = /queued as (\S+)/.exec(await talk.say(`Subject: ${String(i)}\r\n\r\nx\r\n.`))?.[1] ?? '';
      assert.ok(id !== '' && !this.#ids.has(id), `message id '${id}' again`);
      this.#ids.add(id);
    }
    talk.close();
    const { accepted } = await runSend({ host: HOST, port: cluster.smtpPort, count: COUNT, connections: 2 });
    assert.equal(accepted, COUNT);
    this.queued += COUNT + 3;
  }
}

async function restarted(cluster: Cluster, change: () => void): Promise<void> {
  await cluster.gateway.stop();
  change();
  cluster.gateway.start();
  await cluster.gateway.ready();
}

async function story(run: (cluster: Cluster, seen: Seen) => Promise<void>): Promise<void> {
  const cluster = await startCluster(SHORT);
  try {
    cluster.sink.freeze();
    const seen = new Seen();
    await seen.note(cluster);
    await run(cluster, seen);
    await until('all mail is back', async () => {
      const { queued_messages: queued, partitions_recovering: open } = await cluster.status();
      return queued === seen.queued && open === 0;
    }, 60_000, cluster.gateway);
    assert.equal((await cluster.status()).losses, 0);
    cluster.sink.thaw();
    await cluster.drained();
    const { messages } = await cluster.sinkCounts();
    assert.equal(messages, seen.queued);
  } finally {
    await cluster.stop();
  }
}

test('a register file that is lost', { timeout: BOUND_MS }, () => story(async (cluster, seen) => {
  for (const lost of [['register'], ['register', 'processes'], ['register', 'processes']]) {
    await restarted(cluster, () => { for (const file of lost) rmSync(join(cluster.folder, file)); });
    await seen.note(cluster);
  }
}));

test('an older register file that is put back', { timeout: BOUND_MS }, () => story(async (cluster, seen) => {
  const [file, older] = [join(cluster.folder, 'register'), join(cluster.folder, 'older')];
  await restarted(cluster, () => { copyFileSync(file, older); });
  await seen.note(cluster);
  // Records change: one store has another boot.
  const [, store] = cluster.stores;
  await store?.kill();
  store?.start();
  await store?.ready();
  await cluster.inSync(4);
  await restarted(cluster, () => undefined);
  await seen.note(cluster);
  await restarted(cluster, () => { copyFileSync(older, file); });
  await seen.note(cluster);
}));

/** Its state is in this folder now, and one store is silent: nothing is delivered, or taken, before that is heard. */
async function startIn(cluster: Cluster, stateDir: string): Promise<void> {
  const [, silent] = cluster.stores;
  silent?.freeze();
  const config = join(cluster.folder, 'gateway.yaml');
  const { gateway } = JSON.parse(readFileSync(config, 'utf8')) as { readonly gateway: object };
  writeFileSync(config, JSON.stringify({ gateway: { ...gateway, state_dir: stateDir } }));
  const logBytes = cluster.gateway.logBytes;
  cluster.gateway.start();
  let queued = -1;
  await until('it waits for the store that is silent', async () => {
    const { waiting_for: waiting, queued_messages: messages } = await cluster.status();
    queued = messages;
    return waiting.stores === 4;
  }, 30_000, cluster.gateway);
  assert.match(cluster.gateway.logSince(logBytes), /another folder, of which this is a copy.*the register file counts as lost/);
  assert.equal(queued, 0);
  silent?.thaw();
  await cluster.gateway.ready();
}

function copied(cluster: Cluster, to: string): string {
  const copy = join(cluster.folder, to);
  mkdirSync(copy);
  for (const name of ['register', 'processes']) cpSync(join(cluster.folder, name), join(copy, name));
  return copy;
}

test('a copy of state_dir in another folder asks every store before it delivers, old or new', { timeout: BOUND_MS }, () => story(async (cluster, seen) => {
  let older = '';
  await restarted(cluster, () => { older = copied(cluster, 'older'); });
  await seen.note(cluster);
  await restarted(cluster, () => undefined);
  await seen.note(cluster);
  await cluster.gateway.stop();
  for (const folder of [copied(cluster, 'newest'), older]) {
    await startIn(cluster, folder);
    await seen.note(cluster);
    await cluster.gateway.stop();
  }
  cluster.gateway.start();
  await cluster.gateway.ready();
}));

test('a register file that can not be written counts as away: that is said, and no new mail is taken', { timeout: BOUND_MS }, () => story(async (cluster) => {
  // In the place of the file that is written before it is renamed; a full disk refuses likewise.
  const blocked = join(cluster.folder, 'register.tmp');
  mkdirSync(blocked);
  const [, store] = cluster.stores;
  await store?.kill();
  const logBytes = cluster.gateway.logBytes;
  await until('all wait for the register', async () => {
    const { register_away: away, waiting_for: waiting, ready } = await cluster.status();
    return away.includes("can't be written") && waiting.register === 4 && !ready;
  }, 30_000, cluster.gateway);
  assert.match(cluster.gateway.logSince(logBytes), /the register refuses changes of records/);
  rmdirSync(blocked);
  store?.start();
  await store?.ready();
  await until('it takes changes again', async () => (await cluster.status()).register_away === '', 30_000, cluster.gateway);
  await cluster.gateway.ready();
  await cluster.inSync(4);
}));
