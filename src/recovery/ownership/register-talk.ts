/**
 * One question to the register at a time, each with a ticket. An answer that is overtaken says what was true
 * once: a record older than the one we know is a rollback only if it was asked for after that one was known.
 *
 *   NONE ── ask / ticket ──► READ, CHANGE, TIE, RULES ── its answer, or that none will come ──► NONE
 *     ▲                         │ no answer in time / pause: the outcome is unknown
 *     └─────────────────────────┘ (a later answer under the old ticket is news, and nothing more)
 */

export const Question = { NONE: 0, READ: 1, CHANGE: 2, TIE: 3, RULES: 4 } as const;
export type QuestionValue = (typeof Question)[keyof typeof Question];

/** Asked within this, and answered: the register is there. An answer is not waited for that long. */
const JUST_MS = 3_000;

export class RegisterTalk {
  readonly #timeoutMs: number;
  readonly #retryMs: number;
  #ticket = 0;
  #knownTicket = 0;
  #question: QuestionValue = Question.NONE;
  #sinceMs = 0;
  #notBeforeMs = -Infinity;
  /** When the first question was asked since the register last answered; Infinity: it has answered. */
  #unansweredMs = Infinity;
  /** When the first change was asked since one was made, or found another; Infinity: none is under way. */
  #unmadeMs = Infinity;
  /** When the last question was asked that it has answered in time. */
  #heardMs = -Infinity;

  constructor(timeoutMs: number, retryMs: number) {
    this.#timeoutMs = timeoutMs;
    this.#retryMs = retryMs;
  }

  get question(): QuestionValue {
    return this.#question;
  }

  mayAsk(nowMs: number): boolean {
    return this.#question === Question.NONE && nowMs >= this.#notBeforeMs;
  }

  ask(question: QuestionValue, nowMs: number): number {
    this.#question = question;
    this.#sinceMs = nowMs;
    if (this.#unansweredMs === Infinity) this.#unansweredMs = nowMs;
    if (question === Question.CHANGE && this.#unmadeMs === Infinity) this.#unmadeMs = nowMs;
    this.#ticket += 1;
    return this.#ticket;
  }

  /** What was asked under this ticket, if it is still waited for. */
  answered(ticket: number): QuestionValue {
    this.#unansweredMs = Infinity;
    const question = this.over(ticket);
    if (question !== Question.NONE) this.#heardMs = this.#sinceMs;
    if (question === Question.CHANGE) this.#unmadeMs = Infinity;
    return question;
  }

  /** The same, when no answer will come: the register stays silent. */
  over(ticket: number): QuestionValue {
    if (ticket !== this.#ticket) return Question.NONE;
    const question = this.#question;
    this.#question = Question.NONE;
    return question;
  }

  /** The answer settled nothing, or none came: not at once again. */
  pause(nowMs: number): void {
    this.#notBeforeMs = nowMs + this.#retryMs;
  }

  hurry(): void {
    this.#notBeforeMs = -Infinity;
  }

  /** What waited too long, once; NONE otherwise. */
  expire(nowMs: number): QuestionValue {
    if (this.#question === Question.NONE || nowMs - this.#sinceMs < this.#timeoutMs) return Question.NONE;
    return this.fail(nowMs);
  }

  fail(nowMs: number): QuestionValue {
    const question = this.#question;
    this.#question = Question.NONE;
    this.pause(nowMs);
    return question;
  }

  /** What we know now is younger than every answer to what was asked so far. */
  learned(): void {
    this.#knownTicket = this.#ticket;
    this.#unmadeMs = Infinity;
  }

  wasAskedSince(ticket: number): boolean {
    return ticket > this.#knownTicket;
  }

  /** The change that was asked for is wanted no more. */
  dropped(): void {
    this.#unmadeMs = Infinity;
  }

  /** It was there a moment ago: what is asked now is likely to be answered. */
  hasJustAnswered(nowMs: number): boolean {
    return nowMs - this.#heardMs < JUST_MS;
  }

  /** The register is away, as far as can be told from here, or takes no change. */
  isSilent(nowMs: number): boolean {
    return nowMs - Math.min(this.#unansweredMs, this.#unmadeMs) >= this.#timeoutMs;
  }
}
