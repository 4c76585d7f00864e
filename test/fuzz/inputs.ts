/**
 * Inputs made of words of SMTP and of noise: lines as clients say them, changed, cut, doubled and split anywhere. An input
 * follows from its number alone.
 */
import type { Prng } from '../../src/base/prng.js';

/** One character an octet. */
const WORDS: readonly string[] = [
  'EHLO a.example\r\n', 'HELO b\r\n', 'MAIL FROM:<a@b.example>\r\n', 'MAIL FROM:<>\r\n', 'MAIL FROM:<a@b.example> SIZE=10 BODY=8BITMIME RET=HDRS ENVID=q+3D1\r\n',
  'RCPT TO:<c@d.example>\r\n', 'RCPT TO:<postmaster>\r\n', 'RCPT TO:<"a b"@[192.0.2.1]> NOTIFY=SUCCESS,DELAY ORCPT=rfc822;x+40y\r\n', 'RCPT TO:<@x,@y:z@d.example>\r\n',
  'DATA\r\n', 'Subject: x\r\n\r\nbody\r\n.\r\n', '.\r\n', '..x\r\n', '\r\n.\r\n', '\n.\n', '\r.\r', '.\n', '\r\n', '\n', '\r', '\0', '\xff', '\xc3\xbc', '.',
  'BDAT 5\r\nabcd\n', 'BDAT 0 LAST\r\n', 'BDAT 7 LAST\r\nx: y\r\n\r', 'BDAT 99999999999\r\n', 'BDAT x\r\n', 'RSET\r\n', 'NOOP x\r\n', 'VRFY x\r\n', 'HELP\r\n', 'EXPN x\r\n',
  'AUTH PLAIN AGEAYg==\r\n', 'AUTH LOGIN\r\n', 'AUTH SCRAM-SHA-256\r\n', 'YQ==\r\n', '=\r\n', '*\r\n', 'STARTTLS\r\n', 'QUIT\r\n', 'XCLIENT ADDR=192.0.2.7 LOGIN=x\r\n',
  'MAIL FROM:<\xc3\xbc@b.example> SMTPUTF8\r\n', 'RCPT TO:<\xc3\xbc@xn--bcher-kva.example> ORCPT=utf-8;\\x{FC}@b\r\n', 'Received: from a by mx.test; now\r\n', ' ', '<', '>', ':', '@', 'A',
];

/** Mostly whole words, one after the other as a client would say them, then changed in places. */
export function smtpInput(random: Prng): Uint8Array {
  let text = random.below(4) === 0 ? '' : 'EHLO a.example\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n';
  for (let count = random.below(12); count > 0; count--) text += wordOf(random);
  return changed(Buffer.from(text, 'latin1'), random);
}

/** Headers that are right, noise within a frame that is right, and frames of noise. */
export function proxyInput(random: Prng): Uint8Array {
  if (random.below(4) === 0) {
    const port = String(random.below(65_536));
    return changed(Buffer.from(random.pick([`PROXY TCP4 192.0.2.1 192.0.2.2 ${port} 25\r\n`, `PROXY TCP6 2001:db8::1 ::1 ${port} 25\r\n`])), random);
  }
  const body = random.below(3) === 0
    ? Buffer.from(`PROXY ${random.pick(['TCP4', 'TCP6', 'UNKNOWN', 'TCP5'])} ${random.pick(['192.0.2.1', '::1', 'ffff::', '1.2.3', ''])} 192.0.2.2 ${String(random.below(70_000))} 25\r\nEHLO x\r\n`)
    : Buffer.concat([
      Buffer.from([0x0d, 0x0a, 0x0d, 0x0a, 0, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a, random.below(2) === 0 ? 0x21 : random.below(256), random.pick([0x11, 0x21, 0, random.below(256)]), random.below(3), random.below(80)]),
      Buffer.from(Array.from({ length: random.below(120) }, () => random.below(256))),
    ]);
  return changed(body, random);
}

function wordOf(random: Prng): string {
  const word = random.pick(WORDS);
  return random.below(40) === 0 ? word.repeat(1 + random.below(200)) : word;
}

/** In a third of the inputs nothing is changed. */
export function changed(bytes: Buffer, random: Prng): Uint8Array {
  let made: Uint8Array = bytes;
  for (let count = random.below(3); count > 0 && made.length > 0; count--) {
    const at = random.below(made.length);
    const to = Math.min(made.length, at + 1 + random.below(8));
    switch (random.below(4)) {
      case 0: made = Buffer.concat([made.subarray(0, at), made.subarray(to)]); break;
      case 1: made = Buffer.concat([made.subarray(0, to), made.subarray(at)]); break;
      case 2: made = Buffer.concat([made.subarray(0, at), Buffer.from([random.below(256)]), made.subarray(at)]); break;
      default: made = Uint8Array.from(made, (byte, index) => (index === at ? random.below(256) : byte));
    }
  }
  return made;
}
