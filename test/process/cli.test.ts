/** The command line as a process: help, and bad input as one line and exit code 1, never a stack trace. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { EMBEDDED_UP_YAML } from '../../src/config/embedded.js';
import { ENTRY } from './entry.js';


/** No verb that is refused takes longer, on a busy machine either. */
const RUN_MS_MAX = 30_000;

/** Never made. */
const NO_FOLDER = path.join(mkdtempSync(path.join(os.tmpdir(), 'cli-')), 'mails');

interface Run {
  readonly code: number | null;
  readonly out: string;
  readonly error: string;
}

function twinpost(...args: readonly string[]): Promise<Run> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [ENTRY, ...args], { stdio: ['ignore', 'pipe', 'pipe'], timeout: RUN_MS_MAX, killSignal: 'SIGKILL' });
    let out = '';
    let error = '';
    child.stdout.on('data', (bytes: Buffer) => { out += bytes.toString(); });
    child.stderr.on('data', (bytes: Buffer) => { error += bytes.toString(); });
    child.once('error', reject);
    child.once('close', (code) => { resolve({ code, out, error }); });
  });
}

/** A gateway whose SMTP port, and a store whose only path, is this port. No store of the gateway's ever answers. */
function rolesOn(port: number): string {
  const secret = 'sixteen-characters-and-more';
  return `gateway:
  id: gw-1
  host: box-1
  secret: ${secret}
  smtp: {listen: ['127.0.0.1:${String(port)}']}
  routes: [{domain: '*', via: 'smtp://127.0.0.1:2'}]
  mirror: {replicas: 1}
  stores: [{id: s1, host: box-2, paths: [{name: A, address: '127.0.0.1:1'}]}]
  admin: {listen: '127.0.0.1:0'}
  state_dir: state
store:
  id: s2
  host: box-3
  paths: [{name: A, address: '127.0.0.1:${String(port)}'}]
  gateways: [{id: gw-1, secret: ${secret}}]
  admin: {listen: '127.0.0.1:0'}
`;
}

const VERBS = [['up'], ['gateway'], ['store'], ['sink'], ['send'], ['status'], ['queue', 'list'], ['queue', 'summary'], ['queue', 'show'], ['queue', 'cat'], ['queue', 'find'], ['queue', 'ages'], ['find'], ['logs'], ['store', 'status'], ['store', 'verify'], ['config', 'check'], ['config', 'show'], ['config', 'reload'], ['version']];

