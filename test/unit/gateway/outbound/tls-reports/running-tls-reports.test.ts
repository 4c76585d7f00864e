/** What is counted for reports on TLS: handed to the first of several workers, kept over a stop; in memory but for the file. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { sealedLine } from '../../../../../src/gateway/local/sealed-lines.js';
import { createRouter } from '../../../../../src/gateway/queue/router.js';
import { MxLookup } from '../../../../../src/gateway/outbound/mx-lookup.js';
import { RunningTlsReports } from '../../../../../src/gateway/outbound/tls-reports/running-tls-reports.js';
import type { StsPolicy } from '../../../../../src/gateway/outbound/pure/sts-policy.js';
import type { CountsMessage } from '../../../../../src/gateway/outbound/tls-reports/handover.js';
import type { Resolver } from '../../../../../src/platform/resolver.js';
import { COMMITTED, REFUSED } from '../../../../../src/gateway/mail-types.js';
import type { TlsaData } from '../../../../../src/platform/resolver.js';
import { MemoryReception } from '../../../../dialog/memory-reception.js';

const DAY_MS = 86_400_000;
const US = { organization: 'Us', contact: 'tls@us.example', hostName: 'gw.test' };
const DAY = 20_000;
const SESSION = { mxHost: 'mx.a.example', address: '192.0.2.1', source: '9.9.9.9', dane: undefined };
const LONG_POLICY: StsPolicy = { mode: 'enforce', mx: Array.from({ length: 100 }, (_none, i) => `${String(i)}.`.padEnd(4_096, 'x')), maxAgeS: 1 };
const GOOD = { version: 'TLSv1.3', cipher: 'x', isVerified: true };

class World {
  nowMs = 0;
  /** Noon. */
  wallMs = (DAY + 0.5) * DAY_MS;
  readonly folder: string;
  readonly log: string[] = [];
  readonly reception = new MemoryReception();
  /** What is answered about _smtp._tls; 'silence': later. */
  says: 'record' | 'failure' | 'silence' = 'record';
  uris = 'mailto:tls@reports.example';
  /** Answers that wait. */
  readonly waiting: (() => void)[] = [];
  readonly posted: string[] = [];
  readonly all = new Map<number, RunningTlsReports>();
  /** What goes over the channel; false: it is lost. */
  onMessage: (from: number, message: CountsMessage) => boolean = () => true;

  constructor(t: TestContext) {
    this.folder = mkdtempSync(join(tmpdir(), 'twinpost-tls-counts-'));
    t.after(() => { rmSync(this.folder, { recursive: true }); });
  }

  async start(number: number, workers: number): Promise<RunningTlsReports> {
    const resolver: Resolver = {
      ask: (_name, _type, done) => {
        const answer = { kind: 'found', records: [`v=TLSRPTv1; rua=${this.uris}`], isAuthentic: false };
        if (this.says === 'record') done(answer as never);
        else if (this.says === 'failure') done({ kind: 'failed', why: 'silence' } as never);
        else this.waiting.push(() => { done(answer as never); });
      },
    };
    const tellLog = (_event: string, text: string, fields?: object): void => { this.log.push(`${text} ${JSON.stringify(fields)}`); };
    const clock = { nowMs: () => this.nowMs, wallMs: () => this.wallMs };
    const router = createRouter([{ domains: ['*'], name: 'out', nextHop: { protocol: 'smtp', host: '', port: 25, isByMx: true }, perDomain: true, ordering: 'fifo', concurrency: 1, lengthMax: 10 }]);
    const lookup = new MxLookup({ ownNames: [], allowsPrivate: true, usesIpv6: false, usesMtaSts: true, connectionsMax: 1, connectionsPerAddressMax: 100 }, resolver);
    const tell = (message: CountsMessage): void => {
      // As over a channel: a copy, later.
      const copy = structuredClone(message);
      if (!this.onMessage(number, copy)) return;
      setImmediate(() => { for (const [other, running] of this.all) if (other !== number) running.onMessage(copy); });
    };
    const one = new RunningTlsReports({ id: `gw-1-${String(number)}`, stateDir: join(this.folder, String(number)) }, {
      clock, log: { debug: () => undefined, info: tellLog, warn: tellLog, error: tellLog }, resolver, lookup, router, reception: this.reception, signer: undefined, onSent: () => undefined,
      https: {
        ask: ({ host }, done) => {
          this.posted.push(host);
          this.waiting.push(() => { done({ kind: 'answer', status: 200, type: '', text: '' }); });
        },
      },
      policyOf: (domain) => (domain === 'long.example' ? LONG_POLICY : undefined),
      workers: workers === 1 ? undefined : { isFirst: number === 1, others: workers - 1, tell },
    });
    this.all.set(number, one);
    await one.load();
    one.renew(US);
    return one;
  }

  /** Ticks of 250 ms. */
  async go(seconds: number): Promise<void> {
    for (let i = 0; i < seconds * 4; i++) {
      this.nowMs += 250;
      this.wallMs += 250;
      for (const one of this.all.values()) one.tick(this.nowMs);
      await new Promise((resolve) => { setImmediate(resolve); });
    }
  }

  /** "domain successes failures" of each policy in each report. */
  reports(): readonly string[] {
    return this.reception.kept.flatMap(({ content }) => {
      const text = content.toString('latin1');
      const [, encoded = ''] = /application\/tlsrpt\+gzip[^]*?\r\n\r\n([^-]*)/.exec(text) ?? [];
      const { policies } = JSON.parse(gunzipSync(Buffer.from(encoded, 'base64')).toString()) as { policies: readonly { policy: Record<string, unknown>; summary: Record<string, unknown> }[] };
      return policies.map(({ policy, summary }) => `${String(policy['policy-domain'])} ${Object.values(summary).join(' ')}`);
    });
  }

  /** A clean stop. */
  async stop(one: RunningTlsReports): Promise<void> {
    for (const [number, each] of this.all) if (each === one) this.all.delete(number);
    one.close();
    await one.keep();
  }

  midnight(): void { this.wallMs = Math.ceil(this.wallMs / DAY_MS) * DAY_MS; }

  file(number: number): string { return join(this.folder, String(number), 'tls-counts'); }
}

