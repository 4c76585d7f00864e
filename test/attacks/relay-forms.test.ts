/**
 * Every form of an address by which somebody has tried to have a server relay: what each comes to for a client that nobody
 * knows, and for one that may send anywhere, by its network or by its password.
 *
 * Relay domains here: ours.test, the subdomains of deep.test, and b\u00fccher.test; our own name is mx.test. Whatever the
 * table says, of a stranger nothing is taken but for these, and by the mailbox itself, not by a route within it.
 *
 * Elsewhere: lengths and single rules, test/dialog/envelope.txt; networks, test/unit/gateway/inbound/relay-policy.test.ts;
 * what LOCAL, UNKNOWN and [UNAVAILABLE] grant, test/dialog/proxy.txt and test/dialog/xclient.txt.
 */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';

import type { Authenticator } from '../../src/gateway/inbound/auth/authenticator.js';
import { authenticatorOf, scramLine } from '../dialog/people.js';
import { VirtualDesk } from './virtual-desk.js';
import type { VirtualClient, VirtualOptions } from './virtual-desk.js';

const TAKEN = '250 2.1.5';
const DENIED = '550 5.7.1';
const BAD = '501 5.1.3';
const CONTROL = '501 5.5.2';

/** What stands in RCPT TO:<…>; the reply to a stranger; the reply to who may send anywhere; where it goes then. */
type Row = readonly [address: string, stranger: string, known: string, domain?: string];

const PLAIN: readonly Row[] = [
  ['user@ours.test', TAKEN, TAKEN, 'ours.test'],
  ['USER@OURS.TEST', TAKEN, TAKEN, 'ours.test'],
  ['user@a.deep.test', TAKEN, TAKEN, 'a.deep.test'],
  ['user@a.b.deep.test', TAKEN, TAKEN, 'a.b.deep.test'],
  ['user@deep.test', DENIED, TAKEN, 'deep.test'],
  ['user@xdeep.test', DENIED, TAKEN, 'xdeep.test'],
  ['user@sub.ours.test', DENIED, TAKEN, 'sub.ours.test'],
  ['user@ours.test.victim.test', DENIED, TAKEN, 'ours.test.victim.test'],
  ['user@victim.test', DENIED, TAKEN, 'victim.test'],
  ['user@test', DENIED, TAKEN, 'test'],
  ['user@localhost', DENIED, TAKEN, 'localhost'],
  ['user@mx.test', DENIED, TAKEN, 'mx.test'],
  ['root@mx.test', DENIED, TAKEN, 'mx.test'],
  ['user@-ours.test', DENIED, TAKEN, '-ours.test'],
  ['user@our_s.test', DENIED, TAKEN, 'our_s.test'],
  ['user+tag@ours.test', TAKEN, TAKEN, 'ours.test'],
  ['user=victim.test@ours.test', TAKEN, TAKEN, 'ours.test'],
  ['user/victim.test@ours.test', TAKEN, TAKEN, 'ours.test'],
  ['|sh@ours.test', TAKEN, TAKEN, 'ours.test'],
  ['"user name"@ours.test', TAKEN, TAKEN, 'ours.test'],
  ['""@ours.test', TAKEN, TAKEN, 'ours.test'],
];

const HIDDEN: readonly Row[] = [
  ['user%victim.test@ours.test', DENIED, TAKEN, 'ours.test'],
  ['user%victim.test%other.test@ours.test', DENIED, TAKEN, 'ours.test'],
  ['user%40victim.test@ours.test', DENIED, TAKEN, 'ours.test'],
  ['"user%victim.test"@ours.test', DENIED, TAKEN, 'ours.test'],
  ['%@ours.test', DENIED, TAKEN, 'ours.test'],
  ['victim.test!user@ours.test', DENIED, TAKEN, 'ours.test'],
  ['other.test!victim.test!user@ours.test', DENIED, TAKEN, 'ours.test'],
  ['"victim.test!user"@ours.test', DENIED, TAKEN, 'ours.test'],
  ['victim.test!user%other.test@ours.test', DENIED, TAKEN, 'ours.test'],
  ['"user@victim.test"@ours.test', DENIED, TAKEN, 'ours.test'],
  ['"user\\@victim.test"@ours.test', DENIED, TAKEN, 'ours.test'],
  ['"@ours.test:user@victim.test"@ours.test', DENIED, TAKEN, 'ours.test'],
  ['"user@ours.test"@victim.test', DENIED, TAKEN, 'victim.test'],
  ['user%ours.test@victim.test', DENIED, TAKEN, 'victim.test'],
  ['postmaster%victim.test@ours.test', DENIED, TAKEN, 'ours.test'],
  ['user%victim.test@a.deep.test', DENIED, TAKEN, 'a.deep.test'],
  ['user%victim.test', BAD, BAD],
  ['victim.test!user', BAD, BAD],
  ['user@victim.test@ours.test', BAD, BAD],
  ['user@ours.test@victim.test', BAD, BAD],
  ['user@ours.test%victim.test', BAD, BAD],
  ['user@victim.test!ours.test', BAD, BAD],
  ['"user"@victim.test"@ours.test', BAD, BAD],
  ['user\\@victim.test@ours.test', BAD, BAD],
];

