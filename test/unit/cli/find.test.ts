/** `twinpost find` over two gateways: what queues and logs tell becomes one line a message, and the exit codes. */
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, beforeEach, describe, test } from 'node:test';
import type { LoggedAnswer, LoggedMessage, LoggedQuestion } from '../../../src/admin-api/logged.js';
import type { FindAnswer, FindQuestion } from '../../../src/admin-api/look.js';
import type { FoundMessage } from '../../../src/cli/found-mail.js';
import { runCli } from '../../../src/cli/main.js';
import { contextFor } from './played-context.js';
import { MESSAGE } from './sample-answers.js';

const ID = '0123456789A';
const OTHER = '0123456789B';

/** Of one gateway; undefined: it refuses. */
interface Played {
  logged?: (question: LoggedQuestion) => Partial<LoggedAnswer>;
  find?: (question: FindQuestion) => Partial<FindAnswer>;
}

const played: Played[] = [];
const asked: string[] = [];
const servers = [0, 1].map((index) => http.createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => { chunks.push(chunk); });
  request.on('end', () => { answer(index, request.url ?? '', Buffer.concat(chunks).toString(), response); });
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

function answer(index: number, path: string, body: string, response: http.ServerResponse): void {
  const { logged, find } = played[index] ?? {};
  const tell = (told: object): void => { response.end(JSON.stringify(told)); };
  if (path === '/api/v1/group') {
    return tell({ members: addresses.map((admin, at) => ({ id: `gw-${String(at + 1)}`, kind: 'gateway', admin, away: false, self: at === index })) });
  }
  const question = JSON.parse(body) as LoggedQuestion & FindQuestion;
  const what = path === '/api/v1/find' ? JSON.stringify(question.selector) : question.onward === true ? `onward ${(question.ids ?? []).join()}` : 'log';
  if (index === 0) asked.push(what);
  if (path === '/api/v1/logged' && logged !== undefined) {
    return tell({
      messages: [], more: false, why: '', read_from_ms: question.since_ms, read_to_ms: question.until_ms, begins_ms: 0, unread_files: 0, ...logged(question),
    });
  }
  if (path === '/api/v1/find' && find !== undefined) return tell({ messages: [], more: false, unread: 0, looked_share: 1, incomplete: false, ...find(question) });
  response.writeHead(503).end('{"error":"ask again in a moment"}');
}

const nothing = (): object => ({});

beforeEach(() => {
  played.splice(0, 2, { logged: nothing, find: nothing }, { logged: nothing, find: nothing });
  asked.length = 0;
});

async function run(...args: readonly string[]): Promise<{ readonly code: number; readonly out: readonly string[]; readonly errors: readonly string[] }> {
  const printed: string[] = [];
  const code = await runCli(['find', ...args, '--from', addresses[0] ?? ''], contextFor(printed));
  return { code, out: printed.filter((one) => !one.startsWith('! ')).join('\n').split('\n'), errors: printed.filter((one) => one.startsWith('! ')) };
}

const AT = Date.parse('2026-01-31T10:00:00.000Z');

function message(recipients: readonly Partial<LoggedMessage['recipients'][number]>[], facts: Partial<LoggedMessage> = {}): LoggedMessage {
  return {
    queue_id: ID, message_id: '<m@a.example>', arrival_ms: AT, sender: 'a@a.example', message_size: 70, recipient_count: 1, ...facts,
    recipients: recipients.map((one) => ({ address: 'b@b.example', given: '', state: 'delivered', at_ms: AT + 1000, gateway: 'gw-1', relay: 'mx[192.0.2.1]:25', reply: '250 OK', ...one })),
  };
}

