/**
 * The words that the parts of a gateway share: route, envelope, submission, delivery result. Inbound fills
 * a Submission, the queue keeps entries with an Envelope, outbound takes entries and reports
 * DeliveryResults. Types and their constants only; behaviour is in the files named at each.
 */
import type { QUEUE_CLASSES } from '../admin-api/queue-orders.js';
import type { ReturnAddresses } from '../base/return-addresses.js';
import type { SecuredFacts, TlsTerms } from '../platform/transport.js';

/**
 * may: TLS where it is to be had, else in clear; encrypt: not without; verify: nor to a server that is not
 * the one that is meant. Only the last one judges certificates.
 */
export type TlsLevel = 'may' | 'encrypt' | 'verify';

export interface NextHopTls {
  readonly level: TlsLevel;
  /** Before the greeting (RFC 8314), never with `may`; else by STARTTLS (RFC 3207). */
  readonly isFirst: boolean;
  readonly terms: TlsTerms;
  /** Who takes the mail must offer REQUIRETLS within it (RFC 8689 4.2.1); always with `verify`. */
  readonly isRequired?: boolean;
  /** Who says that it must be had, where that is not the route. */
  readonly why?: string;
}

/** What senders ask of TLS (RFC 8689): must be had, all the way; or what recipients ask of it counts not. */
export type TlsNeed = 'required' | 'optional';

/** Who we are to a next hop (RFC 4954). */
export interface NextHopAuth {
  readonly user: string;
  /** The password itself is read for each connection (platform/node/password-files.ts). */
  readonly passwordFile: string;
}

/** How a host is spoken to. */
export interface HostTerms {
  /** Undefined: in clear, whatever is offered. */
  readonly tls: NextHopTls | undefined;
  /** Undefined: nobody. */
  readonly auth: NextHopAuth | undefined;
}

export interface OtherHost {
  readonly host: string;
  readonly port: number;
  /** The lowest that takes connections is used; of equals any. */
  readonly preference: number;
  /** Undefined: those of the next hop. */
  readonly terms?: HostTerms;
}

/** Where mail of a queue goes next: a host and port spoken to by SMTP (RFC 5321) or LMTP (RFC 2033). */
export interface NextHop {
  readonly protocol: 'smtp' | 'lmtp';
  readonly host: string;
  readonly port: number;
  /** `host` is the destination domain: the DNS says which hosts take its mail (RFC 5321 5.1). */
  readonly isByMx?: boolean;
  /** Hosts that take its mail as well; `host` has preference 0, those by MX have that of their record. */
  readonly others?: readonly OtherHost[];
  /** Of our addresses those that its mail leaves from; undefined: any. */
  readonly sources?: readonly string[] | undefined;
  /** Undefined: in clear, whatever is offered. */
  readonly tls?: NextHopTls | undefined;
  /** Undefined: nobody. Never by MX, but for a fallback: a password goes to hosts that the operator named. */
  readonly auth?: NextHopAuth | undefined;
  /** Of the mail of this queue (router.ts); undefined: nothing was asked. */
  readonly tlsNeed?: TlsNeed;
}

export type QueueClass = (typeof QUEUE_CLASSES)[number];

/** G3: strict keeps one message in flight; fifo starts them in order with `concurrency` in flight. */
export type Ordering = 'fifo' | 'strict';

/**
 * What the routing table says of a domain and a class, without DNS. Compared by identity; where it leads, its
 * limits and return addresses change when the configuration is read anew (router.ts).
 */
export interface Route {
  /** Name of the queue: what it is called in status, logs and metrics. */
  readonly queueName: string;
  readonly queueClass: QueueClass;
  /** Class and name as its entries carry them (label.ts). */
  readonly label: string;
  readonly nextHop: NextHop;
  readonly ordering: Ordering;
  /** Messages in flight to the next hop at most; 1 when strict. */
  readonly concurrency: number;
  /** Messages the queue may hold; past it RCPT gets 452. */
  readonly lengthMax: number;
  /** Name of the route whose return addresses its mail leaves with (base/return-addresses.ts). */
  readonly verp?: string | undefined;
}

/** Where a message comes from, for routes that are for some mail only. */
export interface MailOrigin {
  /** '' is the null reverse-path. */
  readonly reversePath: string;
  /** "address:port" that it came in by; '' for what this gateway makes itself. */
  readonly listener: string;
}

export const OWN_ORIGIN: MailOrigin = { reversePath: '', listener: '' };

