/**
 * A whole group of gateways and stores in one thread, on machines with clocks of their own and a network with
 * two paths. Gateways and stores are the production machines; clients, network, next hops and the passing of
 * time are simulated. Everything comes from the seed: a run is a list of steps, and a seed gives the same one.
 *
 *   clients ─ submit ─► gateways (GatewayNode) ─ Network, path A and B ─► stores (StoreNode)
 *                          └─ SimCarrier ─► next hops         Guarantees, Custody: judge while it happens
 *
 * Owns: the life of each process, and what every client was told. Not here: which faults happen when (swarm.ts).
 */
import { Prng } from '../../src/base/prng.js';
import type { GatewayCore } from '../../src/gateway/daemon/core.js';
import type { MailEvents } from '../../src/gateway/queue/mail-events.js';
import { createRouter } from '../../src/gateway/queue/router.js';
import type { Router, Submission } from '../../src/gateway/mail-types.js';
import { GatewayNode } from '../scenario/gateway-node.js';
import { Network } from '../scenario/network.js';
import type { LogLine } from '../scenario/ports.js';
import { KeptLog } from '../scenario/ports.js';
import { Scheduler } from '../scenario/scheduler.js';
import { StoreNode } from '../scenario/store-node.js';
import { WorldRegister } from '../scenario/world-register.js';
import type { RegisterMap } from '../../src/register/core/register-map.js';
import type { PartitionRecord } from '../../src/protocol/partition-record.js';
import { partitionName } from '../../src/protocol/partition-record.js';
import { AdoptionWatch } from './adoption-watch.js';
import type { ClientMail } from './clients.js';
import { Clients } from './clients.js';
import type { FiledStore } from './custody.js';
import { Custody, filedOf } from './custody.js';
import { Guarantees } from './guarantees.js';
import { checkLog } from './impossible.js';
import { Ledger, Letter } from './ledger.js';
import type { Answer } from './next-hops.js';
import { SimCarrier } from './next-hops.js';
import { MoveWatch } from './move-watch.js';
import { OrphanWatch } from './orphan-watch.js';
import type { FaultKind, Plan } from './plan.js';
import { SimProcess } from './process.js';
import { ServiceWatch } from './service.js';

const WALL_BASE_MS = Date.UTC(2026, 0, 1);
const WALL_SKEW_MS = 1000;
const RETRY_MS = 1000;
/** As long as a reply may be (RFC 5321 4.5.3.1.5). */
const VERBOSE = 'the mailbox is busy, and this is why: '.repeat(14).slice(0, 500);
/** What remains of a stopping process after it has said so. */
const STOP_MS = 200;

/** Records by partition, as one state of the register has them. */
type Standing = readonly (readonly [string, PartitionRecord])[];

export interface Machine<N> {
  readonly id: string;
  readonly process: SimProcess;
  readonly node: N;
}

/** What a process says of a partition that it gives to another one. */
const GIVEN_AWAY = ['a partition is handed back to its owner', 'a partition of this retired gateway is handed on'];

/**
 * Machines are of a class: a getter of an object literal would be another one in each world, and whatever was compiled
 * for the machines of one world would be thrown away in the next.
 */
export class GatewayMachine implements Machine<GatewayNode> {
  readonly id: string;
  readonly gatewayId: string;
  readonly process: SimProcess;
  readonly node: GatewayNode;
  /** The stores of its configuration; read when it starts. */
  readonly storeIds: string[];

  constructor({ id, process, node }: Machine<GatewayNode>, gatewayId: string, storeIds: string[]) {
    this.id = id;
    this.gatewayId = gatewayId;
    this.process = process;
    this.node = node;
    this.storeIds = storeIds;
  }

  /** A second process of a gateway's id: nobody starts it again. */
  get isTwin(): boolean {
    return this.id !== this.gatewayId;
  }

  get core(): GatewayCore | undefined {
    return this.node.core;
  }
}

export class StoreMachine implements Machine<StoreNode> {
  readonly id: string;
  readonly process: SimProcess;
  readonly node: StoreNode;
  /** What its spill file holds while it is down. */
  filed: FiledStore | undefined;

