/** Who gives a command and why, as the gateways log it. */
import os from 'node:os';
import type { Order } from '../admin-api/orders.js';
import { UsageError } from './context.js';

/** `verb` names the command in the complaint about a reason without a word. */
export function orderOf(verb: string, reason: string): Order {
  if (reason.trim() === '') throw new UsageError(`${verb}: say the --reason, which is logged`);
  return { reason, who: operatorName() };
}

/** USER@MACHINE. */
function operatorName(): string {
  return `${userName()}@${os.hostname()}`;
}

function userName(): string {
  try {
    return os.userInfo().username;
  } catch {
    // As in a container whose user stands in no file.
    return 'unknown';
  }
}
