/**
 * The faults of a simulated world: what each kind does, how long it lasts, and how all of it ends. A kind counts
 * as fired when it had its effect; one that never fires in a run of many seeds is a mistake of the simulator.
 *
 *   draw ─► fault of an enabled kind ─ after its time ─► undone         calm: everything is undone at once
 */
import type { Prng } from '../../src/base/prng.js';
import { NO_MEMORY, NO_REPLY, REFUSED } from '../../src/gateway/mail-types.js';
import type { Path } from '../scenario/network.js';
import type { Letter } from './ledger.js';
import { UNANSWERED } from './ledger.js';
import type { Answer } from './next-hops.js';
import type { FaultKind, Plan } from './plan.js';
import { Stage } from './stage.js';
import type { WorldRegister } from '../scenario/world-register.js';
import type { GatewayMachine, Mail, StoreMachine, World } from './world.js';

const PATHS: readonly Path[] = ['A', 'B'];
/** Of a hundred answers of a next hop while its fault is on. */
/** Of content, where envelopes are to fill memory. */
const SMALL_BYTES = 100;
const HOP_TROUBLE_PERCENT = 15;
/** Drift margin and heartbeats leave at least this of a lease. */
const BLINK_OF_LEASE = 0.75;
const TRICKLE_MS = 60;
/** The story begins when there are queues with mail in them. */
const STORY_AT_STEP = 8;
const STOP_TIMEOUTS_MS = [0, 500, 3000];
const PLANNED_PAUSE_MS = 500;
/** Long enough that a lease ends and a takeover follows within a run. */
const LONG_STEP_MS = 5000;
/** A partition finds its copies. */
const LEFT_MIN = 2;
/** Of a hundred requests or replies while the register loses some. */
const REGISTER_LOSSES = 0.2;
const REGISTER_SLOW_MS = [20, 300, 1500];
const REGISTER_LATE_MS = [500, 4000, 20_000];
/** More, and hardly an attempt would be without trouble for one of them. */
const MANY_RECIPIENTS = 12;
const NOTIFY_CHOICES = [0, 0, 0, 1, 2, 4, 6];

export class Swarm {
  readonly fired = new Map<FaultKind, number>();
  private readonly world: World;
  private readonly plan: Plan;
  private readonly prng: Prng;
  private readonly answers: Prng;
  private readonly drawn: readonly FaultKind[];
  private stepsDone = 0;
  private isCalm = false;
  /** When next hops that are down are there again, by queue name. */
  private readonly downUntilMs = new Map<string, number>();
  private readonly unheard: Letter[] = [];
  private readonly stage: Stage;

  constructor(world: World) {
    this.world = world;
    this.plan = world.plan;
    this.prng = world.prng.fork();
    this.answers = world.prng.fork();
    this.drawn = [...this.plan.kinds].filter((kind) => kind in this.faults);
    world.onFired = (kind) => { this.fire(kind); };
    this.stage = new Stage(world, this);
    world.answer = (queueName) => this.answer(queueName);
    for (const kind of ['clocks', 'hop-verbose', 'many-recipients'] as const) if (this.plan.kinds.has(kind)) this.fire(kind);
    for (const { id: gateway } of world.gateways) for (const { id: store } of world.stores) if (this.plan.kinds.has('small-chunks')) this.splitWire(gateway, store);
  }

  /** One step: some mail, maybe a fault, some time. */
  step(): void {
    const { prng, plan, world } = this;
    this.mail();
    if (plan.plot !== undefined && this.stepsDone === STORY_AT_STEP) this.stage.play(plan.plot);
    this.stepsDone += 1;
    if (this.drawn.length > 0 && prng.below(plan.faultEvery) === 0) this.faults[prng.pick(this.drawn)]?.();
    world.run(prng.below(8) === 0 ? prng.below(LONG_STEP_MS) : prng.below(100));
  }

