/**
 * A session as its commands see it: who talks, what was said so far, the transaction. Commands change what
 * belongs to them here and return an Effect (replies.ts); the session (session.ts) does the rest. Types only.
 */
import type { CameBack } from '../../returned/came-back.js';
import type { Account } from '../auth/directory.js';
import type { Exchange } from '../auth/sasl.js';
import type { Blocked } from '../options.js';
import type { RecipientParameters } from '../commands/parameters.js';
import type { Path } from '../../../smtp/address.js';
import type { Destination } from '../policy/role-addresses.js';
import type { Refusal } from './replies.js';
import type { MailTransaction, OutcomeSink } from './transaction.js';

/** A chunk of BDAT that follows its command. */
export interface Chunk {
  readonly octets: number;
  readonly isLast: boolean;
  /** It is read to its length, and then refused. */
  readonly refusal: Refusal | undefined;
}

/** A recipient whose table must be asked first. */
export interface WantedRecipient {
  /** Its RCPT. */
  readonly text: string;
  readonly path: Path;
  /** Where it leads before a table is asked. */
  readonly to: Destination;
  readonly parameters: RecipientParameters;
  /** It is an address for what comes back. */
  readonly came: CameBack | undefined;
  /** It has readers whatever a table says: where its domain leads, if the table has no better way. */
  readonly isRole: boolean;
  /** Of the table, to be asked for. */
  readonly keys: readonly string[];
  /** So many times it has been asked. */
  readonly rounds: number;
}

/** Whom XCLIENT has named. */
export interface NamedClient {
  /** '' it is not known. */
  readonly address: string;
  /** 0: not known. */
  readonly port: number;
  /** Who has authenticated at the proxy; '' nobody. */
  readonly login: string;
}

export interface InboundDialog extends OutcomeSink {
  /** Of the client, as far as it is known: by the connection, its PROXY header, or XCLIENT. */
  readonly remoteAddress: string;
  /** Likewise; 0: not known. */
  readonly remotePort: number;
  /** As remoteAddress, before any XCLIENT; '' of a balancer's own connection, whose XCLIENT is not heard. */
  readonly peerAddress: string;
  /** By all XCLIENTs so far; undefined before the first. */
  readonly named: NamedClient | undefined;
  /** The client may send anywhere (policy/relay-policy.ts). */
  readonly isTrusted: boolean;
  /** DNS blocklist that the client is on; '' none, undefined: not known yet. */
  readonly blockedBy: Blocked | '' | undefined;
  /**
   * "local", "unknown": it is the balancer's own connection, as its PROXY header says; "unavailable": the
   * proxy does not know its client, as its XCLIENT says. The address is theirs then. Else ''.
   */
  readonly proxy: string;
  /** "TLSv1.3"; '' in clear. */
  readonly tlsVersion: string;
  /** A name of the certificate that the client has shown, the one that lets it relay if any; '' none. */
  readonly certificate: string;
  /** Why that lets it relay nothing; '' when it does, or there is none. */
  readonly certificateWhy: string;
  /** What counts as one client for limits; '' until it is known, and for a balancer's own connection. */
  readonly clientKey: string;
  /** Who has authenticated; '' nobody. */
  user: string;
  /** As whom; undefined for nobody, and for a login of XCLIENT that no user of ours has. */
  account: Account | undefined;
  /** An AUTH that is under way. */
  exchange: Exchange | undefined;
  /** What an AUTH has come to, to be checked. */
  password: { readonly user: string; readonly password: string } | undefined;
  authFailures: number;
  /** What the client called itself, fit for a header; '' before EHLO or HELO, and again after STARTTLS. */
  helo: string;
  /** It said EHLO. */
  isExtended: boolean;
  /** The part of the Received field that is the same for all messages after one EHLO. */
  traceStart: Uint8Array;
  /** From MAIL until its outcome. */
  transaction: MailTransaction | undefined;
  /** A RCPT that waits for its table. */
  lookup: WantedRecipient | undefined;
  /** What the last BDAT said. */
  chunk: Chunk | undefined;
  /**
   * The session is that client's, and all that was said in it is forgotten. Returns why he is not served.
   * `isAnother`: his connection counts; else he was named before.
   */
  becomeClient(named: NamedClient, isAnother: boolean): Refusal | undefined;
  /** Forgets the transaction, and gives back what was counted for it. */
  endTransaction(): void;
}
