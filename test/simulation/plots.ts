/**
 * Stories: faults in an order that chance makes too seldom, each about one rule without which docs/model finds a
 * counterexample. A story says what happens to whom and when; which gateway and how long exactly comes from the seed,
 * and the faults of the seed go on beside it. No story knows what is right: the checkers judge.
 *
 *   story            is about
 *   frozen owner     fences and leases (6, 9, 10): an owner stands still while it is taken over
 *   stale copy       a member that left (5, 11): it is there when its gateway comes back
 *   spilled owner    leases of a boot that goes on by file (10): the stores restart while an owner stands still
 *   drain cut        leases in both sets (6): the stores that stay can't be heard when the change was sent
 *   change in doubt  outcome unknown (2, 3): the register answers late, and the dropped member is there again
 *   refill live      refilled entries stand by position while mail comes in
 *   refusal lost     a refusal is told when the withdrawal is at every copy: the gateway dies in between
 *   taker dies       a takeover begins anew (9): the taker dies at some step of it
 *   hand back        a death between release and the change of the record (13)
 *   both stores      no copy is left while one is being filled (7, 8)
 *   both lost        both copies die at once, and one of them, or both, never come back
 *   pair             a gateway and one store die at one instant
 *   source dies      a PARTIAL holder loses what it reads (14)
 *   small taker      what is larger than its holder's memory is doubled again (14), while no next hop takes it
 *   given up         copies that were given up come back to a partition that went on (16)
 *   ended without    a partition ends while a store with a copy is away; that is given up, and is back (16)
 *   short memory     who takes over has no memory for the bodies: they come and go as deliveries need them
 */
import type { PlotName } from './plan.js';
import type { Stage } from './stage.js';
import type { GatewayMachine, StoreMachine } from './world.js';
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import { HolderState } from '../../src/recovery/ownership/holder.js';

/** A time to wait in ms, or what to wait for. */
export type Wait = number | (() => boolean);
export type Script = (stage: Stage) => Generator<Wait, void, void>;

const HELD_MS = 60_000;
const MESSAGES = 12;
/** An owner is up for so long before its partitions go home. */
const HAND_BACK_MS = 10_000;
/** In the middle of what a gateway may fill with new mail. */
const FULL_SHARE = 0.4;
/** Full, near enough: nobody has room for what another one leaves. */
const FULL = 0.75;
const LARGE_BYTES = 8000;
const FILLING_MAX = 150;
/** A refill of a hundred small messages takes some hundred milliseconds. */
const REFILL_BYTES_PER_MS = 60;
/** As much as a gateway takes in, of what another has no room for all bodies (plan.ts). */
const MANY_MESSAGES = 80;
const MANY_BYTES_MAX = 16_000;

export const PLOT_SCRIPTS: Readonly<Record<PlotName, Script>> = {
  'plot-frozen-owner': frozenOwner,
  'plot-stale-copy': staleCopy,
  'plot-spilled-owner': spilledOwner,
  'plot-drain-cut': drainCut,
  'plot-change-in-doubt': changeInDoubt,
  'plot-refill-live': refillLive,
  'plot-refusal-lost': refusalLost,
  'plot-taker-dies': takerDies,
  'plot-hand-back': handBack,
  'plot-both-stores': bothStores,
  'plot-both-lost': bothLost,
  'plot-pair': pair,
  'plot-source-dies': sourceDies,
  'plot-small-taker': smallTaker,
  'plot-short-memory': shortMemory,
  'plot-given-up': givenUp,
  'plot-ended-without': endedWithout,
};

interface Loaded {
  readonly owner: GatewayMachine;
  readonly partition: Partition;
  /** Two members. */
  readonly one: StoreMachine;
  readonly other: StoreMachine;
}

