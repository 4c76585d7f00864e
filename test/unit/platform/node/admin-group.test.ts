/** What one gateway asks all of its group, src/platform/node/admin-group.ts: at real ports of loopback, with played answers. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import type { GatheredAnswer } from '../../../../src/admin-api/group.js';
import type { MemberAnswer } from '../../../../src/admin-api/pages.js';
import { gatewayRoutes as routes, groupRoutes, probeRoutes } from '../../../../src/admin-api/routes.js';
import { orderOf, refuse } from '../../../../src/platform/node/admin-guard.js';
import { ask } from '../../../../src/platform/node/admin-request.js';
import { listenAs, serve } from '../../../../src/platform/node/admin-server.js';
import type { AdminOptions } from '../../../../src/platform/node/admin-server.js';
import { selfSigned } from '../../../dialog/self-signed.js';
import { muteServer } from '../../../process/mute-server.js';
import { KeptLog } from '../../gateway/admin/kept-log.js';
import { tokensFile } from './token-file.js';

const HOST = '127.0.0.1';
const STILL = { moving: [], planned: [], why: '' };
const DRAIN = '/api/v1/group/stores/store-a/drain';
const ORDER = { reason: 'new disk', who: 'ann' };
const tls = selfSigned();

interface Gateway {
  readonly id: string;
  readonly port: number;
  /** Orders that it heard: by whom and why, and bodies of orders over mail. */
  readonly heard: object[];
}

interface Answer extends GatheredAnswer {
  readonly code: number;
  readonly error?: string;
}

/** One that serves a few rows. `others`: besides itself; asked at each request. */
async function gateway(
  t: TestContext, id: string, others: () => readonly Partial<MemberAnswer>[] = () => [], options: Omit<AdminOptions, 'listen'> = {}, why = '',
): Promise<Gateway> {
  const heard: object[] = [];
  const admin = await listenAs({ ...options, listen: { host: HOST, port: 0 } }, {
    probes: probeRoutes, api: { ...routes, ...groupRoutes }, addProbes: () => undefined,
    members: () => [
      { id, kind: 'gateway', admin: null, away: false, self: true },
      ...others().map((one) => ({ id: '', kind: 'gateway' as const, admin: null, away: false, self: false, ...one })),
    ],
    addApi: (app) => {
      serve(app, routes.rebalance, () => ({ gateway: id, ...STILL, why }));
      serve(app, routes.orderDrain, (request) => {
        heard.push({ store: request.params.id, ...orderOf(request) });
        return { store: request.params.id, draining: true, mirrors: 0, stuck: 0, copies_missing: 0, kept: true };
      });
      serve(app, routes.limits, ({ query: { queue } }) => ({ queue, messages: 0, limits: [] }));
      serve(app, routes.queues, ({ query }) => {
        heard.push(query);
        return { rows: [], next_cursor: null };
      });
      serve(app, routes.order, (_request, reply) => refuse(reply, 404, `${id} has none`));
      serve(app, routes.beginOrder, ({ body }, reply) => {
        heard.push(body);
        return refuse(reply, 400, 'as told');
      });
    },
  }, new KeptLog());
  t.after(() => admin.close());
  return { id, port: admin.port, heard };
}

function at({ id, port }: Pick<Gateway, 'id' | 'port'>): Partial<MemberAnswer> {
  return { id, admin: `${HOST}:${String(port)}` };
}

async function get({ port }: Gateway, path: string, token?: string, body?: object, ca?: string): Promise<Answer> {
  const answer = await ask({
    method: body === undefined ? 'GET' : 'POST', url: `${ca === undefined ? 'http' : 'https'}://${HOST}:${String(port)}${path}`,
    access: { token, ca }, timeoutMs: 10_000, bytesMax: 2 ** 24, body: body === undefined ? undefined : JSON.stringify(body),
  });
  return { code: answer.code, ...JSON.parse(answer.body.toString()) as GatheredAnswer };
}

