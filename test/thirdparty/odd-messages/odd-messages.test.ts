/**
 * Odd messages arrive byte-identical below the one Received header that was added, or are refused by rule:
 * those inside Python's email test data (line ends made CRLF), and generated ones.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { withLineEnds } from '../../../src/smtp/content-lines.js';
import { findPythonWith } from '../../outside-sets.js';
import { assertUntouched, mustRun, readMaildir, sendRaw, withMailbox } from '../support.js';

interface OddMessage {
  readonly name: string;
  readonly content: Buffer;
}

/** RFC 5321 2.3.8: CR and LF only together; and no NUL (RFC 5322 4). Those are refused. */
function mustBeRefused(content: Buffer): boolean {
  return content.toString('latin1').replaceAll('\r\n', '').match(/[\r\n\0]/) !== null;
}

async function sendAll(messages: readonly OddMessage[]): Promise<void> {
  await withMailbox(async (cluster) => {
    const taken: OddMessage[] = [];
    for (const message of messages) {
      const reply = await sendRaw(cluster.smtpPort, message.content, 'odd@a.example', ' BODY=8BITMIME');
      if (mustBeRefused(message.content)) {
        assert.match(reply, /^5\d\d /, `${message.name} was not refused`);
      } else {
        assert.match(reply, /^250 /, message.name);
        taken.push(message);
        // One at a time, so that the Maildir is in the order of `taken`.
        await cluster.sinkHas(taken.length);
      }
    }
    const kept = readMaildir(cluster.maildir);
    assert.equal(kept.length, taken.length);
    for (const [index, message] of taken.entries()) assertUntouched(kept[index], message.content, message.name);
  });
}

async function pythonMessages(): Promise<OddMessage[]> {
  const python = findPythonWith('test.test_email');
  assert.ok(python !== undefined, 'no Python here has test.test_email (Debian: libpython3.11-testsuite)');
  const script = 'import os, test.test_email; print(os.path.join(os.path.dirname(test.test_email.__file__), "data"))';
  const folder = (await mustRun(python, ['-c', script])).trim();
  const names = readdirSync(folder).filter((name) => name.endsWith('.txt')).sort();
  return names.map((name) => ({ name, content: Buffer.from(withLineEnds(readFileSync(join(folder, name)))) }));
}

/** The CRLF before the final dot belongs to the content (RFC 5321 4.1.1.4): one without it gets it. */
function ended(content: Buffer): Buffer {
  return content.subarray(-2).equals(Buffer.from('\r\n')) ? content : Buffer.concat([content, Buffer.from('\r\n')]);
}

const HEADER = 'Subject: odd\r\nFrom: <a@client.example>\r\n\r\n';

function generatedMessages(): OddMessage[] {
  const odd = (name: string, text: string): OddMessage => ({ name, content: Buffer.from(text, 'latin1') });
  const everyByte = String.fromCharCode(...Array.from({ length: 256 }, (_none, byte) => byte).filter((byte) => ![0, 10, 13].includes(byte)));
  const lines = [998, 999, 1000, 1001, 5000, 70_000].map((bytes) => odd(`line of ${bytes} bytes`, `${HEADER}${'x'.repeat(bytes)}\r\nend\r\n`));
  return [
    ...lines,
    odd('8-bit header and body', 'Subject: \u00e4\u00ff\r\n\r\n\u0080\u00ff\r\n'),
    odd('every byte value but CR, LF, NUL', `${HEADER}${everyByte}\r\n`),
    odd('lines of dots', `${HEADER}.\r\n..\r\n...\r\n.x\r\n`),
    odd('dots first', '.\r\n..\r\n\r\n.\r\n'),
    odd('empty body', HEADER),
    odd('header only, no empty line', 'Subject: odd\r\n'),
    odd('no header at all', '\r\nbody\r\n'),
    odd('nothing', ''),
    odd('one empty line', '\r\n'),
    odd('a thousand empty lines', `${HEADER}${'\r\n'.repeat(1000)}`),
    { name: 'no last line end: it gets one', content: ended(Buffer.from(`${HEADER}the last line`)) },
    odd('trailing white space', `${HEADER}a \t \r\n \r\n\t\r\n`),
    odd('header that never folds', `X-Long: ${'y'.repeat(20_000)}\r\n\r\nbody\r\n`),
    odd('looks like SMTP', `${HEADER}QUIT\r\nRSET\r\nMAIL FROM:<>\r\nDATA\r\n`),
    odd('bare CR', `${HEADER}a\rb\r\n`),
    odd('bare LF', `${HEADER}a\nb\r\n`),
    odd('NUL', `${HEADER}a\0b\r\n`),
    odd('smuggled dot after LF', `${HEADER}a\n.\r\nb\r\n`),
    odd('smuggled dot before LF', `${HEADER}a\r\n.\nb\r\n`),
    odd('smuggled dot between CR', `${HEADER}a\r.\rb\r\n`),
  ];
}

describe('odd messages', () => {
  test("of Python's email tests arrive byte-identical", async () => {
    const messages = await pythonMessages();
    assert.ok(messages.length >= 40, `only ${messages.length} messages found`);
    await sendAll(messages);
  });

  test('that we thought of arrive byte-identical or are refused by rule', () => sendAll(generatedMessages()));
});