/** A gateway with mail that nobody takes from it, in a partition with two members. */
function* loaded(stage: Stage): Generator<Wait, Loaded, void> {
  const { world, prng, extras } = stage;
  const owner = world.gateways[prng.below(world.plan.gateways.length)];
  if (owner === undefined) throw new Error('a world has gateways');
  extras.holdMail(HELD_MS);
  for (;;) {
    extras.send(owner, MESSAGES);
    yield 50;
    const partition = stage.partitionOf(owner);
    const stores = partition === undefined ? [] : stage.storesOf(partition);
    const [one, other] = prng.below(2) === 0 ? stores : stores.reverse();
    if (partition !== undefined && one !== undefined && other !== undefined) return { owner, partition, one, other };
  }
}

function* frozenOwner(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const { owner, partition } = yield* loaded(stage);
  extras.send(owner, prng.below(4));
  owner.process.freeze();
  yield () => stage.takerOf(owner, partition.name) !== undefined;
  yield prng.below(600);
  if (prng.below(2) === 0) extras.holdMail(0);
  world.thaw(owner);
  for (let i = 0; i < 10; i++) {
    extras.send(owner, 2);
    yield 5;
  }
  extras.holdMail(0);
  yield 1000;
}

function* staleCopy(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const { owner, partition, one } = yield* loaded(stage);
  stage.hold(owner, [one], true);
  yield () => !partition.rows.some((row) => row.storeId === one.id && row.isRecorded);
  for (let i = 0; i < 6; i++) {
    extras.send(owner, 4);
    yield 20;
  }
  world.killGateway(owner);
  stage.hold(owner, [one], false);
  yield prng.below(300);
  stage.start(owner);
  yield 3000;
  extras.holdMail(0);
}

function* spilledOwner(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const { owner } = yield* loaded(stage);
  owner.process.freeze();
  for (const store of world.stores) world.stopStore(store, 0, true);
  yield prng.below(200);
  for (const store of world.stores) world.startStore(store);
  yield world.plan.leaseMs * 2 + prng.below(3000);
  world.thaw(owner);
  yield 500;
  extras.holdMail(0);
}

function* drainCut(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const { owner, partition, one, other } = yield* loaded(stage);
  const { core } = owner;
  if (core === undefined) return;
  core.leaving.drain(one.id);
  yield () => partition.rows.some((row) => row.storeId === one.id && row.mayLeave);
  stage.hold(owner, [other], true, 'answers');
  yield 5;
  stage.hold(owner, [other], true);
  yield world.plan.leaseMs + 2500 + prng.below(1000);
  extras.holdMail(0);
  yield 200;
  stage.hold(owner, [other], false);
  yield 1000;
  core.leaving.undrain(one.id);
}

function* changeInDoubt(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const { owner, partition, one, other } = yield* loaded(stage);
  world.register.delay(1, 6000);
  stage.hold(owner, [one], true);
  yield () => partition.set?.records.isSettled === false;
  if (prng.below(2) === 0) world.killGateway(owner);
  else stage.hold(owner, [other], true);
  yield prng.below(3000);
  stage.hold(owner, [one], false);
  yield world.plan.leaseMs + prng.below(3000);
  world.register.delay(0, 0);
  stage.hold(owner, [other], false);
  stage.start(owner);
  extras.holdMail(0);
  yield 2000;
}

function* refillLive(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const { owner, partition, one } = yield* loaded(stage);
  for (let i = 0; i < 8; i++) {
    extras.send(owner, 8);
    yield 20;
  }
  const isFilled = (): boolean => partition.rows.some((row) => row.storeId === one.id && row.shown === 'RESYNC');
  world.killStore(one);
  yield prng.below(1500);
  world.network.slow(owner.id, one.id, REFILL_BYTES_PER_MS);
  world.startStore(one);
  yield isFilled;
  for (let i = 0; i < 60 && isFilled(); i++) {
    extras.send(owner, 1);
    yield 5;
  }
  world.network.slow(owner.id, one.id, 0);
  yield () => partition.rows.some((row) => row.storeId === one.id && row.shown === 'SYNC');
  extras.holdMail(0);
}

