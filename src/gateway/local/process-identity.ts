/**
 * Who this gateway process is: the first thing that begins and the last that ends. Until it is known no port
 * opens and no store is asked.
 *
 *   FOLDER ── state_dir is ours alone ──► REGISTER ── it answers ──► INCARNATION ── drawn, noted in FOLDER
 *     ──► KEY ── gateways/ID stands, with a session ──► READY ── end() ──► key deleted, all else given free
 *          └── another process of this id has it: the start fails, and says where that one runs
 *
 * A register that is away is waited for, however long; the log says so again and again.
 */
import { SystemClock, startTicker } from '../../platform/node/clock.js';
import { reachableAddress } from '../../platform/node/own-host.js';
import type { Crc32, EventLog } from '../../platform/ports.js';
import { IncarnationDraw } from '../../register/incarnation-draw.js';
import { BrokenRule } from '../../base/json-shape.js';
import { retiredKey } from '../../register/keys.js';
import type { ReadResult } from '../../register/port.js';
import { decodeRetired } from '../../register/records.js';
import type { IncarnationRecord } from '../../register/records.js';
import { openRegister } from '../../register/running/open-register.js';
import type { OpenedRegister, RegisterChoice } from '../../register/running/open-register.js';
import { soon } from '../../register/running/running-client.js';
import { Ordinals } from './ordinals.js';
import { groupTold } from '../ownership/orphans.js';
import { RegisterBridge } from '../ownership/register-bridge.js';
import { ProcessLock } from './process-lock.js';

const TICK_MS = 25;
/** Its own, and one in hand (ordinals.ts). */
const ORDINALS_OF_A_START = 2;
/** A register that starts with us is no news yet. */
const SAY_AFTER_MS = 2_000;
const SAY_AGAIN_MS = 30_000;
const LOOK_AGAIN_MS = 500;

export interface ProcessIdentityOptions {
  readonly id: string;
  readonly host: string;
  readonly group: readonly string[] | undefined;
  readonly rescue: boolean;
  readonly stateDir: string | undefined;
  readonly register: RegisterChoice;
  readonly admin: { readonly host: string; readonly port: number };
  /** The highest incarnation that stores told of: a register that was lost or rolled back may not know it. */
  readonly told: number;
}

export interface ProcessIdentityPorts {
  readonly log: EventLog;
  readonly crc32: Crc32;
  /** The register has been away for a while; `why`: at any later time. Once. */
  onWaiting?(why: () => string): void;
  /** Once it was ready: another process has the key of this gateway. */
  onTaken(why: string): void;
}

const NO_IDS = 'no further message ids can be had when those of this process are used up';
const UNKEPT =
  'the incarnation can not be noted in state_dir: the process after this one waits for its leases';

/** Another process of this gateway has its key, and goes on. */
export class AnotherProcessLives extends Error {
  override readonly name = 'AnotherProcessLives';
}

export class ProcessIdentity {
  readonly incarnation: IncarnationRecord;
  readonly bridge: RegisterBridge;
  readonly ordinals: Ordinals;
  readonly opened: OpenedRegister;
  readonly #lock: ProcessLock | undefined;

  private constructor(
    parts: Pick<ProcessIdentity, 'incarnation' | 'bridge' | 'opened'>, lock: ProcessLock | undefined,
    log: EventLog,
  ) {
    this.incarnation = parts.incarnation;
    this.bridge = parts.bridge;
    this.opened = parts.opened;
    this.#lock = lock;
    this.ordinals = new Ordinals(parts.incarnation.ordinal, {
      register: parts.opened.register,
      onFailed: (why) => {
        log.error('register', NO_IDS, { why });
      },
    });
  }

  /** Rejects with a text that says what to do. */
  static async begin(options: ProcessIdentityOptions, ports: ProcessIdentityPorts): Promise<ProcessIdentity> {
    const { stateDir } = options;
    const lock = stateDir === undefined ? undefined : await ProcessLock.take({ stateDir });
    let opened: OpenedRegister | undefined;
    try {
      opened = await openRegister(options.register, ports);
      const stopSaying = sayWhileAway(opened, ports);
      try {
        await refuseRetired(options.id, opened);
        const incarnation = await draw(options, opened, lock);
        const unkept = lock?.record(incarnation) ?? '';
        if (unkept !== '') {
          ports.log.error('start', UNKEPT, { why: unkept });
        }
        const bridge = await takeKey(options, incarnation, opened, lock, ports);
        return new ProcessIdentity({ incarnation, bridge, opened }, lock, ports.log);
      } finally {
        stopSaying();
      }
    } catch (error) {
      await opened?.close();
      lock?.release(true);
      throw error;
    }
  }

