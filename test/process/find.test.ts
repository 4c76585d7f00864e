/** `twinpost find` at two gateways of real processes: mail that has left one, mail that waits at the other, and when one is dead. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { FoundMessage } from '../../src/cli/found-mail.js';
import { HOST, startCluster, until, type GatewayHandle } from './cluster.js';
import { SmtpTalk } from './smtp-talk.js';
import { twinpost } from './twinpost.js';

/** While its next hop is tried it is none of `queued`. */
const WAITS: ReadonlySet<string> = new Set(['queued', 'active', 'deferred']);

type Answer = Awaited<ReturnType<typeof twinpost>>;

function find({ adminPort }: GatewayHandle, ...args: readonly string[]): Promise<Answer> {
  return twinpost(['find', ...args, '--from', `${HOST}:${String(adminPort)}`]);
}

function told({ out }: Answer): readonly unknown[] {
  const messages = out.split('\n').filter((line) => line.startsWith('{"queue_id"')).map((line) => JSON.parse(line) as FoundMessage);
  return messages.map(({ queue_id: id, state, sender, recipients }) => [id, WAITS.has(state) ? 'waits' : state, sender, ...recipients.map(({ address, gateway }) => `${address} ${gateway}`)]);
}

async function submit({ smtpPort }: GatewayHandle, messageId: string, ...recipients: readonly string[]): Promise<string> {
  const talk = await SmtpTalk.start(smtpPort);
  await talk.say('MAIL FROM:<alice@senders.example>');
  for (const to of recipients) await talk.say(`RCPT TO:<${to}>`);
  await talk.say('DATA');
  const reply = await talk.say(`Message-ID: <${messageId}>\r\n\r\ntext\r\n.`);
  talk.close();
  return /\b[0-9A-HJKMNP-TV-Z]{11}\b/.exec(reply)?.[0] ?? '';
}

/** On a busy machine a gateway may not answer in time: then it says that it is not sure, and is asked again. */
async function sure(gateway: GatewayHandle, ...args: readonly string[]): Promise<Answer> {
  let answer = await find(gateway, ...args, '--json');
  for (let again = 0; answer.code === 3 && again < 5; again++) answer = await find(gateway, ...args, '--json');
  return answer;
}

describe('find', { timeout: 360_000 }, () => {
  test('tells of what has left one gateway and waits at another, through a rotation, and names who is dead', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'twinpost-find-'));
    t.after(() => { rmSync(folder, { recursive: true }); });
    const logOf = (gateway: number): string => join(folder, `mail-${String(gateway)}.log`);
    // So that the logs begin before the day that is read.
    for (const gateway of [0, 1]) writeFileSync(logOf(gateway), `{"time":"${new Date(Date.now() - 2 * 86_400_000).toISOString()}","event":"start"}\n`);
    const cluster = await startCluster({
      gateways: 2, group: true, routes: [{ domain: 'down.example', via: `smtp://${HOST}:1` }],
      gateway: { mirror: { lease: '4s', failover_timeout: '200ms', heartbeat: '50ms' } }, gatewayOf: (gateway) => ({ log: { file: logOf(gateway) } }),
    });
    t.after(() => cluster.stop());
    const [first, second] = cluster.gateways;
    assert.ok(first !== undefined && second !== undefined);
    await Promise.all([first.inSync(1), second.inSync(1)]);

    const left = await submit(first, 'left@talk.example', 'bob@a.example', 'eve@a.example');
    const waiting = await submit(second, 'waits@talk.example', 'bob@down.example');
    await cluster.sinkHas(1);
    await until('its ends are in the log', () => readFileSync(logOf(0), 'utf8').split('"event":"delivered"').length === 3);
    const hasLeft = [left, 'delivered', 'alice@senders.example', 'bob@a.example gateway-1', 'eve@a.example gateway-1'];
    const waits = [waiting, 'waits', 'alice@senders.example', 'bob@down.example gateway-2'];
    for (const [args, ...wanted] of [
      [['--message-id', '<left@talk.example>'], hasLeft], [['--message-id', 'waits@talk.example'], waits], [['--sender', 'alice@*'], hasLeft, waits],
      [['--rcpt', '*@down.example'], waits], [['--id', left, '--id', waiting], hasLeft, waits], [['--since', '1h'], hasLeft, waits],
      [['--rcpt', 'eve@a.example'], [...hasLeft.slice(0, 3), 'eve@a.example gateway-1']],
    ] as const) {
      const answer = await sure(second, ...args);
      assert.deepEqual([told(answer), answer.code], [wanted, 0], `${args.join(' ')}: ${answer.error}`);
    }
    const none = await find(first, '--sender', 'nobody@*');
    assert.deepEqual([none.code, none.out], [1, 'no messages\n']);
    const unsure = await find(first, '--sender', 'nobody@*', '--since', '3d');
    assert.deepEqual([unsure.code, unsure.out, unsure.error.match(/the log of gateway-[12] begins at/g)?.length], [3, 'no messages\n', 2]);
    const words = await find(first, '--rcpt', 'bob@a.example');
    assert.match(words.out, new RegExp(`^${left}  \\S+  alice@senders\\.example  bob@a\\.example \\+1  delivered  gateway-1 \\S+:\\d+  250 `, 'm'));

    renameSync(logOf(0), `${logOf(0)}.1`);
    assert.deepEqual(told(await sure(second, '--message-id', 'left@talk.example')), [hasLeft], 'it lies beside the log');

    await second.gateway.kill();
    const dead = await find(first, '--sender', 'alice@*', '--json');
    assert.equal(dead.code, 3);
    assert.deepEqual(told(dead)[0], hasLeft);
    assert.match(dead.out, /^\{"partial":true,"member":"gateway-2"/m);
    await until('who took it over tells of it', async () => told(await find(first, '--id', waiting, '--json')).join() === [...waits.slice(0, 3), 'bob@down.example gateway-1'].join(), 30_000, first.gateway);
  });
});
