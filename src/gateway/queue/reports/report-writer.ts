/**
 * Writes one report (DSN): composed by gateway/bounce, signed by gateway/dkim if its sender has a key, and
 * stored in the partition of the message that it is about, in one section of changes with what becomes of
 * that message. Its occasions: an outcome (report-job.ts), and a delay (delay-reports.ts).
 */
import { invariant } from '../../../base/invariant.js';
import { joined } from '../../../base/joined.js';
import type { Acceptance } from '../acceptance.js';
import type { Entries } from '../entries.js';
import type { ReplyTexts } from '../entry-texts.js';
import type { MailEvents } from '../mail-events.js';
import type { MailQueue } from '../mail-queue.js';
import type { Note } from '../note.js';
import { HEADER_BYTES_MAX, RET_FULL_BYTES_MAX } from './report-bounds.js';
import { hostNamed } from '../settlement.js';
import type { Settlement } from '../settlement.js';
import type {
  Envelope, FindReportWay, NextHop, NO_MEMORY, NOT_READY, Outage, ReportWay, Router,
} from '../../mail-types.js';
import { ENVELOPE_REQUIRETLS, RET_HEADERS } from '../../mail-types.js';

export type ReportKind = 'failure' | 'success' | 'delay';

/** What a report is about: recipients of one entry with what was last said of each. */
export interface ReportInput {
  readonly kind: ReportKind;
  readonly envelope: Envelope;
  readonly note: Note;
  /** What was said of them, as far as it is still known. */
  readonly texts: ReplyTexts;
  /** Indexes of recipients that are reported. */
  readonly recipients: readonly number[];
  /** Who was to take it. */
  readonly nextHop: NextHop;
  readonly reportId: number;
  /** The content of the reported message, or as much of its beginning as a report may need. */
  readonly content: Uint8Array;
}

/** What is to be reported; its body is here. */
export interface ReportSubject {
  readonly kind: ReportKind;
  readonly queue: MailQueue;
  readonly row: number;
  readonly envelope: Envelope;
  readonly note: Note;
  readonly recipients: readonly number[];
  /** As short as it may be. */
  readonly isShort: boolean;
}

/** What is composed and not stored yet. */
export interface ReportDraft {
  readonly reportId: number;
  /** With signatures in front once it is signed. */
  content: Uint8Array;
  readonly flags: number;
  /** As of its subject. */
  readonly recipients: readonly number[];
}

/** The real one is gateway/dkim/node/dkim-signer.ts. */
export interface ReportSigner {
  /**
   * A report with CRLF throughout. `done` is called once, maybe before this returns, with what is put in
   * front of it, or undefined where it is to leave unsigned. False: nobody signs for its sender, and `done`
   * is not called.
   */
  signReport(content: Uint8Array, done: (fields: Uint8Array | undefined) => void): boolean;
}

export interface ReportWriterPorts {
  readonly entries: Entries;
  readonly settlement: Settlement;
  readonly acceptance: Acceptance;
  readonly wayTo: FindReportWay;
  readonly withTls: Router['withTls'];
  readonly events: MailEvents;
  /** Undefined: reports leave unsigned. */
  readonly signer: ReportSigner | undefined;
  /** When an entry expires, held and delayed as it was and is, by the clock that people read. */
  expiryWallMs(row: number, note: Note): number;
  /** Why mail of the queue does not leave. */
  outageOf(queue: MailQueue): Outage | undefined;
  nextMessageId(): number;
  /** The bytes of a DSN (gateway/bounce). */
  compose(input: ReportInput, ownerId: string): { readonly content: Uint8Array; readonly flags: number };
}

export class ReportWriter {
  readonly #ports: ReportWriterPorts;

  constructor(ports: ReportWriterPorts) {
    this.#ports = ports;
  }

  /** The way to a sender, who is not the null reverse-path. */
  wayTo(reversePath: string, onKnown?: () => void): ReturnType<FindReportWay> {
    return this.#ports.wayTo(reversePath, onKnown);
  }