  tick(nowMs: number): void {
    this.bridge.tick(nowMs);
    this.ordinals.tick(nowMs);
  }

  /** Nothing of the process goes on: the next one need not wait. */
  async end(): Promise<void> {
    await closed(this.bridge);
    await this.opened.close();
    this.#lock?.release(true);
  }
}

/** An operator has taken the gateway out: its partitions are others' to deliver. */
async function refuseRetired(id: string, { register }: OpenedRegister): Promise<void> {
  for (;;) {
    const key = retiredKey(id);
    const result = await new Promise<ReadResult>((resolve) => { register.read({ key }, resolve); });
    if (result.kind === 'entries') {
      const [entry] = result.entries;
      if (entry === undefined) return;
      const rule = decodeRetired(entry.value);
      const how = rule instanceof BrokenRule
        ? ''
        : ` by ${rule.who} on ${new Date(rule.wallMs).toISOString()} (${rule.reason})`;
      throw new Error(
        `gateway ${id} was retired${how}: give this one another id, or take that back at another `
        + `gateway of the group: twinpost gateway retire ${id} --undo --reason TEXT --from ADDRESS`,
      );
    }
    await new Promise((resolve) => { setTimeout(resolve, LOOK_AGAIN_MS); });
  }
}

/** With the incarnation of this process: above every one that register, folder and stores know. */
async function draw(
  { id, told }: ProcessIdentityOptions, { register }: OpenedRegister, lock: ProcessLock | undefined,
): Promise<IncarnationRecord> {
  const { incarnation = 0, ordinal = 0 } = lock?.last ?? {};
  const floor = {
    incarnation: Math.max(told, incarnation), ordinal: Math.max(told * ORDINALS_OF_A_START, ordinal),
  };
  return new Promise((resolve, reject) => {
    const drawing = new IncarnationDraw({ gatewayId: id, floor, isBehind: told > incarnation }, {
      register,
      onDrawn: (record) => {
        ticker.stop();
        resolve(record);
      },
      onFailed: (why) => {
        ticker.stop();
        reject(new Error(why));
      },
    });
    const ticker = startTicker(new SystemClock(), TICK_MS, (nowMs) => { drawing.tick(nowMs); });
  });
}

async function takeKey(
  options: ProcessIdentityOptions, incarnation: IncarnationRecord,
  { register }: OpenedRegister, lock: ProcessLock | undefined, { log, onTaken }: ProcessIdentityPorts,
): Promise<RegisterBridge> {
  const clock = new SystemClock();
  const { id, host, admin } = options;
  const address = admin.port === 0 ? undefined : reachableAddress(admin.host, admin.port);
  const addresses = address === undefined ? [] : [address];
  const record = { ...incarnation, host, addresses, group: groupTold(id, options) };
  let isReady = false;
  return new Promise((resolve, reject) => {
    const bridge = new RegisterBridge({ gatewayId: id, record }, {
      register, clock, soon, log,
      isProvenDead: (other) => lock?.proves(other) === true,
      onHeld: () => {
        isReady = true;
        ticker.stop();
        resolve(bridge);
      },
      onTaken: (why) => {
        if (isReady) return onTaken(why);
        ticker.stop();
        void closed(bridge).then(() => { reject(new AnotherProcessLives(why)); });
      },
    });
    const ticker = startTicker(clock, TICK_MS, (nowMs) => { bridge.tick(nowMs); });
  });
}

function closed(bridge: RegisterBridge): Promise<void> {
  return new Promise((resolve) => { bridge.close(resolve); });
}

function sayWhileAway({ register }: OpenedRegister, { log, onWaiting }: ProcessIdentityPorts): () => void {
  let isTold = false;
  const look = (): void => {
    const { isUp, why } = register.state;
    if (!isUp) {
      log.warn('start', 'the register is away: the gateway waits for it, with its port closed', { why });
      if (!isTold) onWaiting?.(() => register.state.why);
      isTold = true;
    }
    timer = setTimeout(look, SAY_AGAIN_MS);
  };
  let timer = setTimeout(look, SAY_AFTER_MS);
  return () => { clearTimeout(timer); };
}
