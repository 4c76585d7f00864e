/**
 * The hooks of a gateway as one (message-hook.ts): asked one after another in the order of the configuration,
 * until one refuses or defers. Each sees what those before it have put in front.
 *
 *   accept ──▶ its fields join the prefix; the next hook      refuse ──▶ 550      defer ──▶ 451
 *   accept with a mark ──▶ that in any case, and of its fields those that there is room for
 *   failed, or with a field that can't be put in front ──▶ on_failure: 451, or as if it had accepted
 *   busy, or more said than is read ──▶ 451
 *
 * Here is also where their answers are counted, and where a hook that fails is told in the log: once in a
 * while, not for each message. Pure.
 */
import { joined } from '../../../base/joined.js';
import { OnceInAWhile } from '../../../base/once-in-a-while.js';
import type { OutagesAnswer } from '../../../admin-api/gateway-answers.js';
import type { Clock, EventLog } from '../../../platform/ports.js';
import * as replies from '../session/replies.js';
import type { Refusal } from '../session/replies.js';
import type {
  HookAnswer, JudgedEnvelope, JudgedMessage, MessageHook, MessageHooks,
} from './message-hook.js';
import { FIELDS_MAX, FIELDS_OCTETS_MAX, fieldOctets, fieldRule, fieldsThatFit } from './prefix-fields.js';
import type { FieldRoom } from './prefix-fields.js';

const TOLD_EVERY_MS = 10_000;
const NOTHING = new Uint8Array(0);
const WHOLE_ROOM: FieldRoom = { count: FIELDS_MAX, octets: FIELDS_OCTETS_MAX };

export interface ChainedHook {
  readonly hook: MessageHook;
  readonly onFailure: 'defer' | 'accept';
}

export interface HookChainPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly metrics: HookMetrics;
}

/** A hook whose last answer was none that can be used. */
type HookOutage = OutagesAnswer['hooks'][number];

export interface HookMetrics {
  hookAnswered(hook: string, answer: HookAnswer['action'], ms: number): void;
}

type OnJudged = (refusal: Refusal | undefined, fields: Uint8Array) => void;

export class HookChain implements MessageHooks {
  readonly #links: readonly HookLink[];

  constructor(hooks: readonly ChainedHook[], ports: HookChainPorts) {
    this.#links = hooks.map((hook) => new HookLink(hook, ports));
  }

  judge(message: JudgedMessage, done: OnJudged): void {
    this.#ask(0, message, NOTHING, WHOLE_ROOM, done);
  }

  /** Those that give no verdict now. */
  failing(): HookOutage[] {
    return this.#links.flatMap((link) => link.failing ?? []);
  }

  close(): void {
    for (const link of this.#links) link.close();
  }

  /** `fields`: what the hooks before this one have put in front; `room`: what they have left of it. */
  #ask(index: number, message: JudgedMessage, fields: Uint8Array, room: FieldRoom, done: OnJudged): void {
    const link = this.#links[index];
    if (link === undefined) return done(undefined, fields);
    const seen = fields.length === 0 ? message : new PrefixedMessage(message, fields);
    link.ask(seen, room, (refusal, added, left) => {
      if (refusal !== undefined) return done(refusal, NOTHING);
      this.#ask(index + 1, message, joined([fields, added]), left, done);
    });
  }
}

/** One hook with what is kept of it: since when it fails. */
class HookLink {
  readonly #hook: MessageHook;
  readonly #onFailure: ChainedHook['onFailure'];
  readonly #ports: HookChainPorts;
  #isToldFailing = false;
  #failing: HookOutage | undefined;
  readonly #telling = new OnceInAWhile(TOLD_EVERY_MS);

  constructor({ hook, onFailure }: ChainedHook, ports: HookChainPorts) {
    this.#hook = hook;
    this.#onFailure = onFailure;
    this.#ports = ports;
  }

  /** From a failure to the next verdict. */
  get failing(): HookOutage | undefined {
    return this.#failing;
  }

