/**
 * May a host be rebooted? Judged by what the gateways of the group say, each of itself and of the stores that
 * it sees, and by who of etcd answers. Three questions, each answered by reasons against it:
 *
 *   lacking()     before anything is moved: who takes mail and delivers it meanwhile, where copies go, and
 *                 whether the register keeps its majority
 *   stillThere()  while copies leave: what has not, and what can't
 *   onlyThere()   at last: partitions of gateways there that no other host has whole, and copies there that
 *                 count for somebody, whoever that is
 *
 * A host is a label (`host` of a gateway or store). Members of etcd have none: an endpoint is there when its
 * address is that of something that is.
 */
import type { RegisterAnswer, StatusAnswer } from '../admin-api/gateway-answers.js';
import type { DrainAnswer } from '../admin-api/orders.js';
import { formatDuration } from '../base/units.js';
import { counted } from './tables.js';

export interface HostParts {
  readonly host: string;
  /** Gateways there, and all others. */
  readonly gateways: readonly StatusAnswer[];
  readonly elsewhere: readonly StatusAnswer[];
  /** Ids of stores there. */
  readonly stores: readonly string[];
}

export interface RegisterSeen {
  /** As a gateway elsewhere reaches them; of several, as the luckiest one. Empty: it is no etcd. */
  readonly members: RegisterAnswer['members'];
  /** Host names and addresses of what is at the host. */
  readonly addresses: ReadonlySet<string>;
}

/** What a gateway has at a store there. */
export interface DrainTold {
  readonly gateway: string;
  readonly answer: DrainAnswer;
}

/** Copies at a store there whose acknowledgement is needed for a commit. */
export interface CopiesThere {
  readonly store: string;
  /** By who holds the partition, as the store was told; null: nobody has told it. */
  readonly byHolder: ReadonlyMap<string | null, number>;
}

export function partsOf(host: string, statuses: readonly StatusAnswer[]): HostParts {
  const known = statuses.flatMap(({ stores, stores_unreached: unreached }) => [...stores, ...unreached]);
  return {
    host,
    gateways: statuses.filter((one) => one.host === host),
    elsewhere: statuses.filter((one) => one.host !== host),
    stores: [...new Set(known.filter((one) => one.host === host).map(({ store }) => store))].sort(),
  };
}

export function hostsOf(statuses: readonly StatusAnswer[]): readonly string[] {
  const all = statuses.flatMap(({ host, stores, stores_unreached: unreached }) =>
    [host, ...[...stores, ...unreached].map((one) => one.host)]);
  return [...new Set(all)].filter((host) => host !== '').sort();
}

export function lacking(parts: HostParts, register: RegisterSeen): readonly string[] {
  return [...withoutGateways(parts), ...withoutStores(parts), ...withoutMembers(parts.host, register)];
}

/** Somebody takes new mail, and what a gateway there has is delivered. */
function withoutGateways({ host, gateways, elsewhere }: HostParts): readonly string[] {
  if (gateways.length === 0) return [];
  if (elsewhere.length === 0) {
    return [`no gateway at another host answers: without ${host} nobody takes mail`];
  }
  const reasons: string[] = [];
  if (!elsewhere.some(({ ready }) => ready)) {
    const why = elsewhere.map(({ gateway, not_ready_reason: text }) => `${gateway}: ${text}`).join('; ');
    reasons.push(`no gateway at another host takes new mail (${why})`);
  }
  for (const { gateway } of gateways) {
    const heirs = elsewhere.filter(({ rescues }) => rescues.includes(gateway));
    const deaf = heirs.find(({ register_away: away }) => away !== '');
    if (heirs.length === 0) {
      reasons.push(`nobody delivers the mail of ${gateway} meanwhile: no gateway at another host has it in `
        + 'its group, with rescue: on');
    } else if (deaf !== undefined && heirs.every(({ register_away: away }) => away !== '')) {
      reasons.push(`nobody can take the mail of ${gateway} over: ${deaf.gateway} does not reach the `
        + `register: ${deaf.register_away}`);
    }
  }
  return reasons;
}

/** Whoever has copies there, or runs there, has as many at other hosts as a commit needs. */
function withoutStores({ host, gateways, elsewhere, stores }: HostParts): readonly string[] {
  const concerned = stores.length > 0 ? [...gateways, ...elsewhere] : gateways;
  const reasons: string[] = [];
  for (const { gateway, host: own, stores: seen, min_replicas: min } of concerned) {
    const others = seen.filter((store) => store.host !== host && store.host !== own);
    const usable = others.filter(({ up, drained }) => up && !drained);
    const needed = Math.max(1, min);
    // A store whose host nobody has told stands for itself.
    const found = new Set(usable.map(({ host: label, store }) => (label === '' ? store : label))).size;
    if (found >= needed) continue;
    const lost = others.filter((store) => !usable.includes(store)).map(({ store, drained, cause }) =>
      `${store} is ${drained ? 'drained' : `away${cause === '' ? '' : ` (${cause})`}`}`);
    const have = found === 0 ? 'no host' : counted(found, 'host');
    reasons.push(`${gateway} would have ${have} for its copies, and needs ${String(needed)}`
      + `${lost.length === 0 ? '' : `: ${lost.join(', ')}`}`);
  }
  return reasons;
}

