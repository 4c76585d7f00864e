/** The thread in which a gateway looks at the domains that it sends for: its findings, and its bounds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AnswerTime } from '../../../../src/gateway/explain/answer-time.js';
import { SenderThread } from '../../../../src/gateway/explain/sender-thread.js';
import type { DnsAnswer, Resolver } from '../../../../src/platform/resolver.js';

const QUESTION = {
  domains: [{ domain: 'ours.example', keys: [{ name: 's1._domainkey.ours.example', record: 'v=DKIM1; k=rsa; p=AAAA', file: 'a.pem', sharedWith: '' }] }],
  returnDomains: ['bounces.example'], sources: [{ address: '192.0.2.7', name: 'gw.test' }], leftOut: 3,
};

const ZONE: Readonly<Record<string, string>> = {
  'TXT s1._domainkey.ours.example': 'v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=', 'TXT ours.example': 'v=spf1 include:spf.example -all', 'TXT spf.example': 'v=spf1 ip4:192.0.2.0/24 -all',
  'TXT _dmarc.ours.example': 'v=DMARC1; p=reject',
};

function resolver(asked: string[], silent = ''): Resolver {
  return {
    ask: (name, type, done) => {
      asked.push(`${type} ${name}`);
      const text = ZONE[`${type} ${name}`];
      if (name === silent) return;
      done((text === undefined ? { kind: 'no-records', isAuthentic: false } : { kind: 'found', records: [text], isAuthentic: false }) as DnsAnswer<typeof type>);
    },
  };
}

test('findings of a thread that asks the DNS through the gateway', async (t) => {
  const time = new AnswerTime(30_000, resolver([]));
  t.after(() => { time.close(); });
  assert.deepEqual((await new SenderThread().find(QUESTION, time)).map(({ verdict, text }) => `${verdict}: ${text}`), [
    `bad: s1._domainkey.ours.example has another key than 'a.pem': name the file whose key is published there (key_file), or publish "v=DKIM1; k=rsa; p=AAAA" under a new selector`, 'good: ours.example has one SPF record',
    'good: mail of ours.example by 192.0.2.7: SPF says pass', 'good: _dmarc.ours.example has one DMARC record (reject)',
    'bad: bounces.example has no SPF record', 'advice: 3 more domains of dkim were not asked about: name one (from, --from)',
  ]);
});

test('a thread that gets no answer ends with the time of the answer, and the next one begins behind it', async (t) => {
  const thread = new SenderThread();
  const asked: string[] = [];
  const short = new AnswerTime(1, resolver(asked, 's1._domainkey.ours.example'));
  const long = new AnswerTime(30_000, resolver(asked));
  t.after(() => { long.close(); });
  const both = await Promise.all([thread.find(QUESTION, short), thread.find(QUESTION, long)]);
  short.close();
  assert.deepEqual(both.map((findings) => findings.length), [1, 6]);
  assert.deepEqual(both[0], [{ verdict: 'unknown', text: 'what the DNS says of the sender is not known: not within the 0.001 s that this answer has' }]);
});
