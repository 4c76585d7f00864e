/**
 * The mail log: one JSON line for each thing that happens to a message or a recipient, under the words that
 * operators grep for. It owns the lines of the current turn of the event loop.
 *
 *   {"level":"info","time":"…","event":"received","gateway":"gw-1","queue_id":"…","from":…,"to":…,…}
 *   {"level":"info","time":"…","event":"delivered","gateway":"gw-1","queue_id":"…","to":…,"relay":…,
 *    "attempt":1,"status":"sent","dsn":"2.0.0","reply":"250 OK","delay":0.03,"delays":"0.01/0/0/0.02"}
 *
 *   delays = a/b/c/d: before the queue (received, not yet committed), in the queue, connection set-up,
 *   transmission; seconds. Without d and c: time in the queue is what is left of delay.
 *
 * The bound: at most 8 µs of CPU for the received and delivered lines of a message. So lines are written by
 * hand into one buffer (line-writer.ts), which goes once a turn to the destination; that one is asynchronous
 * and bounded, loses lines rather than block, and is shared with the event log
 * (platform/node/log-destination.ts).
 *
 * What is not here: events of links, mirrors, recovery (platform EventLog), counters (gateway-metrics.ts).
 */
import { verifiedText } from '../platform/transport.js';
import type { SecuredFacts } from '../platform/transport.js';
import { LineWriter, fieldName } from './line-writer.js';
import type { FieldName } from './line-writer.js';

/** Where the lines of a turn go; it counts what it loses. */
export interface LineDestination {
  write(lines: string): void;
}

export interface MailLogOptions {
  /** Id of the gateway, on every line. */
  readonly gateway: string;
  /** False: `mail: off`; every call returns at once. */
  readonly enabled: boolean;
}

/** A message was accepted: its 250 is being sent. */
export interface ReceivedFields {
  readonly queueId: string;
  /** Queue of the first recipient; nrcpt says if there are more. */
  readonly queue: string;
  /** Message-ID header field, '' when not known. */
  readonly messageId: string;
  readonly from: string;
  /** First recipient. */
  readonly to: string;
  /** "address:port" that it came in by. */
  readonly listener: string;
  readonly client: string;
  /** 0: not known. */
  readonly clientPort: number;
  readonly helo: string;
  readonly size: number;
  readonly nrcpt: number;
  /** TLS version of the client's session, '' when in clear. */
  readonly tls: string;
  /** Who has authenticated, '' nobody. */
  readonly user: string;
  /** By which name of its certificate the client may relay, '' by none. */
  readonly certificate: string;
  /** "local", "unknown", "unavailable": a balancer's or proxy's address, and no client's (docs/LOG.md). */
  readonly proxy: string;
  /** "spf=pass dkim=none dmarc=pass"; '' its sender was not checked. */
  readonly authentication: string;
  /** In-sync mirrors that acknowledged it, and the epoch of their set. */
  readonly mirrors: number;
  readonly epoch: number;
  /** From the final dot to the commit. */
  readonly delayMs: number;
}

/** What happened to one recipient. */
export interface RecipientFields {
  readonly queueId: string;
  readonly queue: string;
  readonly from: string;
  readonly to: string;
  readonly size: number;
  /** "host[address]:port", '' when no connection came about. */
  readonly relay: string;
  /** Our address that it came from, where the configuration names some; else ''. */
  readonly source: string;
  /** What the connection had of TLS; undefined in clear. */
  readonly tls: SecuredFacts | undefined;
  /** 1 for the first; 0: nobody was connected to. */
  readonly attempt: number;
  /** As it was given at RCPT, where an alias changed it; else ''. */
  readonly origTo: string;
  /** What the next hop was told instead of `from`, where that was rewritten; else ''. */
  readonly mailFrom: string;
  /** Of one that expired: what was said of it last; '' nothing. */
  readonly last: string;
  /** Enhanced status code. */
  readonly dsn: string;
  /** What the next hop said, one line. */
  readonly reply: string;
  /** From the acceptance of the message until now. */
  readonly delayMs: number;
  readonly beforeQueueMs: number;
  readonly setupMs: number;
  readonly transmitMs: number;
}

/** A client was refused something: a recipient, a message, a connection. */
export interface RejectedFields {
  /** Who has authenticated, or tried to; '' nobody. */
  readonly user: string;
  /** '' when it had none yet. */
  readonly queueId: string;
  /** "client.recipients"; '' when no limit of a minute was met. */
  readonly limit: string;
  /** Which hook refused it; '' none. */
  readonly hook: string;
  /** Which rule was broken, where the reply does not say it; '' none. */
  readonly why: string;
  /** Of a client that has gone within a mail transaction: the session's, and what of the content had come. */
  readonly state: string;
  readonly octets: number;
  /** A name of the certificate that the client has shown; '' none. */
  readonly certificate: string;
  /** As in ReceivedFields. */
  readonly proxy: string;
  /** Word of the reason, as in twinpost_rejected_total{reason}. */
  readonly reason: string;
  /** "address:port". */
  readonly listener: string;
  readonly client: string;
  /** 0: not known. */
  readonly clientPort: number;
  readonly helo: string;
  readonly from: string;
  readonly to: string;
  /** The reply we gave. */
  readonly reply: string;
}

