/**
 * What befalls a real etcd in the middle of traffic, and what becomes of rate and mail.
 *
 *   outage     killed under full load, and started again after so many seconds. No proxies: rate and p99 are
 *              measured for as long before as during.
 *   restored   its data of before a store, and then a gateway, died is put back; a gateway dies afterwards
 *   emptied    its data is removed; a gateway dies afterwards
 *
 * Nobody gives an order. After an outage nothing may have been taken over; after the others all partitions
 * are held and whole again, and a rescue works as before.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';

import type { SendReport } from '../../src/load/options.js';
import { monotonicMicros } from '../../src/load/send-log.js';
import { HOME_MS, pause, type Daemon } from '../process/cluster.js';
import type { Verdict } from '../process/witnesses.js';
import { EtcdField, LEASE_MS } from './etcd-field.js';
import type { ChaosEvent } from './options.js';
import { DELIVERED_MS } from './rounds.js';

export const REGISTER_FAULTS = ['outage', 'restored', 'emptied'] as const;
export type RegisterFault = (typeof REGISTER_FAULTS)[number];

const PARTITIONS = 16;
/** Messages a second at each gateway, where it is not full load. */
const RATE = 150;
const QUEUED_MAX = 2 * RATE;
/** Past the bound it is waited on, so that the report can say how late everything was. */
const PATIENCE_MS = 120_000;

export interface RegisterRunOptions {
  readonly seed: number;
  readonly fault: RegisterFault;
  /** Of an outage, and of what is measured before it; of traffic around the other faults. */
  readonly seconds: number;
  readonly onEvent?: (event: ChaosEvent) => void;
}

/** Of all clients together. */
interface Load {
  readonly perSecond: number;
  /** The worst of the clients. */
  readonly p99Ms: number;
}

export interface RegisterReport {
  readonly seed: number;
  readonly fault: RegisterFault;
  readonly before: Load;
  readonly during: Load;
  /** Partitions taken over while etcd was away. */
  readonly takeovers: number;
  readonly verdict: Verdict;
  readonly latestMs: number;
  readonly endedAlone: readonly string[];
  readonly timeline: readonly ChaosEvent[];
}

export function isRegisterRunGood({ verdict, takeovers, endedAlone, latestMs }: RegisterReport): boolean {
  return verdict.ok && takeovers === 0 && endedAlone.length === 0 && latestMs <= DELIVERED_MS;
}

export async function runRegisterFault(options: RegisterRunOptions): Promise<RegisterReport> {
  const timeline: ChaosEvent[] = [];
  const startMs = performance.now();
  const say = (what: string): void => {
    const event = { second: Math.round((performance.now() - startMs) / 100) / 10, what };
    timeline.push(event);
    options.onEvent?.(event);
  };
  const { seed, fault } = options;
  const isJudged = fault !== 'outage';
  const field = await EtcdField.start({
    seed, partitions: PARTITIONS, minReplicas: 1, etcdNodes: 1, isJudged, say,
  });
  try {
    const run = new RegisterRun(options, field, say);
    await field.isWhole();
    const { before, during } = fault === 'outage' ? await run.outage() : await run.rollback(fault);
    const { verdict, latestMs } = await field.verdict(run.eventsUs);
    const { endedAlone } = field;
    return { seed, fault, before, during, takeovers: run.takeovers, verdict, latestMs, endedAlone, timeline };
  } finally {
    await field.close();
  }
}

class RegisterRun {
  readonly eventsUs: number[] = [];
  takeovers = 0;
  readonly #options: RegisterRunOptions;
  readonly #field: EtcdField;
  readonly #say: (what: string) => void;

  constructor(options: RegisterRunOptions, field: EtcdField, say: (what: string) => void) {
    this.#options = options;
    this.#field = field;
    this.#say = say;
  }

