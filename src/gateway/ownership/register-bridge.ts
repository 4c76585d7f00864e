/**
 * The register as the partitions of this process use it (ownership-register.ts), made of a Register and of
 * one key (process-key.ts). What was told by a watch is news and nothing more: every answer about a record
 * comes from a read, or from the write itself.
 *
 *   asked             goes to the register as                              answered by
 *   read              the record's key, then its holder's gateways/ key;   onRecord
 *                     without a record what it ended by (given-up-rules.ts)
 *   change            one compare-and-set on revision and record;         done: onApplied
 *                     with `unlessSessionOf` that process's gateways/    stale: read again, onRecord
 *                     key is read first and guarded at what was read      unknown, refused: onNoAnswer
 *   tieSession        a write of our own key, the record's key guarded     onSessionTied · stale: onRecord
 *   readRules         all of rules/, once for all that asked in a turn     onRules
 *   no answer, or a record that can't be read                              onNoAnswer
 *
 * The client below puts what one turn asks into few calls. A revision is told as a text of number and record:
 * a register that was put back gives its numbers once more (15.8). '0' is that of a key that is not there.
 */
import { invariant } from '../../base/invariant.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import type { HolderId, PartitionRecord } from '../../protocol/partition-record.js';
import {
  isEnded,
  isPartition,
  isSameHolder,
  numberOf,
  ownerOf,
  partitionName,
} from '../../protocol/partition-record.js';
import type { RegisterPort, Revision, Stamped } from '../../recovery/ownership/ports.js';
import { BrokenRule } from '../../base/json-shape.js';
import {
  GATEWAYS, MOVED_KEY, PARTITIONS, RULES, gatewayKey, leftOrderIdOf, leftOrderKey, parseKey, partitionKey,
  queueRuleIdOf, queueRuleKey, retiredIdOf, retiredKey,
} from '../../register/keys.js';
import { unchanged, type Entry, type Guard, type Outcome, type Register } from '../../register/port.js';
import {
  decodeGateway, decodeGivenUp, decodeLeftOrder, decodePartition, decodeQueueRule, encodeLeftOrder,
  encodePartition, encodeQueueRule, encodeRetired,
} from '../../register/records.js';
import type { EndedCopy, GatewayRecord, LeftOrder, QueueRule, RetiredRule } from '../../register/records.js';
import { GivenUpRules, endedBy } from './given-up-rules.js';
import type {
  LastHeld, LivingGateway, MetPartition, OwnershipRegister, RegisterSink,
} from './ownership-register.js';
import { ProcessKey } from './process-key.js';

export interface RegisterBridgeOptions {
  readonly gatewayId: string;
  /** What the key of this process says. */
  readonly record: GatewayRecord;
}

export interface RegisterBridgePorts {
  readonly register: Register;
  readonly clock: Clock;
  readonly soon: (run: () => void) => void;
  readonly log: EventLog;
  /** The lock file of this machine proves that exactly this incarnation of this gateway is dead. */
  isProvenDead(incarnation: number): boolean;
  /** The key of this process stands in the register: it may begin. Once. */
  onHeld(): void;
  /** Another process of this gateway has the key: this one must end, or not begin. Once. */
  onTaken(why: string): void;
}

interface KnownGateway {
  readonly entry: Entry;
  readonly living: LivingGateway | undefined;
}

/** As told last, by the watch or an answer: what is put back to what the watch told before is news. */
interface KnownPartition {
  readonly entry: Entry;
  /** '' for a record that can't be read. */
  readonly holderId: string;
  readonly met: MetPartition | undefined;
}

interface RulesQuestion {
  readonly ticket: number;
  readonly sink: RegisterSink;
}

