/**
 * What a command comes to: every SMTP reply of the gateway, named by what it means, and what the session does
 * then. One place decides code, enhanced status code (RFC 3463, RFC 5248) and the words that a human will
 * read in a log of the client.
 *
 * A refusal also carries a reason: a short bounded word for metrics and the mail log. 421 closes the
 * connection, as RFC 5321 4.2.2 defines it. Greeting, EHLO and HELO are in commands/hello.ts: RFC 2034
 * section 3 wants them without an enhanced code.
 */
import type { Blocked } from '../options.js';

/** What the session does after the reply. */
export const Then = {
  /** Waits for the next command. */
  STAY: 0,
  /** The content follows. */
  CONTENT: 1,
  /** The client has nothing more to say: all is written, then the connection is closed. */
  FAREWELL: 2,
  /** The connection is closed, whatever the client would still say. */
  LEAVE: 3,
  /** TLS begins behind the reply. */
  SECURE: 4,
  /** A chunk of the content follows; the reply comes behind it. */
  CHUNK: 5,
  /** A response of AUTH follows. */
  RESPONSE: 6,
  /** A password is checked; the reply comes behind it. */
  CHECK: 7,
  /** A recipient is looked up by somebody else; the reply comes behind it. */
  LOOK_UP: 8,
  /** The session begins anew with a greeting, which may have to wait. */
  GREET: 9,
} as const;
export type Then = (typeof Then)[keyof typeof Then];

export interface Effect {
  /** One reply, its lines joined by CRLF, without the last line end; '': none yet. */
  readonly reply: string;
  /** Why a command was refused; '' when it was obeyed. */
  readonly reason: string;
  readonly then: Then;
  /** It brought a message nearer: it does not count against idleCommandsMax. */
  readonly isProgress: boolean;
  /** For the log: which hook refused it; which rule was broken, where the reply does not say it. */
  readonly hook?: string;
  readonly why?: string;
  /** Likewise: who was to be authenticated. */
  readonly user?: string;
  /** Likewise, of a client that has gone: in which state, and how much of a content had come. */
  readonly state?: string;
  readonly octets?: number;
}

export type Refusal = Effect;

/** A command that is obeyed. */
export function answer(reply: string, then: Then = Then.STAY, isProgress = false): Effect {
  return { reply, reason: '', then, isProgress };
}

function refusal(reason: string, reply: string, isProgress = false): Refusal {
  return { reply, reason, then: reply.startsWith('421') ? Then.LEAVE : Then.STAY, isProgress };
}

export const OK = answer('250 2.0.0 Ok');
export const FLUSHED = answer('250 2.0.0 Flushed');
export const SENDER_OK = answer('250 2.1.0 Sender ok');
export const RECIPIENT_OK = answer('250 2.1.5 Recipient ok', Then.STAY, true);
/** RFC 2034: intermediate replies carry no enhanced code. */
export const START_CONTENT = answer('354 End data with <CR><LF>.<CR><LF>', Then.CONTENT);
export const CHUNK_FOLLOWS = answer('', Then.CHUNK);
export const LARGE_CHUNK_FOLLOWS = answer('', Then.CHUNK, true);
export const BYE = answer('221 2.0.0 Bye', Then.FAREWELL);
export const START_TLS = answer('220 2.0.0 Ready to start TLS', Then.SECURE);
/** RFC 5321 7.3: an address is never confirmed. */
export const CANNOT_VERIFY = answer('252 2.1.5 Not verified; send some mail and see');
export const HELP_TEXT =
  answer('214 2.0.0 Commands: EHLO HELO MAIL RCPT DATA BDAT RSET NOOP QUIT STARTTLS VRFY HELP (RFC 5321)');

export function chunkTaken(octets: number): string {
  return `250 2.0.0 ${octets} octets received`;
}

export function queuedAs(id: string): string {
  return '250 2.0.0 Ok: queued as ' + id;
}

