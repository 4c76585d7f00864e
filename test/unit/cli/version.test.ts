/** The version is told in both ways in which people ask for it; what is not understood is answered with what was meant. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCli } from '../../../src/cli/main.js';
import { contextFor } from './played-context.js';

test('twinpost version and twinpost --version say the same', async () => {
  const said: string[][] = [];
  for (const word of ['version', '--version']) {
    const lines: string[] = [];
    assert.equal(await runCli([word], { ...contextFor(lines), version: '9.8.7' }), 0);
    said.push(lines);
  }
  assert.match(said[0]?.join() ?? '', /^twinpost 9\.8\.7, protocol \d+, node v/);
  assert.deepEqual(said[1], said[0]);
});

test('twinpost --version with more behind it is not understood', async () => {
  const lines: string[] = [];
  assert.equal(await runCli(['--version', '--nonsense'], contextFor(lines)), 2);
  assert.match(lines.join(), /^! twinpost: Unknown argument: nonsense/);
});

test('an option that is misspelt is answered with the one that was meant, of that verb', async () => {
  for (const [args, wanted] of [
    [['queue', 'flush', '--reason', 'x', '--domian', 'x'], '! twinpost: Unknown argument: domian. Did you mean --domain? twinpost queue flush --help shows what there is'],
    [['queue', 'hold', '--reason', 'x', '--domian', 'x', '--siet', 'y'], /^! twinpost: Unknown arguments: domian, siet\. Did you mean --domain\? /],
    [['queue', 'hold', '--reason', 'x', '--until-canceled'], /\. Did you mean --until-cancelled\? /],
    [['queue', 'flush', '--reason', 'x', 'domian'], /Unknown argument: domian; twinpost /],
    [['send', '--from-nowhere'], /: from-nowhere, fromNowhere; twinpost send --help/],
    [['send', '--frobnicate'], /: frobnicate; twinpost send --help/],
  ] as const) {
    const lines: string[] = [];
    assert.equal(await runCli(args, contextFor(lines)), 2);
    if (typeof wanted === 'string') assert.deepEqual(lines, [wanted]);
    else assert.match(lines.join(), wanted);
  }
});