function* refusalLost(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const { owner } = yield* loaded(stage);
  extras.send(owner, 4);
  yield prng.below(4);
  // The withdrawals may not leave, nor acknowledgements arrive.
  stage.hold(owner, world.stores, true, prng.below(4) === 0 ? 'both' : 'answers');
  extras.send(owner, 4);
  yield 5;
  stage.hold(owner, world.stores, true);
  yield world.plan.commitTimeoutMs + 40;
  world.killGateway(owner);
  stage.hold(owner, world.stores, false);
  yield prng.below(500);
  stage.start(owner);
  yield 2000;
  extras.holdMail(0);
}

function* takerDies(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const { owner, partition } = yield* loaded(stage);
  const isKilled = prng.below(2) === 0;
  if (isKilled) world.killGateway(owner);
  else owner.process.freeze();
  const taker = (): GatewayMachine | undefined => world.gateways.find(({ id, gatewayId }) => id !== owner.id && world.records().get(partition.name)?.holder.gatewayId === gatewayId);
  yield () => taker() !== undefined;
  yield prng.below(30);
  const victim = taker();
  if (victim === undefined) return;
  world.killGateway(victim);
  yield prng.below(1000);
  if (!isKilled) world.thaw(owner);
  yield prng.below(3000);
  stage.start(owner);
  stage.start(victim);
  yield 2000;
  extras.holdMail(0);
}

function* handBack(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const { owner, partition } = yield* loaded(stage);
  world.killGateway(owner);
  yield () => stage.takerOf(owner, partition.name) !== undefined;
  const rescuer = stage.takerOf(owner, partition.name);
  if (prng.below(3) === 0) extras.holdMail(0);
  stage.start(owner);
  // Attempts are in flight when its time comes.
  yield HAND_BACK_MS - prng.below(2000);
  extras.holdMail(0);
  const isStopping = (): boolean => rescuer?.core?.registry.partitions.some(({ name, holder }) =>
    name === partition.name && holder.state === HolderState.HANDING_BACK) === true;
  if (prng.below(2) === 0) {
    yield isStopping;
    yield prng.below(10);
    // Before anything is given away, maybe.
    if (prng.below(2) === 0) world.killGateway(owner);
    yield prng.below(3000);
    stage.start(owner);
  }
  yield () => world.records().get(partition.name)?.holder.gatewayId === owner.gatewayId;
  yield prng.below(30);
  const victim = prng.below(2) === 0 ? owner : rescuer;
  if (victim === undefined) return;
  world.killGateway(victim);
  yield prng.below(3000);
  stage.start(victim);
  yield 1000;
  extras.holdMail(0);
}

function* bothStores(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const { owner, partition, one, other } = yield* loaded(stage);
  for (const { id } of [one, other]) world.network.slow(owner.id, id, REFILL_BYTES_PER_MS);
  world.killStore(one);
  yield prng.below(1200);
  world.startStore(one);
  yield () => partition.rows.some((row) => row.storeId === one.id && row.shown === 'RESYNC');
  yield prng.below(6);
  world.killStore(other);
  yield prng.below(1200);
  world.startStore(other);
  yield 2000;
  for (const { id } of [one, other]) world.network.slow(owner.id, id, 0);
  extras.holdMail(0);
}

function* bothLost(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const { owner, one, other } = yield* loaded(stage);
  world.loseStore(one);
  if (prng.below(2) === 0) yield prng.below(3);
  if (prng.below(3) === 0) world.loseStore(other);
  else world.killStore(other);
  yield prng.pick([prng.below(1000), 2 * world.plan.leaseMs]);
  world.startStore(other);
  if (prng.below(4) === 0) {
    world.killGateway(owner);
    yield prng.below(2000);
    stage.start(owner);
  }
  yield 2000;
  extras.holdMail(0);
}

