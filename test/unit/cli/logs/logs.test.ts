/** `twinpost logs` over files: several as one, compressed, followed through rotation, and what can't be read. */
import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { runCli } from '../../../../src/cli/main.js';
import { until } from '../../../process/cluster.js';
import { contextFor } from '../played-context.js';

function folder(t: TestContext): string {
  const made = mkdtempSync(join(tmpdir(), 'logs-'));
  t.after(() => { rmSync(made, { recursive: true, force: true }); });
  return made;
}

/** At this second of a minute. */
function line(second: number, gateway: string, event = 'delivered', more: object = {}): string {
  return `${JSON.stringify({ level: 'info', time: `2026-01-31T10:00:${String(second).padStart(2, '0')}.000Z`, event, gateway, ...more })}\n`;
}

async function logs(...args: readonly string[]): Promise<{ readonly code: number; readonly lines: readonly string[]; readonly errors: readonly string[] }> {
  const printed: string[] = [];
  const code = await runCli(['logs', ...args], contextFor(printed));
  return { code, lines: printed.filter((one) => !one.startsWith('! ')).join('').split('\n').filter((one) => one !== ''), errors: printed.filter((one) => one.startsWith('! ')) };
}

const seconds = (lines: readonly string[]): readonly string[] => lines.map((one) => `${one.slice(17, 19)} ${one.split('  ')[1] ?? ''}`);

