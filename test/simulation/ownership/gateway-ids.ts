/**
 * Ids that come and go: the file of the gateway that takes mail changes how many workers there are (gw-1, or gw-1-1 and
 * gw-1-2), or its id, between one life of its machine and the next. What the old ids own is nobody's then: it must be
 * shown and delivered, and end; an id that is back begins anew, empty.
 *
 *   change                ─► its processes are killed, now and then all but one of another machine, which goes on
 *                            by the older file ─► those of the new ids start a moment later
 *   nobody can tell who   ─► a person retires ids that are in no file any more, and takes that back before one
 *   is gone (plan.ts)        of them starts again
 */
import { Prng } from '../../../src/base/prng.js';
import { workerIds } from '../../../src/config/workers.js';
import type { IdsPlan } from './plan.js';
import type { GroupOptions } from './sim-holdings.js';
import type { Gateway, World } from './world.js';

const PERSON = 'person';
const LOOK_MS = 1000;
const FIRST = 'g1';

export class GatewayIds {
  readonly #world: World;
  readonly #plan: IdsPlan;
  readonly #random: Prng;
  #name = FIRST;
  #workers: number;
  readonly #names = [FIRST];
  #changedMs = 0;

  constructor(world: World, plan: IdsPlan) {
    this.#world = world;
    this.#plan = plan;
    this.#random = new Prng(world.plan.seed * 86_028_121 + 29);
    this.#workers = plan.workers;
    this.#configure();
    this.#personLater();
  }

  get ids(): readonly string[] {
    return workerIds(this.#name, this.#workers);
  }

  /** What the file of whoever starts now says. */
  get groupOptions(): GroupOptions {
    const { layout, graceMs } = this.#plan;
    switch (layout) {
      // One worker serves the register's file itself, several ask their upper process.
      case 'file': return this.#workers === 1 ? { group: [], graceMs: 0, areOurs: true } : { group: this.ids, graceMs, areOurs: true };
      case 'group': return { group: this.#configured(), graceMs, areOurs: false };
      case 'all': return { group: undefined, graceMs, areOurs: false };
    }
  }

  /** Gateways to be started; none when a copy would be lost with those that run. */
  change(kind: 'workers' | 'rename'): readonly Gateway[] {
    const world = this.#world;
    const running = world.gateways.filter(({ gatewayId }) => this.ids.includes(gatewayId));
    const processes = running.flatMap((gateway) => gateway.processes);
    // One on another machine is not stopped by who changes this one's file.
    const left = this.#plan.layout !== 'file' && this.#random.below(4) === 0 ? processes.slice(0, 1) : [];
    const ended = processes.filter((process) => !left.includes(process));
    if (!world.mayLose(ended.map(({ key }) => key))) return [];
    for (const process of ended) world.killProcess(process);
    if (left.length > 0) world.count('an older id goes on');
    for (const gateway of running) gateway.isConfigured = false;
    if (kind === 'rename') this.#rename();
    else {
      this.#workers = 3 - this.#workers;
      world.count(this.#workers === 2 ? 'workers 1 to 2' : 'workers 2 to 1');
    }
    this.#changedMs = world.events.nowMs;
    return this.#configure();
  }

  #rename(): void {
    const isBack = this.#names.length > 1 && this.#random.below(2) === 0;
    const name = isBack ? this.#random.pick(this.#names.filter((each) => each !== this.#name)) : `g${String(10 + this.#names.length)}`;
    if (!isBack) this.#names.push(name);
    this.#name = name;
    this.#world.count(isBack ? 'renamed back' : 'renamed');
  }

  #configure(): readonly Gateway[] {
    const world = this.#world;
    world.trace(`IDS ${this.ids.join(' ')}`);
    const gateways = this.ids.map((id) => world.gatewayOf(id));
    for (const gateway of gateways) {
      gateway.isConfigured = true;
      world.addPartitions(gateway.gatewayId);
    }
    return gateways;
  }

  #configured(): readonly string[] {
    return this.#world.gateways.filter(({ isConfigured }) => isConfigured).map(({ gatewayId }) => gatewayId);
  }

  // ── a person ────────────────────────────────────────────────────────────────────────────────────

  /** May this id start? Not while the register still says that it is retired. */
  mayStart({ gatewayId }: Gateway): boolean {
    return !this.#world.register.retired.has(gatewayId);
  }

  #personLater(): void {
    const world = this.#world;
    world.events.after(LOOK_MS, () => {
      const isDue = this.#plan.layout === 'all' && world.events.nowMs - this.#changedMs > 3 * LOOK_MS;
      for (const { gatewayId, isConfigured } of world.gateways) {
        const isRetired = world.register.retired.has(gatewayId);
        if (isConfigured === !isRetired || (!isConfigured && !isDue)) continue;
        world.register.request(PERSON, () => {
          if (this.#configured().includes(gatewayId) === isConfigured) world.register.setRetired(gatewayId, !isConfigured);
        }, () => undefined);
      }
      this.#personLater();
    });
  }
}