  constructor({ id, process, node }: Machine<StoreNode>) {
    this.id = id;
    this.process = process;
    this.node = node;
  }

  get store(): StoreNode['store'] {
    return this.node.store;
  }
}

export interface Mail {
  readonly names: readonly string[];
  readonly bytes: number;
  readonly reversePath: string;
  readonly recipients: number;
  readonly notify: number;
  /** The message that this one repeats because its client heard nothing. */
  readonly resends?: Letter;
}

export class World {
  readonly plan: Plan;
  readonly scheduler = new Scheduler();
  readonly prng: Prng;
  readonly network: Network;
  readonly log: KeptLog;
  readonly ledger = new Ledger();
  readonly gateways: readonly GatewayMachine[];
  readonly stores: readonly StoreMachine[];
  readonly custody: Custody;
  readonly guarantees: Guarantees;
  /** Never started again, as it seems. */
  readonly lostStores = new Set<string>();
  readonly service: ServiceWatch;
  private readonly orphans: OrphanWatch;
  private readonly adoptions: AdoptionWatch;
  private readonly moves: MoveWatch;
  readonly register: WorldRegister;
  private readonly newest = new Map<string, PartitionRecord>();
  /** What `newest` was brought up to date with. */
  private newestOf: Standing | undefined;
  /** What the register has, and the state that it was read from: a state never changes, it is replaced. */
  private standing: Standing = [];
  private standingIn: RegisterMap | undefined;
  /** What next hops do; swarm.ts sets it. */
  answer: (queueName: string) => Answer = () => 'accept';
  /** A kind of fault that the world sees for itself had its effect. */
  onFired: (kind: FaultKind) => void = () => {};
  private readonly router: Router;
  /** Of the running process of each gateway. */
  private readonly clients = new Map<string, Clients>();

  constructor(plan: Plan) {
    this.plan = plan;
    this.prng = new Prng(plan.seed ^ 0x2545f491);
    this.network = new Network(this.scheduler, this.prng.fork());
    this.log = new KeptLog(() => this.scheduler.nowMs, (line) => { this.onLog(line); });
    this.register = new WorldRegister(this.scheduler, this.prng.fork(), this.log, WALL_BASE_MS);
    this.router = createRouter([...plan.queues, { name: 'senders', ordering: 'fifo' as const, concurrency: 4 }].map((queue) => ({
      domains: [`${queue.name}.example`], name: queue.name, nextHop: { protocol: 'smtp', host: queue.name, port: 25 }, ordering: queue.ordering, concurrency: queue.concurrency, lengthMax: 1_000_000,
    })));
    const secret = new Uint8Array(32).fill(7);
    this.service = new ServiceWatch(
      plan.minReplicas, plan.failoverTimeoutMs, this.router.mailRoutes(),
      (gateway, store) => this.network.isSlow(gateway, store),
    );
    this.stores = plan.stores.map((id) => this.newStore(id, secret));
    this.gateways = plan.gateways.map((id, index) => this.newGateway(id, id, index, secret));
    if (plan.hasTwin) this.gateways = [...this.gateways, this.newGateway('gw-1-twin', 'gw-1', plan.gateways.length, secret)];
    this.custody = new Custody(this, this.ledger);
    this.register.register.onLate = (run) => {
      this.custody.beforeLoss();
      run();
      this.custody.onLoss();
    };
    this.orphans = new OrphanWatch(this);
    this.adoptions = new AdoptionWatch(this);
    this.moves = new MoveWatch(this);
    this.guarantees = new Guarantees({ gateways: this.gateways, stores: this.stores, ledger: this.ledger, custody: this.custody, minReplicas: plan.minReplicas, records: () => this.records(), nowMs: () => this.scheduler.nowMs });
    for (const { node } of this.stores) node.start();
    for (const { node, isTwin } of this.gateways) if (!isTwin) node.start();
  }

  run(ms: number): void {
    this.scheduler.runUntil(this.scheduler.nowMs + ms);
  }

  // ---- clients ----

