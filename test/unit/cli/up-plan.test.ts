/** Which processes `twinpost up` runs, and by what each goes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planUp } from '../../../src/cli/up/plan.js';
import { EMBEDDED_UP_YAML } from '../../../src/config/embedded.js';
import { parseConfig } from '../../../src/config/load.js';
import { upConfig } from '../../../src/config/up-gateways.js';

test('the sink goes by the section of the file, whatever that says', () => {
  const loaded = parseConfig(`${EMBEDDED_UP_YAML}  lmtp: true\n  tls: {cert: sink.crt, key: sink.key}\n`, 'up.yaml', { role: 'up' });
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const config = upConfig(loaded.config, 1, 1e9);
  const sinkBy = (file: string | undefined): readonly string[] | undefined => planUp(config, file, '/state')?.sink?.args;
  const own = ['--listen', '127.0.0.1:2526', '--admin', '127.0.0.1:9400', '--inbox'];
  assert.deepEqual(sinkBy('/etc/up.yaml'), ['sink', '--config', '/etc/up.yaml', ...own]);
  assert.deepEqual(sinkBy(undefined), ['sink', ...own], 'built in, where there is nothing else');
});
