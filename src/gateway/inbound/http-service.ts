/**
 * Somebody of the operator's who is asked by HTTP while a client waits: who users are (users-by-http.ts),
 * who recipients are (recipients-by-http.ts). A question is a POST of JSON. Time and size of an answer are
 * bounded: the server may be anybody's, and broken. Whole messages go to rspamd by hooks/node/rspamd-hook.ts.
 */
import type { z } from 'zod';
import { errorText } from '../../base/error-text.js';
import { BrokenRule, readJson } from '../../base/json-shape.js';
import { OnceInAWhile } from '../../base/once-in-a-while.js';
import type { LookupMeter } from '../../observability/reception-metrics.js';
import type { Clock, EventLog } from '../../platform/ports.js';

export interface HttpServiceOptions {
  readonly url: string;
  readonly timeoutMs: number;
  /** For the Authorization field; '': none. */
  readonly token: string;
}

export interface HttpServicePorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly meter: LookupMeter;
}

export interface HttpAnswer {
  readonly status: number;
  /** Of an answer with 200 alone. */
  readonly text: string;
}

const ANSWER_BYTES_MAX = 64 * 1024;
/** A server that is away is said once in this time. */
const TOLD_EVERY_MS = 60_000;

export class HttpService {
  readonly #options: HttpServiceOptions;
  readonly #clock: Clock;
  readonly #meter: LookupMeter;
  readonly #tell: (why: string) => void;
  readonly #telling = new OnceInAWhile(TOLD_EVERY_MS);
  #isToldAway = false;

  /** `tell`: why it gives no answers, once in a while; '' when it does again. */
  constructor(
    options: HttpServiceOptions, { clock, meter }: Omit<HttpServicePorts, 'log'>, tell: (why: string) => void,
  ) {
    this.#options = options;
    this.#clock = clock;
    this.#meter = meter;
    this.#tell = tell;
  }

  /** What `read` makes of the answer. Rejects when there is none in time, or `read` throws. */
  async ask<T>(
    question: Readonly<Record<string, string>>, read: (answer: HttpAnswer) => T,
  ): Promise<T> {
    const begunMs = this.#clock.nowMs();
    this.#meter.asked += 1;
    try {
      const answer = read(await this.#answerTo(question));
      this.#meter.ended(true, this.#clock.nowMs() - begunMs);
      if (this.#isToldAway) this.#tell('');
      this.#isToldAway = false;
      return answer;
    } catch (error) {
      this.#meter.ended(false, this.#clock.nowMs() - begunMs);
      this.#onTrouble(whyOf(error));
      throw error;
    }
  }

  async #answerTo(question: Readonly<Record<string, string>>): Promise<HttpAnswer> {
    const { url, timeoutMs, token } = this.#options;
    const answer = await fetch(url, {
      method: 'POST', redirect: 'error', signal: AbortSignal.timeout(timeoutMs),
      headers: {
        'content-type': 'application/json', ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(question),
    });
    if (answer.status === 200) return { status: 200, text: await textOf(answer) };
    await answer.body?.cancel();
    return { status: answer.status, text: '' };
  }

  #onTrouble(why: string): void {
    if (!this.#telling.isDue(this.#clock.nowMs())) return;
    this.#isToldAway = true;
    this.#tell(why);
  }
}

/** fetch() says "fetch failed", and keeps what it means to itself. */
function whyOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && cause.message !== '' ? cause.message : errorText(error);
}

/**
 * What an answer says, by its schema. Throws when it is anything else: an empty one too, which many a broken
 * server or proxy gives, and which must not be the yes that "{}" is.
 */
export function answered<T>(schema: z.ZodType<T>, { status, text }: HttpAnswer): T {
  if (status !== 200) throw new Error(`it answered ${String(status)}`);
  if (text.trim() === '') throw new Error('it answered 200 with nothing; to say yes it answers with {}');
  const answer = readJson(schema, text);
  if (answer instanceof BrokenRule) throw new Error(`its answer: ${answer.rule}`);
  return answer;
}

async function textOf(answer: Response): Promise<string> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const piece of answer.body ?? []) {
    text += decoder.decode(piece as Uint8Array, { stream: true });
    if (text.length > ANSWER_BYTES_MAX) throw new Error('its answer is too long');
  }
  return text + decoder.decode();
}