/** As several gateways were answered: one that any of them reaches is there. */
export function unitedMembers(told: readonly RegisterAnswer['members'][]): RegisterAnswer['members'] {
  const whyOf = new Map<string, string>();
  for (const { endpoint, why } of told.flat()) if (whyOf.get(endpoint) !== '') whyOf.set(endpoint, why);
  return [...whyOf].map(([endpoint, why]) => ({ endpoint, why }));
}

function membersAt({ members, addresses }: RegisterSeen): RegisterAnswer['members'] {
  return members.filter(({ endpoint }) => addresses.has(hostName(endpoint)));
}

/** Of an etcd: a majority is left without those there. */
function withoutMembers(host: string, register: RegisterSeen): readonly string[] {
  const { members } = register;
  const there = membersAt(register);
  const left = members.filter((member) => member.why === '' && !there.includes(member)).length;
  if (there.length === 0 || left > members.length / 2) return [];
  const silent = members.filter(({ why }) => why !== '').map(({ endpoint, why }) => `${endpoint}: ${why}`);
  const also = silent.length === 0 ? '' : `; no answer from ${silent.join(', ')}`;
  const gone = there.map(({ endpoint }) => endpoint).join(', ');
  return [`the register would lose its majority: without ${gone} at ${host} `
    + `${String(left)} of ${String(members.length)} members are left${also}`];
}

/** Name or address in a URL. */
export function hostName(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname : '';
}

export interface StillThere {
  readonly reasons: readonly string[];
  /** None of it will go by itself. */
  readonly isStuck: boolean;
}

export function stillThere(drains: readonly DrainTold[]): StillThere {
  const reasons: string[] = [];
  for (const { gateway, answer: { store, mirrors, stuck } } of drains) {
    if (mirrors === 0) continue;
    reasons.push(stuck === 0
      ? `${gateway}: ${counted(mirrors, 'copy', 'copies')} still at ${store}`
      : `${gateway}: ${counted(stuck, 'copy', 'copies')} at ${store} CAN'T LEAVE: no other store takes them, `
        + 'and they are needed; start another store');
  }
  const isStuck = reasons.length > 0 && drains.every(({ answer }) => answer.mirrors === answer.stuck);
  return { reasons, isStuck };
}

export function onlyThere({ gateways }: HostParts, copies: readonly CopiesThere[]): readonly string[] {
  const reasons = gateways.flatMap(({ gateway, partitions_uncopied: count }) => (count === 0 ? []
    : [`${gateway} has mail in ${counted(count, 'partition')} that no store at another host has whole`]));
  for (const { store, byHolder } of copies) {
    for (const [holder, count] of byHolder) {
      reasons.push(`${holder ?? 'nobody known'} counts on ${store} for ${counted(count, 'partition')}`);
    }
  }
  return reasons;
}

/** What is said below "yes". */
export function yesLines(
  parts: HostParts, register: RegisterSeen, drains: readonly DrainTold[],
): readonly string[] {
  const { host, gateways, elsewhere } = parts;
  const lines: string[] = [];
  for (const { gateway, queued_messages: queued, lease_ms: leaseMs } of gateways) {
    const heirs = elsewhere.filter(({ rescues }) => rescues.includes(gateway)).map((heir) => heir.gateway);
    lines.push(`${gateway} has ${counted(queued, 'message')}: what it has when it ends is delivered by `
      + `${heirs.join(' or ')} once its lease (${formatDuration(leaseMs)}) is over, or by itself if it is `
      + 'back sooner');
  }
  for (const { gateway, partitions_copies_missing: short } of elsewhere) {
    if (short === 0) continue;
    lines.push(`${gateway}: ${counted(short, 'partition')} with fewer copies than configured until then`);
  }
  for (const { gateway, answer: { store, kept } } of drains) {
    if (kept) continue;
    lines.push(`${gateway}: that ${store} is drained is not on disk: a restart of it forgets that`);
  }
  const there = membersAt(register).length;
  const answering = register.members.filter(({ why }) => why === '').length;
  lines.push(register.members.length === 0
    ? 'the register is no etcd: whether it goes on without this host was not looked at'
    : `register: ${String(answering)} of ${String(register.members.length)} members answer, `
      + `${there === 0 ? 'none known to be' : `${String(there)} of them`} at ${host}`);
  return lines;
}
