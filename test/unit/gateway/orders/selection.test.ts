/** Which recipients of which messages a selector means. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Selector } from '../../../../src/admin-api/queue-orders.js';
import { selector, whyNoSelector } from '../../../../src/admin-api/queue-orders.js';
import { BrokenRule, readShape } from '../../../../src/base/json-shape.js';
import type { Note } from '../../../../src/gateway/queue/note.js';
import { DONE, OWED_FAILURE, TO_TRY, freshNote } from '../../../../src/gateway/queue/note.js';
import type { Envelope, Route } from '../../../../src/gateway/mail-types.js';
import type { MailQueue } from '../../../../src/gateway/queue/mail-queue.js';
import { createRouter } from '../../../../src/gateway/queue/router.js';
import type { RouteOptions } from '../../../../src/gateway/queue/router.js';
import { toAscii } from '../../../../src/platform/node/idna.js';
import type { RouteNames } from '../../../../src/gateway/orders/selection.js';
import { Selection, sharedQueues, whyNoRoute } from '../../../../src/gateway/orders/selection.js';

const ENVELOPE: Envelope = {
  messageId: 7, queueClass: 'mail', queueName: 'out', reversePath: 'Ann@From.example', flags: 0, ret: 0, envid: '', arrivalWallMs: 0,
  expiryWallMs: 0, client: '192.0.2.7', helo: 'me',
  recipients: ['bob@a.example', 'eve@b.example', '"x@y"@A.example'].map((address) => ({ address, notify: 0, orcpt: '' })),
};

const NAMES: RouteNames = { nameOf: ({ queueName }) => queueName.replace(/[/#!].*/, ''), domainOf: () => '' };

function meant(given: Selector, note: Partial<Note> = {}, envelope: Partial<Envelope> = {}): readonly number[] {
  return new Selection(given, NAMES, toAscii).recipientsOf({ ...ENVELOPE, ...envelope }, { ...freshNote(3), ...note });
}

test('a route that is neither configured nor that of a queue is named with those that are', () => {
  const route = (queueName: string): Route => ({ queueName }) as Route;
  const names = { ...NAMES, mailRoutes: () => ['out', 'in'].map(route) };
  for (const known of [undefined, 'out', 'OUT', 'o*', 'gone']) {
    assert.equal(whyNoRoute(known === undefined ? {} : { route: known }, names, [{ route: route('gone/a.example') }]), '');
  }
  assert.equal(whyNoRoute({ route: 'typo' }, names), "there is no route 'typo' here; there are: out, in");
  const many = { ...NAMES, mailRoutes: () => Array.from({ length: 25 }, (_, i) => route(`r${String(i)}`)) };
  assert.match(whyNoRoute({ route: 'typo' }, many), /: r0, .*, r19 and 5 more$/);
});

