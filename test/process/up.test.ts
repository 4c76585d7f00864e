/** `twinpost up` with real processes: restarts what dies, stops in order, leaves no orphan. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { EMBEDDED_UP_YAML } from '../../src/config/embedded.js';
import { freePorts } from './free-ports.js';

const ENTRY = fileURLToPath(new URL('../../src/bin/twinpost.js', import.meta.url));
const WAIT_MS = 30_000;
const PORTS = ['2525', '2526', '8025', '7401', '7402', '7411', '7412', '9401', '9402'];

/** One `up` of this test, on ports that were free a moment ago. */
class UpRun {
  readonly child: ChildProcess;
  output = '';
  error = '';
  readonly exited: Promise<number | null>;
  #look: (() => void) | undefined;

  constructor(config: string) {
    this.child = spawn(process.execPath, [ENTRY, 'up', '--config', config], { cwd: os.tmpdir(), stdio: ['ignore', 'pipe', 'pipe'] });
    this.child.stdout?.on('data', (bytes: Buffer) => {
      this.output += bytes.toString();
      this.#look?.();
    });
    this.child.stderr?.on('data', (bytes: Buffer) => { this.error += bytes.toString(); });
    this.exited = new Promise((resolve) => {
      this.child.once('close', (code) => {
        resolve(code);
        this.#look?.();
      });
    });
  }

  /** Resolves with the first match in what `up` has said since `from`. */
  said(pattern: RegExp, from = 0): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => { reject(new Error(`up did not say ${String(pattern)} but:\n${this.output}${this.error}`)); }, WAIT_MS);
      this.#look = () => {
        const match = pattern.exec(this.output.slice(from));
        if (match === null) return;
        clearTimeout(timer);
        this.#look = undefined;
        resolve(match);
      };
      this.#look();
    });
  }

  pidOf(name: string): number {
    const match = new RegExp(`^ +${name} +(\\d+) `, 'm').exec(this.output);
    return Number(match?.[1] ?? 0);
  }

  get pids(): readonly number[] {
    return ['store-a', 'store-b', 'sink', 'gateway'].map((name) => this.pidOf(name));
  }
}

let runs: UpRun[] = [];
const pidsSeen = new Set<number>();

async function startUp(): Promise<{ readonly run: UpRun; readonly smtp: number; readonly config: string }> {
  let text = EMBEDDED_UP_YAML;
  let smtp = 0;
  const ports = await freePorts(PORTS.length);
  for (const [index, known] of PORTS.entries()) {
    const port = ports[index] ?? 0;
    if (known === '2525') smtp = port;
    text = text.replaceAll(`:${known}`, `:${String(port)}`);
  }
  const config = path.join(mkdtempSync(path.join(os.tmpdir(), 'up-')), 'up.yaml');
  writeFileSync(config, text);
  const run = new UpRun(config);
  runs.push(run);
  await run.said(/accepted \S+\/s .* store-a SYNC {2}store-b SYNC/);
  for (const pid of run.pids) pidsSeen.add(pid);
  return { run, smtp, config };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** The kernel tells the end of a process that is not our child by its pid alone. */
async function gone(pids: readonly number[]): Promise<void> {
  const endMs = performance.now() + WAIT_MS;
  while (pids.some(isAlive)) {
    assert.ok(performance.now() < endMs, `still alive: ${pids.filter(isAlive).join(', ')}`);
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
}

afterEach(async () => {
  for (const run of runs) {
    run.child.kill('SIGKILL');
    await run.exited;
  }
  runs = [];
  await gone([...pidsSeen]);
  pidsSeen.clear();
});

describe('twinpost up', () => {
  test('shows where things are, restarts a killed process, and stops all on SIGINT with exit code 0', async () => {
    const { run, smtp } = await startUp();
    assert.match(run.output, new RegExp(`send mail to +127\\.0\\.0\\.1:${String(smtp)}`));
    assert.match(run.output, /swaks --server/);
    assert.ok(run.pids.every((pid) => pid > 0 && isAlive(pid)));
    for (const name of ['gateway', 'store-b', 'sink']) {
      const from = run.output.length;
      process.kill(run.pidOf(name), 'SIGKILL');
      const again = await run.said(new RegExp(`${name} runs again as pid (\\d+)`), from);
      pidsSeen.add(Number(again[1]));
      await run.said(/accepted \S+\/s .* store-a SYNC {2}store-b SYNC\n/, from + again.index);
    }
    const sent = spawn(process.execPath, [ENTRY, 'send', '--to', `127.0.0.1:${String(smtp)}`, '--count', '20', '--resend', '--json'], { stdio: ['ignore', 'pipe', 'inherit'] });
    let report = '';
    sent.stdout.on('data', (bytes: Buffer) => { report += bytes.toString(); });
    await new Promise((resolve) => { sent.once('close', resolve); });
    assert.equal((JSON.parse(report) as { accepted: number }).accepted, 20);
    run.child.kill('SIGINT');
    assert.equal(await run.exited, 0, run.error);
    assert.match(run.output, /stopped\n$/);
    await gone([...pidsSeen]);
  });

  test('names a busy port and its role in one line', async () => {
    const { config } = await startUp();
    const second = new UpRun(config);
    runs.push(second);
    assert.equal(await second.exited, 1);
    assert.equal(second.output, '');
    assert.match(second.error, /^twinpost: ports .*\d+ \(gateway SMTP\).* in use\. [^\n]*\n$/);
  });

  test('leaves no process behind when it is killed itself', async () => {
    const { run } = await startUp();
    run.child.kill('SIGKILL');
    await run.exited;
    await gone(run.pids);
  });
});
