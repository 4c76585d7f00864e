/** What is counted for reports on TLS: handed to the first of several workers, kept over a restart; in memory but for the file. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { sealedLine } from '../../../../../src/gateway/local/sealed-lines.js';
import { createRouter } from '../../../../../src/gateway/queue/router.js';
import { MxLookup } from '../../../../../src/gateway/outbound/mx-lookup.js';
import { RunningTlsReports } from '../../../../../src/gateway/outbound/tls-reports/running-tls-reports.js';
import type { CountsMessage } from '../../../../../src/gateway/outbound/tls-reports/handover.js';
import type { Resolver } from '../../../../../src/platform/resolver.js';
import { MemoryReception } from '../../../../dialog/memory-reception.js';

const DAY_MS = 86_400_000;
const DAY = 20_000;
const SESSION = { mxHost: 'mx.a.example', address: '192.0.2.1', source: '203.0.113.1', dane: undefined };
const GOOD = { version: 'TLSv1.3', cipher: 'x', isVerified: true };

class World {
  nowMs = 0;
  /** Noon. */
  wallMs = (DAY + 0.5) * DAY_MS;
  readonly folder: string;
  readonly log: string[] = [];
  readonly reception = new MemoryReception();
  /** Silent: nobody answers about _smtp._tls. */
  knows = true;
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
        const answer = { kind: 'found', records: ['v=TLSRPTv1; rua=mailto:tls@reports.example'], isAuthentic: false };
        if (this.knows) done(answer as never);
        else done({ kind: 'failed', why: 'silence' } as never);
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
    const one = new RunningTlsReports({ id: `gw-1-${String(number)}`, stateDir: join(this.folder, String(number)), reporter: { organization: 'Us', contact: 'tls@us.example', hostName: 'gw.test' } }, {
      clock, log: { debug: () => undefined, info: tellLog, warn: tellLog, error: tellLog }, resolver, lookup, router, reception: this.reception, signer: undefined, onSent: () => undefined,
      https: { ask: () => assert.fail('nobody asks by HTTPS') }, policyOf: () => undefined,
      workers: workers === 1 ? undefined : { isFirst: number === 1, tell },
    });
    this.all.set(number, one);
    await one.load();
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

  async until(holds: () => boolean): Promise<void> {
    const deadlineMs = performance.now() + 10_000;
    while (!holds()) {
      assert.ok(performance.now() < deadlineMs);
      await new Promise((resolve) => { setTimeout(resolve, 5); });
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
    await on.go(25);
    assert.equal(lost, 3);
    for (let i = 0; i < 5; i++) three.tally.onSession('a.example', SESSION, GOOD);
    on.midnight();
    await on.go(75);
    assert.deepEqual(on.reports(), ['a.example 7 1']);
  });

  test('go in pieces, one a second; none while nothing is counted', async (t) => {
    const on = new World(t);
    const [, two] = [await on.start(1, 2), await on.start(2, 2)];
    const sizes: number[] = [];
    on.onMessage = (from, message) => {
      if (from === 2) sizes.push(JSON.stringify(message).length);
      return true;
    };
    await on.go(30);
    assert.deepEqual(sizes, []);
    for (let i = 0; i < 1_000; i++) two.tally.onFailedSession(`${String(i)}.example`, SESSION, 'x'.repeat(100));
    await on.go(11);
    assert.ok(sizes.length > 4 && sizes.length < 12 && sizes.every((size) => size < 80_000), String(sizes));
    on.midnight();
    await on.go(330);
    assert.equal(on.reports().length, 1_000);
  });

  test('wait while the first one is away, over a restart of their own, too', async (t) => {
    const on = new World(t);
    const two = await on.start(2, 2);
    two.tally.onSession('a.example', SESSION, GOOD);
    await on.go(60);
    two.tally.onSession('a.example', SESSION, GOOD);
    await two.close();
    const again = await on.start(2, 2);
    again.tally.onSession('a.example', SESSION, GOOD);
    await on.start(1, 2);
    await on.go(20);
    on.midnight();
    await on.go(75);
    assert.deepEqual(on.reports(), ['a.example 3 0']);
  });
});

