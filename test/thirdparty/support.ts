/**
 * What the outside sets share: running a client program, reading what the sink kept, and a raw SMTP client
 * for contents that no mail program would send unchanged.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';

import { wireContent } from '../../src/smtp/content-lines.js';
import { HOST, startCluster, type Cluster } from '../process/cluster.js';
import type { ClusterOptions } from '../process/cluster-config.js';
import { SmtpTalk } from '../process/smtp-talk.js';

const PROGRAM_MS = 60_000;
/** With all fields that a server might miss, and add. */
const COMPLETE_HEADER = ['From: <load@client.example>', 'To: <user@a.example>', 'Subject: load', 'Date: Thu, 01 Jan 2026 00:00:00 +0000', 'Message-ID: <1@client.example>', ''].join('\r\n');

/** Starts a cluster whose sink keeps mail, runs `body`, stops it whatever happens. */
export async function withMailbox(body: (cluster: Cluster) => Promise<void>, options: ClusterOptions = {}): Promise<void> {
  const cluster = await startCluster({ ...options, sinkSection: { maildir: true, ...options.sinkSection } });
  try {
    await body(cluster);
  } finally {
    await cluster.stop();
  }
}

export interface Ended {
  readonly code: number;
  readonly output: string;
}

/** Runs a program to its end, `input` on its stdin. */
export function runProgram(program: string, args: readonly string[], input: Buffer | string = ''): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], timeout: PROGRAM_MS });
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code: code ?? -1, output: Buffer.concat(chunks).toString('latin1') }));
    // A program may end before it has read everything.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}

/** Runs a program that must succeed. */
export async function mustRun(program: string, args: readonly string[], input: Buffer | string = ''): Promise<string> {
  const ended = await runProgram(program, args, input);
  assert.equal(ended.code, 0, `${program} ended with ${ended.code}:\n${ended.output}`);
  return ended.output;
}

/** The messages in a Maildir, in the order in which the sink kept them. */
export function readMaildir(folder: string): Buffer[] {
  const place = (name: string): number => Number(/Q(\d+)\./.exec(name)?.[1] ?? 0);
  const names = readdirSync(join(folder, 'new')).sort((x, y) => place(x) - place(y));
  return names.map((name) => readFileSync(join(folder, 'new', name)));
}

/** To be relayed unaltered, with so many lines that begin with a dot. */
export function completeMessage(lines: number): Buffer {
  return Buffer.from(`${COMPLETE_HEADER}\r\n${'.a line with a dot in front, and more\r\n'.repeat(lines)}`);
}

/** Checks that `kept` is `sent` below exactly one Received header, byte for byte. */
export function assertUntouched(kept: Buffer | undefined, sent: Buffer, what: string): void {
  assert.ok(kept !== undefined, `${what}: did not arrive`);
  const added = kept.length - sent.length;
  assert.ok(added > 0 && kept.subarray(added).equals(sent), `${what}: altered, or lost its tail: ${describeDifference(kept, sent)}`);
  const header = kept.toString('latin1', 0, added);
  assert.match(header, /^Received: [^\r\n]*\r\n(?:[ \t][^\r\n]*\r\n)*$/, `${what}: something else than one Received header was added`);
}

function describeDifference(kept: Buffer, sent: Buffer): string {
  let same = 0;
  while (same < sent.length && kept[kept.length - 1 - same] === sent[sent.length - 1 - same]) same++;
  return `the last ${same} of ${sent.length} bytes are as sent; kept: ${JSON.stringify(kept.toString('latin1', 0, 400))}`;
}

/** Whether a server listens there. */
export function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, HOST, () => {
      socket.end('QUIT\r\n');
      resolve(true);
    });
    socket.on('error', () => { resolve(false); });
    socket.resume();
  });
}

/** A small dialog: MAIL with `parameters`, RCPT for each, DATA, the content dot-stuffed. Resolves with the reply to the dot, or the first refusal. */
export async function sendRaw(port: number, content: Buffer, to: string | readonly string[], parameters = '', from = 'raw@client.example'): Promise<string> {
  const talk = await SmtpTalk.start(port);
  try {
    for (const line of [`MAIL FROM:<${from}>${parameters}`, ...[to].flat().map((each) => `RCPT TO:<${each}>`), 'DATA']) {
      const reply = await talk.say(line);
      if (/^[45]/.test(reply)) return reply.trim();
    }
    talk.send(Buffer.from(wireContent(content)).toString('latin1'));
    return (await talk.reply()).trim();
  } finally {
    talk.send('QUIT\r\n');
    talk.close();
  }
}
