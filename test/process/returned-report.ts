/** A report as a next hop of another make writes it: for tests of what comes back. */

/** `type`: delivery-status, with its fields in `machine`, or feedback-report. `original`: what it has of the mail. */
export function report(type: string, machine: string, original = 'Subject: x\r\n'): string {
  return [
    'From: <MAILER-DAEMON@far.example>', 'To: <you@bounces.example>', 'Subject: Returned', 'MIME-Version: 1.0',
    `Content-Type: multipart/report; report-type=${type}; boundary="=b"`, '',
    '--=b', 'Content-Type: text/plain', '', 'It did not work.',
    `--=b`, `Content-Type: message/${type}`, '', machine,
    '--=b', 'Content-Type: message/rfc822', '', original, 'body', '--=b--', '',
  ].join('\r\n');
}
