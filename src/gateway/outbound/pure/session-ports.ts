/**
 * What a client session (smtp-session.ts) is given: its plain options and the ports it works through. Types only.
 */
import type { Delivery } from '../../queue/types.js';
import type { StateTimeouts } from './session-states.js';
import type { WriteBuffer } from './write-buffer.js';

export interface SessionOptions {
  readonly protocol: 'smtp' | 'lmtp';
  /** What we call ourselves in EHLO. */
  readonly heloName: string;
  /** The next hop as results and logs name it. */
  readonly relay: string;
  readonly timeouts: StateTimeouts;
}

export interface SessionPorts {
  readonly buffer: WriteBuffer;
  /** As DeliverySource.copyContent. */
  copyContent(delivery: Delivery, target: Uint8Array, at: number): void;
  /** Asked right before the final dot: whether this process still owns the queue (G5). */
  mayDot(delivery: Delivery): boolean;
}