describe('sessions with TLS that several workers count', () => {
  test('are in one report of the first one, with a piece of a worker counted once though its answer is lost', async (t) => {
    const on = new World(t);
    const [one, two, three] = [await on.start(1, 3), await on.start(2, 3), await on.start(3, 3)];
    let lost = 0;
    on.onMessage = (_from, message) => !('taken' in message && message.taken.from === 'gw-1-2' && ++lost <= 2);
    one.tally.onSession('a.example', SESSION, GOOD);
    two.tally.onSession('a.example', SESSION, GOOD);
    two.tally.onFailedSession('a.example', SESSION, 'no TLS: ECONNRESET');
    for (let i = 0; i < 5; i++) three.tally.onSession('a.example', SESSION, GOOD);
    on.midnight();
    three.tally.onSession('a.example', SESSION, GOOD);
    await on.go(20);
    assert.deepEqual(on.reports(), []);
    await on.go(20);
    assert.deepEqual([lost, on.reports()], [4, ['a.example 7 1']]);
  });

  test('are told once for each domain, however much others hand over, in pieces; nothing before the day is over', async (t) => {
    const on = new World(t);
    const [one, two] = [await on.start(1, 2), await on.start(2, 2)];
    const sizes: number[] = [];
    on.onMessage = (from, message) => {
      if (from === 2) sizes.push(JSON.stringify(message).length);
      return true;
    };
    for (let i = 0; i < 2_500; i++) {
      const domain = `${String(i)}.example`;
      one.tally.onSession(domain, SESSION, GOOD);
      for (let k = 0; k < 10; k++) two.tally.onFailedSession(domain, { ...SESSION, mxHost: `mx${String(k)}.${domain}` }, 'x'.repeat(200));
    }
    await on.go(2);
    // That there is nothing of yesterday.
    assert.ok(sizes.every((size) => size < 100) && sizes.length === 1, String(sizes));
    sizes.length = 0;
    on.midnight();
    await on.go(850);
    assert.ok(sizes.length > 80 && sizes.every((size) => size < 80_000), String(sizes));
    assert.deepEqual([on.reports().length, new Set(on.reports()).size, on.reports()[0]], [2_500, 2_500, '0.example 1 10']);
  });

  test('are waited for while a worker starts, for five minutes at most; then they get a report of their own', async (t) => {
    const on = new World(t);
    const two = await on.start(2, 2);
    two.tally.onSession('a.example', SESSION, GOOD);
    await on.stop(two);
    on.midnight();
    const one = await on.start(1, 2);
    one.tally.onSession('b.example', SESSION, GOOD);
    on.midnight();
    on.wallMs += DAY_MS;
    await on.go(290);
    assert.deepEqual(on.reports(), []);
    const again = await on.start(2, 2);
    await on.go(5);
    assert.deepEqual([...on.reports()].sort(), ['a.example 1 0', 'b.example 1 0']);
    for (const each of [one, again]) each.tally.onSession('c.example', SESSION, GOOD);
    on.all.delete(2);
    on.midnight();
    on.wallMs += DAY_MS;
    await on.go(299);
    assert.equal(on.reports().length, 2);
    await on.go(5);
    assert.deepEqual(on.reports().slice(2), ['c.example 1 0']);
    on.all.set(2, again);
    await on.go(15);
    assert.deepEqual(on.reports().slice(3), ['c.example 1 0']);
  });

  test('wait while the first one is away, over a stop of their own, too', async (t) => {
    const on = new World(t);
    const two = await on.start(2, 2);
    two.tally.onSession('a.example', SESSION, GOOD);
    on.midnight();
    await on.go(60);
    await on.stop(two);
    await on.start(2, 2);
    await on.start(1, 2);
    await on.go(20);
    assert.deepEqual(on.reports(), ['a.example 1 0']);
  });

  test('are not kept by the one whom a stop has told that the first one has them', async (t) => {
    const on = new World(t);
    const [, two] = [await on.start(1, 2), await on.start(2, 2)];
    two.tally.onSession('a.example', SESSION, GOOD);
    on.midnight();
    two.tick(250);
    two.close();
    for (let turns = 0; turns < 3; turns++) await new Promise((resolve) => { setImmediate(resolve); });
    await two.keep();
    assert.ok(!existsSync(on.file(2)));
  });
});