  /** Everything is healed and started again; next hops take all. */
  calm(): void {
    const { world } = this;
    this.isCalm = true;
    this.downUntilMs.clear();
    this.stage.end();
    for (const { core } of world.gateways) for (const { id } of world.stores) core?.leaving.undrain(id);
    this.healRegister();
    for (const gateway of world.gateways) {
      for (const store of world.stores) {
        world.network.heal(gateway.id, store.id);
        world.network.holdAnswers(gateway.id, store.id, false);
        world.network.holdRequests(gateway.id, store.id, false);
        world.network.slow(gateway.id, store.id, 0);
      }
    }
    for (const machine of [...world.stores, ...world.gateways]) world.thaw(machine);
    // Of two processes of one id the operator ends the one that he did not mean.
    for (const gateway of world.gateways) if (gateway.isTwin) world.killGateway(gateway);
    this.startAll();
  }

  /** A process that ended, also by itself, is started again by whoever runs it. */
  startAll(): void {
    for (const machine of this.world.stores) this.world.startStore(machine);
    for (const { node, isTwin } of this.world.gateways) if (!isTwin && !node.isAlive) node.start();
  }

  fire(kind: FaultKind): void {
    this.fired.set(kind, (this.fired.get(kind) ?? 0) + 1);
  }

  // ---- clients ----

  private mail(): void {
    const { world, prng, plan } = this;
    for (let i = prng.below(plan.burst + 1); i > 0; i--) {
      const first = prng.pick(plan.queues).name;
      const names = prng.below(4) === 0 ? [...new Set([first, prng.pick(plan.queues).name])] : [first];
      const isLarge = prng.below(plan.kinds.has('full-store') || plan.kinds.has('full-gateway') ? 2 : 12) === 0;
      const gateway = prng.pick(world.gateways);
      const mail: Mail = {
        names, bytes: 1 + prng.below(isLarge ? plan.largeBytes : 400), recipients: 1 + prng.below(plan.kinds.has('many-recipients') ? MANY_RECIPIENTS : 3),
        reversePath: prng.below(6) === 0 ? '' : 'alice@senders.example', notify: prng.pick(NOTIFY_CHOICES),
      };
      // Half of it trickles in while other things happen.
      if (prng.below(2) === 0) this.heard(world.submit(gateway, mail));
      else world.scheduler.after(prng.next() * TRICKLE_MS, () => { this.heard(world.submit(gateway, mail)); });
    }
    if (plan.kinds.has('resend') && prng.below(4) === 0) this.resend();
  }

  private heard(letter: Letter | undefined): void {
    if (letter === undefined) return;
    if (letter.outcome === NO_MEMORY) {
      for (const kind of ['full-store', 'full-gateway'] as const) if (this.plan.kinds.has(kind)) this.fire(kind);
    }
    if (this.plan.kinds.has('resend')) this.unheard.push(letter);
  }

  /** A client that read no reply, or lost it, submits the same content again, at any gateway. */
  private resend(): void {
    const { world, prng } = this;
    const letter = this.unheard.shift();
    if (letter === undefined) return;
    if (letter.outcome === 0) {
      this.unheard.push(letter);
      return;
    }
    const lost = letter.outcome === UNANSWERED || letter.outcome === NO_REPLY || letter.outcome === REFUSED || prng.below(4) === 0;
    if (!lost) return;
    this.fire('resend');
    this.heard(world.submit(prng.pick(world.gateways), { names: letter.copies.map((copy) => copy.queueName), bytes: letter.bytes, recipients: letter.copies[0]?.recipients.length ?? 1, reversePath: letter.reversePath, notify: 0, resends: letter }));
  }

  // ---- next hops ----

  /** Reports are never refused: one that comes back has nobody to be reported to. */
  private answer(queueName: string): Answer {
    if ((this.downUntilMs.get(queueName) ?? 0) > this.world.scheduler.nowMs) return 'down';
    if (this.isCalm) return 'accept';
    const { kinds } = this.plan;
    const isReport = queueName === 'senders';
    const draw = this.answers.below(100);
    const pick = (kind: FaultKind, answer: Answer, of: number): Answer | undefined => {
      if (!kinds.has(kind) || draw < of || draw >= of + HOP_TROUBLE_PERCENT) return undefined;
      this.fire(kind);
      return answer;
    };
    return pick('hop-defers', 'defer', 0) ?? (isReport ? undefined : pick('hop-rejects', 'reject', 15)) ?? pick('hop-hangs', 'hang', 30) ?? pick('hop-cuts', 'cut', 45) ?? 'accept';
  }

  // ---- faults ----

