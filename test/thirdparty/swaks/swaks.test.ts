/** swaks, the tester's client, sends through Twinpost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertUntouched, mustRun, readMaildir, runProgram, withMailbox } from '../support.js';

const CONTENT = 'Subject: from swaks\r\nFrom: <a@client.example>\r\n\r\nline\r\n.\r\n..two dots\r\n\r\nend\r\n';

test('swaks delivers a message to two recipients, with and without pipelining', () =>
  withMailbox(async (cluster) => {
    const to = 'one@a.example,two@b.example';
    const common = ['--server', `127.0.0.1:${cluster.smtpPort}`, '--from', 'a@client.example', '--to', to, '--no-data-fixup', '--data', '-'];
    // swaks writes the final dot itself when it may not mend the data.
    const wire = CONTENT.replace(/\r\n\./g, '\r\n..') + '.';
    await mustRun('swaks', common, wire);
    await mustRun('swaks', [...common, '--pipeline'], wire);
    await cluster.sinkHas(4);
    const kept = readMaildir(cluster.maildir);
    assert.equal(kept.length, 4);
    for (const message of kept) assertUntouched(message, Buffer.from(CONTENT), 'swaks');
  }, { domains: ['a.example', 'b.example'] }));

test('swaks gets a 5xx for a message above the size limit', () =>
  withMailbox(
    async (cluster) => {
      const data = `Subject: large\n\n${`${'x'.repeat(70)}\n`.repeat(2000)}`;
      const args = ['--server', `127.0.0.1:${cluster.smtpPort}`, '--from', 'a@client.example', '--to', 'b@a.example', '--data', '-'];
      const ended = await runProgram('swaks', args, data);
      assert.notEqual(ended.code, 0);
      assert.match(ended.output, /<\*\* +55\d /);
    },
    { gateway: { smtp: { message_size_limit: '64KiB' } } },
  ));
