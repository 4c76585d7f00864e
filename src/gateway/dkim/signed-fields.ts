/**
 * Which fields of a message a signature covers, and in what order (RFC 6376 5.4). Those that readers are
 * shown, or that say what the body is, are listed once more than they occur: one that is added on the way
 * breaks the signature (8.15). Of several of one name the lowest comes first (5.4.2). Pure.
 */
import { relaxedField } from './relaxed.js';
import type { SectionField } from './header-section.js';

/** True: listed once more than it occurs. */
const COVERED: ReadonlyMap<string, boolean> = new Map([
  ['from', true], ['to', true], ['cc', true], ['subject', true], ['date', true], ['message-id', true],
  ['reply-to', true], ['in-reply-to', false], ['references', false], ['sender', false],
  ['mime-version', true], ['content-type', true], ['content-transfer-encoding', true],
  ['content-id', false], ['content-description', false],
]);
/** Names that may stand in h= as they are: others of strangers might end the tag. */
const FAMILIES = /^(?:resent|list)-[a-z][a-z-]{0,40}$/;
/** In h=, of a signature that we make or verify. More no mail has, but one that is made to cost. */
export const SIGNED_NAMES_MAX = 200;
/** Of the field of a signature that we make or verify. */
export const SIGNATURE_OCTETS_MAX = 8 * 1024;
/** All else in the field, and its folds, take 3.7 KiB at most, most of it of an RSA key of 16,384 bits. */
const NAMES_OCTETS_MAX = SIGNATURE_OCTETS_MAX / 2;
const ONCE_MORE = [...COVERED].flatMap(([name, isOnceMore]) => (isOnceMore ? [name] : []));

export interface CoveredFields {
  /** For h=, in their order. */
  readonly names: readonly string[];
  /** What is signed of them, each with its line end; one character an octet. */
  readonly canonical: string;
}

/** Undefined when there are too many. */
export function coveredFields(fields: readonly SectionField[]): CoveredFields | undefined {
  const byName = new Map<string, SectionField[]>([...COVERED.keys()].map((name) => [name, []]));
  let namesLeft = SIGNED_NAMES_MAX - ONCE_MORE.length;
  let octetsLeft = NAMES_OCTETS_MAX - ONCE_MORE.join(':').length;
  for (let i = fields.length - 1; i >= 0; i--) {
    const field = fields[i];
    if (field === undefined || !(COVERED.has(field.name) || FAMILIES.test(field.name))) continue;
    namesLeft -= 1;
    octetsLeft -= ':'.length + field.name.length;
    if (namesLeft < 0 || octetsLeft < 0) return undefined;
    const others = byName.get(field.name);
    if (others === undefined) byName.set(field.name, [field]);
    else others.push(field);
  }
  const names: string[] = [];
  let canonical = '';
  for (const [name, all] of byName) {
    for (const { value } of all) {
      names.push(name);
      canonical += `${relaxedField(name, value)}\r\n`;
    }
    if (COVERED.get(name) === true) names.push(name);
  }
  return { names, canonical };
}
