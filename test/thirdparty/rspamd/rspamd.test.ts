/**
 * Debian's rspamd as a hook: what it refuses, defers and marks, and what clients read while it is dead or stands still.
 * It has no DNS, no Redis, and two rules of our own, which go by the Subject.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { traceStart } from '../../../src/gateway/inbound/content/trace-header.js';
import { until } from '../../process/cluster.js';
import type { Cluster } from '../../process/cluster.js';
import { freePorts } from '../../process/free-ports.js';
import { readMaildir, sendRaw, withMailbox } from '../support.js';

const HOST = '127.0.0.1';
const TIMEOUT_MS = 2500;
const GTUBE = 'XJS*C4JDBQADN1.NSBN3*2IDNEN*GTUBE-STANDARD-ANTI-UBE-TEST-EMAIL*C.34X';
const LATE_REPLY = /^451 4\.7\.1 The message can not be checked now/;

/** The fields that say who sent what stand in a field of its own, so that a message shows what rspamd was told. */
const RULES = `
rspamd_config.SUBJECT_HOT = { score = 7.0, group = 'test', callback = function(task)
  return (task:get_header('Subject') or ''):find('hot') ~= nil, 'föö' end }
rspamd_config.SUBJECT_LATER = { score = 0.0, callback = function(task)
  if (task:get_header('Subject') or ''):find('later') then task:set_pre_result('soft reject', 'come back later') end end }
rspamd_config.TOLD = { score = 0.0, callback = function(task)
  local rcpts = {}
  for _, rcpt in ipairs(task:get_recipients('smtp') or {}) do table.insert(rcpts, rcpt.addr) end
  local from = (task:get_from('smtp') or {{ addr = '' }})[1].addr
  local told = table.concat({ tostring(task:get_from_ip()), task:get_helo() or '', from, table.concat(rcpts, ','),
    tostring(task:get_queue_id()), tostring(task:get_request_header('MTA-Name')),
    tostring(#(task:get_received_headers() or {})), tostring(task:has_flag('broken_headers')) }, ' ')
  task:set_milter_reply({ add_headers = { ['X-Told'] = told } })
end }
`;

class Rspamd {
  readonly folder = mkdtempSync(join(tmpdir(), 'twinpost-rspamd-'));
  readonly port: number;
  #child: ChildProcess | undefined;

  constructor(port: number) {
    this.port = port;
    writeFileSync(join(this.folder, 'rules.lua'), RULES);
    writeFileSync(join(this.folder, 'rspamd.conf'), `
      options {
        pidfile = "${this.folder}/rspamd.pid"; filters = ""; local_addrs = []; disable_hyperscan = true;
        dns { nameserver = ["${HOST}:1"]; timeout = 0.1s; retransmits = 1; }
      }
      logging { type = "file"; filename = "${this.folder}/rspamd.log"; level = "info"; }
      lua = "${this.folder}/rules.lua";
      worker "normal" { bind_socket = "${HOST}:${String(port)}"; count = 1; }
      actions { reject = 15; add_header = 6; greylist = 4; }
      modules { path = "/usr/share/rspamd/plugins/milter_headers.lua"; }
      milter_headers { use = ["x-spamd-result"]; skip_local = false; skip_authenticated = false; }
    `);
  }

