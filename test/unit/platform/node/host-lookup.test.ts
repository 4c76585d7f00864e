/** Next hops by name, asked of the system one after the other: who shares a lookup, who goes first, who is forgotten. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ClientTransport } from '../../../../src/platform/node/client-transport.js';
import { HostLookups } from '../../../../src/platform/node/host-lookup.js';
import type { HostAddresses } from '../../../../src/platform/resolver.js';

const FOUND: HostAddresses = { addresses: ['192.0.2.1'], why: '', isFailed: false };
const SILENT: HostAddresses = { addresses: [], why: 'no answer on its address: EAI_AGAIN', isFailed: true };

/** The system, which answers when it is told to. */
class PlayedSystem {
  nowMs = 0;
  readonly asked: string[] = [];
  readonly lookups = new HostLookups((host) => {
    this.asked.push(host);
    assert.equal(this.#answer, undefined, 'one at a time');
    return new Promise((resolve) => { this.#answer = resolve; });
  }, { nowMs: () => this.nowMs });
  readonly told: string[] = [];
  #answer: ((found: HostAddresses) => void) | undefined;

  /** Time goes by. */
  wait(ms: number): void {
    this.nowMs += ms;
    mock.timers.tick(ms);
  }

  /** What is asked for is no more waited for; calling what is returned answers it after all. */
  async stick(): Promise<() => Promise<void>> {
    const answer = this.#answer;
    this.#answer = undefined;
    this.wait(60_000);
    await turn();
    return async () => {
      answer?.(FOUND);
      for (let turns = 0; turns < 2; turns++) await turn();
    };
  }

  ask(host: string): () => boolean {
    return this.lookups.ask(host, ({ addresses }) => { this.told.push(`${host} ${String(addresses.length)}`); });
  }

  async answer(found: HostAddresses, tookMs: number): Promise<void> {
    const answer = this.#answer;
    assert.ok(answer !== undefined, 'a name is asked for');
    this.#answer = undefined;
    this.wait(tookMs);
    answer(found);
    for (let turns = 0; turns < 2; turns++) await turn();
  }

  /** `silent` takes ten seconds, all others ten milliseconds. */
  async answerAll(times: number, silent: string): Promise<void> {
    for (let time = 0; time < times; time++) {
      const isSilent = this.asked.at(-1) === silent;
      await this.answer(isSilent ? SILENT : FOUND, isSilent ? 10_000 : 10);
    }
  }
}

describe('next hops by name', () => {
  beforeEach(() => { mock.timers.enable({ apis: ['setTimeout'] }); });
  afterEach(() => { mock.timers.reset(); });

  test('are asked for one after the other, each once for all who wait for it', async () => {
    const system = new PlayedSystem();
    for (let at = 0; at < 40; at++) system.ask('silent.test');
    for (let at = 0; at < 3; at++) system.ask('good.test');
    assert.deepEqual([system.asked, system.told], [['silent.test'], []]);
    await system.answer(SILENT, 10_000);
    assert.deepEqual(system.told, Array.from({ length: 40 }, () => 'silent.test 0'));
    system.ask('good.test');
    await system.answer(FOUND, 10);
    assert.deepEqual(system.told.slice(40), Array.from({ length: 4 }, () => 'good.test 1'));
    assert.deepEqual(system.asked, ['silent.test', 'good.test']);
  });

  test('are told to nobody who has given up, and asked for no more when nobody waits', async () => {
    const system = new PlayedSystem();
    const leave = ['a.test', 'b.test', 'c.test'].map((host) => system.ask(host));
    system.ask('b.test');
    leave[1]?.();
    await system.answer(FOUND, 10);
    await system.answer(FOUND, 10);
    assert.deepEqual(system.told, ['a.test 1', 'b.test 1']);
    leave[2]?.();
    system.ask('c.test')();
    await system.answer(FOUND, 10);
    system.ask('d.test');
    assert.deepEqual([system.told.length, system.asked], [2, ['a.test', 'b.test', 'c.test', 'd.test']]);
    // In line, and left before their turn.
    system.ask('e.test')();
    await system.answer(FOUND, 10);
    assert.deepEqual(system.asked.slice(4), []);
  });

  test('wait for no silent name that came before, from its second time on, and none of those waits for ever', async () => {
    const system = new PlayedSystem();
    system.ask('silent.test');
    await system.answerAll(1, 'silent.test');
    system.ask('first.test');
    system.ask('silent.test');
    system.ask('good.test');
    await system.answerAll(1, 'silent.test');
    assert.equal(system.asked.at(-1), 'good.test');
    for (let at = 0; at < 300 && system.asked.at(-1) !== 'silent.test'; at++) {
      system.ask(`other-${String(at % 2)}.test`);
      await system.answerAll(1, 'silent.test');
    }
    assert.equal(system.asked.at(-1), 'silent.test');
    assert.equal(system.asked.length, 103);
  });

  test('keep their place though who waited gave up, so that one that is well again is found so', async () => {
    const system = new PlayedSystem();
    for (const host of ['mended.test', 'silent.test']) {
      system.ask(host);
      await system.answer(SILENT, 10_000);
    }
    system.ask('first.test');
    const leave = system.ask('mended.test');
    system.ask('silent.test');
    leave();
    await system.answerAll(2, 'silent.test');
    assert.deepEqual(system.asked, ['mended.test', 'silent.test', 'first.test', 'mended.test', 'silent.test']);
    await system.answer(SILENT, 10_000);
    system.ask('first.test');
    system.ask('silent.test');
    system.ask('mended.test');
    await system.answerAll(1, 'silent.test');
    assert.equal(system.asked.at(-1), 'mended.test', 'it waits for no silent one any more');
  });

  test('that were found within the hour are told after a moment, whatever they wait for, and looked up all the same', async () => {
    const system = new PlayedSystem();
    const soon = (host: string): Promise<readonly string[]> => {
      system.ask(host);
      system.wait(249);
      assert.deepEqual(system.told, [], 'it may answer soon');
      system.wait(1);
      return turn().then(() => system.told.splice(0));
    };
    for (const host of ['good.test', 'none.test']) system.ask(host);
    await system.answerAll(2, 'silent.test');
    system.told.length = 0;
    // One after the other, none of them slow.
    for (let at = 0; at < 40; at++) system.ask(`line-${String(at)}.test`);
    const leave = system.ask('good.test');
    await system.answer(FOUND, 240);
    assert.deepEqual(system.told.splice(0), ['line-0.test 1']);
    await system.answer(FOUND, 240);
    assert.deepEqual(system.told.splice(0), ['good.test 1', 'line-1.test 1']);
    assert.equal(leave(), true, 'it was told');
    assert.deepEqual(await soon('none.test'), ['none.test 1']);
    assert.deepEqual(await soon('good.test'), ['good.test 1']);
    assert.deepEqual(await soon('other.test'), [], 'never found');
    system.asked.length = 0;
    await system.answerAll(41, 'silent.test');
    assert.deepEqual([system.asked.at(-3), system.asked.at(-2), system.asked.at(-1)], ['good.test', 'none.test', 'other.test'], 'once each');
    assert.equal(system.told.filter((each) => !each.startsWith('line-')).join(), 'other.test 1', 'no second time');
    system.told.length = 0;
    assert.deepEqual(await soon('good.test'), ['good.test 1'], 'while it is asked for itself');
    system.ask('good.test')();
    system.ask('good.test');
    await system.answer(SILENT, 200);
    assert.deepEqual(system.told.splice(0), ['good.test 1'], 'nobody could tell, and who left is told nothing');
    // Gone.
    system.ask('good.test');
    await system.answer({ addresses: [], why: 'it has no address', isFailed: false }, 10);
    assert.deepEqual(system.told.splice(0), ['good.test 0']);
    system.ask('silent.test');
    assert.deepEqual(await soon('good.test'), []);
    assert.deepEqual(await soon('none.test'), ['none.test 1']);
    await system.answerAll(3, 'silent.test');
    system.wait(3_600_000);
    system.told.length = 0;
    system.ask('silent.test');
    assert.deepEqual(await soon('none.test'), [], 'more than an hour ago');
  });

  test('that the system never answers for are asked for once, and no other meanwhile: the second thread is for links to stores', async () => {
    const system = new PlayedSystem();
    for (const host of ['known.test', 'none.test']) system.ask(host);
    await system.answer(FOUND, 10);
    await system.answer({ addresses: [], why: 'it has no address', isFailed: false }, 10);
    // What is known is older than an hour.
    system.wait(3_600_000);
    for (const host of ['stuck.test', 'stuck.test', 'waits.test', 'none.test']) system.ask(host);
    system.told.length = 0;
    const late = await system.stick();
    assert.deepEqual(system.told.splice(0), ['stuck.test 0', 'stuck.test 0']);
    const leave = system.ask('stuck.test');
    system.ask('stuck.test')();
    assert.deepEqual([system.told, leave()], [[], true], 'not from inside');
    system.ask('stuck.test');
    await turn();
    assert.deepEqual(system.told.splice(0), ['stuck.test 0'], 'at once');
    system.ask('known.test');
    system.wait(250);
    assert.deepEqual(system.told.splice(0), ['known.test 1'], 'as it was found last, whenever that was');
    system.wait(6_750);
    assert.deepEqual([system.told, system.asked.slice(2)], [[], ['stuck.test']]);
    assert.equal(system.lookups.held, '1 in line; the system has been looking up stuck.test for 1min7s');
    assert.deepEqual(['stuck.test', 'known.test'].map((host) => system.lookups.waitOf(host)), [undefined, undefined]);
    await late();
    for (let times = 0; times < 3; times++) await system.answer(FOUND, 10);
    assert.deepEqual([system.told, system.asked.slice(3)], [['waits.test 1', 'none.test 1'], ['waits.test', 'none.test', 'known.test']]);
    system.ask('stuck.test');
    system.wait(250);
    assert.deepEqual([system.told.at(-1), system.asked.at(-1)], ['stuck.test 1', 'stuck.test'], 'as any other again');
  });

  test('are told as they were found within the hour where the system never answers for them', async () => {
    const system = new PlayedSystem();
    system.ask('known.test');
    await system.answer(FOUND, 10);
    system.ask('known.test');
    await system.stick();
    system.told.length = 0;
    system.ask('known.test');
    await turn();
    assert.deepEqual(system.told, ['known.test 1'], 'at once');
  });

  test('say what they wait for', async () => {
    const system = new PlayedSystem();
    system.ask('good.test');
    await system.answer(FOUND, 10);
    for (const host of ['silent.test', 'a.test', 'good.test']) system.ask(host);
    system.wait(4_999);
    assert.equal(system.lookups.held, '');
    system.wait(1);
    system.ask('b.test');
    assert.equal(system.lookups.held, '1 in line; the system has been looking up silent.test for 5s');
    const waitsOf = ['silent.test', 'a.test', 'good.test', 'nobody.test'].map((host) => system.lookups.waitOf(host));
    assert.deepEqual(waitsOf, [
      { forMs: 5_000, doing: 'waiting for the system to look up its name' },
      { forMs: 5_000, doing: 'waiting for the lookup of its name, one of 4 in line; the system has been looking up silent.test for 5s' },
      undefined, undefined,
    ]);
    await system.answerAll(4, '');
    assert.deepEqual([system.lookups.held, system.lookups.waitOf('a.test')], ['', undefined]);
  });

  test('are waited for no more when who did has not come back soon, and anew when he comes', async () => {
    const system = new PlayedSystem();
    system.ask('first.test');
    await system.stick();
    system.ask('ok.test')();
    // As connections do that are put off again and again.
    for (let times = 0; times < 3; times++) {
      const leave = system.ask('ok.test');
      system.wait(6_000);
      leave();
      system.wait(500);
    }
    assert.deepEqual([system.lookups.held.slice(0, 9), system.lookups.waitOf('ok.test')?.forMs], ['1 in line', 19_500]);
    system.wait(4_500);
    assert.deepEqual([system.lookups.held, system.lookups.waitOf('ok.test')], ['', undefined]);
    system.ask('ok.test');
    system.wait(4_999);
    assert.deepEqual([system.lookups.held, system.lookups.waitOf('ok.test')?.forMs], ['', 4_999]);
  });

  test('are looked up for an answer until that is over', async () => {
    const system = new PlayedSystem();
    system.ask('silent.test');
    let end = (): void => undefined;
    const over = new Promise<void>((resolve) => { end = resolve; });
    const found = ['silent.test', 'ok.test'].map((host) => system.lookups.lookUp(host, over));
    await system.answer(SILENT, 1_000);
    assert.deepEqual(await found[0], SILENT);
    end();
    await turn();
    system.wait(5_000);
    assert.equal(system.lookups.waitOf('ok.test'), undefined);
    await system.answer(FOUND, 10);
    assert.deepEqual(await Promise.race([found[1], turn('nothing')]), 'nothing');
  });

  test('are held up only where nothing else tells of them', async () => {
    const system = new PlayedSystem();
    for (const host of ['silent.test', 'none.test', 'broken.test']) system.ask(host);
    await system.answer(SILENT, 10_000);
    await system.answer({ addresses: [], why: 'it has no address', isFailed: false }, 10);
    await system.answer(SILENT, 10);
    for (const host of ['first.test', 'silent.test', 'none.test', 'broken.test']) system.ask(host);
    system.wait(6_000);
    assert.equal(system.lookups.held, '');
    system.ask('new.test');
    system.wait(6_000);
    assert.equal(system.lookups.held, '1 in line; the system has been looking up first.test for 12s');
    // Found again, and not known any more.
    await system.answerAll(5, '');
    system.wait(3_600_000);
    for (const host of ['first.test', 'broken.test']) system.ask(host);
    system.wait(6_000);
    assert.equal(system.lookups.held, '1 in line; the system has been looking up first.test for 6s');
  });

  test('say when they are left whether they were asked for', async () => {
    const system = new PlayedSystem();
    const [justNow, asked] = [system.ask('a.test'), system.ask('a.test')];
    const inLine = system.ask('b.test');
    const address = system.ask('192.0.2.1');
    system.wait(999);
    assert.equal(justNow(), false, 'it had no time to answer');
    system.wait(1);
    assert.deepEqual([asked(), inLine(), address()], [true, false, true]);
    const next = [system.ask('b.test'), system.ask('b.test')];
    await system.answer(FOUND, 10);
    system.wait(1_000);
    assert.equal(next[0]?.(), true);
    await system.answer(FOUND, 10);
    assert.equal(next[1]?.(), true, 'it is answered');
  });

  test('that are addresses wait for none', async () => {
    const system = new PlayedSystem();
    system.ask('silent.test');
    for (const address of ['192.0.2.1', '::1', 'fe80::1%lo']) system.ask(address);
    const leave = system.ask('192.0.2.9');
    assert.deepEqual(system.told, []);
    leave();
    await turn();
    assert.deepEqual(system.told, ['192.0.2.1 1', '::1 1', 'fe80::1%lo 1']);
  });

  test('share their lookups with whoever asks for a connection', async () => {
    const system = new PlayedSystem();
    const transport = new ClientTransport({ readBufferBytes: 1024, lookups: system.lookups });
    for (let at = 0; at < 2; at++) transport.addresses('two.test', ({ addresses }) => { system.told.push(...addresses); });
    system.ask('two.test');
    await system.answer(FOUND, 10);
    assert.deepEqual([system.asked, system.told], [['two.test'], ['192.0.2.1', '192.0.2.1', 'two.test 1']]);
  });
});
