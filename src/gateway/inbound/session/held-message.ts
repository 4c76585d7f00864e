/**
 * A whole message that waits for what hooks say of it: its transaction, and the envelope as hooks see it. It
 * keeps copies of what the next message writes over: the prefix (content/trace-header.ts). One object a
 * message, and only where there are hooks.
 */
import { formatMessageId } from '../../../base/text-id.js';
import type { JudgedMessage } from '../hooks/message-hook.js';
import type { InboundDialog } from './dialog.js';
import type { MailTransaction } from './transaction.js';

export class HeldMessage implements JudgedMessage {
  readonly transaction: MailTransaction;
  readonly messageId: number;
  readonly queueId: string;
  readonly user: string;
  /** What is put in front in any case. */
  readonly prefix: Uint8Array;
  isAbandoned = false;

  constructor(
    transaction: MailTransaction, messageId: number, traceHeader: Uint8Array, dialog: InboundDialog,
  ) {
    this.transaction = transaction;
    this.messageId = messageId;
    this.queueId = formatMessageId(messageId);
    this.user = dialog.user;
    this.prefix = traceHeader.slice();
    transaction.content.finish(this.prefix);
  }

  get client(): string { return this.transaction.client; }
  get helo(): string { return this.transaction.helo; }
  get tlsVersion(): string { return this.transaction.tls; }
  get reversePath(): string { return this.transaction.reversePath; }

  get recipients(): readonly string[] {
    return this.transaction.groups.flatMap(({ recipients }) => recipients.map(({ address }) => address));
  }

  /** What the transaction holds, and counts: nothing, once it was released. */
  get content(): readonly Uint8Array[] { return this.transaction.content.chunks; }

  get contentBytes(): number {
    return this.prefix.length + this.transaction.content.bytes;
  }
}
