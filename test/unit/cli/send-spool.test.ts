import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import type { CliContext } from '../../../src/cli/context.js';
import { CliError } from '../../../src/cli/context.js';
import { ExportFolder, safeName } from '../../../src/cli/export/folder.js';
import type { AliasChoice } from '../../../src/cli/export/spool-plan.js';
import { sendSpool } from '../../../src/cli/send-spool.js';

interface Bench {
  readonly folder: string;
  readonly said: string[];
  readonly errors: string[];
  readonly lines: string[];
  send(aliases?: AliasChoice): Promise<number>;
  put(name: string, json: unknown, eml?: string): void;
  json(name: string): { recipients: { address: string; state: string }[] };
}

/** A server that knows nobody called "no", and has no time for who is called "later" the first time. */
async function bench(t: TestContext): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-spool-'));
  const lines: string[] = [];
  let isLater = true;
  const server = createServer((socket) => {
    socket.write('220 ready\r\n');
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      const line = data.toString('latin1');
      lines.push(line);
      if (line.startsWith('EHLO')) socket.write('250-here\r\n250 DSN\r\n');
      else if (line.includes('<later@') && isLater) {
        isLater = false;
        socket.write('450 4.2.1 come later\r\n');
      } else socket.write(line.startsWith('DATA') ? '354 go on\r\n' : line.includes('<no@') ? '550 5.1.1 unknown\r\n' : '250 ok\r\n');
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => {
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const said: string[] = [];
  const errors: string[] = [];
  const context = { terminal: { print: (line: string) => said.push(line), error: (line: string) => errors.push(line) }, stopSignal: new AbortController().signal };
  const { port } = server.address() as AddressInfo;
  return {
    folder, said, errors, lines,
    send: (aliases) => sendSpool({ folder, aliases, to: { host: '127.0.0.1', port }, timeoutMs: 5_000, json: true }, context as unknown as CliContext),
    put: (name, json, eml = 'Subject: x\r\n\r\n') => {
      writeFileSync(join(folder, `${name}.json`), typeof json === 'string' ? json : JSON.stringify(json));
      writeFileSync(join(folder, `${name}.eml`), eml);
    },
    json: (name) => JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')) as ReturnType<Bench['json']>,
  };
}

const to = (...addresses: string[]): object[] => addresses.map((address) => ({ address, state: 'waiting' }));

describe('send --spool', () => {
  test('marks what was taken, recipient by recipient, and sends only the rest again', async (t) => {
    const { put, send, json, lines, folder, errors, said } = await bench(t);
    put('1', { sender: 'a@b', recipients: to('yes@d') });
    put('2', { sender: 'a@b', recipients: to('no@d', 'yes@d'), kept: 'as it was' });
    put('3', { sender: 'a@b', recipients: [{ address: 'over@d', state: 'delivered' }] });
    assert.equal(await send(), 1);
    assert.ok(existsSync(join(folder, '1.sent')) && !existsSync(join(folder, '1.json')));
    assert.deepEqual(json('2'), { sender: 'a@b', recipients: [{ address: 'no@d', state: 'waiting' }, { address: 'yes@d', state: 'sent', sent_to: 'yes@d' }], kept: 'as it was', flags: [] });
    assert.deepEqual(JSON.parse(said[0] ?? ''), { sent: 1, failed: 1, nothing_to_send: 1 });
    assert.deepEqual(errors.length, 1);
    assert.match(errors[0] ?? '', /2\.json: not sent: <no@d>: 550 5\.1\.1 unknown/);
    lines.length = 0;
    assert.equal(await send(), 1);
    assert.deepEqual(lines.filter((line) => line.startsWith('RCPT')), ['RCPT TO:<no@d>\r\n']);
  });

  test('sends nothing again though nothing can be written, as on a full disk; else it says whom not', async (t) => {
    const { put, send, lines, folder, errors } = await bench(t);
    put('1', { sender: 'a@b', recipients: to('yes@d') });
    put('2', { sender: 'a@b', recipients: to('no@d', 'and@d') });
    for (const name of ['1', '2']) mkdirSync(join(folder, `${name}.json.tmp`));
    const why = /2\.json: the server has taken it for <and@d>, and the file can't say so \(EISDIR\): each run would send/;
    await assert.rejects(send(), (error) => error instanceof CliError && why.test(error.message));
    assert.deepEqual([existsSync(join(folder, '1.sent')), errors], [true, []]);
    rmSync(join(folder, '2.json'));
    lines.length = 0;
    assert.equal(await send(), 0);
    assert.deepEqual(lines, []);
  });

  test('sends nothing of a file that is no envelope, or whose addresses would be commands', async (t) => {
    const { put, send, lines, errors } = await bench(t);
    put('1', 'no json at all');
    put('2', { sender: 'a@b>\r\nRSET', recipients: to('yes@d') });
    put('3', { sender: 'a@b', recipients: to('yes@d\nDATA') });
    put('4', { sender: 'a@b', recipients: [{ address: 'yes@d', state: 'waiting', orcpt: 'rfc822;x NOTIFY=NEVER' }] });
    put('5', { sender: '', recipients: [], unreadable: { head_base64: '', note_base64: '' } });
    assert.equal(await send(), 1);
    assert.equal(errors.length, 5);
    assert.deepEqual(lines, []);
  });
});

/** A list of three, of whom two are left, in the files of two queues; one is behind an alias by himself. */
function putList({ put }: Bench): void {
  const orcpt = 'rfc822;team@ours.example';
  const member = (address: string, notify: string, state = 'waiting'): object =>
    ({ address, state, notify: notify === 'SUCCESS,FAILURE' ? 'FAILURE' : notify, orcpt, alias: { address: 'team@ours.example', notify } });
  put('1', { queue_id: 'A', sender: 'a@b', recipients: [...to('yes@d'), member('x@hidden', 'FAILURE'), member('y@hidden', 'FAILURE', 'delivered')] });
  put('2', { queue_id: 'A', sender: 'a@b', recipients: [member('z@else', 'SUCCESS,FAILURE')] });
  put('3', { queue_id: 'B', sender: 'a@b', recipients: [{ address: 'w@else', state: 'waiting', alias: {} }] });
}

function rcptsOf({ lines }: Bench): string[] {
  return lines.filter((line) => line.startsWith('RCPT')).map((line) => line.slice('RCPT TO:'.length).trim());
}

describe('mail of a spool that an alias led on', () => {
  test('goes nowhere until somebody says where: others of the message do', async (t) => {
    const world = await bench(t);
    putList(world);
    assert.equal(await world.send(), 1);
    assert.deepEqual(rcptsOf(world), ['<yes@d>']);
    assert.equal(world.errors.length, 3);
    assert.match(world.errors[0] ?? '', /1\.json: not sent: <x@hidden> by an alias: --aliases original .*--aliases members /);
    assert.deepEqual(world.json('1').recipients.map(({ state }) => state), ['sent', 'waiting', 'delivered']);
  });

  test('goes to the address that was written to, once for all files of the message, with what was asked of it', async (t) => {
    const world = await bench(t);
    putList(world);
    assert.equal(await world.send('original'), 1);
    assert.deepEqual(rcptsOf(world), ['<yes@d>', '<team@ours.example> NOTIFY=FAILURE,SUCCESS ORCPT=rfc822;team@ours.example']);
    assert.deepEqual(readdirSync(world.folder).filter((name) => !name.endsWith('.eml')), ['1.sent', '2.sent', '3.json']);
    assert.match(world.errors.join('\n'), /^[^\n]*3\.json: not sent: <w@else> by an alias whose address is not known: --aliases members [^\n]*$/);
  });

  test('goes once to the address that was written to, also when another file of it was refused, and in later runs', async (t) => {
    const world = await bench(t);
    const member = (address: string, state = 'waiting'): object => ({ address, state, alias: { address: 'later@ours' } });
    const put = (name: string, ...recipients: readonly object[]): void => { world.put(name, { queue_id: 'A', sender: 'a@b', recipients }); };
    put('1', member('x@hidden'));
    put('2', member('y@hidden'));
    put('3', member('z@hidden'), ...to('no@d'));
    assert.equal(await world.send('original'), 1);
    assert.deepEqual(rcptsOf(world), ['<later@ours>', '<later@ours>', '<no@d>']);
    assert.deepEqual(readdirSync(world.folder).filter((name) => !name.endsWith('.eml')), ['1.sent', '2.sent', '3.json']);
    assert.deepEqual(JSON.parse(world.said[0] ?? ''), { sent: 2, failed: 1, nothing_to_send: 0 });
    // Somebody brings another file of it: what is sent tells, then 3.json alone.
    const third = world.json('3');
    rmSync(join(world.folder, '3.json'));
    world.lines.length = 0;
    put('4', member('w@hidden'));
    assert.equal(await world.send('original'), 0);
    assert.deepEqual(rcptsOf(world), []);
    for (const name of ['1', '2', '4']) rmSync(join(world.folder, `${name}.sent`));
    world.put('3', third);
    put('5', member('v@hidden'));
    assert.equal(await world.send('original'), 1);
    assert.deepEqual(rcptsOf(world), ['<no@d>']);
  });

  test('goes to the address that was written to, whoever behind it was sent to by himself', async (t) => {
    const world = await bench(t);
    putList(world);
    rmSync(join(world.folder, '2.json'));
    await world.send('members');
    world.lines.length = 0;
    putList(world);
    rmSync(join(world.folder, '1.json'));
    await world.send('original');
    assert.deepEqual(rcptsOf(world), ['<team@ours.example> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;team@ours.example']);
  });

  test('goes to what the alias led to if that is wanted, and asks for no success of that', async (t) => {
    const world = await bench(t);
    putList(world);
    assert.equal(await world.send('members'), 0);
    const orcpt = ' NOTIFY=FAILURE ORCPT=rfc822;team@ours.example';
    assert.deepEqual(rcptsOf(world), ['<yes@d>', `<x@hidden>${orcpt}`, `<z@else>${orcpt}`, '<w@else>']);
  });

  test('that a list keeps itself goes to nobody but by the address that was written to: its members would get it again', async (t) => {
    const world = await bench(t);
    const kept = { address: 'team@ours.example', state: 'waiting', alias: { address: 'team@ours.example', keeps: true } };
    world.put('1', { queue_id: 'A', sender: 'a@b', recipients: [kept, { address: 'x@hidden', state: 'waiting', alias: { address: 'team@ours.example' } }] });
    assert.equal(await world.send('members'), 1);
    assert.deepEqual(rcptsOf(world), ['<x@hidden>']);
    assert.match(world.errors.join('\n'), /1\.json: not sent: <team@ours\.example> is a list that keeps a copy, and leads to its members again: --aliases original /);
    world.lines.length = 0;
    assert.equal(await world.send(), 1);
    assert.deepEqual(rcptsOf(world), []);
    assert.equal(await world.send('original'), 0);
    assert.deepEqual(rcptsOf(world), ['<team@ours.example>']);
  });

  test('whose report is owed stays, and every run names it', async (t) => {
    const { put, send, json, errors, said, lines } = await bench(t);
    put('1', { sender: 'a@b', recipients: [...to('yes@d'), { address: 'gone@d', state: 'failed, report owed' }, { address: 'in@d', state: 'delivered, report owed' }] });
    for (const sent of [1, 0]) {
      errors.length = 0;
      said.length = 0;
      lines.length = 0;
      assert.equal(await send(), 1);
      assert.match(errors.join('\n'), /1\.json: not sent: a report is owed of <gone@d> \(failed\), <in@d> \(delivered\), and not sent: tell the sender/);
      assert.deepEqual(JSON.parse(said[0] ?? ''), { sent: 0, failed: 1, nothing_to_send: 0 });
      assert.equal(lines.filter((line) => line.startsWith('RCPT')).length, sent);
      assert.equal(json('1').recipients[0]?.state, 'sent');
    }
  });
});

describe('the folder of an export', () => {
  test('keeps any name inside, apart from others, and short', () => {
    for (const name of ['..', '.', '../../etc', 'a/b', 'ä.example', '%2e', 'x'.repeat(300), `${'x'.repeat(299)}y`]) assert.match(safeName(name), /^(?!\.)[A-Za-z0-9.%-]{1,140}$/);
    assert.equal(safeName('mx-1.example.com'), 'mx-1.example.com');
    assert.equal(new Set(['a/b', 'a%2fb', 'a%2Fb', 'x'.repeat(300), `${'x'.repeat(299)}y`].map(safeName)).size, 5);
  });

  test('refuses a folder that has files, unless forced', (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'twinpost-folder-'));
    t.after(() => { rmSync(folder, { recursive: true, force: true }); });
    mkdirSync(join(folder, 'there'));
    assert.throws(() => new ExportFolder(folder, false, () => true), /not empty/);
    assert.equal(new ExportFolder(folder, true, () => true).messages, 0);
    assert.deepEqual(readdirSync(folder), ['there']);
  });
});
