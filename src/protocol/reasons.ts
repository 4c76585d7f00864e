/**
 * The numbers by which a peer is told why: CLOSE reasons end a connection, REFUSAL reasons end one
 * request, claim results answer CLAIM and CONFIRM (docs/PROTOCOL.md, "Reasons", "Claims"). Also the small
 * codes that queues carry on the wire: ordering and role.
 */

export const CLOSE_MALFORMED = 1;
export const CLOSE_VERSION = 2;
export const CLOSE_DENIED = 3;
export const CLOSE_FENCED = 4;
export const CLOSE_SEQUENCE = 5;
export const CLOSE_STOPPING = 6;
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
export const REFUSAL_DENIED = 4;
export const REFUSAL_UNKNOWN = 5;
export const REFUSAL_CHECKSUM = 6;
export const REFUSAL_MISSING = 7;
export const REFUSAL_EPOCH = 8;
export const REFUSAL_COUNT = 9;
export const REFUSAL_LIMIT = 10;
export const REFUSAL_INVALID = 11;
/** BODY_ABSENT names a body that is not at the store. */
export const REFUSAL_BODY = 12;

const REFUSAL_NAMES: readonly string[] = [
  '', 'GAP', 'DIGEST', 'FENCED', 'DENIED', 'UNKNOWN', 'CHECKSUM', 'MISSING', 'EPOCH', 'COUNT', 'LIMIT', 'INVALID', 'BODY',
];

export const CLAIM_GRANTED = 0;
export const CLAIM_UNKNOWN = 1;
export const CLAIM_DENIED = 2;
/** A lease of the last holder runs for another waitMs. */
export const CLAIM_LEASE_RUNS = 3;
/** The store started less than one lease period ago; waitMs says how long to wait. */
export const CLAIM_GRACE = 4;
/** The token is not above the highest seen, which the answer carries. */
export const CLAIM_TOKEN_LOW = 5;

const CLAIM_NAMES: readonly string[] = ['GRANTED', 'UNKNOWN', 'DENIED', 'LEASE_RUNS', 'GRACE', 'TOKEN_LOW'];

/** Ordering of a queue (OPEN, LISTED). */
export const ORDERING_FIFO = 0;
export const ORDERING_STRICT = 1;

/** What a store is to a queue that it holds (LISTED, CLAIMED). */
export const ROLE_NONE = 0;
export const ROLE_MEMBER = 1;
/** Between REFILL_BEGIN and the SET_MEMBERS that makes the store a member. */
export const ROLE_FILLING = 2;
/** Came back from a file that the store wrote when it stopped: no member, but as it stood then. */
export const ROLE_SPILLED = 3;

export function closeReasonName(reason: number): string {
  return nameOf(CLOSE_NAMES, reason);
}

export function refusalReasonName(reason: number): string {
  return nameOf(REFUSAL_NAMES, reason);
}

export function claimResultName(result: number): string {
  return nameOf(CLAIM_NAMES, result);
}

function nameOf(names: readonly string[], code: number): string {
  const name = names[code];
  return name === undefined || name === '' ? `code ${code}` : name;
}
