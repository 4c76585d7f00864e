/**
 * What reception needs to know (plain data, made by the configuration) and whom it talks to (ports). Limits
 * that no file sets are here with their reasons; defaults of the others: config/keys/schema.ts.
 *
 * MailLog and Metrics are small on purpose: plain arguments, called at most a few times a message, so that
 * whoever implements them decides what a line or a series costs.
 */

import type { SessionTap } from '../../smtp/session-tap.js';
import type { SenderRewriting } from '../../base/sender-rewriting.js';
import type { AuthResult } from '../../observability/reception-metrics.js';
import type { Clock, EventLog, Latin1Text, ToAscii } from '../../platform/ports.js';
import type { HandshakeResult } from '../../platform/transport.js';
import type { Reception, Router } from '../mail-types.js';
import type { MessageSigner } from '../dkim/message-signer.js';
import type { Authenticator } from './auth/authenticator.js';
import type { SenderChecks } from './sender-checks/sender-checks.js';
import type { MessageHooks } from './hooks/message-hook.js';
import type { RateLimits } from './limits/rate-limits.js';
import type { ReturnReading } from '../returned/came-back.js';
import type { ReturnPaths } from '../returned/return-paths.js';
import type { RecipientTable } from './recipients/listing.js';
import type { MailTransaction } from './session/transaction.js';

export interface InboundOptions {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
  /** The name in greeting and Received fields. */
  readonly hostName: string;
  /**
   * The listener has a certificate (platform/node/server-tls.ts): STARTTLS is offered, unless TLS comes
   * first.
   */
  readonly offersTls: boolean;
  /** Mail that must have TLS all the way is taken, within TLS: not where links to stores have none. */
  readonly offersRequireTls: boolean;
  /** For users, who must authenticate (RFC 6409); else for MTAs and terminals of known networks. */
  readonly isSubmission: boolean;
  /** TLS before the greeting (RFC 8314 3.3). */
  readonly isTlsFirst: boolean;
  /**
   * Balancers: not empty, and every connection must come from one of these networks and begin with a PROXY
   * header (CIDR).
   */
  readonly proxyNetworks: readonly string[];
  /** Peers whose XCLIENT is believed (CIDR), and whether what it says of a login is. */
  readonly xclientNetworks: readonly string[];
  readonly xclientLogin: boolean;
  /** DNS blocklists that clients who may not relay are looked for in. */
  readonly blocklists: readonly string[];
  /**
   * Our name in Authentication-Results fields (RFC 8601 2.5), of a listener where mail of strangers is
   * checked and fields of theirs that bear it are renamed; '': neither.
   */
  readonly authservId: string;
  /** For a PROXY header. */
  readonly proxyMs: number;

  /** Clients in these networks may send anywhere (CIDR). */
  readonly relayNetworks: readonly string[];
  /** So may clients with a verified certificate of one of these names. */
  readonly relayCertificates: readonly string[];
  /** Everyone may send to these; ".example.com" means the subdomains. */
  readonly relayDomains: readonly string[];

  /** Where mail to postmaster and abuse goes; '': where its domain leads. */
  readonly postmaster: string;

  /** Content bytes of a message, trace header not counted (RFC 1870). */
  readonly messageBytesMax: number;
  readonly recipientsMax: number;
  readonly hopsMax: number;
  readonly connectionsMax: number;
  /** Connections of one IPv4 address or one IPv6 /64. */
  readonly connectionsPerClientMax: number;
  /** Submitted and not answered yet: above it connections take turns in being read (limits/intake.ts). */
  readonly messagesInHandMax: number;
  /** Commands that brought no message nearer, since the last message: what a bored or broken client costs. */
  readonly idleCommandsMax: number;
  /** Commands refused in one session, whatever else it brings. */
  readonly refusalsMax: number;

  /**
   * A client that nobody knows waits so long for its greeting, and is no mail client if it does not
   * (limits/greeting.ts). 0: greet at once.
   */
  readonly greetingDelayMs: number;
  /** Between two complete commands; single bytes do not count (RFC 5321 4.5.3.2.7 asks for 5 minutes). */
  readonly idleMs: number;
  /** For a TLS handshake. */
  readonly handshakeMs: number;
  /** For the whole of DATA. */
  readonly contentMs: number;
  /** After contentGraceMs DATA must have come at this rate on average. */
  readonly contentBytesPerSecondMin: number;
  readonly contentGraceMs: number;
  /** How often the deadlines of all connections are looked at. */
  readonly deadlineTickMs: number;
}

/** What no configuration says. */
export const INBOUND_LIMITS = {
  proxyMs: 5_000,
  // Two or three turns at full load. Stores that take 25 ms to answer let 10,000 messages a second through
  // so.
  messagesInHandMax: 256,
  idleCommandsMax: 100,
  // Two lists of recipients longer than the limit by as much as it is.
  refusalsMax: 2000,
  greetingDelayMs: 100,
  handshakeMs: 30_000,
  contentGraceMs: 30_000,
  deadlineTickMs: 1000,
} as const satisfies Partial<InboundOptions>;

