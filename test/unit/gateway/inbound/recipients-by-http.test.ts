/** Recipients whom an HTTP server knows: what its answers mean, how long they hold, and that nothing it does harms. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { RecipientsByHttp } from '../../../../src/gateway/inbound/recipients-by-http.js';
import { NOT_ASKED } from '../../../../src/gateway/inbound/recipients/listing.js';
import type { Listing } from '../../../../src/gateway/inbound/recipients/listing.js';
import { HttpKit, UNCLEAR } from './http-kit.js';
import type { Answer } from './http-kit.js';

const HERE: Listing = { route: '', to: [] };

interface World {
  readonly kit: HttpKit;
  readonly table: RecipientsByHttp;
  /** What the table says when it has asked. */
  ask(...keys: readonly string[]): Promise<readonly (Listing | undefined | 'nobody can tell')[]>;
}

function withRecipients(story: (world: World) => Promise<void>, timeoutMs = 30_000): Promise<void> {
  const kit = new HttpKit((_request, body, response) => {
    const { address } = JSON.parse(body) as { readonly address: string };
    const said: Record<string, string> = { 'anna@x.example': '{}', 'bob@x.example': '{"route": "box-17"}', 'team@x.example': '{"to": ["anna@x.example", "c@d.example"]}' };
    response.writeHead(said[address] === undefined ? 404 : 200).end(said[address]);
  });
  return kit.run(async () => {
    const table = new RecipientsByHttp({ url: kit.url, timeoutMs, token: 'letmein', keptMs: 60_000, missingKeptMs: 10_000 }, kit.ports);
    const found = (key: string): Listing | undefined | 'nobody can tell' => {
      try {
        const listing = table.find(key);
        assert.ok(listing !== NOT_ASKED, `${key} was asked for`);
        return listing;
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        return 'nobody can tell';
      }
    };
    const ask = async (...keys: readonly string[]): ReturnType<World['ask']> => {
      await new Promise<void>((resolve) => { table.learn(keys, () => { resolve(); }); });
      return keys.map(found);
    };
    await story({ kit, table, ask });
  });
}

