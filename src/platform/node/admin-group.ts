/**
 * A gateway asks all gateways of its group what it was asked itself below /api/v1/group (admin-api/group.ts),
 * with the token and the words of who asks, and answers with what they say, and with who says nothing.
 *
 *   request ─► own answer, without a connection ─┐
 *          └─► each other: its address of the row ─┴─► 200 {answers, missing}
 *                                                  └─► nobody answers, and all refuse alike: that refusal
 *
 * Each is asked at an address that asks nobody on: there are no loops. Each judges the token itself. Who
 * answers at an address that the register gave may be anybody: it must say that it is the one who is meant
 * (admin-guard.ts), be as quick and as short as is bounded here, and have the shape of the row.
 */
import { randomUUID } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AWAY, whyNotAsked } from '../../admin-api/group.js';
import type { GatheredAnswer, GroupRoute, MissingAnswer } from '../../admin-api/group.js';
import { refusalAnswer } from '../../admin-api/pages.js';
import type { MemberAnswer } from '../../admin-api/pages.js';
import { addressOf } from '../../admin-api/route.js';
import type { AskedLoosely } from '../../admin-api/route.js';
import { BrokenRule, readJson } from '../../base/json-shape.js';
import type { AdminFiles } from './admin-files.js';
import { refuse, tokenOf } from './admin-guard.js';
import { STRANGER, ask, whyNoAnswer } from './admin-request.js';

/** One that lives answers within milliseconds; rows that take longer say so (answerMs). */
const ANSWER_MS = 2_000;
/** Of one that has no session at the register: its machine may have no power. */
const AWAY_ANSWER_MS = 1_000;
/** All of them: below the time after which the port gives up a connection on which nothing is said. */
const ANSWERS_MS = 25_000;
/** A page of 1,000 rows has 1 MB, which is read within one turn. */
const ANSWER_BYTES_MAX = 2 * 1024 * 1024;
/** All answers together are written within one turn. */
const ANSWERS_BYTES_MAX = 8 * 1024 * 1024;
/** With answers that are too long, 24 MiB beside the mail for each request. */
const ASKED_AT_ONCE = 8;
const REQUESTS_MAX = 2;
/** Of an id that is made up, in hexadecimal digits: it has to differ from those that are known. */
const ID_DIGITS = 12;

type Params = Readonly<Record<string, string>>;
type Query = Readonly<Record<string, string | number>>;
/** What HTTP said, and its text; code 0: nothing, and why. */
interface Heard {
  readonly code: number;
  readonly text: string;
}

/** What one member is asked, and until when. */
interface Question extends AskedLoosely {
  readonly route: GroupRoute;
  readonly request: FastifyRequest;
  readonly endsMs: number;
}

export class GroupQuestions {
  readonly #app: FastifyInstance;
  readonly #files: AdminFiles;
  readonly #members: () => readonly MemberAnswer[];
  #underWay = 0;

  constructor(app: FastifyInstance, files: AdminFiles, members: () => readonly MemberAnswer[]) {
    this.#app = app;
    this.#files = files;
    this.#members = members;
  }

  /** `request` was let in, and has the shapes of the row. */
  async ask(
    route: GroupRoute, request: FastifyRequest, reply: FastifyReply,
  ): Promise<GatheredAnswer | FastifyReply> {
    if (this.#underWay >= REQUESTS_MAX) {
      return refuse(reply, 503, `${String(REQUESTS_MAX)} requests to the group are under way: ask again`);
    }
    this.#underWay += 1;
    try {
      const { answers, missing } = await this.#gather(route, request);
      const [first] = missing;
      const areAlike = first !== undefined && missing.every(({ code }) => code === first.code && code !== 0);
      return answers.length === 0 && areAlike ? refuse(reply, first.code, first.why) : { answers, missing };
    } finally {
      this.#underWay -= 1;
    }
  }

