/**
 * SIGTERM is an orderly end. A gateway takes no new mail, answers what is in DATA, finishes its deliveries in
 * flight, and leaves the rest at the stores: the next process delivers it, and no message comes twice. A
 * store that is stopped ends with 0 too, and the gateway serves on with the other one.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HARMLESS_SIGNALS } from './harmless-signals.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';
import { SmtpTalk } from './smtp-talk.js';

const DOMAINS = ['a.example', 'b.example', 'strict.example'];
const CONCURRENCY = 20;
const COUNT = 3000;
const RATE = 1500;
const STOP_TIMEOUT_MS = 3000;
/** Writing the last changes and logs, on a slow machine. */
const STOP_REST_MS = 5000;

async function withCluster(story: (cluster: Cluster) => Promise<void>): Promise<void> {
  const cluster = await startCluster({
    domains: DOMAINS, strictDomains: ['strict.example'], sinkArguments: ['--latency', '4ms'],
    gateway: { delivery: { concurrency: CONCURRENCY, stop_timeout: `${STOP_TIMEOUT_MS}ms` } },
    // It is told of a store's stop, and here there is no third one to go to.
    store: { stop_timeout: '300ms' },
  });
  try {
    await story(cluster);
  } finally {
    await cluster.stop();
  }
}

/** Sends COUNT messages; `blow` strikes once when a third was accepted. */
async function sendThrough(cluster: Cluster, blow: () => Promise<void>): Promise<void> {
  const log = join(cluster.folder, 'send.log');
  let struck: Promise<void> | undefined;
  const sent = await runSend({
    host: HOST, port: cluster.smtpPort, count: COUNT, connections: 20, rate: RATE, domains: DOMAINS, resend: true, log,
    onProgress: ({ accepted }) => {
      if (accepted >= COUNT / 3) struck ??= blow();
    },
  });
  await struck;
  assert.equal(sent.accepted, COUNT, JSON.stringify(sent));
  // Who has sent a whole message gets an answer.
  assert.equal(sent.replies['none'], undefined, JSON.stringify(sent));
  await cluster.drained();
  const report = await cluster.verify(log, CONCURRENCY - 1);
  const text = JSON.stringify(report, undefined, 1);
  assert.ok(report.ok && report.arrived === COUNT, text);
  assert.equal(report.copies, COUNT, text);
}

describe('SIGTERM', { timeout: 600_000 }, () => {
  test('a gateway answers what is in DATA, ends with 0 in time, and its successor delivers the rest, each once', () => withCluster(async (cluster) => {
    const slow = await SmtpTalk.start(cluster.smtpPort);
    await sendThrough(cluster, async () => {
      assert.match(await slow.say('MAIL FROM:<>'), /^250 /);
      assert.match(await slow.say('RCPT TO:<slow@a.example>'), /^250 /);
      assert.match(await slow.say('DATA'), /^354 /);
      slow.send('Subject: half of me came before the signal\r\n\r\nand');
      const startedMs = performance.now();
      const stopped = cluster.gateway.stop();
      await until('the port is closed', () => isClosed(cluster.smtpPort));
      slow.send(' half after it\r\n.\r\n');
      assert.match(await slow.reply(), /^250 /);
      assert.equal(await stopped, 0, cluster.gateway.logTail());
      assert.ok(performance.now() - startedMs < STOP_TIMEOUT_MS + STOP_REST_MS, `it took ${performance.now() - startedMs} ms`);
      cluster.gateway.start();
      await cluster.gateway.ready();
    });
    slow.close();
    assert.equal((await cluster.sinkCounts()).unmarked, 1);
  }));

  test('SIGHUP, which log rotation sends, ends neither gateway nor store', () => withCluster(async (cluster) => {
    for (const daemon of [cluster.gateway, ...cluster.stores]) {
      process.kill(daemon.pid, 'SIGHUP');
      await until('it says what that does', () => /"event":"reload"/.test(daemon.log()), STOP_REST_MS, daemon);
      assert.ok(daemon.isRunning);
    }
    assert.equal((await runSend({ host: HOST, port: cluster.smtpPort, count: 10 })).accepted, 10);
  }));

  test('nor does any other signal that a process can catch, but SIGTERM and SIGINT; nor the sink', () => withCluster(async (cluster) => {
    const daemons = [...cluster.stores, cluster.gateway, cluster.sink];
    const pids = daemons.map(({ pid }) => pid);
    for (const name of HARMLESS_SIGNALS) {
      for (const pid of pids) {
        process.kill(pid, name);
        // Some stop a process, as a terminal asks for.
        process.kill(pid, 'SIGCONT');
      }
    }
    assert.equal((await runSend({ host: HOST, port: cluster.smtpPort, count: 10 })).accepted, 10);
    await cluster.drained();
    assert.deepEqual(daemons.map(({ pid, isRunning }) => (isRunning ? pid : 0)), pids);
    for (const daemon of daemons) assert.doesNotMatch(daemon.log(), /Debugger listening/);
    for (const daemon of [...cluster.stores, cluster.gateway]) {
      daemon.signal('SIGINT');
      await until(`${daemon.name} ends`, () => !daemon.isRunning, 30_000, daemon);
      assert.equal(daemon.exitCode, 0, daemon.logTail());
    }
  }));

  test('a client that never finishes its DATA does not hold a gateway up past the bound', () => withCluster(async (cluster) => {
    const slow = await SmtpTalk.start(cluster.smtpPort);
    await slow.say('MAIL FROM:<>');
    await slow.say('RCPT TO:<slow@a.example>');
    assert.match(await slow.say('DATA'), /^354 /);
    slow.send('Subject: and then nothing\r\n');
    const startedMs = performance.now();
    assert.equal(await cluster.gateway.stop(), 0, cluster.gateway.logTail());
    assert.ok(performance.now() - startedMs < STOP_TIMEOUT_MS + STOP_REST_MS, `it took ${performance.now() - startedMs} ms`);
    const last = await slow.reply();
    assert.match(last, /^(4\d\d .*|$)/);
    slow.close();
  }));

  test('a store ends with 0, mail goes on without it, and it counts again when it is back', () => withCluster(async (cluster) => {
    const store = cluster.stores[0];
    assert.ok(store !== undefined);
    await sendThrough(cluster, async () => {
      assert.equal(await store.stop(), 0, store.logTail());
      const before = await cluster.sinkCounts();
      await cluster.sinkHas(before.messages + 300);
      store.start();
      await store.ready();
    });
    await cluster.inSync(DOMAINS.length);
  }));
});

async function isClosed(port: number): Promise<boolean> {
  try {
    const talk = await SmtpTalk.start(port);
    talk.close();
    return false;
  } catch {
    return true;
  }
}