/** A route that mail to some domains may go by, and the queue that it waits in then. */
export interface Way {
  readonly routeName: string;
  /** Of several, what their names have in common, with `*`. */
  readonly queueName: string;
  /** Its mail is to one domain. */
  readonly isOwn: boolean;
}

/** Looks up routes (gateway/queue/router.ts). Domains are lower-case ASCII (A-labels). */
export interface Router {
  /** The route for mail to this address in `domain`; undefined: none, or no name of a queue is so long. */
  route(domain: string, queueClass: QueueClass, address: string, origin: MailOrigin): Route | undefined;
  /** There is a route, and no name of a queue of it is so long. */
  isTooLong(domain: string, address: string, origin: MailOrigin): boolean;
  /** As route(), of the route of this name, whatever mail it is for. */
  routeNamed(
    name: string, domain: string, queueClass: QueueClass, reversePath: string,
  ): Route | undefined;
  /** The route of a queue that came back from the stores under this name. */
  routeOfQueue(queueName: string, queueClass: QueueClass): Route | undefined;
  /** The queue beside it for mail of which its sender asks that. */
  withTls(route: Route, need: TlsNeed): Route;
  /** Every configured route for mail. */
  mailRoutes(): readonly Route[];
  /** All that mail to a domain, or to those of a pattern with `*`, may go by, whatever their conditions. */
  waysTo(pattern: string): readonly Way[];
  /** What the configuration calls it; '' of one that was not found here. */
  nameOf(route: Route): string;
  /** All mail of its queue is to this domain; '' of one that is not a domain's own. */
  domainOf(route: Route): string;
}

/** RFC 3461 NOTIFY as bits; 0 is the default (failure, and delay where configured). */
export const NOTIFY_NEVER = 1;
export const NOTIFY_SUCCESS = 2;
export const NOTIFY_FAILURE = 4;
export const NOTIFY_DELAY = 8;

/** All that a next hop is told of them. */
export const NOTIFY_BITS = 15;
/**
 * Of our own, beside them. An alias stood for this one, and its success was to be told: by us, as "relayed",
 * once a next hop took it.
 */
export const ALIAS_SUCCESS = 16;
/** We led mail of others out of our domains: its reverse-path is rewritten (base/sender-rewriting.ts). */
export const ALIAS_LEAVES = 32;
/** It is not the address that was given at RCPT: ORCPT tells that, for the log. */
export const ALIAS_CHANGED = 64;
/**
 * Beside ALIAS_SUCCESS: the alias led to several addresses. That is told, as "expanded", once it is known
 * what became of this one, whatever that is (RFC 3461 5.2.7.3).
 */
export const ALIAS_EXPANDED = 128;
/** Beside ALIAS_CHANGED: ORCPT is the address of RCPT, and none that the client chose. */
export const ALIAS_WRITTEN = 256;
/** It is itself the list that led to it, which keeps a copy: a table leads it to all of them again. */
export const ALIAS_KEEPS = 512;

/** A forward-path with its DSN parameters, as received. */
export interface Recipient {
  /** The address as the client gave it, without angle brackets and source route. */
  readonly address: string;
  /** Bits of NOTIFY, and our own. */
  readonly notify: number;
  /** RFC 3461 ORCPT value ("rfc822;bob@example.com", xtext as received) or ''. */
  readonly orcpt: string;
}

/** Envelope flags. By its bytes, whatever BODY said: the next hop must offer 8BITMIME (RFC 6152). */
export const ENVELOPE_8BIT = 1;
/** The client asked for SMTPUTF8, and the top header needs it (RFC 6531 3.1). Addresses show that alone. */
export const ENVELOPE_UTF8_HEADER = 2;
/** The content has a line that starts with a dot: it must be dot-stuffed when sent (RFC 5321 4.5.2). */
export const ENVELOPE_DOT_LINES = 4;
/** The client said REQUIRETLS (RFC 8689): next hops and reports are told it. */
export const ENVELOPE_REQUIRETLS = 8;
/** Its client may not relay: it gets no return address (`verp`), for which SPF of our domain would vouch. */
export const ENVELOPE_BY_ANYBODY = 16;
/** Others may follow; unknown bits are kept. */

/** DSN RET (RFC 3461 4.3): 0 not given. */
export const RET_FULL = 1;
export const RET_HEADERS = 2;

