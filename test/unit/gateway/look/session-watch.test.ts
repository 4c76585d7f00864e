/** Who follows SMTP sessions is told of those he asked for, and of no more lines than he may have. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TraceLine } from '../../../../src/admin-api/trace.js';
import { SessionWatch } from '../../../../src/gateway/look/session-watch.js';

const newWatch = (): SessionWatch => new SessionWatch({ nowMs: () => 0, wallMs: () => 7 });
const watcherOf = (peer: string, lines: TraceLine[], room = Infinity) => ({
  wants: (asked: string) => asked === peer,
  write: (line: TraceLine) => lines.length < room && lines.push(line) > 0,
});

describe('who follows SMTP sessions', () => {
  test('is told of those that he asked for, a reply line by line, while he follows', () => {
    const watch = newWatch();
    const lines: TraceLine[] = [];
    const watcher = watcherOf('192.0.2.1', lines);
    assert.equal(watch.isOn, false);
    assert.equal(watch.add(watcher), true);
    assert.equal(watch.isOn, true);
    watch.said('192.0.2.1', 25, 'server', '250-one\r\n250 two\r\n');
    watch.said('192.0.2.2', 25, 'server', '250 not his');
    watch.remove(watcher);
    watch.said('192.0.2.1', 25, 'client', 'QUIT');
    assert.equal(watch.isOn, false);
    assert.deepEqual(lines, ['250-one', '250 two'].map((text) => ({ at: 7, peer: '192.0.2.1', port: 25, who: 'server', text })));
  });

  test('has 500 lines a second, and learns how many more there were', () => {
    const watch = newWatch();
    const lines: TraceLine[] = [];
    const watcher = watcherOf('a', lines);
    watch.add(watcher);
    for (let i = 0; i < 620; i++) watch.said('a', 0, 'client', 'x'.repeat(5_000));
    assert.deepEqual([lines.length, lines[0]?.text.length, watch.nextSecond(watcher), watch.nextSecond(watcher)], [500, 1_000, 120, 0]);
    watch.said('a', 0, 'client', 'RSET');
    assert.equal(lines.length, 501);
  });

  test('and reads too slowly misses lines, which are counted', () => {
    const watch = newWatch();
    const lines: TraceLine[] = [];
    const watcher = watcherOf('a', lines, 3);
    watch.add(watcher);
    for (let i = 0; i < 10; i++) watch.said('a', 0, 'client', 'NOOP');
    assert.deepEqual([lines.length, watch.nextSecond(watcher)], [3, 7]);
  });

  test('is one of eight', () => {
    const watch = newWatch();
    const all = Array.from({ length: 9 }, () => watcherOf('a', []));
    assert.deepEqual(all.map((watcher) => watch.add(watcher)), [...Array.from({ length: 8 }, () => true), false]);
  });
});
