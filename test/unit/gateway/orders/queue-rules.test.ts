/** Which queues a rule names, how long, and what is done when rules change: src/gateway/orders/queue-rules.ts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Selector } from '../../../../src/admin-api/queue-orders.js';
import { QueueRules } from '../../../../src/gateway/orders/queue-rules.js';
import type { MailQueue } from '../../../../src/gateway/queue/mail-queue.js';
import type { QueueClass, Route } from '../../../../src/gateway/mail-types.js';
import type { QueueRule } from '../../../../src/register/records.js';
import { toAscii } from '../../../../src/platform/node/idna.js';
import { KeptLog } from '../admin/kept-log.js';

interface PlayedQueue {
  readonly route: Route;
  mxHosts: readonly string[];
  readonly length: number;
  isSuspended: boolean;
}

function queue(queueName: string, queueClass: QueueClass = 'mail', length = 1): PlayedQueue {
  const nextHop = { host: 'relay', isByMx: queueName.includes('/') };
  return { route: { queueName, queueClass, nextHop } as unknown as Route, mxHosts: [], length, isSuspended: false };
}

function chosen(verb: QueueRule['verb'], selector: Selector): QueueRule {
  return { verb, selector, untilWallMs: 0, who: 'ann', reason: 'a test', wallMs: 1 };
}

function rule(verb: QueueRule['verb'], pattern: string, untilWallMs = 0, wallMs = 1): QueueRule {
  return { verb, queue: pattern, untilWallMs, who: 'ann', reason: 'a test', wallMs };
}

class Kit {
  nowMs = 1000;
  told: ReadonlyMap<string, QueueRule> = new Map();
  readonly queues: PlayedQueue[] = [];
  readonly woken: PlayedQueue[] = [];
  readonly log = new KeptLog();
  walks = 0;
  domainsAsked = 0;
  obeyed: readonly string[] = [];
  readonly rules = new QueueRules({
    clock: { nowMs: () => this.nowMs, wallMs: () => this.nowMs }, log: this.log, told: { queueRules: () => this.told, isLocal: () => false },
    obeyOrders: (rules) => { this.obeyed = [...rules.keys()]; }, caughtBy: () => 5,
    names: { nameOf: ({ queueName }) => queueName.replace(/[/#!].*/, ''), domainOf: (one) => this.domainOf(one) }, toAscii,
    queues: () => {
      this.walks += 1;
      return this.queues as unknown as MailQueue[];
    },
    wake: (one) => { this.woken.push(one as unknown as PlayedQueue); },
  });

  domainOf({ queueName }: Route): string {
    this.domainsAsked += 1;
    return /\/([^!]*)/.exec(queueName)?.[1] ?? '';
  }

  tell(...rules: readonly QueueRule[]): void {
    this.told = new Map(rules.map((one, i) => [`gw-1-1-${String(i)}`, one]));
    this.rules.look();
  }
}

