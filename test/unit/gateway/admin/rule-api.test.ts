/** Standing rules over the admin HTTP: what is refused before anything is written, and what the register is given. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Prng } from '../../../../src/base/prng.js';
import { addQueueRules } from '../../../../src/gateway/admin/rule-api.js';
import { LocalRules } from '../../../../src/gateway/orders/local-rules.js';
import { QueueRules } from '../../../../src/gateway/orders/queue-rules.js';
import { RuleDesk } from '../../../../src/gateway/orders/rule-desk.js';
import type { Route } from '../../../../src/gateway/mail-types.js';
import { toAscii } from '../../../../src/platform/node/idna.js';
import { Scheduler } from '../../../scenario/scheduler.js';
import { WorldRegister } from '../../../scenario/world-register.js';
import { KeptLog } from './kept-log.js';
import { playedApi } from './played-api.js';

const WHO = { reason: 'their server is down', who: 'ann@box' };

interface Played {
  readonly log: KeptLog;
  readonly register: WorldRegister;
  run(ms: number): void;
  ask(method: 'GET' | 'POST', path: string, payload?: object): Promise<readonly [code: number, json: Record<string, unknown>]>;
}

/** gw-1 answers, gw-2 lives. */
function played(): Played {
  const [scheduler, log] = [new Scheduler(), new KeptLog()];
  const register = new WorldRegister(scheduler, new Prng(7), log);
  const run = (ms: number): void => { scheduler.runUntil(scheduler.nowMs + ms); };
  const { bridge } = register.start({ gatewayId: 'gw-1', incarnation: 3 });
  register.start({ gatewayId: 'gw-2', incarnation: 1 });
  run(1000);
  log.lines.length = 0;
  const clock = { nowMs: () => scheduler.nowMs, wallMs: () => 1_000_000 };
  const local = new LocalRules({ clock, log, register: bridge, file: undefined });
  const rules = new QueueRules({ clock, log, told: local, names: { nameOf: () => '', domainOf: () => '' }, toAscii, queues: () => [], obeyOrders: () => undefined, caughtBy: () => 0, wake: () => undefined });
  const app = playedApi();
  const names = { nameOf: ({ queueName }: Route) => queueName, mailRoutes: () => [{ queueName: 'out' } as Route], domainOf: () => '', waysTo: () => [true, false].map((isOwn) => ({ routeName: 'out', queueName: isOwn ? 'own' : 'out', isOwn })) };
  addQueueRules(app, new RuleDesk({ clock, log, register: bridge, rules, local, names, toAscii }));
  return {
    log, register, run,
    ask: async (method, path, payload) => {
      let answer: readonly [number, Record<string, unknown>] | undefined;
      const asked = app.inject({ method, url: `/api/v1${path}`, ...(payload === undefined ? {} : { payload }) });
      void asked.then((told) => { answer = [told.statusCode, told.json()]; });
      while (answer === undefined) {
        await new Promise((resolve) => { setImmediate(resolve); });
        run(10);
      }
      return answer;
    },
  };
}

