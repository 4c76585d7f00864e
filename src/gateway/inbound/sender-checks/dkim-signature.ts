/**
 * One DKIM signature of a message as its field says it (RFC 6376 3.5), and whether it can be verified at all:
 * what 6.1.1 calls a PERMFAIL, and what is bounded here. What is signed is said by signedText(). Pure.
 */
import type { SectionField } from '../../dkim/header-section.js';
import { relaxedField } from '../../dkim/relaxed.js';
import { SIGNATURE_OCTETS_MAX, SIGNED_NAMES_MAX } from '../../dkim/signed-fields.js';
import { readTags, withoutBlanks } from '../../dkim/tag-list.js';
import type { DkimResult, DkimVerdict } from './verdicts.js';

const KEY_NAME_CHARACTERS_MAX = 253;
/** RFC 6008 6.2 wants eight at least. */
const START_CHARACTERS = 8;
const DOMAIN = /^[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const NUMBER = /^[0-9]{1,15}$/;
/** Its own value, which it can't sign: all up to the next tag (RFC 6376 3.7). */
const SIGNATURE_VALUE = /(^|;)([ \t\r\n]*b[ \t\r\n]*=)[^;]*/;

type Canonicalization = 'relaxed' | 'simple';

/** What is said of a signature, and why. */
export type Ruling = readonly [result: DkimResult, reason: string];

export interface DkimSignature {
  readonly field: SectionField;
  readonly algorithm: 'rsa' | 'ed25519';
  readonly header: Canonicalization;
  readonly body: Canonicalization;
  /** Octets of the body that are signed; undefined: all. */
  readonly bodyOctets: number | undefined;
  /** In base64. */
  readonly bodyHash: string;
  readonly signature: string;
  /** Lower case, in their order. */
  readonly names: readonly string[];
  /** "selector._domainkey.domain". */
  readonly keyName: string;
  /** i= names a subdomain of d=. */
  readonly isOfSubdomain: boolean;
  /** x=, in seconds since 1970. */
  readonly expiresAt: number;
  /** What of it can be told. */
  readonly shown: Omit<DkimVerdict, 'result' | 'reason'>;
}

/** What can be told of one that can't be verified, and why not. */
export interface UnusableSignature extends Pick<DkimSignature, 'shown'> {
  readonly ruling: Ruling;
}

export function readSignature(field: SectionField): DkimSignature | UnusableSignature {
  if (field.whole.length > SIGNATURE_OCTETS_MAX) return unusable(NOTHING_SHOWN, 'signature is too long');
  const tags = readTags(field.value);
  if (tags === undefined) return unusable(NOTHING_SHOWN, 'no list of tags');
  const shown = shownOf(tags);
  const { domain, selector } = shown;
  const a = tags.get('a')?.toLowerCase() ?? '';
  if (tags.get('v') !== '1') return unusable(shown, 'unknown version');
  // RFC 8301 3.1: it is not verified.
  if (a === 'rsa-sha1') return unusable(shown, 'rsa-sha1');
  const algorithm = a === 'rsa-sha256' ? 'rsa' : a === 'ed25519-sha256' ? 'ed25519' : undefined;
  if (algorithm === undefined) return unusable(shown, 'unknown algorithm');
  const keyName = `${selector}._domainkey.${domain}`;
  const isNamed = domain !== '' && selector !== '' && keyName.length <= KEY_NAME_CHARACTERS_MAX;
  if (!isNamed) return unusable(shown, 'no name of a key');
  const [signature, bodyHash] = [withoutBlanks(tags.get('b')), withoutBlanks(tags.get('bh'))];
  if (!BASE64.test(signature) || !BASE64.test(bodyHash)) return unusable(shown, 'incomplete signature');
  const names = withoutBlanks(tags.get('h')).toLowerCase().split(':');
  if (names.length > SIGNED_NAMES_MAX) return unusable(shown, 'too many signed fields');
  // RFC 6376 5.4.
  if (!names.includes('from')) return unusable(shown, 'From is not signed');
  const identity = (tags.get('i') ?? `@${domain}`).toLowerCase();
  const identityDomain = identity.slice(identity.lastIndexOf('@') + 1);
  const isOfSubdomain = identityDomain.endsWith(`.${domain}`);
  if (!isOfSubdomain && identityDomain !== domain) return unusable(shown, 'i= lies outside of d=');
  const [header = 'simple', body = 'simple', more] = tags.get('c')?.toLowerCase().split('/') ?? [];
  if (!isCanonicalization(header) || !isCanonicalization(body) || more !== undefined) {
    return unusable(shown, 'unknown canonicalization');
  }
  const [length, made, expires] = ['l', 't', 'x'].map((name) => tags.get(name));
  if ([length, made, expires].some((text) => text !== undefined && !NUMBER.test(text))) {
    return unusable(shown, 'no number');
  }
  const expiresAt = expires === undefined ? Infinity : Number(expires);
  if (expiresAt < Number(made ?? 0)) return unusable(shown, 'expires before it was made');
  return {
    field, algorithm, header, body, bodyHash, signature, names, keyName, isOfSubdomain, expiresAt, shown,
    bodyOctets: length === undefined ? undefined : Number(length),
  };
}

/**
 * The octets that it signs besides the body (RFC 6376 3.7), one character an octet: of each name in turn the
 * lowest field that is left, none where there is none, and itself without its value.
 */
export function signedText(
  { field, header, names }: DkimSignature, fields: readonly SectionField[], relaxed: RelaxedFields,
): string {
  const left = new Map<string, SectionField[]>();
  for (const each of fields) {
    const sameNamed = left.get(each.name);
    if (sameNamed === undefined) left.set(each.name, [each]);
    else sameNamed.push(each);
  }
  let text = '';
  for (const name of names) {
    const next = left.get(name)?.pop();
    if (next === undefined) continue;
    text += header === 'relaxed' ? relaxed.of(next) : next.whole;
    text += '\r\n';
  }
  const value = field.value.replace(SIGNATURE_VALUE, '$1$2');
  const whole = field.whole.slice(0, field.whole.length - field.value.length) + value;
  return text + (header === 'relaxed' ? relaxedField(field.name, value) : whole);
}

/** Fields of one message, each canonicalized once for all its signatures. */
export class RelaxedFields {
  readonly #known = new Map<SectionField, string>();

  of(field: SectionField): string {
    const known = this.#known.get(field) ?? relaxedField(field.name, field.value);
    this.#known.set(field, known);
    return known;
  }
}

function isCanonicalization(text: string): text is Canonicalization {
  return text === 'relaxed' || text === 'simple';
}

const NOTHING_SHOWN: DkimSignature['shown'] = { domain: '', selector: '', algorithm: '', start: '' };

function unusable(shown: DkimSignature['shown'], reason: string): UnusableSignature {
  return { shown, ruling: ['permerror', reason] };
}

function shownOf(tags: ReadonlyMap<string, string>): DkimSignature['shown'] {
  const [domain = '', selector = '', algorithm = ''] = ['d', 's', 'a'].map((name) => tags.get(name));
  return {
    domain: DOMAIN.test(domain) ? domain.toLowerCase() : '',
    selector: DOMAIN.test(selector) ? selector : '',
    algorithm: /^[A-Za-z0-9-]{1,32}$/.test(algorithm) ? algorithm.toLowerCase() : '',
    start: withoutBlanks(tags.get('b')).slice(0, START_CHARACTERS),
  };
}
