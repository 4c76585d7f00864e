/**
 * Which peers are here, and fetching those that are not: Debian's packages by apt as root, npm's into a
 * folder of the user's cache, never into the project. Nothing is fetched unless `bench all --install` asks.
 *
 *     ~/.cache/twinpost-bench/haraka          Haraka with its dependencies
 *     ~/.cache/twinpost-bench/node20, 22, 24  Node's own binaries, from the npm package `node`
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

import { findProgram } from '../../test/outside-sets.js';

const CACHE = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'twinpost-bench');
const FETCH_MS = 300_000;
const POLICY = '/usr/sbin/policy-rc.d';

/** The program that shows a Debian package to be here. */
const DEBIAN: Readonly<Record<string, string>> = { postfix: 'postfix', 'redis-server': 'redis-server', memcached: 'memcached' };

const HARAKA_VERSION = '3.3.4';
/** Versions that Haraka's dependencies pin and that a registry may not have: the ones before, which serve as well here. */
const HARAKA_OVERRIDES = { 'encoding-japanese': '2.2.0', libqp: '2.1.1', libbase64: '1.3.0', libmime: '5.3.7' };

export const NODE_MAJORS = [20, 22, 24] as const;

/** Haraka's folder in node_modules; undefined when it is not here. */
export function harakaFolder(): string | undefined {
  const folder = join(CACHE, 'haraka', 'node_modules', 'Haraka');
  return existsSync(folder) ? folder : undefined;
}

/** Node's binary of a major version; undefined when it is not here. */
export function nodeBinary(major: number): string | undefined {
  const file = join(CACHE, `node${major}`, 'node_modules', 'node', 'bin', 'node');
  return existsSync(file) ? file : undefined;
}

export function isInstalled(debianPackage: string): boolean {
  return findProgram(DEBIAN[debianPackage] ?? debianPackage) !== undefined;
}

/** Fetches what is missing; what cannot be had is said, and stays missing. */
export function installPeers(): void {
  const packages = Object.keys(DEBIAN).filter((name) => !isInstalled(name));
  if (packages.length > 0) fetchDebian(packages);
  if (harakaFolder() === undefined) fetchNpm('haraka', { Haraka: HARAKA_VERSION }, HARAKA_OVERRIDES);
  for (const major of NODE_MAJORS) if (nodeBinary(major) === undefined) fetchNpm(`node${major}`, { node: String(major) }, {});
}

function fetchDebian(packages: readonly string[]): void {
  if (process.getuid?.() !== 0) {
    console.log(`not installed: ${packages.join(', ')}: Debian's packages need root`);
    return;
  }
  withServicesForbidden(POLICY, () => {
    const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    // A fresh machine may know no packages yet.
    run('apt-get', ['update', '-q'], environment);
    run('apt-get', ['install', '-q', '-y', '--no-install-recommends', ...packages], environment);
  });
}

/**
 * Debian starts the services of a package as it installs it, unless this file says no: only our own instances are
 * wanted. Where it is not there, it is while packages are installed.
 */
export function withServicesForbidden(file: string, install: () => void): void {
  if (existsSync(file)) {
    install();
    return;
  }
  writeFileSync(file, '#!/bin/sh\nexit 101\n', { mode: 0o755, flag: 'wx' });
  try {
    install();
  } finally {
    rmSync(file);
  }
}

function fetchNpm(name: string, dependencies: Readonly<Record<string, string>>, overrides: Readonly<Record<string, string>>): void {
  const folder = join(CACHE, name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies, overrides }));
  run('npm', ['install', '--no-audit', '--no-fund', '--omit=optional', '--prefix', folder]);
}

function run(program: string, args: readonly string[], environment: NodeJS.ProcessEnv = process.env): void {
  console.log(`${program} ${args.join(' ')}`);
  const { status, stderr } = spawnSync(program, args, { encoding: 'utf8', timeout: FETCH_MS, env: environment });
  if (status !== 0) console.log(`${program} failed: ${stderr.trim().split('\n').slice(-3).join(' / ')}`);
}
