/** The example of a policy module: a stranger's mail has one author, who is none of us, however the field is written. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { onMessage } from '../../../../configs/hooks/policy.js';

const LONG = `X-Long: ${'x'.repeat(70_000)}\r\n`;

async function saidOf(header: string, user = ''): Promise<string> {
  const content = new Uint8Array(Buffer.from(`Received: by mx.test\r\n${header}\r\nFrom: in the body\r\n`, 'latin1'));
  const message = { queueId: '1', client: '192.0.2.1', helo: 'c', user, tls: '', from: 'a@b.example', recipients: ['c@d.example'], destinations: ['c@d.example'], content };
  const verdict = await onMessage(message);
  return verdict.action === 'refuse' ? verdict.text ?? '' : verdict.action;
}

describe('the example of a policy', () => {
  test('takes mail of strangers with one author, and mail of users', async () => {
    for (const header of ['From: a@client.example\r\n', 'Subject: x\r\nfrom : A\r\n <a@client.example>\r\nX-From: boss@example.com\r\n']) {
      assert.equal(await saidOf(header), 'accept', header);
    }
    for (const header of ['From: boss@example.com\r\n', '', LONG]) assert.equal(await saidOf(header, 'anna'), 'accept');
  });

  test('refuses an author of ours', async () => {
    for (const header of ['From: Boss <boss@EXAMPLE.com>\r\n', 'From:\r\n boss@example.com\r\n', 'FROM : boss@ example(it is).com\r\n', 'From: x\n boss@example.com\r\n']) {
      assert.match(await saidOf(header), /^You are not one of us/, header);
    }
  });

  test('refuses a second author, none, and a header that is not seen whole', async () => {
    const stranger = 'From: a@client.example\r\n';
    for (const header of [`${stranger}From: boss@example.com\r\n`, `${stranger}Subject: x\r\nfrom : boss@example.com\r\n`, 'Subject: x\r\n', `${LONG}${stranger}`, `${stranger}${LONG}From: boss@example.com\r\n`, `${stranger}X: y\nFrom: boss@example.com\r\n`]) {
      assert.match(await saidOf(header), /^Expected one From field/, header.slice(0, 80));
    }
  });
});
