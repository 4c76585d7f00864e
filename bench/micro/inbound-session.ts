/**
 * CPU a message of the session machine alone: bytes in, replies and submissions out, no sockets. Another build beside this
 * one, in turns, in one process, so that a few hundred messages a turn are enough and a busy machine spoils little.
 *
 *   node dist/bench/micro/inbound-session.js OTHER_BUILD [turns] [messages a turn]
 *
 * OTHER_BUILD is the `dist` of another working copy that has src/gateway/inbound/session. With sockets: inbound-server.ts.
 */
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const SESSIONS = 8;
const COMMITTED = 1;
const WARM_UP = 60_000;
const ENVELOPE = Buffer.from('MAIL FROM:<sender@example.org>\r\nRCPT TO:<rcpt@example.net>\r\nDATA\r\n');
const CONTENT = Buffer.from('From: <sender@example.org>\r\nTo: <rcpt@example.net>\r\nSubject: bench\r\nMessage-ID: <1@x>\r\n\r\n'
  + `${'x'.repeat(70)}\r\n`.repeat(13) + '.\r\n');

interface Session {
  onOpen(): void;
  onData(bytes: Uint8Array): void;
}

interface Submitted {
  settle(outcome: number): void;
}

interface DeskModule {
  testDesk(options: object): { readonly desk: object; readonly reception: { submit: (submission: Submitted) => void } };
}

interface SessionModule {
  readonly ServerSession: new (desk: object, connection: object) => Session;
}

const quiet = (): void => undefined;

/** Runs so many messages through sessions of a build. */
async function runnerOf(build: string): Promise<(messages: number) => void> {
  const load = (file: string): Promise<unknown> => import(pathToFileURL(join(build, file)).href);
  const { testDesk } = await load('test/inbound/desk.js') as DeskModule;
  const { ServerSession } = await load('src/gateway/inbound/session/session.js') as SessionModule;
  const { desk, reception } = testDesk({ offersTls: false, idleCommandsMax: 1e9 });
  const submitted: Submitted[] = [];
  reception.submit = (submission) => { submitted.push(submission); };
  // As behind a socket: one buffer for all reads.
  const read = Buffer.allocUnsafeSlow(64 * 1024);
  const feed = (session: Session, bytes: Buffer): void => {
    bytes.copy(read);
    session.onData(read.subarray(0, bytes.length));
  };
  const sessions = Array.from({ length: SESSIONS }, () => {
    const session = new ServerSession(desk, {
      remote: '127.0.0.1:1025', remoteAddress: '127.0.0.1', remotePort: 1025, bufferedBytes: 0, isFull: false,
      write: quiet, writeText: quiet, pause: quiet, resume: quiet, secure: quiet, end: quiet, finish: quiet, destroy: quiet,
    });
    session.onOpen();
    feed(session, Buffer.from('EHLO client.example\r\n'));
    return session;
  });
  return (messages) => {
    for (let done = 0; done < messages; done += SESSIONS) {
      for (const session of sessions) feed(session, ENVELOPE);
      for (const session of sessions) feed(session, CONTENT);
      if (submitted.length !== SESSIONS) throw new Error(`${String(submitted.length)} of ${String(SESSIONS)} were submitted`);
      for (const submission of submitted) submission.settle(COMMITTED);
      submitted.length = 0;
    }
  };
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? NaN;
}

async function compare(other: string, turns: number, messages: number): Promise<void> {
  const ours = resolve(fileURLToPath(import.meta.url), '../../..');
  const runs = [await runnerOf(resolve(other)), await runnerOf(ours)] as const;
  for (const run of runs) run(WARM_UP);
  const costs: readonly [number[], number[]] = [[], []];
  for (let turn = 0; turn < turns; turn++) {
    for (const index of turn % 2 === 0 ? [0, 1] as const : [1, 0] as const) {
      const before = process.cpuUsage();
      runs[index](messages);
      const { user, system } = process.cpuUsage(before);
      costs[index].push((user + system) / messages);
    }
  }
  const ratios = costs[1].map((cost, turn) => cost / (costs[0][turn] ?? NaN));
  console.log(`${other}: ${median(costs[0]).toFixed(2)} µs a message; this build: ${median(costs[1]).toFixed(2)}; `
    + `median of ${String(turns)} ratios ${median(ratios).toFixed(3)}`);
}

const [first, turns = '200', messages = '800'] = process.argv.slice(2);
if (first === undefined) {
  console.error('inbound-session: name the dist folder of another build');
  process.exitCode = 2;
} else await compare(first, Number(turns), Number(messages));