// Commands
export const COMMAND_UNKNOWN = refusal('command-unknown', '500 5.5.2 Command not recognized');
export const COMMAND_ABSENT = refusal('command-absent', '502 5.5.1 Command not implemented');
/** The rest of such a line can't be told from commands. */
export const LINE_TOO_LONG =
  { ...refusal('line-too-long', '500 5.5.2 Command line too long'), then: Then.LEAVE };
export const TLS_ALREADY = refusal('bad-sequence', '503 5.5.1 TLS is active already');
export const HELLO_SYNTAX = refusal('syntax', '501 Syntax: EHLO hostname');
export const HELLO_TOO_LONG = refusal('syntax', '501 Host name too long');
export const CONTROL_CHARACTER =
  refusal('control-character', '501 5.5.2 Control character or invalid UTF-8 in the command');
export const GREET_FIRST = refusal('bad-sequence', '503 5.5.1 Send EHLO or HELO first');
export const NESTED_MAIL = refusal('bad-sequence', '503 5.5.1 Sender already given; RSET starts over');
export const MAIL_FIRST = refusal('bad-sequence', '503 5.5.1 Send MAIL first');
export const NO_RECIPIENTS = refusal('no-recipients', '554 5.5.1 No valid recipients');
export const ARGUMENT_UNEXPECTED = refusal('syntax', '501 5.5.4 This command takes no argument');
export const ARGUMENT_MISSING = refusal('syntax', '501 5.5.4 This command needs an argument');
export const CHUNKS_BEGUN =
  refusal('bad-sequence', '503 5.5.1 The content comes by BDAT; RSET starts over');
export const CHUNK_AFTER_FAILURE = refusal('bad-sequence', '503 5.5.1 A chunk was refused; RSET starts over');
/** What follows may be content or commands. */
export const BDAT_SYNTAX =
  { ...refusal('syntax', '501 5.5.4 Syntax: BDAT octets [LAST]'), then: Then.LEAVE };
export const MAIL_SYNTAX = refusal('syntax', '501 5.5.4 Syntax: MAIL FROM:<address> [parameters]');
export const RCPT_SYNTAX = refusal('syntax', '501 5.5.4 Syntax: RCPT TO:<address> [parameters]');

export function badSender(rule: string): Refusal {
  return refusal('bad-address', '501 5.1.7 Bad sender address: ' + rule);
}

export function badRecipient(rule: string): Refusal {
  return refusal('bad-address', '501 5.1.3 Bad recipient address: ' + rule);
}

// What one party does in a minute (limits/rate-limits.ts)
export const TOO_MANY_CONNECTS =
  refusal('rate-connections', '421 4.7.0 Too many connections from you in a minute; come back later');
export const TOO_MANY_ERRORS = refusal('rate-errors', '421 4.7.0 Too many errors; come back later');
export const TOO_MANY_MESSAGES =
  refusal('rate-messages', '450 4.7.1 Too many messages in a minute; try again later');
export const TOO_MANY_IN_A_MINUTE =
  refusal('rate-recipients', '450 4.7.1 Too many recipients in a minute; try again later');
export const TOO_MUCH_DATA = refusal('rate-data', '450 4.7.1 Too much data in a minute; try again later');

export const GREETED_ANEW = answer('', Then.GREET);
export const BLOCKLIST_SILENT =
  refusal('blocklist-later', '450 4.7.1 It is not known yet whether you are on a blocklist; try again later');

export function onBlocklist(address: string, { list, code }: Blocked): Refusal {
  const why = `${list} answered ${code}`;
  return { ...refusal('blocklist', `554 5.7.1 Your address ${address} is on the blocklist ${list}`), why };
}

export const LOOKED_UP = answer('', Then.LOOK_UP);
export const NO_MAILBOX = refusal('no-mailbox', '550 5.1.1 No such mailbox here');
/** RFC 3463 4.4.3: a directory server failed. */
export const TABLE_UNREADABLE =
  refusal('recipient-lookup', '451 4.4.3 Recipients can not be looked up now; try again later');
/** The operator's table and routes do not fit: to be mended, not to be bounced. */
export const ROUTE_MISSING =
  refusal('recipient-route', '451 4.3.5 The next hop of this recipient is not configured; try again later');
