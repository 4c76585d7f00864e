/**
 * The gateways and stores that belong together, found from any one of them: each knows some of the others
 * (`GET /api/v1/group`: stores the gateways of their group, gateways their stores), and they are asked in
 * turn until nobody new is named. Then a verb asks all of a kind at the same time.
 *
 *   --from ADDRESS ─► its group ─► groups of those ─► … ─► ask(kind) ─► answers, and who did not answer
 *                                       └─ answers by another name ─► missing; whom it names is not asked
 *
 * Whoever does not answer is kept as MISSING and shown with the answers of the others: an answer is marked
 * as partial, never taken for the whole. The token goes to all of them, and so do http or https: a group has
 * one file of tokens, and TLS at all of its admin ports or none.
 *
 * An address in a configuration may be another process's, of another group even: all of that group would be
 * taken for ours. So who answers there must be who was expected.
 */
import type { Argv, Options } from 'yargs';
import { whyNotAsked } from '../admin-api/group.js';
import type { MemberAnswer } from '../admin-api/pages.js';
import { ACCESS_OPTIONS, GATEWAY_URL, addressHelp, adminAddress } from './admin-address.js';
import type { AccessArguments } from './admin-address.js';
import { AdminClient, NoAnswer } from './admin-client.js';
import type { CliContext, Terminal } from './context.js';
import { paint, printable } from './tables.js';

/** Asked at the same time. */
const ASKED_AT_ONCE = 64;
/** A group is tens of processes; whoever claims more is not to keep us busy. */
const MEMBERS_MAX = 1000;

export const GROUP_OPTIONS = {
  from: {
    alias: 'gateway', type: 'string', requiresArg: true,
    describe: addressHelp('any gateway or store of the group', GATEWAY_URL),
  },
  only: { type: 'boolean', describe: 'ask this address alone, not the whole group' },
  ...ACCESS_OPTIONS,
} as const satisfies Record<string, Options>;

/** Exit code when somebody could not be asked, has not heard an order, or could not tell its outcome. */
export const NOT_ALL_KNOW = 3;

const EXIT_CODES = 'exit code: 0, 3 somebody did not answer, 1 nobody did, 2 wrong usage';

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
}

export interface Answered<T> {
  readonly id: string;
  readonly client: AdminClient;
  readonly answer: T;
}

export class Group {
  readonly members: readonly Member[];
  readonly #missing: Map<string, Missing>;

  constructor(members: readonly Member[], missing: readonly Missing[]) {
    this.members = members;
    this.#missing = new Map(missing.map((one) => [keyOf(one), one]));
  }

  /** Of these kinds, by kind and id. */
  missing(...kinds: readonly Kind[]): readonly Missing[] {
    return [...this.#missing.values()].filter((one) => kinds.includes(one.kind)).sort((a, b) =>
      compare(keyOf(a), keyOf(b)));
  }

  /** Those that may run, and did not hear what all gateways were asked. */
  get unheard(): readonly Missing[] {
    return this.missing('gateway').filter(({ how }) => how !== 'away');
  }

