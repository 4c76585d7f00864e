/**
 * The Authentication-Results field of a message (RFC 8601 2.2), of what was checked (verdicts.ts). It stands
 * on top of the prefix, above our own Received field (4): it was made after that, and who reads down from the
 * top meets what the last trusted host says first.
 *
 *   Authentication-Results: mx.example.org;
 *   	spf=pass smtp.mailfrom=example.com;
 *   	dkim=fail reason="body has been altered" header.d=example.com
 *   	 header.s=s1 header.a=rsa-sha256 header.b=dGhlIGJl;
 *   	dmarc=fail policy.dmarc=reject header.from=example.com
 *
 * Values are of senders: each is a token or a quoted string of printable ASCII (RFC 2045 5.1), cut at a
 * bound. Nothing else stands there, no comment either, so that no value can end the field, or say what is a
 * result. Pure.
 */
import { bestDkim } from './verdicts.js';
import type { DkimVerdict, DmarcVerdict, SpfVerdict, Verdicts } from './verdicts.js';

/** RFC 5322 2.1.1 asks for 78; a value that is longer stands in a line of its own. */
const LINE_COLUMNS = 78;
/** Of a tab, as most show it. */
const TAB_COLUMNS = 8;
/** A domain is no longer. */
const VALUE_CHARACTERS_MAX = 255;
const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`{|}~-]+$/;

/** With its line end; ASCII. */
export function resultsField(authservId: string, { spf, dkim, dmarc }: Verdicts): string {
  const parts = [spfWords(spf), ...dkim.map(dkimWords), dmarcWords(dmarc)].map(folded);
  return `Authentication-Results: ${value(authservId)};${parts.join(';')}\r\n`;
}

/** For the mail log: one result for each method. */
export function resultWords({ spf, dkim, dmarc }: Verdicts): string {
  return `spf=${spf.result} dkim=${bestDkim(dkim)} dmarc=${dmarc.result}`;
}

function spfWords({ result, domain, isHelo }: SpfVerdict): readonly string[] {
  return [`spf=${result}`, ...property(isHelo ? 'smtp.helo' : 'smtp.mailfrom', domain)];
}

function dkimWords({ result, reason, domain, selector, algorithm, start }: DkimVerdict): readonly string[] {
  return [
    `dkim=${result}`, ...property('reason', reason), ...property('header.d', domain),
    ...property('header.s', selector), ...property('header.a', algorithm), ...property('header.b', start),
  ];
}

function dmarcWords({ result, reason, policy, domain }: DmarcVerdict): readonly string[] {
  return [
    `dmarc=${result}`, ...property('reason', reason), ...property('policy.dmarc', policy),
    ...property('header.from', domain),
  ];
}

function property(name: string, text: string): readonly string[] {
  return text === '' ? [] : [`${name}=${value(text)}`];
}

function value(text: string): string {
  const bounded = text.slice(0, VALUE_CHARACTERS_MAX).replace(/[^ -~]/g, '?');
  return TOKEN.test(bounded) ? bounded : `"${bounded.replace(/["\\]/g, '\\$&')}"`;
}

function folded(words: readonly string[]): string {
  let text = '';
  let columns = LINE_COLUMNS;
  for (const [index, word] of words.entries()) {
    // A semicolon may stand behind it.
    if (index > 0 && columns + word.length + 2 <= LINE_COLUMNS) {
      text += ` ${word}`;
      columns += word.length + 1;
    } else {
      const start = index === 0 ? '\t' : '\t ';
      text += `\r\n${start}${word}`;
      columns = TAB_COLUMNS + start.length - 1 + word.length;
    }
  }
  return text;
}
