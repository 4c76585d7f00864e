/** An OpenSMTPD of its own for a test: it takes mail from loopback and submits everything to one gateway, within STARTTLS. */
import { freePorts } from '../../process/free-ports.js';
import type { Front, FrontOptions } from '../front-story.js';
import { startUnpacked } from '../unpacked.js';

/** Who may speak to the queue. */
const QUEUE_GROUP = 'opensmtpq';

function configuration(port: number, gatewayPort: number): string {
  return `smtp max-message-size "50M"
listen on 127.0.0.1 port ${port} hostname opensmtpd.example
action gateway relay host "smtp+tls://gateway.test:${gatewayPort}"
match from any for any action gateway
`;
}

export async function startOpensmtpd({ gatewayPort, caFile }: FrontOptions): Promise<Front> {
  const [port = 0] = await freePorts(1);
  const opensmtpd = await startUnpacked({
    package: 'opensmtpd', command: ['/usr/sbin/smtpd', '-d', '-T', 'mta'], port, users: ['opensmtpd', QUEUE_GROUP], caFile,
    files: { 'etc/smtpd.conf': configuration(port, gatewayPort), 'etc/mailname': 'opensmtpd.example\n', 'etc/aliases': '' },
    folders: { 'var/lib/opensmtpd/empty': '', 'var/spool/smtpd': '' },
  });
  // Its own next try comes 400 s after the first.
  const retryNow = async (): Promise<void> => { await opensmtpd.run(QUEUE_GROUP, '/usr/sbin/smtpctl', ['schedule', 'all']); };
  return { port, log: opensmtpd.said, retryNow, stop: opensmtpd.stop };
}
