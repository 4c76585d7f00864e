/**
 * Standing rules that an operator has given, or taken back, with `--local`: in force at this gateway at once,
 * whether the register answers or not, kept in state_dir, and written into the register when it answers.
 *
 *   give ─► in force, on the disk ─ the register is there ─► written under its id ─ told ─► forgotten here
 *   cancel ─► not obeyed, on the disk ─ the register is there ─► deleted there
 *                                        └─ kept for a day: who was not asked may write it yet
 *
 * What the register tells and what is here are one map for who obeys (queue-rules.ts). Pure: the file is
 * local/local-rules-file.ts.
 */
import { errorText } from '../../base/error-text.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import type { QueueRule } from '../../register/records.js';
import type { OwnershipRegister } from '../ownership/ownership-register.js';
import { isOver } from './standing.js';

export interface KeptRules {
  readonly given: ReadonlyMap<string, QueueRule>;
  /** When it was taken back. */
  readonly cancelled: ReadonlyMap<string, number>;
}

/** The file of this machine. */
export interface LocalRulesFile {
  /** As a process before has left it; throws when that can't be told. */
  read(): KeptRules;
  /** Rejects when the disk does not take it. */
  write(kept: KeptRules): Promise<void>;
}

export interface LocalRulesPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly register: Pick<OwnershipRegister, 'queueRules' | 'setQueueRule' | 'away'>;
  /** Undefined without a state_dir: then a restart forgets them. */
  readonly file: LocalRulesFile | undefined;
}

/** What came of it: the register has it; else why it is here alone. */
export interface LocalOutcome {
  readonly isRegistered: boolean;
  readonly why: string;
}

interface Wait {
  readonly id: string;
  readonly untilMs: number;
  readonly then: (outcome: LocalOutcome) => void;
}

/** A register that answers does so by then; the operator waits no longer. */
const ANSWER_MS = 300;
/** The disk may take longer: what is said then is that it is not kept. */
const DISK_MS = 2_000;
const WRITE_EVERY_MS = 1_000;
/** Between two tries of a write that the disk does not take. */
const SAVE_EVERY_MS = 1_000;
const CANCELLED_KEPT_MS = 24 * 3_600_000;
const NOT_WRITTEN = 'rules that the register does not have yet can not be written to state_dir: a restart '
  + 'forgets them';
const NOT_READ = 'rules that the register did not have can not be read from state_dir, and are not obeyed';

export class LocalRules {
  readonly #ports: LocalRulesPorts;
  readonly #given: Map<string, QueueRule>;
  readonly #cancelled: Map<string, number>;
  /** Counts changes; that of the file; that of the map below. */
  #version = 0;
  #keptVersion = 0;
  #isWriting = false;
  #savedMs = -Infinity;
  /** The disk did not take the last write. */
  #isFailing = false;
  #told: ReadonlyMap<string, QueueRule> | undefined;
  #rules: ReadonlyMap<string, QueueRule> = new Map();
  #rulesVersion = -1;
  /** When each id was written last. */
  readonly #writtenMs = new Map<string, number>();
  #waits: readonly Wait[] = [];

  constructor(ports: LocalRulesPorts) {
    this.#ports = ports;
    const { given, cancelled } = this.#read();
    this.#given = new Map(given);
    this.#cancelled = new Map(cancelled);
  }

