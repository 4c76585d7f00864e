/**
 * Policies and records on TLS of domains in somebody else's hands: texts of MTA-STS policies, TXT records of MTA-STS and
 * TLSRPT, changed, cut, doubled. What must hold:
 *
 *   a policy that was not changed   is read as it was written, but for hosts of one that asks for nothing
 *   whatever is read                names of hosts alone, in lower case, and a life of a year at most
 *   a host that a policy names      stands there, or is one label more than a wildcard
 *   where reports go                three addresses at most, without a character that could end a line
 */
import assert from 'node:assert/strict';
import type { Prng } from '../../src/base/prng.js';
import { isNamedBy, readPolicy, stsId } from '../../src/gateway/outbound/pure/sts-policy.js';
import { reportUris } from '../../src/gateway/outbound/pure/tls-results.js';
import { tally } from './field.js';
import { changed } from './inputs.js';

const NAMES = ['mx.a.example', '*.a.example', 'a.example', '*.b.a.example', 'xn--bcher-kva.example', `${'l'.repeat(63)}.example`] as const;
const HOSTS = ['mx.a.example', 'x.mx.a.example', 'a.example', 'c.b.a.example', '.a.example', ''] as const;

export function policyInput(random: Prng): void {
  const mode = random.pick(['enforce', 'testing', 'none'] as const);
  const mx = Array.from({ length: 1 + random.below(4) }, () => random.pick(NAMES));
  const maxAgeS = random.pick([0, 1, 86_400, 31_557_600]);
  const end = random.pick(['\n', '\r\n']);
  const lines = ['version: STSv1', `mode: ${mode}`, ...mx.map((name) => `mx: ${name}`), `max_age: ${String(maxAgeS)}`, 'more: of: it'];
  const written = Buffer.from(lines.join(end));
  const input = changed(written, random);
  const read = readPolicy(Buffer.from(input).toString());
  if (input === written) assert.deepEqual(read, { mode, mx: mode === 'none' ? [] : mx, maxAgeS });
  if ('wrong' in read) tally('no policies');
  else {
    tally('policies');
    assert.ok(read.maxAgeS >= 0 && read.maxAgeS <= 31_557_600, String(read.maxAgeS));
    for (const name of read.mx) assert.match(name, /^(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*$/);
    for (const host of HOSTS) {
      const isThere = read.mx.some((name) => name === host || (name.startsWith('*.') && host.indexOf('.') > 0 && host.slice(host.indexOf('.') + 1) === name.slice(2)));
      assert.equal(isNamedBy(read, host), isThere, host);
    }
  }
  const text = Buffer.from(changed(Buffer.from(random.pick(['v=STSv1; id=20261126;', 'v=TLSRPTv1; rua=mailto:a@a.example,https://a.example/x'])), random)).toString('latin1');
  const answer = { kind: 'found', records: random.below(3) === 0 ? [text, text] : [text], isAuthentic: false } as const;
  assert.match(stsId(answer) ?? '', /^[A-Za-z0-9]{0,32}$/);
  const uris = reportUris(answer);
  assert.ok(uris.length <= 3);
  for (const uri of uris) assert.match(uri, /^(mailto:|https:\/\/)[!-~]{1,512}$/i);
  if (uris.length > 0) tally('addresses of reports');
}
