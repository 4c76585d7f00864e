/** POST /api/v1/logged: at the admin port, with clients that leave. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoggedAnswer, LoggedQuestion } from '../../../../src/admin-api/logged.js';
import { addLogged } from '../../../../src/gateway/admin/logged-api.js';
import { LogSearch } from '../../../../src/gateway/look/node/log-search.js';
import { playedApi } from './played-api.js';

const QUESTION: LoggedQuestion = { recipient: '*', since_ms: 0, until_ms: 1e13, limit: 10 };

test('a search of a log ends with its client, two go on at a time, and what is no question is refused', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-logged-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const log = join(folder, 'mail.log');
  writeFileSync(log, `${JSON.stringify({ time: new Date().toISOString(), event: 'received', queue_id: '000H3ZK9Q4D', from: '', to: 'b@b.example', nrcpt: 1 })}\n`);
  const search = new LogSearch(() => ({ file: log, mail: true }));
  const api = playedApi();
  addLogged(api, search);
  await api.listen({ port: 0, host: '127.0.0.1' });
  t.after(() => api.close());
  const url = `http://127.0.0.1:${String((api.server.address() as AddressInfo).port)}/api/v1/logged`;
  const ask = (body: object, signal?: AbortSignal): Promise<Response> =>
    fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), ...(signal === undefined ? {} : { signal }) });

  const { messages, why } = await (await ask(QUESTION)).json() as LoggedAnswer;
  assert.deepEqual([messages[0]?.queue_id, why], ['000H3ZK9Q4D', '']);
  for (const odd of [{}, { ...QUESTION, limit: 0 }, { ...QUESTION, recipient: '' }, { ...QUESTION, sender: 'x'.repeat(600) }, { ...QUESTION, regex: '(a+)+' }, { ...QUESTION, ids: [''] }, { ...QUESTION, ids: ['0123456\n89A'] }]) assert.equal((await ask(odd)).status, 400);

  // All of it is one line, which nobody reads to its end.
  truncateSync(log, 2 ** 40);
  const leaving = new AbortController();
  const left = [ask(QUESTION, leaving.signal), ask(QUESTION, leaving.signal)].map((one) => one.catch(() => 'left'));
  while (!search.isFull) await sleep(5);
  assert.equal((await ask(QUESTION)).status, 503);
  const leftMs = performance.now();
  leaving.abort();
  assert.deepEqual(await Promise.all(left), ['left', 'left']);
  while (search.isFull) await sleep(5);
  assert.ok(performance.now() - leftMs < 8_000, 'long before its time is over');
});