  /** What is drawn as an event; the other kinds are conditions of the whole run. */
  private readonly faults: Partial<Record<FaultKind, () => void>> = {
    'kill-gateway': () => { this.killGateway(this.prng.pick(this.world.gateways)); },
    'kill-store': () => { this.killStore(); },
    'hop-down': () => { this.outage(); },
    blink: () => { this.blink(); },
    'stop-gateway': () => { this.stopGateway(this.prng.pick(this.world.gateways)); },
    'stop-store': () => { this.stopStore(this.prng.pick(this.world.stores)); },
    'planned-stop': () => { this.plannedStop(); },
    'drain-store': () => { this.drainStore(); },
    rebalance: () => { this.orderRebalance(); },
    twin: () => { this.startTwin(); },
    retire: () => { this.retire(); },
    'lose-store': () => { this.loseStore(); },
    'register-away': () => { this.onRegister('register-away', (register) => { register.goAway(this.prng.pick(['refusing', 'silent'] as const)); }); },
    'register-slow': () => { this.onRegister('register-slow', (register) => { register.slow(this.prng.pick(REGISTER_SLOW_MS)); }); },
    'register-late': () => { this.onRegister('register-late', (register) => { register.delay(REGISTER_LOSSES, this.prng.pick(REGISTER_LATE_MS)); }); },
    'register-loses': () => { this.onRegister('register-loses', (register) => { register.lose({ requests: REGISTER_LOSSES, replies: REGISTER_LOSSES }); }); },
    'register-cut': () => { this.cutRegister(); },
    'register-rollback': () => { this.rollBack(); },
    'freeze-gateway': () => { this.freeze(this.prng.pick(this.world.gateways), 'freeze-gateway'); },
    'freeze-store': () => { this.freeze(this.prng.pick(this.world.stores), 'freeze-store'); },
    'reset-path': () => { this.onPair('reset-path', (gateway, store) => { this.world.network.reset(gateway, store, this.prng.pick(PATHS)); return undefined; }); },
    'cut-path': () => { this.cut('cut-path', this.prng.pick(PATHS)); },
    'cut-link': () => { this.cut('cut-link', undefined); },
    'stall-path': () => { this.hold('stall-path', this.prng.pick(PATHS), true, true); },
    'one-way': () => {
      const isRequests = this.prng.below(2) === 0;
      this.hold('one-way', this.prng.pick([...PATHS, undefined]), isRequests, !isRequests);
    },
    partition: () => { this.hold('partition', undefined, true, true); },
    isolate: () => { this.isolate(); },
    'slow-link': () => {
      this.onPair('slow-link', (gateway, store) => {
        this.world.network.slow(gateway, store, this.prng.pick([1, 10, 100]));
        return () => {
          this.world.network.slow(gateway, store, 0);
          if (this.plan.kinds.has('small-chunks')) this.splitWire(gateway, store);
        };
      });
    },
  };

  /** From a blink to well past the lease. */
  private durationMs(): number {
    const { prng, plan } = this;
    return prng.pick([prng.below(300), prng.below(plan.failoverTimeoutMs * 3), prng.below(plan.leaseMs), plan.leaseMs + prng.below(3 * plan.leaseMs)]);
  }

  private later(undo: (() => void) | undefined): void {
    if (undo === undefined) return;
    this.world.scheduler.after(this.durationMs(), () => { if (!this.isCalm) undo(); });
  }

  private onPair(kind: FaultKind, run: (gateway: string, store: string) => (() => void) | undefined): void {
    const gateway = this.prng.pick(this.world.gateways).id;
    const store = this.prng.pick(this.world.stores).id;
    this.world.scheduler.trace(`${kind} ${gateway} ${store}`);
    this.fire(kind);
    this.later(run(gateway, store));
  }

  private splitWire(gateway: string, store: string): void {
    this.fire('small-chunks');
    this.world.network.split(gateway, store, this.prng.pick([60, 300, 2000]));
  }

  private cut(kind: FaultKind, path: Path | undefined): void {
    this.onPair(kind, (gateway, store) => {
      this.world.network.cut(gateway, store, path);
      return () => { this.world.network.heal(gateway, store, path); };
    });
  }

