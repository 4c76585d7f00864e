/**
 * HAProxy in front, with the PROXY protocol in both versions, TLS at the balancer and health checks: relay rules and
 * limits go by the real client, not by the balancer.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { connect as tlsConnect } from 'node:tls';

import { DEEDS, PARTIES, RateLimits, type RateOptions } from '../../../src/gateway/inbound/limits/rate-limits.js';
import { NetworkList } from '../../../src/gateway/inbound/policy/network-list.js';
import { selfSigned } from '../../dialog/self-signed.js';
import { startHarness } from '../../dialog/harness.js';
import { freePorts } from '../../process/free-ports.js';
import { sayAll } from '../../process/smtp-talk.js';

const HOST = '127.0.0.1';

/** All that the server says to these lines, from a client at `from`, in clear or in TLS. */
function dialog(port: number, from: string, lines: readonly string[], isTls = false): Promise<string> {
  const clear = net.connect({ port, host: HOST, localAddress: from });
  return sayAll(isTls ? tlsConnect({ socket: clear, rejectUnauthorized: false }) : clear, lines);
}

function configOf(folder: string, ports: readonly number[], smtpPort: number): string {
  const [v1 = 0, v2 = 0, v2Tls = 0, tcp = 0, expect = 0, stats = 0] = ports;
  const front = (name: string, port: number, bind: string, how: string, check = 'option smtpchk HELO balancer.example'): string => `
listen ${name}
  bind ${HOST}:${String(port)}${bind}
  ${check}
  server one ${HOST}:${String(smtpPort)} ${how} check inter 50 fall 1 rise 1`;
  return `global
  maxconn 200
defaults
  mode tcp
  timeout connect 5s
  timeout check 5s
  timeout client 30s
  timeout server 30s
${front('v1', v1, '', 'send-proxy check-send-proxy')}
${front('v2', v2, '', 'send-proxy-v2 check-send-proxy')}
${front('v2-tls', v2Tls, ` ssl crt ${join(folder, 'both.pem')}`, 'send-proxy-v2-ssl check-send-proxy')}
${front('tcp', tcp, '', 'send-proxy-v2 check-send-proxy', '')}
${front('expect', expect, '', 'send-proxy-v2', 'option tcp-check\n  tcp-check connect send-proxy\n  tcp-check expect rstring ^220')}
frontend stats
  mode http
  bind ${HOST}:${String(stats)}
  stats enable
  stats uri /
`;
}

test('HAProxy says whose connection it is', { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-haproxy-'));
  const pair = selfSigned();
  assert.ok(pair !== undefined);
  writeFileSync(join(folder, 'both.pem'), readFileSync(pair.certFile, 'utf8') + readFileSync(pair.keyFile, 'utf8'));
  const none = Object.fromEntries(DEEDS.map((deed) => [deed, 0]));
  const limits = new RateLimits({ ...Object.fromEntries(PARTIES.map((party) => [party, none])), client: { ...none, connections: 10, messages: 4 } } as RateOptions, new NetworkList([], 'nobody'));
  const harness = await startHarness({
    proxyNetworks: [`${HOST}/32`], relayNetworks: ['127.0.0.2/32'], connectionsPerClientMax: 2, greetingDelayMs: 100,
  }, { rates: limits });
  const ports = await freePorts(6);
  writeFileSync(join(folder, 'haproxy.cfg'), configOf(folder, ports, harness.inbound.port));
  const balancer = spawn('haproxy', ['-db', '-f', join(folder, 'haproxy.cfg')], { stdio: ['ignore', 'ignore', 'pipe'] });
  try {
    await allUp(ports[5] ?? 0);
    const send = ['HELO client.example', 'MAIL FROM:<a@client.example>', 'RCPT TO:<b@example.net>', 'DATA', 'x\r\n.', 'QUIT'];
    for (const [index, isTls] of [[0, false], [1, false], [2, true]] as const) {
      const relayed = await dialog(ports[index] ?? 0, '127.0.0.2', send, isTls);
      assert.match(relayed, /greets \[127\.0\.0\.2\]/);
      assert.match(relayed, /250 2\.0\.0 Ok: queued as/);
      const trace = harness.reception.kept.at(-1)?.content.toString('latin1') ?? '';
      // TLS ended at the balancer: it is none of ours.
      assert.ok(trace.includes('from client.example ([127.0.0.2])') && trace.includes('with SMTP id'), trace);
      const refused = await dialog(ports[index] ?? 0, '127.0.0.3', send.slice(0, 3).concat('QUIT'), isTls);
      assert.match(refused, /550 5\.7\.1 Relaying denied/);
    }
    // What a client may do in a minute is its own, by whichever listener it came.
    assert.match(await dialog(ports[3] ?? 0, '127.0.0.2', send), /250 2\.0\.0 Ok: queued as/);
    assert.match(await dialog(ports[4] ?? 0, '127.0.0.2', send.slice(0, 2).concat('QUIT')), /450 4\.7\.1 Too many messages/);
    assert.match(await dialog(ports[4] ?? 0, '127.0.0.3', send.slice(0, 2).concat('QUIT')), /250 2\.1\.0 /);
    // The balancer's own address has many connections by now; the limit is that of each client.
    const held = [1, 2].map(() => net.connect({ port: ports[1] ?? 0, host: HOST, localAddress: '127.0.0.2' }));
    await Promise.all(held.map((socket) => new Promise((resolve) => { socket.once('data', resolve); })));
    assert.match(await dialog(ports[0] ?? 0, '127.0.0.2', ['QUIT']), /^421 4\.7\.0 Too many connections from your address/);
    assert.match(await dialog(ports[0] ?? 0, '127.0.0.3', ['QUIT']), /^220 .*\r\n221 /);
    for (const socket of held) socket.destroy();
    // More checks than a client may make connections in a minute have come by now: none was refused for that, or for anything.
    await allUp(ports[5] ?? 0);
    assert.deepEqual(harness.rejections.filter((line) => line.startsWith('connect ')), ['connect connections-client']);
  } finally {
    balancer.kill('SIGTERM');
    await new Promise((resolve) => balancer.once('close', resolve));
    await harness.inbound.close(1000);
    rmSync(folder, { recursive: true });
  }
});

/** HAProxy's own health checks, by SMTP behind a PROXY header, by a connection alone, by the greeting: all servers are up by them. */
async function allUp(statsPort: number): Promise<void> {
  for (;;) {
    const table = await fetch(`http://${HOST}:${String(statsPort)}/;csv`).then((answer) => answer.text()).catch(() => '');
    const servers = table.split('\n').filter((line) => /,one,/.test(line));
    if (servers.length === 5 && servers.every((line) => line.includes(',UP,') && line.includes(line.startsWith('tcp,') ? 'L4OK' : 'L7OK'))) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
