/**
 * The gateways and stores that belong together, found from any one of them: each knows some of the others
 * (`GET /api/v1/group`: stores the gateways of their group, gateways their stores), and each is asked as soon
 * as it is named, so that all who are silent are waited for at once. Then a verb asks all of a kind at the
 * same time.
 *
 *   --from ADDRESS ─► its group ─► groups of those ─► … ─► ask(kind) ─► answers, and who did not answer
 *                                       └─ answers by another name ─► missing; whom it names is not asked
 *
 * Whoever does not answer is kept as MISSING and shown with the answers of the others: an answer is marked
 * as partial, never taken for the whole. The token goes to all of them, and so do http or https: a group has
 * one file of tokens, and TLS at all of its admin ports or none.
 *
 * Of whom the register knows no process it is not known whether it runs: cut off from the register alone, it
 * goes on with its stores. It is asked where it answered last; is it silent, stores tell who has a link.
 *
 * An address in a configuration may be another process's, of another group even: all of that group would be
 * taken for ours. So who answers there must be who was expected.
 */
import type { Argv, Options } from 'yargs';
import { AWAY, whyNotAsked } from '../admin-api/group.js';
import type { MemberAnswer } from '../admin-api/pages.js';
import { ACCESS_OPTIONS, GATEWAY_URL, addressHelp, adminAddress } from './admin-address.js';
import type { AccessArguments } from './admin-address.js';
import { AdminClient, NoAnswer } from './admin-client.js';
import type { CliContext, Terminal } from './context.js';
import { counted, paint, printable } from './tables.js';

/** Asked at the same time. */
const ASKED_AT_ONCE = 64;
/** A group is tens of processes; whoever claims more is not to keep us busy. */
const MEMBERS_MAX = 1000;
/** Of one that has no session at the register: its machine may have no power. */
const AWAY_TIMEOUT_MS = 2_000;
/** Where questions are bounded, as those of a picture that is drawn again and again. */
const AWAY_BOUNDED_MS = 500;
/** Then anybody has so long to say whom it knows: one that stands still is waited for in each picture. */
const HEAR_BOUNDED_MS = 1_000;

export const GROUP_OPTIONS = {
  from: {
    alias: 'gateway', type: 'string', requiresArg: true,
    describe: addressHelp('any gateway or store of the group', GATEWAY_URL),
  },
  only: { type: 'boolean', describe: 'ask this address alone, not the whole group' },
  ...ACCESS_OPTIONS,
} as const satisfies Record<string, Options>;

const UNTOLD = '; whether it may deliver mail nobody tells (no store answers)';

/** What lists of mail say of one that is away. */
const LACKS_MAIL = '; mail of it that nobody has taken over is not in this';

/** Exit code when somebody could not be asked, has not heard an order, or could not tell its outcome. */
export const NOT_ALL_KNOW = 3;

export const EXIT_CODES = 'exit code: 0, 3 somebody did not answer, 1 nobody did, 2 wrong usage';

/** What is said below the options of each verb that asks a group. */
const WHO_IS_NAMED = 'Who does not answer is named at the end (--json: an object with "partial": true)';

export function withGroupOptions(args: Argv, exitCodes = EXIT_CODES) {
  return args.options(GROUP_OPTIONS).epilogue(`${WHO_IS_NAMED}; ${exitCodes}.`);
}

export interface GroupArguments extends AccessArguments {
  readonly from: string | undefined;
  readonly only: boolean | undefined;
}

export type Kind = MemberAnswer['kind'];

export interface Member {
  readonly id: string;
  readonly kind: Kind;
  readonly client: AdminClient;
}

/** One that should have answered. */
export interface Missing {
  readonly id: string;
  readonly kind: Kind;
  /** '' when no configuration says it. */
  readonly address: string;
  readonly why: string;
  /**
   * 'away': it has no session at the register. 'refused': it answered, and would not. 'another': who
   * answers at its address is another.
   */
  readonly how: 'away' | 'not asked' | 'silent' | 'refused' | 'another';
  /** Of one that refused: what HTTP said. */
  readonly code?: number;
  /** Of one that is away: how many stores that answer have a link to it; undefined: no store tells. */
  readonly links?: number | undefined;
  /** Then: it is retired, and none of its partitions is left. */
  readonly retired?: true;
}

export interface Answered<T> {
  readonly id: string;
  readonly client: AdminClient;
  readonly answer: T;
}

export class Group {
  readonly members: readonly Member[];
  /** Spent on waiting for those that say nothing, and on nothing else. */
  #awaitedMs: number;
  readonly #missing: Map<string, Missing>;

  constructor(members: readonly Member[], missing: readonly Missing[], awaitedMs = 0) {
    this.members = members;
    this.#awaitedMs = awaitedMs;
    this.#missing = new Map(missing.map((one) => [keyOf(one), one]));
  }

  get awaitedMs(): number {
    return this.#awaitedMs;
  }

  /** Of these kinds, by kind and id. */
  missing(...kinds: readonly Kind[]): readonly Missing[] {
    return [...this.#missing.values()].filter((one) => kinds.includes(one.kind)).sort((a, b) =>
      compare(keyOf(a), keyOf(b)));
  }

