/**
 * Records of a sender's domain in somebody else's hands, SPF, DMARC and DKIM keys: of their words and of noise, of one word
 * many thousand times, changed anywhere. The domain answers each question with them. What must hold:
 *
 *   whatever stands there    is a verdict of its method, and nothing else
 *   a key                    of the kind that was asked for, with a bounded number of bits
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import type { Prng } from '../../src/base/prng.js';
import { CheckQuestions } from '../../src/gateway/inbound/sender-checks/node/check-questions.js';
import type { AskDns } from '../../src/gateway/inbound/sender-checks/node/check-questions.js';
import { keyFor } from '../../src/gateway/inbound/sender-checks/node/dkim-key.js';
import { dmarcVerdict } from '../../src/gateway/inbound/sender-checks/node/dmarc-check.js';
import { spfVerdict } from '../../src/gateway/inbound/sender-checks/node/spf-check.js';
import { tally } from './field.js';
import { changed } from './inputs.js';

const KEY = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
const DOMAIN = 'x.example';
const STARTS = ['v=spf1 ', 'v=DMARC1; p=reject', 'v=DKIM1; p=', `v=DKIM1; k=rsa; p=${KEY}`, 'v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=', ''] as const;
const WORDS = [
  ' ', '\t', '\r\n', ';', '; ', '=', ':', '.', '/', 'a', 'a.', '0', '%', '%{', '}', '"', '\u00fc', '\0', 'p=', ' p=none', '; p=quarantine', '; aspf=s', '; adkim=s', '; sp=none', '; pct=50', '; rua=mailto:a@x.example',
  ' +all', ' -all', ' ~all', ' ?all', ' ip4:192.0.2.1', ' ip4:192.0.2.0/24', ' ip6:2001:db8::/32', ' a', ' mx', ' ptr', ' a:b.example', ' mx:b.example/24//64', ` include:${DOMAIN}`, ' include:b.example', ` redirect=${DOMAIN}`,
  ' exists:%{i}.%{l1r-}.%{d}', ' exp=e.example', '%{l}', '%{d2r}', '%%', '%_', '; t=s', '; h=sha256', '; s=email', '; n=x', KEY.slice(0, 60),
] as const;
const RESULTS = ['none', 'neutral', 'pass', 'fail', 'softfail', 'temperror', 'permerror'];

export async function senderRecordsInput(random: Prng): Promise<void> {
  const isPlain = random.below(2) === 0;
  const record = recordOf(isPlain ? 'v=spf1 ip4:192.0.2.1' : random.pick(STARTS), random);
  const another = recordOf(isPlain ? 'v=DMARC1; p=reject' : random.pick(STARTS), random);
  const key = keyFor(record, { algorithm: random.pick(['rsa', 'ed25519']), isOfSubdomain: random.below(2) === 0 });
  if ('asymmetricKeyType' in key) tally('keys');
  const ask: AskDns = (name, type) => {
    if (type === 'TXT') return Promise.resolve({ kind: 'found', records: name === DOMAIN ? [record] : [another], isAuthentic: false });
    if (type === 'MX') return Promise.resolve({ kind: 'found', records: [{ preference: 1, exchange: name }], isAuthentic: false });
    return Promise.resolve(type === 'A' ? { kind: 'found', records: ['192.0.2.9'], isAuthentic: false } : { kind: 'no-name', isAuthentic: false });
  };
  const questions = new CheckQuestions(ask);
  const local = random.below(2) === 0 ? 'a' : `"${'l.'.repeat(random.below(120))}"`;
  const spf = await spfVerdict({ client: '192.0.2.1', helo: 'h.example', hostName: 'mx.test', reversePath: `${local}@${DOMAIN}` }, questions);
  assert.ok(RESULTS.includes(spf.result));
  tally(`SPF ${spf.result === 'pass' ? 'passes' : `${spf.result}s`}`);
  const dmarc = await dmarcVerdict(DOMAIN, spf, [], questions);
  assert.ok(['none', 'pass', 'fail', 'temperror', 'permerror'].includes(dmarc.result));
  tally(`DMARC ${dmarc.result === 'pass' ? 'passes' : `${dmarc.result}s`}`);
}

/** 16 KiB at most, as an answer of the DNS; most of them short. */
function recordOf(start: string, random: Prng): string {
  let text = start;
  for (let count = random.below(12); count > 0; count--) {
    const word = random.pick(WORDS);
    text += random.below(40) === 0 ? word.repeat(random.below(16_000 / word.length)) : word;
  }
  return Buffer.from(changed(Buffer.from(text.slice(0, 16_000), 'latin1'), random)).toString('latin1');
}
