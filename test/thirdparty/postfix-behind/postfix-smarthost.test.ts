/** Postfix behind, as a smarthost: it takes mail by TLS from a user, whose password Dovecot knows, and hands it on. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { takesAllOfItsUser, type Behind, type BehindOptions } from '../behind-story.js';
import { startDovecot } from '../dovecot.js';
import { startPostfix } from '../postfix.js';

/** Where Dovecot answers Postfix, in its folder. */
const SOCKET = 'asked';

function dovecotConfiguration(folder: string, { user, password }: BehindOptions): string {
  writeFileSync(join(folder, 'users'), `${user}:{PLAIN}${password}\n`, { mode: 0o644 });
  return `protocols =
auth_mechanisms = plain login
passdb {
  driver = passwd-file
  args = ${folder}/users
}
userdb {
  driver = static
  args = uid=mail gid=mail home=${folder}
}
service auth {
  unix_listener ${folder}/${SOCKET} {
    mode = 0600
    user = postfix
  }
}
`;
}

async function startSmarthost(isTlsFirst: boolean, options: BehindOptions): Promise<Behind> {
  const dovecot = await startDovecot((folder) => dovecotConfiguration(folder, options), (folder) => existsSync(join(folder, SOCKET)));
  const settings = {
    smtpd_tls_security_level: 'encrypt', smtpd_tls_wrappermode: isTlsFirst ? 'yes' : 'no', smtpd_tls_loglevel: '1',
    smtpd_tls_cert_file: options.certificate.certFile, smtpd_tls_key_file: options.certificate.keyFile,
    smtpd_sasl_auth_enable: 'yes', smtpd_sasl_type: 'dovecot', smtpd_sasl_path: join(dovecot.folder, SOCKET), smtpd_tls_auth_only: 'yes',
    smtpd_relay_restrictions: 'permit_sasl_authenticated, reject',
  };
  const postfix = await startPostfix(options.nextHopPort, { settings });
  const stop = async (): Promise<void> => {
    await postfix.stop();
    await dovecot.stop();
  };
  return { port: postfix.port, log: postfix.log, stop };
}

for (const isTlsFirst of [false, true]) {
  const way = isTlsFirst ? 'with TLS first' : 'within STARTTLS';
  test(`Postfix takes mail from a user ${way}, and none with a wrong password`, { timeout: 120_000 }, () =>
    takesAllOfItsUser({
      start: (options) => startSmarthost(isTlsFirst, options), isTlsFirst,
      taken: (user) => new RegExp(`smtpd\\[.* sasl_method=PLAIN, sasl_username=${user}`),
    }));
}
