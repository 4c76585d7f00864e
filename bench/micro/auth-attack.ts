/**
 * Fifty clients that guess passwords, and what those notice who know theirs: reception alone, TLS first, scrypt of 0.1 s.
 *
 *   node dist/bench/micro/auth-attack.js [seconds]          20 unless told otherwise
 *
 * Alone and under attack, in turns: how long AUTH takes a user who was not seen before (median, p99 of them), and how
 * late the event loop is at most. The attackers' addresses are their own; each reconnects when it is sent away. The first
 * round, while the program is compiled, is shown and not judged. Exit code 1 when the second is worse than is asked for.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from 'node:tls';
import type { ConnectionOptions } from 'node:tls';

import { scryptKey } from '../../src/platform/node/password-key.js';
import { startHarness } from '../../test/dialog/harness.js';
import { authenticatorOf } from '../../test/dialog/people.js';
import { selfSigned } from '../../test/dialog/self-signed.js';
import { SmtpTalk } from '../../test/process/smtp-talk.js';
import { sayVerdicts } from '../verdicts.js';

const ATTACKERS = 50;
const USERS = 2000;
const SCRYPT = { logCost: 15, blockSize: 8, parallelization: 1 };
const BETWEEN_MS = 300;

function talkTo(port: number, localAddress: string): Promise<SmtpTalk> {
  return SmtpTalk.over(connect({ port, host: '127.0.0.1', localAddress, rejectUnauthorized: false } as ConnectionOptions));
}

const plain = (name: string, password: string): string => `AUTH PLAIN ${Buffer.from(`\0${name}\0${password}`).toString('base64')}`;

async function attack(port: number, address: string, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const talk = await talkTo(port, address);
    while (!talk.isOver && !isOver()) if ((await talk.say(plain('user1@example.org', 'guess'))).startsWith('421')) break;
    talk.close();
  }
}

/** Milliseconds that AUTH took each new user, one after the other. */
async function logIn(port: number, first: number, seconds: number): Promise<number[]> {
  const took: number[] = [];
  const endMs = performance.now() + 1000 * seconds;
  for (let i = first; performance.now() < endMs; i++) {
    const talk = await talkTo(port, '127.0.0.1');
    const startMs = performance.now();
    const reply = await talk.say(plain(`user${String(i)}@example.org`, 'secret'));
    if (!reply.startsWith('235 ')) throw new Error(`user${String(i)}: ${reply}`);
    took.push(performance.now() - startMs);
    talk.close();
    await pause(BETWEEN_MS);
  }
  return took.sort((a, b) => a - b);
}

const seconds = Number(process.argv[2] ?? 20);
const tls = selfSigned();
if (tls === undefined) throw new Error('openssl is missing');
const salt = Buffer.alloc(16, 3);
const key = Buffer.from(await scryptKey('secret', salt, SCRYPT)).toString('base64');
const lines = Array.from({ length: USERS }, (_none, i) => `user${String(i)}@example.org:{SCRYPT}15,8,1,${salt.toString('base64')},${key}`);
const { inbound } = await startHarness({ tls, isTlsFirst: true, isSubmission: true }, { authenticator: authenticatorOf(lines) });
const loop = monitorEventLoopDelay({ resolution: 1 });
let user = 10;
/** Of the last two turns. */
let [aloneMs, attackedMs, lateMs] = [NaN, NaN, NaN];
for (let round = 0; round < 2; round++) {
  for (const isAttacked of [false, true]) {
    let isOver = false;
    const attackers = isAttacked ? Array.from({ length: ATTACKERS }, (_none, i) => attack(inbound.port, `127.0.1.${String(i + 1)}`, () => isOver)) : [];
    await pause(2000);
    loop.reset();
    loop.enable();
    const took = await logIn(inbound.port, user, seconds);
    loop.disable();
    user += took.length;
    isOver = true;
    const at = (share: number): number => took[Math.min(took.length - 1, Math.floor(share * took.length))] ?? NaN;
    if (isAttacked) [attackedMs, lateMs] = [at(0.99), loop.max / 1e6];
    else aloneMs = at(0.99);
    console.log(`${isAttacked ? 'under attack' : 'alone       '}: ${String(took.length)} users, AUTH ${at(0.5).toFixed(0)} ms (median), ${at(0.99).toFixed(0)} ms (p99); event loop late by ${(loop.max / 1e6).toFixed(1)} ms at most`);
    await Promise.race([Promise.all(attackers), pause(3000)]);
  }
}
sayVerdicts([
  { what: 'p99 of users who know their passwords, by that without an attack', value: attackedMs / aloneMs, atMost: 2, unit: ' ×' },
  { what: 'event loop late under attack', value: lateMs, atMost: 20, unit: ' ms' },
]);
process.exit();
