/**
 * What contract worlds on the real clock share: waiting for a condition, clients that are closed, folders
 * that go.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

import type { EventLog } from '../../../src/platform/ports.js';
import type { Register } from '../../../src/register/port.js';
import type { World } from './contract.js';

const LOOK_MS = 5;
const WAIT_MS = 20_000;

export const QUIET: EventLog = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export async function until(isTrue: () => boolean, what: string, waitMs = WAIT_MS): Promise<void> {
  const endMs = performance.now() + waitMs;
  while (!isTrue()) {
    assert.ok(performance.now() < endMs, `${what}: not so within ${String(waitMs)} ms`);
    await wait(LOOK_MS);
  }
}

export function makeFolder(): string {
  return mkdtempSync(join(tmpdir(), 'twinpost-register-'));
}

export class RealWorld implements World {
  readonly #clients: Register[] = [];
  readonly #newClient: () => Register;
  readonly #end: () => Promise<void>;

  constructor(newClient: () => Register, end: () => Promise<void>) {
    this.#newClient = newClient;
    this.#end = end;
  }

  client(): Register {
    const client = this.#newClient();
    this.#clients.push(client);
    return client;
  }

  until(isTrue: () => boolean, what: string): Promise<void> {
    return until(isTrue, what);
  }

  nowMs(): number {
    return performance.now();
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.#end();
  }
}

export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}
