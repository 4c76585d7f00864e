/**
 * A gateway process of the scenario world: the real GatewayCore and StoreLinks on the scenario network,
 * joined as gateway-daemon.ts joins them. Killed, it loses its memory; started again, it draws a higher
 * incarnation from the register, and begins when the key of its process stands there.
 */
import { byDomainOf } from '../../src/gateway/inbound/recipients/report-ways.js';
import { toAscii } from '../../src/platform/node/idna.js';
import type { Prng } from '../../src/base/prng.js';
import { GatewayCore } from '../../src/gateway/daemon/core.js';
import type { CoreOptions } from '../../src/gateway/daemon/core-options.js';
import type { KeptRules, LocalRulesFile } from '../../src/gateway/orders/local-rules.js';
import { LINK_MARGINS } from '../../src/gateway/mirror/link/link-options.js';
import { groupTold } from '../../src/gateway/ownership/orphans.js';
import { StoreLink } from '../../src/gateway/mirror/link/store-link.js';
import type { MailEvents } from '../../src/gateway/queue/mail-events.js';
import type { ReportInput, ReportSigner } from '../../src/gateway/queue/reports/report-writer.js';
import type { DeliverySink, FindReportWay, Router } from '../../src/gateway/mail-types.js';
import { crc32 } from '../../src/platform/node/checksum.js';
import { MessagePacker } from '../../src/platform/node/packer.js';
import type { Clock } from '../../src/platform/ports.js';
import type { CrashNote } from '../../src/gateway/local/crash-notes.js';
import { reportContent } from './letters.js';
import { SeededSecrets } from './ports.js';
import { ProcessEnded } from './scheduler.js';
import type { NodePorts } from './store-node.js';
import type { WorldProcess, WorldRegister } from './world-register.js';

const TICK_MS = 25;
/** No reverse-path is made here. */
const NO_OWN_PATHS = { rewriting: undefined, returnAddresses: new Map<string, never>() };

export interface GatewayNodeOptions {
  readonly id: string;
  /** Machine it runs on, when that is not named after it. */
  readonly host?: string;
  readonly secret: Uint8Array;
  readonly storeIds: readonly string[];
  readonly windowBytes: number;
  readonly heartbeatMs?: number;
  readonly failoverTimeoutMs?: number;
  /** Nothing proves that the process before it is dead. */
  readonly isUnproven?: boolean;
  readonly core: Omit<CoreOptions, 'gatewayId' | 'incarnation'>;
  readonly retryDelayMs: (attempts: number) => number;
}

export interface GatewayNodePorts extends NodePorts {
  readonly router: Router;
  readonly register: WorldRegister;
  /** What delivers, for the life of one process (next-hop.ts: Carrier). */
  readonly newCarrier: (core: GatewayCore, isAlive: () => boolean) => DeliverySink;
  readonly events: MailEvents;
  /** Called after each turn: nothing of it has reached the network before. */
  readonly onTurn: () => void;
  /** Whether composing a report about this message ends the process. */
  readonly chokesOn?: (messageId: number) => boolean;
  /** The process has lost its identity to another one: it must end. */
  readonly onFenced?: () => void;
}

interface Life {
  alive: boolean;
  readonly incarnation: number;
  readonly register: WorldProcess;
  /** Once the key of the process stands. */
  core: GatewayCore | undefined;
  links: StoreLink[];
  /** Makes a link to a store that was unknown at the start. */
  learn: (storeId: string) => void;
}

class KeptRulesFile implements LocalRulesFile {
  kept: KeptRules = { given: new Map(), cancelled: new Map() };
  /** Its disk takes nothing. */
  isFull = false;

  read(): KeptRules {
    return this.kept;
  }

  write(kept: KeptRules): Promise<void> {
    if (this.isFull) return Promise.reject(new Error('ENOSPC'));
    this.kept = kept;
    return Promise.resolve();
  }
}

