/** From what the queue knows of a report (queue/report-job.ts) to its bytes (dsn.ts). */
import { formatMessageId } from '../../base/text-id.js';
import type { ReportInput } from '../queue/report-job.js';
import { composeDsn, dsnFlags } from './dsn.js';

export interface ComposedReport {
  readonly content: Uint8Array;
  readonly flags: number;
}

/** `hostName` is the reporting MTA (RFC 3464 2.2.2). */
export function composeReport(hostName: string, input: ReportInput, nowWallMs: number): ComposedReport {
  const { envelope, note, texts } = input;
  // Right after the attempt that decided, but for an expiry: when the last attempt was is not kept.
  const lastAttemptWallMs = nowWallMs < envelope.expiryWallMs ? nowWallMs : 0;
  const content = composeDsn({
    kind: input.failure ? 'failure' : 'success',
    reportingMta: hostName,
    dsnId: formatMessageId(input.reportId),
    queueId: formatMessageId(envelope.messageId),
    envelope,
    recipients: input.recipients.flatMap((index) => {
      const recipient = envelope.recipients[index];
      const last = note.results.find((result) => result.recipient === index);
      if (recipient === undefined) return [];
      return [{ recipient, action: input.failure ? ('failed' as const) : ('relayed' as const), code: last?.code ?? 0, enhanced: last?.enhanced ?? (input.failure ? '5.0.0' : '2.0.0'), text: texts.get(index) ?? '', relay: '', lastAttemptWallMs }];
    }),
    content: input.content,
    dateWallMs: nowWallMs,
  });
  return { content, flags: dsnFlags(content, envelope) };
}
