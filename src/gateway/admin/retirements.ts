/**
 * Gateways that operators retire: the order as it goes into the register (rules/retired/ID), and how far it
 * is. What follows of it is in ownership/holdings.ts: the retired one takes nothing new and hands on what it
 * has, its group delivers that, and the partitions end.
 */
import type { Order } from '../../admin-api/orders.js';
import type { RetireAnswer } from '../../admin-api/orders.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import { ownerOf } from '../../protocol/partition-record.js';
import { isName } from '../../register/keys.js';
import type { RetireControl } from './retire-api.js';
import type { Partition } from '../mirror/set/partition.js';
import type { KeptPartitions } from '../ownership/holdings.js';
import type { OwnershipRegister } from '../ownership/ownership-register.js';

export interface RetirementPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly register: OwnershipRegister;
  /** Held here. */
  partitions(): readonly Partition[];
  /** Of these, what is only kept for copies that were given up. */
  keptFor(gatewayId: string): KeptPartitions;
}

const SHOWN_CHARACTERS_MAX = 80;
/** What the id of a worker has behind that of its gateway. */
const WORKER = /^-\d+$/;

export class Retirements implements RetireControl {
  readonly #ports: RetirementPorts;
  /** Nobody else reaches this register: who retired its only gateway could not take it back. */
  readonly #isAlone: boolean;

  constructor(options: { readonly isAlone: boolean }, ports: RetirementPorts) {
    this.#isAlone = options.isAlone;
    this.#ports = ports;
  }

  stateOf(gatewayId: string): RetireAnswer {
    const { register } = this.#ports;
    const ofIt = this.#ports.partitions().filter(({ ownerId }) => ownerId === gatewayId);
    const kept = this.#ports.keptFor(gatewayId);
    return {
      told_by: register.self.gatewayId, gateway: gatewayId, retired: register.retired().has(gatewayId),
      partitions: this.#openOf(gatewayId), messages: ofIt.reduce((sum, { length }) => sum + length, 0),
      kept: kept.count, kept_for: kept.stores, living: [...register.living().keys()],
      register_away: register.away,
    };
  }

  refusalOf(gatewayId: string): string {
    const { register } = this.#ports;
    const shown = gatewayId.slice(0, SHOWN_CHARACTERS_MAX);
    if (!isName(gatewayId)) return `'${shown}' is no id of a gateway`;
    if (this.#isAlone) return 'with register: file there is no other gateway that could deliver for it';
    if (register.away !== '') return `the register, which is to keep it, does not answer: ${register.away}`;
    const known = new Set([...register.living().keys(), ...register.retired()]);
    for (const { partition } of register.partitions()) known.add(ownerOf(partition));
    if (known.has(gatewayId)) return '';
    const isWorker = (id: string): boolean =>
      id.startsWith(gatewayId) && WORKER.test(id.slice(gatewayId.length));
    const workers = [...known].filter(isWorker);
    if (workers.length > 0) return `${gatewayId} has workers: retire each of ${workers.sort().join(', ')}`;
    return `the register knows no gateway '${gatewayId}'; it knows ${[...known].sort().join(', ')}`;
  }

  retire(gatewayId: string, { reason, who }: Order, undo: boolean): Promise<string> {
    const { register, clock, log } = this.#ports;
    const text = undo
      ? 'an operator takes the retirement of a gateway back'
      : 'an operator retires a gateway';
    log.warn('retire', text, { gateway: gatewayId, reason, who });
    const rule = undo ? undefined : { reason, who, wallMs: clock.wallMs() };
    return new Promise((resolve) => { register.setRetired(gatewayId, rule, resolve); });
  }

  #openOf(gatewayId: string): number {
    let count = 0;
    for (const { partition, isEnded } of this.#ports.register.partitions()) {
      if (!isEnded && ownerOf(partition) === gatewayId) count += 1;
    }
    return count;
  }
}
