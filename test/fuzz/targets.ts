/**
 * What is fed, and what must hold whatever it is fed:
 *
 *   session, bdat, auth   no exception; what is kept of a message holds no NUL and no CR or LF alone, and was told 250;
 *                         replies are lines of three digits; all memory in transit is given back
 *   auth (auth-target.ts) besides: in are those who proved it, and nobody else
 *   proxy                 the same verdict in one piece and in two; the session is whose the header says, and nobody's
 *                         without one; besides, what holds for sessions
 *   dns (dns-target.ts)   no exception; names that can be asked for, and addresses that are what they seem
 *   returned (returned-target.ts)   no exception; no forged return address; what is read of a report is bounded
 *   authentication (authentication-target.ts)   no field of a stranger's bears our name; ours is one field
 *   policy (policy-target.ts)  no exception; hosts that are names, as they were written
 *   host-tls (host-tls-target.ts)  no TLS that is less than what TLSA records, the policy and the route ask for
 *   handshake (handshake-target.ts)  no key that is not to be read comes to TLS; what goes on is what came
 *   next-hop (next-hop-target.ts)  no exception; each delivery ends once, with a result that can be told
 *   dsn                   no exception; a report is ASCII for an ASCII sender, CRLF only, no line over 998
 */
import assert from 'node:assert/strict';
import { isAscii } from 'node:buffer';

import { Prng } from '../../src/base/prng.js';
import { composeDsn } from '../../src/gateway/bounce/dsn.js';
import { RecipientParameters } from '../../src/gateway/inbound/commands/parameters.js';
import { readProxyHeader } from '../../src/gateway/inbound/policy/proxy-header.js';
import { WALL_MS } from '../inbound/desk.js';
import { authTarget } from './auth-target.js';
import { authenticationInput } from './authentication-target.js';
import { senderRecordsInput } from './sender-records-target.js';
import { dnsInput } from './dns-target.js';
import { handshakeInput } from './handshake-target.js';
import { hostTlsInput } from './host-tls-target.js';
import { returnedInput } from './returned-target.js';
import { nextHopInput } from './next-hop-target.js';
import { policyInput } from './policy-target.js';
import { Field, tally } from './field.js';
import { proxyInput, smtpInput } from './inputs.js';

/** Feeds input number `seed`; throws when something does not hold. */
export type Target = (seed: number) => Promise<void> | undefined;

const sessions = new Field({});
const balanced = new Field({ proxyNetworks: ['127.0.0.0/8'], relayNetworks: ['0.0.0.0/0', '::/0'] });

/** Of a target that is done when it returns. */
function atOnce(target: (random: Prng) => void): Target {
  return (seed) => {
    target(new Prng(seed));
    return undefined;
  };
}

export const TARGETS: Readonly<Record<string, Target>> = {
  session: atOnce((random) => { sessions.play(smtpInput(random), random); }),
  bdat: atOnce((random) => {
    let text = 'EHLO a\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n';
    for (let count = 1 + random.below(5); count > 0; count--) {
      const octets = random.below(60);
      text += `BDAT ${String(octets)}${random.below(3) === 0 ? ' LAST' : ''}\r\n${'x: y\r\n\r\n.\r\n'.repeat(9).slice(0, Math.max(0, octets - 2 + random.below(5)))}`;
    }
    sessions.play(Buffer.concat([Buffer.from(text, 'latin1'), smtpInput(random)]), random);
  }),
  auth: authTarget,
  proxy: atOnce((random) => {
    const input = Buffer.concat([proxyInput(random), smtpInput(random)]);
    const whole = readProxyHeader(input);
    const part = readProxyHeader(input.subarray(0, random.below(input.length + 1)));
    if (typeof part === 'object') assert.deepEqual(whole, part);
    const { address, said } = balanced.play(input, random);
    if (typeof whole !== 'object') return assert.equal(said, '', 'no header, and a word');
    assert.ok(whole.octets <= input.length);
    assert.equal(address, whole.address === '' ? '127.0.0.1' : whole.address, 'whose it is');
    tally('headers read');
  }),
  dns: atOnce(dnsInput),
  returned: atOnce(returnedInput),
  authentication: atOnce(authenticationInput),
  'sender-records': (seed) => senderRecordsInput(new Prng(seed)),
  policy: atOnce(policyInput),
  handshake: atOnce(handshakeInput),
  'host-tls': (seed) => hostTlsInput(new Prng(seed)),
  'next-hop': atOnce(nextHopInput),
  dsn: atOnce((random) => {
    const noise = (max: number): string => Buffer.from(smtpInput(random).subarray(0, random.below(max))).toString(random.below(2) === 0 ? 'latin1' : 'utf8');
    const parameters = new RecipientParameters();
    parameters.parse(` NOTIFY=${random.pick(['NEVER', 'SUCCESS,DELAY', 'x'])} ORCPT=${noise(60)}`, 0);
    const reversePath = random.below(2) === 0 ? 'a@b.example' : 'ä@b.example';
    const recipient = { address: noise(80), notify: parameters.notify, orcpt: random.below(2) === 0 ? parameters.orcpt : noise(80) };
    const report = composeDsn({
      kind: random.pick(['failure', 'success', 'delay']), reportingMta: 'mx.test', dsnId: '0000000000B', queueId: '0000000000A', dateWallMs: WALL_MS,
      envelope: { messageId: 1, queueClass: 'mail', queueName: 'q', reversePath, recipients: [recipient], flags: 0, ret: random.below(3), envid: noise(60), arrivalWallMs: WALL_MS, expiryWallMs: WALL_MS, client: '', helo: '' },
      recipients: [{ recipient, action: 'failed', code: random.pick([0, 450, 550]), enhanced: random.pick(['5.1.1', '4.4.7', noise(9)]), text: noise(600), remoteMta: noise(40), lastAttemptWallMs: WALL_MS }],
      content: Buffer.from(noise(500).replace(/\r?\n|\r/g, '\r\n'), 'utf8'),
    });
    const text = Buffer.from(report).toString('latin1');
    assert.ok(!/\r(?!\n)|(?<!\r)\n/.test(text), 'CRLF only');
    assert.ok(text.split('\r\n').every((line) => line.length <= 998), 'no line over 998');
    if (reversePath === 'a@b.example') assert.ok(isAscii(report), 'ASCII for an ASCII sender');
  }),
};
