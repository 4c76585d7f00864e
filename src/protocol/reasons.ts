/**
 * The numbers by which a peer is told why: CLOSE reasons end a connection, REFUSAL reasons end one request,
 * DECLINED reasons answer FENCE (docs/PROTOCOL.md, "Reasons").
 */

export const CLOSE_MALFORMED = 1;
export const CLOSE_VERSION = 2;
export const CLOSE_DENIED = 3;
export const CLOSE_FENCED = 4;
export const CLOSE_SEQUENCE = 5;
export const CLOSE_STOPPING = 6;
/** Its detail on an active connection that stays: a notice. Another CLOSE ends it. */
export const STOPPING_GOES_ON = 1;
export const CLOSE_TIMEOUT = 7;
export const CLOSE_LIMIT = 8;
/** A request other than HEARTBEAT on a connection that stands by. */
export const CLOSE_STANDBY = 9;

const CLOSE_NAMES: readonly string[] = [
  '', 'MALFORMED', 'VERSION', 'DENIED', 'FENCED', 'SEQUENCE', 'STOPPING', 'TIMEOUT', 'LIMIT', 'STANDBY',
];

export const REFUSAL_GAP = 1;
export const REFUSAL_DIGEST = 2;
export const REFUSAL_FENCED = 3;
export const REFUSAL_UNKNOWN = 5;
export const REFUSAL_CHECKSUM = 6;
export const REFUSAL_MISSING = 7;
export const REFUSAL_COUNT = 9;
export const REFUSAL_LIMIT = 10;
export const REFUSAL_INVALID = 11;
/** BODY_ABSENT names a body that is not at the store. */
export const REFUSAL_BODY = 12;

const REFUSAL_NAMES: readonly string[] = [
  '', 'GAP', 'DIGEST', 'FENCED', '', 'UNKNOWN', 'CHECKSUM', 'MISSING', '', 'COUNT', 'LIMIT', 'INVALID',
  'BODY',
];

/** Why a FENCE was not accepted. A higher term is known. */
export const DECLINED_LOWER = 1;
/** The same number with another nonce. */
export const DECLINED_OTHER_NONCE = 2;
/** A record was told here that is newer than the term. */
export const DECLINED_STALE = 3;
/** JOIN: no copy is here. */
export const DECLINED_NO_COPY = 4;
/** FOUND, FILL: no room for another copy. */
export const DECLINED_FULL = 5;

const DECLINED_NAMES: readonly string[] = ['', 'LOWER', 'OTHER_NONCE', 'STALE', 'NO_COPY', 'FULL'];

export function closeReasonName(reason: number): string {
  return nameOf(CLOSE_NAMES, reason);
}

export function refusalReasonName(reason: number): string {
  return nameOf(REFUSAL_NAMES, reason);
}

export function declinedReasonName(reason: number): string {
  return nameOf(DECLINED_NAMES, reason);
}

function nameOf(names: readonly string[], code: number): string {
  const name = names[code];
  return name === undefined || name === '' ? `code ${code}` : name;
}