  /** All that stand for this gateway. The same map until one of them has changed. */
  queueRules(): ReadonlyMap<string, QueueRule> {
    const told = this.#ports.register.queueRules();
    if (this.#given.size === 0 && this.#cancelled.size === 0) return told;
    if (told === this.#told && this.#rulesVersion === this.#version) return this.#rules;
    this.#told = told;
    this.#rulesVersion = this.#version;
    this.#rules = new Map([...this.#given, ...told].filter(([id]) => !this.#cancelled.has(id)));
    return this.#rules;
  }

  /** The register is not known to have it. */
  isLocal(id: string): boolean {
    return this.#given.has(id) && !this.#ports.register.queueRules().has(id);
  }

  give(id: string, rule: QueueRule): Promise<LocalOutcome> {
    this.#given.set(id, rule);
    this.#cancelled.delete(id);
    return this.#changed(id);
  }

  cancel(id: string): Promise<LocalOutcome> {
    this.#given.delete(id);
    this.#cancelled.set(id, this.#ports.clock.wallMs());
    return this.#changed(id);
  }

  /** The register is told otherwise: it is not written there any more, by this gateway. */
  forget(id: string): void {
    if (!this.#given.delete(id)) return;
    this.#writtenMs.delete(id);
    this.#version += 1;
    this.#save();
  }

  /** Called a few times in a tenth of a second. */
  tick(nowMs: number): void {
    const isKept = this.#keptVersion === this.#version;
    if (!isKept && nowMs - this.#savedMs >= SAVE_EVERY_MS) this.#save();
    if (this.#given.size === 0 && this.#cancelled.size === 0 && this.#waits.length === 0) return;
    this.#forgetDone();
    if (this.#ports.register.away === '') {
      for (const [id, rule] of this.#given) this.#write(id, rule, nowMs);
      const told = this.#ports.register.queueRules();
      for (const id of this.#cancelled.keys()) if (told.has(id)) this.#write(id, undefined, nowMs);
    }
    this.#tellWaits(nowMs);
  }

  #changed(id: string): Promise<LocalOutcome> {
    const { clock, register } = this.#ports;
    const nowMs = clock.nowMs();
    this.#version += 1;
    this.#save();
    this.#writtenMs.delete(id);
    const answerMs = register.away === '' ? ANSWER_MS : 0;
    return new Promise((then) => {
      this.#waits = [...this.#waits, { id, untilMs: nowMs + answerMs, then }];
    });
  }

  /** What the register has by now, what is over, and what was taken back long ago. */
  #forgetDone(): void {
    const { register, clock } = this.#ports;
    const told = register.queueRules();
    const nowWallMs = clock.wallMs();
    const before = this.#given.size + this.#cancelled.size;
    for (const [id, rule] of this.#given) if (told.has(id) || isOver(rule, nowWallMs)) this.#given.delete(id);
    for (const [id, wallMs] of this.#cancelled) {
      const isLong = Math.abs(nowWallMs - wallMs) > CANCELLED_KEPT_MS;
      if (isLong && register.away === '' && !told.has(id)) this.#cancelled.delete(id);
    }
    if (this.#given.size + this.#cancelled.size === before) return;
    for (const id of this.#writtenMs.keys()) {
      if (!this.#given.has(id) && !this.#cancelled.has(id)) this.#writtenMs.delete(id);
    }
    this.#version += 1;
    this.#save();
  }

  /** What comes of it is told by the watch; until then it is tried again. */
  #write(id: string, rule: QueueRule | undefined, nowMs: number): void {
    if (nowMs - (this.#writtenMs.get(id) ?? -Infinity) < WRITE_EVERY_MS) return;
    this.#writtenMs.set(id, nowMs);
    this.#ports.register.setQueueRule(id, rule, (why) => {
      if (why !== '') return;
      const text = rule === undefined ? 'a rule that was taken back here is deleted in the register'
        : 'a rule that stood here alone is in the register';
      this.#ports.log.warn('rule', text, { rule: id });
    });
  }

  #tellWaits(nowMs: number): void {
    const open: Wait[] = [];
    const { register } = this.#ports;
    for (const wait of this.#waits) {
      const isTold = register.queueRules().has(wait.id);
      const isRegistered = register.away === '' && (this.#cancelled.has(wait.id) ? !isTold : isTold);
      const isLate = nowMs >= wait.untilMs + DISK_MS;
      const isKept = this.#keptVersion === this.#version;
      if (isRegistered || (nowMs >= wait.untilMs && (isKept || !this.#isWriting || isLate))) {
        const away = register.away === '' ? 'the register has not told of it yet' : register.away;
        const kept = isKept ? '' : '; it is not kept: a restart forgets it';
        wait.then({ isRegistered, why: isRegistered ? '' : `${away}${kept}` });
      } else open.push(wait);
    }
    this.#waits = open;
  }

  #read(): KeptRules {
    try {
      return this.#ports.file?.read() ?? { given: new Map(), cancelled: new Map() };
    } catch (error) {
      this.#ports.log.error('rule', NOT_READ, { why: errorText(error) });
      return { given: new Map(), cancelled: new Map() };
    }
  }

  /** One write at a time; what was ordered meanwhile is written by the next, and what failed by tick(). */
  #save(): void {
    const { file, log } = this.#ports;
    if (file === undefined || this.#isWriting) return;
    this.#isWriting = true;
    this.#savedMs = this.#ports.clock.nowMs();
    const version = this.#version;
    const kept = { given: new Map(this.#given), cancelled: new Map(this.#cancelled) };
    file.write(kept).then(() => {
      this.#isWriting = false;
      this.#isFailing = false;
      this.#keptVersion = version;
      if (this.#version !== version) this.#save();
    }, (error: unknown) => {
      this.#isWriting = false;
      if (!this.#isFailing) log.error('rule', NOT_WRITTEN, { why: errorText(error) });
      this.#isFailing = true;
    });
  }
}
