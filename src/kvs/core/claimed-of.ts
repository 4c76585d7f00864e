/**
 * The answer to CLAIM and CONFIRM: where a queue stands at this store, in the words of the version that the asker speaks.
 */
import type { Claimed } from '../../protocol/messages/claimed.js';
import { CLAIM_GRANTED, ROLE_MEMBER, ROLE_NONE, ROLE_SPILLED } from '../../protocol/reasons.js';
import { tellsWriter } from '../../protocol/versions.js';
import type { GatewayAccount } from './accounts.js';
import type { ClaimVerdict } from './claims.js';
import type { MirroredQueue } from './mirrored-queue.js';
import type { Store } from './store.js';

const NOBODY = { gatewayId: '', incarnation: 0 } as const;

/** `queue` undefined: the store does not know it. */
export function claimedOf(
  store: Store, account: GatewayAccount, handle: number, queue: MirroredQueue | undefined, { result, waitMs }: ClaimVerdict,
  nowMs: number,
): Claimed {
  const granted = result === CLAIM_GRANTED;
  const isToldWriter = tellsWriter(account.version);
  if (queue === undefined) return { handle, result, token: 0, epoch: 0, members: [], number: 0, digestA: 0, digestB: 0, count: 0, bytes: 0, role: ROLE_NONE, waitMs, sameBoot: granted, holderWallMs: 0, writer: isToldWriter ? NOBODY : undefined };
  const { epoch, members, role, number, digestA, digestB, count, bytes } = queue;
  return {
    handle, result, token: granted ? queue.holderToken : queue.highestToken, epoch, members, number, digestA, digestB, count, bytes,
    role: store.roleToldTo(account, queue), waitMs, sameBoot: granted,
    holderWallMs: queue.clock?.wallMs(nowMs) ?? 0, writer: isToldWriter ? queue.writer.toldTo(account, role === ROLE_MEMBER || role === ROLE_SPILLED) : undefined,
  };
}