const ROUTES: readonly Row[] = [
  ['@ours.test:user@victim.test', DENIED, TAKEN, 'victim.test'],
  ['@ours.test,@mx.test:user@victim.test', DENIED, TAKEN, 'victim.test'],
  ['@victim.test:user@ours.test', TAKEN, TAKEN, 'ours.test'],
  ['@[192.0.2.1],@victim.test:user@ours.test', TAKEN, TAKEN, 'ours.test'],
  ['@ours.test:user%victim.test@ours.test', DENIED, TAKEN, 'ours.test'],
  ['@ours.test:"user@victim.test"@ours.test', DENIED, TAKEN, 'ours.test'],
  ['@ours.test:', BAD, BAD],
  ['@ours.test:postmaster', BAD, BAD],
  ['@ours.test:<user@victim.test>', BAD, BAD],
  ['@ours.test', BAD, BAD],
  ['@ours.test,user@victim.test', BAD, BAD],
  ['@:user@ours.test', BAD, BAD],
  ['@ours.test,:user@victim.test', BAD, BAD],
  ['ours.test:user@victim.test', BAD, BAD],
  ['@ours.test:@victim.test:user@ours.test', BAD, BAD],
];

const LITERALS: readonly Row[] = [
  ['user@[127.0.0.1]', DENIED, TAKEN, '[127.0.0.1]'],
  ['user@[IPv6:::1]', DENIED, TAKEN, '[ipv6:::1]'],
  ['user@[ipv6:2001:db8::1]', DENIED, TAKEN, '[ipv6:2001:db8::1]'],
  ['postmaster@[127.0.0.1]', DENIED, TAKEN, '[127.0.0.1]'],
  ['user@127.0.0.1', DENIED, TAKEN, '127.0.0.1'],
  ['user@2130706433', DENIED, TAKEN, '2130706433'],
  ['user%victim.test@[127.0.0.1]', DENIED, TAKEN, '[127.0.0.1]'],
  ['user@[::1]', BAD, BAD],
  ['user@[127.1]', BAD, BAD],
  ['user@[0x7f.0.0.1]', BAD, BAD],
  ['user@[127.0.0.256]', BAD, BAD],
  ['user@[IPv6:fe80::1%eth0]', BAD, BAD],
  ['user@[IPv6:127.0.0.1]', BAD, BAD],
  ['user@[127.0.0.1', BAD, BAD],
  ['user@127.0.0.1]', BAD, BAD],
  ['user@[127.0.0.1].ours.test', BAD, BAD],
  ['user@[ours.test]', BAD, BAD],
  ['user@[]', BAD, BAD],
  ['user@#127', BAD, BAD],
];

const INTERNATIONAL: readonly Row[] = [
  ['user@b\u00fccher.test', TAKEN, TAKEN, 'xn--bcher-kva.test'],
  ['user@B\u00dcCHER.TEST', TAKEN, TAKEN, 'xn--bcher-kva.test'],
  ['user@bu\u0308cher.test', TAKEN, TAKEN, 'xn--bcher-kva.test'],
  ['user@xn--bcher-kva.test', TAKEN, TAKEN, 'xn--bcher-kva.test'],
  ['user@XN--BCHER-KVA.test', TAKEN, TAKEN, 'xn--bcher-kva.test'],
  // As a URL each of these is ours.test or b\u00fccher.test; as a name it is none.
  ...[
    'ours.test/\u00e9', 'ours.test?\u00e9', 'ours.test#\u00e9', 'ours.test\\\u00e9', 'ours.test/\u00e9.victim.test',
    'ou\u00adr%73.test', '%6fur\u00ads.test', 'b\u00fccher%2etest', 'b\u00fccher.test/x', 'b\u00fccher.test:25',
    'b\u00fccher.test\uff0fx', 'b\u00fccher.tes\uff0574',
  ].map((domain): Row => [`user@${domain}`, BAD, BAD]),
  ['\u00fcser@ours.test', TAKEN, TAKEN, 'ours.test'],
  // Letters and dots that are mapped (UTS 46): the domain that is asked for is the one that is routed.
  ['user@\uff4f\uff55\uff52\uff53.test', TAKEN, TAKEN, 'ours.test'],
  ['user@ours\u3002test', TAKEN, TAKEN, 'ours.test'],
  ['user@victim\u3002ours.test', DENIED, TAKEN, 'victim.ours.test'],
  ['user@ours.test\uff0evictim.test', DENIED, TAKEN, 'ours.test.victim.test'],
  ['user@\u03bfurs.test', DENIED, TAKEN],
  ['user%victim\u3002test@ours.test', DENIED, TAKEN, 'ours.test'],
  ['"user@victim\u3002test"@b\u00fccher.test', DENIED, TAKEN, 'xn--bcher-kva.test'],
  ['user@ours.test\u200b@victim.test', BAD, BAD],
  ['user@\u2025test', BAD, BAD],
  ['user@\u202eours.test', BAD, BAD],
];