  ask(
    message: JudgedMessage, room: FieldRoom,
    done: (refusal: Refusal | undefined, fields: Uint8Array, left: FieldRoom) => void,
  ): void {
    const { clock, metrics } = this.#ports;
    const sinceMs = clock.nowMs();
    this.#hook.ask(message, (said) => {
      const answer = checked(said, room);
      metrics.hookAnswered(this.#hook.name, answer.action, clock.nowMs() - sinceMs);
      if (answer.action === 'failed') this.#onFailed(answer.why, answer.isTooMuch === true);
      else if (answer.action !== 'busy' && answer.action !== 'abandoned') this.#onAnswer();
      if (answer.action !== 'accept') {
        const refusal = this.#refusalOf(answer);
        return done(refusal && { ...refusal, hook: this.#hook.name }, NOTHING, room);
      }
      const { mark = [], fields } = answer;
      const added = fieldOctets([...mark, ...fields]);
      const octets = Math.max(0, room.octets - added.length);
      done(undefined, added, { count: room.count - fields.length, octets });
    });
  }

  close(): void {
    this.#hook.close();
  }

  #refusalOf(answer: Exclude<HookAnswer, { readonly action: 'accept' }>): Refusal | undefined {
    switch (answer.action) {
      case 'refuse':
        return replies.refusedByHook(answer.text);
      case 'defer':
        return replies.deferredByHook(answer.text);
      case 'busy':
      case 'abandoned':
        return replies.HOOK_BUSY;
      case 'failed':
        return this.#mayPass(answer.isTooMuch === true) ? undefined : replies.HOOK_FAILED;
    }
  }

  #mayPass(isTooMuch: boolean): boolean {
    return this.#onFailure === 'accept' && !isTooMuch;
  }

  #onFailed(why: string, isTooMuch: boolean): void {
    const { clock, log } = this.#ports;
    const since = this.#failing?.since ?? Math.floor(clock.wallMs() / 1000);
    this.#failing = { hook: this.#hook.name, since, why };
    // One that fails now and then is told as seldom.
    if (!this.#telling.isDue(clock.nowMs())) return;
    this.#isToldFailing = true;
    const what = this.#mayPass(isTooMuch) ? 'messages are taken unseen (on_failure)'
      : 'clients are told to try later';
    log.error('hook', `a hook gives no verdict; ${what}`, { hook: this.#hook.name, why });
  }

  #onAnswer(): void {
    this.#failing = undefined;
    if (!this.#isToldFailing) return;
    this.#isToldFailing = false;
    this.#ports.log.info('hook', 'a hook gives verdicts again', { hook: this.#hook.name });
  }
}

/**
 * A field that can't be put in front is a hook that failed: what else it meant nobody knows. With a mark
 * that is known, and only the field is left out.
 */
function checked(answer: HookAnswer, room: FieldRoom): HookAnswer {
  if (answer.action !== 'accept') return answer;
  const { mark, fields } = answer;
  if (mark !== undefined) return { action: 'accept', mark, fields: fieldsThatFit(fields, room) };
  const rule = fields.map(fieldRule).find((each) => each !== '');
  if (rule !== undefined) return { action: 'failed', why: `it adds a field: ${rule}` };
  if (fields.length > room.count) {
    return { action: 'failed', why: 'it adds too many fields', isTooMuch: true };
  }
  const octets = fields.reduce((sum, { name, value }) => sum + name.length + value.length, 0);
  return octets <= room.octets ? answer
    : { action: 'failed', why: 'its fields are too long', isTooMuch: true };
}

/** A message with fields of the hooks before in front. */
class PrefixedMessage implements JudgedMessage {
  readonly #message: JudgedMessage;
  readonly #fields: Uint8Array;

  constructor(message: JudgedMessage, fields: Uint8Array) {
    this.#message = message;
    this.#fields = fields;
  }

  get envelope(): JudgedEnvelope { return this.#message.envelope; }
  get isAbandoned(): boolean { return this.#message.isAbandoned; }
  get contentBytes(): number { return this.#message.contentBytes + this.#fields.length; }

  get content(): readonly Uint8Array[] {
    const [prefix = NOTHING, ...behind] = this.#message.content;
    return [prefix, this.#fields, ...behind];
  }
}
