/**
 * What a real mail server behind Twinpost has to tell, whichever it is: it takes mail of a user alone, by TLS with a
 * certificate that the gateway checks, and hands it on to the sink. While the password is wrong nothing comes to it.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { runSend } from '../../src/load/run.js';
import type { RunningSink } from '../../src/sink/options.js';
import { startSink } from '../../src/sink/sink.js';
import { HOST, startCluster, until } from '../process/cluster.js';
import { makeCertificates, type CertificateFiles } from '../process/tls-hop.js';
import { completeMessage } from './support.js';

/** Its name, in its certificate. */
const BEHIND = 'behind.test';
const USER = 'gw@relay.test';
const PASSWORD = 'correct-horse';
const COUNT = 60;
const BOUND_MS = 60_000;

export interface BehindOptions {
  /** Takes everything that it hands on. */
  readonly nextHopPort: number;
  readonly certificate: CertificateFiles;
  readonly caFile: string;
  /** Whom alone it takes mail from. */
  readonly user: string;
  readonly password: string;
}

export interface Behind {
  readonly port: number;
  /** Everything that it logged. */
  log(): string;
  stop(): Promise<void>;
}

export interface BehindStory {
  readonly start: (options: BehindOptions) => Promise<Behind>;
  /** TLS before the greeting (RFC 8314); else STARTTLS. */
  readonly isTlsFirst?: boolean;
  /** Kind of its key; EC is the default. */
  readonly keys?: 'rsa';
  /** A line of its log for each message that it took within TLS from `user`. */
  readonly taken: (user: string) => RegExp;
}

/** Load arrives behind it once and unaltered, every bit of it by TLS that was judged, and as from our user. */
export async function takesAllOfItsUser({ start, isTlsFirst = false, keys, taken }: BehindStory): Promise<void> {
  const certificates = makeCertificates(keys);
  assert.ok(certificates !== undefined);
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-behind-'));
  const sink = await startSink({ host: HOST, port: 0, verify: true, displacementMax: COUNT });
  try {
    const { caFile } = certificates;
    const behind = await start({ nextHopPort: sink.port, certificate: certificates.issue(BEHIND), caFile, user: USER, password: PASSWORD });
    try {
      const via = `${isTlsFirst ? 'smtps' : 'smtp'}://${HOST}:${String(behind.port)}`;
      await sends({ tls: 'verify', ca_file: caFile, server_name: BEHIND, via }, folder, sink);
      const told = behind.log().split('\n').filter((line) => taken(USER).test(line));
      assert.equal(told.length, COUNT, `${String(told.length)} of ${String(COUNT)} lines`);
    } catch (error) {
      throw new Error(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n${behind.log().slice(-6000)}`, { cause: error });
    } finally {
      await behind.stop();
    }
  } finally {
    await sink.close();
    rmSync(folder, { recursive: true });
  }
}

async function sends(route: Readonly<Record<string, string>>, folder: string, sink: RunningSink): Promise<void> {
  const [passwordFile, log] = [join(folder, 'password'), join(folder, 'send.log')];
  writeFileSync(passwordFile, 'guessed', { mode: 0o600 });
  const cluster = await startCluster({
    sink: false, routes: [{ domain: '*', ...route, concurrency: 5, auth: { user: USER, password_file: passwordFile } }],
    gateway: { delivery: { retry: { first: '500ms', max: '1s' } } },
  });
  try {
    const eml = [1, 10, 100, 2500].map(completeMessage);
    const sent = await runSend({ host: HOST, port: cluster.smtpPort, connections: 5, domains: ['behind.example'], count: COUNT, eml, log });
    assert.equal(sent.accepted, COUNT);
    const refused = /"event":"suspended",[^\n]*"dsn":"4\.7\.8","why":"[^"]* refused our user and password: 535/;
    await until('the log says that our password was refused', () => refused.test(cluster.gateway.log()), BOUND_MS, cluster.gateway);
    assert.equal(sink.counts.messages, 0);
    writeFileSync(passwordFile, PASSWORD);
    await until('all has come', () => sink.counts.messages >= COUNT, BOUND_MS, cluster.gateway);
    await cluster.drained();
    const report = await sink.report(log);
    assert.deepEqual([report.ok, report.arrived, report.copies], [true, COUNT, COUNT], JSON.stringify(report));
    const delivered = (): string[] => cluster.gateway.log().split('\n').filter((line) => line.includes('"event":"delivered"'));
    // What is said of the last messages is written a little after their deletion.
    await until('each delivery is logged', () => delivered().length === COUNT, BOUND_MS, cluster.gateway);
    for (const line of delivered()) assert.match(line, /"tls":"TLSv1\.3",.*"verified":"yes".*"attempt":1,/);
  } finally {
    await cluster.stop();
  }
}