  compose(subject: ReportSubject): ReportDraft {
    const { envelope, recipients } = subject;
    invariant(envelope.reversePath !== '', 'nobody is told of a message with the null reverse-path');
    const reportId = this.#ports.nextMessageId();
    return { reportId, recipients, ...this.#compose(subject, reportId) };
  }

  /** `done`: it is signed, or will not be; called maybe before this returns. False: nobody signs it. */
  sign(draft: ReportDraft, done: () => void): boolean {
    const { signer } = this.#ports;
    return signer !== undefined && signer.signReport(draft.content, (fields) => {
      if (fields !== undefined) draft.content = joined([fields, draft.content]);
      done();
    });
  }

  /**
   * Stores the report together with the changes that `alongside` makes. Undefined when that is done; else why
   * not, and nothing was changed.
   */
  store(
    subject: ReportSubject, { reportId, content, flags }: ReportDraft, { route, address }: ReportWay,
    alongside: () => void,
  ): typeof NO_MEMORY | typeof NOT_READY | undefined {
    const { acceptance, events } = this.#ports;
    const { queue, envelope } = subject;
    const why = this.#said(subject).texts.get(subject.recipients[0] ?? 0)?.text ?? '';
    // A report of mail that must have TLS must have it, too (RFC 8689 5).
    const isRequired = requiresTls(envelope);
    const outcome = queue.partition.together(() => {
      const stored = acceptance.storeReport({
        messageId: reportId, route: isRequired ? this.#ports.withTls(route, 'required') : route,
        home: queue.partition, recipient: address, content,
        flags: isRequired ? flags | ENVELOPE_REQUIRETLS : flags, isEnding: subject.kind !== 'delay',
      });
      if (stored === undefined) alongside();
      return stored;
    });
    if (outcome === undefined) events.reported(queue, envelope, reportId, subject.kind, why);
    return outcome;
  }

  #compose(
    subject: ReportSubject, reportId: number,
  ): { readonly content: Uint8Array; readonly flags: number } {
    const { kind, queue, row, envelope, recipients, isShort } = subject;
    const { entries } = this.#ports;
    const bodyBytes = entries.table.bodyBytes.get(row);
    // One octet more than comes back whole: so that it shows that it does not.
    const bytesMax = kind === 'failure' ? RET_FULL_BYTES_MAX + 1 : HEADER_BYTES_MAX;
    const content = new Uint8Array(Math.min(bodyBytes, bytesMax));
    entries.copyBody(row, content, 0, content.length);
    const { note, texts } = this.#said(subject);
    // Its end by its head is that of mail which nobody held or delayed.
    const expiryWallMs = this.#ports.expiryWallMs(row, note);
    const ret = isShort || requiresTls(envelope) ? RET_HEADERS : envelope.ret;
    const about = { ...envelope, expiryWallMs, ret };
    const { nextHop } = queue.route;
    const input = { kind, envelope: about, note, texts, recipients, nextHop, reportId, content };
    return this.#ports.compose(input, queue.ownerId);
  }

  /** What was said of its recipients; of those who are delayed and were never tried, of the next hop. */
  #said({ kind, queue, row, note, recipients }: ReportSubject): Pick<ReportInput, 'note' | 'texts'> {
    const texts = this.#ports.settlement.textsOf(row).replies;
    const outage = kind === 'delay' ? this.#ports.outageOf(queue) : undefined;
    if (outage === undefined) return { note, texts };
    const known = new Set(note.results.map(({ recipient }) => recipient));
    const untried = recipients.filter((recipient) => !known.has(recipient));
    const { relay, why: { code, enhanced, text } } = outage;
    const said = { text, host: hostNamed(relay) };
    const results = untried.map((recipient) => ({ recipient, code, enhanced }));
    return {
      note: { ...note, results: [...note.results, ...results] },
      texts: new Map([...texts, ...untried.map((recipient) => [recipient, said] as const)]),
    };
  }
}

function requiresTls({ flags }: Envelope): boolean {
  return (flags & ENVELOPE_REQUIRETLS) !== 0;
}

/** What was composed says it still: nothing has become of them since. */
export function isAbout(draft: ReportDraft, recipients: readonly number[]): boolean {
  return draft.recipients.length === recipients.length
    && draft.recipients.every((recipient, at) => recipient === recipients[at]);
}
