/** Where reports to senders go: by the table, as mail to them would. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';
import { ReturnAddresses } from '../../../../src/base/return-addresses.js';
import { SenderRewriting } from '../../../../src/base/sender-rewriting.js';
import type { Hmac } from '../../../../src/base/signed-text.js';
import { NOT_ASKED } from '../../../../src/gateway/inbound/recipients/listing.js';
import type { Listing, RecipientTable } from '../../../../src/gateway/inbound/recipients/listing.js';
import { reportWays } from '../../../../src/gateway/inbound/recipients/report-ways.js';
import { createRouter } from '../../../../src/gateway/queue/router.js';
import type { RouteOptions } from '../../../../src/gateway/queue/router.js';
import { NOBODY_BEHIND, NO_WAY_BACK, NOT_READY } from '../../../../src/gateway/mail-types.js';
import { ReturnPaths } from '../../../../src/gateway/returned/return-paths.js';
import { toAscii } from '../../../../src/platform/node/idna.js';

function routeTo(name: string): RouteOptions {
  return { domains: [name], name, nextHop: { protocol: 'smtp', host: '127.0.0.1', port: 25 }, ordering: 'fifo', concurrency: 1, lengthMax: 10 };
}

const DAY_MS = 86_400_000;
const hmac: Hmac = (key, text) => createHmac('sha256', key).update(text).digest();

/** Reverse-paths as they are made here on a day. */
function madeOn(day: number, secret = 'a secret of ours'): { readonly rewriting: SenderRewriting; readonly out: ReturnAddresses; readonly news: ReturnAddresses } {
  const keys = [Buffer.from(secret)];
  const wallMs = (): number => day * DAY_MS;
  const returns = (route: string, leadsBack: boolean): ReturnAddresses =>
    new ReturnAddresses({ route, domain: 'bounces.example', prefix: route.charAt(0), daysValid: 10, leadsBack }, keys, hmac, wallMs);
  return { rewriting: new SenderRewriting('fwd.example', keys, hmac, wallMs), out: returns('out', true), news: returns('news', false) };
}

const TODAY = madeOn(20_000);

/** "address by queue" of the way to a sender. */
function waysBy(recipients: RecipientTable | undefined, names: readonly string[]): (sender: string, onKnown?: () => void) => string | typeof NOT_READY {
  const options = { hostName: 'mx.ours.example', postmaster: 'ops@ours.example', relayDomains: ['ours.example'] };
  const paths = new ReturnPaths([TODAY.out, TODAY.news], { address: 'fbl@ours.example', forwardTo: 'fbl@ours.example' });
  const find = reportWays(options, { router: createRouter(names.map(routeTo)), toAscii, recipients, made: { rewriting: TODAY.rewriting, paths, domains: ['fwd.example'] } });
  return (sender, onKnown) => {
    const way = find(sender, onKnown);
    return typeof way === 'string' || way === NOT_READY ? way : `${way.address} by ${way.route.queueClass}/${way.route.queueName}`;
  };
}

const NAMES = ['ours.example', 'box-17', 'else.example'];

describe('a report without a table', () => {
  test('goes by the domain of its sender, however that is spelt', () => {
    const way = waysBy(undefined, ['xn--bcher-kva.example', 'plain.example']);
    for (const domain of ['xn--bcher-kva.example', 'bücher.example', 'BÜCHER.Example', 'bu\u0308cher.example']) {
      assert.equal(way(`a@${domain}`), `a@${domain} by bounce/xn--bcher-kva.example`);
    }
    assert.equal(way('a@Plain.example'), 'a@Plain.example by bounce/plain.example');
    assert.equal(way('a@other.example'), NO_WAY_BACK);
  });

  test('goes where all others go when its sender has no domain', () => {
    const way = waysBy(undefined, ['*']);
    for (const sender of ['', 'a', 'a@', 'a@a b', 'a@\u0000', 'a@[192.0.2.1]']) assert.equal(way(sender), `${sender} by bounce/*`);
  });
});

describe('a report to a reverse-path that was made here', () => {
  const way = waysBy(undefined, ['else.example', 'ours.example', 'fwd.example', 'bounces.example']);
  const to = (address: string): string => `${address} by bounce/${address.slice(address.indexOf('@') + 1)}`;
  const { rewriting, out, news } = TODAY;

  test('goes to whom it stands for, also where it was made over another one', () => {
    const back = out.written(4711, 'bob@far.example', 'alice@else.example');
    assert.match(back, /^o\+.*@bounces\.example$/);
    for (const path of [back, rewriting.rewritten('alice@else.example'), rewriting.rewritten(back)]) {
      assert.equal(way(path), to('alice@else.example'), path);
    }
    const short = out.written(4711, 'bob@far.example', rewriting.rewritten('a@b.de'));
    assert.match(short, /^o\+.*=SRS0=/);
    assert.equal(waysBy(undefined, ['b.de'])(short), to('a@b.de'));
    assert.equal(way(rewriting.rewritten('postmaster@ours.example')), to('ops@ours.example'));
    assert.equal(way('fbl@ours.example'), to('fbl@ours.example'));
  });

  test('goes nowhere where that is forged, too old, or nobody', () => {
    const old = madeOn(20_000 - 22);
    const forged = madeOn(20_000, 'the secret of somebody');
    const discarded = news.written(4711, 'bob@far.example', 'alice@else.example');
    const paths = [old, forged].flatMap((made) => [made.rewriting.rewritten('alice@else.example'), made.out.written(4711, 'bob@far.example', 'alice@else.example')]);
    for (const path of [...paths, discarded, rewriting.rewritten(discarded), 'SRS0=x@fwd.example', 'n+x@bounces.example']) {
      assert.equal(way(path), NOBODY_BEHIND, path);
    }
    assert.equal(way('alice@fwd.example'), to('alice@fwd.example'));
  });
});