export const ALIAS_BROKEN =
  refusal('recipient-alias', '451 4.3.5 This alias leads nowhere now; try again later');
export const LIST_TOO_LONG =
  refusal('recipient-list', '550 5.2.4 This list has more members than this server sends to at once');

// Reverse-paths that were rewritten (base/sender-rewriting.ts)
export const REPORTS_ONLY =
  refusal('rewritten-sender', '550 5.7.1 This address takes reports only, from the null reverse-path');
export const NO_SUCH_SENDER =
  refusal('rewritten-sender', '550 5.1.1 This address was not made here, or its time is over');

// Return addresses (base/return-addresses.ts)
export const RETURN_FORGED =
  refusal('returned-forged', '550 5.1.1 This address was not made here');
export const RETURN_NO_REPORT =
  refusal('returned-no-report', '550 5.7.1 This address takes reports only, from the null reverse-path');
export const RETURN_STALE =
  refusal('returned-stale', '550 5.1.1 This address was made here, and its time is over');

/** RFC 6531 3.5: 550 or 553 with X.6.7. */
export const SMTPUTF8_NEEDED =
  refusal('smtputf8-needed', '553 5.6.7 Address with non-ASCII characters needs SMTPUTF8');

// AUTH (RFC 4954 4 and 6)
export const AUTH_FAILURES_MAX = 3;
export const AUTHENTICATED = answer('235 2.7.0 Authentication succeeded');
export const PASSWORD_CHECKED = answer('', Then.CHECK);
export const AUTH_NEEDED = refusal('auth-needed', '530 5.7.0 Authentication required');
export const TLS_NEEDED = refusal('tls-needed', '538 5.7.11 Encryption required: STARTTLS first');
export const AUTHENTICATED_ALREADY = refusal('bad-sequence', '503 5.5.1 Already authenticated');
export const AUTH_IN_TRANSACTION =
  refusal('bad-sequence', '503 5.5.1 Not in the middle of a mail transaction');
export const AUTH_SYNTAX = refusal('syntax', '501 5.5.4 Syntax: AUTH mechanism [initial-response]');
export const AUTH_MALFORMED = refusal('syntax', '501 5.5.2 That is no response of this mechanism');
export const AUTH_CANCELLED = refusal('auth-cancelled', '501 5.7.0 Authentication cancelled');
export const MECHANISM_UNKNOWN = refusal('mechanism', '504 5.5.4 Mechanism not offered');
export const AUTH_FAILED = refusal('auth-failed', '535 5.7.8 Name or password is wrong');
export const AUTH_FAILED_OFTEN = refusal('auth-failed', '421 4.7.0 Too many wrong names or passwords');
/** RFC 4616 2: an authorization identity that is not the user's own. */
export const AUTH_FOREIGN =
  refusal('auth-foreign', '535 5.7.8 To act as another is not offered: say no authorization identity');
export const AUTH_LATER =
  refusal('auth-later', '454 4.7.0 Passwords can not be checked now; try again later');
/** Somebody of a directory of many (users-by-http.ts). */
export const AUTHENTICATION_OVER =
  refusal('auth-later', '451 4.7.0 Your authentication is not valid any more; connect and authenticate anew');
export const NOT_YOUR_ADDRESS = refusal('sender-denied', '550 5.7.1 This sender address is not yours');

const CHALLENGE = '334 ';

export function challenge(text: string): Effect {
  return answer(CHALLENGE + text, Then.RESPONSE);
}

/** As others may see it: whoever has all that SCRAM says can try passwords on it, as fast as he likes. */
export function shownReply(text: string): string {
  return text.startsWith(CHALLENGE) ? `${CHALLENGE}***` : text;
}

export const XCLIENT_DENIED = refusal('xclient', '550 5.7.0 XCLIENT is not taken from your address');
export const LOGIN_DENIED = refusal('xclient', '550 5.7.0 LOGIN of XCLIENT is not taken here');
export const XCLIENT_SYNTAX =
  refusal('syntax', '501 5.5.4 Syntax: XCLIENT attribute=value, each once and of those that EHLO offers');

