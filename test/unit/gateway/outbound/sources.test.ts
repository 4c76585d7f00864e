/** What is known of sources as time goes by: a resolver that the test answers for. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Sources } from '../../../../src/gateway/outbound/sources.js';
import type { DnsAnswer, DnsType } from '../../../../src/platform/resolver.js';
import { toldTo } from './memory-source.js';

const HOUR_MS = 3_600_000;
const SIX = { address: '2001:db8::10', name: 'mail.example' };
const POINTER = '0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa';

class World {
  pointer: readonly string[] | 'fails' = [SIX.name];
  addresses: readonly string[] | 'fails' = ['2001:0DB8:0::10'];
  readonly asked: string[] = [];
  readonly log: string[] = [];
  readonly sources: Sources;
  /** Answers wait there while it is defined. */
  held: (() => void)[] | undefined;

  constructor(...all: readonly { readonly address: string; readonly name: string }[]) {
    const ask = <T extends DnsType>(name: string, type: T, done: (answer: DnsAnswer<T>) => void): void => {
      this.asked.push(`${type} ${name}`);
      const answer = (): void => {
        const said = type === 'PTR' ? this.pointer : this.addresses;
        const records = said === 'fails' ? [] : said;
        const kind = said === 'fails' ? 'failed' : records.length === 0 ? 'no-name' : 'found';
        done({ kind, why: 'silence', records, isAuthentic: false } as unknown as DnsAnswer<T>);
      };
      if (this.held === undefined) answer();
      else this.held.push(answer);
    };
    this.sources = new Sources(all.length === 0 ? [SIX] : all, { resolver: { ask }, log: toldTo(this.log) });
  }

  /** Why it is not used, for hosts by MX. */
  at(nowMs: number): string {
    this.sources.tick(nowMs);
    const { ways } = this.sources.waysTo(['2001:db8::1'], { site: 'x', isByMx: true }, undefined);
    const [state] = this.sources.states();
    assert.equal(ways.length > 0, state?.why === '');
    return state?.why ?? '';
  }
}

describe('a source of IPv6', () => {
  test('is confirmed when its PTR record names it and that name has its address, however that is written', () => {
    const world = new World();
    assert.equal(world.at(0), '');
    assert.deepEqual(world.asked, [`PTR ${POINTER}`, 'AAAA mail.example']);
    assert.deepEqual(world.log, ['source the DNS confirms a source of IPv6: mail by MX leaves from it']);
  });

  test('that stays under its name in another list counts until it is asked about anew, and one that is new is asked about', () => {
    const world = new World();
    assert.equal(world.at(0), '');
    world.sources.renew([SIX, { address: '2001:db8::20', name: 'mail.example' }]);
    assert.equal(world.sources.states()[0]?.why, '');
    assert.equal(world.at(1), '');
    assert.deepEqual(world.asked.slice(2).map((question) => question.split(' ')[0]), ['PTR', 'AAAA', 'PTR', 'AAAA']);
    assert.deepEqual(world.sources.states().map(({ address, why }) => [address, why === '']), [[SIX.address, true], ['2001:db8::20', false]]);
    world.addresses = [];
    world.sources.renew([SIX]);
    assert.match(world.at(2), /AAAA of mail\.example says nothing/);
    world.sources.renew([]);
    assert.deepEqual([world.sources.areNone, world.sources.judged()], [true, []]);
  });

  for (const [what, pointer, addresses, why] of [
    ['another name', ['other.example'], ['2001:db8::10'], 'its PTR record says other.example, and not mail.example'],
    ['no name', [], ['2001:db8::10'], 'its PTR record says nothing, and not mail.example'],
    ['a name with another address', ['mail.example'], ['2001:db8::11'], 'AAAA of mail.example says 2001:db8::11'],
    ['a name without an address', ['mail.example'], [], 'AAAA of mail.example says nothing'],
    ['no answer', 'fails', ['2001:db8::10'], 'no answer on PTR of 2001:db8::10: silence'],
    ['a name of which there is no answer', ['mail.example'], 'fails', 'no answer on AAAA of mail.example: silence'],
  ] as const) {
    test(`is not confirmed by ${what}, which is told once`, () => {
      const world = new World();
      world.pointer = pointer;
      world.addresses = addresses;
      assert.equal(world.at(0), why);
      for (let hour = 1; hour <= 5; hour++) assert.equal(world.at(hour * HOUR_MS), why);
      assert.equal(world.log.length, 1);
    });
  }

  test('is not used before the DNS has answered, and asked for once meanwhile', () => {
    const world = new World();
    world.held = [];
    assert.equal(world.at(0), 'the DNS was not asked yet');
    world.at(10 * HOUR_MS);
    assert.equal(world.asked.length, 1);
    const [pointer] = world.held;
    world.held = undefined;
    pointer?.();
    assert.equal(world.sources.states()[0]?.why, '');
  });

  test('is asked for each hour, and each minute while there is no answer', () => {
    const world = new World();
    world.at(0);
    world.at(HOUR_MS - 1);
    assert.equal(world.asked.length, 2);
    world.pointer = 'fails';
    world.at(HOUR_MS);
    world.at(HOUR_MS + 59_999);
    assert.equal(world.asked.length, 3);
    world.at(HOUR_MS + 60_000);
    assert.equal(world.asked.length, 4);
  });

  test('stays what it was while the DNS does not answer; each change is told', () => {
    const world = new World();
    world.at(0);
    world.addresses = 'fails';
    assert.equal(world.at(HOUR_MS), '');
    world.addresses = [];
    assert.match(world.at(2 * HOUR_MS), /says nothing/);
    world.addresses = 'fails';
    assert.match(world.at(3 * HOUR_MS), /says nothing/);
    world.addresses = [SIX.address];
    assert.equal(world.at(4 * HOUR_MS), '');
    assert.deepEqual(world.log.map((line) => /does not confirm/.test(line)), [false, true, false]);
  });
});

test('sources of IPv4 are not asked for; one that is no address of this machine any more, or again, is told once', () => {
  const four = { address: '192.0.2.10', name: 'mail.example' };
  const world = new World(four);
  world.sources.tick(0);
  assert.deepEqual([world.asked, world.sources.states()], [[], [{ ...four, why: '' }]]);
  world.sources.noteGone(four);
  world.sources.noteGone(four);
  assert.equal(world.sources.states()[0]?.why, 'it is no address of this machine');
  world.sources.noteOpen(four);
  world.sources.noteOpen(four);
  assert.deepEqual([world.log.length, world.sources.states()[0]?.why], [2, '']);
});

test('a route leaves from the sources that it names, and from no other', () => {
  const [one, other] = [{ address: '192.0.2.10', name: 'a.example' }, { address: '192.0.2.11', name: 'b.example' }];
  const { sources } = new World(one, other);
  for (let i = 0; i < 50; i++) {
    const host = { site: `mx${String(i)}`, isByMx: true };
    assert.equal(sources.waysTo(['198.51.100.1'], host, [other.address]).ways[0]?.from?.address, other.address);
  }
});
