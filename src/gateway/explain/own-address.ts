/**
 * For explanation.ts: what an address is that the gateway takes itself, by the very rules of reception,
 * and whom it stands for. postmaster and abuse, reverse-paths that were made here (`smtp.srs`, `verp`), and
 * the address of feedback loops.
 */
import { formatMessageId } from '../../base/text-id.js';
import { toAscii } from '../../platform/node/idna.js';
import type { Clock } from '../../platform/ports.js';
import type { Path } from '../../smtp/address.js';
import type { RelayPolicy } from '../inbound/policy/relay-policy.js';
import { RoleAddresses } from '../inbound/policy/role-addresses.js';
import type { Destination } from '../inbound/policy/role-addresses.js';
import { whoIsMeant } from '../inbound/recipients/who-is-meant.js';
import { OwnAddresses } from '../returned/node/own-addresses.js';
import type { CameBack } from '../returned/came-back.js';
import type { ExplainOptions } from './explanation.js';
import { NotExplained } from './not-explained.js';

export interface MeantAddress {
  /** '' of an address that is nothing of the gateway's. */
  readonly is: string;
  /** Where its mail goes on to; undefined: it ends here. */
  readonly to: Destination | undefined;
  /** A table of recipients need not know it. */
  readonly isRole: boolean;
}

type OwnOptions = Pick<ExplainOptions, 'hostName' | 'postmaster' | 'routes' | 'smtp'>;

export function rolesOf(
  policy: RelayPolicy, { hostName, postmaster, routes, smtp: { srs } }: OwnOptions,
): RoleAddresses {
  const domains = [srs, ...routes.map(({ verp }) => verp)].flatMap((each) => each?.domain ?? []);
  return new RoleAddresses({ hostName, postmaster }, policy, { domains });
}

/** Throws what reception would answer. */
export function meantBy(
  path: Path, reversePath: string, roles: RoleAddresses, { postmaster, routes, smtp }: OwnOptions,
  clock: Clock,
): MeantAddress {
  const ports = { toAscii, made: new OwnAddresses({ smtp, routes }, clock) };
  const meant = whoIsMeant(path, { reversePath, mayTakeMoreBack: true }, ports);
  if ('reply' in meant) {
    throw new NotExplained('answer', `mail to ${path.address} would be refused: ${meant.reply.trim()}`);
  }
  const { wanted, came } = meant;
  const made = wanted === path && came === undefined ? '' : madeText(came);
  if (came?.to === '') return { is: made, to: undefined, isRole: false };
  const role = roles.destinationOf(wanted);
  if (role === undefined) return { is: made, to: wanted, isRole: came?.kind === 'feedback' };
  const reader = `smtp.postmaster names ${postmaster === '' ? 'no' : 'its'} reader`;
  const words = made === '' ? '' : `${made}, for `;
  return { is: `${words}an address that every mail server has: ${reader}`, to: role, isRole: true };
}

function madeText(came: CameBack | undefined): string {
  if (came === undefined) return 'a reverse-path that was rewritten here (smtp.srs)';
  if (came.kind === 'feedback') return 'the address of feedback loops (smtp.feedback)';
  const { route, token: { messageId, ageDays } } = came;
  return `a return address of route ${route} (verp), made for message ${formatMessageId(messageId)} `
    + `${String(ageDays)} ${ageDays === 1 ? 'day' : 'days'} ago`;
}