describe('recipients by HTTP', () => {
  test('the answer says whether somebody is there, and where the mail goes', () => withRecipients(async ({ ask, table }) => {
    assert.equal(table.find('anna@x.example'), NOT_ASKED);
    assert.deepEqual(await ask('anna@x.example', 'bob@x.example', 'team@x.example', 'nobody@x.example'), [
      HERE, { route: 'box-17', to: [] }, { route: '', to: ['anna@x.example', 'c@d.example'] }, undefined,
    ]);
    assert.equal(table.find('@x.example'), undefined, 'of a domain nobody is asked');
  }));

  test('questions, answers and failures are counted and timed', () => withRecipients(async ({ ask, kit }) => {
    await ask('anna@x.example', 'nobody@x.example');
    await ask('anna@x.example');
    kit.answer = (_request, _body, response) => {
      kit.nowMs += 3000;
      response.writeHead(500).end();
    };
    await ask('bob@x.example');
    const { asked, answered, failed, seconds } = kit.meter;
    assert.deepEqual([asked, answered, failed, seconds.count, seconds.sum], [4, 3, 1, 4, 3]);
  }));

  test('an answer holds for its time, that nobody is there for its own', () => withRecipients(async ({ ask, kit, table }) => {
    await ask('anna@x.example', 'nobody@x.example');
    kit.nowMs = 9_999;
    assert.deepEqual([table.find('anna@x.example'), table.find('nobody@x.example')], [HERE, undefined]);
    kit.nowMs = 10_000;
    assert.deepEqual([table.find('anna@x.example'), table.find('nobody@x.example')], [HERE, NOT_ASKED]);
    kit.nowMs = 60_000;
    assert.equal(table.find('anna@x.example'), NOT_ASKED);
    assert.equal(kit.asked, 2);
    assert.deepEqual(await ask('anna@x.example'), [HERE]);
    assert.equal(kit.asked, 3);
  }));

  test('who asks for the same address waits for the same answer', () => withRecipients(async ({ ask, kit }) => {
    const answers = await Promise.all([ask('anna@x.example'), ask('anna@x.example', 'bob@x.example'), ask('anna@x.example')]);
    assert.deepEqual(answers.map((each) => each[0]), [HERE, HERE, HERE]);
    assert.equal(kit.asked, 2);
  }));

  test('64 questions run at a time, the others wait', () => withRecipients(async ({ ask, kit }) => {
    const open: (() => void)[] = [];
    let most = 0;
    // What was sent before a question that is answered has come before it.
    const isProbe = (body: string): boolean => body === 'probe';
    const probe = async (): Promise<void> => { await (await fetch(kit.url, { method: 'POST', body: 'probe' })).text(); };
    kit.answer = (_request, body, response) => {
      if (isProbe(body)) return response.end();
      open.push(() => { response.writeHead(200).end('{}'); });
      most = Math.max(most, open.length);
      if (kit.asked < 64) return undefined;
      if (kit.asked > 64) return open.pop()?.();
      return void probe().then(probe).then(() => { for (const answer of open.splice(0)) answer(); });
    };
    const keys = Array.from({ length: 100 }, (_none, i) => `user${String(i)}@x.example`);
    assert.deepEqual(await ask(...keys), keys.map(() => HERE));
    assert.deepEqual([most, kit.asked], [64, 102]);
  }));

  test('what waits for longer than an answer may take is not asked any more', () => withRecipients(async ({ ask, kit }) => {
    const open: (() => void)[] = [];
    kit.answer = (_request, _body, response) => {
      open.push(() => { response.writeHead(200).end('{}'); });
      if (open.length < 64) return;
      kit.nowMs = 10_001;
      for (const answer of open.splice(0)) answer();
    };
    const keys = Array.from({ length: 65 }, (_none, i) => `user${String(i)}@x.example`);
    assert.equal((await ask(...keys))[64], 'nobody can tell');
    assert.equal(kit.asked, 64);
  }, 10_000));

  test('the line has an end', () => withRecipients(async ({ kit, table }) => {
    kit.answer = () => undefined;
    const keys = (from: number, to: number): string[] => Array.from({ length: to - from }, (_none, i) => `user${String(from + i)}@x.example`);
    table.learn(keys(0, 10_000), () => undefined);
    // 64 of these run.
    table.learn(keys(10_000, 10_064), () => undefined);
    const heard: (boolean | undefined)[] = [];
    table.learn(['late@x.example', 'user10063@x.example'], (isFull) => { heard.push(isFull); });
    table.learn(['late@x.example'], (isFull) => { heard.push(isFull); });
    assert.deepEqual(heard, [true]);
    assert.equal(table.find('late@x.example'), NOT_ASKED, 'nobody has said a word of it');
    assert.equal(table.find('user10063@x.example'), NOT_ASKED);
    // The others have waited for too long: nobody asks for them.
    kit.nowMs = 60_000;
  }));

  test('answers that are kept are bounded in what they hold', () => withRecipients(async ({ ask, kit, table }) => {
    const to = Array.from({ length: 1000 }, (_none, i) => `${'x'.repeat(40)}${String(i)}@d.example`);
    kit.answer = (_request, _body, response) => { response.writeHead(200).end(JSON.stringify({ to })); };
    for (let i = 0; i < 400; i += 4) {
      const found = await ask(...Array.from({ length: 4 }, (_none, j) => `user${String(i + j)}@x.example`));
      assert.ok(found.every((each) => typeof each === 'object'));
    }
    assert.equal(table.find('user0@x.example'), NOT_ASKED);
    const last = table.find('user399@x.example');
    assert.ok(last !== NOT_ASKED);
    assert.equal(last?.to.length, 1000);
  }));

  test('targets of aliases count, however short they are', () => withRecipients(async ({ kit, table }) => {
    const answer = JSON.stringify({ to: Array.from({ length: 1000 }, () => '') });
    kit.answer = (_request, _body, response) => { response.writeHead(200).end(answer); };
    // 100 of them are just above 16 Mi characters with 32 for each target, and with none 3 Mi below.
    const keys = Array.from({ length: 100 }, (_none, i) => `${String(i)}@x.example`.padStart(136_000, 'k'));
    await new Promise<void>((resolve) => { table.learn(keys, () => { resolve(); }); });
    assert.equal(keys.filter((key) => table.find(key) === NOT_ASKED).length, 1);
  }));

  test('the token goes with it, and nothing but a POST of the address', () => withRecipients(async ({ ask, kit }) => {
    kit.answer = (request, body, response) => {
      assert.deepEqual([request.method, request.headers.authorization, request.headers['content-type']], ['POST', 'Bearer letmein', 'application/json']);
      assert.deepEqual(JSON.parse(body), { address: '"a\u0000b"@x.example' });
      response.writeHead(200).end('{}');
    };
    assert.deepEqual(await ask('"a\u0000b"@x.example'), [HERE]);
  }));

  test('names of routes count in what all answers may hold', () => withRecipients(async ({ kit, table }) => {
    kit.answer = (_request, _body, response) => { response.writeHead(200).end(JSON.stringify({ route: 'r'.repeat(200) })); };
    // 270 of them with 100 characters each are just below 16 Mi, with 200 more just above.
    const keys = Array.from({ length: 270 }, (_none, i) => `${String(i)}@x.example`.padStart(62_000, 'k'));
    await new Promise<void>((resolve) => { table.learn(keys, () => { resolve(); }); });
    assert.equal(keys.filter((key) => table.find(key) === NOT_ASKED).length, 1);
  }));

  const unclear: readonly (readonly [string, Answer])[] = [
    ...UNCLEAR, ['a route that is none', (_request, _body, response) => { response.writeHead(200).end('{"route": 1}'); }],
    ['a route whose name none can have', (_request, _body, response) => { response.writeHead(200).end(`{"route": "${'r'.repeat(201)}"}`); }],
    ['targets that are none', (_request, _body, response) => { response.writeHead(200).end('{"to": "anna@x.example"}'); }],
  ];
  for (const [what, answer] of unclear) {
    test(`${what} is no answer, told once a minute and asked again after a second`, () => withRecipients(async ({ ask, kit, table }) => {
      kit.answer = answer;
      assert.deepEqual(await ask('anna@x.example'), ['nobody can tell']);
      kit.nowMs = 999;
      assert.throws(() => table.find('anna@x.example'));
      kit.nowMs = 1000;
      assert.equal(table.find('anna@x.example'), NOT_ASKED);
      assert.deepEqual(await ask('anna@x.example'), ['nobody can tell']);
      assert.equal(kit.told.length, 1);
      kit.answer = (_request, _body, response) => { response.writeHead(200).end('{}'); };
      kit.nowMs = 2000;
      assert.deepEqual(await ask('anna@x.example', 'bob@x.example'), [HERE, HERE]);
      assert.equal(kit.told.at(-1), 'recipients are looked up by HTTP again');
      assert.equal(kit.told.length, 2);
    }, 500));
  }
});
