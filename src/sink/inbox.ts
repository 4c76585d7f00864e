/**
 * The last messages that a sink took, with their content, in memory: what `twinpost inbox` shows. Bounded in
 * number and bytes; the oldest goes first.
 */
import type { InboxAnswer, InboxMessage } from '../admin-api/sink-answers.js';

const MESSAGES_MAX = 1_000;
const BYTES_MAX = 64 * 1024 * 1024;
/** Of one message; the rest of it is not kept. */
const CONTENT_BYTES_MAX = 1024 * 1024;
/** Of its envelope: who names a thousand recipients is not to fill the memory with them. */
const RECIPIENTS_MAX = 100;
const HEADER_BYTES_MAX = 64 * 1024;
const SUBJECT_CHARACTERS_MAX = 200;

interface Kept {
  readonly row: InboxMessage;
  readonly content: Buffer;
}

export class Inbox {
  /** By number, the oldest first; of what is not in it, nothing is held. */
  readonly #kept = new Map<number, Kept>();
  #bytes = 0;
  #arrived = 0;

  add(content: Buffer, from: string, to: readonly string[]): void {
    this.#arrived += 1;
    // The bytes of a connection are written over by its next message.
    const own = Buffer.from(content.subarray(0, CONTENT_BYTES_MAX));
    const row = {
      n: this.#arrived, arrival_time: Math.floor(Date.now() / 1000), message_size: content.length,
      sender: from,
      recipients: to.slice(0, RECIPIENTS_MAX).map((address) => ({ address })), subject: subjectOf(own),
    };
    this.#kept.set(row.n, { row, content: own });
    this.#bytes += own.length;
    while (this.#kept.size > MESSAGES_MAX || this.#bytes > BYTES_MAX) {
      const oldest = this.#arrived - this.#kept.size + 1;
      this.#bytes -= this.#kept.get(oldest)?.content.length ?? 0;
      this.#kept.delete(oldest);
    }
  }

  /** The last ones behind `after`. */
  list(after: number, limit: number): InboxAnswer {
    const messages = [...this.#kept.values()].map(({ row }) => row).filter(({ n }) => n > after);
    return { messages: messages.slice(-limit), arrived: this.#arrived };
  }

  content(n: number): Buffer | undefined {
    return this.#kept.get(n)?.content;
  }
}

/** Unfolded, as it stands there. */
function subjectOf(content: Buffer): string {
  const text = content.subarray(0, HEADER_BYTES_MAX).toString('utf8');
  const end = text.indexOf('\r\n\r\n');
  const header = end < 0 ? text : text.slice(0, end);
  const [, subject = ''] = /^Subject:[ \t]*(.*(?:\r\n[ \t].*)*)/mi.exec(header) ?? [];
  const shown = subject.replace(/\r\n/g, '').slice(0, SUBJECT_CHARACTERS_MAX);
  // A part of a string holds the whole of it.
  return Buffer.from(shown).toString();
}
