/**
 * Plays the conversations of test/dialog/*.txt against a real server on a real socket, once with its bytes read into our
 * buffer and once by Node's stream; and against the session alone, each byte a read of its own, without hooks and with
 * one that accepts each message a turn later: no client hears a difference. Those with a table also with somebody who is
 * asked by HTTP instead of a file.
 *
 *   # comment, or the name of what is shown        == NAME      a new dialog (its own server)
 *   T: line              of the table of recipients; (closed): it can't be read
 *   F: domain            reverse-paths of what aliases send out are rewritten to addresses there; {srs ADDRESS} is one,
 *                         {srs3 ADDRESS} one that went from there through b.example and back
 *   W: party deed N       so much may be done in a minute (limits/rate-limits.ts)
 *   O: option value      option of InboundOptions  R: accepting no | outcome N | admit QUEUE WORD | memory BYTES | immediate
 *   C: text              the client sends a line   C~ text      … without CRLF; \r \n \0 \t \xNN mean bytes, {N*x} repeats x
 *   S: text              the server's next line; a trailing * means "begins with"
 *   L: text              the last line of the server's next reply
 *   E:                   the client ends its side
 *   X:                   the server closes         @2           from here on the second connection (opened now)
 *   M: ...               of the last message kept: from A | rcpt ADDRESS NOTIFY ORCPT | flags N | ret N | envid X |
 *                        groups N | content TEXT (escaped, without our trace header) | trace TEXT (line of it)
 *   K: N                 messages kept so far      J: stage reason   the last rejection logged
 *
 * C lines in a row are one write: that is pipelining.
 */

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';

import { SenderRewriting } from '../../src/base/sender-rewriting.js';
import type { Hmac } from '../../src/base/signed-text.js';
import type { TableFile } from '../../src/gateway/inbound/recipients-file.js';
import { DEEDS, PARTIES, RateLimits } from '../../src/gateway/inbound/limits/rate-limits.js';
import type { RateOptions } from '../../src/gateway/inbound/limits/rate-limits.js';
import { NetworkList } from '../../src/gateway/inbound/policy/network-list.js';
import type { MessageHooks } from '../../src/gateway/inbound/hooks/message-hook.js';
import { NONE_MADE } from '../../src/gateway/inbound/options.js';
import type { InboundOptions, MadeAddresses } from '../../src/gateway/inbound/options.js';
import type { AdmissionVerdict, SubmissionOutcome } from '../../src/gateway/mail-types.js';
import { WALL_MS } from '../inbound/desk.js';
import { Client, memoryHarness, startHarness } from './harness.js';
import { askedOf, tableOf } from './listed.js';
import type { DialogClient, MemoryHarness } from './harness.js';
import { withoutReadBuffer } from './without-read-buffer.js';

function dialogFolder(): string {
  for (let at = import.meta.dirname; at !== dirname(at); at = dirname(at)) {
    if (existsSync(join(at, 'test/dialog/session.txt'))) return join(at, 'test/dialog');
  }
  return join(process.cwd(), 'test/dialog');
}

function rewritingTo(domain: string): SenderRewriting {
  const hmac: Hmac = (key, text) => createHmac('sha256', key).update(text).digest();
  return new SenderRewriting(domain, [Buffer.from('a secret of ours')], hmac, () => WALL_MS);
}

function readMade(lines: readonly string[]): MadeAddresses {
  const domain = lines.find((each) => each.startsWith('F: '))?.slice(3);
  return domain === undefined ? NONE_MADE : { rewriting: rewritingTo(domain), paths: undefined, domains: [domain] };
}

function unescape(text: string): string {
  return text
    .replace(/\{srs ([^}]+)\}/g, (_all, address: string) => rewritingTo('fwd.example').rewritten(address))
    .replace(/\{srs3 ([^}]+)\}/g, (_all, address: string) => ['fwd.example', 'b.example', 'fwd.example'].reduce((path, domain) => rewritingTo(domain).rewritten(path), address))
    .replace(/\{(\d+)\*([^}]+)\}/g, (_all, count: string, what: string) => what.repeat(Number(count)))
    .replace(/\\(r|n|0|t|x[0-9a-fA-F]{2}|\\)/g, (_all, code: string) => {
      if (code.startsWith('x')) return String.fromCharCode(Number.parseInt(code.slice(1), 16));
      return { r: '\r', n: '\n', '0': '\0', t: '\t', '\\': '\\' }[code] ?? '';
    });
}

const LIST_OPTIONS = ['relayNetworks', 'relayDomains', 'proxyNetworks', 'xclientNetworks'];