/**
 * A recipient was ended without delivery and without report (G2): by an operator, null reverse-path,
 * NOTIFY=NEVER.
 */
export interface RemovedFields {
  readonly queueId: string;
  readonly queue: string;
  readonly from: string;
  readonly to: string;
  readonly reason: string;
}

/** A report came back about a message that had left. What it says is the word of whoever wrote it. */
export interface ReturnedFields {
  /** Of the message that it is about. */
  readonly queueId: string;
  /** Of the mail that brought it. */
  readonly reportId: string;
  readonly route: string;
  /** Whom the message was from; '' not known here. */
  readonly from: string;
  /** Whom it went to, where the report names him; else ''. */
  readonly to: string;
  /** Whom else the report names; else ''. */
  readonly finalTo: string;
  /** As in twinpost_returned_total{class}. */
  readonly resultClass: string;
  readonly action: string;
  readonly dsn: string;
  /** Of the server that refused it. */
  readonly reply: string;
  readonly relay: string;
}

/** A reader's complaint, or another feedback report. */
export interface FeedbackFields {
  readonly reportId: string;
  /** As in twinpost_feedback_total{type}. */
  readonly type: string;
  /** It holds a return address that was made here: what is from it is true. */
  readonly isVerified: boolean;
  readonly route: string;
  readonly queueId: string;
  readonly from: string;
  /** The rest is the word of whoever wrote it. */
  readonly mailFrom: string;
  readonly to: string;
  readonly userAgent: string;
  readonly sourceIp: string;
  readonly arrivalDate: string;
}

/** About 100 messages of a turn; hostile lines fill it sooner and are then handed over within the turn. */
const BUFFER_BYTES = 96 * 1024;
/** More than any line has. */
const LINE_FIELDS_MAX = 20;
/** Of whom a refusal names: strangers choose it, and each character may take six bytes. */
const REFUSED_CHARACTERS_MAX = 100;

const F = {
  queueId: fieldName('queue_id'),
  queue: fieldName('queue'),
  messageId: fieldName('message_id'),
  from: fieldName('from'),
  to: fieldName('to'),
  listener: fieldName('listener'),
  client: fieldName('client'),
  clientPort: fieldName('client_port'),
  helo: fieldName('helo'),
  size: fieldName('size'),
  nrcpt: fieldName('nrcpt'),
  tls: fieldName('tls'),
  cipher: fieldName('cipher'),
  verified: fieldName('verified'),
  user: fieldName('user'),
  certificate: fieldName('certificate'),
  proxy: fieldName('proxy'),
  state: fieldName('state'),
  bytes: fieldName('bytes'),
  limit: fieldName('limit'),
  hook: fieldName('hook'),
  why: fieldName('why'),
  origTo: fieldName('orig_to'),
  mailFrom: fieldName('mail_from'),
  last: fieldName('last'),
  authentication: fieldName('authentication'),
  mirrors: fieldName('mirrors'),
  epoch: fieldName('epoch'),
  relay: fieldName('relay'),
  source: fieldName('source'),
  attempt: fieldName('attempt'),
  status: fieldName('status'),
  dsn: fieldName('dsn'),
  reply: fieldName('reply'),
  reason: fieldName('reason'),
  delay: fieldName('delay'),
  delays: fieldName('delays'),
  reportId: fieldName('report_id'),
  route: fieldName('route'),
  finalTo: fieldName('final_to'),
  resultClass: fieldName('class'),
  action: fieldName('action'),
  type: fieldName('type'),
  userAgent: fieldName('user_agent'),
  sourceIp: fieldName('source_ip'),
  arrivalDate: fieldName('arrival_date'),
} as const satisfies Record<string, FieldName>;

const HEAD = asciiBytes('{"level":"info","time":"');
const SLASH = 0x2f;
const QUOTE = 0x22;
const CLOSE_BRACE = 0x7d;
const LINE_FEED = 0x0a;

