/**
 * Routes for some of the mail only: by its sender and by the listener that it came in by. Judged by the
 * queues of the mail log.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until } from './cluster.js';
import { freePorts } from './free-ports.js';

const BOUND_MS = 20_000;

test('mail takes the route of its sender and listener, else that without conditions', { timeout: 240_000 }, async () => {
  const [relay = 0, late = 0, sink = 0] = await freePorts(3);
  const via = `smtp://${HOST}:${String(sink)}`;
  const [one, two] = [`${HOST}:${String(relay)}`, `${HOST}:${String(late)}`];
  const cluster = await startCluster({
    gateway: { smtp: { listen: [one, two] }, delivery: { retry: { first: '500ms', max: '1s' } } },
    routes: [
      { domain: 'x.example', via, name: 'bulk', when: { senders: ['*@news.example'] } },
      { domain: 'x.example', via, name: 'second', when: { listeners: [two], recipients: ['USER@*'] } },
    ],
  });
  try {
    const queues = (): string[] => cluster.gateway.log().split('\n').filter((line) => line.includes('"event":"received"'))
      .map((line) => (JSON.parse(line) as { readonly queue: string }).queue);
    const send = async (port: number, from: string): Promise<string> => {
      const before = queues().length;
      const sent = await runSend({ host: HOST, port, connections: 1, domains: ['x.example'], count: 1, from });
      assert.equal(sent.accepted, 1);
      await until('it is logged', () => queues().length > before, BOUND_MS, cluster.gateway);
      return queues()[before] ?? '';
    };
    assert.equal(await send(relay, 'a@b.example'), 'default');
    assert.equal(await send(relay, 'a@news.example'), 'bulk');
    assert.equal(await send(late, 'a@news.example'), 'bulk');
    assert.equal(await send(late, 'a@b.example'), 'second');
  } finally {
    await cluster.stop();
  }
});
