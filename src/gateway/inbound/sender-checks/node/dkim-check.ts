/**
 * The DKIM signatures of a message (RFC 6376 6.1): which of them hold. Ours, on what the signer has (gateway/
 * dkim), not mailauth's: that one takes the octet A0, half of a UTF-8 "à", for a blank, and a second for a
 * megabyte of blanks (docs/decisions/0034).
 *
 *   the ten on top ─ dkim-signature.ts ─▶ out, or body hashed, once for each kind
 *     ─ it is another ─▶ out: no key is asked for, so a junk signature makes no questions
 *     ─▶ keys, all at once ─ dkim-key.ts ─▶ signature of the signed fields ─▶ verdict
 */
import { hash, verify } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { TurnShare } from '../../../../platform/node/turn-share.js';
import type { HeaderSection, SectionField } from '../../../dkim/header-section.js';
import { RelaxedFields, readSignature, signedText } from '../dkim-signature.js';
import type { DkimSignature, Ruling } from '../dkim-signature.js';
import { dkimVerdict } from '../verdicts.js';
import type { DkimVerdict } from '../verdicts.js';
import { BodyHash } from './body-hash.js';
import { WITH_DKIM_QUESTIONS_MAX, isVerdict, textRecords } from './check-questions.js';
import type { CheckQuestions } from './check-questions.js';
import { keyFor } from './dkim-key.js';

/** Each may look through all fields. */
const SIGNATURES_MAX = 10;
/** By canonicalization and l=. */
const BODY_HASHES_MAX = 3;
/** Of a body in one step: 2 to 3 ms for one that is made to cost, a tenth of it for others. */
const HASHED_OCTETS_AT_ONCE = 128 * 1024;

/**
 * `content`: what the client sent; `section`: its header, which begins there. `turns` are those of all
 * messages of the thread: a hundred bodies together must let it answer as one does.
 */
export async function dkimVerdicts(
  content: Uint8Array, { fields, bodyAt, bodyPiece }: HeaderSection, questions: CheckQuestions,
  turns: TurnShare,
): Promise<readonly DkimVerdict[]> {
  const found = fields.filter(({ name }) => name === 'dkim-signature').slice(0, SIGNATURES_MAX);
  if (found.length === 0) return [dkimVerdict('none')];
  const hashes = new Map<string, BodyHash>();
  const begun = found.map((field) => {
    const signature = readSignature(field);
    if ('ruling' in signature) return signature;
    const hashed = hashOf(signature, hashes);
    if (hashed === undefined) return { shown: signature.shown, ruling: MANY_HASHES };
    return { shown: signature.shown, signature, hashed };
  });
  const from = bodyPiece === 0 ? bodyAt : content.length;
  const relaxed = new RelaxedFields();
  const isHashed = await hashBody(content.subarray(from), [...hashes.values()], questions, turns);
  const judged = async (signature: DkimSignature, hashed: BodyHash): Promise<Ruling> => {
    const key = await keyOf(signature, questions, turns);
    return turns.resultOf(() => verified(signature, hashed, key, fields, relaxed));
  };
  return Promise.all(begun.map(async (each) => {
    const [result, reason] = 'ruling' in each
      ? each.ruling
      : !isHashed ? NOT_IN_TIME
        : otherBody(each.signature, each.hashed) ?? await judged(each.signature, each.hashed);
    return { ...each.shown, result, reason };
  }));
}

const MANY_HASHES: Ruling = ['permerror', 'too many kinds of body hash'];
const NOT_IN_TIME: Ruling = ['temperror', 'not in time'];

function hashOf(signature: DkimSignature, hashes: Map<string, BodyHash>): BodyHash | undefined {
  const kind = `${signature.body} ${String(signature.bodyOctets)}`;
  const before = hashes.get(kind);
  if (before !== undefined || hashes.size >= BODY_HASHES_MAX) return before;
  const made = new BodyHash(signature);
  hashes.set(kind, made);
  return made;
}

async function keyOf(
  signature: DkimSignature, questions: CheckQuestions, turns: TurnShare,
): Promise<KeyObject | Ruling> {
  try {
    // RFC 6376 3.6.2.2 leaves open which of several counts.
    const [record = ''] = await textRecords(questions, signature.keyName, WITH_DKIM_QUESTIONS_MAX);
    // Also a key may be made to cost.
    return await turns.resultOf(() => keyFor(record, signature));
  } catch (error) {
    return isVerdict(error) ? ['permerror', 'no key'] : ['temperror', 'key could not be had'];
  }
}

/** False: its time was over before. */
async function hashBody(
  body: Uint8Array, hashes: readonly BodyHash[], questions: CheckQuestions, turns: TurnShare,
): Promise<boolean> {
  for (const each of hashes) {
    for (let at = 0; at < body.length;) {
      const [from, to] = [at, Math.min(body.length, at + HASHED_OCTETS_AT_ONCE)];
      // Others of the thread have their turns, within which its time may end.
      const next = await turns.resultOf(() => (questions.isOver ? undefined : each.update(body, from, to)));
      if (next === undefined) return false;
      at = next;
    }
    each.end();
  }
  return true;
}

function otherBody({ bodyHash, bodyOctets = 0 }: DkimSignature, body: BodyHash): Ruling | undefined {
  if (bodyOctets > body.octets) return ['permerror', 'body is shorter than l='];
  return bodyHash === body.hash ? undefined : ['fail', 'body has been altered'];
}

function verified(
  signature: DkimSignature, body: BodyHash, key: KeyObject | Ruling,
  fields: readonly SectionField[], relaxed: RelaxedFields,
): Ruling {
  const { algorithm, bodyOctets = body.octets, expiresAt } = signature;
  if (isRuling(key)) return key;
  const data = Buffer.from(signedText(signature, fields, relaxed), 'latin1');
  const value = Buffer.from(signature.signature, 'base64');
  // RFC 8463 3: Ed25519 signs the hash of what RSA would sign.
  const isRight = algorithm === 'rsa'
    ? verify('sha256', data, key, value)
    : verify(null, hash('sha256', data, 'buffer'), key, value);
  if (!isRight) return ['fail', 'signature does not match'];
  if (expiresAt * 1000 < Date.now()) return ['fail', 'expired'];
  return bodyOctets < body.octets ? ['policy', 'body is signed in part'] : ['pass', ''];
}

function isRuling(key: KeyObject | Ruling): key is Ruling {
  return Array.isArray(key);
}
