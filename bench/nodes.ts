/**
 * Part `nodes` of `bench all`: the relay under each version of Node that is here (peers/installed.ts), in
 * turns, every process of it.
 */
import type { BenchOptions, PartRun } from './options.js';
import { NODE_MAJORS, nodeBinary } from './peers/installed.js';
import { runScript } from './processes.js';
import type { RelayOnce } from './relay-once.js';
import { sayRelayed, type Relayed } from './relay-run.js';

export interface NodeRow extends Relayed {
  readonly node: number;
  readonly round: number;
}

const ROUNDS = 3;
const FULL: RelayOnce = { messages: 50_000, warmMessages: 30_000 };
const QUICK: RelayOnce = { messages: 12_000, warmMessages: 6_000 };

export async function partNodes(options: BenchOptions): Promise<PartRun<NodeRow>> {
  const here = NODE_MAJORS.flatMap((major) => {
    const binary = nodeBinary(major);
    return binary === undefined ? [] : [{ major, binary }];
  });
  const rows: NodeRow[] = [];
  for (let round = 1; round <= (options.quick ? 1 : ROUNDS); round++) {
    for (const { major, binary } of here) {
      const relayed = JSON.parse(await runScript('relay-once.js', JSON.stringify(options.quick ? QUICK : FULL), () => undefined, binary)) as Relayed;
      sayRelayed(`Node ${major}`, relayed);
      rows.push({ node: major, round, ...relayed });
    }
  }
  return { rows, missing: NODE_MAJORS.filter((major) => !here.some((each) => each.major === major)).map((major) => `Node ${major}`) };
}
