/**
 * HEARTBEAT: the gateway lives; renews its lease. On every path, also on a connection that stands by.
 *
 *   element  wire  field            meaning
 *   0        u53   token            comes back in BEAT: when it was sent, as the gateway counts
 *   1        u53   wallMs           milliseconds since 1970, as the gateway reckons due times and expiry
 *   2        u53   fencesProcessed  fences of this process at this store up to which it has stopped
 *
 * Answered by BEAT.
 */
import { isWhole } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout } from '../layout.js';

const heartbeat = layout({
  token: isWhole,
  wallMs: isWhole,
  fencesProcessed: isWhole,
});
export type Heartbeat = MessageOf<typeof heartbeat>;
export const encodeHeartbeat = heartbeat.encode;
export const decodeHeartbeat = heartbeat.decode;