describe('logs of several gateways', () => {
  test('are one in the order of their times, compressed ones too, however many lines', async (t) => {
    const made = folder(t);
    const [a, b, old] = [join(made, 'a.log'), join(made, 'b.log'), join(made, 'a.log.1.gz')];
    // Two members, as `cat x.gz y.gz` makes them.
    writeFileSync(old, Buffer.concat([gzipSync(line(1, 'gw-1')), gzipSync(line(3, 'gw-1'))]));
    writeFileSync(a, line(5, 'gw-1') + line(7, 'gw-1') + line(7, 'gw-1'));
    writeFileSync(b, `${line(2, 'gw-2')}${line(6, 'gw-2')}Error: no time\n${line(8, 'gw-2')}`);
    const { code, lines, errors } = await logs(a, b, old);
    assert.deepEqual([code, errors], [0, []]);
    assert.deepEqual(seconds(lines.filter((one) => !one.startsWith('Error'))), ['01 gw-1', '02 gw-2', '03 gw-1', '05 gw-1', '06 gw-2', '07 gw-1', '07 gw-1', '08 gw-2']);
    assert.equal(lines.indexOf('Error: no time'), 5, 'it stands behind its line');
    writeFileSync(a, Array.from({ length: 30_000 }, (_, i) => line(i % 60, 'gw-1')).join(''));
    assert.equal((await logs(a)).lines.length, 30_000);
  });

  test('follow a message, and give the lines as they are with --json; 1 when none is about it', async (t) => {
    const made = folder(t);
    const [a, b] = [join(made, 'a.log'), join(made, 'b.log')];
    const accepted = line(1, 'gw-1', 'received', { queue_id: '000H3ZK9Q4D', message_id: '<m@x>' });
    const sent = line(9, 'gw-2', 'delivered', { queue_id: '000H3ZK9Q4D' });
    writeFileSync(a, accepted + line(2, 'gw-1', 'received', { queue_id: '000H3ZK9Q4E' }));
    writeFileSync(b, sent);
    for (const choice of [['--id', '000h3zk9q4d'], ['--message-id', 'm@x']]) {
      assert.deepEqual((await logs(b, a, '--json', ...choice)).lines, [accepted.trim(), sent.trim()], choice.join(' '));
    }
    writeFileSync(b, sent.replace('"event"', '"to":"ann@bücher.example","event"'));
    assert.equal((await logs(a, b, '--json', '--to', 'ann@xn--bcher-kva.example')).lines.length, 1, 'however the domain is spelled');
    const none = await logs(a, b, '--id', '000H3ZK9Q4Z');
    assert.deepEqual([none.code, none.lines, none.errors], [1, [], ['! twinpost: no line is about that']]);
  });

  test('are read as far as they can be; what can not be is told, and the rest is shown', async (t) => {
    const made = folder(t);
    const [a, torn] = [join(made, 'a.log'), join(made, 'torn.gz')];
    writeFileSync(a, line(1, 'gw-1'));
    writeFileSync(torn, gzipSync(Array.from({ length: 5000 }, (_, i) => line(i % 60, `gw-${String(Math.sin(i))}`)).join('')).subarray(0, 20_000));
    const { code, lines, errors } = await logs(a, torn, join(made, 'none.log'));
    assert.equal(code, 1);
    assert.ok(lines.length >= 1);
    assert.equal(errors.length, 2, errors.join());
    assert.match(errors.join('\n'), /torn\.gz can't be read to its end: /);
    assert.match(errors.join('\n'), /none\.log can't be read: ENOENT/);
  });

  test('are not asked for with odd words', async () => {
    for (const [args, why] of [[['--id', 'x', 'f'], /logs: 'x' is no queue id/], [['-f', 'a.gz'], /a\.gz can't be followed/], [['-f', '-'], /stdin can't be followed/], [[], /of what\?/]] as const) {
      const { code, errors } = await logs(...args);
      assert.equal(code, 2);
      assert.match(errors.join(), why);
    }
  });
});

describe('a log that is followed', () => {
  test('is shown from its last lines on, whole ones; with a choice from its start; one that comes later from its start', async (t) => {
    const made = folder(t);
    const [file, later] = [join(made, 'mail.log'), join(made, 'later.log')];
    const many = Array.from({ length: 200 }, (_, i) => line(i % 60, 'gw-1', 'delivered', { queue_id: `${String(i).padStart(10, '0')}A` }));
    writeFileSync(file, many.join(''));
    const followed = async (args: readonly string[], holds: (lines: readonly string[]) => boolean): Promise<void> => {
      const stop = new AbortController();
      const printed: string[] = [];
      const running = runCli(['logs', '-f', '--json', ...args], { ...contextFor(printed), stopSignal: stop.signal });
      await until('it is shown', () => holds(printed.join('').split('\n').filter((one) => one !== '')), 10_000);
      stop.abort();
      assert.equal(await running, 0);
    };
    await followed([file], (lines) => lines.length > 10 && lines.length < 50 && lines.every((one) => many.includes(`${one}\n`)) && lines.at(-1) === many.at(-1)?.trim());
    await followed(['--id', '0000000003A', file], (lines) => lines.length === 1);
    setTimeout(() => { writeFileSync(later, many.join('')); }, 300);
    await followed([later], (lines) => lines.length === 200);
  });

  test('goes on with what is appended, with the new file when it is renamed, and from the start when it is cut', async (t) => {
    const file = join(folder(t), 'mail.log');
    writeFileSync(file, line(1, 'gw-1') + line(2, 'gw-1'));
    const stop = new AbortController();
    const printed: string[] = [];
    const context = contextFor(printed);
    const running = runCli(['logs', '-f', file], { ...context, stopSignal: stop.signal });
    const shows = (...wanted: readonly string[]): Promise<void> =>
      until(wanted.join(), () => seconds(printed.join('').split('\n').filter((one) => one !== '')).join() === wanted.map((one) => `${one} gw-1`).join(), 10_000);
    await shows('01', '02');
    appendFileSync(file, line(3, 'gw-1').slice(0, 20));
    appendFileSync(file, line(3, 'gw-1').slice(20));
    await shows('01', '02', '03');
    renameSync(file, `${file}.1`);
    appendFileSync(`${file}.1`, line(4, 'gw-1'));
    await shows('01', '02', '03', '04');
    writeFileSync(file, line(5, 'gw-1') + line(6, 'gw-1'));
    await shows('01', '02', '03', '04', '05', '06');
    truncateSync(file);
    appendFileSync(file, line(7, 'gw-1'));
    await shows('01', '02', '03', '04', '05', '06', '07');
    stop.abort();
    assert.equal(await running, 0);
  });
});
