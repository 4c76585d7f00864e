/**
 * What a report (DSN) may grow to, whatever next hops said: gateway/bounce/dsn.ts keeps to it, and a report
 * that needs room which others have before it (delay-reports.ts) asks for so much. Pure.
 */
import type { Envelope } from '../../mail-types.js';

/** With RET=FULL too there is an end: a report must not be what fills the queue. */
export const RET_FULL_BYTES_MAX = 1024 * 1024;
/** Success and delay bring back the header at most, and of that so much. */
export const HEADER_BYTES_MAX = 64 * 1024;
/** So many recipients are told of in words; of all of them the part for programs tells. */
export const TOLD_RECIPIENTS_MAX = 100;
/** Of the fields that say what next hops said: together. */
export const SAID_CHARACTERS_MAX = 64 * 1024;

/** Its own header, its signatures (gateway/dkim), and what it is stored with. */
const FRAME_BYTES = 16 * 1024;
/** A header in base64, by lines. */
const BASE64_SHARE = 1.5;
/** Names and dates of the fields of one recipient. */
const FIELDS_BYTES = 320;
/** A reply with the name of its host, in UTF-8. */
const SAID_BYTES = 2048;
const UTF8_BYTES_MAX = 3;
/** A character beyond ASCII is \x{FFFF} where only ASCII may stand; an address is told twice. */
const OCTETS_PER_CHARACTER = 16;

/** No report of a delay takes more, as it is stored. */
export function delayReportBytesMax(
  { recipients, reversePath, envid }: Envelope, indexes: readonly number[],
): number {
  let characters = reversePath.length + envid.length;
  for (const index of indexes) {
    const { address = '', orcpt = '' } = recipients[index] ?? {};
    characters += address.length + orcpt.length;
  }
  const { length: count } = indexes;
  const told = Math.min(count, TOLD_RECIPIENTS_MAX) * SAID_BYTES;
  const said = Math.min(count * SAID_BYTES, SAID_CHARACTERS_MAX * UTF8_BYTES_MAX);
  const fields = count * FIELDS_BYTES + characters * OCTETS_PER_CHARACTER;
  return FRAME_BYTES + HEADER_BYTES_MAX * BASE64_SHARE + told + said + fields;
}
