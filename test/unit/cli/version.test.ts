/** The version is told in both ways in which people ask for it; what is not understood is answered with what was meant; where a sink listens. */
import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
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

test('a verb that is missing its group, or is misspelt, is answered with the whole of it; what is far from all, with none', async () => {
  for (const [args, meant] of [
    ['hold', 'queue hold'], ['suspend', 'queue suspend'], ['drain', 'store drain or host drain'], ['list', 'queue list or rules list'],
    ['show', 'queue show or config show'], ['finds', 'find'], ['holds', 'queue hold'], ['sned', 'send'], ['statsu', 'status'], ['queue hodl', 'hold'],
    ['sendmail', ''], ['telegraph', ''], ['queue foo', ''],
  ] as const) {
    const lines: string[] = [];
    assert.equal(await runCli(args.split(' '), contextFor(lines)), 2);
    const [word] = args.split(' ');
    const help = args.includes(' ') ? `twinpost ${String(word)} --help` : 'twinpost --help';
    assert.deepEqual(lines, [`! twinpost: there is no verb '${args}'${meant === '' ? `; ${help} lists them` : `. Did you mean ${meant}?`}`]);
  }
});

test('where an option is missing, one that is near it is named', async () => {
  const lines: string[] = [];
  assert.equal(await runCli(['queue', 'delete', '--everything', '--reson', 'x'], contextFor(lines)), 2);
  assert.deepEqual(lines, ['! twinpost: Unknown argument: reson. Did you mean --reason? twinpost queue delete --help shows what there is']);
});

const hasIpv6 = Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === '::1'));

test('twinpost sink says where it listens, an IPv6 address in brackets', { skip: hasIpv6 ? false : 'there is no ::1' }, async () => {
  const lines: string[] = [];
  assert.equal(await runCli(['sink', '--listen', '[::1]:0'], contextFor(lines)), 0, lines.join('\n'));
  assert.match(lines.join('\n'), /sink listens on \[::1\]:[1-9]\d*/);
});