describe('sessions with TLS of which the file was written meanwhile', () => {
  test('are not handed once more by the next process of a worker, when the first one has said that it has them', async (t) => {
    const on = new World(t);
    const [, two] = [await on.start(1, 2), await on.start(2, 2)];
    let hears = false;
    on.onMessage = (from) => from === 2 || hears;
    two.tally.onSession('a.example', SESSION, GOOD);
    await on.go(305);
    await on.until(() => existsSync(on.file(2)));
    hears = true;
    await on.go(15);
    await two.close();
    await on.start(2, 2);
    await on.go(15);
    on.midnight();
    await on.go(75);
    assert.deepEqual(on.reports(), ['a.example 1 0']);
  });

  test('are not told once more by the next process, when the domain was asked since', async (t) => {
    const on = new World(t);
    const one = await on.start(1, 1);
    one.tally.onSession('a.example', SESSION, GOOD);
    on.midnight();
    on.knows = false;
    await on.go(305);
    await on.until(() => existsSync(on.file(1)));
    on.knows = true;
    await on.go(300);
    assert.deepEqual(on.reports(), ['a.example 1 0']);
    await one.close();
    await on.start(1, 1);
    await on.go(5);
    assert.deepEqual(on.reports().length, 1);
  });
});

describe('sessions with TLS that a process has counted', () => {
  test('are reported by the next one, also of a day that ended meanwhile; what was told is not told again', async (t) => {
    const on = new World(t);
    const one = await on.start(1, 1);
    one.tally.onSession('a.example', { ...SESSION, mxHost: 'mäx\u2026' }, undefined);
    await one.close();
    const two = await on.start(1, 1);
    two.tally.onSession('a.example', SESSION, GOOD);
    await two.close();
    await two.close();
    on.wallMs += DAY_MS;
    on.knows = false;
    const three = await on.start(1, 1);
    await on.go(2);
    await three.close();
    on.knows = true;
    const four = await on.start(1, 1);
    await on.go(2);
    assert.deepEqual(on.reports(), ['a.example 1 1']);
    await four.close();
    await on.start(1, 1);
    await on.go(2);
    assert.deepEqual([on.reports().length, on.log], [1, Array(2).fill('a day of TLS is reported {"domains":1}')]);
  });

  test('are written every few minutes, when there is something new', async (t) => {
    const on = new World(t);
    const one = await on.start(1, 1);
    await on.go(301);
    assert.ok(!existsSync(on.file(1)));
    one.tally.onSession('a.example', SESSION, GOOD);
    await on.go(301);
    await on.until(() => existsSync(on.file(1)));
    const [, ...rest] = readFileSync(on.file(1), 'latin1').trim().split(' ');
    assert.deepEqual(JSON.parse(rest.join(' ')), {
      day: DAY, counts: { domain: 'a.example', policies: [{ type: 'no-policy-found', domain: 'a.example', text: { strings: [], mxHosts: [] }, successes: 1, failures: 0, details: [] }] },
    });
  });

  test('are read line by line: what is damaged or none of ours is put aside, with a line of the log', async (t) => {
    const on = new World(t);
    const one = await on.start(1, 1);
    for (const domain of ['a.example', 'b.example', 'c.example']) one.tally.onSession(domain, SESSION, GOOD);
    await one.close();
    const [a = '', b = '', c = ''] = readFileSync(on.file(1), 'latin1').split('\n');
    const json = c.slice(9);
    const old = sealedLine(json.replace(`"day":${String(DAY)}`, `"day":${String(DAY - 7)}`)).trim();
    const odd = [json.replace('"successes":1', '"successes":-1'), json.replace('"policies":[', '"more":1,"policies":['), '{', ''].map((text) => sealedLine(text).trim());
    writeFileSync(on.file(1), [a, b.replace('b.example', 'x.example'), old, ...odd, c.slice(0, 100)].join('\n'), 'latin1');
    await on.start(1, 1);
    assert.deepEqual(readdirSync(join(on.folder, '1')), ['tls-counts.damaged']);
    assert.equal(on.log.length, 1);
    assert.match(on.log[0] ?? '', /damaged in places, and was put aside .*"6 lines"/);
    on.midnight();
    await on.go(5);
    assert.deepEqual(on.reports(), ['a.example 1 0']);
  });
});
