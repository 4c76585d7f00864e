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
  const { limit: _limit, selector, ...besides } = question;
  const what = path === '/api/v1/find' ? JSON.stringify({ ...selector, ...besides }) : question.onward === true ? `onward ${(question.ids ?? []).join()}` : 'log';
  if (index === 0) asked.push(what);
  if (path === '/api/v1/logged' && logged !== undefined) {
    return tell({
      messages: [], more: false, why: '', read_from_ms: question.since_ms, read_to_ms: question.until_ms, begins_ms: 0, lacks: [], unread_files: 0, ...logged(question),
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
      [ID, '2026-01-31T10:00:00Z', 'a@a.example', 'b@b.example, c@b.example +1', 'delivered 2, bounced 1', 'gw-1 mx[192.0.2.1]:25', '550 \\u001b[2J\\u009b'],
      [OTHER, '2026-01-31T10:01:00Z', '<>', 'e@b.example', MESSAGE.state, 'gw-2', '4.4.1 refused'],
    ]);
    assert.deepEqual(asked.sort(), ['log', '{"sender":"*"}'], 'nothing is open');
    const { out: lines } = await run('--sender', '*', '--limit', '1', '--json');
    const found = JSON.parse(lines[0] ?? '') as FoundMessage;
    assert.deepEqual([lines.length, found.queue_id, found.arrival_time, found.state, found.recipients], [
      1, OTHER, AT / 1000 + 60, MESSAGE.state, [{ address: 'e@b.example', state: MESSAGE.state, gateway: 'gw-2', time: null, relay: '', last_reply: '4.4.1 refused' }],
    ]);
  });

  test('shows a recipient by his domain, in Unicode or as A-labels', async () => {
    played[0] = { logged: () => ({ messages: [message([{ address: 'b@bücher.example' }, { address: 'c@bücher.example' }], { recipient_count: 2 })] }), find: nothing };
    const found = await run('--rcpt', 'b@xn--bcher-kva.example', '--json');
    const { recipients } = JSON.parse(found.out[0] ?? '') as { recipients: readonly { address: string }[] };
    assert.deepEqual(recipients.map(({ address }) => address), ['b@bücher.example']);
  });

  test('follows a Message-ID to where the message is now: a queue, or the log of who took it over', async () => {
    const open = message([{ state: 'received', relay: '', reply: '' }]);
    played[0] = { logged: ({ onward }) => ({ messages: onward === true ? [] : [open] }), find: nothing };
    played[1] = { logged: ({ onward }) => ({ messages: onward === true ? [message([{ gateway: 'gw-2' }], { message_id: '', recipient_count: null })] : [] }), find: nothing };
    const left = await run('--message-id', 'm@a.example', '--rcpt', 'B@b.example');
    assert.deepEqual([left.code, left.errors, asked.sort()], [0, [], ['log', `onward ${ID}`, `{"everything":true,"recipient":"B@b.example","message_id":"m@a.example"}`, `{"ids":["${ID}"]}`]]);
    assert.match(left.out[1] ?? '', /delivered +gw-2 mx\[192\.0\.2\.1\]:25 +250 OK$/);
    played[1] = { logged: nothing, find: () => ({ messages: [{ ...MESSAGE, queue_id: ID, recipients: [{ address: 'b@b.example' }], state: 'held' }] }) };
    asked.length = 0;
    const waits = await run('--message-id', 'm@a.example');
    assert.deepEqual([waits.code, asked.sort()], [0, ['log', '{"everything":true,"message_id":"m@a.example"}']], 'it waits: no log has its end');
    assert.match(waits.out[1] ?? '', /b@b\.example +held +gw-2$/);
    assert.equal((await run('--message-id', 'm@a.example', '--rcpt', 'x@b.example')).code, 1);
    assert.equal((await run('--message-id', 'm@a.example', '--sender', 'x@a.example')).code, 1);
  });

  test('believes a log that tells the end before a queue that was asked a moment earlier, and shows an alias once', async () => {
    played[0] = {
      logged: () => ({ messages: [message([{}]), message([{ state: 'received' }], { queue_id: OTHER })] }),
      find: ({ selector: { ids = [] } }) => ({
        messages: [
          ...(ids.length === 1 ? [] : [{ ...MESSAGE, queue_id: ID, recipients: [{ address: 'b@b.example' }] }]), { ...MESSAGE, queue_id: OTHER, recipients: [{ address: 'x@b.example' }] },
        ],
      }),
    };
    const { out } = await run('--id', ID, '--id', OTHER);
    assert.deepEqual(out.slice(1).map((line) => line.split(/ {2,}/).slice(3, 5)).sort(), [['b@b.example', 'delivered'], ['x@b.example', MESSAGE.state]]);
    assert.deepEqual(asked.filter((one) => one.startsWith('{')), [`{"ids":["${ID}","${OTHER}"]}`, `{"ids":["${ID}"]}`], 'asked again whether it waits');
  });

  test('tells of a recipient who was delivered to, and waits at who took the message over, both', async () => {
    const waits = { ...MESSAGE, queue_id: ID, state: 'deferred' as const, recipients: [{ address: 'b@b.example' }] };
    played[0] = { logged: () => ({ messages: [message([{}])] }), find: nothing };
    played[1] = { logged: nothing, find: () => ({ messages: [waits] }) };
    const { code, out } = await run('--rcpt', 'b@*');
    assert.deepEqual([code, out[1]?.split(/ {2,}/).slice(3, 6)], [0, ['b@b.example', 'delivered 1, deferred 1', 'gw-2']]);
    played[0] = { logged: () => ({ messages: [message([{ state: 'bounced' }])] }), find: nothing };
    played[1] = { logged: nothing, find: () => ({ messages: [{ ...waits, recipients: [{ address: 'b@b.example', state: 'ending' }] }] }) };
    assert.match((await run('--rcpt', 'b@*')).out[1] ?? '', / {2}bounced {2}/, 'his report is owed');
  });

  test('finds in queues what no log tells: by Message-ID, by the name that an alias led on from, and who is only to be reported', async () => {
    const waits = { ...MESSAGE, queue_id: ID, recipients: [{ address: 'b@b.example', given: 'list@a.example' }] };
    played[1] = { logged: nothing, find: () => ({ messages: [waits] }) };
    const byId = await run('--message-id', '<m@a.example>', '--json');
    const { message_id: messageId, state } = JSON.parse(byId.out[0] ?? '') as FoundMessage;
    assert.deepEqual([byId.code, messageId, state], [0, '<m@a.example>', MESSAGE.state]);
    for (const rcpt of ['LIST@a.example', 'b@b.example']) assert.match((await run('--rcpt', rcpt)).out[1] ?? '', /b@b\.example/);
    played[0] = { logged: () => ({ messages: [message([{ address: 'list@a.example', state: 'received' }])] }), find: nothing };
    assert.match((await run('--rcpt', 'list@*')).out[1] ?? '', new RegExp(` b@b\\.example {2}${MESSAGE.state} `), 'one line, and the alias is none who waits');
    played[0] = { logged: nothing, find: nothing };
    played[1] = { logged: nothing, find: () => ({ messages: [{ ...waits, state: 'ending', recipients: [{ address: 'b@b.example', state: 'ending', delay_reason: '550 no' }] }] }) };
    assert.match((await run('--id', ID)).out[1] ?? '', /b@b\.example {2}ending {2}gw-2 +550 no$/);
    // Success is to be reported: nobody waits, and his end is asked for from when the message came.
    const froms: number[] = [];
    played[1] = {
      logged: ({ onward, since_ms: sinceMs }) => {
        if (onward === true) froms.push(sinceMs);
        return {};
      },
      find: () => ({ messages: [{ ...waits, state: 'ending', arrival_time: AT / 1000, recipients: [] }] }),
    };
    const ending = await run('--message-id', 'm@a.example');
    assert.deepEqual([ending.code, froms], [0, [AT]]);
    assert.match(ending.out[1] ?? '', / ending/);
  });

  test('is not sure that there is none where a gateway does not answer the second question', async () => {
    let questions = 0;
    const open = { ...nothing, messages: [message([{ state: 'received' }])] };
    for (const server of [0, 1]) {
      played[server] = { logged: () => open, find: nothing };
    }
    played[0] = {
      logged: () => open,
      find: () => {
        questions += 1;
        if (questions === 1) played.splice(0, 2, {}, {});
        return {};
      },
    };
    const { code, out } = await run('--id', ID);
    assert.equal(code, 3, out.join('\n'));
    assert.match(out.join('\n'), /PARTIAL: gw-1.*PARTIAL: gw-2/s);
  });

  test('follows the newest, and says of how many others it did not ask', async () => {
    const many = Array.from({ length: 700 }, (_, n) => [0, 1].map((gateway) => message([{ state: 'received' }], { queue_id: `0123456${String(gateway)}${String(n).padStart(3, '0')}`, arrival_ms: AT + n * 1000 })));
    played.splice(0, 2, ...[0, 1].map((gateway) => ({ logged: ({ onward }: LoggedQuestion) => ({ messages: onward === true ? [] : many.map((each) => each[gateway] ?? message([])) }), find: nothing })));
    assert.equal((await run('--sender', 'a@*', '--limit', '1000')).code, 0, 'those that are shown');
    const { code, errors } = await run('--sender', 'a@*', '--rcpt', 'x@*', '--limit', '1000');
    assert.deepEqual([code, errors], [3, [
      '! twinpost: nobody was asked what became of 400 older messages', '! twinpost: of 1,400 messages nobody tells all recipients: one may be meant',
    ]]);
    assert.deepEqual(asked.at(-1)?.slice(7, 30).split(',').sort(), ['01234560699', '01234561699']);
  });

  test('ends with 3 when somebody could not look, or not at all, and says what was not seen', async () => {
    const told = async (logged: Partial<LoggedAnswer>, ...more: readonly string[]): Promise<readonly [number, readonly string[]]> => {
      played[1] = { logged: () => logged, find: nothing };
      const { code, errors } = await run('--sender', 'a@*', ...more);
      return [code, errors];
    };
    assert.deepEqual(await told({}), [1, []]);
    assert.deepEqual(await told({ why: 'it goes to stdout' }), [3, ['! twinpost: the log of gw-2 was not read: it goes to stdout']]);
    assert.deepEqual(await told({ lacks: ['log.mail was off until noon'] }), [3, ['! twinpost: the log of gw-2 lacks lines: log.mail was off until noon']]);
    assert.deepEqual(await told({ unread_files: 2 }), [3, ['! twinpost: gw-2 has 2 rotated logs of that time that it does not read']]);
    const late = { read_from_ms: Date.parse('2100-01-01') };
    assert.deepEqual(await told(late), [3, ['! twinpost: the log of gw-2 was read back to 2100-01-01T00:00:00Z only']]);
    assert.deepEqual(await told({ ...late, more: true }), [3, ['! twinpost: the log of gw-2 has more than 100 such messages']], 'those may be meant');
    const [one, many] = [{ ...late, more: true, messages: [message([{}])] }, ['--limit', '1']];
    assert.deepEqual(await told(one, ...many), [0, ['! twinpost: the log of gw-2 has more than 1 such message']], 'as many as were asked for');
    assert.deepEqual(await told({ ...one, begins_ms: null }, '--rcpt', 'x@*', ...many), [3, ['! twinpost: the log of gw-2 has more than 1 such message']]);
    assert.deepEqual(await told({ begins_ms: null }), [3, ['! twinpost: the log of gw-2 has no lines']]);
    assert.deepEqual(await told({ begins_ms: Date.parse('2100-01-01') }), [3, ['! twinpost: the log of gw-2 begins at 2100-01-01T00:00:00Z']]);
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
    assert.deepEqual([code, errors], [3, ['! twinpost: the log of gw-1 was read to 2026-01-31T10:00:00Z only for what became of mail']]);
    assert.match(out[1] ?? '', / deferred /);
  });

  test('is not sure that there is none while nobody tells of all recipients, one of whom may be meant', async () => {
    const asked = ['--message-id', 'm@a.example', '--rcpt', 'x@b.example'];
    played[0] = { logged: () => ({ messages: [message([{}], { recipient_count: 2 })] }), find: nothing };
    const { code, out, errors } = await run(...asked);
    assert.deepEqual([code, out, errors], [3, ['no messages'], ['! twinpost: of 1 message nobody tells all recipients: one may be meant']]);
    played[0] = { logged: () => ({ messages: [message([{}])] }), find: nothing };
    assert.deepEqual((await run(...asked)).code, 1, 'all are told');
  });

  test('says what logs lack of the time since a message came that is open', async () => {
    const told = async (logged: Partial<LoggedAnswer>): Promise<readonly [number, readonly string[]]> => {
      played[0] = { logged: ({ onward }) => ({ messages: [message([{ state: 'deferred' }])], ...(onward === true ? logged : {}) }), find: nothing };
      const { code, errors } = await run('--id', ID);
      return [code, errors];
    };
    assert.deepEqual(await told({}), [0, []]);
    assert.deepEqual(await told({ why: 'no thread' }), [3, ['! twinpost: the log of gw-1 was not read: no thread']]);
    assert.deepEqual(await told({ lacks: ['lines were lost'] }), [3, ['! twinpost: the log of gw-1 lacks lines: lines were lost']]);
    assert.deepEqual(await told({ unread_files: 1 }), [3, ['! twinpost: gw-1 has 1 rotated log of that time that it does not read']]);
    assert.deepEqual(await told({ begins_ms: AT + 1000 }), [3, ['! twinpost: the log of gw-1 begins at 2026-01-31T10:00:01Z']]);
  });

  test('reads logs further back for a Message-ID, which the acceptance alone has', async () => {
    const [came, span] = [Date.parse('2026-01-28T10:00Z'), ['--message-id', 'm@a.example', '--since', '2026-01-31T09:00Z', '--until', '2026-01-31T11:00Z']];
    const spans: number[] = [];
    const received = message([{ state: 'received' }], { arrival_ms: came });
    played[0] = {
      logged: ({ since_ms: sinceMs, until_ms: untilMs, onward }) => {
        spans.push((untilMs - sinceMs) / 3_600_000);
        if (onward === true) return { messages: [message([{}], { recipient_count: null })] };
        return { messages: sinceMs <= came && came <= untilMs ? [received] : [] };
      },
      find: nothing,
    };
    const { code, out } = await run(...span);
    assert.deepEqual([code, spans.slice(0, 2)], [0, [2, 120]]);
    assert.match(out[1] ?? '', / 2026-01-28T10:00:00Z .* delivered /);
    played[0] = { logged: () => ({ begins_ms: came }), find: nothing };
    assert.deepEqual((await run(...span)).errors, ['! twinpost: the log of gw-1 begins at 2026-01-28T10:00:00Z']);
  });

  test('asks queues before logs, so that what ends between is told by one of them', async () => {
    let [isLogAsked, isQueueAsked] = [false, false];
    played[0] = {
      logged: () => { isLogAsked = true; return isQueueAsked ? { messages: [message([{}])] } : {}; },
      find: () => { isQueueAsked = true; return isLogAsked ? {} : { messages: [{ ...MESSAGE, queue_id: ID, recipients: [{ address: 'b@b.example' }] }] }; },
    };
    assert.equal((await run('--sender', 'a@*')).code, 0);
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
    assert.match(selectors[1] ?? '', /^\{"older_than_seconds":\d+,"newer_than_seconds":\d+\}$/);
    assert.equal(selectors[2], '{"everything":true}', 'one that waits is found however old it is');
    for (const args of [
      [], ['--since', 'yesterday'], ['--since', '1h', '--until', '2h'], ['--id', 'x'], ['--sender', 'a@*', '--limit', '0'], ['--sender', 'x'.repeat(600)], ['--sender', ''], ['--message-id', 'x'.repeat(249)],
      ['--id', ID, '--message-id', 'm'], ['--rcpt', 'a', '--rcpt', 'b'], ['--nothing'],
    ]) assert.equal((await run(...args)).code, 2, args.join(' '));
  });
});
