/** Rules that operators give, or take back, while the register is away, src/gateway/orders/local-rules.ts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { GatewayCore } from '../../src/gateway/daemon/core.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { coreOf } from './inspect.js';
import type { Letter } from './letters.js';

const WHO = { reason: 'their server is down', who: 'ann' };
const ID = 'gw-1-9-1';

function coreAt(group: Group, id: string): GatewayCore {
  return coreOf({ gateway: group.gateway(id) });
}

/** As the command line does: each that is asked gets it under one id. */
function give(group: Group, ...ids: readonly string[]): void {
  for (const id of ids) void coreAt(group, id).ruleDesk.add({ verb: 'suspend', queue: 'q1', ...WHO, local: true, id: ID });
}

/** What was written is on the disk. */
function diskTurn(): Promise<void> {
  return new Promise((resolve) => { setImmediate(resolve); });
}

function inRegister(group: Group): readonly string[] {
  return group.register.snapshot().list([{ prefix: 'rules/queues/' }]).map(({ key }) => key);
}

function away(group: Group): void {
  group.register.goAway('refusing');
  group.until(() => coreAt(group, 'gw-1').registerAway !== '', 'that the register is away', 20_000);
}

function arrived(letters: readonly Letter[]): number {
  return letters.filter(({ arrivals }) => arrivals.size > 0).length;
}

function submitted(group: Group): readonly Letter[] {
  const letters = [group.submit('gw-1', ['q1']), group.submit('gw-2', ['q1'])];
  group.until(() => letters.every(({ outcome }) => outcome === COMMITTED), 'the 250s');
  return letters;
}

function cancel(group: Group, ...ids: readonly string[]): void {
  for (const id of ids) void coreAt(group, id).ruleDesk.cancel(ID, { ...WHO, local: true });
}

describe('a rule that is given while the register is away', () => {
  test('is in force at once where it was given, and in the register by itself under its id, once, when that is back', async () => {
    const group = Group.started();
    away(group);
    give(group, 'gw-1', 'gw-2');
    const letters = submitted(group);
    group.run(3000);
    assert.equal(arrived(letters), 0);
    assert.notEqual(coreAt(group, 'gw-2').ruleDesk.answer().register_away, '');
    assert.deepEqual(coreAt(group, 'gw-2').ruleDesk.answer().rules.map(({ id, local }) => [id, local]), [[ID, true]]);
    group.register.comeBack();
    group.until(() => inRegister(group).length === 1, 'it is registered', 60_000);
    assert.deepEqual(inRegister(group), [`rules/queues/${ID}`]);
    group.run(3000);
    assert.deepEqual(coreAt(group, 'gw-2').ruleDesk.answer().rules.map(({ id, local }) => [id, local]), [[ID, false]]);
    await diskTurn();
    for (const id of ['gw-1', 'gw-2']) assert.equal(group.gateway(id).localRules.kept.given.size, 0);
    assert.equal(arrived(letters), 0);
    void coreAt(group, 'gw-2').ruleDesk.cancel(ID, WHO);
    group.until(() => arrived(letters) === 2, 'the mail');
    group.run(5000);
    assert.deepEqual(inRegister(group), []);
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });

  test('is obeyed by the next process of its gateway, which registers it', () => {
    const group = Group.started();
    away(group);
    give(group, 'gw-1');
    const letters = submitted(group);
    group.until(() => arrived(letters) === 1, 'the mail of who was not asked');
    group.gateway('gw-1').kill();
    group.register.comeBack();
    group.gateway('gw-1').start();
    group.until(() => group.gateway('gw-1').core?.rules.all().length === 1, 'it is obeyed', 60_000);
    group.until(() => inRegister(group).length === 1, 'it is registered', 60_000);
    group.run(10_000);
    assert.equal(arrived(letters), 1);
    assert.equal(coreAt(group, 'gw-2').rules.all().length, 1);
    cancel(group, 'gw-2');
    group.until(() => arrived(letters) === 2, 'the mail');
    checkNoLoss(group.letters);
  });

  test('and taken back at one of two that have it stands for neither when the register is back', () => {
    const group = Group.started();
    away(group);
    give(group, 'gw-1', 'gw-2');
    group.run(1000);
    cancel(group, 'gw-1');
    const letters = submitted(group);
    group.until(() => arrived(letters) === 1, 'the mail of who was asked');
    group.register.comeBack();
    group.until(() => arrived(letters) === 2, 'the other', 60_000);
    group.run(5000);
    assert.deepEqual(inRegister(group), []);
    assert.equal(coreAt(group, 'gw-2').rules.all().length, 0);
  });

  test('that the register had is not obeyed from when it is taken back, and deleted there later', () => {
    const group = Group.started();
    void coreAt(group, 'gw-1').ruleDesk.add({ verb: 'suspend', queue: 'q1', ...WHO });
    group.until(() => coreAt(group, 'gw-2').rules.all().length === 1, 'it stands');
    const [rule] = coreAt(group, 'gw-2').rules.all();
    const letters = submitted(group);
    away(group);
    for (const id of ['gw-1', 'gw-2']) void coreAt(group, id).ruleDesk.cancel(rule?.id ?? '', { ...WHO, local: true });
    group.until(() => arrived(letters) === 2, 'the mail', 3000);
    assert.equal(inRegister(group).length, 1);
    group.register.comeBack();
    group.until(() => inRegister(group).length === 0, 'it is deleted', 60_000);
  });

  test('is written again each second where the disk did not take it, and so is that it is in the register; the log says so once', async () => {
    const group = Group.started();
    const file = group.gateway('gw-1').localRules;
    const turns = async (): Promise<void> => {
      for (let second = 0; second < 3; second++) {
        group.run(1000);
        await diskTurn();
      }
    };
    away(group);
    file.isFull = true;
    give(group, 'gw-1');
    await turns();
    assert.equal(file.kept.given.size, 0);
    file.isFull = false;
    await turns();
    assert.deepEqual([...file.kept.given.keys()], [ID]);
    file.isFull = true;
    group.register.comeBack();
    group.until(() => inRegister(group).length === 1, 'it is registered', 60_000);
    await turns();
    assert.equal(file.kept.given.size, 1);
    file.isFull = false;
    await turns();
    assert.equal(file.kept.given.size, 0);
    assert.equal(group.log.lines.filter(({ text }) => text.includes('can not be written to state_dir')).length, 2);
  });

  test('and is cancelled at the register before that has it is not written there again', () => {
    const group = Group.started();
    away(group);
    give(group, 'gw-1');
    group.run(500);
    const core = coreAt(group, 'gw-1');
    group.register.comeBack();
    group.until(() => core.registerAway === '', 'it answers', 60_000);
    void core.ruleDesk.cancel(ID, WHO);
    group.run(10_000);
    assert.deepEqual(inRegister(group), []);
    assert.deepEqual(core.rules.all(), []);
  });

  test('is told as registered where the register answers within a moment', async () => {
    const group = Group.started();
    const given = coreAt(group, 'gw-1').ruleDesk.add({ verb: 'suspend', queue: 'q1', ...WHO, local: true });
    group.run(1000);
    const { code, local } = await given;
    assert.deepEqual([code, local], [200, '']);
    away(group);
    const alone = coreAt(group, 'gw-1').ruleDesk.add({ verb: 'suspend', queue: 'q2', ...WHO, local: true });
    await diskTurn();
    group.run(100);
    assert.notEqual((await alone).local, '');
  });
});