  /** One message to a gateway, by SMTP; undefined when it does not take it. */
  submit(gateway: GatewayMachine, mail: Mail): Letter | undefined {
    const { core } = gateway;
    if (core === undefined || gateway.process.isFrozen) return undefined;
    const contentKey = mail.resends?.contentKey ?? this.ledger.moment();
    return this.clientsOf(gateway, core).send({ ...mail, contentKey });
  }

  private clientsOf(gateway: GatewayMachine, core: GatewayCore): Clients {
    const known = this.clients.get(gateway.id);
    if (known?.core === core) return known;
    const clients = new Clients(core, gateway.process, { router: this.router, prng: this.prng.fork(), log: this.log, hooks: this.plan.kinds.has('late-hook') ? new Prng(this.plan.seed ^ this.ledger.moment()) : undefined }, {
      onLateVerdict: () => { this.onFired('late-hook'); },
      onFull: () => { if (this.plan.kinds.has('full-gateway')) this.onFired('full-gateway'); },
      onSubmitted: (submission, mail) => this.onSubmitted(gateway, submission, mail),
      onPlaced: (letter, { groups }) => {
        for (const copy of letter.copies) {
          const route = groups.find((group) => group.route.queueName === copy.queueName)?.route;
          const mirror = route === undefined ? undefined : core.registry.find(route)?.partition;
          if (mirror !== undefined) copy.queueKey = mirror.name;
        }
      },
      onSettled: (letter, outcome) => {
        if (letter.outcome !== 0) return;
        letter.outcome = outcome;
        letter.settledAt = this.ledger.moment();
        this.scheduler.trace(`settled ${String(letter.id)} ${String(outcome)}`);
        if (letter.isAccepted) this.ledger.accepted += 1;
        this.guarantees.onSettled(letter, core);
      },
    });
    this.clients.set(gateway.id, clients);
    return clients;
  }

  private onSubmitted(gateway: GatewayMachine, submission: Submission, mail: ClientMail): Letter {
    const groups = new Map(submission.groups.map(({ route, recipients }) => [route.queueName, recipients]));
    const letter = new Letter({
      id: submission.messageId, contentKey: mail.contentKey, header: Uint8Array.from(submission.chunks[0] ?? []),
      gateway: gateway.id, reversePath: submission.reversePath, groups, bytes: mail.bytes,
      submittedAt: this.ledger.moment(),
    });
    this.ledger.add(letter);
    return letter;
  }

  // ---- processes ----

  killGateway(machine: GatewayMachine): void {
    if (!machine.node.isAlive) return;
    this.custody.beforeLoss();
    machine.process.trace('killed');
    machine.node.kill(this.prng.below(2) === 0);
    machine.process.end();
    this.clients.get(machine.id)?.lost();
    this.clients.delete(machine.id);
    this.ledger.leaveUnanswered(machine.id);
    this.custody.onLoss();
  }

  killStore(machine: StoreMachine): void {
    if (machine.store === undefined) return;
    this.custody.beforeLoss();
    machine.process.trace('killed');
    machine.node.kill(this.prng.below(2) === 0);
    machine.process.end();
    this.custody.onLoss();
  }

  /** The machine is gone, with the file that it may have left. The last one only restarts: without any store no world drains. */
  loseStore(machine: StoreMachine): void {
    if (this.stores.length - this.lostStores.size <= 1) {
      this.killStore(machine);
      return;
    }
    this.lostStores.add(machine.id);
    this.onFired('lose-store');
    machine.process.trace('is lost for good');
    if (machine.node.isAlive) this.killStore(machine);
    else if (machine.filed !== undefined) {
      this.custody.beforeLoss();
      machine.filed = undefined;
      this.custody.onLoss();
    }
  }

  /** SIGTERM: no new mail, the last changes out, then the end. */
  stopGateway(machine: GatewayMachine): void {
    const { core } = machine;
    if (core === undefined || machine.process.isFrozen) return;
    machine.process.trace('stops');
    this.service.onStop(core);
    core.drain();
    core.endOfTurn();
    this.scheduler.after(STOP_MS, () => { if (machine.core === core) this.killGateway(machine); });
  }