export class GatewayNode {
  fencedCount = 0;
  /** The crash notes of its machine. */
  crashNotes: readonly CrashNote[] = [];
  /** The file of its machine for rules that the register does not have. */
  readonly localRules = new KeptRulesFile();
  /** Stores that its next process does not know until learn(). */
  readonly unknown = new Set<string>();
  /** The register has told it which stores there are. */
  isStoreListRead = true;
  /** How far its machine's wall clock is ahead of the world's. */
  wallAheadMs = 0;
  /** Reports made so far, stored or not. */
  composedCount = 0;
  lastComposed: ReportInput | undefined;
  /** Signs a report: gives what is put in front of it, now or later. */
  signReport: ReportSigner['signReport'] = () => false;
  /** Where reports go. */
  wayTo: FindReportWay = (path) => byDomainOf(path, this.ports.router, toAscii);
  private readonly options: GatewayNodeOptions;
  private readonly ports: GatewayNodePorts;
  private readonly prng: Prng;
  private life: Life | undefined;
  /** What the lock file of its machine knows to be dead. */
  private readonly ended = new Set<number>();

  constructor(options: GatewayNodeOptions, ports: GatewayNodePorts, prng: Prng) {
    this.options = options;
    this.ports = ports;
    this.prng = prng;
  }

  get isAlive(): boolean {
    return this.life !== undefined;
  }

  /** The core of the running process; undefined while it is dead. */
  get core(): GatewayCore | undefined {
    return this.life?.core;
  }

  /** The register as the running process reaches it. */
  get register(): WorldProcess | undefined {
    return this.life?.register;
  }

  /** As the wall clock of its machine shows it. */
  wallMs(): number {
    return this.ports.wallBaseMs + Math.floor(this.ports.scheduler.nowMs) + this.wallAheadMs;
  }

  link(storeId: string): StoreLink | undefined {
    return this.life?.links.find((link) => link.storeId === storeId);
  }

  start(): void {
    const { options, ports } = this;
    const { incarnation, ordinal } = ports.register.draw(options.id);
    const life: Life = {
      alive: true, incarnation, core: undefined, links: [], learn: () => undefined,
      register: ports.register.start({
        gatewayId: options.id, incarnation, ordinal, host: options.host ?? options.id, group: groupTold(options.id, options.core), time: ports.scheduler,
        isProvenDead: (other) => options.isUnproven !== true && this.ended.has(other),
        onHeld: () => { if (life.alive) this.begin(life, ordinal); },
        onTaken: () => { this.onFenced(life); },
      }),
    };
    this.life = life;
  }

  private begin(life: Life, ordinal: number): void {
    const { scheduler } = this.ports;
    const { options } = this;
    const { incarnation } = life;
    const jitter = this.prng.fork();
    const clock = { nowMs: () => scheduler.nowMs, wallMs: () => this.wallMs() };
    let turnAsked = false;
    const core: GatewayCore = new GatewayCore(
      { ...options.core, gatewayId: options.id, incarnation },
      {
        clock, crc32, toAscii, localRules: this.localRules, packer: new MessagePacker(), log: this.ports.log, router: this.ports.router, reportWay: (path, onKnown) => this.wayTo(path, onKnown), ownership: life.register.bridge, random: () => jitter.next(), events: this.ports.events, counters: { epochs: 0, recoveredMessages: 0, poisonMessages: 0 },
        requestEndOfTurn: () => {
          if (turnAsked) return;
          turnAsked = true;
          scheduler.soon(() => {
            turnAsked = false;
            if (!life.alive) return;
            core.endOfTurn();
            this.ports.onTurn();
          });
        },
        retryDelayMs: options.retryDelayMs,
        ownPaths: NO_OWN_PATHS,
        drawOrdinal: () => ordinal,
        areStoresKnown: () => this.isStoreListRead,
        heldElsewhereBytes: () => 0,
        reportSigner: { signReport: (content, done) => this.signReport(content, (fields) => { if (life.alive) done(fields); }) },
        compose: (input) => {
          this.composedCount += 1;
          this.lastComposed = input;
          if (this.ports.chokesOn?.(input.envelope.messageId) === true) this.crash(core, incarnation);
          return { content: reportContent(input.envelope.messageId, input.kind, input.recipients.map((index) => input.envelope.recipients[index]?.address ?? '')), flags: 0 };
        },
      },
    );
    core.crashes.add(this.crashNotes);
    core.setDeliverySink(this.ports.newCarrier(core, () => life.alive));
    const newLink = this.linkMaker(core, clock, incarnation, life);
    const links = options.storeIds.filter((id) => !this.unknown.has(id)).map(newLink);
    life.core = core;
    life.links = links;
    life.learn = (storeId) => {
      const link = newLink(storeId);
      links.push(link);
      link.start();
    };
    for (const link of links) link.start();
    const tick = (): void => {
      if (!life.alive) return;
      for (const link of links) link.tick(scheduler.nowMs);
      core.tick(scheduler.nowMs);
      scheduler.after(TICK_MS, tick);
    };
    tick();
  }