/** Another server, which answers so. */
async function stranger(t: TestContext, answer: string, code = 200): Promise<number> {
  const server = http.createServer((_request, response) => response.writeHead(code).end(answer));
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

const names = ({ answers }: Answer): readonly string[] => answers.map((one) => one.gateway);

describe('a question to the group', () => {
  test('has the answers of all gateways, by name, and of no store', async (t) => {
    const [b, c] = [await gateway(t, 'gw-2', undefined, {}, 'it is full'), await gateway(t, 'gw-3')];
    const a = await gateway(t, 'gw-1', () => [at(c), { id: 'store-a', kind: 'store', admin: `${HOST}:1` }, at(b)]);
    assert.deepEqual(await get(a, '/api/v1/group/rebalance'), {
      code: 200, missing: [],
      answers: [a, b, c].map(({ id }) => ({ gateway: id, body: { gateway: id, ...STILL, why: id === 'gw-2' ? 'it is full' : '' } })),
    });
  });

  test('goes to each as it was asked, with what stands in its path, query and body', async (t) => {
    const b = await gateway(t, 'gw-2');
    const a = await gateway(t, 'gw-1', () => [at(b)]);
    await get(a, '/api/v1/group/stores/a%2Fb%20%C3%A4/drain', undefined, ORDER);
    const drained = { store: 'a/b ä', ...ORDER };
    const limits = await get(a, '/api/v1/group/limits?queue=a%26b%3Dc%20d');
    await get(a, '/api/v1/group/queues?limit=7');
    assert.deepEqual(limits.answers.map(({ body }) => (body as { queue: string }).queue), ['a&b=c d', 'a&b=c d']);
    for (const { heard } of [a, b]) assert.deepEqual(heard, [drained, { limit: 7, cursor: '' }]);
    assert.equal((await get(a, '/api/v1/group/queues?cursor=7')).code, 400, 'a cursor is one gateway\'s');
  });

  test('gives what begins one id at all, or has it from who asks', async (t) => {
    const b = await gateway(t, 'gw-2');
    const a = await gateway(t, 'gw-1', () => [at(b)]);
    const order = { verb: 'hold', selector: { everything: true }, ...ORDER };
    assert.deepEqual(await get(a, '/api/v1/group/orders', undefined, order), { code: 400, error: 'as told' });
    await get(a, '/api/v1/group/orders', undefined, { ...order, id: 'flood-7' });
    await get(a, '/api/v1/orders', undefined, order);
    const ids = [a, b].map(({ heard }) => heard.map((one) => (one as { id?: string }).id));
    assert.match(ids[0]?.[0] ?? '', /^gw-1-[0-9a-f]{12}$/);
    assert.deepEqual(ids, [[ids[0]?.[0], 'flood-7', undefined], [ids[0]?.[0], 'flood-7']]);
  });
});

describe('whoever does not answer a question to the group', () => {
  test('is named with why, within two seconds', async (t) => {
    const mute = await muteServer(t);
    const long = await stranger(t, JSON.stringify({ gateway: 'x'.repeat(3 * 2 ** 20), ...STILL }));
    const odd = await stranger(t, '{"gateway":7}');
    const shop = await stranger(t, '<html>', 404);
    const none = [{ id: 'gw-away', away: true }, { id: 'gw-unknown' }, { id: 'gw-odd-address', admin: 'a b' }];
    const b = await gateway(t, 'gw-b');
    const others = [['gw-mute', mute], ['gw-closed', 1], ['gw-long', long], ['gw-odd', odd], ['gw-shop', shop]] as const;
    const a = await gateway(t, 'gw-a', () => [...none, ...others.map(([id, port]) => at({ id, port })), at(b)]);
    const beganMs = performance.now();
    const answer = await get(a, '/api/v1/group/rebalance');
    assert.ok(performance.now() - beganMs < 4_000);
    assert.deepEqual([answer.code, names(answer)], [200, ['gw-a', 'gw-b']]);
    assert.deepEqual(Object.fromEntries(answer.missing.map(({ gateway: id, why, code }) => [id, [why, code]])), {
      'gw-away': ['no session at the register, no answer: dead, or cut off', 0],
      'gw-unknown': ['nobody that answers knows its admin address', 0],
      'gw-odd-address': ['ERR_INVALID_URL', 0],
      'gw-mute': ['nothing within 2 s', 0], 'gw-closed': ['connection refused', 0],
      'gw-long': ['the answer is too long', 0], 'gw-odd': ['gateway: Invalid input: expected string, received number', 0],
      'gw-shop': ['what answers is no Twinpost, or another release', 404],
    });
  });

  test('is waited for no longer than a second when it has no session at the register, however long the row may take', async (t) => {
    const mute = await muteServer(t);
    const a = await gateway(t, 'gw-1', () => [{ ...at({ id: 'gw-2', port: mute }), away: true }]);
    const beganMs = performance.now();
    const { missing } = await get(a, '/api/v1/group/config/reload', undefined, ORDER);
    assert.ok(performance.now() - beganMs < 2_000);
    assert.deepEqual(missing.map(({ why }) => why).at(-1), 'no session at the register, no answer: dead, or cut off; nothing within 1 s');
  });

  test('is another than who is meant: nothing is done there', async (t) => {
    const c = await gateway(t, 'gw-3');
    const a = await gateway(t, 'gw-1', () => [at({ id: 'gw-2', port: c.port })]);
    const answer = await get(a, DRAIN, undefined, ORDER);
    assert.deepEqual([names(answer), answer.missing], [['gw-1'], [{ gateway: 'gw-2', why: 'this is gw-3', code: 421 }]]);
    assert.deepEqual(c.heard, []);
  });

  test('is all of them, alike: that is the answer', async (t) => {
    const b = await gateway(t, 'gw-2');
    const a = await gateway(t, 'gw-1', () => [at(b)]);
    assert.deepEqual(await get(a, '/api/v1/group/orders/x'), { code: 404, error: 'gw-1 has none' });
    const c = await gateway(t, 'gw-1', () => [at(b), { id: 'gw-3', away: true }]);
    const mixed = await get(c, '/api/v1/group/orders/x');
    assert.deepEqual([mixed.code, mixed.answers, mixed.missing.map(({ code }) => code)], [200, [], [404, 404, 0]]);
  });

  test('is too much: what all say together is bounded, and so are requests at a time', async (t) => {
    const port = await stranger(t, JSON.stringify({ gateway: 'g', ...STILL, more: ' '.repeat(1_500_000) }));
    const many = Array.from({ length: 8 }, (_, i) => at({ id: `gw-${String(i)}`, port }));
    const a = await gateway(t, 'gw-a', () => many);
    const { answers, missing } = await get(a, '/api/v1/group/rebalance');
    assert.deepEqual([answers.length, missing.length], [6, 3]);
    assert.ok(missing.every(({ why }) => why === 'all answers together are too long'));
    const mute = await muteServer(t);
    const c = await gateway(t, 'gw-c', () => [at({ id: 'gw-mute', port: mute })]);
    const codes = await Promise.all([1, 2, 3, 4].map(async () => (await get(c, '/api/v1/group/rebalance')).code));
    assert.deepEqual(codes.sort(), [200, 200, 503, 503]);
    assert.equal((await get(c, '/api/v1/group/rebalance')).code, 200, 'there is room again');
  });
});

describe('a token that asks the group', () => {
  const lines = ['mon read monitoring-token-1', 'ann operate anns-own-token-22'] as const;

  test('has at each gateway the rights that it has there, and its name is who did it', async (t) => {
    const b = await gateway(t, 'gw-2', undefined, { tokensFile: tokensFile(...lines) });
    const c = await gateway(t, 'gw-3', undefined, { tokensFile: tokensFile('mon read monitoring-token-1', 'bob operate anns-own-token-22') });
    const d = await gateway(t, 'gw-4', undefined, { tokensFile: tokensFile('mon read monitoring-token-1') });
    const a = await gateway(t, 'gw-1', () => [at(b), at(c), at(d)], { tokensFile: tokensFile(...lines) });
    const done = await get(a, DRAIN, 'anns-own-token-22', { reason: 'new disk', who: 'mallory' });
    assert.deepEqual([names(done), done.missing], [['gw-1', 'gw-2', 'gw-3'], [{ gateway: 'gw-4', why: 'this token is not known here', code: 401 }]]);
    assert.deepEqual([a, b, c, d].map(({ heard }) => heard.map((one) => (one as { who: string }).who)), [['ann'], ['ann'], ['bob'], []]);
  });

  test('may do nothing by the group that it may not do to the one that it asks', async (t) => {
    const b = await gateway(t, 'gw-2');
    const a = await gateway(t, 'gw-1', () => [at(b)], { tokensFile: tokensFile(...lines) });
    assert.deepEqual(await get(a, DRAIN, 'monitoring-token-1', ORDER), { code: 403, error: 'the token of mon has not the role operate' });
    assert.equal((await get(a, DRAIN, undefined, ORDER)).code, 401);
    assert.equal((await get(a, '/api/v1/group/rebalance')).code, 401);
    assert.deepEqual([...a.heard, ...b.heard], []);
    assert.equal((await get(a, '/api/v1/group/rebalance', 'monitoring-token-1')).answers.length, 2);
  });

  test('goes by TLS where the port has TLS, to whom the CA knows', { skip: tls === undefined && 'no openssl' }, async (t) => {
    if (tls === undefined) return;
    const other = selfSigned('mx.other');
    const known = (caFile: string): Omit<AdminOptions, 'listen'> => ({ tls: { ...tls, caFile } });
    const b = await gateway(t, 'gw-2', undefined, known(tls.certFile));
    const a = await gateway(t, 'gw-1', () => [at(b)], known(tls.certFile));
    const ca = readFileSync(tls.certFile, 'utf8');
    assert.deepEqual(names(await get(a, '/api/v1/group/rebalance', undefined, undefined, ca)), ['gw-1', 'gw-2']);
    const c = await gateway(t, 'gw-1', () => [at(b)], known(other?.certFile ?? ''));
    const { answers, missing } = await get(c, '/api/v1/group/rebalance', undefined, undefined, ca);
    assert.deepEqual([answers.length, missing.map(({ why }) => why)], [1, ['DEPTH_ZERO_SELF_SIGNED_CERT']]);
  });
});
