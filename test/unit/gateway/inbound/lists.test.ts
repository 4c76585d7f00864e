/** Lists of a table are work that anybody can ask for: it is bounded, shared out, and a list may be too long. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { Listing } from '../../../../src/gateway/inbound/recipients/listing.js';
import { memoryHarness } from '../../../dialog/harness.js';
import type { DialogClient } from '../../../dialog/harness.js';

const members = (count: number): string[] => Array.from({ length: count }, (_none, i) => `m${String(i)}@x.example`);

/** A table of one list, which counts how often it is asked, and how often at most in a turn of the loop. */
class ListTable {
  asked = 0;
  mostInTurn = 0;
  #inTurn = 0;
  readonly #list: Listing;

  constructor(count: number) {
    this.#list = { route: '', to: members(count) };
  }

  find(key: string): Listing {
    if (this.#inTurn === 0) setImmediate(() => { this.#inTurn = 0; });
    this.asked++;
    this.mostInTurn = Math.max(this.mostInTurn, ++this.#inTurn);
    return key.startsWith('team') ? this.#list : { route: '', to: [] };
  }
}

async function reply(client: DialogClient): Promise<string> {
  for (;;) {
    const line = await client.line();
    if (line[3] !== '-') return line;
  }
}

async function begun(harness: ReturnType<typeof memoryHarness>): Promise<DialogClient> {
  const client = harness.connect();
  await reply(client);
  client.send('HELO x\r\nMAIL FROM:<a@example.org>\r\n');
  for (let i = 0; i < 2; i++) assert.match(await reply(client), /^250 /);
  return client;
}

test('a list longer than we send to is refused for good, and no table is asked for a full transaction', async () => {
  const table = new ListTable(1001);
  const harness = memoryHarness({ relayDomains: ['x.example'], recipientsMax: 100 }, { recipients: table });
  const client = await begun(harness);
  client.send('RCPT TO:<team@x.example>\r\n');
  assert.match(await reply(client), /^550 5\.2\.4 /);
  for (let i = 0; i < 100; i++) client.send(`RCPT TO:<m${String(i)}@x.example>\r\n`);
  for (let i = 0; i < 100; i++) assert.match(await reply(client), /^250 /);
  const { asked } = table;
  client.send('RCPT TO:<team@x.example>\r\n');
  assert.match(await reply(client), /^452 4\.5\.3 /);
  assert.equal(table.asked, asked);
  harness.close();
});

test('clients that ask for lists take turns of the loop', async () => {
  const table = new ListTable(900);
  const harness = memoryHarness({ relayDomains: ['x.example'] }, { recipients: table });
  const clients = await Promise.all(Array.from({ length: 5 }, () => begun(harness)));
  const rounds = 10;
  const round = 'RCPT TO:<team@x.example>\r\nRSET\r\nMAIL FROM:<a@example.org>\r\n';
  for (const client of clients) client.send(round.repeat(rounds));
  for (const client of clients) {
    for (let i = 0; i < 3 * rounds; i++) assert.match(await reply(client), /^250 /);
  }
  assert.equal(table.asked, clients.length * rounds * 901);
  assert.ok(table.mostInTurn <= 2 * 1000, `${String(table.mostInTurn)} in one turn`);
  harness.close();
});