export function badXclient(attribute: 'ADDR' | 'PORT'): Refusal {
  return refusal('syntax', `501 5.5.4 Bad value of ${attribute} in XCLIENT`);
}

// Parameters (RFC 5321 4.1.1.11: 555 for what is not recognized, 501 for a bad value)
export const PARAMETER_UNKNOWN = refusal('parameter', '555 5.5.4 Parameter not recognized');

export function badParameter(rule: string): Refusal {
  return refusal('parameter', '501 5.5.4 ' + rule);
}

// Policy and limits
/** A next hop that trusts us might relay it: its own routing may be hidden in the local part. */
export const ROUTED_LOCAL_PART = refusal('relay-denied', '550 5.7.1 Relaying by the local part denied');
export const RELAY_DENIED = refusal('relay-denied', '550 5.7.1 Relaying denied');
export const NO_ROUTE = refusal('no-route', '550 5.4.4 No route to this domain');
/** Within the 255 octets of RFC 5321 4.5.3.1.2: it is this server that has no queue for it. */
export const DOMAIN_TOO_LONG =
  refusal('no-route', '550 5.1.2 The name of this domain is too long for a queue here');
/** A list longer than the limit is no sign of a bored client. */
export const TOO_MANY_RECIPIENTS =
  refusal('too-many-recipients', '452 4.5.3 Too many recipients; send the rest in another transaction', true);
export const TOO_BIG = refusal('too-big', '552 5.3.4 Message larger than this server accepts');
/** It goes on far beyond the limit: the rest is not listened to. */
export const FAR_TOO_BIG = { ...TOO_BIG, then: Then.LEAVE };
export const TOO_MANY_CONNECTIONS = refusal('connections', '421 4.7.0 Too many connections; try again later');
export const TOO_MANY_FROM_CLIENT =
  refusal('connections-client', '421 4.7.0 Too many connections from your address');
export const TOO_MANY_COMMANDS = refusal('commands', '421 4.7.0 Too many commands without a message');
export const TOO_MANY_REFUSALS = refusal('refusals', '421 4.7.0 Too many commands were refused');
export const NO_MEMORY_TO_WAIT =
  refusal('memory', '421 4.3.1 Not enough memory to keep what you sent ahead; try again later');
/** Nothing is said to who speaks no SMTP. */
export const NOT_A_BALANCER = refusal('proxy-network', '');
const BAD_PROXY_HEADER = refusal('proxy-header', '');

export function badProxyHeader(why: string): Refusal {
  return { ...BAD_PROXY_HEADER, why };
}

export const TALKED_TOO_SOON = refusal('early-talker', '421 4.7.0 You talk before the greeting');
export const HTTP_REQUEST = refusal('http', '421 4.7.0 This is no web server');
/** Behind a refusal after which nothing can be understood any more. */
export const CLOSED_HERE = '421 4.5.0 Closing the connection';
export const IDLE = refusal('timeout', '421 4.4.2 Idle too long');
export const CONTENT_TOO_LATE = refusal('timeout', '421 4.4.2 Message took too long');
export const CONTENT_TOO_SLOW = refusal('slow', '421 4.4.2 Message came too slowly');
export const SHUTTING_DOWN = refusal('draining', '421 4.3.2 Shutting down');
export const NOT_ACCEPTING = refusal('not-ready', '421 4.3.2 Not accepting mail now; try another server');

// Content (RFC 5321 2.3.8: CR and LF only together; section 4.5.2 and SMTP smuggling)
export const BARE_CR = refusal('bare-cr', '550 5.6.0 Message has a CR without LF (RFC 5321 2.3.8)');
export const BARE_LF = refusal('bare-lf', '550 5.6.0 Message has a LF without CR (RFC 5321 2.3.8)');
export const NUL_BYTE = refusal('nul', '550 5.6.0 Message has a NUL character');
export const LEADING_BLANK =
  refusal('leading-blank', '550 5.6.0 Message begins with a blank, as no header field does (RFC 5322 2.2)');
