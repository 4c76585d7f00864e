/**
 * What is signed of a message: its header section, the fields that are covered, the form of the signature. The message and
 * keys of RFC 8463 A show that all of it together comes to the signatures that stand there.
 */
import assert from 'node:assert/strict';
import { createHash, createPrivateKey, sign } from 'node:crypto';
import { describe, test } from 'node:test';

import { readHeaderSection } from '../../../../src/gateway/dkim/header-section.js';
import { RelaxedBody, relaxedField } from '../../../../src/gateway/dkim/relaxed.js';
import { signableOf } from '../../../../src/gateway/dkim/signable.js';
import { SignatureField } from '../../../../src/gateway/dkim/signature-field.js';
import { coveredFields } from '../../../../src/gateway/dkim/signed-fields.js';
import { readSignature } from '../../../../src/gateway/inbound/sender-checks/dkim-signature.js';
import { toAscii } from '../../../../src/platform/node/idna.js';
import { latin1Text } from '../../../../src/platform/node/latin1.js';

const octets = (text: string): Buffer => Buffer.from(text, 'latin1');

function section(...pieces: readonly string[]): ReturnType<typeof readHeaderSection> {
  return readHeaderSection(pieces.map(octets), latin1Text);
}

describe('a header section', () => {
  test('is found wherever pieces are cut, with the place where the body begins', () => {
    const text = 'Received: x\r\n\ty\r\nFrom : a@x.example\r\n\r\nbody\r\n\r\nmore';
    const bodyAt = text.indexOf('body');
    for (let cut = 0; cut <= text.length; cut++) {
      for (let second = cut; second <= text.length; second++) {
        const pieces = [text.slice(0, cut), text.slice(cut, second), text.slice(second)];
        const found = section(...pieces);
        assert.deepEqual(found?.fields, [{ name: 'received', value: ' x\r\n\ty', whole: 'Received: x\r\n\ty' }, { name: 'from', value: ' a@x.example', whole: 'From : a@x.example' }]);
        const before = pieces.slice(0, found.bodyPiece).join('').length;
        assert.equal(before + found.bodyAt, bodyAt, `${cut} ${second}`);
      }
    }
  });

  test('may be all of a message, or end at once', () => {
    assert.deepEqual([section('From: a@x.example\r\n')?.bodyPiece, section('From: a@x.example\r\n')?.fields.length], [1, 1]);
    assert.deepEqual(section('Received: x\r\n', '\r\nFrom: a@x.example\r\n')?.fields, [{ name: 'received', value: ' x', whole: 'Received: x' }]);
    assert.equal(section('\r\nbody: x\r\n\r\nmore'), undefined, 'it has none');
    assert.equal(section('A:\r\nB:x\r\n C: y\r\n\r\n')?.fields.length, 2);
  });

  test('with a line that is no field is none', () => {
    for (const text of ['From a@x.example\r\nTo: b\r\n\r\n', 'To: b\r\nbody\r\n\r\n', ' folded\r\nTo: b\r\n\r\n', ': x\r\n\r\n', 'T\u00f6: b\r\n\r\n', 'T o: b\r\n\r\n']) {
      assert.equal(section(text), undefined, text);
    }
  });

  test('that is longer than any is none', () => {
    assert.notEqual(section(`X: ${'x'.repeat(300_000)}\r\n`, 'From: a@x.example\r\n\r\n'), undefined);
    assert.equal(section(`X: ${'x'.repeat(400_000)}\r\n`, 'From: a@x.example\r\n\r\n'), undefined);
    assert.equal(section(...Array.from({ length: 40 }, () => `X: ${'x'.repeat(10_000)}\r\n`), 'From: a@x.example\r\n\r\n'), undefined);
  });
});

