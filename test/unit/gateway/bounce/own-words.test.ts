/** A report says in words what no server said: of each outcome that has a code of ours. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownWords } from '../../../../src/gateway/bounce/own-words.js';
import { Trouble, classifyTrouble } from '../../../../src/gateway/outbound/pure/classify.js';
import { wayByAddress, wayByMx, wayOfIpv6Only, wayOfNoDomain } from '../../../../src/gateway/outbound/pure/mail-exchangers.js';
import type { MailWay } from '../../../../src/gateway/outbound/pure/mail-exchangers.js';
import type { DnsAnswer } from '../../../../src/platform/resolver.js';

const MX: readonly DnsAnswer<'MX'>[] = [
  { kind: 'failed', why: 'silence' }, { kind: 'no-name', isAuthentic: false },
  ...['', '192.0.2.1', 'own.example'].map((exchange): DnsAnswer<'MX'> => ({ kind: 'found', records: [{ preference: 1, exchange }], isAuthentic: false })),
];

function codeOf(way: MailWay | undefined): string {
  assert.ok(way !== undefined && 'why' in way);
  return way.why.enhanced;
}

test('each trouble with a next hop, and each way that leads nowhere, has words of its own', () => {
  const troubles = Object.values(Trouble).map((trouble) => classifyTrouble(trouble, '').enhanced);
  const ways = [
    ...MX.map((answer) => wayByMx('a.example', answer, (name) => name === 'own.example')),
    wayByAddress('a.example', [{ kind: 'no-records', isAuthentic: false }], false, false), wayOfIpv6Only('a.example'), wayOfNoDomain(),
  ].map(codeOf);
  assert.deepEqual([...new Set(ways)].sort(), ['4.3.5', '4.4.1', '4.4.3', '4.4.4', '5.1.10', '5.1.2', '5.4.6']);
  for (const code of [...troubles, ...ways, '4.4.7', '5.7.1']) {
    assert.notEqual(ownWords(code), ownWords(`${code.slice(0, 1)}.0.0`), code);
  }
});