export class MailLog {
  #enabled: boolean;
  /** When that was changed last, Unix time; undefined: not since the start. */
  switchedWallMs: number | undefined;
  readonly #destination: LineDestination;
  readonly #writer = new LineWriter(BUFFER_BYTES);
  /** `","event":"delivered","gateway":"gw-1"` of each event. */
  readonly #event: Readonly<Record<'received' | 'delivered' | 'deferred' | 'bounced' | 'expired' | 'removed'
    | 'rejected' | 'returned' | 'feedback', Uint8Array>>;
  /** "2026-01-31T10:00:00.123Z", its milliseconds rewritten in place. */
  readonly #time = new Uint8Array(24);
  #timeMs = -1;
  #timeSecond = -1;
  #scheduled = false;
  readonly #flushBound = (): void => {
    this.#scheduled = false;
    this.flush();
  };

  constructor(options: MailLogOptions, destination: LineDestination) {
    this.#enabled = options.enabled;
    this.#destination = destination;
    const head = (event: string): Uint8Array =>
      asciiBytes(`","event":"${event}","gateway":${JSON.stringify(options.gateway)}`);
    this.#event = {
      received: head('received'),
      delivered: head('delivered'),
      deferred: head('deferred'),
      bounced: head('bounced'),
      expired: head('expired'),
      removed: head('removed'),
      rejected: head('rejected'),
      returned: head('returned'),
      feedback: head('feedback'),
    };
  }

  /** False: nothing is written, so nothing needs to be gathered for it. */
  get enabled(): boolean {
    return this.#enabled;
  }

  set enabled(isEnabled: boolean) {
    if (isEnabled !== this.#enabled) this.switchedWallMs = Date.now();
    this.#enabled = isEnabled;
  }

  received(fields: ReceivedFields): void {
    if (!this.#enabled) return;
    const w = this.#begin(this.#event.received);
    w.string(F.queueId, fields.queueId);
    w.string(F.queue, fields.queue);
    if (fields.messageId !== '') w.string(F.messageId, fields.messageId);
    w.string(F.from, fields.from);
    w.string(F.to, fields.to);
    this.#client(w, fields);
    w.string(F.helo, fields.helo);
    w.number(F.size, fields.size);
    w.number(F.nrcpt, fields.nrcpt);
    if (fields.tls !== '') w.string(F.tls, fields.tls);
    if (fields.user !== '') w.string(F.user, fields.user);
    if (fields.certificate !== '') w.string(F.certificate, fields.certificate);
    if (fields.authentication !== '') w.string(F.authentication, fields.authentication);
    w.number(F.mirrors, fields.mirrors);
    w.number(F.epoch, fields.epoch);
    w.raw(F.delay);
    w.seconds(fields.delayMs);
    this.#end(w);
  }

  delivered(fields: RecipientFields): void {
    this.#recipient(this.#event.delivered, 'sent', fields);
  }

  deferred(fields: RecipientFields): void {
    this.#recipient(this.#event.deferred, 'deferred', fields);
  }

  bounced(fields: RecipientFields): void {
    this.#recipient(this.#event.bounced, 'bounced', fields);
  }

  expired(fields: RecipientFields): void {
    this.#recipient(this.#event.expired, 'expired', fields);
  }

  removed(fields: RemovedFields): void {
    if (!this.#enabled) return;
    const w = this.#begin(this.#event.removed);
    w.string(F.queueId, fields.queueId);
    w.string(F.queue, fields.queue);
    w.string(F.from, fields.from);
    w.string(F.to, fields.to);
    w.string(F.reason, fields.reason);
    this.#end(w);
  }

  rejected(fields: RejectedFields): void {
    if (!this.#enabled) return;
    const w = this.#begin(this.#event.rejected);
    w.string(F.reason, fields.reason);
    this.#client(w, fields);
    w.string(F.helo, fields.helo);
    if (fields.user !== '') w.string(F.user, fields.user, REFUSED_CHARACTERS_MAX);
    if (fields.certificate !== '') w.string(F.certificate, fields.certificate);
    if (fields.queueId !== '') w.string(F.queueId, fields.queueId);
    if (fields.limit !== '') w.string(F.limit, fields.limit);
    if (fields.hook !== '') w.string(F.hook, fields.hook);
    if (fields.why !== '') w.string(F.why, fields.why);
    if (fields.state !== '') {
      w.string(F.state, fields.state);
      w.number(F.bytes, fields.octets);
    }
    w.string(F.from, fields.from, REFUSED_CHARACTERS_MAX);
    w.string(F.to, fields.to, REFUSED_CHARACTERS_MAX);
    w.string(F.reply, fields.reply);
    this.#end(w);
  }

  returned(fields: ReturnedFields): void {
    if (!this.#enabled) return;
    const w = this.#begin(this.#event.returned);
    w.string(F.queueId, fields.queueId);
    w.string(F.reportId, fields.reportId);
    w.string(F.route, fields.route);
    w.string(F.resultClass, fields.resultClass);
    this.#known(w, F.from, fields.from);
    this.#known(w, F.to, fields.to);
    this.#known(w, F.finalTo, fields.finalTo);
    this.#known(w, F.action, fields.action);
    this.#known(w, F.dsn, fields.dsn);
    this.#known(w, F.reply, fields.reply);
    this.#known(w, F.relay, fields.relay);
    this.#end(w);
  }

  feedback(fields: FeedbackFields): void {
    if (!this.#enabled) return;
    const w = this.#begin(this.#event.feedback);
    w.string(F.reportId, fields.reportId);
    w.string(F.type, fields.type);
    w.string(F.verified, fields.isVerified ? 'yes' : 'no');
    this.#known(w, F.route, fields.route);
    this.#known(w, F.queueId, fields.queueId);
    this.#known(w, F.from, fields.from);
    this.#known(w, F.mailFrom, fields.mailFrom);
    this.#known(w, F.to, fields.to);
    this.#known(w, F.userAgent, fields.userAgent);
    this.#known(w, F.sourceIp, fields.sourceIp);
    this.#known(w, F.arrivalDate, fields.arrivalDate);
    this.#end(w);
  }

  #known(w: LineWriter, name: FieldName, value: string): void {
    if (value !== '') w.string(name, value);
  }

  /** Hands over what is there; called once a turn by itself, and before the process ends. */
  flush(): void {
    if (this.#writer.length === 0) return;
    this.#destination.write(this.#writer.take());
  }

  #recipient(event: Uint8Array, status: string, fields: RecipientFields): void {
    if (!this.#enabled) return;
    const w = this.#begin(event);
    w.string(F.queueId, fields.queueId);
    w.string(F.queue, fields.queue);
    w.string(F.from, fields.from);
    if (fields.mailFrom !== '') w.string(F.mailFrom, fields.mailFrom);
    w.string(F.to, fields.to);
    if (fields.origTo !== '') w.string(F.origTo, fields.origTo);
    w.number(F.size, fields.size);
    if (fields.relay !== '') this.#relay(w, fields);
    w.number(F.attempt, fields.attempt);
    w.string(F.status, status);
    w.string(F.dsn, fields.dsn);
    w.string(F.reply, fields.reply);
    if (fields.last !== '') w.string(F.last, fields.last);
    w.raw(F.delay);
    w.seconds(fields.delayMs);
    w.raw(F.delays);
    w.byte(QUOTE);
    w.seconds(fields.beforeQueueMs);
    w.byte(SLASH);
    w.seconds(fields.delayMs - fields.beforeQueueMs - fields.setupMs - fields.transmitMs);
    w.byte(SLASH);
    w.seconds(fields.setupMs);
    w.byte(SLASH);
    w.seconds(fields.transmitMs);
    w.byte(QUOTE);
    this.#end(w);
  }

  #relay(w: LineWriter, { relay, source, tls, attempt }: RecipientFields): void {
    w.string(F.relay, relay);
    if (attempt === 0) return;
    if (source !== '') w.string(F.source, source);
    w.string(F.tls, tls === undefined ? 'none' : tls.version);
    if (tls === undefined) return;
    w.string(F.cipher, tls.cipher);
    w.string(F.verified, verifiedText(tls));
  }

  #client(w: LineWriter, { listener, client, clientPort, proxy }: ReceivedFields | RejectedFields): void {
    w.string(F.listener, listener);
    w.string(F.client, client);
    if (clientPort !== 0) w.number(F.clientPort, clientPort);
    if (proxy !== '') w.string(F.proxy, proxy);
  }

  #begin(event: Uint8Array): LineWriter {
    const writer = this.#writer;
    if (!writer.hasRoom(LINE_FIELDS_MAX)) this.flush();
    this.#stamp();
    writer.raw(HEAD);
    writer.raw(this.#time);
    writer.raw(event);
    return writer;
  }

  #end(writer: LineWriter): void {
    writer.byte(CLOSE_BRACE);
    writer.byte(LINE_FEED);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#flushBound);
  }

  /** Formats a new second in full, a new millisecond by its three digits. */
  #stamp(): void {
    const now = Date.now();
    if (now === this.#timeMs) return;
    this.#timeMs = now;
    const second = Math.floor(now / 1000);
    const time = this.#time;
    if (second !== this.#timeSecond) {
      this.#timeSecond = second;
      time.set(asciiBytes(new Date(now).toISOString()).subarray(0, 24));
      return;
    }
    const ms = now - second * 1000;
    time[20] = 0x30 + Math.floor(ms / 100);
    time[21] = 0x30 + (Math.floor(ms / 10) % 10);
    time[22] = 0x30 + (ms % 10);
  }
}

function asciiBytes(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text, 'latin1'));
}
