/**
 * Mail that came back, from its submission until it was read: a copy of its beginning waits for the client's
 * 250, then for the thread, one after the other. So many wait, no more; what finds no room is not read, but
 * it is told and counted all the same, for its address alone says which message it is about.
 *
 *   keep ─┬─ room ─► KEPT ─ 250 ─► WAITING ─► READING ─ read, failed, late ─► told, gone
 *         └─ none ─► UNREADABLE ─ 250 ─► told as unread, gone                    refused: gone, nothing told
 *
 * Nothing of it survives the process. Pure.
 */
import type {
  CameBack, KeptReport, MadeHere, ResultClass, ReturnReading, ReturnRecord, UnreadCause,
} from './came-back.js';
import type { Feedback, ReportContent, StatusOfRecipient } from './report-content.js';
import type { ReturnPaths } from './return-paths.js';

/** Reports have what is read of them in front; what was returned follows. */
const OCTETS_MAX = 256 * 1024;
/** A few seconds of the thread's work. */
const HELD_MAX = 1000;
/** Anybody may write to the address of feedback loops. */
const HELD_BYTES_MAX = 32 * 1024 * 1024;

/** Reads one at a time. */
export interface ReportReader {
  /** `octets` become its own. `done` is called once. */
  read(octets: Uint8Array<ArrayBuffer>, done: (content: ReportContent | UnreadCause) => void): void;
  close(): void;
}

export interface ReportLinePorts {
  readonly reader: ReportReader;
  /** Of the configuration in force; undefined: none. */
  paths(): Pick<ReturnPaths, 'madeHere'> | undefined;
  readonly record: ReturnRecord;
  readonly memory: { reserve(bytes: number): boolean; release(bytes: number): void };
}

export class ReportLine implements ReturnReading {
  readonly #ports: ReportLinePorts;
  readonly #waiting: KeptCopy[] = [];
  #heldCount = 0;
  #heldBytes = 0;
  #isReading = false;

  constructor(ports: ReportLinePorts) {
    this.#ports = ports;
  }

  keep(reportId: number, came: readonly CameBack[], chunks: readonly Uint8Array[]): KeptReport {
    const total = chunks.reduce((sum, { length }) => sum + length, 0);
    const bytes = Math.min(OCTETS_MAX, total);
    const isFull = this.#heldCount >= HELD_MAX || this.#heldBytes + bytes > HELD_BYTES_MAX;
    if (isFull || !this.#ports.memory.reserve(bytes)) return new KeptCopy(reportId, came, undefined, this);
    this.#heldCount += 1;
    this.#heldBytes += bytes;
    const octets = new Uint8Array(bytes);
    let at = 0;
    for (const chunk of chunks) {
      if (at === bytes) break;
      const piece = chunk.subarray(0, bytes - at);
      octets.set(piece, at);
      at += piece.length;
    }
    return new KeptCopy(reportId, came, octets, this);
  }

  /** For KeptCopy. */
  onSettled(kept: KeptCopy, isCommitted: boolean): void {
    if (!isCommitted) this.#letGo(kept);
    else if (kept.octets === undefined) this.#tellUnread(kept, 'busy');
    else {
      this.#waiting.push(kept);
      this.#goOn();
    }
  }

  /** What waits is told as it is. */
  close(): void {
    for (const kept of this.#waiting.splice(0)) this.#end(kept, 'failed');
    this.#ports.reader.close();
  }

  #goOn(): void {
    if (this.#isReading) return;
    const kept = this.#waiting.shift();
    if (kept?.octets === undefined) return;
    this.#isReading = true;
    this.#ports.reader.read(kept.octets, (content) => {
      this.#isReading = false;
      this.#end(kept, content);
      this.#goOn();
    });
  }

  #end(kept: KeptCopy, content: ReportContent | UnreadCause): void {
    this.#letGo(kept);
    if (typeof content === 'string') this.#tellUnread(kept, content);
    else for (const came of kept.came) this.#tell(kept.reportId, came, content);
  }

  #letGo({ bytes }: KeptCopy): void {
    if (bytes === undefined) return;
    this.#heldCount -= 1;
    this.#heldBytes -= bytes;
    this.#ports.memory.release(bytes);
  }

  #tellUnread({ reportId, came }: KeptCopy, why: UnreadCause): void {
    const { record } = this.#ports;
    record.unread(reportId, why);
    for (const each of came) {
      if (each.kind === 'returned') record.returned(reportId, each, undefined, 'unread');
      else record.feedback(reportId, undefined, undefined);
    }
  }

  #tell(reportId: number, came: CameBack, { recipients, feedback, returnPaths }: ReportContent): void {
    const { record } = this.#ports;
    if (came.kind === 'feedback') {
      record.feedback(reportId, feedback, this.#madeHere(feedback, returnPaths));
      return;
    }
    const said = statusOf(recipients, came);
    record.returned(reportId, came, said, said === undefined ? 'unknown' : classOf(said));
  }

  #madeHere(feedback: Feedback | undefined, returnPaths: readonly string[]): MadeHere | undefined {
    for (const address of [feedback?.mailFrom ?? '', ...returnPaths]) {
      const made = this.#ports.paths()?.madeHere(address);
      if (made !== undefined) return made;
    }
    return undefined;
  }
}

class KeptCopy implements KeptReport {
  readonly reportId: number;
  readonly came: readonly CameBack[];
  readonly octets: Uint8Array<ArrayBuffer> | undefined;
  /** Of memory that is counted; the octets go to the reader. */
  readonly bytes: number | undefined;
  readonly #line: ReportLine;

  constructor(
    reportId: number, came: readonly CameBack[], octets: Uint8Array<ArrayBuffer> | undefined,
    line: ReportLine,
  ) {
    this.reportId = reportId;
    this.came = came;
    this.octets = octets;
    this.bytes = octets?.length;
    this.#line = line;
  }

  settled(isCommitted: boolean): void {
    this.#line.onSettled(this, isCommitted);
  }
}

/** Of the recipient that the address was made for, else of the first that has failed, else of the first. */
function statusOf(
  recipients: readonly StatusOfRecipient[], { token }: MadeHere,
): StatusOfRecipient | undefined {
  return recipients.find(({ finalRecipient, originalRecipient }) =>
    token.isOf(finalRecipient) || token.isOf(originalRecipient))
    ?? recipients.find(({ action }) => action === 'failed') ?? recipients[0];
}

function classOf({ action, status }: StatusOfRecipient): ResultClass {
  const first = status.charAt(0);
  if (first === '2' || first === '4' || first === '5') return first;
  if (action === '') return 'unknown';
  if (action === 'failed') return '5';
  return action === 'delayed' ? '4' : '2';
}
