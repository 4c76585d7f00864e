/**
 * The members that SET_MEMBERS carries as its payload: a MessagePack array of store ids, at most MEMBERS_MAX
 * different ones (docs/PROTOCOL.md, "Change rows").
 */
import type { Packer } from '../platform/ports.js';
import { checkControl } from './bounds.js';
import { MEMBERS_MAX, isIdentifiers } from './fields.js';

export function encodeMembers(packer: Packer, members: readonly string[]): Uint8Array {
  return packer.pack(members);
}

/** The members, or undefined when the bytes are no such list. */
export function decodeMembers(packer: Packer, bytes: Uint8Array): readonly string[] | undefined {
  if (checkControl(bytes) !== '') return undefined;
  const value = packer.unpack(bytes);
  return isIdentifiers(value, MEMBERS_MAX) ? value : undefined;
}