function* pair(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const { owner, one, other } = yield* loaded(stage);
  extras.send(owner, prng.below(6));
  yield prng.below(4);
  world.killGateway(owner);
  world.killStore(one);
  yield prng.pick([0, prng.below(2000), 2 * world.plan.leaseMs]);
  if (prng.below(2) === 0) stage.start(owner);
  else world.startStore(one);
  yield prng.pick([prng.below(200), prng.below(4000)]);
  stage.start(owner);
  world.startStore(one);
  // Once it is doubled again the other one may go.
  yield () => [...world.records().values()].every((record) => record.members.length >= 2 || record.holder.gatewayId !== owner.gatewayId);
  if (prng.below(2) === 0) world.killStore(other);
  yield 500;
  world.startStore(other);
  extras.holdMail(0);
}

function* sourceDies(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const { owner, partition, one, other } = yield* loaded(stage);
  for (let i = 0; i < 6; i++) {
    extras.send(owner, 8);
    yield 20;
  }
  world.killGateway(owner);
  for (const gateway of world.gateways) for (const { id } of [one, other]) world.network.slow(gateway.id, id, REFILL_BYTES_PER_MS);
  if (prng.below(2) === 0) stage.start(owner);
  const reader = (): GatewayMachine | undefined => world.gateways.find(({ core }) => core?.registry.partitions.some(({ name, isRecovering }) => name === partition.name && isRecovering) === true);
  yield () => reader() !== undefined;
  yield prng.below(40);
  const source = reader()?.core?.registry.partitions.find(({ name }) => name === partition.name)?.set?.source?.storeId;
  const victim = world.stores.find(({ id }) => id === source);
  if (victim !== undefined) world.killStore(victim);
  yield prng.below(3000);
  for (const gateway of world.gateways) for (const { id } of [one, other]) world.network.slow(gateway.id, id, 0);
  if (victim !== undefined) world.startStore(victim);
  stage.start(owner);
  yield 1000;
  extras.holdMail(0);
}

function* smallTaker(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const { owner, partition } = yield* loaded(stage);
  for (let i = 0; i < MANY_MESSAGES; i++) {
    extras.send(owner, 1, undefined, 1 + prng.below(MANY_BYTES_MAX));
    yield 2;
  }
  world.killGateway(owner);
  const taker = (): GatewayMachine | undefined => stage.takerOf(owner, partition.name);
  const taken = (): Partition | undefined => taker()?.core?.registry.partitions.find(({ name, isPartial, isRecovering }) => name === partition.name && isPartial && !isRecovering);
  yield () => (taken()?.inSyncCount ?? 0) >= 2;
  const source = taken()?.set?.source?.storeId;
  const lost = world.stores.find(({ id }) => id !== source && taken()?.rows.some((row) => row.isRecorded && row.storeId === id));
  const read = world.stores.find(({ id }) => id === source);
  if (lost === undefined || read === undefined) return;
  world.killStore(lost);
  yield () => taken()?.memberCount === 1;
  yield prng.below(1000);
  world.startStore(lost);
  // While it is PARTIAL still.
  yield () => taken()?.memberCount === 2 && taken()?.inSyncCount === 2;
  world.killStore(read);
  const victim = prng.below(2) === 0 ? taker() : undefined;
  if (victim !== undefined) world.killGateway(victim);
  yield prng.below(3000);
  world.startStore(read);
  for (const gateway of [owner, victim]) if (gateway !== undefined) stage.start(gateway);
  yield 1000;
  extras.holdMail(0);
}

function* shortMemory(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const share = world.plan.storyRecipients > 1 ? FULL : FULL_SHARE;
  const { owner, partition } = yield* loaded(stage);
  for (const gateway of world.gateways) {
    for (let i = 0; i < FILLING_MAX && isRoomy(gateway, share); i++) {
      extras.send(gateway, 4, undefined, LARGE_BYTES);
      yield 5;
    }
  }
  world.killGateway(owner);
  yield () => stage.takerOf(owner, partition.name) !== undefined;
  // Attempts fail, are deferred, refused and go well by turns; each kind makes and takes room.
  for (let i = 0; i < 6; i++) {
    yield prng.below(1000);
    extras.holdMail(prng.below(3) === 0 ? prng.below(2000) : 0);
    for (const gateway of world.gateways) extras.send(gateway, prng.below(4), undefined, prng.below(LARGE_BYTES));
  }
  stage.start(owner);
  yield 2000;
  extras.holdMail(0);
}

