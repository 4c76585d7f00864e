/**
 * The list of store ids that SET_MEMBERS carries: a MessagePack array of strings, bounded.
 */

import type { Packer } from '../../platform/ports.js';
import { checkControl } from '../../protocol/bounds.js';
import { MEMBERS_MAX, isIdentifiers } from '../../protocol/fields.js';

/** The members, or undefined when the bytes are no such list. */
export function decodeMembers(packer: Packer, bytes: Uint8Array): readonly string[] | undefined {
  if (checkControl(bytes) !== '') return undefined;
  const value = packer.unpack(bytes);
  return isIdentifiers(value, MEMBERS_MAX) ? value : undefined;
}