describe('the fields that are covered', () => {
  test('stand lowest first, and once more where a reader is shown them', () => {
    const found = coveredFields(section('Received: r\r\nTo: first\r\nX-Spam: no\r\nto: second\r\nFrom: a\r\nList-Id: l\r\nResent-To: r\r\nReferences: x\r\n\r\n')?.fields ?? []);
    assert.equal(found?.names.join(':'), 'from:from:to:to:to:cc:subject:date:message-id:reply-to:references:mime-version:content-type:content-transfer-encoding:resent-to:list-id');
    assert.equal(found.canonical, 'from:a\r\nto:second\r\nto:first\r\nreferences:x\r\nresent-to:r\r\nlist-id:l\r\n');
  });

  test('are none whose name could end the tag, and not more than mail has', () => {
    const names = (text: string): string => coveredFields(section(`From: a\r\n${text}\r\n`)?.fields ?? [])?.names.join(':') ?? 'too many';
    for (const name of ['List-;b=x', 'Resent-', `List-${'a'.repeat(50)}`, 'List-a=', 'X-List-Id']) assert.ok(!/list-|resent-/.test(names(`${name}: x\r\n`)), name);
    // Ten names are listed once more than they occur.
    assert.equal(names('List-Id: x\r\n'.repeat(189)).split(':').length, 200);
    assert.equal(names('List-Id: x\r\n'.repeat(190)), 'too many');
  });

  test('are no more than our own checks read', () => {
    const long = `Resent-${'a'.repeat(41)}: x\r\n`;
    const tags = { algorithm: 'rsa-sha256', domain: `${'d'.repeat(61)}.`.repeat(3) + 'x.example', selector: 's'.repeat(40), signedAt: 1, expiresAt: 2, bodyHash: 'b'.repeat(44) } as const;
    const outcomes = [long.repeat(70), long.repeat(80), long.repeat(100), 'List-Id: x\r\n'.repeat(189)].map((text) => {
      const found = coveredFields(section(`From: a\r\n${text}\r\n`)?.fields ?? []);
      if (found === undefined) return 'too many';
      // Of the largest key that OpenSSL verifies with: 16,384 bits.
      const whole = new SignatureField({ ...tags, names: found.names }).signed(`${'A'.repeat(2730)}==`).trimEnd();
      const read = readSignature({ name: 'dkim-signature', value: whole.slice('DKIM-Signature:'.length), whole });
      return 'ruling' in read ? read.ruling : read.names.length;
    });
    assert.deepEqual(outcomes, [81, 91, 'too many', 200]);
  });
});

describe('whose key signs', () => {
  const unsigned = (header: string, mine: readonly string[] = ['*']): string => {
    const mayUse = (address: string): boolean => mine.includes('*') || mine.includes(address);
    const found = signableOf([octets(`${header}\r\nbody\r\n`)], mayUse, { latin1Text, toAscii, hasKey: (domain) => domain.endsWith('x.example') });
    return typeof found === 'string' ? found : `signed by ${found.domain}`;
  };

  test('is the domain of the one From field, in A-labels', () => {
    assert.equal(unsigned('From: a@X.Example\r\n'), 'signed by x.example');
    assert.equal(unsigned('From: a@x.example, b@x.example\r\n'), 'signed by x.example');
    assert.equal(unsigned(`From: a@${Buffer.from('\u00fcx.example').toString('latin1')}\r\n`), 'no-key');
    assert.equal(unsigned(`From: a@${Buffer.from('\u00fc.x.example').toString('latin1')}\r\n`), 'signed by xn--tda.x.example');
  });

  test('is nobody where From is missing, there twice, of two domains, or not plain', () => {
    for (const header of ['To: a@x.example\r\n', 'From: a@x.example\r\nFROM: a@x.example\r\n', 'From: a@x.example, b@y.example\r\n', 'From: a@x.example@\r\n', 'From: a@\u00fcx.example\r\n', 'From: a@x.example/\r\n']) {
      assert.equal(unsigned(header), 'from', header);
    }
    assert.equal(unsigned('From: a@y.example\r\n'), 'no-key');
    assert.equal(unsigned('From a@x.example\r\nFrom: a@x.example\r\n'), 'header');
    assert.equal(unsigned(`From: a@x.example\r\n${'List-Id: x\r\n'.repeat(300)}`), 'header');
  });

  test('is not a domain that its user may not send from', () => {
    assert.equal(unsigned('From: a@x.example\r\n', ['a@x.example']), 'signed by x.example');
    assert.equal(unsigned('From: boss@x.example\r\n', ['a@x.example']), 'not-theirs');
    assert.equal(unsigned('From: a@x.example, boss@x.example\r\n', ['a@x.example']), 'not-theirs');
  });
});

