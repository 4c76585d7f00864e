/** `twinpost config check --json`: one object, whatever is wrong. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { runCli } from '../../../src/cli/main.js';
import { EMBEDDED_UP_YAML } from '../../../src/config/embedded.js';
import { contextFor } from './played-context.js';

interface Told {
  readonly ok: boolean;
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
  readonly configuration: { readonly gateway: { readonly mirror: { readonly partitions: number } } } | null;
}

test('tells all keys in force, or all that is wrong, as one object', async (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'config-check-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const file = path.join(folder, 'up.yaml');
  const checked = async (text: string): Promise<{ code: number; told: Told; lines: number }> => {
    writeFileSync(file, text);
    const printed: string[] = [];
    const code = await runCli(['config', 'check', file, '--json'], contextFor(printed));
    return { code, told: JSON.parse(printed[0] ?? '') as Told, lines: printed.length };
  };
  const good = await checked(EMBEDDED_UP_YAML);
  assert.deepEqual([good.code, good.lines, good.told.ok, good.told.errors], [0, 1, true, []]);
  assert.equal(good.told.configuration?.gateway.mirror.partitions, 16);
  const bad = await checked(`${EMBEDDED_UP_YAML}\nnonsense: 1\n`);
  assert.deepEqual([bad.code, bad.lines, bad.told.ok, bad.told.configuration], [1, 1, false, null]);
  assert.match(bad.told.errors.join(), /nonsense/);
});

test('warns of what a process would listen on and no interface has, by its key', async (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'config-check-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const file = path.join(folder, 'gateway.yaml');
  writeFileSync(file, `gateway:
  id: gw-1
  host: box-1
  hostname: mx.example.com
  secret: 0123456789abcdef
  insecure: true
  state_dir: state
  smtp:
    postmaster: ops@example.com
    listen:
      - 0.0.0.0:2526
      - 192.0.2.55:25
      - localhost:2525
  admin: {listen: 127.0.0.1:8025, probes: '192.0.2.56:8026'}
  routes: [{domain: '*', via: 'smtp://127.0.0.1:26'}]
  stores:
    - {id: s1, host: box-2, paths: [{name: A, address: 127.0.0.1:7401}]}
    - {id: s2, host: box-3, paths: [{name: A, address: 127.0.0.1:7402}]}
`);
  const printed: string[] = [];
  assert.equal(await runCli(['config', 'check', file, '--json'], contextFor(printed)), 0, printed.join());
  const { warnings } = JSON.parse(printed[0] ?? '') as Told;
  const none = (host: string): string => `warning: no interface of this machine has '${host}': a start here would be refused`;
  assert.deepEqual(warnings.filter((line) => line.includes('no interface')), [
    `${file}:12: gateway.smtp.listen[1]: ${none('192.0.2.55')}`, `${file}:14: gateway.admin.probes: ${none('192.0.2.56')}`,
  ]);
});

test('says whose mail a gateway with etcd delivers when they stay dead; and a rescue needs none that is named', async (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'config-check-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const file = path.join(folder, 'gateway.yaml');
  const run = async (verb: readonly string[], more: string): Promise<readonly string[]> => {
    writeFileSync(file, `register: {etcd: ['http://127.0.0.1:2379'], cluster: mail}
gateway:
  id: gw-1
  host: box-1
  hostname: mx.example.com
  secret: 0123456789abcdef
  insecure: true
  state_dir: state
  smtp: {postmaster: ops@example.com, listen: [127.0.0.1:2525]}
  admin: {listen: 127.0.0.1:8025}
  routes: [{domain: '*', via: 'smtp://127.0.0.1:26'}]
${more}`);
    const printed: string[] = [];
    await runCli([...verb, file], contextFor(printed));
    return printed;
  };
  const told = async (more: string): Promise<string | undefined> =>
    (await run(['config', 'check'], more)).find((line) => line.startsWith('# takes over'));
  assert.equal(await told(''), '# takes over from every gateway of cluster mail in the register: group is left out');
  assert.equal(await told('  group: [gw-1, gw-2, gw-3]\n'), '# takes over from gw-2 gw-3: group says so');
  assert.equal(await told('  group: [gw-1]\n'), '# takes over from no gateway: group says so');
  assert.equal(await told('  rescue: off\n'), '# takes over from no gateway: rescue is off');
  assert.match((await run(['rescue', '--config'], '')).join(), /not here/, 'it begins');
  assert.match((await run(['rescue', '--config'], '  group: [gw-1]\n')).join(), /gateway\.group: expected the gateways to rescue, found none besides gw-1/);
});