  /** SIGTERM: partitions move away as far as the time goes; then what is left goes to its file, if it writes one. */
  stopStore(machine: StoreMachine, timeoutMs: number, writesFile: boolean): void {
    const { store, node } = machine;
    if (store === undefined || machine.process.isFrozen) return;
    machine.process.trace('stops');
    node.leave(timeoutMs, writesFile, () => {
      this.custody.beforeLoss();
      machine.filed = writesFile ? filedOf(store) : undefined;
      machine.process.trace('has stopped');
      node.kill(true);
      machine.process.end();
      this.custody.onLoss();
    });
  }

  startStore(machine: StoreMachine): void {
    if (machine.node.isAlive || this.lostStores.has(machine.id)) return;
    machine.node.start();
    if (machine.node.loadedCopies > 0) this.onFired('spill');
    machine.filed = undefined;
  }

  thaw(machine: Machine<unknown>): void {
    machine.process.thaw();
    this.network.thaw(machine.id);
  }

  lastLog(lines = 30): string {
    return this.log.lines.slice(-lines).map((line) => `  ${line.atMs.toFixed(1)} ${line.event}: ${line.text} ${JSON.stringify(line.fields)}`).join('\n');
  }

  private newProcess(id: string): SimProcess {
    // Within the bound that leases assume: two clocks differ by at most 1% (docs/GUARANTEES.md "What is not promised").
    const rate = this.plan.kinds.has('clocks') ? 1 + (this.prng.below(2001) - 1000) / 210_000 : 1;
    const process = new SimProcess(id, { offsetMs: this.prng.below(1_000_000_000), rate }, this.scheduler);
    this.network.addHost(id, process);
    return process;
  }

  private newStore(id: string, secret: Uint8Array): StoreMachine {
    const { plan } = this;
    const process = this.newProcess(id);
    const node = new StoreNode(
      { id, gateways: plan.gateways.map((gateway) => ({ id: gateway, secret })), memoryLimitBytes: plan.storeMemoryBytes, windowBytes: plan.windowBytes, leaseMs: plan.leaseMs },
      { scheduler: process, network: this.network, log: this.log, wallBaseMs: process.wallBaseMs(WALL_BASE_MS) }, this.prng.fork(),
    );
    return new StoreMachine({ id, process, node });
  }

  private newGateway(id: string, gatewayId: string, index: number, secret: Uint8Array): GatewayMachine {
    const { plan } = this;
    const process = this.newProcess(id);
    const storeIds = [...plan.stores];
    const node: GatewayNode = new GatewayNode(
      {
        id: gatewayId, host: id, secret, storeIds, isUnproven: plan.olderMayLive || id !== gatewayId, windowBytes: plan.windowBytes, retryDelayMs: () => RETRY_MS, heartbeatMs: plan.heartbeatMs, failoverTimeoutMs: plan.failoverTimeoutMs,
        core: {
          partitions: plan.partitions, queuesMax: 5000, group: plan.isGroupLeftOut ? undefined : plan.gateways, rescue: true, orphans: { graceMs: 600_000, areOurs: false }, leaseMs: plan.leaseMs, commitTimeoutMs: plan.commitTimeoutMs, longestRetryMs: RETRY_MS, delayReports: { afterMs: 0, isUnasked: false }, firstWaitMs: plan.failoverTimeoutMs, segmentBytes: 16 * 1024,
          mirrors: { replicas: 2, minReplicas: plan.minReplicas, retryMs: 500, refillFrameBytes: plan.refillFrameBytes, frameTargetBytes: 64 * 1024, replaceAfterMs: plan.replaceAfterMs, rebalanceBytesPerSecond: 1_000_000, placement: { gatewayHost: undefined, places: new Map() }, ringBytes: plan.ringBytes },
          acceptance: { lifetimeMs: 3_600_000, bounceLifetimeMs: 3_600_000, nextHopShare: 1 },
          memory: { limitBytes: plan.gatewayMemoryBytes, acceptShare: plan.acceptShare, reserveShare: 0.97 },
          // As small beside the limit as in a gateway of the smallest one.
          reading: { blockEntries: plan.blockEntries, blockBytes: plan.gatewayMemoryBytes / 16, littleBytes: plan.littleBytes },
        },
      },
      {
        scheduler: process, network: this.network, log: this.log, wallBaseMs: process.wallBaseMs(WALL_BASE_MS + index * WALL_SKEW_MS), router: this.router,
        newCarrier: (core, isAlive) => new SimCarrier({ gateway: id, dotMs: 2, replyMs: 2, words: plan.kinds.has('hop-verbose') ? VERBOSE : undefined }, core, process, {
          answer: (queueName) => {
            const answer = this.answer(queueName);
            this.service.onTry(machine, queueName, answer);
            return answer;
          },
          onAttempt: (gateway, delivery) => { this.guarantees.onAttempt(gateway, core, delivery); },
          onDot: (gateway, _core, delivery, content, answers) => { this.guarantees.onDot(gateway, core, delivery, content, answers); },
          onSettled: (_gateway, _core, delivery) => { this.guarantees.onSettledAttempt(core, delivery); },
        }, isAlive),
        events: this.mailEvents(),
        register: this.register,
        onTurn: () => {
          this.guarantees.onStep();
          this.service.look(machine);
          this.adoptions.look();
          this.moves.look();
          this.orphans.look();
        },
        onFenced: () => { this.onFenced(id); },
      },
      this.prng.fork(),
    );
    const machine = new GatewayMachine({ id, process, node }, gatewayId, storeIds);
    return machine;
  }