  private hold(kind: FaultKind, path: Path | undefined, requests: boolean, answers: boolean): void {
    this.onPair(kind, (gateway, store) => {
      const { network } = this.world;
      if (requests) network.holdRequests(gateway, store, true, path);
      if (answers) network.holdAnswers(gateway, store, true, path);
      return () => {
        if (requests) network.holdRequests(gateway, store, false, path);
        if (answers) network.holdAnswers(gateway, store, false, path);
      };
    });
  }

  /** No store hears this gateway, or it hears none; now and then it dies before that ends. */
  private isolate(): void {
    const { world, prng } = this;
    const machine = prng.pick(world.gateways);
    const requests = prng.below(2) === 0;
    const answers = !requests || prng.below(2) === 0;
    this.fire('isolate');
    machine.process.trace('isolated');
    const set = (held: boolean): void => {
      for (const { id } of world.stores) {
        if (requests) world.network.holdRequests(machine.id, id, held);
        if (answers) world.network.holdAnswers(machine.id, id, held);
      }
    };
    set(true);
    this.mail();
    this.later(() => { set(false); });
    if (this.plan.kinds.has('kill-gateway') && prng.below(2) === 0) world.scheduler.after(this.durationMs(), () => { if (!this.isCalm) this.killGateway(machine); });
  }

  private killGateway(machine: GatewayMachine): void {
    if (!machine.node.isAlive) return;
    this.fire('kill-gateway');
    this.world.killGateway(machine);
    this.later(() => { if (!machine.isTwin && !machine.node.isAlive) machine.node.start(); });
  }

  private killStore(): void {
    const machine = this.prng.pick(this.world.stores);
    if (!machine.node.isAlive) return;
    this.fire('kill-store');
    this.killAndStart(machine);
  }

  private killAndStart(machine: StoreMachine): void {
    this.world.killStore(machine);
    this.later(() => { this.world.startStore(machine); });
  }

  private stopGateway(machine: GatewayMachine): void {
    if (!machine.node.isAlive || machine.process.isFrozen) return;
    this.fire('stop-gateway');
    this.world.stopGateway(machine);
    this.world.scheduler.after(500 + this.durationMs(), () => { if (!machine.isTwin && !machine.node.isAlive) machine.node.start(); });
  }

  private stopStore(machine: StoreMachine): void {
    if (!machine.node.isAlive || machine.process.isFrozen) return;
    this.fire('stop-store');
    this.world.stopStore(machine, this.prng.pick(STOP_TIMEOUTS_MS), this.prng.below(4) > 0);
    this.world.scheduler.after(500 + this.durationMs(), () => { this.world.startStore(machine); });
  }

  /** Maintenance: gateways first, then all stores, and everything back from the files. */
  private plannedStop(): void {
    const { world, prng } = this;
    this.fire('planned-stop');
    for (const gateway of world.gateways) world.stopGateway(gateway);
    world.scheduler.after(PLANNED_PAUSE_MS, () => { if (!this.isCalm) for (const store of world.stores) world.stopStore(store, 0, true); });
    world.scheduler.after(2 * PLANNED_PAUSE_MS + prng.below(2 * PLANNED_PAUSE_MS), () => { this.startAll(); });
  }

  /** An operator has the queues of a store moved away, and later takes that back. */
  private drainStore(): void {
    const { world, prng } = this;
    const { id } = prng.pick(world.stores);
    this.fire('drain-store');
    for (const { core, process } of world.gateways) if (!process.isFrozen) core?.leaving.drain(id);
    this.later(() => { for (const { core, process } of world.gateways) if (!process.isFrozen) core?.leaving.undrain(id); });
  }

  /** Whatever is amiss: copies move when nothing is missing, and stop where something is. */
  private orderRebalance(): void {
    this.fire('rebalance');
    for (const { core, process } of this.world.gateways) if (!process.isFrozen) core?.mirrors.rebalance.order();
  }

  /** An operator retires a gateway, by way of any that reaches the register, and later takes that back. */
  private retire(): void {
    const { world, prng } = this;
    const { gatewayId } = prng.pick(world.gateways);
    const rule = { who: 'ann', reason: 'as it pleases', wallMs: 1 };
    prng.pick(world.gateways).node.register?.bridge.setRetired(gatewayId, rule, (why) => {
      if (why === '') this.fire('retire');
    });
    this.later(() => { this.takeBack(); });
  }