export class RegisterBridge implements OwnershipRegister {
  readonly self: HolderId;
  readonly #ports: RegisterBridgePorts;
  readonly #key: ProcessKey;
  readonly #watch: { close(): void };
  readonly #sinks = new Map<string, RegisterSink>();
  readonly #partitions = new Map<string, KnownPartition>();
  readonly #gateways = new Map<string, KnownGateway>();
  /** Of those that have lived since this process began: where they will live again. */
  readonly #hosts = new Map<string, string>();
  /** And where they answer still, when they have lost their session alone. */
  readonly #admins = new Map<string, string | null>();
  #living: ReadonlyMap<string, LivingGateway> | undefined;
  #rulesAsked: RulesQuestion[] = [];
  /** What operators decided, by key, as a watch or the last reading told it. */
  #rules = new Map<string, Entry>();
  #retired: ReadonlySet<string> | undefined;
  readonly #givenUpRules: GivenUpRules;
  #givenUp: ReadonlyMap<string, readonly EndedCopy[]> | undefined;
  #queueRules: ReadonlyMap<string, QueueRule> | undefined;
  #leftOrders: ReadonlyMap<string, LeftOrder> | undefined;
  /** How often the watch has told of them. */
  #rulesNews = 0;
  /** The watch does not tell of one of them: they are read again. */
  #areRulesDoubted = false;
  #version = 0;
  #heardMs: number;
  #isTurnAsked = false;
  #wasHeld = false;
  #isClosed = false;
  /** It answers, and takes no change: why. */
  #refusedWhy = '';
  /** Records that could not be read, by key: said once for each revision. */
  readonly #broken = new Map<string, number>();
  /** Records below this revision are those of a file that was made elsewhere; undefined: not read yet. */
  #movedRevision: number | undefined;

  constructor(options: RegisterBridgeOptions, ports: RegisterBridgePorts) {
    const { gatewayId, record } = options;
    this.self = { gatewayId, incarnation: record.incarnation };
    this.#ports = ports;
    const { register, clock, log } = ports;
    this.#heardMs = clock.nowMs();
    this.#givenUpRules = new GivenUpRules(register, (entry) => this.#decoded(entry, decodeGivenUp));
    this.#key = new ProcessKey({ gatewayId, record }, {
      register, clock, log,
      isProvenDead: (incarnation) => ports.isProvenDead(incarnation),
      onHeld: () => { this.#onHeld(); },
      onTaken: (why) => { ports.onTaken(why); },
    });
    this.#watch = register.watch([PARTITIONS, GATEWAYS, RULES], {
      onSnapshot: (entries, deleted) => { this.#onSnapshot(entries, deleted); },
      onChange: (entry) => { this.#tell(this.#onEntry(entry)); },
      onDeleted: (key) => { this.#tell(this.#onDeleted(key)); },
      // What was told stays the best that is known: a key that is not seen is no verdict about it (15).
      onAway: () => undefined,
    });
  }