const ODD: readonly Row[] = [
  ['', BAD, BAD], ['user', BAD, BAD], ['user@', BAD, BAD], ['@', BAD, BAD], ['user@.', BAD, BAD], [' ', BAD, BAD],
  ['user@ours.test.', BAD, BAD], ['user@.ours.test', BAD, BAD], ['user@ours..test', BAD, BAD],
  ['.user@ours.test', BAD, BAD], ['user.@ours.test', BAD, BAD], ['us..er@ours.test', BAD, BAD],
  ['user(comment)@ours.test', BAD, BAD], ['(c)user@ours.test', BAD, BAD], ['user@ours.test(c)', BAD, BAD], ['user@(c)ours.test', BAD, BAD],
  ['user @ours.test', BAD, BAD], ['user@ ours.test', BAD, BAD], [' user@ours.test', BAD, BAD], ['user@ours.test ', BAD, BAD], ['us er@ours.test', BAD, BAD],
  ['user,other@ours.test', BAD, BAD], ['user@ours.test,other@victim.test', BAD, BAD], ['user;victim.test@ours.test', BAD, BAD], ['mailto:user@ours.test', BAD, BAD],
  ['<user@victim.test>', BAD, BAD], ['user<user@victim.test>@ours.test', BAD, BAD], ['User <user@ours.test>', BAD, BAD],
  ['"user@ours.test', BAD, BAD], ['"user"x@ours.test', BAD, BAD], ['"us"er"@ours.test', BAD, BAD], ['us"er"@ours.test', BAD, BAD], ['"user\\"@ours.test', BAD, BAD],
  ['user\0@ours.test', CONTROL, CONTROL], ['user@ours.test\0@victim.test', CONTROL, CONTROL], ['user@victim.test\0.ours.test', CONTROL, CONTROL], ['user\t@ours.test', CONTROL, CONTROL],
  ['user@ours.test\r@victim.test', CONTROL, CONTROL], ['user\n@ours.test', CONTROL, CONTROL], ['user\x7f@ours.test', CONTROL, CONTROL], ['us\u0085er@ours.test', CONTROL, CONTROL],
];

const ROLES: readonly Row[] = [
  ['postmaster', TAKEN, TAKEN, 'mx.test'], ['POSTMASTER', TAKEN, TAKEN, 'mx.test'], ['Postmaster@MX.test', TAKEN, TAKEN, 'mx.test'], ['abuse@mx.test', TAKEN, TAKEN, 'mx.test'],
  ['abuse@ours.test', TAKEN, TAKEN, 'ours.test'], ['postmaster@victim.test', DENIED, TAKEN, 'victim.test'], ['abuse', BAD, BAD], ['po\u017ftmaster', BAD, BAD],
  ['postmaster@ours.test.victim.test', DENIED, TAKEN, 'ours.test.victim.test'], ['abuse@b\u00fccher.test', TAKEN, TAKEN, 'xn--bcher-kva.test'],
];

const RELAYED = /^(ours\.test|.+\.deep\.test|xn--bcher-kva\.test|mx\.test)$/;
const OPTIONS: VirtualOptions = {
  relayDomains: ['ours.test', '.deep.test', 'b\u00fccher.test'], relayNetworks: ['192.0.2.0/24'], idleCommandsMax: 10_000, isTlsFirst: true,
};

let users: Authenticator;
before(async () => {
  users = authenticatorOf([await scramLine('alice@b.example', 'secret', '*')]);
});

function greeted(world: VirtualDesk, address: string): VirtualClient {
  const client = world.connect(address).secured();
  client.send('EHLO client.example\r\n').heard();
  return client;
}

