/** Whose a queue is, in `twinpost queue summary` and `queue list`: by its partition, and for scripts by itself. */
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, test } from 'node:test';
import { runCli } from '../../../src/cli/main.js';
import { contextFor } from './played-context.js';
import { MESSAGE, QUEUE } from './sample-answers.js';


/** Of the queues of the gateway gw-2, and of its messages. */
let owners: readonly string[] = [];
const gateway = http.createServer((request, response) => {
  const path = new URL(request.url ?? '', 'http://localhost').pathname;
  response.writeHead(200, { 'content-type': 'application/json' });
  if (path.endsWith('/group')) response.end(JSON.stringify({ members: [{ id: 'gw-2', kind: 'gateway', admin: null, away: false, self: true }] }));
  else if (path.endsWith('/messages')) response.end(JSON.stringify({ rows: owners.map((owner) => ({ ...MESSAGE, owner })), next_cursor: null }));
  else response.end(JSON.stringify({ rows: owners.map((owner) => ({ ...QUEUE, owner, partition: `${owner}/3` })), next_cursor: null }));
});
await new Promise<void>((resolve) => { gateway.listen(0, '127.0.0.1', resolve); });
const ADDRESS = `127.0.0.1:${String((gateway.address() as AddressInfo).port)}`;
after(() => {
  gateway.closeAllConnections();
  gateway.close();
});

async function printed(of: readonly string[], ...verb: readonly string[]): Promise<string[]> {
  const lines: string[] = [];
  owners = of;
  assert.equal(await runCli([...verb, '--from', ADDRESS], contextFor(lines)), 0);
  return lines.flatMap((text) => text.split('\n'));
}

const cells = (lines: readonly string[]): string[][] => lines.map((line) => line.split(/ {2,}/));

describe('the owner of a queue', () => {
  test('is told by its partition in the summary', async () => {
    const [title, ...rows] = cells(await printed(['gw-1', 'gw-2'], 'queue', 'summary'));
    assert.deepEqual(title?.slice(0, 4), ['Queue', 'Class', 'Partition', 'Next hop']);
    assert.deepEqual(rows.map((row) => row[2]), ['gw-1/3', 'gw-2/3']);
  });

  test('stands with a message that is served in its place', async () => {
    const of = async (owner: string): Promise<string[]> => (await printed([owner], 'queue', 'list')).map((line) => line.trim()).filter((line) => line.startsWith('('));
    assert.deepEqual(await of('gw-1'), ['(of gw-1)']);
    assert.deepEqual(await of('gw-2'), []);
  });

  test('is always told to scripts', async () => {
    for (const verb of ['summary', 'list']) {
      const told = (await printed(['gw-1', 'gw-2'], 'queue', verb, '--json')).map((line) => JSON.parse(line) as { readonly gateway: string; readonly owner: string });
      assert.deepEqual(told.map(({ gateway: id, owner }) => [id, owner]), [['gw-2', 'gw-1'], ['gw-2', 'gw-2']], verb);
    }
  });
});