  async start(): Promise<void> {
    const where = ['--var', `DBDIR=${this.folder}`, '--var', `RUNDIR=${this.folder}`];
    // A group of its own: its worker is a process besides, which has to be killed and frozen with it.
    this.#child = spawn('rspamd', ['-f', '-i', '-c', join(this.folder, 'rspamd.conf'), ...where], { detached: true, stdio: 'ignore' });
    // Its first message takes it long.
    await until('rspamd answers', async () => (await fetch(`http://${HOST}:${String(this.port)}/checkv2`, { method: 'POST', body: mail('first') })).status === 200, 30_000)
      .catch((error: unknown) => { throw new Error(readFileSync(join(this.folder, 'rspamd.log'), 'utf8'), { cause: error }); });
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(-(this.#child?.pid ?? assert.fail('it runs')), signal);
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    this.signal('SIGKILL');
    await gone;
  }
}

function mail(subject: string, body = 'hello'): Buffer {
  return Buffer.from(`From: a@client.example\r\nTo: b@example.net\r\nSubject: ${subject}\r\nDate: Mon, 23 Nov 2026 10:00:00 +0000\r\n`
    + `Message-ID: <${subject}@client.example>\r\n\r\n${body}\r\n`);
}

/** What stands in front of the bytes that were sent, which are as they were. */
async function prefixOf(cluster: Cluster, count: number, sent: Buffer): Promise<string> {
  await cluster.sinkHas(count);
  const kept = readMaildir(cluster.maildir).at(-1) ?? Buffer.alloc(0);
  assert.ok(kept.subarray(kept.length - sent.length).equals(sent), kept.toString('latin1'));
  return kept.toString('latin1', 0, kept.length - sent.length);
}

async function verdicts(cluster: Cluster): Promise<void> {
  const send = (content: Buffer, from = ''): Promise<string> => sendRaw(cluster.smtpPort, content, 'b@example.net', from);
  assert.match(await send(mail('test', GTUBE)), /^550 5\.7\.1 Gtube pattern$/);
  assert.match(await send(mail('later')), /^451 4\.7\.1 come back later$/);
  assert.match(await send(mail('plain')), /^250 /);
  const plain = await prefixOf(cluster, 1, mail('plain'));
  assert.match(plain, /^Received: [^]*\+0000\r\n[^]*X-Spamd-Result: default: False \[0\.00 \/ 15\.00\]/);
  const queueId = / id (\S+)/.exec(plain)?.[1] ?? '';
  const told = ['127.0.0.1', 'talk.example', 'raw@client.example', 'b@example.net', queueId, 'mx.example', '1', 'false'].join(' ');
  assert.ok(plain.includes(`X-Told: ${told}\r\n`), plain);
  assert.doesNotMatch(plain, /X-Spam:/);
  assert.match(await send(mail('hot')), /^250 /);
  const hot = await prefixOf(cluster, 2, mail('hot'));
  assert.match(hot, /X-Spamd-Result: default: False \[7\.00 \/ 15\.00\];\r\n\tSUBJECT_HOT\(7\.00\)\[f\?+\]/);
  assert.match(hot, /\r\nX-Spam: Yes\r\nX-Spam-Score: 7\.00 \/ 15\.00\r\n/);
}

/** It takes an address that it can't read, or without a domain, for broken headers: a mark of 8 by its own rules. */
async function addresses(cluster: Cluster): Promise<void> {
  const octets = (text: string): string => Buffer.from(text).toString('latin1');
  const cases = [
    ['raw@client.example', 'postmaster', 'raw@client.example postmaster@mx.example'],
    ['a@b\u00fccher.example', 'b@\u4f8b.example', 'a@xn--bcher-kva.example b@xn--fsq.example'],
    ['\u00fc.a@client.example', '\u4f8b@b\u00fccher.example', '%C3%BC.a@client.example %E4%BE%8B@xn--bcher-kva.example'],
  ] as const;
  for (const [index, [from, to, told]] of cases.entries()) {
    assert.match(await sendRaw(cluster.smtpPort, mail('plain'), octets(to), index === 0 ? '' : ' SMTPUTF8', octets(from)), /^250 /);
    const prefix = await prefixOf(cluster, 3 + index, mail('plain'));
    assert.ok(prefix.includes(`X-Told: 127.0.0.1 talk.example ${told} `) && prefix.includes(' mx.example 1 false\r\n'), prefix);
  }
}

/** Without IP it takes the address in the topmost field, be it what the client called itself. */
async function nobodyTold(port: number): Promise<void> {
  for (const helo of ['client.example', '[192.0.2.9]', '192.0.2.9', 'x[192.0.2.9]', '[ipv6:2001:db8::9]', 'abc::9', 'a.example.']) {
    const field = Buffer.from(traceStart(helo, '', 'mx.example')).toString() + 'ESMTP id 1; Mon, 23 Nov 2026 10:00:00 +0000\r\n';
    const below = 'Received: from a.example ([192.0.2.1])\r\n\tby b.example with ESMTP id 2; Mon, 23 Nov 2026 10:00:00 +0000\r\n';
    const body = Buffer.concat([Buffer.from(field + below), mail('plain')]);
    const answer = await fetch(`http://${HOST}:${String(port)}/checkv2`, { method: 'POST', headers: { Helo: 'h' }, body });
    assert.match(await answer.text(), /"X-Told":"nil h /, field);
  }
}

test('rspamd refuses, defers and marks; dead or frozen, clients try later, and go on when it is back', { timeout: 240_000 }, async () => {
  const [port = 0] = await freePorts(1);
  const rspamd = new Rspamd(port);
  try {
    await rspamd.start();
    await nobodyTold(port);
    const hooks = [{ rspamd: `http://${HOST}:${String(port)}`, timeout: `${String(TIMEOUT_MS)}ms` }];
    await withMailbox(async (cluster) => {
      await verdicts(cluster);
      await addresses(cluster);
      const send = (): Promise<string> => sendRaw(cluster.smtpPort, mail('plain'), 'b@example.net');
      rspamd.signal('SIGSTOP');
      const sinceMs = performance.now();
      assert.match(await send(), LATE_REPLY);
      const tookMs = performance.now() - sinceMs;
      assert.ok(tookMs >= TIMEOUT_MS - 50 && tookMs < TIMEOUT_MS + 3000, `a reply after ${String(tookMs)} ms`);
      rspamd.signal('SIGCONT');
      assert.match(await send(), /^250 /);
      await rspamd.kill();
      assert.match(await send(), LATE_REPLY);
      await rspamd.start();
      assert.match(await send(), /^250 /);
      await cluster.sinkHas(7);
      const log = cluster.gateway.log().split('\n').filter((line) => line.includes('"event":"hook"')).join('\n');
      assert.match(log, /"why":"no answer in 2500 ms","msg":"a hook gives no verdict/);
      assert.match(log, /"msg":"a hook gives verdicts again"/);
    }, { gateway: { hostname: 'mx.example', smtp: { hooks } } });
    await withMailbox(async (cluster) => {
      await rspamd.kill();
      assert.match(await sendRaw(cluster.smtpPort, mail('test', GTUBE), 'b@example.net'), /^250 /);
      assert.match(await prefixOf(cluster, 1, mail('test', GTUBE)), /^Received: [^]*\+0000\r\n$/);
    }, { gateway: { smtp: { hooks: [{ ...hooks[0], on_failure: 'accept' }] } } });
  } finally {
    await rspamd.kill();
    rmSync(rspamd.folder, { recursive: true });
  }
});