async function loggedIn(world: VirtualDesk): Promise<VirtualClient> {
  const client = greeted(world, '198.51.100.9');
  client.send(`AUTH PLAIN ${Buffer.from('\0alice@b.example\0secret').toString('base64')}\r\n`);
  while (client.session.user === '') await new Promise(setImmediate);
  client.heard();
  return client;
}

/** Code and enhanced code, and the queue of the one recipient when it was taken. */
function asked(client: VirtualClient, address: string): readonly [reply: string, queue: string | undefined] {
  assert.match(client.say('MAIL FROM:<a@client.example> SMTPUTF8'), /^250 /);
  const reply = client.say(`RCPT TO:<${address}>`).split(' ', 2).join(' ');
  const queue = client.session.transaction?.groups[0]?.route.queueName;
  assert.equal(queue !== undefined, reply === TAKEN, address);
  assert.match(client.say('RSET'), /^250 /);
  return [reply, queue];
}

for (const [what, rows] of Object.entries({ 'plain ones': PLAIN, 'a route in the local part': HIDDEN, 'source routes': ROUTES, 'address literals': LITERALS, 'international ones': INTERNATIONAL, 'odd ones': ODD, 'postmaster and abuse': ROLES })) {
  describe(`addresses: ${what}`, () => {
    test('of a stranger reach relay domains only', () => {
      const client = greeted(new VirtualDesk(OPTIONS), '198.51.100.9');
      for (const [address, wanted, , domain] of rows) {
        const [reply, queue] = asked(client, address);
        assert.equal(reply, wanted, JSON.stringify(address));
        if (queue === undefined) continue;
        assert.match(queue, RELAYED);
        assert.equal(queue, domain);
      }
    });

    for (const who of ['network', 'user'] as const) {
      test(`of a known ${who} reach what they say`, async () => {
        const world = new VirtualDesk({ ...OPTIONS, isSubmission: who === 'user', authenticator: users });
        const client = who === 'user' ? await loggedIn(world) : greeted(world, '192.0.2.1');
        for (const [address, , wanted, domain] of rows) {
          const [reply, queue] = asked(client, address);
          assert.equal(reply, wanted, JSON.stringify(address));
          if (domain !== undefined) assert.equal(queue, domain, JSON.stringify(address));
        }
      });
    }
  });
}

describe('a reverse-path', () => {
  test('that is null is <> and nothing else', () => {
    const client = greeted(new VirtualDesk(OPTIONS), '192.0.2.1');
    for (const path of ['@ours.test:', '@a,@b:', ' ', '""', '@', 'postmaster', '@ours.test:postmaster']) assert.match(client.say(`MAIL FROM:<${path}>`), /^501 5\.1\.7 /, path);
    assert.match(client.say('MAIL FROM:<>'), /^250 /);
    assert.equal(client.session.transaction?.reversePath, '');
  });

  test('grants nothing: not that of a relay domain, not our own, not the null one', () => {
    const client = greeted(new VirtualDesk(OPTIONS), '198.51.100.9');
    for (const path of ['', 'user@ours.test', 'postmaster@mx.test', 'root@[127.0.0.1]', '@ours.test:a@ours.test']) {
      assert.match(client.say(`MAIL FROM:<${path}>`), /^250 /, path);
      assert.match(client.say('RCPT TO:<user@victim.test>'), /^550 5\.7\.1 /, path);
      client.say('RSET');
    }
  });
});

describe('a recipient', () => {
  test('needs its brackets, and nothing may stand between it and them', () => {
    const client = greeted(new VirtualDesk(OPTIONS), '192.0.2.1');
    client.say('MAIL FROM:<>');
    for (const line of ['RCPT TO:user@ours.test', 'RCPT TO:"user@ours.test"', 'RCPT TO:<user@ours.test', 'RCPT TO:user@ours.test>', 'RCPT TO:<<user@ours.test>>', 'RCPT TO:x<user@ours.test>', 'RCPT TO:<user@ours.test>,<user@victim.test>', 'RCPT TO:<user@ours.test>x', 'RCPT TO:<user@ours.test><user@victim.test>']) {
      assert.match(client.say(line), /^501 /, line);
    }
    for (const line of ['RCPT TO <user@ours.test>', 'RCPT <user@ours.test>', 'RCPT FROM:<user@ours.test>', 'RCPT']) assert.match(client.say(line), /^501 5\.5\.4 /, line);
    for (const line of ['RCPTTO:<user@ours.test>', 'R\u0421PT TO:<user@ours.test>']) assert.match(client.say(line), /^500 /, line);
    assert.equal(client.session.transaction?.recipientCount, 0);
  });
});