function isRoomy({ core }: GatewayMachine, share: number): boolean {
  return core !== undefined && core.memory.usedBytes < core.memory.limitBytes * share;
}

function* givenUp(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const { owner, partition: { name }, one, other } = yield* loaded(stage);
  world.killGateway(owner);
  for (const gateway of world.gateways) stage.hold(gateway, [one, other], true);
  const isAway = ({ core }: GatewayMachine): boolean =>
    core?.holdings.waiting().some(({ partition, waitsFor }) => partition === name && waitsFor === 'copies away') === true;
  yield () => world.gateways.some(isAway);
  const taker = world.gateways.find(isAway);
  if (taker?.core === undefined) return;
  const { core } = taker;
  for (const given of core.holdings.giveUp([one.id, other.id])) world.custody.noteGivenUp(given, core);
  yield () => taker.core?.registry.partitions.some((held) => held.name === name) === true;
  if (prng.below(2) === 0) extras.holdMail(0);
  // It takes longer to be doubled than to be read.
  for (const { id } of world.stores) if (id !== one.id && id !== other.id) world.network.slow(taker.id, id, 1);
  for (const gateway of world.gateways) stage.hold(gateway, [one], false);
  yield prng.below(600);
  if (prng.below(2) === 0) world.killGateway(taker);
  for (const gateway of world.gateways) stage.hold(gateway, [other], false);
  yield prng.below(2000);
  for (const { id } of world.stores) world.network.slow(taker.id, id, 0);
  stage.start(taker);
  stage.start(owner);
  yield 2000;
  extras.holdMail(0);
}

function* endedWithout(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const { owner, one } = yield* loaded(stage);
  const taker = world.gateways.find(({ gatewayId }) => gatewayId !== owner.gatewayId);
  for (const gateway of world.gateways) stage.hold(gateway, [one], true);
  // It may leave before, or count until the end.
  yield prng.below(8000);
  taker?.node.register?.bridge.setRetired(owner.gatewayId, { who: 'ann', reason: 'host given back', wallMs: 1 }, () => {});
  world.killGateway(owner);
  extras.holdMail(0);
  const isOnlyAway = (): boolean => taker?.core?.holdings.untoldEnds().some(({ stores }) => stores.includes(one.id)) === true;
  for (let i = 0; i < 4 && !isOnlyAway(); i++) yield isOnlyAway;
  const answers: number[] = [];
  taker?.core?.holdings.giveUpEnded([one.id], { who: 'ann', reason: 'burnt' }, ({ ended }) => { answers.push(ended.length); });
  yield () => answers.length > 0;
  if (answers.every((count) => count === 0)) return;
  extras.fire('give-up-ended');
  yield prng.below(3000);
  // Nobody else remembers, or all do.
  if (prng.below(2) === 0) {
    for (const store of world.stores) if (store !== one) world.killStore(store);
    for (const store of world.stores) world.startStore(store);
  }
  if (taker !== undefined && prng.below(2) === 0) world.killGateway(taker);
  // In whatever order: its owner, wanted again, may be there before the store.
  if (prng.below(2) === 0) for (const gateway of world.gateways) stage.hold(gateway, [one], false);
  for (const { node } of world.gateways) node.register?.bridge.setRetired(owner.gatewayId, undefined, () => {});
  stage.start(owner);
  yield prng.below(6000);
  for (const gateway of world.gateways) stage.hold(gateway, [one], false);
  if (taker !== undefined) stage.start(taker);
  yield 2000;
}
