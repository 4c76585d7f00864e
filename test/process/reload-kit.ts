/** A file of a cluster that is changed while its gateway runs, and what came of reading it again: for tests of reloads. */
import assert from 'node:assert/strict';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { HOST, type Cluster } from './cluster.js';

const WHO = { reason: 'a test', who: 'a tester' };
/** A part of the file, to be changed in its place. */
export type Part = Record<string, unknown>;

export interface Answered {
  readonly code: number;
  readonly error: string;
  readonly changed: readonly string[];
}

export function fileOf(cluster: Cluster, name = 'gateway'): string {
  return join(cluster.folder, `${name}.yaml`);
}

export function write(file: string, text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

export function edit(cluster: Cluster, change: (gateway: Part) => void, name = 'gateway'): void {
  const file = fileOf(cluster, name);
  const whole = JSON.parse(readFileSync(file, 'utf8')) as { readonly gateway: Part };
  change(whole.gateway);
  write(file, JSON.stringify(whole, undefined, 2));
}

export async function reload({ adminPort }: { readonly adminPort: number }): Promise<Answered> {
  const response = await fetch(`http://${HOST}:${String(adminPort)}/api/v1/config/reload`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(WHO),
  });
  const { error = '', changed = [] } = (await response.json()) as Partial<Answered>;
  return { code: response.status, error, changed };
}

export async function follows(cluster: Cluster, change: (gateway: Part) => void): Promise<readonly string[]> {
  edit(cluster, change);
  const { code, error, changed } = await reload(cluster);
  assert.equal(code, 200, error);
  return changed;
}

export async function refuses(cluster: Cluster, change: (gateway: Part) => void, why: RegExp): Promise<void> {
  const before = readFileSync(fileOf(cluster), 'utf8');
  edit(cluster, change);
  const { code, error } = await reload(cluster);
  assert.equal(code, 409, error);
  assert.match(error, why);
  assert.match((await cluster.status()).configuration?.refused ?? '', why);
  write(fileOf(cluster), before);
}