/** All that is known of an entry besides its content (gateway/queue/envelope.ts encodes it as the head). */
export interface Envelope {
  readonly messageId: number;
  /** Queue that the entry stands in. */
  readonly queueClass: QueueClass;
  readonly queueName: string;
  /** '' is the null reverse-path. */
  readonly reversePath: string;
  readonly recipients: readonly Recipient[];
  readonly flags: number;
  readonly ret: number;
  /** RFC 3461 ENVID, xtext as received, or ''. */
  readonly envid: string;
  readonly arrivalWallMs: number;
  readonly expiryWallMs: number;
  readonly client: string;
  readonly helo: string;
}

/** How a submission ended, seen from the client (G1, G9). */
export const COMMITTED = 1; // 250: every in-sync mirror of every queue has it
export const REFUSED = 2; // 451 4.3.0: withdrawn everywhere, acknowledged by every in-sync mirror
export const NO_MEMORY = 3; // 452 4.3.1: nothing was numbered
export const NO_REPLY = 4; // neither could be had: close the connection without a reply
export const NOT_READY = 5; // 451 4.3.2: fewer than min_replicas in sync; nothing was numbered
/** How a report gets to a sender. */
export interface ReportWay {
  readonly route: Route;
  /** The recipient: not always as the sender is written. */
  readonly address: string;
}

/** Why there is none, in the words of the log. */
export const NO_WAY_BACK = 'no route to the reverse-path';
/** It was made here, and is forged, too old, or one whose reports are discarded. */
export const NOBODY_BEHIND = 'reverse-path of ours that leads to nobody';
export type NoReportWay = typeof NO_WAY_BACK | typeof NOBODY_BEHIND;

/**
 * NOT_READY: somebody is asked, and `onKnown`, which may be called before this returns, says when to look
 * again; or nobody can tell now, and it is not called.
 */
export type FindReportWay =
  (reversePath: string, onKnown?: () => void) => ReportWay | typeof NOT_READY | NoReportWay;

export type SubmissionOutcome =
  typeof COMMITTED | typeof REFUSED | typeof NO_MEMORY | typeof NO_REPLY | typeof NOT_READY;

/** Recipients of one message that share a queue. */
export interface RecipientGroup {
  readonly route: Route;
  readonly recipients: readonly Recipient[];
}

/** A whole message as inbound hands it over, before it has any number. */
export interface Submission {
  /** From Reception.nextMessageId(), also in the Received header. */
  readonly messageId: number;
  readonly reversePath: string;
  readonly groups: readonly RecipientGroup[];
  /** Content as it will be sent on: trace header first, CRLF, not dot-stuffed. Gone when submit() returns. */
  readonly chunks: readonly Uint8Array[];
  readonly contentBytes: number;
  readonly flags: number;
  readonly ret: number;
  readonly envid: string;
  readonly client: string;
  readonly helo: string;
  /** Called exactly once, maybe before submit() returns. */
  settle(outcome: SubmissionOutcome): void;
}

/**
 * Why a recipient or a message can't be taken now; '' when it can.
 *
 *   draining     the gateway stops            not-ready   it takes no mail at all (G6)
 *   recovering   the queue is still to come back from the stores
 *   short        none of the partitions where it may stand can commit
 *   no-store     no partition takes mail
 *   rescued      none does, for another gateway holds them, and hands them back
 *   operator     an operator wants no mail for it now (orders/queue-rules.ts)
 *   memory, share, queue-full, queues         limits (G7)
 */
export type AdmissionVerdict =
  '' | 'draining' | 'not-ready' | PlaceRefusal | 'operator' | 'memory' | 'share' | 'queue-full';

/** Why no queue has new mail of a route, nor can be made for it (queue-registry.ts). */
export type PlaceRefusal = 'recovering' | 'short' | 'no-store' | 'rescued' | 'queues';

/** What inbound may ask of the gateway (gateway/daemon/core.ts). */
export interface Reception {
  readonly accepting: boolean;
  nextMessageId(): number;
  admit(route: Route): AdmissionVerdict;
  /**
   * Whether an operator wants no new mail of this sender or client (orders/queue-rules.ts). `senderKey`: the
   * reverse-path as a table has it.
   */
  refusesFrom(reversePath: string, client: string, senderKey: string): boolean;
  /** The same of an address that is written to, or that an alias leads to. `domain`: as routes have it. */
  refusesTo(address: string, domain: string): boolean;
  /** Counts bytes in transit (being received) against the memory limit; false = answer 452 4.3.1. */
  reserve(bytes: number): boolean;
  release(bytes: number): void;
  submit(submission: Submission): void;
}

/** What a next hop said about one recipient. */
export const DELIVERED = 1;
export const DEFERRED = 2;
export const FAILED = 3;
export type RecipientStatus = typeof DELIVERED | typeof DEFERRED | typeof FAILED;

