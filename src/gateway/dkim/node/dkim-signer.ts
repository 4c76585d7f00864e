/**
 * Signs messages of our own and our reports (RFC 6376, RFC 8301, RFC 8463), with all keys of the domain of
 * their From. A signature is a prefix: it is made of the message as it will leave, and put in front of it.
 *
 *   sign ─┬─ not to be signed ──▶ unsigned
 *         ├─ a place is free ──▶ HASHING ─ whole body ─▶ SIGNING ─┬─▶ signed
 *         ├─ none, room ──▶ WAITING ─ place ─┘                    └─▶ failed (451)
 *         └─ none, no room, or none moves: busy (451)      its client has gone: abandoned
 *
 * The body is hashed in the pieces it came in, and all bodies have a share of each turn of the event loop
 * (platform/node/turn-share.ts); the signature itself, 1 ms of RSA, is made in Node's threads, which others
 * need too: hence few at a time.
 */
import { constants, createHash, hash, sign } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { errorText } from '../../../base/error-text.js';
import { OnceInAWhile } from '../../../base/once-in-a-while.js';
import { latin1Bytes } from '../../../base/utf8.js';
import type { DkimMetrics, DkimOutcome } from '../../../observability/dkim-metrics.js';
import { toAscii } from '../../../platform/node/idna.js';
import { latin1Text } from '../../../platform/node/latin1.js';
import { TurnShare } from '../../../platform/node/turn-share.js';
import type { Clock, EventLog } from '../../../platform/ports.js';
import type { JudgedMessage } from '../../inbound/hooks/message-hook.js';
import * as replies from '../../inbound/session/replies.js';
import type { Refusal } from '../../inbound/session/replies.js';
import type { ReportSigner } from '../../queue/reports/report-writer.js';
import type { MessageSigner } from '../message-signer.js';
import { RelaxedBody } from '../relaxed.js';
import { signableOf } from '../signable.js';
import type { Signable, SignablePorts } from '../signable.js';
import { SignatureField } from '../signature-field.js';
import type { DkimKey } from './dkim-keys.js';

/** Of four threads. */
const AT_ONCE_MAX = 2;
/** At 1,000 signatures a second the last of them waits a second. */
const WAITING_MAX = 1000;
/** Header octets that they keep, beside their counted contents. */
const WAITING_OCTETS_MAX = 16 * 1024 * 1024;
/** Of a body in one step: 2 to 3 ms for one that is made to cost, a tenth of it for others. */
const HASHED_BYTES_AT_ONCE = 128 * 1024;
const SCRATCH_BYTES = 64 * 1024;
const TOLD_EVERY_MS = 10_000;
/** Threads may hang in something else: who comes then is told so, and waits for nothing. */
const STUCK_MS = 10_000;
/** A report does not wait for them for ever. */
const REPORT_WAIT_MS = 30_000;
const NOTHING = new Uint8Array(0);
const anyAddress = (): boolean => true;

export interface DkimSignerPorts {
  /** Others from one turn to the next; what is under way is signed with those that it began with. */
  readonly keys: { readonly areNone: boolean; of(domain: string): readonly DkimKey[] };
  readonly clock: Clock;
  readonly log: EventLog;
  readonly metrics: DkimMetrics;
}

/** How one ended that was to be signed. */
type Ending = Extract<DkimOutcome, 'signed' | 'failed' | 'busy' | 'abandoned'>;

/** One message under way. */
interface SigningJob {
  readonly pieces: readonly Uint8Array[];
  readonly signable: Signable;
  /** Of its domain. */
  readonly keys: readonly DkimKey[];
  isWanted(): boolean;
  readonly done: (ending: Ending, fields: Uint8Array) => void;
}

export class DkimSigner implements MessageSigner, ReportSigner {
  readonly #ports: DkimSignerPorts;
  readonly #signablePorts: SignablePorts;
  readonly #waiting: SigningJob[] = [];
  #waitingOctets = 0;
  #underWay = 0;
  /** When one of those under way was begun or ended last. */
  #movedMs = 0;
  readonly #scratch = new Uint8Array(SCRATCH_BYTES);
  readonly #turns = new TurnShare();
  readonly #telling = new OnceInAWhile(TOLD_EVERY_MS);

  constructor(ports: DkimSignerPorts) {
    this.#ports = ports;
    this.#signablePorts = { latin1Text, toAscii, hasKey: (domain) => ports.keys.of(domain).length > 0 };
  }

  get isOn(): boolean {
    return !this.#ports.keys.areNone;
  }

