/**
 * One report on TLS with a domain (RFC 8460): the JSON (4.4), and the mail that brings it (5.3). What is in
 * it was counted by tls-tally.ts; who gets it: tls-reporter.ts.
 *
 * Of fields that may be left out: no receiving-mx-helo, no additional-information.
 */
import { mailDate } from '../../../base/mail-date.js';
import type { DomainCounts, PolicyCounts } from './tls-counts.js';

export interface ReportedDay {
  readonly counts: DomainCounts;
  readonly fromWallMs: number;
  readonly untilWallMs: number;
}

export interface Reporter {
  readonly organization: string;
  /** A mail address: in the report, and who sends it. */
  readonly contact: string;
  /** Name of this gateway. */
  readonly hostName: string;
}

export interface ReportMail {
  readonly to: string;
  /** Of the message; unique. */
  readonly id: string;
  readonly nowWallMs: number;
  readonly gzipped: Uint8Array;
}

const CRLF = '\r\n';
const BASE64_CHARACTERS = 76;

export function reportJson(
  { counts, fromWallMs, untilWallMs }: ReportedDay, { organization, contact }: Reporter, id: string,
): string {
  return JSON.stringify({
    'organization-name': organization,
    'date-range': { 'start-datetime': instant(fromWallMs), 'end-datetime': instant(untilWallMs - 1000) },
    'contact-info': contact,
    'report-id': id,
    'policies': counts.policies.map(policyJson),
  });
}

/** RFC 8460 5.1: submitter ! domain ! begin ! end ! id */
function reportFileName(
  { counts: { domain }, fromWallMs, untilWallMs }: ReportedDay, { hostName }: Reporter, id: string,
): string {
  const seconds = [fromWallMs, untilWallMs - 1000].map((ms) => String(Math.floor(ms / 1000)));
  return `${[hostName, domain, ...seconds, id].join('!')}.json.gz`;
}

/** Whole, with CRLF. */
export function reportMail(
  day: ReportedDay, reporter: Reporter, { to, id, nowWallMs, gzipped }: ReportMail,
): Uint8Array {
  const { domain } = day.counts;
  const { contact, hostName, organization } = reporter;
  const boundary = `tls-${id}`;
  const name = reportFileName(day, reporter, id);
  const fields = [
    `From: <${contact}>`, `To: <${to}>`, `Date: ${mailDate(nowWallMs)}`, `Message-ID: <${id}@${hostName}>`,
    `Subject: Report Domain: ${domain}`, ` Submitter: ${hostName}`, ` Report-ID: <${id}>`,
    `TLS-Report-Domain: ${domain}`, `TLS-Report-Submitter: ${hostName}`,
    // It is to arrive though TLS fails (RFC 8460 3; RFC 8689 3).
    'TLS-Required: No', 'Auto-Submitted: auto-generated', 'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type="tlsrpt";', `\tboundary="${boundary}"`,
  ];
  const text = [
    `This is a report on TLS with mail servers of ${domain} by ${oneLine(organization)},`,
    `from ${mailDate(day.fromWallMs)} on (RFC 8460).`,
  ];
  return Buffer.from([
    ...fields, '',
    `--${boundary}`, 'Content-Type: text/plain; charset=us-ascii', '', ...text, '',
    `--${boundary}`, 'Content-Type: application/tlsrpt+gzip', 'Content-Transfer-Encoding: base64',
    'Content-Disposition: attachment;', `\tfilename="${name}"`, '', ...base64Lines(gzipped),
    `--${boundary}--`, '',
  ].join(CRLF), 'latin1');
}

function policyJson({ type, domain, text, successes, failures, details }: PolicyCounts): object {
  const { strings, mxHosts } = text;
  return {
    'policy': {
      'policy-type': type, ...(strings.length > 0 ? { 'policy-string': strings } : {}),
      'policy-domain': domain, ...(mxHosts.length > 0 ? { 'mx-host': mxHosts } : {}),
    },
    'summary': { 'total-successful-session-count': successes, 'total-failure-session-count': failures },
    ...(details.length === 0 ? {} : {
      'failure-details': details.map((each) => ({
        'result-type': each.type,
        ...(each.source === '' ? {} : { 'sending-mta-ip': each.source }),
        ...(each.mxHost === '' ? {} : { 'receiving-mx-hostname': each.mxHost }),
        ...(each.address === '' ? {} : { 'receiving-ip': each.address }),
        'failed-session-count': each.count,
        ...(each.reason === '' ? {} : { 'failure-reason-code': each.reason }),
      })),
    }),
  };
}

/** "2026-11-26T00:00:00Z" (RFC 3339). */
function instant(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 19)}Z`;
}

function oneLine(text: string): string {
  return text.replace(/[^ -~]+/g, '?');
}

function base64Lines(bytes: Uint8Array): readonly string[] {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  return text.match(new RegExp(`.{1,${String(BASE64_CHARACTERS)}}`, 'g')) ?? [];
}
