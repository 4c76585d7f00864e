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
/** Each is a name in h=. More than this no mail has, but one that is made to cost. */
const FIELDS_MAX = 256;

export interface CoveredFields {
  /** For h=, in their order. */
  readonly names: readonly string[];
  /** What is signed of them, each with its line end; one character an octet. */
  readonly canonical: string;
}

/** Undefined when there are too many. */
export function coveredFields(fields: readonly SectionField[]): CoveredFields | undefined {
  const byName = new Map<string, SectionField[]>([...COVERED.keys()].map((name) => [name, []]));
  let count = 0;
  for (let i = fields.length - 1; i >= 0; i--) {
    const field = fields[i];
    if (field === undefined || !(COVERED.has(field.name) || FAMILIES.test(field.name))) continue;
    if (++count > FIELDS_MAX) return undefined;
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
