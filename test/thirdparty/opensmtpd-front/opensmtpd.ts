/** An OpenSMTPD of its own for a test: it takes mail from loopback and submits everything to one gateway, by TLS, as a user or not. */
import { freePorts } from '../../process/free-ports.js';
import type { Front, FrontOptions } from '../front-story.js';
import { startUnpacked } from '../unpacked.js';

/** Who may speak to the queue. */
const QUEUE_GROUP = 'opensmtpq';

function configuration(port: number, { gatewayPort, login }: FrontOptions): string {
  const scheme = login?.isTlsFirst === true ? 'smtps' : 'smtp+tls';
  // The name by which the table of secrets knows the user.
  const user = login === undefined ? '' : 'front@';
  return `smtp max-message-size "50M"
${login === undefined ? '' : 'table secrets file:/etc/secrets\n'}listen on 127.0.0.1 port ${port} hostname opensmtpd.example
action gateway relay host "${scheme}://${user}gateway.test:${gatewayPort}"${login === undefined ? '' : ' auth <secrets>'}
match from any for any action gateway
`;
}

export async function startOpensmtpd(options: FrontOptions): Promise<Front> {
  const { login } = options;
  const [port = 0] = await freePorts(1);
  const opensmtpd = await startUnpacked({
    package: 'opensmtpd', command: ['/usr/sbin/smtpd', '-d', '-T', 'mta'], port, users: ['opensmtpd', QUEUE_GROUP], caFile: options.caFile,
    files: {
      'etc/smtpd.conf': configuration(port, options), 'etc/mailname': 'opensmtpd.example\n', 'etc/aliases': '',
      'etc/secrets': login === undefined ? '' : `front ${login.user}:${login.password}\n`,
    },
    folders: { 'var/lib/opensmtpd/empty': '', 'var/spool/smtpd': '' },
  });
  // Its own next try comes 400 s after the first.
  const retryNow = async (): Promise<void> => { await opensmtpd.run(QUEUE_GROUP, '/usr/sbin/smtpctl', ['schedule', 'all']); };
  return { port, log: opensmtpd.said, retryNow, stop: opensmtpd.stop };
}
