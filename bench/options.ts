/**
 * What a bench is asked to do, and the shape of its result: what goes to JSON and into the plot.
 */

export interface BenchOptions {
  /** Everything in about 30 seconds: fewer messages, one round. */
  readonly quick: boolean;
  /** Folder of results. */
  readonly folder: string;
}

/** Where and with what it was measured. */
export interface Machine {
  readonly processor: string;
  readonly processors: number;
  readonly memoryBytes: number;
  readonly system: string;
  readonly node: string;
  readonly commit: string;
  readonly at: string;
}

/** CPU of one process, by its name. */
export interface ProcessCost {
  readonly process: string;
  readonly cpuMicrosPerMessage: number;
  readonly memoryBytes: number;
}

export interface BenchResult {
  readonly bench: string;
  readonly quick: boolean;
  readonly machine: Machine;
  /** One row a measured point. */
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/** What one part of `bench all` measured. */
export interface PartRun<Row> {
  readonly rows: readonly Row[];
  /** Programs that are not installed, so that rows about them lack. */
  readonly missing?: readonly string[];
}

/** A part as it is kept: the report is made of these. */
export interface PartResult<Row> extends PartRun<Row> {
  readonly part: string;
  readonly quick: boolean;
  readonly seconds: number;
  /** Mean number of processes that wanted a processor in the minute before: near 0 on a quiet machine. */
  readonly loadBefore: number;
  readonly machine: Machine;
}
