/** The line to a register that another process of this machine keeps: core/wire.ts over its unix socket. */
import net from 'node:net';
import { nextDelayMs } from '../../base/backoff.js';
import { BrokenRule } from '../../base/json-shape.js';
import { LINE_BYTES_MAX, decodeReply, encodeHello, encodeRequest, helloRule } from '../core/wire.js';
import type { Answer, Reply, Request } from '../core/wire.js';
import type {
  ChangesHandler,
  LeaseAnswer,
  Line,
  LineHandlers,
  LineWrite,
  RangeAnswer,
  TransactionAnswer,
} from '../line.js';
import type { Range } from '../port.js';
import { LinesOfText } from './lines-of-text.js';

const CONNECT_AGAIN = { firstMs: 50, factor: 2, maxMs: 1_000, jitter: 0.2 };
/** For the greeting: the other process may stand still. */
const GREETING_MS = 2_000;

/** A request without its id, each by its own kind. */
type Call = Request extends infer Each ? (Each extends Request ? Omit<Each, 'id'> : never) : never;

interface Pending {
  /** Kinds of answers that fit the call. */
  readonly kinds: readonly Answer['kind'][];
  readonly done: (answer: never) => void;
}

export class SocketLine implements Line {
  readonly #path: string;
  readonly #pending = new Map<number, Pending>();
  readonly #watches = new Map<number, ChangesHandler>();
  #handlers: LineHandlers | undefined;
  #socket: net.Socket | undefined;
  #isUp = false;
  #isClosed = false;
  #nextId = 1;
  #attempts = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  open(handlers: LineHandlers): void {
    this.#handlers = handlers;
    this.#connect();
  }

  transact(writes: readonly LineWrite[], done: (answer: TransactionAnswer) => void): void {
    this.#call({ call: 'transact', writes }, { kinds: ['settled', 'refused', 'unknown'], done });
  }

  range(ranges: readonly Range[], done: (answer: RangeAnswer) => void): void {
    this.#call({ call: 'range', ranges }, { kinds: ['entries', 'failed'], done });
  }

  watch(prefixes: readonly string[], afterRevision: number, handler: ChangesHandler): { close(): void; } {
    const id = this.#send({ call: 'watch', prefixes, after: afterRevision });
    this.#watches.set(id, handler);
    return {
      close: () => {
        if (this.#watches.delete(id)) this.#write(encodeRequest({ id, call: 'unwatch' }));
      },
    };
  }

  grant(session: string, ttlMs: number, done: (answer: LeaseAnswer) => void): void {
    this.#call({ call: 'grant', session, ttlMs }, { kinds: ['granted', 'failed'], done });
  }

  renew(session: string, done: (answer: LeaseAnswer) => void): void {
    this.#call({ call: 'renew', session }, { kinds: ['granted', 'gone', 'failed'], done });
  }

  revoke(session: string, done: (answer: LeaseAnswer) => void): void {
    this.#call({ call: 'revoke', session }, { kinds: ['gone', 'failed'], done });
  }

  /** onDown comes with the socket's 'close'. */
  reset(why: string): void {
    this.#socket?.destroy(new Error(why));
  }

  close(): void {
    this.#isClosed = true;
    this.#isUp = false;
    clearTimeout(this.#timer);
    this.#pending.clear();
    this.#watches.clear();
    this.#socket?.destroy();
  }

  #connect(): void {
    const socket = net.connect({ path: this.#path });
    this.#socket = socket;
    let why = 'the process that keeps the register has closed the connection';
    const lines = new LinesOfText(LINE_BYTES_MAX, (line) => {
      const rule = this.#onLine(line);
      if (rule !== '') socket.destroy(new Error(rule));
      return rule === '';
    });
    socket.on('connect', () => {
      this.#write(encodeHello());
    });
    socket.on('data', (chunk: Buffer) => {
      if (!lines.push(chunk) && !socket.destroyed) socket.destroy(new Error('line too long'));
    });
    socket.on('error', (error) => {
      why = error.message;
    });
    socket.on('close', () => {
      this.#onClose(why);
    });
    this.#timer = setTimeout(() => {
      socket.destroy(new Error('it does not answer'));
    }, GREETING_MS);
  }

  #onClose(why: string): void {
    clearTimeout(this.#timer);
    if (this.#isClosed) return;
    this.#isUp = false;
    this.#pending.clear();
    this.#watches.clear();
    this.#timer = setTimeout(() => {
      this.#connect();
    }, nextDelayMs(this.#attempts, CONNECT_AGAIN, Math.random));
    this.#attempts += 1;
    this.#handlers?.onDown(
      `the register at ${this.#path} is not reached: ${why}: is the process that keeps it running?`,
    );
  }

  /** '' or the rule that the other end broke. */
  #onLine(line: string): string {
    if (this.#isClosed) return '';
    if (!this.#isUp) {
      const rule = helloRule(line);
      if (rule !== '') return rule;
      clearTimeout(this.#timer);
      this.#isUp = true;
      this.#attempts = 0;
      this.#handlers?.onUp(this.#path);
      return '';
    }
    const reply = decodeReply(line);
    return reply instanceof BrokenRule ? reply.rule : this.#onReply(reply);
  }

  #onReply(reply: Reply): string {
    const { id } = reply;
    if ('answer' in reply) {
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      if (pending === undefined || !pending.kinds.includes(reply.answer.kind)) {
        return 'answer to no such call';
      }
      // Its kind was just seen to be one of this call.
      (pending.done as (answer: Answer) => void)(reply.answer);
    } else if ('changes' in reply) {
      this.#watches.get(id)?.onChanges(reply.changes);
    } else {
      const handler = this.#watches.get(id);
      this.#watches.delete(id);
      handler?.onBroken(reply.broken);
    }
    return '';
  }

  #call(call: Call, pending: Pending): void {
    this.#pending.set(this.#send(call), pending);
  }

  #send(call: Call): number {
    const id = this.#nextId++;
    this.#write(encodeRequest({ ...call, id }));
    return id;
  }

  #write(text: string): void {
    if (this.#socket?.destroyed === false) this.#socket.write(`${text}\n`);
  }
}
