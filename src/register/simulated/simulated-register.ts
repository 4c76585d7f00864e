/**
 * The register of the simulator: the map of the file register, reached over lines that fail in
 * every way a real one may. All chance comes from a seeded generator and all time from a timeline,
 * so a seed replays exactly.
 *
 *   request ── lost ──► never arrives, and its connection ends some time later
 *           └─ late ──► applied any time later, also after its sender died or gave the connection up
 *   reply   ── the same
 *   away    refusing: connections end at once, what arrives is dropped
 *           silent: nothing is answered, nothing ends; what arrives is applied when it is back
 *   state   rolled back to an older one, or lost: as when a backup is restored
 *
 * While it is away no session runs out, and when it is back each has its whole time again, as etcd does it.
 */
import type { Prng } from '../../base/prng.js';
import type { Clock } from '../../platform/ports.js';
import { MapHost } from '../core/map-host.js';
import { RegisterMap } from '../core/register-map.js';

/** The scheduler, as far as it is used here. */
export interface Timeline extends Clock {
  after(delayMs: number, run: () => void): void;
  soon(run: () => void): void;
}

/** Shares are of one: 0 never, 1 always. May be changed at any time. */
export interface RegisterFaults {
  /** Of one way, at random up to this. */
  delayMs: number;
  lostRequests: number;
  lostReplies: number;
  /** Requests that arrive late by up to `lateMs`; replies the same. */
  lateRequests: number;
  lateReplies: number;
  lateMs: number;
}

const NO_FAULTS: Readonly<RegisterFaults> = {
  delayMs: 2,
  lostRequests: 0,
  lostReplies: 0,
  lateRequests: 0,
  lateReplies: 0,
  lateMs: 0,
};

const TICK_MS = 100;
/** A connection that lost something ends within this. */
const LOST_MS = 4_000;
/** What is longer on its way comes late, too. */
const LATE_MS = 500;
/** Older states to go back to. */
const STATES_MAX = 64;

export class SimulatedRegister {
  readonly faults: RegisterFaults = { ...NO_FAULTS };
  readonly host: MapHost;
  /** Makes a state with what came late the present one; a checker looks before and after. */
  onLate: (make: () => void) => void = (make) => {
    make();
  };
  #hasLate = false;
  readonly #time: Timeline;
  readonly #prng: Prng;
  /** Called when it goes away refusing, or its state is replaced: connections end. */
  readonly #cutters = new Set<(why: string) => void>();
  #away: '' | 'refusing' | 'silent' = '';
  /** What arrived while it was silent. */
  #arrived: (() => void)[] = [];
  /** States that were kept; a state never changes, it is replaced. */
  readonly #states: RegisterMap[] = [];

  constructor(time: Timeline, prng: Prng) {
    this.#time = time;
    this.#prng = prng;
    this.host = new MapHost(new RegisterMap(), {
      clock: time,
      soon: (run) => {
        time.soon(run);
      },
      keep: (map, done) => {
        this.#states.push(map);
        if (this.#states.length > STATES_MAX) this.#states.shift();
        const hasLate = this.#hasLate;
        this.#hasLate = false;
        const make = (): void => {
          done({ kind: 'kept' });
        };
        time.soon(() => {
          if (hasLate) this.onLate(make);
          else make();
        });
      },
    });
    const tick = (): void => {
      if (this.#away === '') this.host.tick(time.nowMs());
      time.after(TICK_MS, tick);
    };
    time.after(TICK_MS, tick);
  }

  get away(): '' | 'refusing' | 'silent' {
    return this.#away;
  }

  goAway(how: 'refusing' | 'silent'): void {
    this.#away = how;
    if (how === 'refusing') this.#cut('connection refused');
  }

  comeBack(): void {
    if (this.#away === '') return;
    this.#away = '';
    this.host.extendSessions();
    this.#hasLate = true;
    for (const run of this.#arrived.splice(0)) run();
  }

  /**
   * Back by up to `steps` kept states; `steps` past all of them: lost, empty. Between
   * two steps of the timeline.
   */
  rollBack(steps: number): void {
    const older = steps >= this.#states.length ? undefined : this.#states[this.#states.length - 1 - steps];
    this.#states.length = older === undefined ? 0 : this.#states.length - steps;
    this.restore(older ?? new RegisterMap());
  }

  /** What stands now, to be restored later; it never changes. */
  snapshot(): RegisterMap {
    return this.host.map;
  }

  /** As when a backup is restored: connections end. Between two steps of the timeline. */
  restore(snapshot: RegisterMap): void {
    this.host.replace(snapshot);
    this.#cut('connection reset');
  }

  /** A request on its way here: `run` after a delay, late, or never; then `onLost`. */
  request(run: () => void, onLost: () => void): void {
    const { faults } = this;
    this.#carry(faults.lostRequests, faults.lateRequests, () => {
      if (this.#away === '') run();
      else if (this.#away === 'silent') this.#arrived.push(run);
      else onLost();
    }, onLost);
  }

  /** The same for what goes back. */
  reply(run: () => void, onLost: () => void): void {
    this.#carry(this.faults.lostReplies, this.faults.lateReplies, run, onLost);
  }

  #carry(lost: number, late: number, run: () => void, onLost: () => void): void {
    const { delayMs, lateMs } = this.faults;
    const isLost = this.#prng.next() < lost;
    const isLate = this.#prng.next() < late;
    const onItsWayMs = this.#prng.next() * (isLost ? LOST_MS : isLate ? lateMs : delayMs);
    const isNoted = isLate || onItsWayMs > LATE_MS;
    this.#time.after(onItsWayMs, isLost ? onLost : isNoted ? () => {
      this.#hasLate = true;
      run();
    } : run);
  }

  /** Changes come in order: each at least so long after now. */
  changeDelayMs(): number {
    return this.#prng.next() * this.faults.delayMs;
  }

  onCut(cutter: (why: string) => void): { close(): void; } {
    this.#cutters.add(cutter);
    return {
      close: () => {
        this.#cutters.delete(cutter);
      },
    };
  }

  #cut(why: string): void {
    for (const cutter of [...this.#cutters]) cutter(why);
  }
}