  async outage(): Promise<{ readonly before: Load; readonly during: Load }> {
    const ms = 1000 * this.#options.seconds;
    await this.#field.loadFor('warm', 5_000);
    const before = loadOf(await this.#field.loadFor('before', ms));
    this.#say(`before: ${before.perSecond.toFixed(0)} a second`);
    await this.#killEtcd();
    const taken = await this.#takenOver();
    const during = loadOf(await this.#field.loadFor('during', ms));
    this.takeovers = await this.#takenOver() - taken;
    this.#say(`etcd away: ${during.perSecond.toFixed(0)} a second`);
    this.#startEtcd();
    await this.#field.loadFor('after', 5_000);
    await this.#field.isWhole();
    return { before, during };
  }

  async rollback(fault: RegisterFault): Promise<{ readonly before: Load; readonly during: Load }> {
    const { cluster, etcd } = this.#field;
    const [node] = etcd.nodes;
    const [gateway, other] = cluster.gateways;
    const [store] = cluster.stores;
    assert.ok(node !== undefined && gateway !== undefined && other !== undefined && store !== undefined);
    const steadyMs = 1000 * this.#options.seconds / 2;
    const before = loadOf(await this.#field.loadFor('before', steadyMs, RATE));
    await this.#killEtcd();
    etcd.backup(node, 'make');
    this.#startEtcd();
    await this.#field.isWhole();
    this.#field.startClients(RATE);
    // Records move on: members leave and join, a gateway's partitions are taken over and handed back.
    await this.#dieAndCome(store, 2_000);
    await this.#field.isWhole();
    await this.#dieAndCome(gateway.gateway, LEASE_MS + 5_000, 0);
    await this.#field.isWhole();
    await this.#killEtcd();
    if (fault === 'restored') etcd.backup(node, 'restore');
    else rmSync(node.dataDir, { recursive: true, force: true });
    const taken = await this.#takenOver();
    this.#startEtcd();
    this.#say(`etcd is ${fault}`);
    const during = loadOf(await this.#field.loadFor('during', steadyMs, RATE));
    await this.#field.hasCaughtUp(cluster.gateways, QUEUED_MAX, PATIENCE_MS);
    await this.#field.isWhole();
    this.takeovers = await this.#takenOver() - taken;
    this.#say('all partitions are held by their gateways and whole');
    await this.#dieAndCome(other.gateway, LEASE_MS + 5_000, 1);
    await this.#field.isWhole();
    this.#field.supervise(new Set());
    return { before, during };
  }

  /** `gateway`: its index, if it is one. */
  async #dieAndCome(daemon: Daemon, awayMs: number, gateway?: number): Promise<void> {
    if (gateway !== undefined) this.#field.judge.noteGatewayKill(gateway);
    await daemon.kill();
    this.#event();
    this.#say(`${daemon.name} killed, for ${(awayMs / 1000).toFixed(1)} s`);
    await pause(awayMs);
    daemon.start();
    await daemon.ready(HOME_MS);
    this.#event();
    this.#say(`${daemon.name} is back`);
  }

  async #killEtcd(): Promise<void> {
    for (const node of this.#field.etcd.nodes) await node.kill();
    this.#event();
    this.#say('etcd killed');
  }

  #startEtcd(): void {
    for (const node of this.#field.etcd.nodes) this.#field.etcd.startNode(node);
    this.#event();
    this.#say('etcd started');
  }

  /** By all gateways so far. */
  async #takenOver(): Promise<number> {
    const answers = await Promise.all(this.#field.cluster.gateways.map(({ status }) => status()));
    return answers.reduce((sum, { takeovers }) => sum + takeovers, 0);
  }

  #event(): void {
    this.eventsUs.push(monotonicMicros());
  }
}

function loadOf(reports: readonly SendReport[]): Load {
  return {
    perSecond: reports.reduce((sum, { acceptedPerSecond }) => sum + acceptedPerSecond, 0),
    p99Ms: Math.max(...reports.map(({ responseMs }) => responseMs.p99)),
  };
}