function readOptions(lines: readonly string[]): Partial<InboundOptions> {
  const options: Record<string, unknown> = {};
  for (const line of lines) {
    if (!line.startsWith('O: ')) continue;
    const [name = '', ...values] = line.slice(3).split(' ');
    if (name === 'postmaster') options[name] = values[0];
    else options[name] = LIST_OPTIONS.includes(name) ? values.filter((value) => value !== 'none') : Number(values[0]);
  }
  return options;
}

function readRates(lines: readonly string[]): RateLimits | undefined {
  const words = lines.filter((line) => line.startsWith('W: ')).map((line) => line.slice(3).split(' '));
  if (words.length === 0) return undefined;
  const maxOf = (party: string, deed: string): number => Number(words.find(([one, two]) => one === party && two === deed)?.[2] ?? 0);
  const options = Object.fromEntries(PARTIES.map((party) => [party, Object.fromEntries(DEEDS.map((deed) => [deed, maxOf(party, deed)]))])) as RateOptions;
  return new RateLimits(options, new NetworkList(['192.0.2.99'], 'networks without limits'));
}

const CLOSED = 'T: (closed)';

function readTable(lines: readonly string[]): TableFile | undefined {
  const listed = lines.filter((line) => line.startsWith('T:') && line !== CLOSED);
  if (listed.length === 0) return undefined;
  const table = tableOf(listed.map((line) => line.slice(3)));
  if (lines.includes(CLOSED)) table.close();
  return table;
}

function closeTable(table: TableFile | undefined, lines: readonly string[]): void {
  if (!lines.includes(CLOSED)) table?.close();
}

class Player {
  readonly #harness: MemoryHarness;
  readonly #clients = new Map<string, DialogClient>();
  #client: DialogClient;
  #pending = '';

  constructor(harness: MemoryHarness) {
    this.#harness = harness;
    this.#client = this.#switch('1');
  }

  async play(lines: readonly string[]): Promise<void> {
    for (const line of lines) {
      if (line === '' || line.startsWith('#') || /^[FOTW]: /.test(line) || line === 'T:') continue;
      if (line.startsWith('C: ')) this.#pending += Buffer.from(unescape(line.slice(3)), /[^\0-\xff]/.test(line) ? 'utf8' : 'latin1').toString('latin1') + '\r\n';
      else if (line === 'C:') this.#pending += '\r\n';
      else if (line.startsWith('C~ ')) this.#pending += unescape(line.slice(3));
      else await this.#expect(line);
    }
    this.#send();
  }

  destroy(): void {
    for (const client of this.#clients.values()) client.destroy();
  }

  #send(): void {
    if (this.#pending !== '') this.#client.send(this.#pending);
    this.#pending = '';
  }

  #switch(name: string): DialogClient {
    const client = this.#clients.get(name) ?? this.#harness.connect();
    this.#clients.set(name, client);
    this.#client = client;
    return client;
  }

  async #expect(line: string): Promise<void> {
    const rest = line.slice(3);
    if (line.startsWith('R: ')) return this.#configure(rest);
    this.#send();
    if (line.startsWith('@')) this.#switch(line.slice(1));
    else if (line.startsWith('S: ')) this.#compare(await this.#client.line(), rest);
    else if (line.startsWith('L: ')) this.#compare(await this.#lastLine(), rest);
    else if (line === 'E:') this.#client.end();
    else if (line === 'X:') assert.equal(await this.#client.line(), 'closed');
    else if (line.startsWith('K: ')) assert.equal(this.#harness.reception.kept.length, Number(rest), 'messages kept');
    else if (line.startsWith('J: ')) assert.equal(this.#harness.rejections.at(-1), rest);
    else if (line.startsWith('M: ')) this.#checkMessage(rest);
    else assert.fail(`not a line of a dialog: ${line}`);
  }

  async #lastLine(): Promise<string> {
    for (;;) {
      const line = await this.#client.line();
      if (line[3] !== '-') return line;
    }
  }

  #compare(actual: string, wanted: string): void {
    if (wanted.endsWith('*')) assert.ok(actual.startsWith(wanted.slice(0, -1)), `wanted "${wanted}", got "${actual}"`);
    else assert.equal(actual, wanted);
  }

