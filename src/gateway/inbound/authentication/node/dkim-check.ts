/**
 * The DKIM signatures of a message (RFC 6376): which of them hold. By mailauth's verifier, called part by
 * part, so that what a sender can bring about is bounded:
 *
 *   header section ─ ours (dkim/header-section.ts): mailauth's own reader copies a field once for each line
 *   signatures ─ the ten on top, each of 8 KiB at most ─ its tags ─▶ our rules, below ─▶ out, or
 *   keys asked for, all at once ─▶ body hashed (body-hash.ts) ─▶ the verifier ─▶ rules of the key ─▶ verdict
 *
 * What mailauth 4.13.3 does not look at, and is looked at here, by the very tags that it has read: v=, that
 * From is signed (5.4), that i= lies within d= (3.5), rsa-sha1 (RFC 8301), whether the whole body is signed
 * (l=), and what the key's record says it is for (s=, h=, t=s; 3.6.1). What it calls neutral has a better
 * word (RFC 8601 2.7.1): a body that was altered does not verify.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { HeaderSection, SectionField } from '../../../dkim/header-section.js';
import type { DkimResult, DkimVerdict } from '../verdicts.js';
import { dkimVerdict } from '../verdicts.js';
import { BodyHash } from './body-hash.js';
import { textRecords } from './check-questions.js';
import type { CheckQuestions } from './check-questions.js';
import { DkimVerifier } from './mailauth-library.js';
import type { FieldLine, FoundSignature, SignatureFinding } from './mailauth-library.js';

const SIGNATURES_MAX = 10;
const SIGNATURE_OCTETS_MAX = 8 * 1024;
const SIGNED_NAMES_MAX = 200;
/** Above that the search for signed fields, of ten signatures, takes long. */
const FIELDS_MAX = 2000;
/** By canonicalization and l=. */
const BODY_HASHES_MAX = 3;
/** RFC 8301 3.2. */
const KEY_BITS_MIN = 1024;
/** Of a body in one turn: some 2 ms for each hash. */
const HASHED_OCTETS_PER_TURN = 1024 * 1024;
/** RFC 6008 6.2 wants eight at least. */
const START_CHARACTERS = 8;
const KEY_NAME_CHARACTERS_MAX = 253;
const DOMAIN = /^[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*$/;
const ALGORITHM = /^(?:rsa|ed25519)-sha256$/i;

type Verdict = readonly [result: DkimResult, reason: string];

const TOO_SHORT: Verdict = ['permerror', 'body is shorter than l='];

/** One of the ten, as far as it is known. */
interface Examined {
  readonly found: FoundSignature;
  readonly hash: BodyHash | undefined;
  readonly verdict: Verdict | undefined;
}

/** `content`: what the client sent; `section`: its header, which begins there. */
export async function dkimVerdicts(
  content: Uint8Array, { fields, bodyAt, bodyPiece }: HeaderSection, questions: CheckQuestions,
): Promise<readonly DkimVerdict[]> {
  const signatures = fields.filter(({ name }) => name === 'dkim-signature').slice(0, SIGNATURES_MAX);
  if (signatures.length === 0) return [dkimVerdict('none')];
  if (fields.length > FIELDS_MAX) return [dkimVerdict('permerror', 'too many header fields')];
  const read = signatures.filter(({ whole }) => whole.length <= SIGNATURE_OCTETS_MAX);
  const tooLong = signatures.length - read.length;
  const verifier = new DkimVerifier({
    // It looks for the sender's address otherwise.
    sender: '<>', minBitLength: KEY_BITS_MIN,
    resolver: async (name) => (await textRecords(questions, name)).map((text) => [text]),
  });
  await verifier.messageHeaders({ parsed: read.map(lineOf), original: Buffer.alloc(0) });
  const hashes = new Map<string, BodyHash>();
  const examined = verifier.signatureHeaders.map((found) => examine(found, hashes));
  for (const { found, verdict } of examined) if (verdict !== undefined) found.skip = true;
  const verified = examined.filter(({ verdict }) => verdict === undefined);
  for (const { found } of verified) void questions.resolve(keyName(found), 'TXT').catch(() => undefined);
  await hashBody(content, bodyPiece === 0 ? bodyAt : content.length, [...hashes.values()], questions);
  for (const each of verified) if (isShort(each)) each.found.skip = true;
  verifier.headers = { parsed: fields.map(lineOf), original: Buffer.alloc(0) };
  verifier.bodyHashes = new Map(hashes);
  if (examined.some(({ found }) => found.skip !== true)) await verifier.finalChunk();
  const findings = verifier.results.values();
  const verdicts = examined.map((each) => {
    const known = each.verdict ?? (isShort(each) ? TOO_SHORT : undefined);
    return shown(each.found, known ?? meaning(each, findings.next().value));
  });
  const others = Array.from({ length: tooLong }, () => dkimVerdict('permerror', 'signature is too long'));
  return [...verdicts, ...others];
}

function lineOf({ name, whole }: SectionField): FieldLine {
  return { key: name, casedKey: whole.slice(0, name.length), line: Buffer.from(whole, 'latin1') };
}

/** By its tags alone. */
function examine(found: FoundSignature, hashes: Map<string, BodyHash>): Examined {
  const verdict = ruleOf(found);
  if (verdict !== undefined) return { found, hash: undefined, verdict };
  const before = hashes.get(found.bodyHashKey);
  if (before === undefined && hashes.size >= BODY_HASHES_MAX) {
    return { found, hash: undefined, verdict: ['policy', 'too many kinds of body hash'] };
  }
  const hash = before ?? new BodyHash(found);
  hashes.set(found.bodyHashKey, hash);
  return { found, hash, verdict: undefined };
}

function ruleOf(found: FoundSignature): Verdict | undefined {
  const algorithm = tag(found, 'a');
  if (tag(found, 'v') !== '1') return ['permerror', 'unknown version'];
  if (algorithm.toLowerCase() === 'rsa-sha1') return ['policy', 'rsa-sha1'];
  if (!ALGORITHM.test(algorithm)) return ['permerror', 'unknown algorithm'];
  const [domain, selector] = [tag(found, 'd'), tag(found, 's')];
  const isNamed = DOMAIN.test(domain) && DOMAIN.test(selector);
  if (!isNamed || keyName(found).length > KEY_NAME_CHARACTERS_MAX) return ['permerror', 'no name of a key'];
  if (tag(found, 'b') === '' || tag(found, 'bh') === '') return ['permerror', 'incomplete signature'];
  const names = tag(found, 'h').toLowerCase().split(':');
  if (names.length > SIGNED_NAMES_MAX) return ['permerror', 'too many signed fields'];
  if (!names.includes('from')) return ['permerror', 'From is not signed'];
  const identity = identityDomain(found);
  if (identity !== domain.toLowerCase() && !identity.endsWith(`.${domain.toLowerCase()}`)) {
    return ['permerror', 'i= lies outside of d='];
  }
  return found.skip === true ? ['permerror', 'unknown canonicalization'] : undefined;
}

function tag({ parsed }: FoundSignature, name: string): string {
  return String(parsed[name]?.value ?? '').trim();
}

/** Of i=, which may be left out. */
function identityDomain(found: FoundSignature): string {
  const identity = tag(found, 'i');
  return (identity === '' ? tag(found, 'd') : identity.slice(identity.lastIndexOf('@') + 1)).toLowerCase();
}

function keyName(found: FoundSignature): string {
  return `${tag(found, 's')}._domainkey.${tag(found, 'd')}`;
}

async function hashBody(
  content: Uint8Array, from: number, hashes: readonly BodyHash[], questions: CheckQuestions,
): Promise<void> {
  for (let at = from; at < content.length && !questions.isOver;) {
    const to = Math.min(content.length, at + HASHED_OCTETS_PER_TURN);
    for (const hash of hashes) hash.update(content, at, to);
    at = to;
    // Other messages have their turn.
    if (at < content.length) await nextTurn();
  }
  for (const hash of hashes) hash.end();
}

/** More is signed than there is. */
function isShort({ found: { maxBodyLength }, hash }: Examined): boolean {
  return typeof maxBodyLength === 'number' && (hash?.canonicalizedLength ?? maxBodyLength) < maxBodyLength;
}

function meaning({ found, hash }: Examined, finding: SignatureFinding | undefined): Verdict {
  if (finding === undefined) return ['temperror', 'not verified'];
  const { status: { result, comment }, rr = '' } = finding;
  switch (result) {
    case 'pass': {
      const rule = keyRule(found, rr);
      if (rule !== '') return ['permerror', rule];
      const isWhole = hash === undefined || hash.bodyHashedBytes === hash.canonicalizedLength;
      return isWhole ? ['pass', ''] : ['policy', 'body is signed in part'];
    }
    case 'fail':
      return ['fail', 'signature does not match'];
    case 'policy':
      return ['policy', 'key is too short'];
    case 'temperror':
      return ['temperror', 'key could not be had'];
    default:
      return COMMENTS.get(comment ?? '') ?? ['permerror', 'unusable key'];
  }
}

/** What mailauth calls neutral. */
const COMMENTS: ReadonlyMap<string, Verdict> = new Map<string, Verdict>([
  ['body hash did not verify', ['fail', 'body has been altered']],
  ['no key', ['permerror', 'no key']],
  ['expired', ['fail', 'expired']],
  ['invalid expiration', ['permerror', 'expires before it was made']],
]);

/** RFC 6376 3.6.1: what the owner of a key says it is for. */
function keyRule(found: FoundSignature, record: string): string {
  const tags = new Map(record.split(';').map((each) => {
    const [name = '', value = ''] = each.split('=', 2);
    return [name.toLowerCase(), value.toLowerCase().split(':')];
  }));
  const services = tags.get('s') ?? ['*'];
  if (!services.includes('*') && !services.includes('email')) return 'key is not for mail';
  const hashes = tags.get('h');
  if (hashes !== undefined && !hashes.includes('sha256')) return 'key is not for sha256';
  const isStrict = tags.get('t')?.includes('s') === true;
  return isStrict && identityDomain(found) !== tag(found, 'd').toLowerCase() ? 'i= is not d=' : '';
}

/** What of a signature can be told is told, whatever came of it. */
function shown(found: FoundSignature, [result, reason]: Verdict): DkimVerdict {
  const [domain, selector, algorithm] = [tag(found, 'd'), tag(found, 's'), tag(found, 'a')];
  return {
    result, reason,
    domain: DOMAIN.test(domain) ? domain.toLowerCase() : '',
    selector: DOMAIN.test(selector) ? selector : '',
    algorithm: ALGORITHM.test(algorithm) ? algorithm.toLowerCase() : '',
    start: tag(found, 'b').slice(0, START_CHARACTERS),
  };
}