describe('standing rules', () => {
  test('over routes, sites, clients and senders are told as operators write them, and refused where a verb can not obey them', async () => {
    const { ask, run, register } = played();
    for (const [odd, why] of [
      [{ verb: 'refuse', selector: { site: 'mx.host' } }, /to refuse takes the name of a queue, or --route, or --sender and --client/],
      [{ verb: 'refuse', selector: { route: 'out', client: '192.0.2.7' } }, /to refuse takes/], [{ verb: 'suspend', selector: { client: '192.0.2.7' } }, /to suspend takes/],
      [{ verb: 'suspend' }, /either which queue/], [{ verb: 'suspend', queue: 'out', selector: { route: 'out' } }, /either which queue/],
      [{ verb: 'hold', queue: 'out' }, /to hold takes a selector/], [{ verb: 'hold', selector: { ids: ['x'] } }, /to hold takes --domain and .* when it stands/],
      [{ verb: 'bounce', selector: { reply: '421' } }, /to bounce takes/], [{ verb: 'delete', selector: { domain: 'a', everything: true } }, /everything is said alone/],
      [{ verb: 'delay', selector: { domain: 'a' } }, /has not_before_ms/], [{ verb: 'hold', selector: { domain: 'a' }, not_before_ms: 5 }, /has not_before_ms/],
      [{ verb: 'suspend', selector: {} }, /say which messages/], [{ verb: 'refuse', selector: { client: '192.0.2' } }, /is no address or network/],
    ] as const) {
      const [code, { error }] = await ask('POST', '/rules', { ...odd, ...WHO });
      assert.equal(code, 400, JSON.stringify(odd));
      assert.match(String(error), why);
    }
    for (const selector of [{ route: 'typo' }, { queue_class: 'foo' }]) {
      const [code, { error }] = await ask('POST', '/rules', { verb: 'hold', selector, ...WHO });
      assert.deepEqual([code, error], selector.route === undefined ? [400, 'selector.queue_class: one of mail, bounce, billing, notification']
        : [404, "there is no route 'typo' here; there are: out; nothing was done"]);
    }
    const [, { rule }] = await ask('POST', '/rules', { verb: 'refuse', selector: { sender: '', client: '192.0.2.7' }, ...WHO });
    run(1000);
    const [{ queue }] = (await ask('GET', '/rules'))[1]['rules'] as [{ queue: string }];
    assert.equal(queue, '--sender <> --client 192.0.2.7');
    const times = await Promise.all([1, 5_000_000].map(async (since) =>
      (await ask('POST', '/rules', { verb: 'delay', selector: { everything: true }, not_before_ms: 9, since, ...WHO }))[1]['rule']));
    run(1000);
    const wallMs = times.map((id) => /"wallMs":(\d+)/.exec(register.snapshot().get(`rules/queues/${String(id)}`)?.value ?? '')?.[1]);
    assert.deepEqual(wallMs, ['1000', '1000000'], 'since it was said, and not later than now');
    assert.match(register.snapshot().get(`rules/queues/${String(rule)}`)?.value ?? '', /"verb":"refuse","selector":\{"sender":"","client":"192\.0\.2\.7"\},"untilWallMs":0/);
    const [, { shared }] = await ask('POST', '/rules', { verb: 'suspend', selector: { domain: 'a.example' }, ...WHO });
    assert.match(String(shared), /^mail to a\.example also waits in the queue 'out', which is not for it alone/);
  });

  test('that delay stand no longer than they delay anything', async () => {
    const { ask, run } = played();
    const delay = { verb: 'delay', selector: { domain: 'a' }, not_before_ms: 4_600_000, ...WHO };
    const [code, { error }] = await ask('POST', '/rules', { ...delay, duration_seconds: 10_800 });
    assert.equal(code, 400);
    assert.match(String(error), /a delay stands no longer than until not_before_ms/);
    // The command has looked for a while before it gives the rule.
    assert.equal((await ask('POST', '/rules', { ...delay, not_before_ms: 4_500_000, since: 900, duration_seconds: 3600 }))[0], 200);
    run(1000);
    const rules = (await ask('GET', '/rules'))[1]['rules'] as { until: number }[];
    assert.deepEqual(rules.map(({ until }) => until), [4500]);
  });

  test('are in the register when they are answered, with who and why, shown with who has to obey, and gone when they are cancelled', async () => {
    const { ask, run, register, log } = played();
    const given = await ask('POST', '/rules', { verb: 'suspend', queue: 'out', duration_seconds: 60, ...WHO });
    assert.deepEqual(given, [200, { rule: 'gw-1-3-1', local: '' }]);
    assert.deepEqual(JSON.parse(register.snapshot().get('rules/queues/gw-1-3-1')?.value ?? ''), {
      version: 1, verb: 'suspend', queue: 'out', untilWallMs: 1_060_000, who: WHO.who, reason: WHO.reason, wallMs: 1_000_000,
    });
    run(1000);
    const [, told] = await ask('GET', '/rules');
    assert.deepEqual(told, {
      told_by: 'gw-1', living: ['gw-1', 'gw-2'], register_away: '', why_no_more: '',
      rules: [{ id: 'gw-1-3-1', verb: 'suspend', queue: 'out', ...WHO, since: 1000, until: 1060, local: false, queues: 0, messages: 0 }],
    });
    assert.equal((await ask('POST', '/rules/gw-1-3-1/cancel', { reason: 'mended', who: 'bob' }))[0], 200);
    run(1000);
    assert.deepEqual((await ask('GET', '/rules'))[1]['rules'], []);
    assert.equal(register.snapshot().get('rules/queues/gw-1-3-1'), undefined);
    assert.deepEqual(log.lines.map(({ text, fields }) => [text, fields['who']]), [
      ['an operator gives a standing rule', 'ann@box'], ["an operator's rule is in force", 'ann@box'],
      ['an operator cancels a standing rule', 'bob'], ["an operator's rule is over", undefined],
    ]);
  });

  test('are refused when they are none, and nothing is written', async () => {
    const { ask, register } = played();
    const sound = { verb: 'suspend', queue: 'out', ...WHO };
    for (const changes of [
      { verb: 'hold' }, { queue: '' }, { queue: 'a\u001b[2J' }, { queue: 'x'.repeat(301) }, { queue: 7 }, { duration_seconds: 0 }, { duration_seconds: 1e12 },
      { duration_seconds: 1.5 }, { reason: ' ' }, { who: 'x'.repeat(501) },
    ]) {
      const [code] = await ask('POST', '/rules', { ...sound, ...changes });
      assert.equal(code, 400, JSON.stringify(changes).slice(0, 60));
    }
    assert.equal((await ask('POST', '/rules/gw-1-3-9/cancel', WHO))[0], 404);
    assert.equal((await ask('POST', '/rules/gw-1-3-9/cancel', {}))[0], 400);
    assert.deepEqual(register.snapshot().list([{ prefix: 'rules/' }]), []);
  });

  test('are not taken while the register is away: 503, one line, nothing is done', async () => {
    const { ask, run, register } = played();
    register.goAway('refusing');
    run(10_000);
    const [code, { error }] = await ask('POST', '/rules', { verb: 'refuse', queue: 'out', ...WHO });
    assert.equal(code, 503);
    assert.match(String(error), /^the register, which is to keep it, does not answer: [^\n]+; nothing was done; --local is obeyed at once without it$/);
    const held = await ask('POST', '/rules', { verb: 'hold', selector: { domain: 'a.example' }, ...WHO });
    assert.match(String(held[1]['error']), /; nothing was done$/, 'no order that stands is given so');
  });
});