describe('a report by the table', () => {
  const lines = new Map<string, Listing>([
    ['bob@ours.example', { route: 'box-17', to: [] }],
    ['ops@ours.example', { route: 'box-17', to: [] }],
    ['info@ours.example', { route: '', to: ['bob@ours.example', 'x@else.example'] }],
    ['lost@ours.example', { route: 'no-such-route', to: [] }],
  ]);
  const way = waysBy({ find: (key) => lines.get(key) }, NAMES);

  test('goes to the mailbox server of its sender, and along an alias', () => {
    assert.equal(way('bob@ours.example'), 'bob@ours.example by bounce/box-17');
    assert.equal(way('Bob@OURS.example'), 'Bob@OURS.example by bounce/box-17');
    assert.equal(way('info@ours.example'), 'bob@ours.example by bounce/box-17');
    assert.equal(way('x@else.example'), 'x@else.example by bounce/else.example');
  });

  test('asks for the first of a list, not for all of it', () => {
    let asked = 0;
    const members = Array.from({ length: 1000 }, (_none, i) => `m${String(i)}@ours.example`);
    const toList = waysBy({ find: (key) => { asked += 1; return { route: '', to: key.startsWith('list') ? members : [] }; } }, NAMES);
    assert.equal(toList('list@ours.example'), 'm0@ours.example by bounce/ours.example');
    assert.equal(asked, 2);
  });

  test('goes to who reads postmaster\'s mail', () => {
    for (const sender of ['postmaster@ours.example', 'abuse@fwd.example', 'Postmaster@mx.ours.example']) {
      assert.equal(way(sender), 'ops@ours.example by bounce/box-17', sender);
    }
  });

  test('goes by the domain when the table does not know better', () => {
    assert.equal(way('nobody@ours.example'), 'nobody@ours.example by bounce/ours.example');
    assert.equal(way('lost@ours.example'), 'lost@ours.example by bounce/ours.example');
  });

  test('waits while nobody can tell, whether a route leads to the domain or none', () => {
    const unreadable = { find: () => { throw new Error('gone'); } };
    for (const names of [NAMES, ['box-17']]) assert.equal(waysBy(unreadable, names)('bob@ours.example'), NOT_READY);
    assert.equal(waysBy(unreadable, NAMES)('x@else.example'), 'x@else.example by bounce/else.example');
  });

  test('waits for the answer when somebody must be asked', () => {
    const answers = new Map<string, Listing>();
    const asked: string[] = [];
    let answer = (): void => assert.fail();
    const byHttp = waysBy({
      find: (key) => answers.get(key) ?? NOT_ASKED,
      learn: (keys, done) => {
        asked.push(...keys);
        answer = done;
      },
    }, NAMES);
    let isKnown = false;
    assert.equal(byHttp('bob@ours.example', () => { isKnown = true; }), NOT_READY);
    assert.deepEqual([asked, isKnown], [['bob@ours.example'], false]);
    answer();
    assert.ok(isKnown, 'it is told when to look again');
    answers.set('bob@ours.example', { route: 'box-17', to: [] });
    assert.equal(byHttp('bob@ours.example'), 'bob@ours.example by bounce/box-17');
  });

  test('takes a small part of the line, and asks on as answers come', () => {
    const asked: (() => void)[] = [];
    const byHttp = waysBy({ find: () => NOT_ASKED, learn: (_keys, done) => { asked.push(done); } }, NAMES);
    for (let i = 0; i < 1000; i++) assert.equal(byHttp(`u${String(i)}@ours.example`), NOT_READY);
    assert.equal(asked.length, 256);
    for (const done of asked.splice(0, 10)) done();
    for (let i = 0; i < 1000; i++) byHttp(`u${String(i)}@ours.example`);
    assert.equal(asked.length, 256);
  });

  test('asks once for a sender of many, and tells a bounded number of them when to look again', () => {
    const asked: (() => void)[] = [];
    let told = 0;
    const byHttp = waysBy({ find: () => NOT_ASKED, learn: (_keys, done) => { asked.push(done); } }, NAMES);
    for (let i = 0; i < 1000; i++) byHttp('bob@ours.example', () => { told += 1; });
    assert.equal(asked.length, 1);
    asked[0]?.();
    assert.equal(told, 256);
  });

  test('is not told to look again when it could not be asked for: the line would be as full', () => {
    let looks = 0;
    const byHttp = waysBy({ find: () => NOT_ASKED, learn: (_keys, done) => { done(true); } }, NAMES);
    for (let i = 0; i < 1000; i++) assert.equal(byHttp('bob@ours.example', () => { looks += 1; }), NOT_READY);
    assert.equal(looks, 0);
  });
});
