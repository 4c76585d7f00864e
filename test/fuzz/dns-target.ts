/**
 * Answers of a name server in somebody else's hands: whole messages with records of all the types that are asked for,
 * aliases in chains and circles, names of odd letters; then changed, cut, doubled. What must hold:
 *
 *   an answer that was not changed    is read as it was written
 *   whatever is read                  names in lower case; records of the type asked for; a TTL within a day
 *   a way made of it                  hosts that can be asked for, or a verdict with a code of three numbers
 *   an address of it                  public, or it is said what it is
 */
import assert from 'node:assert/strict';
import packet from 'dns-packet';
import type { Answer } from 'dns-packet';
import type { Prng } from '../../src/base/prng.js';
import { wayByMx } from '../../src/gateway/outbound/pure/mail-exchangers.js';
import { whyNotPublic } from '../../src/gateway/outbound/pure/public-address.js';
import { isAskable, readAnswer } from '../../src/platform/node/dns/dns-message.js';
import type { DnsAnswer, DnsType } from '../../src/platform/resolver.js';
import { tally } from './field.js';
import { changed } from './inputs.js';

const TYPES: readonly DnsType[] = ['A', 'AAAA', 'MX', 'PTR', 'TLSA', 'TXT'];
const NAMES = ['a.example', 'A.Example', 'b.example', 'mx.b.example', 'gw.test', '.', '192.0.2.1', 'odd_.-x.example', `${'l'.repeat(63)}.example`] as const;
const ADDRESSES = ['192.0.2.1', '127.0.0.1', '10.0.0.1', '8.8.8.8'] as const;
const DAY_S = 86_400;

function recordOf(type: DnsType | 'CNAME' | 'SOA', name: string, random: Prng): Answer {
  const ttl = random.pick([0, 1, 300, 4_000_000_000]);
  const target = random.pick(NAMES);
  switch (type) {
    case 'A': return { type, name, ttl, data: random.pick(ADDRESSES) };
    case 'AAAA': return { type, name, ttl, data: random.pick(['2001:db8::1', '::1', '64:ff9b::7f00:1', '2a00:1450::1']) };
    case 'MX': return { type, name, ttl, data: { preference: random.below(65_536), exchange: target } };
    case 'PTR': case 'CNAME': return { type, name, ttl, data: target };
    case 'TLSA': return { type, name, ttl, data: { usage: random.below(5), selector: random.below(3), matchingType: random.below(4), certificate: Buffer.alloc(random.below(70), random.below(256)) } };
    case 'TXT': return { type, name, ttl, data: Array.from({ length: 1 + random.below(3) }, () => 'v'.repeat(random.below(256))) };
    case 'SOA': return { type, name, ttl, data: { mname: target, rname: 'x.example', serial: 1, refresh: 1, retry: 1, expire: 1, minimum: random.below(100_000) } };
  }
}

export function dnsInput(random: Prng): void {
  const type = random.pick(TYPES);
  const name = 'a.example';
  const question = { id: random.below(65_536), name, type };
  const answers: Answer[] = [];
  for (let count = random.below(random.below(10) === 0 ? 200 : 8); count > 0; count--) {
    const kind = random.below(4) === 0 ? 'CNAME' : random.below(3) === 0 ? random.pick(TYPES) : type;
    answers.push(recordOf(kind, random.below(2) === 0 ? name : random.pick(NAMES), random));
  }
  const authorities = random.below(2) === 0 ? [recordOf('SOA', 'example', random)] : [];
  const rcode = random.pick([0, 0, 0, 2, 3, 5]);
  const flags = random.pick([0, packet.AUTHENTIC_DATA, packet.TRUNCATED_RESPONSE]) | random.pick([0, packet.RECURSION_AVAILABLE]) | rcode;
  const written = packet.encode({ id: question.id, type: 'response', flags, questions: [{ type, name: random.pick([name, 'A.EXAMPLE', 'b.example']) }], answers, authorities });
  const input = changed(written, random);
  const read = readAnswer(input, question, random.below(2) === 0);
  if (read.kind !== 'answer') return tally(read.kind);
  assert.ok(read.ttlSeconds >= 0 && read.ttlSeconds <= DAY_S, String(read.ttlSeconds));
  if (read.answer.kind === 'failed') assert.fail('a message that was read is a verdict');
  judge(type, read.answer);
  if (input !== written || read.answer.kind !== 'found') return tally(read.answer.kind);
  const own = answers.filter((each) => each.type === type && each.name.toLowerCase() === name);
  if (own.length > 0) assert.equal(read.answer.records.length, own.length, 'as it was written');
  tally('read as written');
}

function judge(type: DnsType, answer: DnsAnswer<DnsType>): void {
  if (type === 'MX') {
    const way = wayByMx('a.example', answer as DnsAnswer<'MX'>, (name) => name === 'gw.test');
    if (way === undefined) return assert.equal(answer.kind, 'no-records');
    if ('why' in way) return assert.match(`${String(way.why.status)} ${way.why.enhanced}`, /^[0-9] [45]\.\d+\.\d+$/);
    tally('ways');
    for (const { name } of way.hosts) assert.ok(isAskable(name) && name === name.toLowerCase() && name !== 'gw.test', name);
    const preferences = way.hosts.map(({ preference }) => preference);
    assert.deepEqual(preferences, [...preferences].sort((one, other) => one - other));
  } else if ((type === 'A' || type === 'AAAA') && answer.kind === 'found') {
    for (const address of (answer as { readonly records: readonly string[] }).records) {
      const why = whyNotPublic(address);
      if (/^(127|10)\.|^::1$|^64:ff9b::7f00:1$/.test(address)) assert.notEqual(why, '', address);
    }
  }
}
