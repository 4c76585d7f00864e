/** Workers go by another configuration together: all of them, or none. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ReadyReload } from '../../../src/bin/reloads.js';
import type { ReloadMessage } from '../../../src/bin/worker-messages.js';
import { AllWorkers, WorkerReloads } from '../../../src/bin/worker-reloads.js';
import type { ReloadedWorker } from '../../../src/bin/worker-reloads.js';
import { configurationHash } from '../../../src/config/changes.js';
import { parseConfig } from '../../../src/config/load.js';

const LEAST = `
gateway:
  id: gw-1
  host: box-1
  secret: a secret of 16 or more characters
  stores: [{id: s1, host: box-2, paths: [{name: A, address: '127.0.0.1:7401'}]}, {id: s2, host: box-3, paths: [{name: A, address: '127.0.0.1:7402'}]}]
  routes: [{domain: '*', via: 'smtp://127.0.0.1:26'}]
`;
const parsed = parseConfig(LEAST, 'f.yaml', { role: 'gateway', stateDir: '/state' });
assert.ok(parsed.ok);
const FILE = { keys: parsed };
const HASH = configurationHash(parsed);

/** The upper process and two workers, whose files the test plays. */
class Kit {
  readonly done: string[] = [];
  readonly all: AllWorkers;
  readonly #workers: readonly { readonly seat: ReloadedWorker; state: ReloadedWorker['state'] }[];
  readonly #answers: ((answer: string) => void)[] = [];

  constructor(count = 2) {
    this.#workers = Array.from({ length: count }, (_none, index) => this.#makeWorker(index));
    this.all = new AllWorkers(this.#workers.map(({ seat }) => seat));
  }

  /** The file of a worker is read: a hash, or why not. */
  answer(worker: number, answer: string): Promise<void> {
    this.#answers[worker]?.(answer);
    return settled();
  }

  set(worker: number, state: ReloadedWorker['state']): void {
    const found = this.#workers[worker];
    assert.ok(found !== undefined);
    found.state = state;
    if (state === 'is dead') this.all.onDied(found.seat);
  }

  startedByOther(worker: number): void {
    const found = this.#workers[worker];
    assert.ok(found !== undefined);
    found.seat.runsOther = true;
  }

  #makeWorker(index: number): { readonly seat: ReloadedWorker; state: ReloadedWorker['state'] } {
    const say = (what: string): void => { this.done.push(`${String(index)} ${what}`); };
    const own = new WorkerReloads({
      prepare: () => new Promise<ReadyReload | string>((resolve) => {
        this.#answers[index] = (answer) => {
          resolve(/^[0-9a-f]{12}$/.test(answer) ? { hash: answer, changed: [], warnings: () => [], use: () => { say('uses'); }, drop: () => { say('drops'); } } : answer);
        };
      }),
    }, { refused: (why) => { say(`hears ${why}`); } }, (message: ReloadMessage) => {
      if (message.kind === 'prepared') this.all.onPrepared(made.seat, message);
    });
    const made: { readonly seat: ReloadedWorker; state: ReloadedWorker['state'] } = {
      state: 'runs',
      seat: { id: `gw-1-${String(index + 1)}`, runsOther: false, get state() { return made.state; }, tell: (message) => { own.onMessage(message); } },
    };
    return made;
  }
}

function settled(): Promise<void> {
  return new Promise((resolve) => { setImmediate(resolve); });
}

describe('workers that read a file together', () => {
  test('use it when all of them are ready, and not before', async () => {
    const kit = new Kit();
    const ready = kit.all.prepare(FILE);
    await kit.answer(1, HASH);
    await kit.answer(0, HASH);
    const { use } = await ready;
    assert.deepEqual(kit.done, []);
    use();
    assert.deepEqual(kit.done, ['0 uses', '1 uses']);
  });

  test('drop it when one refuses, as soon as all have answered', async () => {
    const kit = new Kit(3);
    const refused = assert.rejects(kit.all.prepare(FILE), /^CliError: worker gw-1-2: no such port$/);
    await kit.answer(0, HASH);
    await kit.answer(1, 'no such port');
    assert.deepEqual(kit.done, []);
    await kit.answer(2, HASH);
    await refused;
    assert.deepEqual(kit.done, ['0 drops', '2 drops']);
  });

  test('drop what is ready only when it was given up', async () => {
    const done: string[] = [];
    let read: (ready: ReadyReload) => void = () => undefined;
    const worker = new WorkerReloads(
      { prepare: () => new Promise((resolve) => { read = resolve; }) }, { refused: () => undefined }, ({ kind }) => { done.push(kind); },
    );
    worker.onMessage({ kind: 'prepare', number: 4 });
    worker.onMessage({ kind: 'drop', number: 4 });
    read({ hash: HASH, changed: [], warnings: () => [], use: () => { done.push('uses'); }, drop: () => { done.push('drops'); } });
    await settled();
    worker.onMessage({ kind: 'use', number: 4 });
    assert.deepEqual(done, ['drops']);
  });

  test('drop it when they have not read the same, and when one ends', async () => {
    const kit = new Kit();
    const other = assert.rejects(kit.all.prepare(FILE), /was changed while it was read/);
    await kit.answer(0, '0123456789ab');
    await kit.answer(1, HASH);
    await other;
    const ended = assert.rejects(kit.all.prepare(FILE), /^CliError: worker gw-1-2 ended while it read the file$/);
    await kit.answer(0, HASH);
    kit.set(1, 'is dead');
    await ended;
    assert.equal(kit.done.includes('0 uses'), false);
  });

  test('go on without one that is dead, and wait for one that starts', async () => {
    const kit = new Kit();
    kit.set(1, 'starts');
    await assert.rejects(kit.all.prepare(FILE), /worker gw-1-2 starts at this moment/);
    kit.set(1, 'is dead');
    const ready = kit.all.prepare(FILE);
    await kit.answer(0, HASH);
    (await ready).use();
    assert.deepEqual(kit.done, ['0 uses']);
  });

  test('say which of them was started by another file, until all go by one', async () => {
    const kit = new Kit();
    kit.startedByOther(1);
    const refused = assert.rejects(kit.all.prepare(FILE), /^CliError: worker gw-1-2: memory needs a restart\. It runs another configuration than its fellows: end it, /);
    await kit.answer(0, HASH);
    await kit.answer(1, 'memory needs a restart');
    await refused;
    const ready = kit.all.prepare(FILE);
    await kit.answer(0, HASH);
    await kit.answer(1, HASH);
    (await ready).use();
    const again = assert.rejects(kit.all.prepare(FILE), /^CliError: worker gw-1-2: no such port$/);
    await kit.answer(0, HASH);
    await kit.answer(1, 'no such port');
    await again;
  });

  test('hear why a file was refused', () => {
    const kit = new Kit();
    kit.all.refused('f.yaml:3: it is bad');
    assert.deepEqual(kit.done, ['0 hears f.yaml:3: it is bad', '1 hears f.yaml:3: it is bad']);
  });
});