export type RejectStage = 'connect' | 'command' | 'auth' | 'mail' | 'rcpt' | 'data';

/** What was refused, to whom. Texts are hostile, or ''. */
export interface Refused {
  readonly stage: RejectStage;
  /** A bounded word (replies.ts). */
  readonly reason: string;
  readonly reply: string;
  /** Its "address:port". */
  readonly listener: string;
  readonly client: string;
  /** 0: not known. */
  readonly clientPort: number;
  readonly helo: string;
  /** Who has authenticated, or tried to. */
  readonly user: string;
  readonly from: string;
  readonly to: string;
  /** 0: it had none yet. */
  readonly messageId: number;
  /** Of a minute (limits/rate-limits.ts): which one. */
  readonly limit: string;
  /** Which hook it was, and which rule the reply does not say; '' none. */
  readonly hook: string;
  readonly why: string;
  /** Of a client that has gone in the middle of a mail transaction: the session's; else ''. */
  readonly state: string;
  /** Likewise, of the content that had come. */
  readonly octets: number;
  /** Of the certificate that the client has shown: its name; '' none. */
  readonly certificate: string;
  /** As in InboundDialog (session/dialog.ts). */
  readonly proxy: string;
}

export interface InboundMailLog {
  /** received() is to have the Message-ID field of the content, which is gone by then. */
  readonly wantsMessageId: boolean;
  /** A message was answered with 250, or would have been, had the client stayed; `listener` as in Refused. */
  received(message: MailTransaction, listener: string): void;
  rejected(refused: Refused): void;
}

export interface InboundMetrics {
  connectionOpened(): void;
  connectionClosed(): void;
  /** It stands in line until it is read on (limits/intake.ts). */
  connectionWaits(): void;
  /** `acceptMs` is from the final dot to the reply. */
  received(message: MailTransaction, acceptMs: number): void;
  rejected(stage: RejectStage, reason: string): void;
  /** An AUTH of a mechanism that is offered has ended. */
  authEnded(mechanism: string, result: AuthResult): void;
  /** A TLS handshake has. */
  handshakeEnded(result: HandshakeResult): void;
  /** So many Authentication-Results fields of a message said to be ours. */
  resultsRenamed(count: number): void;
  /** The certificate on disk can't be used, or can again. */
  certificateStale(isStale: boolean): void;
}

/** Addresses that are made here, by the configuration in force, whichever one a session began with. */
export interface MadeAddresses {
  /** Of what aliases send out of our domains; undefined: as it came. */
  readonly rewriting: SenderRewriting | undefined;
  /** For what comes back of mail that went out; undefined: nothing does. */
  readonly paths: ReturnPaths | undefined;
  /** Of all these, in lower-case A-labels. */
  readonly domains: readonly string[];
}

export const NONE_MADE: MadeAddresses = { rewriting: undefined, paths: undefined, domains: [] };

/** A client is on a DNS blocklist. */
export interface Blocked {
  readonly list: string;
  /** The address out of 127.0.0.0/8 by which the list says why. */
  readonly code: string;
}

/** Asks DNS blocklists (blocklists.ts). */
export interface BlocklistPort {
  /** `done` is called once, maybe before this returns, with the list that the client is on; '': none. */
  look(address: string, lists: readonly string[], done: (blocked: Blocked | '') => void): void;
}

export interface InboundPorts {
  readonly reception: Reception;
  readonly router: Router;
  readonly clock: Clock;
  /** Who may submit. */
  readonly authenticator: Authenticator | undefined;
  readonly toAscii: ToAscii;
  readonly latin1Text: Latin1Text;
  /** Who is there in the relay domains; undefined: everybody. */
  readonly recipients: RecipientTable | undefined;
  readonly made: MadeAddresses;
  /** Reads what comes back. */
  readonly reading?: ReturnReading | undefined;
  /** What one party may do in a minute; undefined: whatever it wants. */
  readonly rates: RateLimits | undefined;
  /** Asks options.blocklists; undefined: nobody does. */
  readonly blocklists: BlocklistPort | undefined;
  /** Asked about each whole message; undefined: nobody is. */
  readonly hooks: MessageHooks | undefined;
  /** Signs what comes from our own; undefined: nobody does. */
  readonly signer?: MessageSigner | undefined;
  /** Checks where mail of strangers comes from, by options.authservId; undefined: nobody does. */
  readonly senderChecks?: SenderChecks | undefined;
  /** Told what sessions say while somebody follows them; undefined: nobody may. */
  readonly tap?: SessionTap | undefined;
  /** Runs it once, when the bytes that wait at all connections have had their turn. */
  nextTurn(run: () => void): void;
  readonly log: EventLog;
  readonly mailLog: InboundMailLog;
  readonly metrics: InboundMetrics;
}
