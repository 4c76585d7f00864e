/**
 * One mail transaction (RFC 5321 3.3) from MAIL to its outcome, and the Submission the gateway gets. One
 * object a message, its settle a method: nothing is bound or closed over.
 *
 * Owns the envelope being collected, its memory counted at Reception.reserve like that of the content, and
 * the content buffer. Recipients stay as the client wrote them and in its order, grouped by route: "Bob@d"
 * and "bob@d" may be two mailboxes (RFC 5321 2.4), so no local part is folded; the table, where there is
 * one, says which are the same. A mailbox gets one copy, however many RCPTs lead to it, but where success is
 * to be told of one of them.
 */

import { foldCase } from '../../../base/fold-case.js';
import { invariant } from '../../../base/invariant.js';
import {
  ALIAS_CHANGED, ALIAS_SUCCESS, COMMITTED, ENVELOPE_8BIT, ENVELOPE_DOT_LINES, ENVELOPE_REQUIRETLS,
  ENVELOPE_UTF8_HEADER, NOTIFY_NEVER, NOTIFY_SUCCESS,
} from '../../mail-types.js';
import type {
  Reception, Recipient, RecipientGroup, Route, Router, Submission, SubmissionOutcome,
} from '../../mail-types.js';
import type { CameBack, KeptReport, ReturnReading } from '../../returned/came-back.js';
import type { ContentBuffer } from '../content/content-buffer.js';
import { FIELD_MESSAGE_ID, FIELD_TLS_REQUIRED } from '../content/content-scan.js';
import type { ContentScan } from '../content/content-scan.js';
import { isInternational, isTlsUnasked, topHeader } from '../content/header-look.js';
import { messageIdField } from '../content/message-id-field.js';
import type { InboundPorts } from '../options.js';
import type { MailParameters } from '../commands/parameters.js';
import type { InboundDialog } from './dialog.js';

/** Up to here a search through the list beats a map. */
const GROUPS_SEARCHED_MAX = 16;
/** Objects and list places of one recipient besides its text. */
const RECIPIENT_BYTES = 200;
/** V8 keeps a text with any character beyond Latin-1 at two bytes a character. */
const CHARACTER_BYTES = 2;

/** A report is about one message; whoever names more addresses of this kind sends none. */
const CAME_MAX = 100;

const NO_CHUNKS: readonly Uint8Array[] = [];

/** Told how a transaction ended; the connection it came on, if that still lives. */
export interface OutcomeSink {
  onOutcome(transaction: MailTransaction, outcome: SubmissionOutcome): void;
}

interface GrowingGroup extends RecipientGroup {
  readonly recipients: Recipient[];
}

/** Where the recipient of a mailbox stands. */
interface RecipientPlace {
  readonly group: GrowingGroup;
  readonly index: number;
}

export class MailTransaction implements Submission {
  messageId = 0;
  readonly reversePath: string;
  /** The same however it is written (tableKey); '' of the null one. */
  readonly senderKey: string;
  /** "address:port" that it came in by. */
  readonly listener: string;
  groups: GrowingGroup[] = [];
  chunks = NO_CHUNKS;
  contentBytes = 0;
  flags = 0;
  /** The client asked for SMTPUTF8. */
  readonly isUtf8: boolean;
  /** The client said REQUIRETLS. */
  readonly requiresTls: boolean;
  readonly ret: number;
  readonly envid: string;
  readonly client: string;
  /** 0: not known. */
  readonly clientPort: number;
  readonly helo: string;

  recipientCount = 0;
  /** As RCPT named them, aliases too: as many as a client may name, counted as memory by their lines. */
  readonly namedRecipients: string[] = [];
  /** Its content comes in chunks (BDAT). */
  isChunked = false;
  /** A chunk was refused: so are all others. */
  hasFailed = false;
  /** Clock when the final dot was read. */
  receivedMs = 0;
  /** When the intake began to count it (intake.ts). */
  intakeLook = 0;
  protocol = '';
  /** TLS version of the client's session, '' in clear. */
  readonly tls: string;
  /** Who has authenticated; '' nobody. */
  readonly user: string;
  /** What he might send from when MAIL came; undefined: nobody has looked. His account may end meanwhile. */
  addresses: readonly string[] | undefined;
  /** By which name of its certificate the client may relay; '' by none. */
  readonly certificate: string;
  /** As in InboundDialog. */
  readonly proxy: string;
  /** For the mail log, when it wants one. */
  messageIdField = '';
  /** What was found out about its sender: "spf=pass dkim=none dmarc=pass"; '' nobody has looked. */
  authentication = '';
  readonly content: ContentBuffer;
  /** Recipients that are addresses for what comes back. */
  came: CameBack[] | undefined;
  #cameTo: Set<string> | undefined;
  #kept: KeptReport | undefined;