  /** Every gateway is wanted again; an order that was under way may come yet: asked for until all know. */
  takeBack(): void {
    for (const { node } of this.world.gateways) {
      const bridge = node.register?.bridge;
      for (const id of bridge?.retired() ?? []) bridge?.setRetired(id, undefined, () => {});
    }
  }

  /** One never comes back; now and then another dies at that instant. So many are left that a queue finds its mirrors. */
  private loseStore(): void {
    const { world, prng } = this;
    const machine = prng.pick(world.stores);
    const other = prng.pick(world.stores);
    if (world.lostStores.has(machine.id) || world.stores.length - world.lostStores.size <= LEFT_MIN) return;
    world.loseStore(machine);
    if (other.node.isAlive) this.killAndStart(other);
  }

  /** A second process of one id: one of both has to stop. */
  private startTwin(): void {
    const twin = this.world.gateways.find((gateway) => gateway.isTwin);
    if (twin === undefined || twin.node.isAlive) return;
    this.fire('twin');
    twin.node.start();
  }

  /** For a story: queues keep what they have, or not any more. */
  holdMail(ms: number): void {
    for (const { name } of [...this.plan.queues, { name: 'senders' }]) this.downUntilMs.set(name, ms === 0 ? 0 : this.world.scheduler.nowMs + ms);
  }

  /** For a story: so many messages to this gateway. */
  send(gateway: GatewayMachine, count: number, name?: string, bytes = 1 + this.prng.below(300)): Letter[] {
    const { world, prng, plan } = this;
    const recipients = plan.storyRecipients;
    const sizeBytes = recipients === 1 ? bytes : Math.min(bytes, SMALL_BYTES);
    const letters: Letter[] = [];
    for (let i = 0; i < count; i++) {
      const letter = world.submit(gateway, { names: [name ?? prng.pick(plan.queues).name], bytes: sizeBytes, recipients, reversePath: 'alice@senders.example', notify: 0 });
      this.heard(letter);
      if (letter !== undefined) letters.push(letter);
    }
    return letters;
  }

  /** For the whole register, until its time is over. */
  private onRegister(kind: FaultKind, begin: (register: WorldRegister) => void): void {
    this.fire(kind);
    this.world.scheduler.trace(kind);
    begin(this.world.register);
    this.later(() => { this.healRegister(); });
  }

  private healRegister(): void {
    const { register, gateways } = this.world;
    register.comeBack();
    register.slow(0);
    register.delay(0, 0);
    register.lose({ requests: 0, replies: 0 });
    for (const { node } of gateways) node.register?.mend();
  }

  /** One gateway alone does not reach it. */
  private cutRegister(): void {
    const { node, process } = this.prng.pick(this.world.gateways);
    const { register } = node;
    if (register === undefined) return;
    this.fire('register-cut');
    process.trace('is cut off from the register');
    register.cutOff();
    this.later(() => { register.mend(); });
  }

  /** A backup is restored: what was written since is forgotten. */
  private rollBack(): void {
    const { register, scheduler } = this.world;
    const backup = register.snapshot().copy();
    this.later(() => {
      this.fire('register-rollback');
      scheduler.trace('the register is rolled back');
      this.world.records();
      register.restore(backup);
    });
  }

  /** A next hop can't be reached: its queues fill. */
  private outage(): void {
    this.fire('hop-down');
    this.downUntilMs.set(this.prng.pick(this.plan.queues).name, this.world.scheduler.nowMs + 2 * this.durationMs());
  }

  /** The event loop of a gateway is blocked for a while, and its lease lasts. */
  private blink(): void {
    const machine = this.prng.pick(this.world.gateways);
    if (!machine.node.isAlive || machine.process.isFrozen) return;
    this.fire('blink');
    machine.process.freeze();
    this.world.scheduler.after(this.prng.below(this.plan.leaseMs * BLINK_OF_LEASE), () => { if (!this.isCalm) this.world.thaw(machine); });
  }

  private freeze(machine: GatewayMachine | StoreMachine, kind: FaultKind): void {
    if (!machine.node.isAlive || machine.process.isFrozen) return;
    this.fire(kind);
    machine.process.freeze();
    this.later(() => { this.world.thaw(machine); });
  }
}
