/** Next hops that answer as slowly as they may: one byte a second of a reply, or each reply at its last moment. What they hold, and how long. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DEFAULT_TIMEOUTS, STATE_NAME, State } from '../../src/gateway/outbound/pure/session-states.js';
import { SessionWorld, mail } from '../unit/gateway/outbound/pure/session-world.js';

const TLS = { level: 'encrypt', isFirst: false, terms: { serverName: 'mx.example.net', mustVerify: false, caFile: undefined } } as const;
/** A session lives by ticks of this. */
const TICK_MS = 1_000;
/** With as many recipients as a message may have. */
const HELD_MS_MAX = 6.1 * 3_600_000;

const states: readonly (readonly [State, (world: SessionWorld) => void])[] = [
  [State.GREETING, (w) => { w.session.onOpen(); }],
  [State.HELLO, (w) => { w.session.onOpen(); w.say('220 x'); }],
  [State.HELO_ONLY, (w) => { w.session.onOpen(); w.say('220 x', '500 what'); }],
  [State.MAIL, (w) => { w.ready().begin(mail(['b@d'])); }],
  [State.RCPT, (w) => { w.ready().begin(mail(['b@d'])).say('250 ok'); }],
  [State.DATA, (w) => { w.ready().begin(mail(['b@d'])).say('250 ok', '250 ok'); }],
  [State.FINAL, (w) => { w.ready().begin(mail(['b@d'])).say('250 ok', '250 ok', '354 go'); }],
  [State.RESET, (w) => { w.ready().begin(mail(['b@d'])).say('550 no'); }],
  [State.QUITTING, (w) => { w.ready(); w.session.quit(); }],
];

/** Says what `each` says after so many ticks until the connection is ended; milliseconds. */
function held(world: SessionWorld, everyMs: number, each: (said: number) => string): number {
  for (let said = 0; ; said++) {
    const nowMs = (said + 1) * everyMs;
    world.session.tick(nowMs);
    if (world.connection.isDestroyed || nowMs > 100 * 3_600_000) return nowMs;
    world.session.onData(Buffer.from(each(said), 'latin1'));
  }
}

describe('a next hop that drips', () => {
  for (const [state, reach] of states) {
    test(`a reply byte by byte in ${STATE_NAME[state] ?? ''} has no more time for it than for one that comes whole`, () => {
      const world = new SessionWorld();
      reach(world);
      assert.equal(world.session.state, state);
      const line = '250-x\r\n';
      const ms = held(world, TICK_MS, (said) => line.charAt(said % line.length));
      assert.ok(ms <= (DEFAULT_TIMEOUTS[state] ?? 0) + TICK_MS, `${String(ms)} ms`);
    });
  }

  test('the go-ahead of STARTTLS likewise', () => {
    const world = new SessionWorld({ tls: TLS }).ready('STARTTLS');
    assert.equal(world.session.state, State.STARTTLS);
    assert.ok(held(world, TICK_MS, () => '2') <= (DEFAULT_TIMEOUTS[State.STARTTLS] ?? 0) + TICK_MS);
  });

  for (const offers of [['PIPELINING'], []]) {
    test(`each of a thousand replies at its last moment does not hold a connection for a day (${offers.join('') || 'one by one'})`, () => {
      const many = Array.from({ length: 1000 }, (_none, i) => `b${String(i)}@d`);
      const world = new SessionWorld().ready(...offers).begin(mail(many));
      const ms = held(world, (DEFAULT_TIMEOUTS[State.RCPT] ?? 0) - TICK_MS, () => '250 ok\r\n');
      assert.ok(ms <= HELD_MS_MAX, `${String(ms / 3_600_000)} h`);
      assert.match(world.log.join(), /^settled (deferred 0 4\.4\.2(, )?){1000},closed$/);
    });
  }
});