  /** A few times a second. */
  tick(nowMs: number): void {
    if (this.#ports.register.state.isUp) this.#heardMs = nowMs;
    if (this.#isClosed) return;
    this.#key.tick(nowMs);
    if (!this.#areRulesDoubted) return;
    this.#areRulesDoubted = false;
    this.#readRules([]);
  }

  session(): { readonly id: number; readonly endsMs: number } {
    return this.#key.session();
  }

  get away(): string {
    const { isUp, why } = this.#ports.register.state;
    return isUp ? this.#refusedWhy : why;
  }

  get heardMs(): number {
    return this.#heardMs;
  }

  heldByOthers(): readonly LastHeld[] {
    const byHolder = new Map<string, string[]>();
    for (const [partition, { holderId, met }] of this.#partitions) {
      if (met === undefined || met.isEnded || holderId === this.self.gatewayId) continue;
      const known = byHolder.get(holderId);
      if (known === undefined) byHolder.set(holderId, [partition]);
      else known.push(partition);
    }
    const living = this.living();
    return [...byHolder].map(([holder, partitions]) =>
      ({ holder, isLiving: living.has(holder), partitions }));
  }

  /** The key of this process stands now. */
  get isHeld(): boolean {
    return this.#key.session().id !== 0;
  }

  get version(): number {
    return this.#version;
  }

  retired(): ReadonlySet<string> {
    this.#retired ??= new Set([...this.#rules.keys()].map(retiredIdOf).filter((id) => id !== undefined));
    return this.#retired;
  }

  givenUp(): ReadonlyMap<string, readonly EndedCopy[]> {
    this.#givenUp ??= this.#givenUpRules.of(this.#rules.values());
    return this.#givenUp;
  }

  addGivenUp(
    storeId: string, by: RetiredRule, copies: readonly EndedCopy[],
    done: (why: string, left: readonly EndedCopy[]) => void,
  ): void {
    this.#givenUpRules.add(storeId, by, copies, done);
  }

  removeGivenUp(storeId: string, copies: readonly EndedCopy[]): void {
    this.#givenUpRules.remove(storeId, copies);
  }

  isProvenDead({ gatewayId, incarnation }: HolderId): boolean {
    const isOurs = gatewayId === this.self.gatewayId && incarnation !== this.self.incarnation;
    return isOurs && this.#ports.isProvenDead(incarnation);
  }

  living(): ReadonlyMap<string, LivingGateway> {
    this.#living ??= new Map(
      [...this.#gateways].flatMap(([id, { living }]) => (living === undefined ? [] : [[id, living]])),
    );
    return this.#living;
  }

  /** Ids of those that live or have partitions: of one that died, until it is retired and they have ended. */
  gateways(): ReadonlySet<string> {
    const known = new Set(this.living().keys());
    for (const { partition, isEnded } of this.partitions()) if (!isEnded) known.add(ownerOf(partition));
    return known;
  }

  hostOf(gatewayId: string): string | undefined {
    return this.#hosts.get(gatewayId);
  }

  /**
   * host:port of its admin HTTP, as its key said last; null when it listens on all addresses, or on any port.
   */
  adminOf(gatewayId: string): string | null {
    return this.#admins.get(gatewayId) ?? null;
  }

  *partitions(): IterableIterator<MetPartition> {
    for (const { met } of this.#partitions.values()) if (met !== undefined) yield met;
  }

  partition(name: string): MetPartition | undefined {
    return this.#partitions.get(name)?.met;
  }

  deleteEnded(partition: string): void {
    const key = keyOf(partition);
    this.#readKey(key, (entry) => {
      if (entry === undefined || entry === null) return;
      const record = this.#decoded(entry, decodePartition);
      if (record === undefined || !isEnded(record)) return;
      // Whatever comes of it is told by the watch.
      this.#ports.register.write([{ key, ...unchanged(entry), value: null }], () => undefined);
    });
  }

  setRetired(gatewayId: string, rule: RetiredRule | undefined, done: (why: string) => void): void {
    this.#setRule(retiredKey(gatewayId), rule === undefined ? null : encodeRetired(rule), done);
  }

  queueRules(): ReadonlyMap<string, QueueRule> {
    this.#queueRules ??= this.#rulesBy(queueRuleIdOf, decodeQueueRule);
    return this.#queueRules;
  }

  leftOrders(): ReadonlyMap<string, LeftOrder> {
    this.#leftOrders ??= this.#rulesBy(leftOrderIdOf, decodeLeftOrder);
    return this.#leftOrders;
  }

  /** What can't be read is passed over. */
  #rulesBy<T extends object>(
    idOf: (key: string) => string | undefined, decode: (text: string) => T | BrokenRule,
  ): ReadonlyMap<string, T> {
    return new Map([...this.#rules.values()].flatMap((entry) => {
      const id = idOf(entry.key);
      const rule = id === undefined ? undefined : this.#decoded(entry, decode);
      return id === undefined || rule === undefined ? [] : [[id, rule]];
    }));
  }

  setQueueRule(id: string, rule: QueueRule | undefined, done: (why: string) => void): void {
    this.#setRule(queueRuleKey(id), rule === undefined ? null : encodeQueueRule(rule), done);
  }