describe('find', () => {
  test('shows one line a message, of those that wait and those that have left', async () => {
    played[0] = { logged: () => ({ messages: [message([{}, { address: 'c@b.example' }, { address: 'd@b.example', state: 'bounced', reply: '550 \u001b[2J\u009b' }], { recipient_count: 3 })] }), find: nothing };
    played[1] = { logged: nothing, find: () => ({ messages: [{ ...MESSAGE, queue_id: OTHER, sender: '', arrival_time: AT / 1000 + 60, recipients: [{ address: 'e@b.example', delay_reason: '4.4.1 refused' }] }] }) };
    const { code, out, errors } = await run('--sender', '*');
    assert.deepEqual([code, errors], [0, []]);
    assert.deepEqual(out.map((line) => line.split(/ {2,}/)), [
      ['ID', 'CAME', 'FROM', 'TO', 'STATE', 'WHERE', 'LAST REPLY'],
      [ID, '2026-01-31 10:00:00', 'a@a.example', 'b@b.example, c@b.example +1', 'delivered 2, bounced 1', 'gw-1 mx[192.0.2.1]:25', '550 \\u001b[2J\\u009b'],
      [OTHER, '2026-01-31 10:01:00', '<>', 'e@b.example', MESSAGE.state, 'gw-2', '4.4.1 refused'],
    ]);
    assert.deepEqual(asked.sort(), ['log', '{"sender":"*"}'], 'nothing is open');
    const { out: lines } = await run('--sender', '*', '--limit', '1', '--json');
    const found = JSON.parse(lines[0] ?? '') as FoundMessage;
    assert.deepEqual([lines.length, found.queue_id, found.arrival_time, found.state, found.recipients], [
      1, OTHER, AT / 1000 + 60, MESSAGE.state, [{ address: 'e@b.example', state: MESSAGE.state, gateway: 'gw-2', time: null, relay: '', last_reply: '4.4.1 refused' }],
    ]);
  });

  test('follows a Message-ID to where the message is now: a queue, or the log of who took it over', async () => {
    const open = message([{ state: 'received', relay: '', reply: '' }]);
    played[0] = { logged: ({ onward }) => ({ messages: onward === true ? [] : [open] }), find: nothing };
    played[1] = { logged: ({ onward }) => ({ messages: onward === true ? [message([{ gateway: 'gw-2' }], { message_id: '', recipient_count: null })] : [] }), find: nothing };
    const left = await run('--message-id', 'm@a.example', '--rcpt', 'B@b.example');
    assert.deepEqual([left.code, left.errors, asked], [0, [], ['log', `{"ids":["${ID}"]}`, `onward ${ID}`]]);
    assert.match(left.out[1] ?? '', /delivered +gw-2 mx\[192\.0\.2\.1\]:25 +250 OK$/);
    played[1] = { logged: nothing, find: () => ({ messages: [{ ...MESSAGE, queue_id: ID, recipients: [{ address: 'b@b.example' }], state: 'held' }] }) };
    asked.length = 0;
    const waits = await run('--message-id', 'm@a.example');
    assert.deepEqual([waits.code, asked], [0, ['log', `{"ids":["${ID}"]}`]], 'it waits: no log has its end');
    assert.match(waits.out[1] ?? '', /b@b\.example +held +gw-2$/);
    assert.equal((await run('--message-id', 'm@a.example', '--rcpt', 'x@b.example')).code, 1);
    assert.equal((await run('--message-id', 'm@a.example', '--sender', 'x@a.example')).code, 1);
  });

  test('believes a log that tells the end before a queue that was asked a moment earlier, and shows an alias once', async () => {
    played[0] = {
      logged: () => ({ messages: [message([{}]), message([{ state: 'received' }], { queue_id: OTHER })] }),
      find: () => ({ messages: [{ ...MESSAGE, queue_id: ID, recipients: [{ address: 'b@b.example' }] }, { ...MESSAGE, queue_id: OTHER, recipients: [{ address: 'x@b.example' }] }] }),
    };
    const { out } = await run('--id', ID, '--id', OTHER);
    assert.deepEqual(out.slice(1).map((line) => line.split(/ {2,}/).slice(3, 5)).sort(), [['b@b.example', 'delivered'], ['x@b.example', MESSAGE.state]]);
  });

  test('ends with 3 when somebody could not look, or not at all, and says what was not seen', async () => {
    const told = async (logged: Partial<LoggedAnswer>, ...more: readonly string[]): Promise<readonly [number, readonly string[]]> => {
      played[1] = { logged: () => logged, find: nothing };
      const { code, errors } = await run('--sender', 'a@*', ...more);
      return [code, errors];
    };
    assert.deepEqual(await told({}), [1, []]);
    assert.deepEqual(await told({ why: 'it goes to stdout' }), [3, ['! twinpost: the log of gw-2 was not read: it goes to stdout']]);
    assert.deepEqual(await told({ unread_files: 2 }), [3, ['! twinpost: gw-2 has 2 rotated logs of that time that it does not read']]);
    const late = { read_from_ms: Date.parse('2100-01-01') };
    assert.deepEqual(await told(late), [3, ['! twinpost: gw-2 had no time to read its log further back than 2100-01-01T00:00:00Z']]);
    assert.deepEqual(await told({ ...late, more: true }), [1, ['! twinpost: the log of gw-2 has more than 100 such messages']]);
    assert.deepEqual(await told({ begins_ms: Date.parse('2100-01-01') }), [1, ['! twinpost: the log of gw-2 begins at 2100-01-01T00:00:00Z']]);
    played[1] = { logged: nothing, find: () => ({ looked_share: 0.5 }) };
    const half = await run('--sender', 'a@*');
    assert.deepEqual([half.code, half.errors], [3, ['! twinpost: gw-2 has looked at 50 % of its mail']]);
    played[1] = {};
    const silent = await run('--sender', 'a@*', '--json');
    assert.equal(silent.code, 3);
    assert.match(silent.out.join(), /"partial":true,"member":"gw-2".*ask again in a moment/);
    played[0] = {};
    assert.equal((await run('--sender', 'a@*')).code, 1, 'nobody could');
  });

  test('says so when what is open may have ended in a part of a log that there was no time for', async () => {
    played[0] = { logged: ({ onward }) => ({ messages: [message([{ state: 'deferred' }])], ...(onward === true ? { read_to_ms: AT } : {}) }), find: nothing };
    const { code, out, errors } = await run('--message-id', 'm@a.example');
    assert.deepEqual([code, errors], [3, ['! twinpost: gw-1 had no time to read its log past 2026-01-31T10:00:00Z']]);
    assert.match(out[1] ?? '', / deferred /);
  });

  test('takes times as they are said, and refuses what it can not ask', async () => {
    const questions: LoggedQuestion[] = [];
    const selectors: string[] = [];
    played[0] = {
      logged: (question) => { questions.push(question); return {}; },
      find: ({ selector }) => { selectors.push(JSON.stringify(selector)); return {}; },
    };
    await run('--since', '2h');
    await run('--rcpt', 'b@*', '--since', '2026-01-31T10:00Z', '--until', '2026-01-31T11:00Z');
    await run('--rcpt', 'b@*');
    const spans = questions.map(({ since_ms: sinceMs, until_ms: untilMs }) => (untilMs - sinceMs) / 3_600_000);
    assert.deepEqual(spans, [3, 1, 25], 'an hour more: clocks of gateways may be ahead');
    assert.deepEqual([questions[1]?.since_ms, questions[1]?.recipient], [AT, 'b@*']);
    assert.equal(selectors[0], '{"newer_than_seconds":7200}');
    assert.match(selectors[1] ?? '', /^\{"recipient":"b@\*","newer_than_seconds":\d+,"older_than_seconds":\d+\}$/);
    assert.equal(selectors[2], '{"recipient":"b@*"}', 'one that waits is found however old it is');
    for (const args of [
      [], ['--since', 'yesterday'], ['--since', '1h', '--until', '2h'], ['--id', 'x'], ['--sender', 'a@*', '--limit', '0'], ['--sender', 'x'.repeat(600)], ['--sender', ''],
      ['--id', ID, '--message-id', 'm'], ['--rcpt', 'a', '--rcpt', 'b'], ['--nothing'],
    ]) assert.equal((await run(...args)).code, 2, args.join(' '));
  });
});