  async #gather(route: GroupRoute, request: FastifyRequest): Promise<GatheredAnswer> {
    const gateways = this.#members().filter(({ kind }) => kind === 'gateway');
    const question: Question = {
      route, request, params: request.params as Params, query: request.query as Query,
      body: route.each.group === 'named' ? this.#named(request.body as object) : request.body,
      endsMs: performance.now() + ANSWERS_MS,
    };
    const answers: { readonly gateway: string; readonly body: unknown }[] = [];
    const missing: MissingAnswer[] = [];
    const waiting = gateways.values();
    let bytes = 0;
    const askOn = async (): Promise<void> => {
      for (const member of waiting) {
        const { code, text } = await this.#hear(member, question);
        bytes += text.length;
        const body = code !== 200 ? undefined
          : bytes > ANSWERS_BYTES_MAX ? new BrokenRule('all answers together are too long')
          : readJson(route.each.answer, text);
        if (code !== 200) missing.push({ gateway: member.id, why: whyRefused(code, text), code });
        else if (body instanceof BrokenRule) missing.push({ gateway: member.id, why: body.rule, code: 0 });
        else answers.push({ gateway: member.id, body });
      }
    };
    await Promise.all(Array.from({ length: ASKED_AT_ONCE }, askOn));
    return { answers: answers.sort(byGateway), missing: missing.sort(byGateway) };
  }

  #named(body: object): object {
    const own = this.#members().find(({ self }) => self)?.id ?? 'group';
    return { id: `${own}-${randomUUID().replaceAll('-', '').slice(0, ID_DIGITS)}`, ...body };
  }

  /** Does not reject. */
  async #hear(member: MemberAnswer, question: Question): Promise<Heard> {
    const { route: { each }, endsMs } = question;
    const answerMs = member.away ? AWAY_ANSWER_MS : each.answerMs ?? ANSWER_MS;
    const timeoutMs = Math.min(answerMs, Math.floor(endsMs - performance.now()));
    if (timeoutMs <= 0) return { code: 0, text: 'there was no time left to ask it' };
    try {
      if (member.self) return await this.#hearSelf(question, timeoutMs);
      return await this.#hearOther(member, question, timeoutMs);
    } catch (error) {
      const { why } = whyNoAnswer(error, this.#baseOf(member), timeoutMs);
      return { code: 0, text: member.away ? `${AWAY}; ${why}` : why };
    }
  }

  async #hearSelf({ route: { each }, request, ...asked }: Question, timeoutMs: number): Promise<Heard> {
    const { host, authorization } = request.headers;
    const { statusCode: code, payload: text } = await this.#app.inject({
      method: each.method, url: addressOf(each, asked), signal: AbortSignal.timeout(timeoutMs),
      headers: { host, ...(authorization === undefined ? {} : { authorization }) },
      ...(each.method === 'POST' ? { payload: asked.body as object } : {}),
    });
    return { code, text };
  }

  async #hearOther(
    member: MemberAnswer, { route: { each }, request, ...asked }: Question, timeoutMs: number,
  ): Promise<Heard> {
    const whyNot = whyNotAsked(member);
    if (whyNot !== '') return { code: 0, text: whyNot };
    const { code, body } = await ask({
      method: each.method, url: this.#baseOf(member) + addressOf(each, asked),
      access: { token: tokenOf(request), ca: this.#files.tls?.ca }, expected: member.id, timeoutMs,
      bytesMax: ANSWER_BYTES_MAX, body: each.method === 'POST' ? JSON.stringify(asked.body) : undefined,
    });
    return { code, text: body.toString('utf8') };
  }

  #baseOf({ admin = '' }: MemberAnswer): string {
    return `${this.#files.tls === undefined ? 'http' : 'https'}://${admin}`;
  }
}

/** Of one that said nothing the text is why. */
function whyRefused(code: number, text: string): string {
  if (code === 0) return text;
  const refusal = readJson(refusalAnswer, text);
  return refusal instanceof BrokenRule ? STRANGER : refusal.error;
}

function byGateway(a: { readonly gateway: string }, b: { readonly gateway: string }): number {
  return a.gateway < b.gateway ? -1 : 1;
}
