/** An admin port may be anybody's: whatever it answers, the command gets a right answer or one line of error, soon. */
import assert from 'node:assert/strict';
import http from 'node:http';
import net from 'node:net';
import type { AddressInfo } from 'node:net';
import { after, describe, test } from 'node:test';
import { AdminClient, NoAnswer, allRows } from '../../../src/cli/admin-client.js';
import { QUEUE, STATUS } from './sample-answers.js';
import { gatewayRoutes, groupRoutes } from '../../../src/admin-api/routes.js';
import { DISK_WAIT_MS } from '../../../src/gateway/admin/drained-stores.js';
import { DEFAULT_CLIENT_OPTIONS } from '../../../src/register/client/register-client.js';

/** What the port answers next. */
let answer: (request: http.IncomingMessage, response: http.ServerResponse) => void = () => {};
const server = http.createServer((request, response) => { answer(request, response); });
await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
const URL_OF_IT = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
const client = new AdminClient(`${URL_OF_IT}/`, { token: 'secret', ca: undefined }, 500);
after(() => {
  server.closeAllConnections();
  server.close();
});

function answers(body: string, code = 200): void {
  answer = (_request, response) => { response.writeHead(code).end(body); };
}

async function whyNot(asked: Promise<unknown>): Promise<string> {
  try {
    await asked;
  } catch (error) {
    assert.ok(error instanceof NoAnswer, String(error));
    return error.why;
  }
  return '';
}

describe('a port that speaks the other scheme', () => {
  test('is told apart from one that is not there, with the address to say', async (t) => {
    const secure = net.createServer((socket) => { socket.on('error', () => undefined).once('data', () => { socket.resetAndDestroy(); }); });
    await new Promise<void>((resolve) => { secure.listen(0, '127.0.0.1', resolve); });
    t.after(() => { secure.close(); });
    const access = { token: undefined, ca: undefined };
    const other = URL_OF_IT.replace('http:', 'https:');
    await assert.rejects(new AdminClient(other, access, 2_000).status(), { message: `${other}: it speaks no TLS: say ${URL_OF_IT}` });
    const url = `http://127.0.0.1:${String((secure.address() as AddressInfo).port)}`;
    await assert.rejects(new AdminClient(url, access, 2_000).status(), {
      message: `${url}: it closes the connection, as who speaks TLS does: say ${url.replace('http:', 'https:')} if so`,
    });
    await assert.rejects(new AdminClient('http://127.0.0.1:1', access, 2_000).status(), /connection refused; is it running\?/);
  });
});

describe('an answer', () => {
  test('of the right shape is passed on', async () => {
    answer = (request, response) => {
      assert.deepEqual([request.method, request.url, request.headers.authorization], ['GET', '/api/v1/status', 'Bearer secret']);
      response.end(JSON.stringify({ ...STATUS, later: 'field' }));
    };
    assert.deepEqual(await client.status(), STATUS);
  });

  test('of another shape is refused with the place that is wrong', async () => {
    answers(JSON.stringify({ ...STATUS, waiting: 'none' }));
    assert.match(await whyNot(client.status()), /^what answers is no Twinpost, or another release \(waiting: .*expected array/);
    answers('[1, 2]');
    assert.match(await whyNot(client.group()), /\(Invalid input: expected object, received array\)$/);
    answers('null');
    assert.match(await whyNot(client.queues('')), /\(Invalid input: expected object, received null\)$/);
  });

  test('that is no JSON, comes with an error, or never ends is refused in a few words', async () => {
    answers('<html>');
    assert.match(await whyNot(client.status()), /^what answers is no Twinpost, or another release \(no JSON\)$/);
    answers('{"error":"not now"}', 409);
    assert.equal(await whyNot(client.status()), 'it refused: not now');
    answers('{}', 500);
    assert.match(await whyNot(client.status()), /\(expected status 200, found 500\)$/);
    answers('', 401);
    assert.match(await whyNot(client.status()), /^it does not know this token/);
    answer = (_request, response) => { response.write('{'); };
    assert.equal(await whyNot(client.status()), 'nothing within 0.5 s');
  });

  test('longer than any page is not read to its end', async () => {
    let written = 0;
    answer = (_request, response) => {
      const chunk = ' '.repeat(1024 * 1024);
      const more = (): void => {
        while (!response.destroyed && written < 200) {
          written += 1;
          if (!response.write(chunk)) {
            response.once('drain', more);
            return;
          }
        }
      };
      more();
    };
    const patient = new AdminClient(URL_OF_IT, { token: undefined, ca: undefined }, 10_000);
    assert.equal(await whyNot(patient.status()), 'the answer is too long');
    assert.ok(written < 100, String(written));
  });
});

describe('a listing', () => {
  async function rowsOf(): Promise<number> {
    let rows = 0;
    for await (const row of allRows(client, (cursor) => client.queues(cursor))) rows += row.messages;
    return rows;
  }

  test('is read page after page to its end', async () => {
    answer = (request, response) => {
      const cursor = Number(new URL(request.url ?? '', URL_OF_IT).searchParams.get('cursor'));
      response.end(JSON.stringify({ rows: [QUEUE, QUEUE], next_cursor: cursor === 4 ? null : String(cursor + 1) }));
    };
    assert.equal(await rowsOf(), 10);
  });

  test('that leads in a circle ends with an error', async () => {
    answers(JSON.stringify({ rows: [QUEUE], next_cursor: '7' }));
    assert.match(await whyNot(rowsOf()), /its listing has no end/);
  });
});

test('what is written into the register is waited for longer than a gateway waits for that: its own answer comes', () => {
  const { addRule, cancelRule, leaveOrder, withdrawOrder, orderRetire } = gatewayRoutes;
  for (const { answerMs } of [addRule, cancelRule, leaveOrder, withdrawOrder, orderRetire]) {
    assert.ok(answerMs > DEFAULT_CLIENT_OPTIONS.callTimeoutMs + 1_000);
  }
});

test('that a store is drained is waited for longer than a gateway waits for its disk, at /api/v1/group, too', () => {
  const { each } = groupRoutes['orderDrainOfGroup'] ?? assert.fail('there is one');
  assert.ok((each.answerMs ?? 0) > DISK_WAIT_MS + 1_000);
});
