/** `twinpost trace`: what is refused before anybody is asked. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCli } from '../../../src/cli/main.js';
import { contextFor } from './played-context.js';

test('what is no address or network is wrong usage, and nobody is asked', async () => {
  for (const network of ['foo', '10/8', '192.0.2.0/33']) {
    const printed: string[] = [];
    const code = await runCli(['trace', 'client', network, '--from', '127.0.0.1:1'], contextFor(printed));
    assert.equal(code, 2, network);
    assert.match(printed.join('\n'), new RegExp(`^! twinpost: trace client: '${network}' is no address or network, as 192\\.0\\.2\\.1 or 192`));
  }
  const printed: string[] = [];
  assert.notEqual(await runCli(['trace', 'client', '2001:db8::/32', '--from', '127.0.0.1:1'], contextFor(printed)), 2, 'there nobody answers');
});
