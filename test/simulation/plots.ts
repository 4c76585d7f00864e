/**
 * Stories: faults in an order that chance makes too seldom, each about one rule without which docs/model finds a
 * counterexample. A story says what happens to whom and when; which gateway and how long exactly comes from the seed,
 * and the faults of the seed go on beside it. No story knows what is right: the checkers judge.
 *
 *   story            is about
 *   frozen owner     fences, leases and claims at every member: an owner stands still while it is taken over
 *   stale copy       the newest epoch only: a member that was isolated is there when its gateway comes back
 *   spilled owner    the first lease period: the stores restart with what they held while an owner stands still
 *   drain cut        a lease counts in both sets only: the stores that stay can't be heard when the set was sent
 *   set in doubt     a sent change stands: its survivor falls silent, the mirror that it drops is there again
 *   refill live      refilled entries stand by position while mail comes in
 *   refusal lost     a refusal is told when the withdrawal is at every mirror: the gateway dies in between
 *   claim lost       a claim counts while its store runs: the store that granted it dies at once
 *   hand back        a death between release and claim
 *   both stores      no store is left while one is being refilled
 *   both lost        both mirrors die at once, and one of them, or both, never come back
 *   stranded         an operator's word is for good: the store with the newest set is cut off, and another has an old one
 */
import { SyncState } from '../../src/gateway/mirror/replica.js';
import { keyOfMirror, keyOfStored } from './custody.js';
import { queuesOf, onlyQueue } from '../scenario/inspect.js';
import type { PlotName } from './plan.js';
import type { Stage } from './stage.js';
import type { GatewayMachine } from './world.js';

/** A time to wait in ms, or what to wait for. */
export type Wait = number | (() => boolean);
export type Script = (stage: Stage) => Generator<Wait, void, void>;

const HELD_MS = 60_000;
const MESSAGES = 12;
/** A refill of a hundred small messages takes some hundred milliseconds. */
const REFILL_BYTES_PER_MS = 60;

export const PLOT_SCRIPTS: Readonly<Record<PlotName, Script>> = {
  'plot-frozen-owner': frozenOwner,
  'plot-stale-copy': staleCopy,
  'plot-spilled-owner': spilledOwner,
  'plot-drain-cut': drainCut,
  'plot-set-in-doubt': setInDoubt,
  'plot-refill-live': refillLive,
  'plot-refusal-lost': refusalLost,
  'plot-claim-lost': claimLost,
  'plot-hand-back': handBack,
  'plot-both-stores': bothStores,
  'plot-both-lost': bothLost,
  'plot-stranded': stranded,
};

/** A gateway with mail that nobody takes from it. */
function* anOwner(stage: Stage): Generator<Wait, GatewayMachine, void> {
  const { world, prng, extras } = stage;
  const owner = world.gateways[prng.below(world.plan.gateways.length)];
  if (owner === undefined) throw new Error('a world has gateways');
  extras.holdMail(HELD_MS);
  extras.send(owner, MESSAGES);
  yield () => stage.mirrorOf(owner) !== undefined;
  extras.send(owner, MESSAGES);
  yield 50;
  return owner;
}

/** Key of the queue that the story is about; '' when it is not there any more. */
function keyOf(stage: Stage, owner: GatewayMachine): string {
  const mirror = stage.mirrorOf(owner);
  return mirror === undefined ? '' : keyOfMirror(mirror);
}

function* frozenOwner(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const owner = yield* anOwner(stage);
  const key = keyOf(stage, owner);
  extras.send(owner, prng.below(4));
  owner.process.freeze();
  yield () => stage.isTaken(owner, key);
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
  const owner = yield* anOwner(stage);
  const mirror = stage.mirrorOf(owner);
  const away = mirror === undefined ? undefined : prng.pick(mirror.replicas);
  if (mirror === undefined || away === undefined) return;
  const stores = [stage.storeOf(away)];
  stage.hold(owner, stores, true);
  yield () => !away.member;
  for (let i = 0; i < 6; i++) {
    extras.send(owner, 4);
    yield 20;
  }
  world.killGateway(owner);
  stage.hold(owner, stores, false);
  yield prng.below(300);
  stage.start(owner);
  yield 3000;
  extras.holdMail(0);
}

function* spilledOwner(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const owner = yield* anOwner(stage);
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
  const owner = yield* anOwner(stage);
  const { core } = owner;
  const mirror = stage.mirrorOf(owner);
  const leaver = mirror === undefined ? undefined : prng.pick(mirror.replicas);
  if (core === undefined || mirror === undefined || leaver === undefined) return;
  core.mirrors.moves.drain(leaver.store.storeId);
  yield () => mirror.setChangeNumber !== 0 && leaver.inSync && !leaver.wanted;
  const staying = mirror.replicas.filter((replica) => replica.wanted).map((replica) => stage.storeOf(replica));
  stage.hold(owner, staying, true, 'answers');
  yield 5;
  stage.hold(owner, staying, true);
  yield world.plan.leaseMs + 2500 + prng.below(1000);
  extras.holdMail(0);
  yield 200;
  stage.hold(owner, staying, false);
  yield 1000;
  core.mirrors.moves.undrain(leaver.store.storeId);
}

