/**
 * Haraka behind, which offers PIPELINING and refuses an envelope that comes with a final dot (RFC 2920 3.1): it takes
 * the message, and answers 503 to what stands behind it. Nothing is lost, nothing comes twice, and it happens once.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';

import { HOST, type Cluster } from '../../process/cluster.js';
import { freePorts } from '../../process/free-ports.js';
import { SmtpTalk } from '../../process/smtp-talk.js';
import { readMaildir, withMailbox } from '../support.js';
import { startHaraka, type Haraka } from './haraka.js';

const COUNT = 200;
const BOUND_MS = 60_000;
const TRIED = /command pipelined after end of DATA - refused/g;

/** Says of each message that the next hop took for whom it was. */
const TELLS = `const took = (next, connection, params) => {
  const { mail_from, rcpt_to } = connection.transaction;
  connection.loginfo('took ' + mail_from.user + ' for ' + rcpt_to.map((each) => each.user).join('+') + '.');
  next();
};
exports.hook_queue_ok = took;
`;

/**
 * By the number in the return address, modulo 5: 1 the second recipient is unknown; 2 DATA is refused once for now;
 * 3 the second recipient is, once; 4 DATA is refused for good.
 */
const REFUSES = `${TELLS}
const seen = new Set();
const isFirst = (what) => !seen.has(what) && Boolean(seen.add(what));
const kind = (connection) => Number(connection.transaction.mail_from.user.slice(1)) % 5;
exports.hook_rcpt = (next, connection, params) => {
  const { user } = connection.transaction.mail_from;
  if (params[0].user !== 'bob') return next();
  if (kind(connection) === 1) return next(DENY, 'nobody here');
  if (kind(connection) === 3 && isFirst('rcpt ' + user)) return next(DENYSOFT, 'not yet');
  next();
};
exports.hook_data = (next, connection) => {
  const { user } = connection.transaction.mail_from;
  if (kind(connection) === 2 && isFirst('data ' + user)) return next(DENYSOFT, 'not yet');
  next(kind(connection) === 4 ? DENY : CONT, 'not this');
};
`;

const bodyOf = (i: number): string => `${createHash('sha256').update(String(i)).digest('hex')}\r\n..\r\n`.repeat(i % 40 + 1);

interface Answered {
  readonly cluster: Cluster;
  readonly haraka: Haraka;
}

/** Sends all, each to anna and bob, by ten clients, to a gateway that has two connections to Haraka. */
async function withAllSent(plugin: string, body: (story: Answered) => Promise<void>): Promise<void> {
  const [nextHopPort = 0] = await freePorts(1);
  const haraka = await startHaraka({ nextHopPort, queue: 'smtp_forward', plugin });
  try {
    const routes = [{ domain: 'behind.example', via: `smtp://${HOST}:${String(haraka.port)}`, concurrency: 2 }];
    await withMailbox(async (cluster) => {
      await Promise.all(Array.from({ length: 10 }, (_none, first) => sendEvery(cluster.smtpPort, first, 10)));
      try {
        await body({ cluster, haraka });
      } catch (error) {
        throw new Error(`${String(error)}\n${haraka.log().slice(-4000)}`, { cause: error });
      }
    }, { routes, sinkSection: { listen: `${HOST}:${String(nextHopPort)}` }, mapSinkPort: () => nextHopPort });
  } finally {
    await haraka.stop();
  }
}

async function sendEvery(port: number, first: number, step: number): Promise<void> {
  const talk = await SmtpTalk.start(port);
  for (let i = first; i < COUNT; i += step) {
    for (const line of [`MAIL FROM:<s${String(i)}@client.example>`, 'RCPT TO:<anna@behind.example>', 'RCPT TO:<bob@behind.example>']) {
      assert.match(await talk.say(line), /^250 /);
    }
    assert.match(await talk.say('DATA'), /^354 /);
    // Each of its lines of one dot is stuffed to two.
    assert.match(await talk.say(`From: <s${String(i)}@client.example>\r\nSubject: number ${String(i)}\r\n\r\n${bodyOf(i)}.`), /^250 /);
  }
  talk.close();
}

/** For whom each copy was that Haraka took, by the number of the message. */
function taken({ haraka }: Answered): string[][] {
  const copies = Array.from({ length: COUNT }, (): string[] => []);
  for (const [, number, whom = ''] of haraka.log().matchAll(/took s(\d+) for ([a-z+]+)\./g)) copies[Number(number)]?.push(whom);
  return copies;
}

/** The numbers of the messages that the sink kept, each of which is whole. */
function kept({ cluster }: Answered): number[] {
  return readMaildir(cluster.maildir).map((message) => message.toString('latin1')).flatMap((text) => {
    const number = /^Subject: number (\d+)\r$/m.exec(text)?.[1];
    if (number === undefined || text.includes('multipart/report')) return [];
    assert.ok(text.endsWith(`\r\n\r\n${bodyOf(Number(number)).replaceAll('..\r\n', '.\r\n')}`), text);
    return [Number(number)];
  });
}

const numbers = (of: (i: number) => readonly string[]): (readonly string[])[] => Array.from({ length: COUNT }, (_none, i) => of(i));

test('messages to two recipients arrive once, in one piece, and one envelope behind a dot is tried', { timeout: 120_000 }, () =>
  withAllSent(TELLS, async (story) => {
    await story.cluster.drained(BOUND_MS);
    assert.deepEqual(taken(story), numbers(() => ['anna+bob']));
    assert.deepEqual(kept(story).sort((a, b) => a - b), Array.from({ length: COUNT }, (_none, i) => i));
    assert.equal(story.haraka.log().match(TRIED)?.length, 1);
    assert.doesNotMatch(story.cluster.gateway.log(), /"event":"(deferred|bounced|suspended)"/);
  }));

test('what Haraka refuses for good comes back, what it refuses for now arrives, and nothing comes twice', { timeout: 120_000 }, () =>
  withAllSent(REFUSES, async (story) => {
    await story.cluster.drained(BOUND_MS);
    const expected = [['anna+bob'], ['anna'], ['anna+bob'], ['anna', 'bob'], []];
    assert.deepEqual(taken(story), numbers((i) => expected[i % 5] ?? []));
    const copies = numbers((i) => expected[i % 5] ?? []).flatMap((each, i) => each.map(() => i));
    assert.deepEqual(kept(story).sort((a, b) => a - b), copies);
    assert.equal(story.haraka.log().match(TRIED)?.length, 1);
    const reports = readMaildir(story.cluster.maildir).map((message) => message.toString('latin1')).filter((text) => text.includes('multipart/report'));
    assert.equal(reports.length, 2 * COUNT / 5);
    const failed = reports.flatMap((text) => [...text.matchAll(/^Final-Recipient: rfc822; ?(\w+)@/gm)].map((found) => found[1]));
    assert.deepEqual([failed.filter((name) => name === 'anna').length, failed.filter((name) => name === 'bob').length], [COUNT / 5, 2 * COUNT / 5]);
  }));
