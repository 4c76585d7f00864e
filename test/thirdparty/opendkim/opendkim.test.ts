/** Signatures of odd messages as OpenDKIM sees them, which many receivers run: RSA, for it knows no Ed25519. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { DkimSigner } from '../../../src/gateway/dkim/node/dkim-signer.js';
import { DkimMetrics } from '../../../src/observability/dkim-metrics.js';
import { NO_LOG } from '../../inbound/desk.js';
import { findProgram } from '../../outside-sets.js';
import { RSA, pem, recordOf } from '../../unit/gateway/dkim/node/new-keys.js';
import { judged } from '../../unit/gateway/inbound/hooks/judged.js';
import { oddMail } from '../dkimpy/odd-mail.js';
import { runProgram } from '../support.js';

const ODD_MESSAGES = 1000;

test('OpenDKIM verifies a thousand odd messages, and finds one broken that was changed', { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-opendkim-'));
  try {
    const key = { domain: 'x.example', selector: 'r1', algorithm: 'rsa-sha256', key: RSA, keyFile: '', expiresAfterMs: undefined } as const;
    const signer = new DkimSigner({ keys: { areNone: false, of: () => [key] }, clock: { nowMs: () => performance.now(), wallMs: () => Date.now() }, log: NO_LOG, metrics: new DkimMetrics() });
    const names: string[] = [];
    for (let seed = 0; seed <= ODD_MESSAGES; seed++) {
      const message = Buffer.from(oddMail(seed, ' a@x.example'), 'latin1');
      const fields = await new Promise<Uint8Array>((done) => { signer.sign(judged({}, [message]), () => true, (_refusal, made) => { done(made); }); });
      const isChanged = seed === ODD_MESSAGES;
      names.push(join(folder, `${String(seed)}.eml`));
      writeFileSync(names.at(-1) ?? '', Buffer.concat([fields, isChanged ? Buffer.from('Subject: one more\r\n') : Buffer.alloc(0), message]));
    }
    writeFileSync(join(folder, 'keys'), `r1._domainkey.x.example ${recordOf(pem(RSA))}\n`);
    writeFileSync(join(folder, 'conf'), `Mode v\nTestPublicKeys ${join(folder, 'keys')}\nOn-Default accept\n`);
    const { output } = await runProgram(findProgram('opendkim') ?? 'opendkim', ['-x', join(folder, 'conf'), '-t', names.join(',')]);
    for (const name of names.slice(0, ODD_MESSAGES)) assert.ok(output.includes(`${name}: verification (s=r1, d=x.example, 2048-bit key) succeeded`), `${name}:\n${output.slice(0, 2000)}`);
    assert.ok(!output.includes(`${names.at(-1) ?? ''}: verification (s=r1, d=x.example, 2048-bit key) succeeded`));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