  sign(
    message: JudgedMessage, mayUse: (address: string) => boolean,
    done: (refusal: Refusal | undefined, fields: Uint8Array) => void,
  ): void {
    const { metrics, clock } = this.#ports;
    const signable = signableOf(message.content, mayUse, this.#signablePorts);
    if (typeof signable === 'string') {
      metrics.message(signable);
      return done(undefined, NOTHING);
    }
    const sinceMs = clock.nowMs();
    this.#take({
      pieces: message.content, signable, keys: this.#ports.keys.of(signable.domain),
      isWanted: () => !message.isAbandoned,
      done: (ending, fields) => {
        metrics.message(ending);
        if (ending === 'signed') metrics.seconds.observe((clock.nowMs() - sinceMs) / 1000);
        done(refusalOf(ending), fields);
      },
    });
  }

  signReport(content: Uint8Array, done: (fields: Uint8Array | undefined) => void): boolean {
    const { metrics, keys } = this.#ports;
    if (keys.areNone) return false;
    const pieces = [content];
    const signable = signableOf(pieces, anyAddress, this.#signablePorts);
    if (typeof signable === 'string') {
      metrics.reportsUnsigned += 1;
      return false;
    }
    let isOver = false;
    const end = (fields: Uint8Array | undefined): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      if (fields === undefined) metrics.reportsUnsigned += 1;
      else metrics.reportsSigned += 1;
      done(fields);
    };
    const timer = setTimeout(end, REPORT_WAIT_MS, undefined).unref();
    this.#take({
      pieces, signable, keys: keys.of(signable.domain), isWanted: () => !isOver,
      done: (ending, fields) => { end(ending === 'signed' ? fields : undefined); },
    });
    return true;
  }

  #take(job: SigningJob): void {
    const octets = job.signable.canonical.length;
    const isStuck = this.#ports.clock.nowMs() - this.#movedMs > STUCK_MS;
    const isFull = this.#waiting.length >= WAITING_MAX || this.#waitingOctets + octets > WAITING_OCTETS_MAX;
    if (this.#underWay < AT_ONCE_MAX) this.#start(job);
    else if (isFull || isStuck) {
      job.done('busy', NOTHING);
    } else {
      this.#waiting.push(job);
      this.#waitingOctets += octets;
    }
  }

  #start(job: SigningJob): void {
    this.#underWay++;
    this.#movedMs = this.#ports.clock.nowMs();
    const bodyHash = createHash('sha256');
    const body = new RelaxedBody(this.#scratch, (octets) => { bodyHash.update(octets); });
    const { bodyPiece, bodyAt } = job.signable;
    this.#turns.run(() => { this.#hash(job, bodyHash, body, bodyPiece, bodyAt); });
  }

  /** Of its body what one step may take, from octet `at` of a piece on. */
  #hash(job: SigningJob, bodyHash: Hash, body: RelaxedBody, first: number, at: number): void {
    if (!job.isWanted()) return this.#end(job, 'abandoned', NOTHING);
    let left = HASHED_BYTES_AT_ONCE;
    let [index, from] = [first, at];
    for (; index < job.pieces.length; index++, from = 0) {
      const piece = job.pieces[index] ?? NOTHING;
      const end = Math.min(piece.length, from + left);
      const to = body.update(piece, from, end);
      left -= to - from;
      if (to === piece.length) continue;
      this.#turns.run(() => { this.#hash(job, bodyHash, body, index, to); });
      return;
    }
    body.end();
    this.#sign(job, bodyHash.digest('base64'));
  }

  /** With each key of the domain, all at once. */
  #sign(job: SigningJob, bodyHash: string): void {
    const { signable: { domain, names, canonical }, keys } = job;
    const signedAt = Math.floor(this.#ports.clock.wallMs() / 1000);
    const fields: string[] = keys.map(() => '');
    let left = keys.length;
    let why = '';
    const onSignature = (): void => {
      if (--left > 0) return;
      if (why !== '') this.#tell(domain, why);
      const text = why === '' ? fields.join('') : '';
      this.#end(job, why === '' ? 'signed' : 'failed', latin1Bytes(text));
    };
    keys.forEach((key, index) => {
      const { algorithm, selector, expiresAfterMs } = key;
      const lifeSeconds = expiresAfterMs === undefined ? undefined : Math.floor(expiresAfterMs / 1000);
      const expiresAt = lifeSeconds === undefined ? undefined : signedAt + lifeSeconds;
      const field = new SignatureField({ algorithm, domain, selector, signedAt, expiresAt, names, bodyHash });
      signWith(key, Buffer.from(canonical + field.canonical, 'latin1'), (signature, error) => {
        if (signature === undefined) why = error;
        else fields[index] = field.signed(signature);
        onSignature();
      });
    });
  }

  #end(job: SigningJob, ending: Ending, fields: Uint8Array): void {
    this.#underWay--;
    this.#movedMs = this.#ports.clock.nowMs();
    job.done(ending, fields);
    while (this.#underWay < AT_ONCE_MAX) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#waitingOctets -= next.signable.canonical.length;
      if (next.isWanted()) this.#start(next);
      else next.done('abandoned', NOTHING);
    }
  }

  #tell(domain: string, why: string): void {
    if (!this.#telling.isDue(this.#ports.clock.nowMs())) return;
    const text = 'a message can not be signed; clients are told to try later, reports leave unsigned';
    this.#ports.log.error('dkim', text, { domain, why });
  }
}

function refusalOf(ending: Ending): Refusal | undefined {
  if (ending === 'signed') return undefined;
  return ending === 'failed' ? replies.SIGNING_FAILED : replies.SIGNING_BUSY;
}

/** In base64, or why not. RFC 8463 3: Ed25519 signs the hash of what RSA would sign. */
function signWith(
  { algorithm, key }: DkimKey, data: Buffer, done: (signature: string | undefined, why: string) => void,
): void {
  const isRsa = algorithm === 'rsa-sha256';
  const onSigned = (error: Error | null, signature: Buffer | undefined): void => {
    if (error === null && signature !== undefined) done(signature.toString('base64'), '');
    else done(undefined, errorText(error));
  };
  try {
    if (isRsa) sign('sha256', data, { key, padding: constants.RSA_PKCS1_PADDING }, onSigned);
    else sign(null, hash('sha256', data, 'buffer'), key, onSigned);
  } catch (error) {
    setImmediate(() => { done(undefined, errorText(error)); });
  }
}