  /** The register names a store that the running process did not know. */
  learn(storeId: string): void {
    this.unknown.delete(storeId);
    this.life?.learn(storeId);
  }

  /** `lingers`: what it wrote still arrives. */
  kill(lingers = false): void {
    if (this.life === undefined) return;
    this.life.alive = false;
    this.life.register.kill();
    this.ended.add(this.life.incarnation);
    if (this.life.core !== undefined) this.crashNotes = this.life.core.crashes.all;
    this.life = undefined;
    this.ports.network.dropProcess(this.options.host ?? this.options.id, lingers);
  }

  /** A fatal error: what was in hand is noted on the machine, and nothing more is sent. */
  private crash(core: GatewayCore, incarnation: number): never {
    this.kill();
    this.crashNotes = [...core.crashes.all, ...core.inHand.notesOf(incarnation)];
    throw new ProcessEnded();
  }

  private onFenced(life: { readonly alive: boolean }): void {
    if (!life.alive) return;
    this.fencedCount += 1;
    this.ports.onFenced?.();
  }

  private linkMaker(core: GatewayCore, clock: Clock, incarnation: number, life: { readonly alive: boolean }): (storeId: string) => StoreLink {
    const { options, ports } = this;
    const secrets = new SeededSecrets(this.prng.fork());
    const incarnationNonce = secrets.randomBytes(8);
    const jitter = this.prng.fork();
    return (storeId) => {
      const link = new StoreLink(
        {
          storeId, gatewayId: options.id, incarnation, incarnationNonce,
          pathA: { host: storeId, port: 1 }, pathB: { host: storeId, port: 2 },
          ...LINK_MARGINS, heartbeatMs: options.heartbeatMs ?? 250, failoverTimeoutMs: options.failoverTimeoutMs ?? 2000, windowBytes: options.windowBytes, frameBytesMax: 64 * 1024 * 1024,
        },
        { clock, frameWallMs: () => core.frame.wallMs(), transport: ports.network.transportOf(options.host ?? options.id), sharedSecrets: () => [options.secret], crc32, packer: new MessagePacker(), secrets, random: () => jitter.next(), log: ports.log },
        {
          onUp: (up) => { core.onLinkUp(up); },
          onSwitched: (switched) => { core.onLinkSwitched(switched); },
          onStopping: (from) => { core.leaving.onStopping(from); },
          onDown: (down) => { core.onLinkDown(down); },
          onFenceNotices: (from, bootId, notices) => { core.onFenceNotices(from, bootId, notices); },
          onAcknowledged: (from, handle, number) => { core.mirrors.onAcknowledged(from, handle, number); },
          onAckedThrough: (from, sequence) => { core.onLinkAckedThrough(from, sequence); },
          onRefusal: (from, refusal) => { core.onLinkRefusal(from, refusal); },
          onReply: (from, reply) => { core.onLinkReply(from, reply); },
          onWritable: (from) => { core.mirrors.onWritable(from); },
          onFenced: () => { this.onFenced(life); },
        },
      );
      core.addStore(link);
      return link;
    };
  }
}
