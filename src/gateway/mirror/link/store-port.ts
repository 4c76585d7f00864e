/**
 * One store as the mirrors see it: what link/store-link.ts offers, and no more. Requests made in a turn
 * are written together when the turn ends.
 */
import type { LeaseView } from '../../../recovery/ownership/link-lease.js';

export interface StorePort {
  readonly storeId: string;
  /** Boot id of the last handshake, '' before the first. A new one means: its memory is gone. */
  readonly bootId: string;
  readonly isUp: boolean;
  /** Of the protocol, as the last handshake chose it; 0 before the first. */
  readonly version: number;
  /** Bytes of STORE that this store still takes from us. */
  readonly credit: number;
  /** False while the byte window is full or the link is down. */
  readonly canSend: boolean;
  readonly unackedBytes: number;
  /** Until when this process may deliver by what the store grants it, reckoned with care; in which boot. */
  readonly lease: LeaseView;
  /**
   * Queues a request for the end of the turn; returns its sequence number. While the path is changed (up, but
   * can't send) it goes nowhere, and 0 is returned: after onSwitched it must be made again.
   */
  request(type: number, control: Uint8Array, bodies: readonly Uint8Array[], creditBytes: number): number;
  flush(): void;
  /** Mail that costs so much was refused for want of credit: the store may have some kept for who asks. */
  askCredit(creditBytes: number): void;
}
