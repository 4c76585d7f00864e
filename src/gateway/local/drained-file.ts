/**
 * The stores that an operator has drained, as a file of state_dir (state-file.ts): a restart knows them.
 *
 *   drained-stores.json   {STORE: since when, milliseconds since 1970}
 */
import { z } from 'zod';
import { BrokenRule, readJson } from '../../base/json-shape.js';
import { readStateFile, writeStateFile } from './state-file.js';

const FILE = 'drained-stores.json';

/** Store id → since when it is drained, in milliseconds since 1970. */
export type DrainedSince = ReadonlyMap<string, number>;

/** Empty without the file. Throws when it is there and can't be read, or is none of ours. */
export function readDrained(stateDir: string): DrainedSince {
  const text = readStateFile(stateDir, FILE);
  if (text === undefined) return new Map();
  const read = readJson(z.record(z.string(), z.number()), text);
  if (read instanceof BrokenRule) throw new Error(`${FILE} does not say what is drained: ${read.rule}`);
  return new Map(Object.entries(read));
}

/** Rejects when the disk does not take it: then the file is as it was. */
export function writeDrained(stateDir: string, drained: DrainedSince): Promise<void> {
  return writeStateFile(stateDir, FILE, `${JSON.stringify(Object.fromEntries(drained))}\n`);
}
