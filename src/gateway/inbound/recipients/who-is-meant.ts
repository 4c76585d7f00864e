/**
 * Whom an address of our own making stands for: reverse-paths of `smtp.srs` and `verp`, and the address of
 * feedback loops. Asked at each RCPT where there are any, when a report of our own is sent
 * (report-ways.ts), and by `explain`. Pure.
 */
import type { ToAscii } from '../../../platform/ports.js';
import type { CameBack } from '../../returned/came-back.js';
import { parsePath } from '../../../smtp/address.js';
import type { Path } from '../../../smtp/address.js';
import type { MadeAddresses } from '../options.js';
import * as replies from '../session/replies.js';
import type { Refusal } from '../session/replies.js';
import type { MailTransaction } from '../session/transaction.js';

/** An address of 254 octets holds no more. */
const TIMES_MADE_MAX = 10;

export interface MeantRecipient {
  /** An address of ours yet where what comes back goes on to nobody: `came.to` is ''. */
  readonly wanted: Path;
  /** As what it comes back; of an address in another one, as the outer. */
  readonly came: CameBack | undefined;
}

export interface MadeAddressPorts {
  readonly toAscii: ToAscii;
  readonly made: Pick<MadeAddresses, 'rewriting' | 'paths'>;
}
type MeantBy = Pick<MailTransaction, 'reversePath' | 'mayTakeMoreBack'>;

/** What a report of our own comes with. */
export const OWN_REPORT: MeantBy = { reversePath: '', mayTakeMoreBack: true };

/** Mail that went out from here may have come back and gone out again, by either way: each time is undone. */
export function whoIsMeant(
  path: Path, transaction: MeantBy, ports: MadeAddressPorts,
): MeantRecipient | Refusal {
  let wanted = path;
  let came: CameBack | undefined;
  for (let times = 0; ; times++) {
    const found = ports.made.paths?.find(wanted);
    if (found === 'forged') return replies.RETURN_FORGED;
    if (found === 'stale') return replies.RETURN_STALE;
    if (found !== undefined) {
      if (!transaction.mayTakeMoreBack) return replies.TOO_MANY_RECIPIENTS;
      came = came === undefined ? found : { ...came, to: found.to };
      if (found.to === '') return { wanted, came };
    }
    const original = found === undefined ? senderBehind(wanted, transaction, ports) : found.to;
    if (original === undefined) return { wanted, came };
    if (typeof original !== 'string') return original;
    const before = times < TIMES_MADE_MAX ? parsePath(`<${original}>`, 0, ports.toAscii) : '';
    if (typeof before === 'string') {
      return found === undefined ? replies.NO_SUCH_SENDER : replies.RETURN_FORGED;
    }
    wanted = before;
    // Its reader may be the very mailbox of this name.
    if (found?.kind === 'feedback') return { wanted, came };
  }
}

/** A reverse-path that was rewritten here leads reports to its sender, whoever brings them. */
function senderBehind(
  { address, domain }: Path, { reversePath }: MeantBy, { made: { rewriting } }: MadeAddressPorts,
): string | Refusal | undefined {
  if (rewriting?.domain !== domain) return undefined;
  const local = address.slice(0, address.lastIndexOf('@'));
  if (!rewriting.isRewritten(local)) return undefined;
  return reversePath === '' ? rewriting.original(local) ?? replies.NO_SUCH_SENDER : replies.REPORTS_ONLY;
}