describe('a selection', () => {
  test('means recipients by domain and address, in either case', () => {
    assert.deepEqual(meant({ everything: true }), [0, 1, 2]);
    assert.deepEqual(meant({ domain: 'A.EXAMPLE' }), [0, 2]);
    assert.deepEqual(meant({ domain: '*.example' }), [0, 1, 2]);
    assert.deepEqual(meant({ recipient: 'eve@*' }), [1]);
    assert.deepEqual(meant({ domain: 'a.example', recipient: 'bob@*' }), [0]);
  });

  test('means a domain however it is spelled, in Unicode or as A-labels', () => {
    const recipients = ['a@Bücher.example', 'b@xn--bcher-kva.example', 'c@mail.bücher.example', 'd@XN--BCHER-KVA.example', 'e@other.example', 'f@mail.xn--bcher-kva.example'].map((address) => ({ address, notify: 0, orcpt: '' }));
    const of = (domain: string): readonly number[] => meant({ domain }, freshNote(6), { recipients });
    for (const domain of ['bücher.example', 'BÜCHER.example', 'xn--bcher-kva.example', 'XN--BCHER-KVA.Example']) assert.deepEqual(of(domain), [0, 1, 3], domain);
    for (const domain of ['*.bücher.example', '*.xn--bcher-kva.example', 'm*.bücher.example']) assert.deepEqual(of(domain), [2, 5], domain);
    const selection = new Selection({ domain: 'bücher.example' }, { ...NAMES, domainOf: () => 'xn--bcher-kva.example' }, toAscii);
    assert.ok(selection.concernsDomainOf({} as Route) && selection.mayMean('xn--bcher-kva.example') && !selection.mayMean('bucher.example'));
  });

  test('means an address by its domain however that is spelled, and converts nothing where no address has one beyond ASCII', () => {
    const recipients = ['u@Bücher.example', 'u@xn--bcher-kva.example', 'U@mail.bücher.example', 'v@bücher.example', 'u@other.example'].map((address) => ({ address, notify: 0, orcpt: '' }));
    const of = (recipient: string): readonly number[] => meant({ recipient }, freshNote(5), { recipients });
    for (const domain of ['bücher.example', 'BÜCHER.example', 'xn--bcher-kva.example', 'XN--BCHER-KVA.Example']) assert.deepEqual(of(`u@${domain}`), [0, 1], domain);
    assert.deepEqual([of('*@bücher.example'), of('u@*.xn--bcher-kva.example'), of('u@bucher.example')], [[0, 1, 3], [2], []]);
    let converted = 0;
    const counting = (domain: string): string => {
      converted += 1;
      return toAscii(domain);
    };
    const selection = new Selection({ recipient: 'u@other.example', domain: '*.example' }, NAMES, counting);
    assert.deepEqual([selection.recipientsOf({ ...ENVELOPE, recipients }, freshNote(5)), converted], [[4], 0]);
  });

  test('means a message by its sender, the null one too, and by its client', () => {
    assert.deepEqual(meant({ sender: 'ann@from.example' }), [0, 1, 2]);
    assert.deepEqual(meant({ sender: '<>' }), []);
    assert.deepEqual(meant({ sender: '<>' }, {}, { reversePath: '' }), [0, 1, 2]);
    assert.deepEqual(meant({ sender: '' }, {}, { reversePath: '' }), [0, 1, 2]);
    for (const [client, isMeant] of [['192.0.2.7', true], ['192.0.2.0/24', true], ['192.0.3.0/24', false], ['2001:db8::/32', false]] as const) {
      assert.equal(meant({ client }).length > 0, isMeant, client);
    }
    assert.deepEqual(meant({ client: '2001:db8::/32' }, {}, { client: '2001:db8::1' }), [0, 1, 2]);
    assert.deepEqual(meant({ client: '192.0.2.7' }, {}, { client: '::ffff:192.0.2.7' }), [0, 1, 2]);
    assert.deepEqual(meant({ client: '192.0.2.7' }, {}, { client: '' }), [], 'mail of our own has no client');
  });

  test('means those whom nothing is decided about yet', () => {
    assert.deepEqual(meant({ everything: true }, { states: Uint8Array.of(DONE, TO_TRY, OWED_FAILURE) }), [1, 2]);
  });

  test('means by what was said last: a code, a status, and those below it', () => {
    const results = [{ recipient: 0, code: 421, enhanced: '4.7.1' }, { recipient: 1, code: 451, enhanced: '4.7.10' }];
    for (const [reply, recipients] of [['421', [0]], ['4.7.1', [0]], ['4.7', [0, 1]], ['4', [0, 1]], ['4.70', []], ['450', []]] as const) {
      assert.deepEqual(meant({ reply }, { results }), recipients, reply);
    }
  });

  test('means queues by their route, and by a host that takes their mail, by MX when it is known', () => {
    const queue = (name: string, host: string, mxHosts: readonly string[] = [], others: readonly string[] = []): MailQueue => {
      const nextHop = { host, isByMx: mxHosts.length > 0, others: others.map((one) => ({ host: one })) };
      return { name, mxHosts, route: { queueName: name, queueClass: 'mail', nextHop } } as unknown as MailQueue;
    };
    const [relay, mx, unasked] = [queue('out', 'relay', [], ['spare']), queue('out/a.example', 'a.example', ['mx1.host', 'mx2.host']), queue('other/b', 'b')];
    for (const [given, isMeant] of [
      [{ route: 'out' }, [true, true, false]], [{ route: 'o*' }, [true, true, true]], [{ route: 'out/a.example' }, [false, false, false]],
      [{ site: 'MX2.host' }, [false, true, false]], [{ site: 'a.example' }, [false, false, false]], [{ site: 'relay' }, [true, false, false]],
      [{ site: 'spare' }, [true, false, false]], [{ site: '*.host', route: 'other' }, [false, false, false]], [{ queue: 'out', site: 'relay' }, [true, false, false]],
    ] as const) {
      const selection = new Selection(given, NAMES, toAscii);
      assert.deepEqual([relay, mx, unasked].map((one) => selection.concernsQueue(one)), isMeant, JSON.stringify(given));
    }
  });

  test('says what is wrong with a selector', () => {
    for (const odd of [{ reply: '99' }, { reply: '4.' }, { domain: '' }, { ids: [] }, { older_than_seconds: -1 }, { everything: false }, { sit: 'x' }]) {
      assert.ok(readShape(selector, odd) instanceof BrokenRule, JSON.stringify(odd));
    }
    assert.match(whyNoSelector({}), /say which messages/);
    assert.notEqual(whyNoSelector({ reply: '99' }), '');
    assert.match(whyNoSelector({ everything: true, domain: 'x' }), /alone/);
    assert.match(whyNoSelector({ ids: ['no id!'] }), /is no queue id/);
    assert.match(whyNoSelector({ client: '192.0.2.0/33' }), /is no address or network/);
    assert.equal(whyNoSelector({ client: '192.0.2.0/24' }), '');
  });
});

