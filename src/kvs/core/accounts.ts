/**
 * What a store knows of each gateway, whatever connections it has: its newest incarnation, its grant, and
 * which of its connections is the active one.
 *
 *   admit(incarnation, nonce)   higher: all connections of lower ones are fenced, their grant is forgotten
 *                               equal, same nonce: another connection of the same process
 *                               equal, other nonce, or lower: FENCED
 *   activate(connection, generation)
 *                               the highest generation of the newest incarnation is active, others stand by
 *
 * Its lease is that of its process (ownership/process-leases.ts). docs/PROTOCOL.md "Handshake".
 */

import { ToldClock } from '../../base/told-clock.js';
import type { HolderId } from '../../protocol/partition-record.js';
import { holderKey } from '../../protocol/partition-record.js';
import type { Admission, Grantee } from './admission.js';

/** A connection as its account sees it (store-connection.ts). */
export interface AccountConnection {
  readonly incarnation: number;
  /** A higher incarnation, or the same with another nonce, has come: answer CLOSE (FENCED) and end. */
  fence(text: string): void;
  /** A connection of a higher generation took over: take heartbeats only. */
  demote(): void;
}

export class GatewayAccount implements Grantee {
  readonly id: string;
  /** Salt of its shared bodies. */
  readonly number: number;
  incarnation = 0;
  nonce: Uint8Array = new Uint8Array(0);
  generation = 0;
  active: AccountConnection | undefined;
  readonly connections = new Set<AccountConnection>();
  /** Its newest process, as fences and leases name it. */
  holder: HolderId;
  process: string;
  /** Wall clock of the newest process. Copies that it wrote keep it when the next process comes. */
  clock = new ToldClock();
  granted = 0;
  heldBytes = 0;

  constructor(id: string, number: number) {
    this.id = id;
    this.number = number;
    this.holder = { gatewayId: id, incarnation: 0 };
    this.process = holderKey(this.holder);
  }

  /** Takes note of an incarnation that proved itself; false: it is fenced. */
  admit(incarnation: number, nonce: Uint8Array, admission: Admission): boolean {
    if (incarnation < this.incarnation) return false;
    if (incarnation === this.incarnation) return sameBytes(nonce, this.nonce);
    this.#become(incarnation, Uint8Array.from(nonce));
    this.generation = 0;
    this.active = undefined;
    this.clock = new ToldClock();
    for (const connection of this.connections) {
      if (connection.incarnation < incarnation) {
        connection.fence('a newer incarnation of this gateway has come');
      }
    }
    admission.forget(this);
    return true;
  }

  /** What a spill file tells: older processes stay fenced, the same one is let in. */
  restore(told: { readonly incarnation: number; readonly nonce: Uint8Array }): void {
    this.#become(told.incarnation, told.nonce);
  }

  /** Makes the connection the active one unless a higher generation is; answers whether it is active now. */
  activate(connection: AccountConnection, generation: number): boolean {
    if (generation < this.generation) return false;
    if (generation === this.generation && this.active !== undefined) return false;
    this.generation = generation;
    const before = this.active;
    this.active = connection;
    if (before !== undefined) before.demote();
    return true;
  }

  forgetConnection(connection: AccountConnection): void {
    this.connections.delete(connection);
    if (this.active === connection) this.active = undefined;
  }

  #become(incarnation: number, nonce: Uint8Array): void {
    this.incarnation = incarnation;
    this.nonce = nonce;
    this.holder = { gatewayId: this.id, incarnation };
    this.process = holderKey(this.holder);
  }
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