describe('twinpost', () => {
  test('has help with an example for every verb', async () => {
    for (const verb of VERBS) {
      const { code, out } = await twinpost(...verb, '--help');
      assert.equal(code, 0, verb.join(' '));
      assert.match(out, new RegExp(`Examples:\\s+twinpost ${verb.join(' ')}`), verb.join(' '));
    }
  });

  test('shows a long example unbroken, so that it can be copied', async () => {
    for (const [verb, command] of [
      ['rescue', 'twinpost rescue --give-up store-a --give-up store-b --reason "fire in hall 2"'],
      ['store drain', 'twinpost store drain store-1 --wait --reason "disk to be changed"'],
      ['host drain', 'twinpost host drain host-1 --reason "new kernel"'],
      ['queue hold', 'twinpost queue hold --client 192.0.2.7 --reason "a flood?"'],
      ['queue delete', 'twinpost queue delete --client 192.0.2.7 --dry-run --reason flood'],
      ['store resync', 'twinpost store resync store-1 --partition gw-1/3 --reason "it differs"'],
    ] as const) {
      const { out } = await twinpost(...verb.split(' '), '--help');
      assert.ok(out.split('\n').some((line) => line.trim() === command), out);
    }
  });

  test('names the line of a state_dir that can not be had, at the check and at the start of each role', async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'cli-state-'));
    const file = path.join(folder, 'roles.yaml');
    writeFileSync(path.join(folder, 'taken'), '');
    const roles = rolesOn(1).replace('state_dir: state', 'state_dir: taken');
    writeFileSync(file, `${roles}  state_dir: taken/deeper\n`);
    const [ofGateway, ofStore] = [roles.split('\n').findIndex((line) => line.includes('state_dir')) + 1, roles.split('\n').length];
    for (const [verb, line, key] of [
      [['gateway', '--config', file], ofGateway, 'gateway.state_dir'], [['store', '--config', file], ofStore, 'store.state_dir'],
      [['config', 'check', file], ofGateway, 'gateway.state_dir'], [['config', 'check', file], ofStore, 'store.state_dir'],
    ] as const) {
      const { code, error } = await twinpost(...verb);
      assert.equal(code, 1, error);
      assert.ok(error.split('\n').some((one) => one.startsWith(`${file}:${String(line)}: ${key}: expected a folder`)), error);
    }
    const given = await twinpost('gateway', '--config', file, '--state-dir', path.join(folder, 'taken'));
    assert.match(given.error, /^twinpost: --state-dir: expected a folder/);
  });

  const bad: readonly (readonly [readonly string[], RegExp, number])[] = [
    [[], /^twinpost: which verb\? /, 2],
    [['queue', 'lst', '--json'], /^twinpost: there is no verb 'queue lst'\. Did you mean list\?$/, 2],
    [['telegraph'], /^twinpost: there is no verb 'telegraph'; twinpost --help lists them$/, 2],
    [['sned'], /^twinpost: there is no verb 'sned'\. Did you mean send\?$/, 2],
    [['queue'], /^twinpost: queue what\? /, 2],
    [['host'], /^twinpost: host what\? /, 2],
    [['host', 'drain', 'host-1'], /^twinpost: --reason is missing; twinpost host drain host-1 --help/, 2],
    [['queue', 'delete', '00000G0008N', '--reason', 'x'], /^twinpost: Unknown argument: 00000G0008N: say --id 00000G0008N$/, 2],
    [['mailq'], /^twinpost: there is no verb 'mailq'; here it is twinpost queue list$/, 2],
    [['send', '--cuont', '3'], /^twinpost: Unknown argument: cuont\. Did you mean --count\? twinpost send --help shows what there is$/, 2],
    [['send', '--count', '3', '--count', '4'], /^twinpost: --count is given more than once$/, 2],
    [['send', '--count', '0'], /^twinpost: --count is a whole number from 1 to .*, found 0$/, 2],
    [['send', '--mix', '1XB:3'], /^twinpost: --mix: /, 2],
    [['send', '--to', 'nowhere'], /^twinpost: --to: 'nowhere' is no address/, 2],
    [['send', '--eml', '/nowhere.eml'], /^twinpost: --eml: '\/nowhere\.eml' can't be read: ENOENT$/, 1],
    [['sink', '--defer-rate', '2'], /^twinpost: --defer-rate is a share from 0 to 1, found 2$/, 2],
    [['sink', '--latency', 'soon'], /^twinpost: --latency: /, 2],
    [['gateway'], /^twinpost: gateway needs --config FILE; configs\/gateway\.yaml is an example$/, 2],
    [['gateway', '--config', '/nowhere.yaml'], /^\/nowhere\.yaml:1: file: expected a file that can be read, found ENOENT$/, 1],
    [['status', '--gateway', 'http://127.0.0.1:1'], /^twinpost: no answer from http:\/\/127\.0\.0\.1:1: connection refused; is it running\? --from ADDRESS names another gateway or store$/, 1],
    [['status', '--from', ':::'], /^twinpost: ':::' is no admin address/, 2],
    [['status', '--top', '0'], /^twinpost: --top is a whole number from 1 to 1000, found 0$/, 2],
    [['up', '--state-dir', '/proc/none/state'], /^twinpost: --state-dir: '\/proc\/none\/state' can't be made: E[A-Z]+$/, 1],
    [['sink', '--listen', '127.0.0.1:0', '--maildir', '/proc/none/mail'], /^twinpost: sink: could not start: E[A-Z]+: .*'\/proc\/none'$/, 1],
    [['store', 'export', '/proc/none/mails', '--everything'], /^twinpost: \/proc\/none\/mails can't be made, or is no folder: E[A-Z]+$/, 1],
    [['queue', 'export', '/dev/null', '--everything'], /^twinpost: \/dev\/null can't be made, or is no folder: ENOTDIR$/, 1],
    [['store', 'export', NO_FOLDER, '--everything', '--spill', os.tmpdir()], /^twinpost: \S+ is no file; --spill names a spill file: /, 1],
    [['store', 'export', NO_FOLDER, '--everything', '--spill', ENTRY], /^twinpost: \S+ is no spill file, or of another release \(\w+( \w+)*\): a store that stops leaves one /, 1],
    [['store', 'export', NO_FOLDER, '--everything', '--spill', '/dev/null'], /^twinpost: \/dev\/null is no file; /, 1],
    [['store', 'export', NO_FOLDER, '--everything', '--spill', '/nowhere.spill'], /^twinpost: \/nowhere\.spill can't be read: ENOENT$/, 1],
    [['store', 'resync', 's1', '--partition', 'gw-1/3'], /^twinpost: --reason is missing; twinpost store .* --help shows what there is$/, 2],
    [['store', 'drain', 's1'], /^twinpost: --reason is missing; twinpost store .* --help shows what there is$/, 2],
    [['rescue'], /^twinpost: rescue needs --config FILE; configs\/gateway\.yaml is an example$/, 2],
    [['store', 'drain', 's1', '--reason', ' '], /^twinpost: store drain: say the --reason, which is logged$/, 2],
    [['queue', 'show', '../x'], /^twinpost: queue show: '\.\.\/x' is no queue id; twinpost queue list shows them$/, 2],
    [['queue', 'find', '--limit', '1001', '--sender', 'x'], /^twinpost: --limit is a whole number from 1 to 1000, found 1001$/, 2],
    [['queue', 'ages', '--by', 'age'], /^twinpost: Invalid values:/, 2],
    [['logs', '/nowhere.log'], /^twinpost: \/nowhere\.log can't be read: ENOENT$/, 1],
    [['logs', '--follow', '-'], /^twinpost: logs: \/dev\/stdin can't be followed$/, 2],
    [['queue', 'summary', '--from', '127.0.0.1:1'], /^twinpost: no answer from http:\/\/127\.0\.0\.1:1: connection refused/, 1],
  ];
  for (const [args, line, wanted] of bad) {
    test(`refuses "${args.join(' ')}" in one line`, async () => {
      const { code, out, error } = await twinpost(...args);
      assert.equal(code, wanted);
      assert.equal(out, '');
      assert.match(error.replace(/\n$/, ''), line);
      assert.equal(error.split('\n').length, 2, error);
      assert.ok(!existsSync(NO_FOLDER), 'nothing is made for what is refused');
    });
  }

  test('checks a configuration: the values in force, or one line an error', async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'cli-'));
    const up = path.join(folder, 'up.yaml');
    writeFileSync(up, EMBEDDED_UP_YAML);
    const good = await twinpost('config', 'check', up);
    assert.equal(good.code, 0);
    assert.match(good.out, /message_size_limit: 25MiB/);
    assert.match(good.out, /limit: \d+(GiB|MiB|KiB|B)/, 'memory in force, though the file names none');
    const file = path.join(folder, 'bad.yaml');
    writeFileSync(file, 'sink: {listen: here}\ngatway: {}\n');
    const bad = await twinpost('config', 'check', file);
    assert.equal(bad.code, 1);
    assert.deepEqual(bad.error.trimEnd().split('\n').map((line) => line.slice(file.length, file.length + 3)), [':1:', ':2:']);
  });

  test('says in one line that a port is in use', async () => {
    const server = net.createServer();
    await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', () => { resolve(); }); });
    try {
      const { port } = server.address() as net.AddressInfo;
      const file = path.join(mkdtempSync(path.join(os.tmpdir(), 'cli-')), 'roles.yaml');
      writeFileSync(file, rolesOn(port));
      for (const [role, ...args] of [['sink', '--listen', `127.0.0.1:${String(port)}`], ['store', '--config', file], ['gateway', '--config', file]]) {
        const { code, error } = await twinpost(role ?? '', ...args);
        assert.equal(code, 1, role);
        assert.equal(error, `twinpost: ${role ?? ''}: port 127.0.0.1:${String(port)} is in use; stop what listens there, or change the configuration\n`);
      }
    } finally {
      server.close();
    }
  });
});