describe('a rule', () => {
  test('names queues of class mail by their whole name or by stars, in letters of either case, and those of another class by its name', () => {
    const kit = new Kit();
    for (const [pattern, name, queueClass, isNamed] of [
      ['out', 'out', 'mail', true], ['OUT', 'out', 'mail', true], ['out', 'outer', 'mail', false], ['out', 'out', 'bounce', false],
      ['out/*', 'out/example.com', 'mail', true], ['out/*', 'out/example.com', 'bounce', false], ['*', 'x', 'mail', true], ['*', 'x', 'billing', false],
      ['*/bounce', 'x', 'bounce', true], ['out/bounce', 'out', 'bounce', true], ['out/bounce', 'out', 'mail', false],
      ['out/example.com', 'out/example.com', 'mail', true], ['out/example.com/bounce', 'out/example.com', 'bounce', true], ['*!tls', 'out!tls', 'mail', true],
    ] as const) {
      kit.tell(rule('suspend', pattern));
      assert.equal(kit.rules.suspends(queue(name, queueClass).route), isNamed, `${pattern} ${name} ${queueClass}`);
      kit.tell(rule('refuse', pattern));
      const { route } = queue(name, queueClass);
      assert.deepEqual([kit.rules.refuses(route), kit.rules.refuses(route)], [isNamed, isNamed]);
      assert.equal(kit.rules.suspends(queue(name, queueClass).route), false, 'refused is not suspended');
    }
  });

  test('marks the queues that it names, and wakes those that go on; several rules of one queue hold it till the last is gone', () => {
    const kit = new Kit();
    const [a, b] = [queue('a'), queue('b')];
    kit.queues.push(a, b);
    const [one, two] = [rule('suspend', 'a'), rule('suspend', '*', 0, 2)];
    kit.tell(one, two);
    assert.deepEqual([a.isSuspended, b.isSuspended, kit.woken.length], [true, true, 0]);
    kit.tell(one);
    assert.deepEqual([a.isSuspended, b.isSuspended], [true, false]);
    assert.deepEqual(kit.woken, [b]);
    kit.tell();
    assert.deepEqual([a.isSuspended, kit.woken], [false, [b, a]]);
  });

  test('is over when its time is, and stands again when the clock is put back', () => {
    const kit = new Kit();
    const a = queue('a');
    kit.queues.push(a);
    kit.tell(rule('suspend', 'a', 5000), rule('refuse', 'a', 6000));
    kit.nowMs = 4999;
    assert.deepEqual([kit.rules.suspends(a.route), kit.rules.refuses(a.route)], [true, true]);
    kit.nowMs = 5000;
    assert.deepEqual([kit.rules.suspends(a.route), kit.rules.refuses(a.route), a.isSuspended], [false, true, false]);
    kit.nowMs = 6000;
    assert.equal(kit.rules.refuses(a.route), false);
    assert.deepEqual(kit.rules.all(), []);
  });

  test('costs no walk over the queues while nothing has changed, though the register was read again', () => {
    const kit = new Kit();
    kit.tell(rule('suspend', 'a', 5000));
    const { walks } = kit;
    for (let i = 0; i < 100; i++) kit.rules.suspends(queue('a').route);
    kit.tell(rule('suspend', 'a', 5000));
    assert.equal(kit.walks, walks);
    kit.tell(rule('suspend', 'a', 7000));
    assert.equal(kit.walks, walks + 1);
  });

  test('means by a domain the queues that are its own, of class mail, and none that it shares with others', () => {
    const kit = new Kit();
    const [own, below, shared, reports] = [queue('out/a.example'), queue('out/x.a.example!tls'), queue('a.example'), queue('out/a.example', 'bounce')];
    kit.queues.push(own, below, shared, reports);
    const suspended = (): readonly boolean[] => kit.queues.map(({ isSuspended }) => isSuspended);
    kit.tell(chosen('suspend', { domain: 'A.example' }));
    assert.deepEqual(suspended(), [true, false, false, false]);
    assert.deepEqual([kit.rules.refuses(own.route), kit.rules.refusesTo('x@a.example', 'a.example')], [false, false]);
    kit.tell(chosen('suspend', { domain: '*.a.example' }));
    assert.deepEqual([suspended(), kit.rules.suspends(queue('out/y.a.example').route)], [[false, true, false, false], true]);
    kit.tell(chosen('suspend', { domain: '*', route: 'other' }));
    assert.deepEqual(suspended(), [false, false, false, false]);
  });

  test('means a domain that is written in U-labels as its queues are called, with a route too', () => {
    const kit = new Kit();
    kit.queues.push(queue('out/xn--bcher-kva.example'), queue('other/xn--bcher-kva.example'));
    for (const [selector, suspended] of [[{ domain: 'B\u00fccher.example' }, [true, true]], [{ domain: 'b\u00fccher.example', route: 'out' }, [true, false]]] as const) {
      kit.tell(chosen('suspend', selector));
      assert.deepEqual(kit.queues.map(({ isSuspended }) => isSuspended), suspended);
      assert.equal(kit.rules.hasQueueOf(chosen('suspend', selector)), true);
    }
    assert.equal(kit.rules.hasQueueOf(chosen('suspend', { domain: 'other.example' })), false);
  });

  test('by a domain costs one look-up for all of them: as many rules as may stand, over many queues', () => {
    const kit = new Kit();
    for (let i = 0; i < 1000; i++) kit.queues.push(queue(`out/d${String(i)}.example`));
    kit.tell(...Array.from({ length: 250 }, (_, i) => chosen('suspend', { domain: `D${String(i)}.example` })), chosen('suspend', { domain: 'd99*.example' }));
    assert.equal(kit.domainsAsked, 1000);
    assert.equal(kit.queues.filter(({ isSuspended }) => isSuspended).length, 260);
  });

  test('means all queues of a route, of class mail, those that are made later too', () => {
    const kit = new Kit();
    const [a, b, reports] = [queue('out/a.example'), queue('other'), queue('out/b.example', 'bounce')];
    kit.queues.push(a, b, reports);
    kit.tell(chosen('suspend', { route: 'out' }), chosen('refuse', { route: 'oth*' }));
    assert.deepEqual([a, b, reports].map(({ isSuspended }) => isSuspended), [true, false, false]);
    assert.deepEqual([kit.rules.suspends(queue('out#3').route), kit.rules.refuses(b.route), kit.rules.refuses(a.route)], [true, true, false]);
    assert.equal(kit.rules.suspending(a as unknown as MailQueue)?.reason, 'a test');
    assert.deepEqual(kit.rules.all().map(({ queues, messages }) => [queues, messages]), [[1, 1], [1, 1]]);
  });

  test('over a site suspends a queue as soon as its hosts are known, and no longer than it goes there', () => {
    const kit = new Kit();
    const [a, relayed] = [queue('out/a.example'), queue('fixed')];
    kit.queues.push(a, relayed);
    kit.tell(chosen('suspend', { site: 'mx1.*' }), chosen('suspend', { site: 'relay' }));
    assert.deepEqual([a.isSuspended, relayed.isSuspended], [false, true], 'nobody has asked the DNS');
    a.mxHosts = ['mx2.host', 'MX1.host'];
    kit.rules.lookAt(a as unknown as MailQueue);
    assert.deepEqual([a.isSuspended, kit.woken], [true, []]);
    a.mxHosts = ['mx2.host'];
    kit.rules.lookAt(a as unknown as MailQueue);
    assert.deepEqual([a.isSuspended, kit.woken], [false, [a]]);
  });

  test('refuses mail by its client, its sender, or both, and names no queue then', () => {
    const kit = new Kit();
    const out = queue('out');
    kit.queues.push(out);
    assert.equal(kit.rules.refusesFrom('x@y.example', '192.0.2.7', 'x@y.example'), false);
    kit.tell(chosen('refuse', { client: '192.0.2.0/24' }), chosen('refuse', { sender: '<>', client: '2001:db8::1' }), chosen('refuse', { sender: '*@spam.example' }));
    for (const [sender, client, isRefused] of [
      ['x@y.example', '192.0.2.7', true], ['x@y.example', '192.0.3.7', false], ['', '192.0.3.7', false], ['', '2001:db8::1', true],
      ['x@y.example', '2001:db8::1', false], ['Ann@SPAM.example', '198.51.100.1', true], ['ann@spam.example.org', '', false],
    ] as const) assert.equal(kit.rules.refusesFrom(sender, client, sender), isRefused, `${sender} ${client}`);
    assert.deepEqual([kit.rules.refuses(out.route), out.isSuspended], [false, false]);
    assert.deepEqual(kit.rules.all().map(({ queues }) => queues), [0, 0, 0]);
  });

  test('refuses mail to a domain, an address, or both, however the domain is written, and names no queue then', () => {
    const kit = new Kit();
    const out = queue('out');
    kit.queues.push(out);
    assert.equal(kit.rules.refusesTo('x@gone.example', 'gone.example'), false);
    kit.tell(chosen('refuse', { domain: 'gone.example' }), chosen('refuse', { recipient: 'list-*', domain: 'a.example' }), chosen('refuse', { recipient: 'ann@xn--bcher-kva.example' }));
    for (const [address, domain, isRefused] of [
      ['x@gone.example', 'gone.example', true], ['x@GONE.example', 'gone.example', true], ['x@sub.gone.example', 'sub.gone.example', false],
      ['list-1@a.example', 'a.example', true], ['list-1@b.example', 'b.example', false], ['ann@a.example', 'a.example', false],
      ['ann@b\u00fccher.example', 'xn--bcher-kva.example', true], ['bob@b\u00fccher.example', 'xn--bcher-kva.example', false],
    ] as const) assert.equal(kit.rules.refusesTo(address, domain), isRefused, address);
    assert.deepEqual([kit.rules.refuses(out.route), out.isSuspended, kit.rules.refusesFrom('x@gone.example', '', '')], [false, false, false]);
    const [first] = kit.rules.all();
    assert.ok(first !== undefined);
    assert.deepEqual(['x@gone.example', 'gone.example', 'x@a.example', ''].map((to) => kit.rules.shareOf(first.rule, { name: 'out', ...out }, to)), ['all', 'all', 'none', 'none']);
    const [, second] = kit.rules.all();
    assert.ok(second !== undefined);
    assert.deepEqual(['a.example', 'b.example', 'list-7@a.example'].map((to) => kit.rules.shareOf(second.rule, { name: 'out', ...out }, to)), ['some', 'none', 'all']);
    kit.tell(chosen('refuse', { recipient: 'ann@a.example' }));
    const [third] = kit.rules.all();
    assert.ok(third !== undefined);
    assert.deepEqual(['a.example', 'b.example'].map((to) => kit.rules.shareOf(third.rule, { name: 'out', ...out }, to)), ['some', 'none']);
    kit.tell(chosen('refuse', { recipient: 'eve@b\u00fccher.example' }));
    for (const [address, isRefused] of [['eve@b\u00fccher.example', true], ['eve@xn--bcher-kva.example', true], ['ann@b\u00fccher.example', false]] as const) assert.equal(kit.rules.refusesTo(address, 'xn--bcher-kva.example'), isRefused, address);
    const [fourth] = kit.rules.all();
    assert.ok(fourth !== undefined);
    assert.deepEqual(['xn--bcher-kva.example', 'b.example'].map((to) => kit.rules.shareOf(fourth.rule, { name: 'out', ...out }, to)), ['some', 'none']);
    assert.equal(kit.rules.refusesTo('postmaster', ''), false);
  });

  test('refuses a sender however he writes his domain, also by the text that he wrote', () => {
    const kit = new Kit();
    kit.tell(chosen('refuse', { sender: 'dora@ours.example' }), chosen('refuse', { sender: '*@b\u00fccher.example' }));
    for (const [sender, key, isRefused] of [
      ['dora@\uff4furs.example', 'dora@ours.example', true], ['"dora"@OURS.example', 'dora@ours.example', true],
      ['x@b\u00fccher.example', 'x@xn--bcher-kva.example', true], ['dora@other.example', 'dora@other.example', false],
    ] as const) assert.equal(kit.rules.refusesFrom(sender, '', key), isRefused, sender);
  });

  test('is told in the log once, with who and why, and its end', () => {
    const kit = new Kit();
    kit.tell(rule('suspend', 'a'));
    kit.tell(rule('suspend', 'a'), rule('refuse', 'b', 9_000));
    kit.tell();
    assert.deepEqual(kit.log.lines.map(({ text, fields }) => [text, fields['rule'], fields['until']]), [
      ["an operator's rule is in force", 'gw-1-1-0', undefined],
      ["an operator's rule is in force", 'gw-1-1-1', '1970-01-01T00:00:09.000Z'],
      ["an operator's rule is over", 'gw-1-1-0', undefined],
      ["an operator's rule is over", 'gw-1-1-1', undefined],
    ]);
  });

  test('tells how many queues and messages it concerns', () => {
    const kit = new Kit();
    kit.queues.push(queue('a', 'mail', 10), queue('a', 'bounce', 5), queue('ab', 'mail', 3), queue('c', 'mail', 7));
    kit.tell(rule('suspend', 'a*'), rule('refuse', 'c'), rule('suspend', 'nobody'));
    assert.deepEqual(kit.rules.all().map(({ queues, messages }) => [queues, messages]), [[2, 13], [1, 7], [0, 0]]);
  });

  test('that is an order over new mail is obeyed elsewhere, and means no queues', () => {
    const kit = new Kit();
    kit.queues.push(queue('a'));
    kit.tell(chosen('hold', { domain: 'a.example' }), rule('suspend', 'b'));
    assert.deepEqual(kit.obeyed, ['gw-1-1-0', 'gw-1-1-1']);
    assert.deepEqual([kit.queues[0]?.isSuspended, kit.rules.refuses(queue('a').route)], [false, false]);
    assert.deepEqual(kit.rules.all().map(({ queues, messages }) => [queues, messages]), [[0, 5], [0, 0]]);
  });

  test('beyond 256 is not obeyed, those that were given last first', () => {
    const kit = new Kit();
    kit.tell(...Array.from({ length: 300 }, (_, i) => rule('suspend', `q${String(i)}`, 0, 300 - i)));
    assert.equal(kit.rules.all().length, 256);
    assert.deepEqual(['q43', 'q44'].map((queueName) => kit.rules.suspends(queue(queueName).route)), [false, true]);
  });
});