const RFC_8463 = {
  ed25519: 'nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=',
  field: 'DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;\r\n d=football.example.com; i=@football.example.com;\r\n'
    + ' q=dns/txt; s=brisbane; t=1528637909; h=from : to :\r\n subject : date : message-id : from : subject : date;\r\n'
    + ' bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r\n b=',
  signature: '/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11BusFa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==',
  header: 'From: Joe SixPack <joe@football.example.com>\r\nTo: Suzie Q <suzie@shopping.example.net>\r\nSubject: Is dinner ready?\r\n'
    + 'Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r\nMessage-ID: <20030712040037.46341.5F8J@football.example.com>\r\n\r\n',
  body: 'Hi.\r\n\r\nWe lost the game.  Are you hungry yet?\r\n\r\nJoe.\r\n',
} as const;

test('the message of RFC 8463 A comes to its body hash and its Ed25519 signature', () => {
  const hash = createHash('sha256');
  const body = new RelaxedBody(new Uint8Array(64), (part) => { hash.update(part); });
  const message = octets(RFC_8463.header + RFC_8463.body);
  const found = readHeaderSection([message], latin1Text);
  body.update(message, found?.bodyAt ?? 0, message.length);
  body.end();
  assert.equal(hash.digest('base64'), /bh=([^;]+)/.exec(RFC_8463.field)?.[1]);
  // RFC 8410 7: the 32 octets in PKCS #8.
  const key = createPrivateKey({ key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.from(RFC_8463.ed25519, 'base64')]), format: 'der', type: 'pkcs8' });
  const covered = ['from', 'to', 'subject', 'date', 'message-id'].map((wanted) => found?.fields.find(({ name }) => name === wanted));
  const canonical = covered.map((field) => `${relaxedField(field?.name ?? '', field?.value ?? '')}\r\n`).join('');
  const data = octets(canonical + relaxedField('DKIM-Signature', RFC_8463.field.slice('DKIM-Signature:'.length)));
  assert.equal(sign(null, createHash('sha256').update(data).digest(), key).toString('base64'), RFC_8463.signature);
});

test('a header of more fields than mail has is none', () => {
  const lines = (count: number): ReturnType<typeof section> => section('From: a@x.example\r\n', 'a:\r\n'.repeat(count), '\r\nbody');
  assert.equal(lines(1999)?.fields.length, 2000);
  assert.equal(lines(2000), undefined);
  assert.equal(lines(80_000), undefined);
});

test('a signature is folded at 78 columns, and signed in the form that it has without b=', () => {
  const names = ['from', 'from', 'content-transfer-encoding', ...Array.from({ length: 40 }, () => 'list-unsubscribe-post')];
  const tags = { algorithm: 'rsa-sha256', domain: 'x.example', selector: 's1', signedAt: 1_795_229_168, names, bodyHash: 'x'.repeat(44) } as const;
  const field = new SignatureField({ ...tags, expiresAt: 1_795_229_169 });
  const text = field.signed('A'.repeat(344));
  const lines = text.split('\r\n');
  assert.equal(lines.pop(), '');
  assert.ok(lines.every((line) => line.length <= 78), text);
  assert.ok(lines.slice(1).every((line) => /^ \S/.test(line)), text);
  assert.match(text, /^DKIM-Signature: v=1; a=rsa-sha256; c=relaxed\/relaxed; d=x\.example; s=s1;\r\n t=1795229168; x=1795229169; h=from:from:content-transfer-encoding:\r\n/);
  assert.ok(text.replace(/A+(\r\n A+)*\r\n$/, '').endsWith('\r\n b='));
  assert.equal(field.canonical, relaxedField('DKIM-Signature', text.slice('DKIM-Signature:'.length).replace(/A+(\r\n A+)*\r\n$/, '')));
  assert.ok(!new SignatureField({ ...tags, expiresAt: undefined }).signed('').includes('x='));
});
