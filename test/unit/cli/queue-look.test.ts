/** `twinpost queue show`, `cat`, `find` and `ages` over two gateways: what is added up, what is escaped, and the exit codes. */
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, beforeEach, describe, test } from 'node:test';
import type { AgeCounts, AgesAnswer, FindAnswer, ShownEntry, ShownMessageAnswer } from '../../../src/admin-api/look.js';
import { runCli } from '../../../src/cli/main.js';
import { encodeEntryPage } from '../../../src/protocol/entry-page.js';
import { ENTRY_ROW_BYTES, writeEntryRow } from '../../../src/protocol/entry-rows.js';
import { contextFor } from './played-context.js';
import { MESSAGE, QUEUE } from './sample-answers.js';

const ID = '0123456789A';

type Answer = (path: string, response: http.ServerResponse) => void;
const answers: Answer[] = [];
const servers = [0, 1].map((index) => http.createServer((request, response) => {
  request.resume();
  const { pathname, search } = new URL(request.url ?? '', 'http://localhost');
  if (pathname !== '/api/v1/group') return answers[index]?.(`${pathname}${pathname.endsWith('/export') ? search : ''}`, response);
  const members = addresses.map((admin, at) => ({ id: `gw-${String(at + 1)}`, kind: 'gateway', admin, away: false, self: at === index }));
  response.end(JSON.stringify({ members }));
}));
const addresses: readonly string[] = await Promise.all(servers.map(async (server) => {
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return `127.0.0.1:${String((server.address() as AddressInfo).port)}`;
}));
after(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

const refuses: Answer = (_path, response) => { response.writeHead(503).end('{"error":"ask again in a moment"}'); };

function tells(answer: object): Answer {
  return (_path, response) => { response.end(JSON.stringify(answer)); };
}

beforeEach(() => { answers.splice(0, 2, refuses, refuses); });

async function run(args: readonly string[], isScreen = false): Promise<{ readonly code: number; readonly out: string; readonly errors: readonly string[] }> {
  const printed: string[] = [];
  const context = contextFor(printed);
  const code = await runCli(['queue', ...args, '--from', addresses[0] ?? ''], { ...context, terminal: { ...context.terminal, isScreen } });
  return { code, out: printed.filter((one) => !one.startsWith('! ')).join('\n'), errors: printed.filter((one) => one.startsWith('! ')) };
}

const ENTRY: ShownEntry = {
  ...MESSAGE, recipients: [{ address: 'b@late.example', state: 'waiting', last_reply: '451 not now\u001b[2J' }], partition: 'gw-1/1', epoch: 3,
  next_hop: 'smtp://mx:25', order: 'fifo', client: '192.0.2.1', helo: 'me', why: 'it waits for its next attempt',
  copies: [{ store: 'store-a', sync: 'SYNC', has: true }, { store: 'store-b', sync: 'NG', has: false }],
};

function shown(entries: readonly ShownEntry[], incomplete = false): ShownMessageAnswer {
  return { queue_id: ID, entries, incomplete };
}

test('queue list suggests the queue that was probably meant', async () => {
  const queue = { queue_name: 'strict', queue_class: 'mail' };
  answers.splice(0, 2, tells({ rows: [{ ...QUEUE, ...queue }], next_cursor: null }), tells({ rows: [], next_cursor: null }));
  assert.deepEqual((await run(['list', 'strit'])).errors, ["! twinpost: there is no queue 'strit'. Did you mean strict?"]);
  assert.deepEqual((await run(['list', 'slow.example'])).errors, ["! twinpost: there is no queue 'slow.example'; mail by domain shows twinpost queue find --domain slow.example"]);
  const many = Array.from({ length: 10_001 }, (_, i) => ({ ...QUEUE, queue_name: `strict${String(i || '')}` }));
  answers.splice(0, 1, tells({ rows: many, next_cursor: null }));
  assert.deepEqual((await run(['list', 'strit'])).errors, ["! twinpost: there is no queue 'strit'; twinpost queue summary lists them"], 'among so many it would take seconds');
  assert.deepEqual((await run(['list', 'other'])).errors, ["! twinpost: there is no queue 'other'; twinpost queue summary lists them"]);
});

describe('queue show', () => {
  test('prints what is known, and nothing that a terminal obeys', async () => {
    answers.splice(0, 2, tells(shown([])), tells(shown([ENTRY])));
    const { code, out, errors } = await run(['show', ID]);
    assert.deepEqual([code, errors], [0, []]);
    assert.match(out, /^0123456789A\n {2}state +queued: it waits for its next attempt\n {2}gateway +gw-2, in the place of gw-1\n/);
    assert.match(out, /^ {2}copies +store-a SYNC; store-b NG, which lacks it$/m);
    assert.match(out, /^ {2}b@late\.example +waiting +451 not now\\u001b\[2J$/m);
    assert.match(out, /^[\x20-\x7e\n]*$/);
  });

  test('ends with 1 when nobody has it, and with 3 when somebody could not tell, whatever others have', async () => {
    answers.splice(0, 2, tells(shown([])), tells(shown([])));
    assert.deepEqual((await run(['show', ID])).code, 1);
    answers[1] = tells(shown([], true));
    const unsure = await run(['show', ID]);
    assert.deepEqual([unsure.code, unsure.errors], [3, [`! twinpost: no gateway that answers has message ${ID} in a queue: twinpost find --id ${ID} asks their logs; gw-2 has not all of its mail back yet`]]);
    answers[1] = refuses;
    const silent = await run(['show', ID, '--json']);
    assert.equal(silent.code, 3);
    assert.match(silent.out, /"partial":true,"member":"gw-2".*ask again in a moment/);
    answers.splice(0, 2, tells(shown([ENTRY])), refuses);
    assert.equal((await run(['show', ID])).code, 3, 'another may hold it for other recipients');
    answers[1] = tells(shown([], true));
    const more = await run(['show', ID]);
    assert.deepEqual([more.code, more.errors], [3, [`! twinpost: there may be more of message ${ID}; gw-2 has not all of its mail back yet`]]);
  });
});

describe('queue cat', () => {
  const content = Buffer.from('Subject: \u001b[2J\r\n\tfolded\r\n\r\nzw\u00f6lf \u009b31m', 'utf8');
  let part = 'all';
  const page: Answer = (path, response) => {
    assert.equal(path, `/api/v1/messages/${ID}/export?part=${part}`);
    const rows = new Uint8Array(ENTRY_ROW_BYTES);
    writeEntryRow(new DataView(rows.buffer), 0, 0, content.length, 3, 0, 0, 0, 7, 1, 64);
    response.end(encodeEntryPage(rows, Buffer.concat([content, Buffer.from('xyz')])));
  };
  const none: Answer = (_path, response) => { response.writeHead(404).end('{"error":"none"}'); };

  test('writes the bytes as they are, but not to a terminal', async () => {
    answers.splice(0, 2, none, page);
    const raw = await run(['cat', ID]);
    assert.deepEqual([raw.code, raw.out], [0, content.toString('latin1')]);
    const escaped = await run(['cat', ID], true);
    assert.equal(escaped.out, 'Subject: \\u001b[2J\n\tfolded\n\nzw\u00f6lf \\u009b31m');
    part = 'header';
    assert.equal((await run(['cat', ID, '--headers'])).code, 0, 'the gateway gives the header alone');
    part = 'all';
  });

  test('says why a gateway did not give it', async () => {
    answers.splice(0, 2, none, none);
    assert.equal((await run(['cat', ID])).code, 1);
    answers[1] = refuses;
    const { code, out, errors } = await run(['cat', ID]);
    assert.deepEqual([code, out], [3, '']);
    assert.match(errors.join('\n'), /gw-2 at \S+: it refused: ask again in a moment/);
  });

  test('says no word of a message that no gateway would speak of', async () => {
    const forbidden: Answer = (_path, response) => { response.writeHead(403).end('{"error":"your token may not read content"}'); };
    answers.splice(0, 2, forbidden, forbidden);
    const { code, errors } = await run(['cat', ID]);
    assert.equal(code, 1);
    assert.deepEqual(errors.map((line) => /^! twinpost: gw-\d at \S+: (.*)$/.exec(line)?.[1]), Array.from({ length: 2 }, () => 'it refused: your token may not read content'));
  });
});

describe('queue find', () => {
  const found: FindAnswer = { messages: [{ ...MESSAGE, queue_id: ID }], more: false, unread: 0, looked_share: 1, incomplete: false };
  const none: FindAnswer = { ...found, messages: [] };

  test('lists what each gateway has, says where there is more, and ends with 1 when there is nothing', async () => {
    answers.splice(0, 2, tells({ ...found, more: true }), tells(found));
    const { code, out, errors } = await run(['find', '--sender', 'a@*', '--limit', '1']);
    assert.equal(code, 0);
    assert.equal(out.split(ID).length, 3);
    assert.deepEqual(errors, ['! twinpost: gw-1 has more than 1 such messages']);
    answers.splice(0, 2, tells(none), tells(none));
    assert.equal((await run(['find', '--sender', 'a@*'])).code, 1);
    answers[1] = tells({ ...none, unread: 2 });
    const unsure = await run(['find', '--sender', 'a@*']);
    assert.deepEqual([unsure.code, unsure.errors], [3, ['! twinpost: gw-2 could not look into 2 messages: at the stores alone, or not readable']]);
    assert.equal((await run(['find'])).code, 2);
  });
});

describe('queue ages', () => {
  const counts = (...first: readonly number[]): AgeCounts => Array.from({ length: 10 }, (_, i) => first[i] ?? 0);
  const ages: AgesAnswer = {
    gateway: 'gw-1', by: 'domain', total: counts(3, 1), keys: [{ key: 'a.example', counts: counts(3) }, { key: 'b.example', counts: counts(0, 1) }],
    others: counts(), unread: counts(), looked_share: 1, incomplete: false,
  };

  test('adds up what the gateways have counted, the largest first', async () => {
    answers.splice(0, 2, tells(ages), tells({ ...ages, total: counts(0, 9, 1), keys: [{ key: 'b.example', counts: counts(0, 9) }], others: counts(0, 0, 1), unread: counts(7) }));
    const { code, out } = await run(['ages']);
    assert.equal(code, 0);
    assert.deepEqual(out.split('\n').map((line) => line.trim().split(/ {2,}/).slice(0, 5)), [
      ['T', '5', '10', '20', '40'], ['TOTAL', '14', '3', '10', '1'], ['b.example', '10', '0', '10', '0'], ['a.example', '3', '3', '0', '0'],
      ['(others)', '1', '0', '0', '1'], ['(envelope at the stores)', '7', '7', '0', '0'],
    ]);
    const short = await run(['ages', '--limit', '1', '--json']);
    assert.deepEqual(short.out.split('\n').map((line) => (JSON.parse(line) as { key: string; kind: string }).kind), ['total', 'key', 'others', 'unread']);
    assert.match((await run(['ages', '--limit', '1'])).out, /-- 1 of 2 rows; --limit shows more$/);
  });

  test('ends with 3 when somebody could not count, or not all', async () => {
    answers.splice(0, 2, tells(ages), tells({ ...ages, looked_share: 0.25 }));
    const { code, errors } = await run(['ages']);
    assert.deepEqual([code, errors], [3, ['! twinpost: gw-2 has counted 25 % of its mail']]);
    answers[1] = refuses;
    assert.equal((await run(['ages'])).code, 3);
  });
});

test('inbox names another sink where none answers, and queue delay says that one of the two times is wanted', async () => {
  const printed: string[] = [];
  assert.equal(await runCli(['inbox', '--from', '127.0.0.1:1'], contextFor(printed)), 1);
  assert.match(printed.join(), /is it running\? --from ADDRESS names another sink/);
  const { code, errors } = await run(['delay', '--everything', '--until', '12:00', '--for', '1h', '--reason', 'x']);
  assert.equal(code, 2);
  assert.match(errors.join(), /say --until TIME or --for DURATION, one of them/);
});
