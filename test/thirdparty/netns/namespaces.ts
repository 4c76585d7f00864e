/**
 * Network namespaces for tests: one for a gateway, one for each store, and one in the middle whose bridges
 * are the two networks A and B. Nothing outside of them is touched; rules of a test live inside and go with
 * them.
 *
 *    …-gw ──pathA── ┌───────────┐ ──pathA── …-a      A: 10.91.1.0/24   gateway .1, store a .2, store b .3
 *         ──pathB── │ …-net     │ ──pathB──          B: 10.91.2.0/24
 *                   │ brA, brB  │ ──pathA── …-b
 *                   └───────────┘ ──pathB──
 *
 * Names carry the pid of the test that made them, so that one that was killed half-way is cleaned up after
 * by the next: namespaces of a dead pid are removed, with what still runs in them.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

import { findProgram } from '../../outside-sets.js';

const PREFIX = 'twinpost-test-';
const COMMAND_MS = 20_000;
/** Third number of the addresses of a path. */
const PATHS = { A: 1, B: 2 } as const;
export type PathName = keyof typeof PATHS;
export const PATH_NAMES = Object.keys(PATHS) as PathName[];

const NODES = ['gw', 'a', 'b'] as const;
export type NodeName = (typeof NODES)[number];

export function addressOf(node: NodeName, path: PathName): string {
  return `10.91.${PATHS[path]}.${NODES.indexOf(node) + 1}`;
}

/** Store 0 is in namespace a, store 1 in b. */
export function storeNode(store: number): NodeName {
  return store === 0 ? 'a' : 'b';
}

export function namespaceOf(maker: number, node: NodeName | 'net'): string {
  return `${PREFIX}${maker}-${node}`;
}

/** Runs a program to its end; throws with what it said when it fails. */
export function command(program: string, ...args: readonly string[]): string {
  return commandWith('', program, ...args);
}

/** The same, with something to read. */
export function commandWith(input: string, program: string, ...args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(findProgram(program) ?? program, args, { input, encoding: 'utf8', timeout: COMMAND_MS });
  if (error !== undefined || status !== 0) throw new Error(`${program} ${args.join(' ')}: ${error?.message ?? stderr}`);
  return stdout;
}

/** Makes the namespaces and networks, after removing what dead tests left. */
export function makeNetworks(): void {
  removeStale();
  const name = (node: NodeName | 'net'): string => namespaceOf(process.pid, node);
  const ip = (node: NodeName | 'net', ...args: string[]): string => command('ip', '-n', name(node), ...args);
  for (const node of [...NODES, 'net'] as const) {
    command('ip', 'netns', 'add', name(node));
    ip(node, 'link', 'set', 'lo', 'up');
  }
  for (const path of PATH_NAMES) {
    ip('net', 'link', 'add', `br${path}`, 'type', 'bridge');
    ip('net', 'link', 'set', `br${path}`, 'up');
    for (const node of NODES) {
      ip('net', 'link', 'add', `${node}${path}`, 'type', 'veth', 'peer', 'name', `path${path}`, 'netns', name(node));
      ip('net', 'link', 'set', `${node}${path}`, 'master', `br${path}`, 'up');
      ip(node, 'address', 'add', `${addressOf(node, path)}/24`, 'dev', `path${path}`);
      ip(node, 'link', 'set', `path${path}`, 'up');
    }
  }
}

/** Removes the namespaces that a maker made, and ends what runs in them. */
export function removeNetworks(maker = process.pid): void {
  for (const name of namespaces()) {
    if (makerOf(name) === maker) remove(name);
  }
}

function removeStale(): void {
  for (const name of namespaces()) {
    if (!existsSync(`/proc/${makerOf(name)}`)) remove(name);
  }
}

/** Those of tests of ours, by any maker. */
function namespaces(): string[] {
  const names = command('ip', 'netns', 'list').split('\n').map((line) => line.split(' ')[0] ?? '');
  return names.filter((name) => new RegExp(`^${PREFIX}\\d+-`).test(name));
}

function makerOf(name: string): number {
  return Number.parseInt(name.slice(PREFIX.length), 10);
}

function remove(name: string): void {
  const pids = command('ip', 'netns', 'pids', name).split('\n').filter((line) => line !== '');
  for (const pid of pids) {
    try {
      process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has just ended.
    }
  }
  command('ip', 'netns', 'delete', name);
}