export const LOOP = refusal('loop', '554 5.4.6 It has been here before: this is a mail loop');
export const TOO_MANY_HOPS = refusal('hops', '554 5.4.6 Too many hops; this looks like a mail loop');

// What the gateway behind says (Reception, SubmissionOutcome)
export const QUEUE_FULL =
  refusal('queue-full', '452 4.2.2 The queue of this destination is full; try again later');
/** A rule of an operator: RFC 3463 3.4 has X.3.2 for what is shut on purpose, here for one destination. */
export const NOT_TAKEN_NOW =
  refusal('operator', '452 4.3.2 Mail for this destination is not taken at this time; try again later');
export const NOT_TAKEN_FROM_YOU =
  refusal('operator', '452 4.3.2 Mail of this sender is not taken at this time; try again later');
export const SHARE_USED =
  refusal('share', '452 4.2.2 This destination has used its share of memory; try again later');
export const NO_MEMORY_NOW = refusal('memory', '452 4.3.1 Out of memory; try again later');
export const TOO_MANY_QUEUES =
  refusal('queues', '452 4.3.1 Too many destinations are queued; try again later');
/** RFC 3463 3.4: X.3.2 is a system that takes no mail at all; what holds for one destination is X.3.0. */
export const NOT_READY_NOW = refusal('not-ready', '451 4.3.2 Too few mirrors in sync; try again later');
export const RECOVERING =
  refusal('recovering', '451 4.3.0 Recovering the queue of this destination; try again later');
export const SHORT =
  refusal('short', '451 4.3.0 The queue of this destination has too few mirrors in sync; try again later');
export const NO_STORE =
  refusal('no-store', '451 4.3.0 Too few stores can be reached for this destination; try again later');
export const RESCUED =
  refusal('rescued', '451 4.3.0 The queues come back from another gateway in a moment; try again later');
export const NOT_KEPT =
  refusal('withdrawn', '451 4.3.0 Message could not be mirrored and was withdrawn; try again later');

// What hooks say (hooks/hook-chain.ts). RFC 3463 3.8: X.7.1 is a policy of whoever receives.
const HOOK_TEXT_CHARACTERS_MAX = 200;
export const HOOK_FAILED =
  refusal('hook-failed', '451 4.7.1 The message can not be checked now; try again later');
export const HOOK_BUSY =
  refusal('hook-busy', '451 4.7.1 Too many messages wait to be checked; try again later');

// Fields that say to be ours (sender-checks/own-results.ts)
export const HEADER_TOO_LONG = refusal('header-too-long', '550 5.6.0 The header of the message is too long');

// Signatures (gateway/dkim)
export const SIGNING_FAILED =
  refusal('signing-failed', '451 4.7.0 The message can not be signed now; try again later');
export const SIGNING_BUSY =
  refusal('signing-busy', '451 4.3.2 Too many messages wait to be signed; try again later');

export function refusedByHook(text: string): Refusal {
  return refusal('hook', `550 5.7.1 ${harmless(text, 'Message refused')}`);
}

export function deferredByHook(text: string): Refusal {
  return refusal('hook-later', `451 4.7.1 ${harmless(text, 'Message deferred; try again later')}`);
}

/** Text of others within a reply: one line of printable ASCII, of a length that every client takes. */
function harmless(text: string, otherwise: string): string {
  const line = text.slice(0, HOOK_TEXT_CHARACTERS_MAX).replace(/\s+/g, ' ').replace(/[^ -~]/g, '?').trim();
  return line === '' ? otherwise : line;
}

/** The connection ended within TLS's handshake. */
const TLS_FAILED = refusal('tls', '');

export function tlsFailed(why: string): Refusal {
  return { ...TLS_FAILED, why };
}

/** The connection ended within a mail transaction: nobody has the message but its client. */
const CLIENT_LOST = refusal('lost', '');

export function clientLost(state: string, octets: number, why: string): Refusal {
  return { ...CLIENT_LOST, state, octets, why };
}

/** NO_REPLY: the connection is closed without a word; for metrics and the mail log. */
export const NO_REPLY_GIVEN = refusal('no-reply', '');
