/** Domains whose queues could have no name: refused before any mail of them is taken, whoever leads to them. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { RecipientTable } from '../../../../src/gateway/inbound/recipients/listing.js';
import { DOMAIN_CHARACTERS_SURE, createRouter } from '../../../../src/gateway/queue/router.js';
import type { RouteOptions } from '../../../../src/gateway/queue/router.js';
import { openSession, testDesk } from '../../../inbound/desk.js';
import { MemoryConnection } from '../../../scenario/memory-connection.js';

const BASE = { nextHop: { protocol: 'smtp', host: 'h', port: 25 }, ordering: 'fifo', concurrency: 5, lengthMax: 10 } as const;
const BY_DOMAIN: RouteOptions = { ...BASE, domains: ['*'], name: 'default', perDomain: true };
const ONE_QUEUE: RouteOptions = { ...BASE, domains: ['*'], name: 'default' };
const BOXES: RouteOptions = { ...BASE, domains: [], name: 'boxes', perDomain: true };

function domainOf(length: number): string {
  return 'a.'.repeat(Math.ceil(length / 2)).slice(0, length - 1) + 'z';
}

/** "default/", "!tls" and this one are 255 characters. */
const LONGEST = domainOf(243);
const LONG = domainOf(244);

/** Replies to MAIL and RCPT. */
function told(routes: readonly RouteOptions[], from: string, to: string, recipients?: RecipientTable): readonly string[] {
  const { desk } = testDesk({ relayDomains: ['ours.example', LONG] }, { router: createRouter(routes), recipients });
  const connection = new MemoryConnection();
  const session = openSession(desk, connection);
  const say = (line: string): string => {
    connection.text = '';
    session.onData(Buffer.from(`${line}\r\n`, 'latin1'));
    return connection.text.trimEnd();
  };
  say('HELO client.example');
  return [say(`MAIL FROM:<${from}>`), say(`RCPT TO:<${to}>`)].map((reply) => reply.slice(0, 9));
}

const OK = ['250 2.1.0', '250 2.1.5'];

describe('a domain that is too long for the name of a queue', () => {
  test('is refused at RCPT by a route with a queue for each domain, and by no other', () => {
    assert.deepEqual(told([BY_DOMAIN], 'me@ok.example', `x@${LONGEST}`), OK);
    assert.deepEqual(told([BY_DOMAIN], 'me@ok.example', `x@${LONG}`), ['250 2.1.0', '550 5.1.2']);
    assert.deepEqual(told([{ ...BY_DOMAIN, domains: ['else.example'] }], 'me@ok.example', `x@${LONG}`), ['250 2.1.0', '550 5.4.4'], 'no route at all');
    assert.deepEqual(told([ONE_QUEUE], 'me@ok.example', `x@${domainOf(255)}`), OK);
    assert.deepEqual(told([{ ...ONE_QUEUE, lanes: 1024 }], 'me@ok.example', `x@${domainOf(255)}`), OK);
  });

  test('is refused at MAIL, for no report could go there', () => {
    assert.deepEqual(told([BY_DOMAIN], `me@${LONGEST}`, 'x@else.example'), OK);
    assert.equal(told([BY_DOMAIN], `me@${LONG}`, 'x@else.example')[0], '501 5.1.7');
    assert.deepEqual(told([ONE_QUEUE], `me@${domainOf(255)}`, 'x@else.example'), OK);
    // Whoever has no route for reports wants none.
    assert.deepEqual(told([{ ...BY_DOMAIN, domains: ['else.example'] }], `me@${domainOf(255)}`, 'x@else.example'), OK);
  });

  test('is refused, too, where an alias or a route of the table leads there', () => {
    for (const [target, reply] of [['x@else.example', '250 2.1.5'], [`x@${domainOf(250)}`, '550 5.1.2']] as const) {
      const recipients = { find: () => ({ route: '', to: [target] }) };
      assert.equal(told([BY_DOMAIN], 'me@ok.example', 'info@ours.example', recipients)[1], reply);
    }
    const boxed = { find: () => ({ route: 'boxes', to: [] }) };
    assert.equal(told([BY_DOMAIN, BOXES], 'me@ok.example', 'anna@ours.example', boxed)[1], '250 2.1.5');
    assert.equal(told([BY_DOMAIN, { ...BOXES, name: 'boxes-of-ours' }], 'me@ok.example', `anna@${LONG}`, { find: () => ({ route: 'boxes-of-ours', to: [] }) })[1], '550 5.1.2');
    assert.equal(told([BY_DOMAIN], 'me@ok.example', `anna@${LONG}`, boxed)[1], '451 4.3.5', 'a route that is not there');
  });

  test('is none that is in use, whatever the configuration lets a route be called', () => {
    const { length } = domainOf(DOMAIN_CHARACTERS_SURE);
    assert.equal(length, 186);
    const named = { ...BY_DOMAIN, name: 'n'.repeat(64) };
    assert.deepEqual(told([named], `me@${domainOf(length)}`, `x@${domainOf(length)}`), OK);
    assert.deepEqual(told([named], 'me@ok.example', `x@${domainOf(length + 1)}`), ['250 2.1.0', '550 5.1.2']);
  });
});
