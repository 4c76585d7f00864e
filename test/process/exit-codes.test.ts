/**
 * Exit codes of the verbs that ask a group, as docs/LOOK.md says: 0; 1 something is wrong, or nothing matched; 2 wrong
 * usage; 3 somebody could not be asked.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';
import { twinpost } from './twinpost.js';

type Row = readonly [wanted: number, ...args: readonly string[]];

const WHY = ['--reason', 'a test'];
const NOBODY = ['--sender', 'nobody@nowhere.example'];

describe('the exit code', { timeout: 840_000 }, () => {
  let cluster: Cluster;
  before(async () => {
    // Port 1 is nobody's: mail stays, and its next hop is an error of the status.
    const none = `smtp://${HOST}:1`;
    cluster = await startCluster({ gateways: 2, group: true, sink: false, routes: [{ domain: '*', via: none }] });
  });
  after(() => cluster.stop());

  /** All of them at the first gateway; none tells of another's state. */
  const judge = async (rows: readonly Row[]): Promise<void> => {
    const wrong: string[] = [];
    const left = [...rows];
    const inTurn = async (): Promise<void> => {
      for (let row = left.shift(); row !== undefined; row = left.shift()) {
        const [wanted, ...args] = row;
        const { code, out, error } = await twinpost([...args, '--from', `${HOST}:${String(cluster.adminPort)}`]);
        if (code !== wanted) wrong.push(`${args.join(' ')}: ${String(code)}, not ${String(wanted)}: ${out.slice(0, 200)} ${error}`);
      }
    };
    await Promise.all([inTurn(), inTurn(), inTurn()]);
    assert.deepEqual(wrong, []);
  };
  const firstId = async (): Promise<string> => {
    const { out } = await twinpost(['queue', 'list', '--json', '--limit', '1', '--only', '--from', `${HOST}:${String(cluster.adminPort)}`]);
    return (JSON.parse(out.split('\n')[0] ?? '') as { queue_id: string }).queue_id;
  };

  test('is 0 when all is told or done, 1 when nothing matched, 2 for wrong words', async () => {
    await judge([
      [0, 'status'], [0, 'status', '--json'], [0, 'queue', 'summary'], [0, 'queue', 'list'], [0, 'queue', 'ages'],
      [0, 'queue', 'orders'], [0, 'rules', 'list'], [0, 'store', 'status'], [0, 'store', 'verify'], [0, 'config', 'diff'], [0, 'config', 'show'],
      [0, 'rebalance', '--dry-run'],
      [1, 'queue', 'list', 'no-such-queue'], [1, 'queue', 'find', ...NOBODY], [1, 'queue', 'show', '000000000ZZ'],
      [1, 'queue', 'cat', '000000000ZZ'], [1, 'queue', 'delete', ...NOBODY, ...WHY],
      [1, 'rules', 'cancel', 'gw-9-9-9', ...WHY], [1, 'store', 'status', 'no-such-store'],
      [1, 'store', 'resync', 'store-a', '--partition', 'no-such/1', ...WHY],
      [2, 'stauts'], [2, 'queue', 'lst'], [2, 'queue', 'list', '--limit', '0'], [2, 'status', '--top', 'x'], [2, 'status', '--no-such'],
      [2, 'queue', 'show', 'no id'], [2, 'queue', 'find'], [2, 'find'], [2, 'queue', 'delete', ...WHY],
      [2, 'queue', 'suspend', ...WHY], [2, 'rules'],
    ]);
  });

  test('of the status is 1 while its first line is an error', async () => {
    for (const { smtpPort } of cluster.gateways) await runSend({ host: HOST, port: smtpPort, count: 3, domains: ['a.example'] });
    await until('the next hop is down', async () => (await cluster.status()).outages?.next_hops[0]?.waiting === 3);
    await judge([[1, 'status'], [1, 'status', '--json'], [0, 'queue', 'list'], [0, 'queue', 'find', '--everything'], [0, 'queue', 'show', await firstId()]]);
  });

  test('is 3 when somebody can not be asked, whatever the others tell', async () => {
    const id = await firstId();
    await cluster.gateways[1]?.gateway.kill();
    await judge([
      [3, 'status'], [3, 'status', '--json'], [3, 'queue', 'summary'], [3, 'queue', 'list'], [3, 'queue', 'list', 'no-such-queue'],
      [3, 'queue', 'ages'], [3, 'queue', 'find', '--everything'], [3, 'queue', 'find', ...NOBODY], [3, 'find', ...NOBODY], [3, 'queue', 'orders'],
      [3, 'rules', 'list'], [3, 'store', 'verify'], [3, 'config', 'diff'], [3, 'config', 'show'], [3, 'queue', 'show', '000000000ZZ'], [3, 'queue', 'show', id], [3, 'queue', 'cat', '000000000ZZ'],
      [3, 'queue', 'delete', '--everything', '--now', ...WHY],
      // What was asked for is here.
      [0, 'queue', 'cat', id], [0, 'store', 'status'], [0, 'queue', 'list', '--only'],
      [2, 'queue', 'list', '--limit', '0'],
    ]);
  });

  test('is 1 when nobody answers', async () => {
    await cluster.gateway.kill();
    await judge([[1, 'status'], [1, 'queue', 'list'], [1, 'find', ...NOBODY], [2, 'queue', 'find']]);
  });
});
