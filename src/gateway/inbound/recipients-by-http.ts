/**
 * Recipients whom somebody else knows: each address is asked for by HTTP, and the answer kept for a while.
 *
 *   POST URL   {"address": "anna@example.com"}     as it stands in a table: listing.ts, tableKey()
 *   200        {}: taken, {"route": "box-17"}: goes by this route, {"to": ["x@example.com", …]}: an alias
 *   404        there is no such address (550)
 *   else, an empty 200, a key that is none of these, or no answer in time: nobody can tell now (451)
 *
 * So many questions run at once; the others wait in a bounded line, no longer than an answer may take. That
 * nobody could tell is kept for a second: a server that is away is not asked for each RCPT. That the line was
 * full is no answer, and is not kept: who asks in a moment may have a place.
 */
import { z } from 'zod';
import { listOf } from '../../base/json-shape.js';
import { Newest } from '../../base/newest.js';
import type { Clock } from '../../platform/ports.js';
import { ROUTE_NAME_CHARACTERS_MAX } from '../queue/router.js';
import { HttpService, answered } from './http-service.js';
import type { HttpAnswer, HttpServiceOptions, HttpServicePorts } from './http-service.js';
import { ALIAS_TARGETS_MAX, NOT_ASKED } from './recipients/listing.js';
import type { Listing, RecipientTable } from './recipients/listing.js';

export interface HttpRecipientsOptions extends HttpServiceOptions {
  /** How long an answer holds that an address is there. */
  readonly keptMs: number;
  /** How long one holds that it is not. */
  readonly missingKeptMs: number;
}

const QUESTIONS_AT_ONCE = 64;
const LINE_MAX = 10_000;
const FAILURE_KEPT_MS = 1000;
/** Answers that are kept; the oldest goes. */
const KNOWN_MAX = 100_000;
/** All that answers hold, in characters; an alias may be long. */
const KNOWN_CHARACTERS_MAX = 16 * 1024 * 1024;
/** Of an answer without an alias. */
const ANSWER_CHARACTERS = 100;
/** What each target of an alias costs beside its characters: however short, it is a string in a list. */
const TARGET_CHARACTERS = 32;

const listing: z.ZodType<Listing> = z.strictObject({
  route: z.string().max(ROUTE_NAME_CHARACTERS_MAX).default(''),
  to: listOf(z.string(), ALIAS_TARGETS_MAX).default([]),
});

const NOBODY = Symbol('nobody has this address');
const NO_ANSWER = Symbol('nobody can tell');

interface Known {
  readonly what: Listing | typeof NOBODY | typeof NO_ANSWER;
  readonly untilMs: number;
}

interface Question {
  readonly key: string;
  readonly untilMs: number;
  readonly askers: (() => void)[];
}

export class RecipientsByHttp implements RecipientTable {
  readonly #options: HttpRecipientsOptions;
  readonly #clock: Clock;
  readonly #service: HttpService;
  readonly #known = new Newest<Known>(KNOWN_MAX, KNOWN_CHARACTERS_MAX);
  /** Asked, or in the line. */
  readonly #questions = new Map<string, Question>();
  #line: Question[] = [];
  #running = 0;

  constructor(options: HttpRecipientsOptions, ports: HttpServicePorts) {
    this.#options = options;
    const { clock, log } = ports;
    this.#clock = clock;
    this.#service = new HttpService(options, ports, (why) => {
      if (why === '') log.info('recipients', 'recipients are looked up by HTTP again');
      else log.error('recipients', 'recipients can\'t be looked up by HTTP; clients hear: later', { why });
    });
  }

  find(key: string): Listing | undefined | typeof NOT_ASKED {
    // Who is asked knows of whole domains too.
    if (key.startsWith('@')) return undefined;
    const known = this.#known.get(key);
    if (known === undefined || known.untilMs <= this.#clock.nowMs()) return NOT_ASKED;
    if (known.what === NO_ANSWER) throw new Error('recipients can\'t be looked up by HTTP');
    return known.what === NOBODY ? undefined : known.what;
  }

  learn(keys: readonly string[], done: (isFull?: boolean) => void): void {
    let open = keys.length;
    let isFull = false;
    const answered = (isTooLate = false): void => {
      isFull ||= isTooLate;
      open--;
      if (open === 0) done(isFull);
    };
    for (const key of keys) this.#ask(key, answered);
    this.#begin();
  }

  #ask(key: string, answered: (isTooLate?: boolean) => void): void {
    const asked = this.#questions.get(key);
    if (asked !== undefined) {
      asked.askers.push(answered);
      return;
    }
    if (this.#line.length >= LINE_MAX) return answered(true);
    const untilMs = this.#clock.nowMs() + this.#options.timeoutMs;
    const question = { key, untilMs, askers: [answered] };
    this.#questions.set(key, question);
    this.#line.push(question);
  }

  #begin(): void {
    while (this.#running < QUESTIONS_AT_ONCE) {
      const question = this.#line.shift();
      if (question === undefined) return;
      this.#running++;
      void this.#run(question).then(() => {
        this.#running--;
        this.#questions.delete(question.key);
        for (const answered of question.askers) answered();
        this.#begin();
      });
    }
  }

  async #run({ key, untilMs }: Question): Promise<void> {
    const clock = this.#clock;
    const { keptMs, missingKeptMs } = this.#options;
    try {
      if (clock.nowMs() > untilMs) throw new Error('it has waited for too long');
      const what = await this.#service.ask({ address: key }, listingOf);
      this.#remember(key, what, clock.nowMs() + (what === NOBODY ? missingKeptMs : keptMs));
    } catch {
      this.#remember(key, NO_ANSWER, clock.nowMs() + FAILURE_KEPT_MS);
    }
  }

  #remember(key: string, what: Known['what'], untilMs: number): void {
    let characters = ANSWER_CHARACTERS;
    if (typeof what !== 'symbol') {
      characters += what.route.length;
      for (const target of what.to) characters += TARGET_CHARACTERS + target.length;
    }
    this.#known.set(key, { what, untilMs }, characters);
  }
}

function listingOf(answer: HttpAnswer): Listing | typeof NOBODY {
  if (answer.status === 404) return NOBODY;
  return answered(listing, answer);
}
