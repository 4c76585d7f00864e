/**
 * Headers in which somebody says to be us, in words of Authentication-Results fields and of noise, cut into pieces anywhere;
 * in one of 100 inputs headers as large as a message may have them, of one word many thousand times. What must hold:
 *
 *   what is kept      the same octets, but for X-Original- in front of some fields; nothing behind the header
 *   a second look     finds nothing more to rename
 *   a plain reader    finds no field with our name at its start, whatever it makes of case, blanks and quotes
 *   our own field     made of whatever a sender says: one field of printable ASCII, whose bare words are ours
 */
import assert from 'node:assert/strict';
import type { Prng } from '../../src/base/prng.js';
import { RelaxedFields, readSignature, signedText } from '../../src/gateway/inbound/sender-checks/dkim-signature.js';
import { renameOwnResults } from '../../src/gateway/inbound/sender-checks/own-results.js';
import { resultsField } from '../../src/gateway/inbound/sender-checks/results-field.js';
import { readHeaderSection } from '../../src/gateway/dkim/header-section.js';
import { signableOf } from '../../src/gateway/dkim/signable.js';
import { toAscii } from '../../src/platform/node/idna.js';
import { latin1Text } from '../../src/platform/node/latin1.js';
import { piecesOf, tally } from './field.js';
import { changed } from './inputs.js';

const ID = 'mx.example.org';
const WORDS = [
  'Authentication-Results:', 'authentication-RESULTS :', 'Authentication-Results', 'X-Original-Authentication-Results:', 'ARC-Authentication-Results:', 'DKIM-Signature:',
  ID, 'MX.Example.Org', 'other.example', '"mx.example.org"', '"mx.exa\\mple.org"', `(${ID})`, ' (a (b) c) ', '(', ')', '"', '\\', ';', ' ', '\t', ' 1', '.', '/1', '=', ' spf=pass', '; dmarc=pass',
  '\r\n', '\r\n ', '\r\n\t', '\r\n\r\n', 'From: a@x.example\r\n', 'Received: x\r\n', '\u00fc', '\u00a0', '\0',
  ' v=1; a=rsa-sha256; d=x.example; s=s; h=from:to; bh=YQ==; b=YQ==', '; c=relaxed/simple', '; l=5', '; i=@y.x.example', '; x=1; t=0', ' b=', 'h=From',
] as const;

/** One of them makes most of a large input. */
const RUNS = [
  ...WORDS, 'a:\r\n', 'a: b\r\n', '\r\n ', '\r\n\t', ' .', '. ', '"a" . ', '()', '\\a', `${ID}x `, `-${ID}`, 'a=b;', 'a=', ':a', ',', '<', 'To: x\r\n', 'From: a\r\n', 'List-Id: x\r\n',
  'DKIM-Signature: v=1; a=rsa-sha256; d=x.example; s=s; h=from; bh=YQ==; b=YQ==\r\n', 'Authentication-Results: "a"\r\n', `Authentication-Results: ${ID}x\r\n`,
] as const;
const STARTS = ['', 'Authentication-Results: ', 'authentication-results:x\r\n', 'DKIM-Signature: v=1; a=rsa-sha256; d=x.example; s=s; h=from; bh=YQ==; b=YQ==; n=x', 'From: a@x.example\r\n', 'From: '] as const;
/** A section may have 320 KiB, a signature 8, fields with our name 8. */
const LARGE_OCTETS = [8000, 330_000] as const;

export function authenticationInput(random: Prng): void {
  if (random.below(100) === 0) return largeInput(random);
  let text = random.below(3) === 0 ? random.pick(STARTS) : `Authentication-Results: ${random.pick(WORDS)}`;
  for (let count = random.below(40); count > 0; count--) text += random.pick(WORDS);
  const input = changed(Buffer.from(text, 'latin1'), random);
  const pieces = [...piecesOf(input, random)];
  renameTwice(pieces, Buffer.from(input).toString('latin1'));
  makeField(random);
  signaturesOf(pieces);
}

