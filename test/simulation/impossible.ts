/**
 * What production code says of itself that must never be true, whatever the faults: refusals and closed connections
 * whose only cause is a mistake of ours, since the simulated network alters no byte; and, where nothing but short
 * stalls of a gateway and trouble at next hops happen, any isolated mirror at all.
 */
import type { LogLine } from '../scenario/ports.js';
import { GuaranteeBroken } from './broken.js';

/** GAP is a mirror that was away; FENCED, DENIED, UNKNOWN and STANDBY follow from restarts and takeovers; LIMIT from a full store, BODY from a tail. */
const IMPOSSIBLE_REFUSALS = ['DIGEST', 'CHECKSUM', 'INVALID', 'COUNT'];
const IMPOSSIBLE_ENDS = ['MALFORMED', 'SEQUENCE', 'VERSION'];
/** A copy that was in step and is not any more. */
const ISOLATED = /member \S+ IN_STEP -> NG$/;

export function checkLog(line: LogLine, isHarmless: boolean): void {
  const reason = String(line.fields['reason'] ?? '');
  if (line.text === 'request refused' && IMPOSSIBLE_REFUSALS.includes(reason)) throw new GuaranteeBroken(`protocol: a store refused with ${reason}: ${JSON.stringify(line.fields)}`);
  if (line.text === 'connection closed' && IMPOSSIBLE_ENDS.includes(reason)) throw new GuaranteeBroken(`protocol: a store closed with ${reason}: ${JSON.stringify(line.fields)}`);
  if (isHarmless && ISOLATED.test(line.text)) throw new GuaranteeBroken(`links: a mirror is isolated, and no store, path or process was away for longer than its lease: ${line.text}`);
}