  #configure(text: string): void {
    const [what = '', name = '', value = ''] = text.split(' ');
    const { reception } = this.#harness;
    if (what === 'accepting') reception.accepting = name === 'yes';
    else if (what === 'outcome') reception.outcomes.push(Number(name) as SubmissionOutcome);
    else if (what === 'admit') reception.admissions.set(name, value as AdmissionVerdict);
    else if (what === 'refuse') reception.refusedSenders.add(name);
    else if (what === 'refuse-to') reception.refusedRecipients.add(name);
    else if (what === 'memory') reception.bytesMax = Number(name);
    else if (what === 'immediate') reception.immediate = true;
    else assert.fail(`not a reception setting: ${text}`);
  }

  #checkMessage(text: string): void {
    const kept = this.#harness.reception.kept.at(-1);
    assert.ok(kept !== undefined, 'a message was kept');
    const space = text.indexOf(' ');
    const [what, wanted] = [text.slice(0, space), text.slice(space + 1)];
    const { submission } = kept;
    const content = kept.content.toString('latin1');
    const traceEnd = content.indexOf('\r\n', content.indexOf('+0000')) + 2;
    const recipients = submission.groups.flatMap((group) => group.recipients.map((each) => `${each.address} ${each.notify} ${each.orcpt}`.trimEnd()));
    if (what === 'from') assert.equal(submission.reversePath, wanted === '<>' ? '' : wanted);
    else if (what === 'rcpt') assert.ok(recipients.includes(wanted), `${wanted} in ${recipients.join(', ')}`);
    else if (what === 'rcpts') assert.equal(recipients.map((each) => each.split(' ')[0]).join(' '), wanted);
    else if (what === 'flags') assert.equal(submission.flags, Number(wanted));
    else if (what === 'ret') assert.equal(submission.ret, Number(wanted));
    else if (what === 'envid') assert.equal(submission.envid, wanted);
    else if (what === 'groups') assert.equal(submission.groups.length, Number(wanted));
    else if (what === 'content') assert.equal(content.slice(traceEnd), unescape(wanted === '""' ? '' : wanted));
    else if (what === 'trace') assert.ok(content.slice(0, traceEnd).includes(unescape(wanted)), content.slice(0, traceEnd));
    else if (what === 'no-trace') assert.ok(!content.slice(0, traceEnd).includes(unescape(wanted)), content.slice(0, traceEnd));
    else assert.fail(`not a check of a message: ${text}`);
  }
}

/** Accepts, a turn later. */
const LATE_HOOK: MessageHooks = { judge: (_message, done) => { setImmediate(() => { done(undefined, new Uint8Array(0)); }); } };

async function playBySockets(lines: readonly string[], isAsked = false): Promise<void> {
  const table = readTable(lines);
  const asked = isAsked && table !== undefined ? await askedOf(table) : undefined;
  const harness = await startHarness(readOptions(lines), { recipients: asked?.table ?? table, rates: readRates(lines), made: readMade(lines) });
  const { reception, rejections, inbound } = harness;
  try {
    await play(lines, { reception, rejections, connect: () => new Client(inbound.port), close: () => undefined });
  } finally {
    await inbound.close(1000);
    asked?.close();
    closeTable(table, lines);
  }
  assert.equal(reception.reservedBytes, 0, 'all bytes in transit were given back');
}

async function playByBytes(lines: readonly string[], hooks?: MessageHooks): Promise<void> {
  const table = readTable(lines);
  const harness = memoryHarness(readOptions(lines), { recipients: table, rates: readRates(lines), made: readMade(lines), hooks });
  try {
    await play(lines, harness);
  } finally {
    harness.close();
    closeTable(table, lines);
  }
  await new Promise(setImmediate);
  assert.equal(harness.reception.reservedBytes, 0, 'all bytes in transit were given back');
}

async function play(lines: readonly string[], harness: MemoryHarness): Promise<void> {
  const player = new Player(harness);
  try {
    await player.play(lines);
  } finally {
    player.destroy();
  }
}

const folder = dialogFolder();
for (const file of readdirSync(folder).filter((name) => name.endsWith('.txt')).sort()) {
  describe(file, () => {
    const sections = readFileSync(join(folder, file), 'utf8').split(/^== /m).slice(1);
    for (const section of sections) {
      const [title = '', ...lines] = section.split('\n');
      test(title, { timeout: 20_000 }, () => playBySockets(lines));
      test(`${title} (read by the stream)`, { timeout: 20_000 }, () => withoutReadBuffer(() => playBySockets(lines)));
      if (lines.some((line) => line.startsWith('T:'))) test(`${title} (asked by HTTP)`, { timeout: 20_000 }, () => playBySockets(lines, true));
      test(`${title} (byte by byte)`, { timeout: 20_000 }, () => playByBytes(lines));
      test(`${title} (with a hook)`, { timeout: 20_000 }, () => playByBytes(lines, LATE_HOOK));
    }
  });
}
