/**
 * What an operator says who has partitions taken without a store that does not come back (`twinpost rescue --force`), and what
 * came of it.
 */
export interface ForceRequest {
  /** Name of a partition, of any owner if none is given; or all partitions of `owner`. The gateways of a group have the same names. */
  readonly partition?: string | undefined;
  readonly owner?: string | undefined;
  /** The store to go on without. */
  readonly missing: string;
  /** For the log. */
  readonly reason: string;
  readonly who: string;
}

/** Of each partition that the store was given up for, one of these. */
export type ForceOutcome =
  /** Nothing else is missing: its claims are made, or its next set of mirrors is sent. */
  | 'taken'
  /** Nothing else is missing, but a mirror is to be filled, or heard, before its next set of mirrors is sent. */
  | 'later'
  /** It waits for other stores, too. */
  | 'waiting'
  /** No store has a copy; another gateway may have it in memory, and is to be looked at first. */
  | 'elsewhere'
  /** No store that answers is in its set: nothing is left that could be taken. */
  | 'gone';

export interface ForcedPartition {
  readonly partition: string;
  readonly owner: string;
  readonly outcome: ForceOutcome;
  /** Of one that waits: the other stores that it needs, or that are to be given up, too. */
  readonly needed: readonly string[];
  /** Of one that is gone: stores with a copy that counts for nothing, which they still export. */
  readonly exportable: readonly string[];
}

/** What the operator types to have one partition go on without a store. */
export function forceCommand({ name, ownerId }: { readonly name: string; readonly ownerId: string }, missing: string): string {
  return `twinpost rescue --force --partition ${name} --owner ${ownerId} --missing ${missing} --reason TEXT`;
}

/** The same without several stores, one after the other. */
export function forceCommands(partition: { readonly name: string; readonly ownerId: string }, missing: readonly string[]): string {
  return missing.map((store) => forceCommand(partition, store)).join('; ');
}