  readonly #sink: OutcomeSink;
  readonly #reception: Reception;
  #envelopeBytes = 0;
  #groupOfLabel: Map<string, GrowingGroup> | undefined;
  /** That of the first recipient; once there is a second, all of them stand in #places. */
  #firstKey = '';
  #places: Map<string, RecipientPlace> | undefined;
  #settled = false;

  constructor(
    reversePath: string, senderKey: string, listener: string, parameters: MailParameters,
    dialog: InboundDialog, content: ContentBuffer, reception: Reception,
  ) {
    this.listener = listener;
    this.reversePath = reversePath;
    this.senderKey = senderKey;
    this.isUtf8 = parameters.isUtf8;
    this.requiresTls = parameters.requiresTls;
    this.ret = parameters.ret;
    this.envid = parameters.envid;
    this.client = dialog.remoteAddress;
    this.clientPort = dialog.remotePort;
    this.helo = dialog.helo;
    this.tls = dialog.tlsVersion;
    this.user = dialog.user;
    this.certificate = dialog.certificateWhy === '' ? dialog.certificate : '';
    this.proxy = dialog.proxy;
    this.content = content;
    this.#reception = reception;
    this.#sink = dialog;
  }

  /**
   * Counts recipients before they are added: a thousand of them are a megabyte. `characters`: of the whole
   * line, for address and parameters are slices of it, which keep it alive. False when there is no memory.
   */
  reserveRecipients(count: number, characters: number): boolean {
    const bytes = count * RECIPIENT_BYTES + characters * CHARACTER_BYTES;
    if (!this.#reception.reserve(bytes)) return false;
    this.#envelopeBytes += bytes;
    return true;
  }

  /** Gives back all memory that was counted. */
  release(): void {
    this.content.release();
    if (this.#envelopeBytes > 0) this.#reception.release(this.#envelopeBytes);
    this.#envelopeBytes = 0;
  }

  /** A RCPT was taken, for whatever recipients. */
  named(address: string): void {
    this.namedRecipients.push(address);
  }

  /** What the client named first: what aliases lead to is not told to anybody. */
  get namedRecipient(): string {
    return this.namedRecipients[0] ?? '';
  }

  get namedCount(): number {
    return this.namedRecipients.length;
  }

  /** What counts against the limit: those that were named again are work too. */
  get countedRecipients(): number {
    return Math.max(this.recipientCount, this.namedCount);
  }

  /** False: there are too many. */
  get mayTakeMoreBack(): boolean {
    return (this.came?.length ?? 0) < CAME_MAX;
  }

  /** `address`: that it came to. Of one that is named again nothing more is told. */
  addCameBack(came: CameBack, address: string): void {
    const key = came.kind === 'feedback' ? '' : foldCase(address);
    this.#cameTo ??= new Set();
    if (this.#cameTo.has(key)) return;
    this.#cameTo.add(key);
    this.came ??= [];
    this.came.push(came);
  }

  /** Its content is complete: what is read of it is kept, where it is something that comes back. */
  keep(reading: ReturnReading | undefined): void {
    if (this.came !== undefined) this.#kept = reading?.keep(this.messageId, this.came, this.chunks);
  }

  /** `key`: of the mailbox, which gets one copy of a message, but where oneOfBoth() says otherwise. */
  addRecipient(route: Route, recipient: Recipient, key: string): void {
    const places = this.#placesOfOthers();
    const same = places?.get(key);
    if (same?.group.route.label === route.label) {
      const { group: { recipients }, index } = same;
      const one = oneOfBoth(recipients[index] ?? recipient, recipient);
      if (one !== undefined) {
        recipients[index] = one;
        return;
      }
    }
    const group = this.#find(route) ?? this.#addGroup(route);
    if (this.recipientCount++ === 0) this.#firstKey = key;
    // A third one is none of what has a report of its own to come.
    if (same === undefined || !owesSuccess(recipient)) {
      places?.set(key, { group, index: group.recipients.length });
    }
    group.recipients.push(recipient);
  }

  #placesOfOthers(): Map<string, RecipientPlace> | undefined {
    const [group] = this.groups;
    // Most messages have one recipient.
    if (group === undefined) return undefined;
    return this.#places ??= new Map([[this.#firstKey, { group, index: 0 }]]);
  }

  #addGroup(route: Route): GrowingGroup {
    const added = { route, recipients: [] };
    this.groups.push(added);
    if (this.groups.length > GROUPS_SEARCHED_MAX) {
      this.#groupOfLabel ??= new Map(this.groups.map((each) => [each.route.label, each]));
      this.#groupOfLabel.set(route.label, added);
    }
    return added;
  }

  /** The content is complete: makes a Submission of the transaction. */
  complete(
    messageId: number, traceHeader: Uint8Array, scan: ContentScan,
    { mailLog, latin1Text }: Pick<InboundPorts, 'mailLog' | 'latin1Text'>,
  ): void {
    this.messageId = messageId;
    // What the next hop must offer: by the octets, not by what the client said of them.
    if (scan.is8Bit) this.flags |= ENVELOPE_8BIT | this.#needOfHeader();
    if (scan.dotLines) this.flags |= ENVELOPE_DOT_LINES;
    if (this.requiresTls) this.flags |= ENVELOPE_REQUIRETLS;
    this.chunks = this.content.finish(traceHeader);
    if (mailLog.wantsMessageId && (scan.fields & FIELD_MESSAGE_ID) !== 0) {
      this.messageIdField = messageIdField(this.chunks, latin1Text);
    }
    this.contentBytes = traceHeader.length + this.content.bytes;
  }

  /**
   * The whole content is there: where its header asks for no TLS, it goes to other queues than RCPT has
   * asked. True when it does. What the envelope says goes before the header (RFC 8689 3).
   */
  leaveTlsUnasked(scan: ContentScan, router: Router): boolean {
    if (this.requiresTls || (scan.fields & FIELD_TLS_REQUIRED) === 0) return false;
    if (!isTlsUnasked(topHeader(this.content.pieces()))) return false;
    this.groups = this.groups.map((each) => ({ ...each, route: router.withTls(each.route, 'optional') }));
    return true;
  }

  #needOfHeader(): number {
    return this.isUtf8 && isInternational(topHeader(this.content.pieces())) ? ENVELOPE_UTF8_HEADER : 0;
  }