  /** It stops at once, as its daemon does; whoever runs it starts it again later. */
  private onFenced(id: string): void {
    const machine = this.gateways.find((gateway) => gateway.id === id);
    if (machine !== undefined) this.scheduler.soon(() => { this.killGateway(machine); });
  }

  private onLog(line: LogLine): void {
    this.scheduler.trace(line.text);
    checkLog(line, this.plan.isHarmless);
    if (this.plan.kinds.has('replace') && line.text.endsWith('-> FILLING')) this.onFired('replace');
    if (GIVEN_AWAY.includes(line.text)) this.guarantees.onGivenAway(String(line.fields['partition']));
    if (line.text.startsWith('every copy of a partition is lost, or was given up: it begins empty')) this.onFired('begins-empty');
  }

  /** The newest that the register ever had: one that was rolled back since is told again by its holder. */
  records(): ReadonlyMap<string, PartitionRecord> {
    const present = this.present();
    if (present === this.newestOf) return this.newest;
    this.newestOf = present;
    for (const [name, record] of present) {
      const known = this.newest.get(name);
      if (known === undefined || record.epoch >= known.epoch) this.newest.set(name, record);
    }
    return this.newest;
  }

  /** What the register has now. */
  present(): Standing {
    const state = this.register.snapshot();
    if (state === this.standingIn) return this.standing;
    const standing: (readonly [string, PartitionRecord])[] = [];
    for (const gatewayId of this.plan.gateways) {
      for (let number = 0; number < this.plan.partitions; number++) {
        const name = partitionName(gatewayId, number);
        const record = this.register.recordOf(name);
        if (record !== undefined) standing.push([name, record]);
      }
    }
    this.standingIn = state;
    this.standing = standing;
    return standing;
  }

  private mailEvents(): MailEvents {
    return {
      outcome: (event, queue, envelope, recipient) => {
        if (event === 'expired') this.ledger.letters.get(envelope.messageId)?.copyIn(queue.route.queueName)?.failed.add(envelope.recipients[recipient]?.address ?? '');
      },
      ended: (queue, envelope, recipient) => {
        this.ledger.letters.get(envelope.messageId)?.copyIn(queue.route.queueName)?.ended.add(envelope.recipients[recipient]?.address ?? '');
      },
      reported: (_queue, envelope, reportId) => { this.ledger.addReport(envelope.messageId, reportId); },
      waits: () => {}, unreachable: () => {}, dotUnanswered: () => {}, committed: () => {}, refused: () => {},
    };
  }
}