/** What one turn may do with it: that must not be slow. */
function largeInput(random: Prng): void {
  const run = random.pick(RUNS);
  const count = random.below(Math.ceil(random.pick(LARGE_OCTETS) / run.length));
  const content = Buffer.from(`${random.pick(STARTS)}${run.repeat(count)}${random.pick(WORDS)}\r\nFrom: a@x.example\r\n\r\nbody\r\n`, 'latin1');
  const pieces = [content.subarray(0, 60_000), content.subarray(60_000)];
  tally('large');
  switch (random.below(3)) {
    case 0: return signaturesOf(pieces);
    case 1: return void signableOf(pieces, () => true, { latin1Text, toAscii, hasKey: () => true });
    default: renameOwnResults(pieces, ID, { latin1Text, toAscii });
  }
}

function signaturesOf(pieces: readonly Uint8Array[]): void {
  for (const field of readHeaderSection(pieces, latin1Text)?.fields ?? []) {
    const signature = readSignature(field);
    if ('ruling' in signature) continue;
    const signed = signedText(signature, [field, { name: 'from', value: ' x', whole: 'From: x' }], new RelaxedFields());
    assert.match(signed, /^from: ?x\r\n/i, 'From is signed');
    tally('signatures');
  }
}

function renameTwice(pieces: readonly Uint8Array[], text: string): void {
  const found = renameOwnResults(pieces, ID, { latin1Text, toAscii });
  assert.ok(found !== 'too-long');
  let kept = text;
  if (found !== undefined) {
    const rest = pieces.slice(found.piece).map((piece, index) => (index === 0 ? piece.subarray(found.at) : piece));
    kept = Buffer.concat([found.octets, ...rest]).toString('latin1');
    assert.equal(renameOwnResults([Buffer.from(kept, 'latin1')], ID, { latin1Text, toAscii }), undefined, 'nothing is left');
    assert.equal(kept.length - text.length - 'X-Original-'.length * found.count, text.endsWith('\r\n') || found.piece < pieces.length ? 0 : 2, 'nothing else is put in');
    tally('renamed');
  }
  const end = kept.startsWith('\r\n') ? 0 : kept.indexOf('\r\n\r\n');
  const header = end < 0 ? kept : kept.slice(0, end);
  for (const field of header.split(/\r\n(?![ \t])/)) {
    assert.ok(!/^authentication-results[ \t]*:[ \t\r\n"()]*mx\.example\.org(?![a-z0-9-]|\.[a-z0-9])/i.test(field), JSON.stringify(field));
  }
}

function makeField(random: Prng): void {
  const noise = (): string => Array.from({ length: 1 + random.below(6) }, () => random.pick(WORDS)).join('');
  const dkim = Array.from({ length: 1 + random.below(10) }, () => ({ result: 'fail', reason: noise(), domain: noise(), selector: noise(), algorithm: noise(), start: noise() } as const));
  const field = resultsField(noise(), { spf: { result: 'fail', domain: noise(), isHelo: false }, dkim, dmarc: { result: 'fail', reason: noise(), domain: noise(), policy: 'none' } });
  assert.match(field, /^Authentication-Results: (?:[\t -~]|\r\n\t)+\r\n$/);
  assert.ok(field.split('\r\n').every((line) => line.length <= 998));
  const bare = field.replace(/(?:\r\n)?[ \t]+/g, ' ').trimEnd().replace(/"(?:[^"\\]|\\.)*"/g, 'Q').replace(/=[A-Za-z0-9!#$%&'*+.^_`{|}~-]+/g, '=T');
  assert.match(bare, /^Authentication-Results: [^ ;]+; spf=T smtp\.mailfrom=[TQ];(?: dkim=T reason=[TQ] header\.d=[TQ] header\.s=[TQ] header\.a=[TQ] header\.b=[TQ];)+ dmarc=T reason=[TQ] policy\.dmarc=T header\.from=[TQ]$/, field);
  tally('fields');
}