describe('sessions with TLS that a process has counted', () => {
  test('are reported by the next one, also of a day that ended meanwhile; what was told is not told again', async (t) => {
    const on = new World(t);
    const one = await on.start(1, 1);
    one.tally.onSession('a.example', { ...SESSION, mxHost: 'm\u00e4x\u2026' }, undefined);
    await on.stop(one);
    const two = await on.start(1, 1);
    two.tally.onSession('a.example', SESSION, GOOD);
    await on.stop(two);
    on.wallMs += DAY_MS;
    on.says = 'failure';
    const three = await on.start(1, 1);
    await on.go(2);
    await on.stop(three);
    on.says = 'record';
    const four = await on.start(1, 1);
    await on.go(2);
    assert.deepEqual(on.reports(), ['a.example 1 1']);
    await on.stop(four);
    await on.start(1, 1);
    await on.go(2);
    assert.deepEqual([on.reports().length, on.log], [1, Array(2).fill('a day of TLS is reported {"domains":1}')]);
  });

  test('wait while nobody is to be told, when nothing is counted; then they are told in whose name that is by then', async (t) => {
    const on = new World(t);
    const one = await on.start(1, 1);
    one.tally.onSession('a.example', SESSION, GOOD);
    one.renew(undefined);
    one.tally.onSession('a.example', SESSION, GOOD);
    one.tally.onFailedSession('a.example', SESSION, 'ECONNRESET');
    one.tally.onFetched('a.example', 'invalid');
    on.midnight();
    await on.go(3);
    assert.deepEqual(on.reports(), []);
    one.renew({ ...US, organization: 'Others' });
    // What was read before is not read again.
    await one.load();
    await on.go(3);
    assert.deepEqual(on.reports(), ['a.example 1 0']);
    assert.match(on.reception.kept[0]?.content.toString('latin1') ?? '', / by Others,\r$/m);
  });

  test('are told nobody when they are a week old, also where their report had its turn before', async (t) => {
    const on = new World(t);
    const one = await on.start(1, 1);
    one.tally.onSession('a.example', SESSION, GOOD);
    one.tally.onSession('b.example', SESSION, GOOD);
    on.midnight();
    on.says = 'failure';
    await on.go(2);
    one.tally.onSession('c.example', SESSION, GOOD);
    one.renew(undefined);
    on.says = 'record';
    on.wallMs += 7 * DAY_MS;
    on.nowMs += 7 * DAY_MS;
    one.renew(US);
    await on.go(5);
    assert.deepEqual(on.reports(), []);
  });

  test('stay with the worker that has them while the one that reports is off', async (t) => {
    const on = new World(t);
    const [one, two] = [await on.start(1, 2), await on.start(2, 2)];
    one.renew(undefined);
    two.tally.onSession('a.example', SESSION, GOOD);
    on.midnight();
    await on.go(30);
    await on.stop(one);
    assert.ok(!existsSync(on.file(1)));
    await on.stop(two);
    assert.ok(existsSync(on.file(2)));
  });

  test('are in the file from a clean stop until they are read, once; there is none without any', async (t) => {
    const on = new World(t);
    const one = await on.start(1, 1);
    one.tally.onSession('a.example', SESSION, GOOD);
    await on.go(1_000);
    assert.ok(!existsSync(on.file(1)));
    await on.stop(one);
    const [, ...rest] = readFileSync(on.file(1), 'latin1').trim().split(' ');
    assert.deepEqual(JSON.parse(rest.join(' ')), {
      day: DAY, to: '', counts: { domain: 'a.example', policies: [{ type: 'no-policy-found', domain: 'a.example', text: { strings: [], mxHosts: [] }, successes: 1, failures: 0, details: [] }] },
    });
    await on.start(1, 1);
    // That one is killed.
    on.all.clear();
    const three = await on.start(1, 1);
    assert.deepEqual(readdirSync(join(on.folder, '1')), []);
    await on.stop(three);
    assert.deepEqual(readdirSync(join(on.folder, '1')), []);
  });

  test('are read line by line: what is damaged or none of ours is put aside, with a line of the log, and costs no other line', async (t) => {
    const on = new World(t);
    const one = await on.start(1, 1);
    for (const domain of ['a.example', 'b.example', 'c.example']) one.tally.onSession(domain, SESSION, GOOD);
    await on.stop(one);
    const [a = '', b = '', c = ''] = readFileSync(on.file(1), 'latin1').split('\n');
    const json = c.slice(9);
    const old = sealedLine(json.replace(`"day":${String(DAY)}`, `"day":${String(DAY - 7)}`)).trim();
    const odd = [json.replace('"successes":1', '"successes":-1'), json.replace('"policies":[', '"more":1,"policies":['), '{', ''].map((text) => sealedLine(text).trim());
    writeFileSync(on.file(1), [a, b.replace('b.example', 'x.example'), old, ...odd, c.slice(0, 100)].join('\n'), 'latin1');
    const two = await on.start(1, 1);
    assert.deepEqual(readdirSync(join(on.folder, '1')), ['tls-counts.damaged']);
    assert.equal(on.log.length, 1);
    assert.match(on.log[0] ?? '', /can not be read whole, and is put aside.*"6 lines are damaged"/);
    // It has nothing new.
    await on.stop(two);
    await on.start(1, 1);
    on.midnight();
    await on.go(5);
    assert.deepEqual(on.reports(), ['a.example 1 0']);
  });

  test('are not written over what could not be read', async (t) => {
    const on = new World(t);
    mkdirSync(on.file(1), { recursive: true });
    const one = await on.start(1, 1);
    one.tally.onSession('a.example', SESSION, GOOD);
    await on.stop(one);
    assert.deepEqual(readdirSync(join(on.folder, '1')).sort(), ['tls-counts', 'tls-counts.damaged']);
    assert.match(on.log[0] ?? '', /can not be read whole.*EISDIR/);
  });

  test('can be read, whatever a domain says of itself', async (t) => {
    const on = new World(t);
    const one = await on.start(1, 1);
    const records = (count: number, bytes: number): readonly TlsaData[] => Array.from({ length: count }, () => ({ usage: 3, selector: 0, matching: 0, association: new Uint8Array(bytes) }));
    for (const each of [records(1_000, 1), records(1_000, 0), records(2, 1_020), records(2, 1_024), records(1, 4_096)]) {
      for (let i = 0; i < 10; i++) one.tally.onFailedSession('a.example', { ...SESSION, mxHost: '\u2026'.repeat(1_000), dane: { records: each, names: [`${String(i)}\u2026`.padEnd(1_024, 'x')] } }, '\u2026'.repeat(5_000));
    }
    one.tally.onSession('b.example', { ...SESSION, dane: { records: [], names: ['x'.repeat(1_025)] } }, GOOD);
    one.tally.onSession('x'.repeat(1_025), SESSION, GOOD);
    for (const domain of ['long.example', 'good.example']) one.tally.onSession(domain, SESSION, GOOD);
    await on.stop(one);
    await on.start(1, 1);
    assert.deepEqual([on.log, readdirSync(join(on.folder, '1'))], [[], []]);
    on.midnight();
    await on.go(5);
    const all = on.reports();
    assert.deepEqual([all.length, all.filter((line) => line.endsWith(' 0 5')).length, all.slice(-2)], [10, 8, ['long.example 0 1', 'good.example 1 0']]);
  });
});

