/** Links over TLS: certificates made by configs/tls/make-test-ca.sh, openssl as the outside judge. */
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { RunningStore } from '../../../src/kvs/daemon/running-store.js';
import type { TlsFiles } from '../../../src/platform/node/tls-transport.js';
import { TlsListener, TlsTransport, readTlsFiles } from '../../../src/platform/node/tls-transport.js';
import { Gateway, ProblemLog, bothUp, store } from '../../process/link-kit.js';

const SCRIPT = join(process.cwd(), 'configs', 'tls', 'make-test-ca.sh');
let folder = '';

function make(sub: string, days: string, ...names: string[]): void {
  execFileSync(SCRIPT, [join(folder, sub), ...names], { env: { ...process.env, DAYS: days }, stdio: 'pipe' });
}

function files(name: string, sub = 'ca'): TlsFiles {
  const at = join(folder, sub);
  return { caFile: join(at, 'ca.crt'), certFile: join(at, `${name}.crt`), keyFile: join(at, `${name}.key`) };
}

interface Bench {
  readonly running: RunningStore;
  readonly log: ProblemLog;
  /** A gateway with these files, for the store of this name. */
  gateway(own: TlsFiles, peerName?: string): Gateway;
  stop(): Promise<void>;
}

async function bench(own: TlsFiles = files('store-a')): Promise<Bench> {
  const log = new ProblemLog();
  const running = await store(new TlsListener(own, (text, remote) => { log.error('link', text, { remote }); }), log);
  const gateways: Gateway[] = [];
  return {
    running,
    log,
    gateway: (mine, peerName = 'store-a') => {
      const gateway = new Gateway(running.ports[0] ?? 0, running.ports[1] ?? 0, Date.now(), undefined, new TlsTransport({ files: mine, peerName }));
      gateways.push(gateway);
      return gateway;
    },
    stop: async () => {
      for (const gateway of gateways) gateway.stop();
      await running.stop();
    },
  };
}

/** What the gateway logs when it is not let in, or does not take the store. */
async function problemOf(on: Bench, own: TlsFiles, peerName?: string): Promise<string> {
  const gateway = on.gateway(own, peerName);
  // Several attempts on each path: a cause is told once, and nothing gets in.
  await gateway.until(() => gateway.log.problems.length >= 2);
  const first = gateway.log.problems.join('\n');
  assert.deepEqual(gateway.told, []);
  return first;
}

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'twinpost-tls-'));
  make('ca', '30', 'store-a', 'gateway-1', 'gateway-2');
  make('other', '30', 'store-a', 'gateway-1');
  make('ca', '30', 'many=gateway-3,gateway-1');
  make('old', '30', 'x');
  for (const name of ['ca.crt', 'ca.key']) copyFileSync(join(folder, 'ca', name), join(folder, 'old', name));
  make('old', '0', 'store-a', 'gateway-1');
});

after(() => { rmSync(folder, { recursive: true, force: true }); });