  changeLeftOrder(
    id: string, change: (known: LeftOrder | undefined) => LeftOrder | undefined, done: (why: string) => void,
  ): void {
    this.#changeRule(leftOrderKey(id), (entry) => {
      const order = change(entry === undefined ? undefined : this.#decoded(entry, decodeLeftOrder));
      return order === undefined ? null : encodeLeftOrder(order);
    }, done);
  }

  /** Null takes it back. The first order stands, with who gave it. */
  #setRule(key: string, value: string | null, done: (why: string) => void): void {
    this.#changeRule(key, (entry) => (value === null ? null : entry?.value ?? value), done);
  }

  /** `change` says what is to stand there; null: nothing. */
  #changeRule(
    key: string, change: (entry: Entry | undefined) => string | null, done: (why: string) => void,
  ): void {
    this.#readKey(key, (entry) => {
      if (entry === null) return done(`the register does not answer: ${this.away}`);
      const value = change(entry);
      if (value === (entry?.value ?? null)) return done('');
      this.#ports.register.write([{ key, ...unchanged(entry), value }], (_index, outcome) => {
        if (this.#isClosed) return;
        if (outcome.kind === 'stale') this.#changeRule(key, change, done);
        else done(outcome.kind === 'done' ? '' : `the register did not settle it: ${outcome.why}`);
      });
    });
  }

  leave(partition: string): void {
    this.#sinks.delete(partition);
  }

  portOf(partition: string, sink: RegisterSink): RegisterPort {
    const isNew = isPartition(partition) && !this.#sinks.has(partition);
    invariant(isNew, `a partition asks by one port: ${partition}`);
    this.#sinks.set(partition, sink);
    return {
      read: (ticket) => { this.#readRecord(partition, ticket, sink); },
      change: (ticket, expected, record, unlessSessionOf) => {
        this.#change({ partition, ticket, sink, expected, record }, unlessSessionOf);
      },
      tieSession: (ticket, expected) => { this.#tieSession(partition, ticket, sink, expected); },
      readRules: (ticket) => {
        this.#rulesAsked.push({ ticket, sink });
        this.#askTurn();
      },
    };
  }

  /** Deletes our key; `done` when that is known, or given up. The register itself stays open. */
  close(done: () => void): void {
    if (this.#isClosed) return done();
    this.#isClosed = true;
    this.#watch.close();
    this.#key.close(done);
  }

  /** What is told of rules is told anew. */
  #noteRules(): void {
    this.#queueRules = undefined;
    this.#leftOrders = undefined;
  }

  #noteNews(): void {
    this.#retired = undefined;
    this.#givenUp = undefined;
    this.#version += 1;
  }

  // ── questions ───────────────────────────────────────────────────────────────────────────────────

  /** At the end of the turn: what several partitions ask is asked once. */
  #askTurn(): void {
    if (this.#isTurnAsked) return;
    this.#isTurnAsked = true;
    this.#ports.soon(() => {
      this.#isTurnAsked = false;
      if (this.#isClosed) return;
      if (this.#rulesAsked.length > 0) this.#readRules(this.#rulesAsked.splice(0));
      this.#key.tie();
    });
  }

  #readRules(asked: readonly RulesQuestion[]): void {
    const news = this.#rulesNews;
    this.#ports.register.read({ prefix: RULES }, (result) => {
      if (this.#isClosed) return;
      // What the watch told meanwhile may be younger than what was read.
      if (result.kind === 'entries' && news !== this.#rulesNews) return this.#readRules(asked);
      if (result.kind === 'entries') {
        this.#rules = new Map(result.entries.map((entry) => [entry.key, entry]));
        this.#noteRules();
        this.#noteNews();
      } else if (asked.length === 0) this.#areRulesDoubted = true;
      for (const { ticket, sink } of asked) {
        if (result.kind === 'entries') sink.onRules(ticket);
        else sink.onNoAnswer(ticket);
      }
    });
  }

  #readRecord(partition: string, ticket: number, sink: RegisterSink): void {
    this.#stamp(partition, (stamped) => {
      if (stamped === undefined) sink.onNoAnswer(ticket);
      else sink.onRecord(ticket, stamped);
    });
  }

  /**
   * Undefined: no answer, or none that can be read. The session is read after the record: one that is there
   * was there, or came since; one that is missing is no more than what a reader of both at once could find a
   * moment later.
   */
  #stamp(partition: string, done: (stamped: Stamped | undefined) => void): void {
    // Beside the others: its answer is here before that to the second of them, or counts as none.
    if (this.#movedRevision === undefined) this.#readMoved();
    this.#readKey(keyOf(partition), (entry) => {
      if (entry === null) return done(undefined);
      if (entry === undefined) return this.#stampWithout(partition, done);
      const record = this.#decoded(entry, decodePartition);
      this.#onPartition(partition, entry);
      if (record === undefined) return done(undefined);
      this.#readKey(gatewayKey(record.holder.gatewayId), (session) => {
        const movedRevision = this.#movedRevision;
        if (session === null || movedRevision === undefined) return done(undefined);
        done({
          revision: revisionOf(entry.revision, entry.value), record,
          hasSession: isSessionOf(session, record.holder),
          isDoubted: entry.revision < movedRevision,
        });
      });
    });
  }

  /** There is no record: it never had one, or it has ended. */
  #stampWithout(partition: string, done: (stamped: Stamped | undefined) => void): void {
    this.#givenUpRules.read(partition, (ended, revision) => {
      if (this.#isClosed) return;
      const movedRevision = this.#movedRevision;
      if (revision === undefined || movedRevision === undefined) return done(undefined);
      const stamped = { revision: '0', record: undefined, hasSession: false };
      if (ended === undefined) done(stamped);
      else done({ ...stamped, record: endedBy(ended), isDoubted: revision < movedRevision });
    });
  }

  #readMoved(): void {
    this.#readKey(MOVED_KEY, (entry) => {
      if (entry !== null) this.#movedRevision = entry?.revision ?? 0;
    });
  }

  /** null: no answer. */
  #readKey(key: string, done: (entry: Entry | undefined | null) => void): void {
    this.#ports.register.read({ key }, (result) => {
      if (this.#isClosed) return;
      done(result.kind === 'entries' ? result.entries[0] : null);
    });
  }

  #change(change: ChangeQuestion, unlessSessionOf: HolderId | undefined): void {
    if (unlessSessionOf === undefined) return this.#write(change, []);
    const key = gatewayKey(unlessSessionOf.gatewayId);
    this.#readKey(key, (entry) => {
      const { partition, ticket, sink } = change;
      // Nothing was sent: no answer says less than that, and is settled by the next read.
      if (entry === null) sink.onNoAnswer(ticket);
      else if (isSessionOf(entry, unlessSessionOf)) this.#readRecord(partition, ticket, sink);
      else this.#write(change, [{ key, revision: entry?.revision ?? 0, value: entry?.value }]);
    });
  }

  #write({ partition, ticket, sink, expected, record }: ChangeQuestion, guards: readonly Guard[]): void {
    const value = encodePartition(record);
    const { key, revision: ifRevision, value: ifValue } = guardAt(partition, expected);
    const write = { key, ifRevision, ifValue, value, guards };
    this.#ports.register.write([write], (_index, outcome: Outcome) => {
      if (this.#isClosed) return;
      if (outcome.kind !== 'unknown') this.#noteRefused(outcome);
      if (outcome.kind === 'done') {
        const { revision } = outcome;
        this.#onPartition(partition, { key, revision, value, session: '' });
        sink.onApplied(ticket, revisionOf(revision, value));
      } else if (outcome.kind === 'stale') this.#readRecord(partition, ticket, sink);
      else sink.onNoAnswer(ticket);
    });
  }

  /** While it can't be reached, that is said instead. */
  #noteRefused(outcome: Outcome): void {
    const why = outcome.kind === 'refused' && this.#ports.register.state.isUp ? outcome.why : '';
    if (why === this.#refusedWhy) return;
    this.#refusedWhy = why;
    const { log } = this.#ports;
    if (why === '') log.info('register', 'the register takes changes of records again', {});
    else log.error('register', 'the register refuses changes of records: mail goes on, they wait', { why });
  }

  #tieSession(partition: string, ticket: number, sink: RegisterSink, expected: Revision): void {
    const guard = guardAt(partition, expected);
    const unlessClosed = (run: () => void) => (): void => {
      if (!this.#isClosed) run();
    };
    this.#key.addTie({
      guard,
      onTied: (sessionId) => {
        if (!this.#isClosed) sink.onSessionTied(ticket, sessionId);
      },
      onStale: unlessClosed(() => { this.#readRecord(partition, ticket, sink); }),
      onNoAnswer: unlessClosed(() => { sink.onNoAnswer(ticket); }),
    });
    this.#askTurn();
  }

  // ── news ────────────────────────────────────────────────────────────────────────────────────────

  #onHeld(): void {
    if (this.#wasHeld) return;
    this.#wasHeld = true;
    this.#ports.onHeld();
  }

  #onSnapshot(entries: readonly Entry[], deleted: readonly string[]): void {
    const concerned = new Set<string>();
    const present = new Set(entries.map(({ key }) => key));
    for (const key of deleted) for (const partition of this.#onDeleted(key)) concerned.add(partition);
    for (const entry of entries) for (const partition of this.#onEntry(entry)) concerned.add(partition);
    // A rule that was read, and is not in it: deleted while the watch was away, or made after this was told.
    this.#areRulesDoubted ||= [...this.#rules.keys()].some((key) => !present.has(key));
    // Our own key may be missing in it without ever having been told.
    if (!present.has(gatewayKey(this.self.gatewayId))) this.#key.onNews(undefined);
    this.#tell(concerned);
  }

  /** Which partitions it concerns. */
  #onEntry(entry: Entry): readonly string[] {
    const meaning = parseKey(entry.key);
    if (meaning?.kind === 'partition') {
      return this.#onPartition(partitionName(meaning.gatewayId, meaning.partition), entry);
    }
    if (meaning?.kind === 'rule') {
      this.#rules.set(entry.key, entry);
      this.#noteRules();
      this.#rulesNews += 1;
      this.#noteNews();
    }
    return meaning?.kind === 'gateway' ? this.#onGateway(meaning.id, entry) : [];
  }

  #onDeleted(key: string): readonly string[] {
    const meaning = parseKey(key);
    if (meaning?.kind === 'partition') {
      const partition = partitionName(meaning.gatewayId, meaning.partition);
      return this.#partitions.delete(partition) ? [partition] : [];
    }
    if (meaning?.kind === 'rule') {
      this.#rules.delete(key);
      this.#noteRules();
      this.#rulesNews += 1;
    }
    this.#noteNews();
    if (meaning?.kind !== 'gateway' || !this.#gateways.delete(meaning.id)) return [];
    this.#living = undefined;
    if (meaning.id === this.self.gatewayId) this.#key.onNews(undefined);
    return this.#partitionsOf(meaning.id);
  }

  #onPartition(partition: string, entry: Entry): readonly string[] {
    if (isSameEntry(this.#partitions.get(partition)?.entry, entry)) return [];
    const record = this.#decoded(entry, decodePartition);
    const holderId = record?.holder.gatewayId ?? '';
    const met = record === undefined ? undefined : {
      partition, stores: record.members.map(({ storeId }) => storeId), isEnded: isEnded(record),
    };
    this.#partitions.set(partition, { entry, holderId, met });
    this.#noteNews();
    return [partition];
  }

  #onGateway(id: string, entry: Entry): readonly string[] {
    const known = this.#gateways.get(id);
    if (isSameEntry(known?.entry, entry)) return [];
    const record = this.#decoded(entry, decodeGateway);
    const isSame = known?.entry.session === entry.session
      && known.living?.holder.incarnation === record?.incarnation;
    const sinceMs = isSame && known.living !== undefined ? known.living.sinceMs : this.#ports.clock.nowMs();
    const living = record === undefined
      ? undefined
      : { holder: { gatewayId: id, incarnation: record.incarnation }, sinceMs, group: record.group };
    this.#gateways.set(id, { entry, living });
    if (record !== undefined) {
      this.#hosts.set(id, record.host);
      this.#admins.set(id, record.addresses[0] ?? null);
    }
    this.#living = undefined;
    this.#noteNews();
    if (id === this.self.gatewayId) this.#key.onNews(entry);
    // A tie writes the same key again: that is no news to anybody.
    return isSame ? [] : this.#partitionsOf(id);
  }

  /** What the gateway owns, or holds as far as was told. */
  #partitionsOf(gatewayId: string): readonly string[] {
    return [...this.#sinks.keys()].filter((partition) =>
      ownerOf(partition) === gatewayId || this.#partitions.get(partition)?.holderId === gatewayId);
  }

  #tell(partitions: Iterable<string>): void {
    for (const partition of partitions) {
      if (!this.#isClosed) this.#sinks.get(partition)?.onNews();
    }
  }

  #decoded<T extends object>(
    { key, value, revision }: Entry, decode: (text: string) => T | BrokenRule,
  ): T | undefined {
    const decoded = decode(value);
    if (!(decoded instanceof BrokenRule)) {
      this.#broken.delete(key);
      return decoded;
    }
    if (this.#broken.get(key) !== revision) {
      this.#broken.set(key, revision);
      const text =
        'a record of the register can not be read, and nothing is done by it: mend or delete it by hand';
      this.#ports.log.error('register', text, { key, rule: decoded.rule });
    }
    return undefined;
  }
}

