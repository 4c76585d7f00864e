/**
 * A whole message that waits: for what is found out about its sender, for what hooks say of it, for its
 * signature: its transaction, and the envelope as hooks see it. It keeps copies of what the next message
 * writes over: the prefix (content/trace-header.ts). One object a message, and only where somebody is waited
 * for.
 */
import { joined } from '../../../base/joined.js';
import { formatMessageId } from '../../../base/text-id.js';
import type { JudgedEnvelope, JudgedMessage } from '../hooks/message-hook.js';
import { withDomain } from '../../../smtp/address.js';
import type { InboundDialog } from './dialog.js';
import type { MailTransaction } from './transaction.js';

export class HeldMessage implements JudgedMessage {
  readonly transaction: MailTransaction;
  readonly messageId: number;
  readonly envelope: JudgedEnvelope;
  /** What is put in front as far as that is known. */
  prefix: Uint8Array;
  isAbandoned = false;

  constructor(
    transaction: MailTransaction, messageId: number, traceHeader: Uint8Array, dialog: InboundDialog,
    hostName: string,
  ) {
    this.transaction = transaction;
    this.messageId = messageId;
    const { client: address, proxy, helo, tls: tlsVersion, reversePath, groups } = transaction;
    const client = proxy === '' ? address : '';
    this.envelope = {
      queueId: formatMessageId(messageId), client, helo, user: dialog.user, tlsVersion, reversePath,
      recipients: transaction.namedRecipients.map((named) => withDomain(named, hostName)),
      destinations: groups.flatMap(({ recipients }) => recipients.map(({ address }) => address)),
    };
    this.prefix = traceHeader.slice();
    transaction.content.finish(this.prefix);
  }

  /** Behind the prefix, in front of what the client sent. */
  addFields(fields: Uint8Array): void {
    if (fields.length > 0) this.#setPrefix(joined([this.prefix, fields]));
  }

  /** On top. */
  addAbove(fields: Uint8Array): void {
    this.#setPrefix(joined([fields, this.prefix]));
  }

  #setPrefix(prefix: Uint8Array): void {
    this.prefix = prefix;
    this.transaction.content.finish(prefix);
  }

  /** What the client sent. */
  get pieces(): readonly Uint8Array[] { return this.content.slice(1); }

  /** What the transaction holds, and counts: nothing, once it was released. */
  get content(): readonly Uint8Array[] { return this.transaction.content.chunks; }

  get contentBytes(): number {
    return this.prefix.length + this.transaction.content.bytes;
  }
}
