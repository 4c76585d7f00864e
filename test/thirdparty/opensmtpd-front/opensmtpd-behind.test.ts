/** OpenSMTPD behind, as a smarthost: it takes mail by TLS from a user with a password, and hands it on. */
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { freePorts } from '../../process/free-ports.js';
import { takesAllOfItsUser, type Behind, type BehindOptions } from '../behind-story.js';
import { mustRun } from '../support.js';
import { startUnpacked } from '../unpacked.js';

/** Without it this version can not serve TLS; the file says why. */
const KEEP_KEY = join(process.cwd(), 'test', 'thirdparty', 'opensmtpd-front', 'keep-key.c');

function configuration(port: number, isTlsFirst: boolean, { nextHopPort }: BehindOptions): string {
  return `smtp max-message-size "50M"
pki behind.test cert "/etc/smtpd.crt"
pki behind.test key "/etc/smtpd.key"
table users file:/etc/users
listen on 127.0.0.1 port ${String(port)} ${isTlsFirst ? 'smtps' : 'tls-require'} pki behind.test auth <users> hostname behind.test
action onward relay host "smtp+notls://127.0.0.1:${String(nextHopPort)}"
match auth from any for any action onward
`;
}

async function startSmarthost(isTlsFirst: boolean, options: BehindOptions): Promise<Behind> {
  const [port = 0] = await freePorts(1);
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-keep-key-'));
  // Its processes run as users of their own.
  chmodSync(folder, 0o755);
  const library = join(folder, 'keep-key.so');
  await mustRun('gcc', ['-shared', '-fPIC', '-nostdlib', '-O1', '-o', library, KEEP_KEY]);
  const hash = await mustRun('openssl', ['passwd', '-6', '-stdin'], options.password);
  const opensmtpd = await startUnpacked({
    package: 'opensmtpd', command: ['env', `LD_PRELOAD=${library}`, '/usr/sbin/smtpd', '-d', '-T', 'mta'], port,
    users: ['opensmtpd', 'opensmtpq'], caFile: options.caFile,
    files: {
      'etc/smtpd.conf': configuration(port, isTlsFirst, options), 'etc/mailname': 'opensmtpd.example\n', 'etc/aliases': '',
      'etc/users': `${options.user} ${hash.trim()}\n`,
      'etc/smtpd.crt': readFileSync(options.certificate.certFile, 'utf8'), 'etc/smtpd.key': readFileSync(options.certificate.keyFile, 'utf8'),
    },
    modes: { 'etc/smtpd.key': 0o600 },
    folders: { 'var/lib/opensmtpd/empty': '', 'var/spool/smtpd': '' },
  });
  const stop = async (): Promise<void> => {
    await opensmtpd.stop();
    rmSync(folder, { recursive: true });
  };
  return { port, log: opensmtpd.said, stop };
}

for (const isTlsFirst of [false, true]) {
  const way = isTlsFirst ? 'with TLS first' : 'within STARTTLS';
  test(`OpenSMTPD takes mail from a user ${way}, and none with a wrong password`, { timeout: 120_000 }, () =>
    takesAllOfItsUser({
      start: (options) => startSmarthost(isTlsFirst, options), isTlsFirst,
      // keep-key.c knows RSA alone.
      keys: 'rsa',
      // It takes mail of its users alone; a line names its session, not the user.
      taken: () => / smtp message .*proto=ESMTP/,
    }));
}
