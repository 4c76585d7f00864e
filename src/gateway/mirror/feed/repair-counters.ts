/**
 * What it cost to bring mirrors level again, since the start: a tail should be a small part of the content.
 */
export interface RepairCounters {
  /** Times that a mirror got only what it lacked, out of the ring; and those bytes, rows included. */
  tails: number;
  tailBytes: number;
  /** Times that a mirror was emptied and filled; and those bytes. */
  refills: number;
  refillBytes: number;
}
