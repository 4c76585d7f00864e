/** What reception counts of who submits most. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { InboundRecord } from '../../../../src/gateway/daemon/mail-record.js';
import { GatewayMetrics } from '../../../../src/observability/gateway-metrics.js';
import { memoryHarness } from '../../../dialog/harness.js';

test('who submits most is one sender however he writes his domain, letters and quotes', async () => {
  const record = new InboundRecord(new GatewayMetrics(), 0);
  const harness = memoryHarness({}, { metrics: record });
  const client = harness.connect();
  const senders = ['flood@bücher.example', 'Flood@xn--bcher-kva.example', '"flood"@BÜCHER.example', ''];
  const until = async (code: string): Promise<void> => {
    for (let line = ''; !line.startsWith(`${code} `);) {
      line = await client.line();
      assert.match(line, /^[23]/);
    }
  };
  await until('220');
  client.send('EHLO x\r\n');
  await until('250');
  for (const from of senders) {
    client.send(Buffer.from(`MAIL FROM:<${from}> SMTPUTF8\r\nRCPT TO:<b@example.net>\r\nDATA\r\n`));
    await until('354');
    client.send('.\r\n');
    await until('250');
  }
  assert.deepEqual(record.busy.answer(0).senders, [{ name: 'flood@xn--bcher-kva.example', messages: 3 }, { name: '', messages: 1 }]);
  harness.close();
});