  /** The group less those that `leave` names. */
  without(leave: (member: { readonly kind: Kind; readonly id: string }) => boolean): Group {
    const stay = (one: { readonly kind: Kind; readonly id: string }): boolean => !leave(one);
    return new Group(this.members.filter(stay), [...this.#missing.values()].filter(stay));
  }

  /** Asks all of a kind at once; those that fail are missing from then on. Answers by id. */
  async ask<T>(kind: Kind, ask: (client: AdminClient) => Promise<T>): Promise<readonly Answered<T>[]> {
    const asked = this.members.filter((member) => member.kind === kind && !this.#missing.has(keyOf(member)));
    const answers: Answered<T>[] = [];
    for (let i = 0; i < asked.length; i += ASKED_AT_ONCE) {
      await Promise.all(asked.slice(i, i + ASKED_AT_ONCE).map(async (member) => {
        try {
          answers.push({ id: member.id, client: member.client, answer: await ask(member.client) });
        } catch (error) {
          this.lose(member, error);
        }
      }));
    }
    return answers.sort((a, b) => compare(a.id, b.id));
  }

  /** A member did not answer. Errors that are not about that are thrown on. */
  lose(member: Member, error: unknown): void {
    this.#missing.set(keyOf(member), missingAfter(member, error));
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
  const told = await first.group();
  const self = selfOf(first, told);
  const members = new Map<string, Member>([[keyOf(self), { id: self.id, kind: self.kind, client: first }]]);
  if (args.only === true) return new Group([...members.values()], []);
  const missing = new Map<string, Missing>();
  /** The register knows no process of these, whatever address a file says. */
  const gone = new Set<string>();
  const protocol = new URL(first.url).protocol;
  let fresh = [...take(told)];
  while (fresh.length > 0) {
    const tolds = await Promise.all(fresh.slice(0, ASKED_AT_ONCE).map(async (member) => {
      try {
        const answer = await member.client.group();
        const { id, kind } = selfOf(member.client, answer);
        if (id === member.id && kind === member.kind) return answer;
        missing.set(keyOf(member), {
          id: member.id, kind: member.kind, address: hostOf(member.client.url),
          why: `answers as ${kind === member.kind ? id : `the ${kind} ${id}`}`, how: 'another',
        });
      } catch (error) {
        missing.set(keyOf(member), missingAfter(member, error));
      }
      return [];
    }));
    fresh = [...fresh.slice(ASKED_AT_ONCE), ...tolds.flatMap((one) => [...take(one)])];
  }
  return new Group([...members.values()], [...missing].map(([key, one]) =>
    (one.how === 'silent' && gone.has(key) ? { ...one, how: 'away' } : one)));

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
      const member = {
        id: one.id, kind: one.kind, client: new AdminClient(`${protocol}//${one.admin}`, access, timeoutMs),
      };
      // Another member may know what the first did not.
      missing.delete(key);
      members.set(key, member);
      yield member;
    }
  }
}

/** Says at the end who is missing; returns the exit code. */
export function reportMissing(
  missing: readonly Missing[], answered: number, json: boolean, terminal: Terminal,
): number {
  for (const one of missing) {
    if (json) {
      terminal.print(JSON.stringify({
        partial: true, member: one.id, kind: one.kind, address: one.address, error: one.why,
      }));
    } else terminal.print(partialLine(one, terminal.isTty));
  }
  if (answered > 0) return missing.length > 0 ? NOT_ALL_KNOW : 0;
  const isRefused = missing.some(({ how }) => how === 'refused');
  if (missing.length === 0) terminal.error('twinpost: nobody in this group can answer that');
  else terminal.error(isRefused ? 'twinpost: it was refused' : 'twinpost: nobody answered');
  return 1;
}

/** What is shown, or was done, is not all. */
export function partialLine(one: Missing, isTty: boolean): string {
  const lacks = one.how === 'away' ? '; mail of it that nobody has taken over is not in this' : '';
  return `${paint('PARTIAL', 'yellow', isTty)}: ${missingText(one)}${lacks}`;
}

export function missingText({ id, address, why, how }: Missing): string {
  switch (how) {
    case 'away': return printable(`${id}: no session at the register, no answer: dead, or cut off`);
    case 'not asked': return printable(`${id}: not asked: ${why}`);
    case 'silent': return printable(`${id}: no answer from ${address}: ${why}`);
    case 'refused': return printable(`${id} at ${address}: ${why}`);
    case 'another': return printable(`${id}: ${address} ${why}`);
  }
}

/** Errors that are not about a member that did not answer are thrown on. */
function missingAfter({ id, kind, client }: Member, error: unknown): Missing {
  if (!(error instanceof NoAnswer)) throw error;
  return {
    id, kind, address: hostOf(client.url), why: error.why, how: error.code === 0 ? 'silent' : 'refused',
  };
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