describe('reports on TLS that are under way at a stop', () => {
  test('are sent by the next process alone, where an answer comes too late', async (t) => {
    const on = new World(t);
    const one = await on.start(1, 1);
    one.tally.onSession('a.example', SESSION, GOOD);
    on.midnight();
    on.says = 'silence';
    on.uris = 'mailto:tls@reports.example,https://192.0.2.9/v1';
    await on.go(2);
    one.close();
    for (const answer of on.waiting.splice(0)) answer();
    await one.keep();
    assert.deepEqual([on.reports(), on.posted], [[], []]);
    on.says = 'record';
    on.all.clear();
    await on.start(1, 1);
    await on.go(2);
    assert.deepEqual([on.reports(), on.posted], [['a.example 1 0'], ['192.0.2.9']]);
  });

  test('are sent on to those who do not have them yet, not to others', async (t) => {
    const on = new World(t);
    on.uris = 'mailto:tls@reports.example,https://192.0.2.9/v1';
    const one = await on.start(1, 1);
    one.tally.onSession('a.example', SESSION, GOOD);
    on.midnight();
    await on.go(2);
    await on.stop(one);
    assert.deepEqual([on.reports().length, on.posted.length], [1, 1]);
    const two = await on.start(1, 1);
    await on.go(2);
    for (const answer of on.waiting.splice(1)) answer();
    await on.stop(two);
    assert.deepEqual([on.reports().length, on.posted.length, existsSync(on.file(1))], [1, 2, false]);
  });

  test('are told when they are stored until the end; else the next process sends them', async (t) => {
    const on = new World(t);
    const one = await on.start(1, 1);
    for (const domain of ['a.example', 'b.example', 'c.example']) one.tally.onSession(domain, SESSION, GOOD);
    on.midnight();
    on.reception.hold = true;
    await on.go(2);
    one.close();
    const [a, b, c] = on.reception.kept;
    a?.submission.settle(COMMITTED);
    b?.submission.settle(REFUSED);
    await one.keep();
    assert.ok(c !== undefined);
    on.all.clear();
    on.reception.kept.length = 0;
    await on.start(1, 1);
    await on.go(2);
    assert.deepEqual([...on.reports()].sort(), ['b.example 1 0', 'c.example 1 0']);
  });

  test('wait for no disk longer than five seconds', async (t) => {
    const on = new World(t);
    const one = await on.start(1, 1);
    one.tally.onSession('a.example', SESSION, GOOD);
    mkdirSync(join(on.folder, '1'));
    // Nobody reads it: opening it does not end.
    execFileSync('mkfifo', [`${on.file(1)}.new`]);
    const beganMs = performance.now();
    await on.stop(one);
    const tookMs = performance.now() - beganMs;
    await readFile(`${on.file(1)}.new`);
    assert.ok(tookMs >= 4_900 && tookMs < 15_000, String(tookMs));
    assert.match(on.log[0] ?? '', /can not be written: they are lost .*within 5000 ms/);
  });
});