export interface RecipientResult {
  readonly status: RecipientStatus;
  /** SMTP reply code, 0 when there was none (connection trouble). */
  readonly code: number;
  /** Enhanced status code ("4.4.1"); made up from the code where the peer gave none. */
  readonly enhanced: string;
  /** One line, as received but bounded to 512 characters. */
  readonly text: string;
}

/** The end of one delivery attempt; results stand in the order of the recipients given out. */
export interface DeliveryResult {
  /** Undefined: not tried, or deferred and told before goesOn (outbound/cut-delivery.ts). */
  readonly results: readonly (RecipientResult | undefined)[];
  /** "host[address]:port" for the log. */
  readonly relay: string;
  /** Milliseconds for connection set-up and for the transmission (c and d of `delays`). */
  readonly setupMs: number;
  readonly transmitMs: number;
  /** True when the final dot had been sent and no reply came: the next hop may have it (RFC 1047). */
  readonly dotUnanswered: boolean;
  /** True when the next hop took over the DSN requests (RFC 3461 5.2.1): no success report is due from us. */
  readonly dsnPassedOn?: boolean;
  /** True when no session came about: no attempt is counted, it keeps its place, and outbound backs off. */
  readonly notAttempted?: boolean;
  /** True when our right to the queue was gone before the dot (G5): no attempt, no fault of the next hop. */
  readonly noRight?: boolean;
  /** True when the attempt is not over: it is counted when it is. What has no result is tried at once. */
  readonly goesOn?: boolean;
  /** What the connection had of TLS; undefined: it was in clear, or none came about. */
  readonly tls?: SecuredFacts | undefined;
  /** Which of our addresses it came from, where the configuration names some; '' or undefined: not said. */
  readonly source?: string | undefined;
  /** Where each recipient had a transaction of its own; else what is above is true of all. */
  readonly own?: readonly (OwnAttempt | undefined)[];
}

/** The transaction of one recipient alone. */
export interface OwnAttempt
  extends Pick<DeliveryResult, 'relay' | 'source' | 'setupMs' | 'transmitMs' | 'tls'>,
    Pick<Delivery, 'reversePath'> {}

/** A queue as outbound sees it. */
export interface DeliveryQueue {
  readonly route: Route;
  /** Entries that are due and committed, in order, and not in flight. */
  readonly readyCount: number;
  /** Of all that is in it. */
  readonly bytes: number;
}

/** An entry handed out for one delivery attempt. */
export interface Delivery {
  /** Opaque number of the entry; valid until settle. */
  readonly entry: number;
  readonly queue: DeliveryQueue;
  readonly envelope: Envelope;
  /** As the next hop is told it: that of the envelope, or an address that stands for it. */
  readonly reversePath: string;
  /** Indexes into envelope.recipients of those that are still to be tried. */
  readonly pending: readonly number[];
  readonly contentBytes: number;
  /**
   * Each recipient has a reverse-path of its own, by this, but for those of ALIAS_LEAVES. Of several
   * recipients reversePath is that of these.
   */
  readonly verp?: Pick<ReturnAddresses, 'written'>;
}

/** Where outbound gets its work (gateway/daemon/core.ts). */
export interface DeliverySource {
  /** The next due entry of the queue, now in flight, or undefined. */
  take(queue: DeliveryQueue): Delivery | undefined;
  /** Copies `bytes` of the content, from `from` on, to target at `at`. May be called until settle. */
  copyContent(delivery: Delivery, target: Uint8Array, at: number, from: number, bytes: number): void;
  /** Ends the attempt: results[i] belongs to delivery.pending[i]. Called exactly once for each take. */
  settle(delivery: Delivery, result: DeliveryResult): void;
}

/** Why nothing goes to a next hop: what went wrong there last. */
export interface Outage {
  /** "host:port", or the domain to which there is no way. */
  readonly relay: string;
  readonly why: RecipientResult;
}

/** Told when a queue has work; outbound implements it. Called at most once a turn and queue. */
export interface DeliverySink {
  onReady(queue: DeliveryQueue): void;
  /** An operator wants the next hop of the queue tried now, whatever is known of it. */
  hasten(queue: DeliveryQueue): void;
  /** It is another process's now: nothing more is taken from it. What is in flight still ends by settle(). */
  forget(queue: DeliveryQueue): void;
  /** While none of the hosts that mail of the queue may go to answers, or none is known. */
  outageOf(queue: DeliveryQueue): Outage | undefined;
}
