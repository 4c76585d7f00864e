/** `twinpost rules`, src/cli/rules.ts: what is listed, and that a rule that nobody knows is not told as cancelled. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import yargs from 'yargs';
import type { QueueRuleAnswer } from '../../../src/admin-api/queue-rules.js';
import { NOT_ALL_KNOW } from '../../../src/cli/group.js';
import type { AdminClient } from '../../../src/cli/admin-client.js';
import { Group } from '../../../src/cli/group.js';
import type { Member } from '../../../src/cli/group.js';
import { giveRuleVerb, takeBackVerb, told, toldJson } from '../../../src/cli/queue-rule.js';
import { cancelRules, giveRule, rulesOf } from '../../../src/cli/rule-run.js';
import { listText, rulesCommand } from '../../../src/cli/rules.js';
import { contextFor } from './played-context.js';
import { QUEUE } from './sample-answers.js';

const RULE: QueueRuleAnswer = { id: 'gw-1-1-1', verb: 'suspend', queue: 'out', who: 'ann', reason: 'r', since: 1, until: null, local: false, queues: 3, messages: 4 };

/** One gateway, and one that nobody reaches; nothing stands there. */
async function takenBack(isOneSilent: boolean, ...more: readonly string[]): Promise<{ code: number; printed: string[] }> {
  const server = createServer((request, response) => {
    const own = { id: 'gw-1', kind: 'gateway', admin: request.headers.host ?? null, self: true, away: false };
    const silent = { id: 'gw-2', kind: 'gateway', admin: '127.0.0.1:1', self: false, away: false };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(request.url === '/api/v1/group' ? { members: isOneSilent ? [own, silent] : [own] } : { told_by: 'gw-1', living: ['gw-1'], rules: [] }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const printed: string[] = [];
  let code = -1;
  const cli = takeBackVerb(yargs(), contextFor(printed), (given) => { code = given; }, 'resume');
  await cli.parseAsync(['resume', 'out', '--reason', 'r', ...more, '--from', `127.0.0.1:${String((server.address() as AddressInfo).port)}`]);
  server.closeAllConnections();
  server.close();
  return { code, printed };
}

test('that no rule stands to be taken back is sure only where every gateway answers', async () => {
  const whole = await takenBack(false);
  assert.deepEqual([whole.code, whole.printed], [1, ["! twinpost: no rule to suspend 'out' stands"]]);
  const part = await takenBack(true);
  assert.deepEqual([part.code, part.printed[0]], [NOT_ALL_KNOW, "! twinpost: no rule to suspend 'out' stands at those who answer"]);
  assert.match(part.printed[1] ?? '', /^PARTIAL: gw-2\b/);
  const json = await takenBack(true, '--json');
  assert.deepEqual([json.code, (JSON.parse(json.printed[1] ?? '{}') as Record<string, unknown>)['member']], [NOT_ALL_KNOW, 'gw-2']);
});

/** One gateway, which takes back whatever it is told to; `local`: why the register does not have it. */
async function asked(words: readonly string[], rules: readonly QueueRuleAnswer[], local = '', more: object = {}): Promise<{ code: number; printed: string[] }> {
  let standing = rules;
  const server = createServer((request, response) => {
    const id = /^\/api\/v1\/rules\/(.*)\/cancel$/.exec(request.url ?? '')?.[1];
    if (id !== undefined) standing = standing.filter((rule) => rule.id !== id);
    const own = { id: 'gw-1', kind: 'gateway', admin: request.headers.host ?? null, self: true, away: false };
    const answer = id !== undefined ? { rule: id, local } : request.method === 'POST' ? { rule: RULE.id, local, ...more } : request.url === '/api/v1/group' ? { members: [own] } : request.url?.startsWith('/api/v1/queues') === true ? { rows: [{ ...QUEUE, queue_name: 'slow' }], next_cursor: null } : { told_by: 'gw-1', living: ['gw-1'], rules: standing };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const printed: string[] = [];
  let code = -1;
  const done = (given: number): void => { code = given; };
  const context = contextFor(printed);
  const [verb] = words;
  const cli = verb === 'suspend' ? giveRuleVerb(yargs(), context, done, verb)
    : verb === 'resume' ? takeBackVerb(yargs(), context, done, verb) : rulesCommand(yargs(), context, done);
  await cli.parseAsync([...(verb === 'suspend' || verb === 'resume' ? [] : ['rules']), ...words, '--from', `127.0.0.1:${String((server.address() as AddressInfo).port)}`]);
  server.closeAllConnections();
  server.close();
  return { code, printed };
}

test('a rule of an order over new mail names no queues, and all are listed by what they are over', async () => {
  const { code, printed } = await asked(['list'], [RULE, { ...RULE, id: 'gw-1-1-2', verb: 'delete', queue: '--sender x', queues: 0, messages: 5 }]);
  assert.equal(code, 0);
  assert.deepEqual((printed[0] ?? '').split('\n').map((line) => line.replaceAll(/ {2,}/g, '|').replace(/\|[^|]*\|until cancelled/, '|until')), [
    'Rule|Verb|Over|Since|Until|Queues|Messages|Obeyed by|Who and why',
    'gw-1-1-1|suspend|out|until|3|4|gw-1|ann: r',
    'gw-1-1-2|delete|--sender x|until|5|gw-1|ann: r',
  ]);
});

test('a rule that nothing matches yet stands, and it is said that nothing does', async () => {
  const suspend = (queues: number): Promise<{ code: number; printed: string[] }> => asked(['suspend', 'TYPO', '--reason', 'r'], [{ ...RULE, queues }]);
  assert.deepEqual(await suspend(0), { code: 0, printed: ['TYPO is suspended: NOTHING MATCHES now (twinpost queue summary lists queues), it is for queues that come; rule gw-1-1-1'] });
  assert.deepEqual((await asked(['suspend', 'slwo', '--reason', 'r'], [{ ...RULE, queues: 0 }])).printed.slice(1), ['Did you mean slow?']);
  assert.deepEqual(await suspend(3), { code: 0, printed: ['TYPO is suspended: 3 queues with 4 messages now; rule gw-1-1-1'] });
});

test('what is resumed is told with the rules that may mean some of it still, and no others', async () => {
  const left = async (resumed: string, ...others: readonly string[]): Promise<unknown> => {
    const rules = [resumed, ...others, 'refused'].map((queue, index) => ({ ...RULE, id: `gw-1-1-${String(index)}`, queue, ...(queue === 'refused' ? { verb: 'refuse' as const, queue: resumed } : {}) }));
    const { printed: [json = ''] } = await asked(['resume', resumed, '--reason', 'r', '--json'], rules);
    return (JSON.parse(json) as Record<string, unknown>)['still_standing'];
  };
  assert.deepEqual(await left('rest/*', 'b', 'rest', 'REST/a', '*/a', 'restless*', '*'), ['REST/a', '*/a', '*']);
  assert.deepEqual(await left('a', 'ab*', 'a*', 'a/mail', 'a/bounce', '--route x', 'b'), ['a*', 'a/mail', '--route x']);
  assert.deepEqual(await left('*.org', '*.com', 'a*.org', 'a*g', '--domain b'), ['a*.org', 'a*g', '--domain b']);
  const [, line] = (await asked(['resume', 'a', '--reason', 'r'], [{ ...RULE, queue: 'a' }, { ...RULE, id: 'gw-1-1-2', queue: 'a*' }])).printed;
  assert.equal(line, 'rules that may still suspend some of that: a*');
});

test('what a suspension by domain does not stop is told with it', async () => {
  const shared = "mail to a.example also waits in the queue 'x'";
  const suspend = (...more: readonly string[]): Promise<{ code: number; printed: string[] }> =>
    asked(['suspend', '--domain', 'a.example', '--reason', 'r', ...more], [RULE], '', { shared });
  assert.deepEqual((await suspend()).printed.slice(1), [`NOT ALL: ${shared}`]);
  assert.deepEqual((JSON.parse((await suspend('--json')).printed[0] ?? '') as Record<string, unknown>)['shared'], shared);
});

test('who answers and does not obey a rule is named with it', async () => {
  const member = (id: string, rules: readonly QueueRuleAnswer[]): Member => {
    const client: Partial<AdminClient> = { rules: () => Promise.resolve({ told_by: id, living: [], rules: [...rules] }) };
    return { id, kind: 'gateway', client: client as AdminClient };
  };
  const rules = await rulesOf(new Group([member('gw-1', [RULE]), member('gw-2', []), member('gw-3', [RULE])], []));
  assert.deepEqual(rules.map(({ gateways, not_obeyed_by: others }) => [gateways, others]), [[['gw-1', 'gw-3'], ['gw-2']]]);
  assert.match(listText(rules), / gw-1, gw-3; NOT by gw-2 /);
});

test('what nobody knows is not cancelled: with --local it is kept as taken back, and that is said', async () => {
  const cancel = (id: string, rules: readonly QueueRuleAnswer[], local = ''): Promise<{ code: number; printed: string[] }> =>
    asked(['cancel', id, '--reason', 'r', '--local'], rules, local);
  assert.deepEqual(await cancel('gw-1-1-1', [RULE]), { code: 0, printed: ['gw-1-1-1 is cancelled'] });
  assert.deepEqual(await cancel('TYPO', [RULE]), { code: 1, printed: ['no rule of this id is known; kept as taken back for a day'] });
  const away = await cancel('TYPO', [RULE], 'etcd-1: no answer');
  assert.deepEqual([away.code, away.printed[0]], [NOT_ALL_KNOW, 'no rule of this id is known; kept as taken back for a day']);
  const json = await asked(['cancel', 'TYPO', '--reason', 'r', '--local', '--json'], [RULE]);
  assert.deepEqual([json.code, JSON.parse(json.printed[0] ?? '')], [1, { order: 'cancel', cancelled: [] }]);
});

test('a rule is not told as obeyed while one that may deliver mail has not heard of it: it is named, with the way to reach it', async () => {
  const client: Partial<AdminClient> = {
    url: 'http://127.0.0.1:1',
    addRule: () => Promise.resolve({ rule: RULE.id, local: '' }), cancelRule: (rule) => Promise.resolve({ rule, local: '' }),
    rules: () => Promise.resolve({ told_by: 'gw-1', living: ['gw-1'], rules: rules() }),
  };
  let rules = (): readonly QueueRuleAnswer[] => [RULE];
  const groupWith = (links: number | undefined): Group => new Group([{ id: 'gw-1', kind: 'gateway', client: client as AdminClient }], [
    { id: 'gw-2', kind: 'gateway', address: '127.0.0.1:2', why: 'connection refused', how: 'away', links },
  ]);
  const given = { verb: 'suspend', queue: 'out', reason: 'r', who: 'ann' } as const;
  for (const [links, code] of [[2, NOT_ALL_KNOW], [undefined, NOT_ALL_KNOW], [0, 0]] as const) {
    rules = () => [RULE];
    const printed: string[] = [];
    assert.equal(told((await giveRule(groupWith(links), given)).outcome, contextFor(printed)), code);
    rules = () => [];
    assert.equal(told(await cancelRules(groupWith(links), [RULE.id], given), contextFor([])), code);
    if (links !== 2) continue;
    assert.deepEqual(printed, [
      'NOT OBEYED YET by gw-2, which may deliver mail: see that they reach the register, and that this command reaches them',
      '  gw-2: no session at the register, no answer: dead, or cut off; 2 stores still have a link to it',
      '  once it answers: gw-2 obeys at once by the same command with --local --only --from 127.0.0.1:2',
    ]);
  }
});

test('what one sees that is cut off from the register is old: who died since is not waited for, nor is it itself', async () => {
  const member = (id: string, register_away: string, living: readonly string[]): Member => {
    const client: Partial<AdminClient> = {
      url: `http://${id}:1`, addRule: () => Promise.resolve({ rule: RULE.id, local: '' }),
      rules: () => Promise.resolve({ told_by: id, living: [...living], register_away, rules: register_away === '' ? [RULE] : [] }),
    };
    return { id, kind: 'gateway', client: client as AdminClient };
  };
  const group = new Group([member('gw-1', '', ['gw-1']), member('gw-2', 'etcd-1: no answer', ['gw-1', 'gw-2', 'gw-3'])], [
    { id: 'gw-3', kind: 'gateway', address: '', why: '', how: 'away', links: 0 },
  ]);
  const beganMs = performance.now();
  const { outcome } = await giveRule(group, { verb: 'suspend', queue: 'out', reason: 'r', who: 'ann' });
  assert.ok(performance.now() - beganMs < 5_000);
  const printed: string[] = [];
  assert.equal(told(outcome, contextFor(printed)), NOT_ALL_KNOW);
  assert.deepEqual([printed[0]?.split(',')[0], printed.slice(1)], ['NOT OBEYED YET by gw-2', ['  gw-2 obeys at once by the same command with --local --only --from gw-2:1']]);
});

test('a rule is given to nobody who answers as another, nor to one that did not answer: it may be of another group, or do it later', async () => {
  const asked: string[] = [];
  const member = (id: string): Member => {
    const client: Partial<AdminClient> = {
      addRule: () => {
        asked.push(id);
        return Promise.resolve({ rule: RULE.id, local: '' });
      },
      rules: () => Promise.resolve({ told_by: id, living: [id], rules: [RULE] }),
    };
    return { id, kind: 'gateway', client: client as AdminClient };
  };
  const group = new Group(['gw-1', 'gw-2', 'gw-3'].map(member), (['another', 'silent'] as const).map((how, index) => (
    { id: `gw-${String(index + 1)}`, kind: 'gateway', address: '127.0.0.1:1', why: '', how }
  )));
  await giveRule(group, { verb: 'suspend', queue: 'out', reason: 'r', who: 'ann' });
  assert.deepEqual(asked, ['gw-3']);
});

test('no way is told to one whose address nobody knows', () => {
  const printed: string[] = [];
  assert.equal(told({ rules: [], unaware: [{ id: 'gw-2', address: '', why: 'gw-2: not asked' }], local: '' }, contextFor(printed)), NOT_ALL_KNOW);
  assert.deepEqual(printed.slice(1), ['  gw-2: not asked']);
});

test('with --local each gateway that can not keep it is named', async () => {
  const away = 'etcd-1: no answer';
  const member = (id: string, local: string): Member => {
    const client: Partial<AdminClient> = {
      cancelRule: (rule) => Promise.resolve({ rule, local }),
      rules: () => Promise.resolve({ told_by: id, living: [], rules: [] }),
    };
    return { id, kind: 'gateway', client: client as AdminClient };
  };
  const group = new Group([member('gw-1', away), member('gw-2', `${away}; it is not kept: a restart forgets it`), member('gw-3', away)], []);
  const outcome = await cancelRules(group, ['gw-1-1-1'], { reason: 'r', who: 'ann', local: true });
  const printed: string[] = [];
  assert.equal(told(outcome, contextFor(printed)), NOT_ALL_KNOW);
  assert.deepEqual(printed.slice(1), [`LOCAL at gw-2: ${away}; it is not kept: a restart forgets it`]);
  assert.equal(toldJson({}, outcome, contextFor(printed)), NOT_ALL_KNOW);
  assert.match(printed.at(-1) ?? '', /"local_at":\[\{"gateway":"gw-2",/);
});