describe('a suspension by domain', () => {
  const COMMON = { ordering: 'fifo', concurrency: 4, lengthMax: 10, nextHop: { protocol: 'smtp', host: 'h', port: 25 } } as const;
  const CONDITION = { when: { senders: ['*@news.example'] } };
  const told = (routes: readonly Partial<RouteOptions>[], selector: Selector, hasOwnNow = false): readonly [why: string, shared: string] => {
    const names = createRouter(routes.map((one, i) => ({ ...COMMON, name: `r${String(i)}`, domains: ['*'], ...one })));
    const { why, shared } = sharedQueues(selector, { names, toAscii }, () => hasOwnNow);
    return [why, shared].map((text) => text.replace(/, which .*/, '')) as [string, string];
  };

  test('is given where a route has a queue for it, whatever the conditions, and names queues that it does not stop', () => {
    const [own, shared] = [{ name: 'own', perDomain: true }, { name: 'shared' }];
    const x = { domain: 'X.example' };
    const also = "mail to X.example also waits in the queue 'shared'";
    assert.deepEqual(told([own], x), ['', '']);
    assert.deepEqual(told([{ ...own, domains: ['x.example'], ...CONDITION }, shared], x), ['', also]);
    assert.deepEqual(told([{ ...shared, domains: ['x.example'], ...CONDITION }, own], x), ['', also]);
    assert.deepEqual(told([{ ...shared, domains: ['x.example'] }, own], x), ["mail to X.example waits in the queue 'shared'", '']);
    assert.deepEqual(told([{ ...shared, domains: ['*.example'] }, own], { domain: 'x.*' }), ['', "mail to 'x.*' also waits in the queue 'shared'"]);
    assert.deepEqual(told([{ ...shared, domains: ['x.example'] }, own], { ...x, route: 'own' }), ['no route here takes mail to X.example', '']);
  });

  test('is refused where none has, but for a queue of its own that is left', () => {
    const x = { domain: 'x.example' };
    assert.deepEqual(told([{ lanes: 2 }], { domain: '*.example' }), ["mail to '*.example' waits in the queue 'r0#*'", '']);
    assert.match(told([{ lanes: 2 }], x)[0], /^mail to x\.example waits in the queue 'r0#[12]'$/);
    assert.deepEqual(told([{}], x, true), ['', "mail to x.example also waits in the queue 'r0'"]);
    assert.deepEqual(told([{ domains: ['a.example'], perDomain: true }], x), ['no route here takes mail to x.example', '']);
    const many = Array.from({ length: 22 }, (_, i) => ({ domains: [`d${String(i)}.example`] }));
    assert.match(told(many, { domain: 'd*' })[0], /^mail to 'd\*' waits in the queues '.*' and 2 more$/);
  });

  test('in U-labels goes by the routes of its A-labels', () => {
    const routes = [{ domains: ['xn--bcher-kva.example'], perDomain: true }, {}];
    assert.deepEqual(told(routes, { domain: 'b\u00fccher.example' }), ['', '']);
  });

  test('by a pattern means the routes that mail to some of its domains may go by, and none below which all goes by another', () => {
    const router = createRouter(['*', '*.example', '*.shop.example', 'a.shop.example', 'b.other.example', '*.other.example', '*.x.shop.example'].map((domain) => ({ ...COMMON, name: domain, domains: [domain] })));
    for (const [pattern, names] of [
      ['*.shop.example', ['a.shop.example', '*.x.shop.example', '*.shop.example']], ['*shop.example', ['a.shop.example', '*.x.shop.example', '*.shop.example', '*.example']],
      ['b.*', ['b.other.example', '*.x.shop.example', '*.other.example', '*.shop.example', '*.example', '*']],
      ['b.other.example', ['b.other.example']], ['c.other.example', ['*.other.example']], ['shop.example', ['*.example']], ['*.test', ['*']],
    ] as const) assert.deepEqual(router.waysTo(pattern).map(({ queueName }) => queueName), names, pattern);
  });
});
