/**
 * RELEASE: the holder has handed the partition of this handle back, or is deposed and filled the copy here
 * for no record: it delivers nothing of it any more, so nobody has to wait for what it was leased here (rule
 * 13 of docs/model), fenced by the next one or not.
 *
 *   element  wire  field   meaning
 *   0        u31   handle  of the FENCE
 *
 * Answered by ACK.
 */
import { isHandle } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';

const release = layout({
  handle: isHandle,
});
export type Release = MessageOf<typeof release>;
export const encodeRelease = release.encode;
export const decodeRelease = release.decode;