interface ChangeQuestion {
  readonly partition: string;
  readonly ticket: number;
  readonly sink: RegisterSink;
  readonly expected: Revision;
  readonly record: PartitionRecord;
}

function keyOf(partition: string): string {
  return partitionKey(ownerOf(partition), numberOf(partition));
}

/** A register that was put back to an older state gives the same revision to another value. */
function isSameEntry(known: Entry | undefined, { revision, value }: Entry): boolean {
  return known?.revision === revision && known.value === value;
}

/** Whether the entry is the key of exactly this process. */
function isSessionOf(entry: Entry | undefined, holder: HolderId): boolean {
  const record = entry === undefined ? undefined : decodeGateway(entry.value);
  if (record === undefined || record instanceof BrokenRule) return false;
  return isSameHolder({ gatewayId: holder.gatewayId, incarnation: record.incarnation }, holder);
}

function revisionOf(revision: number, value: string): Revision {
  return `${String(revision)} ${value}`;
}

/** The compare of the partition's record with what was read as `expected`. */
function guardAt(partition: string, expected: Revision): Guard {
  const at = expected.indexOf(' ');
  const key = keyOf(partition);
  return at < 0
    ? { key, revision: Number(expected) }
    : { key, revision: Number(expected.slice(0, at)), value: expected.slice(at + 1) };
}