  /**
   * Submitted: the gateway has a copy, or refused it. The read buffer, where the last piece lies, is used
   * again.
   */
  forgetContent(): void {
    this.chunks = NO_CHUNKS;
    this.content.release();
  }

  settle(outcome: SubmissionOutcome): void {
    // A second answer to one DATA would be taken for the answer to the next command.
    invariant(!this.#settled, 'a submission is settled once');
    this.#settled = true;
    this.#kept?.settled(outcome === COMMITTED);
    this.#sink.onOutcome(this, outcome);
  }

  /** By its label: the Route of a queue may have been made anew meanwhile, and a message is there once. */
  #find({ label }: Route): GrowingGroup | undefined {
    if (this.#groupOfLabel !== undefined) return this.#groupOfLabel.get(label);
    for (const group of this.groups) {
      if (group.route.label === label) return group;
    }
    return undefined;
  }
}

/**
 * Two RCPTs led to one mailbox: the one that says what becomes of both; undefined where success is to be
 * told of either. A failure is told of the address that was given, before one that an alias led there: whose
 * member it is, nobody is told.
 */
function oneOfBoth(first: Recipient, second: Recipient): Recipient | undefined {
  if (asksNothing(second)) return first;
  if (asksNothing(first)) return second;
  if (owesSuccess(first) || owesSuccess(second)) return undefined;
  return (first.notify & ~second.notify & ALIAS_CHANGED) === 0 ? first : second;
}

/** NEVER stands also where nothing but the success of an alias is to be told. */
function asksNothing({ notify }: Recipient): boolean {
  return (notify & (NOTIFY_NEVER | ALIAS_SUCCESS)) === NOTIFY_NEVER;
}

function owesSuccess({ notify }: Recipient): boolean {
  return (notify & (NOTIFY_SUCCESS | ALIAS_SUCCESS)) !== 0;
}
