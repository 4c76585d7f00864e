/**
 * From what is known of a message to the reply: first what the content itself forbids, then what the gateway
 * decided. What is wrong for ever comes first, so that a hopeless message is not sent again.
 */

import { NO_MEMORY, NOT_READY } from '../../mail-types.js';
import type { SubmissionOutcome } from '../../mail-types.js';
import { LOST_NO_MEMORY, LOST_TOO_BIG } from './content-buffer.js';
import type { ContentBuffer } from './content-buffer.js';
import { FAULT_BARE_CR, FAULT_NUL } from './content-scan.js';
import type { ContentScan } from './content-scan.js';
import { receivedBy, topHeader } from './header-look.js';
import type { InboundOptions } from '../options.js';
import * as replies from '../session/replies.js';
import type { Refusal } from '../session/replies.js';

const SPACE = 0x20;
const TAB = 0x09;
/** Received fields of our own name. */
const OWN_HOPS_MAX = 3;

/** Why the content can't be submitted, or undefined when it can. `isWhole`: nothing more of it is to come. */
export function contentRefusal(
  scan: ContentScan, content: ContentBuffer, isWhole: boolean, { hopsMax, hostName }: InboundOptions,
): Refusal | undefined {
  if ((scan.faults & FAULT_NUL) !== 0) return replies.NUL_BYTE;
  if ((scan.faults & FAULT_BARE_CR) !== 0) return replies.BARE_CR;
  if (scan.faults !== 0) return replies.BARE_LF;
  if (continues(content.firstOctet)) return replies.LEADING_BLANK;
  if (content.fate === LOST_TOO_BIG) return replies.TOO_BIG;
  if (scan.receivedLines > hopsMax) return replies.TOO_MANY_HOPS;
  if (content.fate === LOST_NO_MEMORY) return replies.NO_MEMORY_NOW;
  return isWhole && hasCircled(scan, content, hostName) ? replies.LOOP : undefined;
}

/** What stands in front is ours, and a line that begins so would be the rest of it (RFC 5322 2.2.3). */
function continues(octet: number | undefined): boolean {
  return octet === SPACE || octet === TAB;
}

/** It has been here before, more often than a filter or a forwarding sends it back. */
function hasCircled(scan: ContentScan, content: ContentBuffer, hostName: string): boolean {
  if (scan.receivedLines < OWN_HOPS_MAX) return false;
  return receivedBy(topHeader(content.pieces()), hostName.toLowerCase()) >= OWN_HOPS_MAX;
}

/** For the outcomes that are a refusal: neither COMMITTED nor NO_REPLY. */
export function outcomeRefusal(outcome: SubmissionOutcome): Refusal {
  if (outcome === NO_MEMORY) return replies.NO_MEMORY_NOW;
  return outcome === NOT_READY ? replies.NOT_READY_NOW : replies.NOT_KEPT;
}

/** Whether content still on its way has used up its time. Both times are coarse: one tick is forgiven. */
export function lateContent(elapsedMs: number, bytes: number, options: InboundOptions): Refusal | undefined {
  const spentMs = elapsedMs - options.deadlineTickMs;
  if (spentMs > options.contentMs) return replies.CONTENT_TOO_LATE;
  const wanted = ((spentMs - options.contentGraceMs) / 1000) * options.contentBytesPerSecondMin;
  return bytes < wanted ? replies.CONTENT_TOO_SLOW : undefined;
}
