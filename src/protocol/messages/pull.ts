/**
 * PULL: asks for the entries of a partition, by position, as many as fit.
 *
 *   element  wire  field          meaning
 *   0        u31   handle         of its FENCE
 *   1        u53   afterPosition  entries behind this one; 0 from the first
 *   2        u53   untilPosition  up to this one
 *   3        u32   entriesMax     at most so many, ≥ 1
 *   4        u32   bytesMax       stop when the payload passes this; one entry always comes
 *   5        bool  withBodies     false: heads and notes alone, every row with BODY_ABSENT
 *
 * Answered by BLOCK.
 */
import { between, isBoolean, isHandle, isUint32, isWhole } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';

const pull = layout({
  handle: isHandle,
  afterPosition: isWhole,
  untilPosition: isWhole,
  entriesMax: between(1, 0xffff_ffff),
  bytesMax: isUint32,
  withBodies: isBoolean,
});
export type Pull = MessageOf<typeof pull>;
export const encodePull = pull.encode;
export const decodePull = pull.decode;
