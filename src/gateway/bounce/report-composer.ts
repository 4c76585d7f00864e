/** From what the queue knows of a report (queue/reports/report-writer.ts) to its bytes (dsn.ts). */
import ipaddr from 'ipaddr.js';
import { formatMessageId } from '../../base/text-id.js';
import type { LastResult } from '../queue/note.js';
import type { ReportInput, ReportKind } from '../queue/reports/report-writer.js';
import type { NextHop, Recipient } from '../mail-types.js';
import { ALIAS_EXPANDED, ALIAS_SUCCESS } from '../mail-types.js';
import { composeDsn, dsnFlags } from './dsn.js';
import { GOES_ON } from './own-words.js';
import type { DsnAction, DsnRecipient } from './dsn.js';

/** Status of what has no result. */
const UNKNOWN: Readonly<Record<ReportKind, string>> = { failure: '5.0.0', success: '2.0.0', delay: '4.4.1' };

export interface ComposedReport {
  readonly content: Uint8Array;
  readonly flags: number;
}

/** `hostName` is the reporting MTA (RFC 3464 2.2.2). */
export function composeReport(hostName: string, input: ReportInput, nowWallMs: number): ComposedReport {
  const { kind, envelope } = input;
  // Right after the attempt that decided. For a delay or an expiry it is not known: that is not kept.
  const lastAttemptWallMs = kind !== 'delay' && nowWallMs < envelope.expiryWallMs ? nowWallMs : 0;
  const { nextHop, note } = input;
  // Which of several hosts spoke goes with what it said, and is lost with that.
  // Once for all recipients: ipaddr takes 40 µs to say that a name is no address.
  const isNamed = nextHop.isByMx !== true && nextHop.others === undefined && !ipaddr.isValid(nextHop.host);
  const remoteMta = isNamed ? nextHop.host : '';
  const results = new Map(note.results.map((result) => [result.recipient, result]));
  const common: Common = { results, remoteMta, lastAttemptWallMs };
  const content = composeDsn({
    kind,
    reportingMta: hostName,
    dsnId: formatMessageId(input.reportId),
    queueId: formatMessageId(envelope.messageId),
    envelope,
    recipients: input.recipients.flatMap((index) => reported(input, common, index)),
    content: input.content,
    dateWallMs: nowWallMs,
  });
  return { content, flags: dsnFlags(content, envelope) };
}

/** The same for all recipients of a report. */
interface Common {
  /** By recipient. */
  readonly results: ReadonlyMap<number, LastResult>;
  /** Name of whoever spoke, where what it said is not kept; '' if it has none, or is one of several. */
  readonly remoteMta: string;
  readonly lastAttemptWallMs: number;
}

function reported(
  { kind, envelope, texts, nextHop }: ReportInput, { results, remoteMta, lastAttemptWallMs }: Common,
  index: number,
): DsnRecipient[] {
  const recipient = envelope.recipients[index];
  if (recipient === undefined) return [];
  const action = actionOf(kind, nextHop, recipient);
  if (action === 'expanded') {
    return [{ recipient, action, code: 0, enhanced: GOES_ON, text: '', remoteMta: '', lastAttemptWallMs }];
  }
  const last = results.get(index);
  const code = last?.code ?? 0;
  const { text, host } = texts.get(index) ?? { text: '', host: remoteMta };
  return [{
    recipient, action, code, enhanced: last?.enhanced ?? UNKNOWN[kind], text,
    remoteMta: code === 0 ? '' : host, lastAttemptWallMs,
  }];
}

/**
 * LMTP is how mail gets into mailboxes (RFC 2033); who took it by SMTP makes no reports of success, or it
 * would have been asked to.
 */
function actionOf(kind: ReportKind, nextHop: NextHop, { notify }: Recipient): DsnAction {
  if (kind === 'failure') return 'failed';
  if (kind === 'delay') return 'delayed';
  if ((notify & ALIAS_EXPANDED) !== 0) return 'expanded';
  // Whether it was a mailbox is not told of what is behind an alias.
  if ((notify & ALIAS_SUCCESS) !== 0) return 'relayed';
  return nextHop.protocol === 'lmtp' ? 'delivered' : 'relayed';
}