  /**
   * Those that may do something to mail, and did not hear what all gateways were asked: who is away does
   * nothing when no store has a link to it. Where no store tells, it may, unless it is retired, or has not
   * been seen by anybody who answers.
   */
  get unheard(): readonly Missing[] {
    return this.missing('gateway').filter((one) =>
      one.how !== 'away' || (one.links ?? 0) > 0 || isUntold(one));
  }

  /** The group less those that `leave` names. */
  without(leave: (member: { readonly kind: Kind; readonly id: string }) => boolean): Group {
    const stay = (one: { readonly kind: Kind; readonly id: string }): boolean => !leave(one);
    return new Group(this.members.filter(stay), [...this.#missing.values()].filter(stay));
  }

  /** Those of a kind that have answered until now. */
  answering(kind: Kind): readonly Member[] {
    return this.members.filter((member) => member.kind === kind && !this.#missing.has(keyOf(member)));
  }

  /** Asks all of a kind at once; those that fail are missing from then on. Answers by id. */
  async ask<T>(kind: Kind, ask: (client: AdminClient) => Promise<T>): Promise<readonly Answered<T>[]> {
    const asked = this.answering(kind);
    const answers: Answered<T>[] = [];
    for (let i = 0; i < asked.length; i += ASKED_AT_ONCE) {
      let heardMs = performance.now();
      await Promise.all(asked.slice(i, i + ASKED_AT_ONCE).map(async (member) => {
        try {
          answers.push({ id: member.id, client: member.client, answer: await ask(member.client) });
        } catch (error) {
          if (this.lose(member, error).how === 'silent') return;
        }
        heardMs = performance.now();
      }));
      this.#awaitedMs += performance.now() - heardMs;
    }
    return answers.sort((a, b) => compare(a.id, b.id));
  }

  /** A member did not answer. Errors that are not about that are thrown on. */
  lose(member: Member, error: unknown): Missing {
    const missing = missingAfter(member, error);
    this.#missing.set(keyOf(member), missing);
    return missing;
  }
}

/**
 * `timeoutMs` bounds each question; `option` names the first address. Throws when that does not answer.
 */
export async function findGroup(
  args: GroupArguments, context: CliContext, timeoutMs?: number, option?: string,
): Promise<Group> {
  const { url, access } = adminAddress(args, context);
  const first = new AdminClient(url, access, timeoutMs, option);
  const hearMs = timeoutMs === undefined ? undefined : Math.min(timeoutMs, HEAR_BOUNDED_MS);
  const told = await new AdminClient(url, access, hearMs, option).group();
  const self = selfOf(first, told);
  const members = new Map<string, Member>([[keyOf(self), { id: self.id, kind: self.kind, client: first }]]);
  if (args.only === true) return new Group([...members.values()], []);
  const missing = new Map<string, Missing>();
  /** The register knows no process of these, whatever address a file says. */
  const gone = new Set<string>();
  const protocol = new URL(first.url).protocol;
  const awayMs = timeoutMs === undefined ? AWAY_TIMEOUT_MS : Math.min(timeoutMs, AWAY_BOUNDED_MS);
  const fresh = [...take(told)];
  const asked = new Map<Member, Promise<void>>();
  let heardMs = performance.now();
  while (fresh.length > 0 || asked.size > 0) {
    for (const member of fresh.splice(0, ASKED_AT_ONCE - asked.size)) asked.set(member, meet(member));
    await Promise.race(asked.values());
  }
  const lost = [...missing].map(([key, one]) => (gone.has(key) ? goneOf(one) : one));
  return withLinks(new Group([...members.values()], lost, performance.now() - heardMs));

  async function meet(member: Member): Promise<void> {
    const boundMs = gone.has(keyOf(member)) ? awayMs : hearMs;
    const heard = await hear(member, new AdminClient(member.client.url, access, boundMs));
    asked.delete(member);
    if (!('how' in heard) || heard.how !== 'silent') heardMs = performance.now();
    if ('how' in heard) missing.set(keyOf(member), heard);
    else fresh.push(...take(heard));
  }

  /** Those of them that are new and can be asked. */
  function* take(all: readonly MemberAnswer[]): Generator<Member> {
    for (const one of all) {
      const key = keyOf(one);
      if (one.away) gone.add(key);
      if (members.has(key) || members.size >= MEMBERS_MAX) continue;
      if (one.admin === null || !URL.canParse(`${protocol}//${one.admin}`)) {
        // One that has a register knows better than one that only lacks an address.
        if (one.away || !missing.has(key)) {
          missing.set(key, {
            id: one.id, kind: one.kind, address: '', how: one.away ? 'away' : 'not asked',
            why: whyNotAsked({ admin: null, away: one.away }),
          });
        }
        continue;
      }
      const client = new AdminClient(`${protocol}//${one.admin}`, access, timeoutMs);
      const member = { id: one.id, kind: one.kind, client };
      // Another member may know what the first did not.
      missing.delete(key);
      members.set(key, member);
      yield member;
    }
  }
}

/** What it knows of its group; or what there is instead. */
async function hear(member: Member, client: AdminClient): Promise<readonly MemberAnswer[] | Missing> {
  try {
    const answer = await client.group();
    const { id, kind } = selfOf(client, answer);
    if (id === member.id && kind === member.kind) return answer;
    return {
      id: member.id, kind: member.kind, address: hostOf(client.url),
      why: `answers as ${kind === member.kind ? id : `the ${kind} ${id}`}`, how: 'another',
    };
  } catch (error) {
    return missingAfter(member, error);
  }
}

/** The register knows no process of it. */
function goneOf(one: Missing): Missing {
  return one.how === 'refused' || one.how === 'away' ? one
    : { ...one, how: 'away', why: `${AWAY}; ${one.why}` };
}

/** Asks stores who has a link, where it is of account; where none answers, gateways who is retired. */
async function withLinks(group: Group): Promise<Group> {
  const lost = group.missing('gateway', 'store');
  if (!lost.some(({ how }) => how === 'away')) return group;
  // Whoever is lost by this question is asked again by the next.
  const told = await new Group(group.members, lost).ask('store', (client) => client.storeStatus());
  const isTold = told.length > 0 || ![...group.members, ...lost].some(({ kind }) => kind === 'store');
  if (!isTold) return withRetired(group, lost);
  const linksTo = (id: string): number => told.filter(({ answer: { gateways } }) =>
    gateways.some((one) => one.id === id && one.active)).length;
  return new Group(group.members, lost.map((one) =>
    (one.how === 'away' ? { ...one, links: linksTo(one.id) } : one)), group.awaitedMs);
}

async function withRetired(group: Group, lost: readonly Missing[]): Promise<Group> {
  const told = await Promise.all(lost.map(async (one): Promise<Missing> => {
    if (one.kind !== 'gateway' || !isUntold(one)) return one;
    const answers = await new Group(group.members, lost).ask('gateway', (client) => client.retire(one.id));
    const isOver = answers.some(({ answer }) => answer.retired && answer.partitions <= answer.kept);
    return isOver ? { ...one, retired: true } : one;
  }));
  return new Group(group.members, told, group.awaitedMs);
}

/** It may deliver mail or not, for all that is known: it ran once, and no store tells whether it does. */
function isUntold({ how, links, address, retired }: Missing): boolean {
  return how === 'away' && links === undefined && address !== '' && retired !== true;
}

/** Says at the end who is missing; returns the exit code. `isOfMail`: mail was shown, or counted. */
export function reportMissing(
  missing: readonly Missing[], answered: number, json: boolean, terminal: Terminal, isOfMail = false,
): number {
  for (const one of missing) {
    terminal.print(json ? partialJson(one) : partialLine(one, terminal.isTty, isOfMail));
  }
  if (answered > 0) return missing.length > 0 ? NOT_ALL_KNOW : 0;
  const isRefused = missing.some(({ how }) => how === 'refused');
  if (missing.length === 0) terminal.error('twinpost: nobody in this group can answer that');
  else terminal.error(isRefused ? 'twinpost: it was refused' : 'twinpost: nobody answered');
  return 1;
}

export function partialJson({ id: member, kind, address, why: error, how, links }: Missing): string {
  return JSON.stringify({
    partial: true, member, kind, address, error, how, ...(links === undefined ? {} : { links }),
  });
}

/** What is shown, or was done, is not all. */
export function partialLine(one: Missing, isTty: boolean, isOfMail: boolean): string {
  const lacks = isOfMail && one.how === 'away';
  return `${paint('PARTIAL', 'yellow', isTty)}: ${missingText(one)}${lacks ? LACKS_MAIL : ''}`;
}

export function missingText(one: Missing): string {
  const { id, address, why, how, links = 0 } = one;
  const have = links === 1 ? 'has' : 'have';
  const linked = links > 0 ? `; ${counted(links, 'store')} still ${have} a link to it`
    : isUntold(one) ? UNTOLD : '';
  switch (how) {
    case 'away': return printable(`${id}: ${AWAY}${linked}`);
    case 'not asked': return printable(`${id}: not asked: ${why}`);
    case 'silent': return printable(`${id}: no answer from ${address}: ${why}`);
    case 'refused': return printable(`${id} at ${address}: ${why}`);
    case 'another': return printable(`${id}: ${address} ${why}`);
  }
}

/** Errors that are not about a member that did not answer are thrown on. */
function missingAfter({ id, kind, client }: Member, error: unknown): Missing {
  if (!(error instanceof NoAnswer)) throw error;
  const { why, code } = error;
  const one = { id, kind, address: hostOf(client.url), why };
  return code === 0 ? { ...one, how: 'silent' } : { ...one, how: 'refused', code };
}

/** Who answered. */
function selfOf(client: AdminClient, told: readonly MemberAnswer[]): MemberAnswer {
  const self = told.find((member) => member.self);
  if (self === undefined) throw client.stranger();
  return self;
}

function keyOf(member: { readonly kind: Kind; readonly id: string }): string {
  return `${member.kind} ${member.id}`;
}

function hostOf(url: string): string {
  return new URL(url).host;
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