describe('links over TLS', { timeout: 180_000 }, () => {
  test('both paths come up when the certificates name the store and the gateway', async () => {
    const on = await bench();
    const gateway = on.gateway(files('gateway-1'));
    await gateway.until(bothUp(gateway));
    assert.deepEqual(gateway.log.problems, []);
    await on.stop();
  });

  test('one certificate may name several gateways: the workers behind one port', async () => {
    const on = await bench();
    const gateway = on.gateway(files('many'));
    await gateway.until(bothUp(gateway));
    assert.deepEqual(gateway.log.problems, []);
    await on.stop();
  });

  test('openssl agrees: TLS 1.3, a certificate is asked for, and none is not enough', async () => {
    const on = await bench();
    const port = String(on.running.ports[0] ?? 0);
    // Beside this process, which has to answer. It ends when the store, which hears no HELLO, closes after 5 s.
    const ask = (...more: string[]): Promise<string> => new Promise((resolve) => {
      const args = ['s_client', '-connect', `127.0.0.1:${port}`, '-CAfile', files('x').caFile, '-verify_return_error', ...more];
      execFile('openssl', args, { timeout: 20_000 }, (_error, stdout, stderr) => { resolve(stdout + stderr); });
    });
    const own = files('gateway-1');
    const good = await ask('-cert', own.certFile, '-key', own.keyFile);
    assert.match(good, /TLSv1\.3/);
    assert.match(good, /Verify return code: 0 \(ok\)/);
    assert.match(good, /CN ?= ?store-a/);
    assert.match(good, /Acceptable client certificate CA names/);
    assert.match(await ask(), /alert (certificate required|handshake failure|bad certificate)/);
    assert.match(await ask('-tls1_1'), /alert protocol version|no protocols available|unsupported protocol|internal error/);
    assert.ok(on.log.problems.some((line) => line.includes('peer did not return a certificate')), on.log.problems.join('\n'));
    await on.stop();
  });

  test('a gateway with the certificate of another is DENIED, and fences nobody', async () => {
    const on = await bench();
    const right = on.gateway(files('gateway-1'));
    await right.until(bothUp(right));
    assert.match(await problemOf(on, files('gateway-2')), /DENIED.*the certificate is for gateway-2, not for gateway gateway-1/);
    assert.deepEqual(right.told, ['up']);
    await on.stop();
  });

  test('a gateway in clear at a store that wants TLS is told to look for that', async () => {
    const on = await bench();
    const gateway = new Gateway(on.running.ports[0] ?? 0, on.running.ports[1] ?? 0, Date.now());
    await gateway.until(() => gateway.log.problems.length >= 2);
    gateway.stop();
    for (const line of gateway.log.problems) assert.match(line, /closed by the peer without an answer; does it want TLS\?/);
    assert.deepEqual(gateway.told, []);
    await on.stop();
  });

  test('a store whose certificate has another name is not taken', async () => {
    const on = await bench();
    assert.match(await problemOf(on, files('gateway-1'), 'store-b'), /the certificate is for 'store-a', not for 'store-b'/);
    await on.stop();
  });

  test('certificates of another CA are refused on either side, with the cause in the log of both', async () => {
    const on = await bench();
    assert.match(await problemOf(on, files('gateway-1', 'other')), /self.signed certificate|unable to verify/);
    const mixed = { ...files('gateway-1', 'other'), caFile: files('x').caFile };
    assert.match(await problemOf(on, mixed), /closed by the peer at once: if it does not take the certificate/);
    assert.ok(on.log.problems.some((line) => /certificate of the peer is not taken: .*(SELF_SIGNED|UNABLE_TO|SIGNATURE)/.test(line)), on.log.problems.join('\n'));
    await on.stop();
  });

  test('a certificate that has expired is refused on either side', async () => {
    const on = await bench();
    await problemOf(on, files('gateway-1', 'old'));
    assert.ok(on.log.problems.some((line) => line.includes('not taken: CERT_HAS_EXPIRED')), on.log.problems.join('\n'));
    await on.stop();
    const old = await bench(files('store-a', 'old'));
    assert.match(await problemOf(old, files('gateway-1')), /certificate has expired \(CERT_HAS_EXPIRED\)/);
    await old.stop();
  });

  test('files that are gone are a failed attempt, and new ones are used when they are there', async () => {
    const on = await bench();
    const own = { ...files('gateway-1'), keyFile: join(folder, 'late.key') };
    const gateway = on.gateway(own);
    await gateway.until(() => gateway.log.problems.length >= 2);
    assert.match(gateway.log.problems.join('\n'), /late\.key' can't be read: ENOENT/);
    copyFileSync(files('gateway-1').keyFile, own.keyFile);
    // Whichever tried first after the file came carries the requests.
    await gateway.until(() => gateway.link.pathStates().map(({ state }) => state).sort().join() === 'READY,RUN');
    await on.stop();
  });

  test('a store takes a renewed certificate without a restart, and keeps the old one while the new is no good', async () => {
    make('renew', '30', 'x');
    for (const name of ['ca.crt', 'ca.key']) copyFileSync(join(folder, 'ca', name), join(folder, 'renew', name));
    make('renew', '30', 'store-a');
    const on = await bench(files('store-a', 'renew'));
    writeFileSync(files('store-a', 'renew').certFile, 'half a certificate');
    const before = on.gateway(files('gateway-1'));
    await before.until(bothUp(before));
    assert.ok(on.log.problems.some((line) => line.includes('the old certificate stays')), on.log.problems.join('\n'));
    make('renew', '30', 'store-b');
    copyFileSync(files('store-b', 'renew').keyFile, files('store-a', 'renew').keyFile);
    copyFileSync(files('store-b', 'renew').certFile, files('store-a', 'renew').certFile);
    assert.match(await problemOf(on, files('gateway-1')), /the certificate is for 'store-b'/);
    await on.stop();
  });

  test('files that do not belong together are refused at the start, by name', () => {
    const mixed = { ...files('gateway-1'), keyFile: files('gateway-2').keyFile };
    assert.throws(() => readTlsFiles(mixed), /gateway-1\.crt' and .*gateway-2\.key' are no certificate with its key/);
    assert.equal(spawnSync('openssl', ['verify', '-CAfile', files('x').caFile, files('gateway-1').certFile]).status, 0);
  });
});
