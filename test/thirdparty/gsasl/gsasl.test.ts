/** gsasl, the tool of GNU's SASL library, against our AUTH within STARTTLS: every mechanism, and a wrong password. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startHarness } from '../../dialog/harness.js';
import { authenticatorOf, scramLine } from '../../dialog/people.js';
import { selfSigned } from '../../dialog/self-signed.js';
import { runProgram } from '../support.js';

const NAME = 'alice@example.org';

test('gsasl authenticates by each mechanism that is offered', { timeout: 60_000 }, async () => {
  const people = authenticatorOf([await scramLine(NAME, 'secret')]);
  const harness = await startHarness({ tls: selfSigned(), isSubmission: true, relayNetworks: [] }, { authenticator: people });
  try {
    for (const [mechanism, password, ending] of [
      ['SCRAM-SHA-256', 'secret', /235 2\.7\.0 /], ['PLAIN', 'secret', /235 2\.7\.0 /], ['LOGIN', 'secret', /235 2\.7\.0 /],
      ['SCRAM-SHA-256', 'guess', /535 5\.7\.8 /], ['PLAIN', 'guess', /535 5\.7\.8 /],
    ] as const) {
      const { output, code } = await runProgram('gsasl', [
        '--smtp', '--starttls', '--x509-ca-file=', '--no-cb', '--connect', `127.0.0.1:${String(harness.inbound.port)}`,
        '--mechanism', mechanism, '--authentication-id', NAME, '--password', password,
      ]);
      assert.match(output, ending, `${mechanism} ${password}: ${output}`);
      assert.equal(code === 0, password === 'secret', output);
    }
  } finally {
    await harness.inbound.close(1000);
  }
});