function* setInDoubt(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const owner = yield* anOwner(stage);
  const mirror = stage.mirrorOf(owner);
  const dropped = mirror === undefined ? undefined : prng.pick(mirror.replicas);
  if (mirror === undefined || dropped === undefined) return;
  const others = world.gateways.filter((gateway) => gateway !== owner);
  const back = [stage.storeOf(dropped)];
  const survivors = mirror.replicas.filter((replica) => replica !== dropped).map((replica) => stage.storeOf(replica));
  for (const other of others) stage.hold(other, back, true);
  stage.hold(owner, back, true);
  yield () => mirror.setChangeNumber !== 0 && !dropped.wanted;
  stage.hold(owner, survivors, true, 'answers');
  yield 5;
  stage.hold(owner, survivors, true);
  stage.hold(owner, back, false);
  yield () => mirror.replicas.every((replica) => replica === dropped || replica.sync !== SyncState.SYNC);
  yield world.plan.leaseMs + 1500 + prng.below(2000);
  extras.holdMail(0);
  yield 500;
  for (const gateway of world.gateways) stage.hold(gateway, world.stores, false);
  yield 1000;
}

function* refillLive(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const owner = yield* anOwner(stage);
  const mirror = stage.mirrorOf(owner);
  const away = mirror === undefined ? undefined : prng.pick(mirror.replicas);
  if (mirror === undefined || away === undefined) return;
  const { name } = onlyQueue(mirror);
  for (let i = 0; i < 8; i++) {
    extras.send(owner, 8, name);
    yield 20;
  }
  const store = stage.storeOf(away);
  world.killStore(store);
  yield prng.below(1500);
  world.network.slow(owner.id, store.id, REFILL_BYTES_PER_MS);
  world.startStore(store);
  yield () => away.sync === SyncState.RESYNC;
  for (let i = 0; i < 60 && away.sync === SyncState.RESYNC; i++) {
    extras.send(owner, 1, name);
    yield 5;
  }
  world.network.slow(owner.id, store.id, 0);
  yield () => away.sync === SyncState.SYNC;
  extras.holdMail(0);
}

function* refusalLost(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const owner = yield* anOwner(stage);
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

function* claimLost(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const owner = yield* anOwner(stage);
  const key = keyOf(stage, owner);
  const isKilled = prng.below(2) === 0;
  if (isKilled) world.killGateway(owner);
  else owner.process.freeze();
  const claimedAt = (): (typeof world.stores)[number] | undefined => world.stores.find(({ store }) => store !== undefined && queuesOf(store).some((queue) => keyOfStored(queue) === key && queue.holder !== owner.gatewayId));
  yield () => claimedAt() !== undefined;
  const store = claimedAt();
  yield prng.below(3);
  if (store === undefined) return;
  world.killStore(store);
  yield prng.below(1000);
  world.startStore(store);
  if (!isKilled) world.thaw(owner);
  yield prng.below(3000);
  stage.start(owner);
  yield 2000;
  extras.holdMail(0);
}

function* handBack(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const owner = yield* anOwner(stage);
  const key = keyOf(stage, owner);
  world.killGateway(owner);
  yield () => stage.isTaken(owner, key);
  const rescuer = world.gateways.find((gateway) => gateway.core?.registry.partitions.some((mirror) => keyOfMirror(mirror) === key) === true);
  if (prng.below(2) === 0) extras.holdMail(0);
  stage.start(owner);
  yield () => world.stores.some(({ store }) => store !== undefined && queuesOf(store).some((queue) => keyOfStored(queue) === key && queue.holder === owner.gatewayId));
  yield prng.below(4);
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
  const owner = yield* anOwner(stage);
  const mirror = stage.mirrorOf(owner);
  const [first, second] = mirror?.replicas ?? [];
  if (first === undefined || second === undefined) return;
  const one = stage.storeOf(first);
  const other = stage.storeOf(second);
  for (const { id } of [one, other]) world.network.slow(owner.id, id, REFILL_BYTES_PER_MS);
  world.killStore(one);
  yield prng.below(1200);
  world.startStore(one);
  yield () => first.sync === SyncState.RESYNC;
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
  const owner = yield* anOwner(stage);
  const members = stage.mirrorOf(owner)?.replicas.filter(({ member }) => member).map((replica) => stage.storeOf(replica)) ?? [];
  const [one, other] = prng.below(2) === 0 ? members : members.reverse();
  if (one === undefined || other === undefined) return;
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

function* stranded(stage: Stage): Generator<Wait, void, void> {
  const { world, extras, prng } = stage;
  const owner = yield* anOwner(stage);
  const mirror = stage.mirrorOf(owner);
  const [one, other] = mirror?.replicas.filter(({ member }) => member) ?? [];
  if (mirror === undefined || one === undefined || other === undefined) return;
  const [away, last] = prng.below(2) === 0 ? [one, other] : [other, one];
  const alone = (): boolean => mirror.memberCount === 1 && mirror.setChangeNumber === 0 && last.inSync;
  stage.hold(owner, [stage.storeOf(away)], true);
  yield alone;
  for (let n = prng.below(4); n > 0; n--) {
    extras.send(owner, 3);
    yield () => mirror.inSyncCount === 2 && mirror.setChangeNumber === 0;
    const joined = mirror.replicas.filter((replica) => replica.member && replica !== last).map((replica) => stage.storeOf(replica));
    for (const store of joined) world.killStore(store);
    yield alone;
    for (const store of joined) world.startStore(store);
  }
  extras.send(owner, 3);
  yield 50;
  if (prng.below(4) > 0) world.killGateway(owner);
  extras.strand(stage.storeOf(last));
  stage.hold(owner, [stage.storeOf(away)], false);
  yield prng.below(3000);
  stage.start(owner);
  yield 1000;
  extras.holdMail(0);
}
