/**
 * What a client session (smtp-session.ts) is given: its plain options, the ports it works through,
 * and who hears of it. Types only.
 */
import type { Connection, ConnectionHandlers, SecuredFacts, TlsTerms } from '../../../platform/transport.js';
import type { PasswordFound } from '../../../platform/ports.js';
import type { Delivery, NextHopAuth, NextHopTls, RecipientResult } from '../../mail-types.js';
import type { Capabilities } from '../../../smtp/capabilities.js';
import type { StateTimeouts } from './session-states.js';
import type { SessionTap } from '../../../smtp/session-tap.js';
import type { WriteBuffer } from '../../../smtp/write-buffer.js';

export interface SessionOptions {
  readonly protocol: 'smtp' | 'lmtp';
  /** What we call ourselves in EHLO. */
  readonly heloName: string;
  /** The next hop as results and logs name it. */
  readonly relay: string;
  readonly timeouts: StateTimeouts;
  /** A next hop that takes less of a large content is given up; 0: none is. */
  readonly contentBytesPerSecondMin: number;
  /** Undefined: in clear. */
  readonly tls: NextHopTls | undefined;
  /** Why TLS did not come up there lately, where the session is in clear for that alone. */
  readonly lostTls: string | undefined;
  /** Undefined: as nobody. */
  readonly auth: NextHopAuth | undefined;
}

export interface SessionPorts {
  readonly buffer: WriteBuffer;
  /** As DeliverySource.copyContent. */
  copyContent(delivery: Delivery, target: Uint8Array, at: number, from: number, bytes: number): void;
  /** Asked right before the final dot: whether this process still owns the queue (G5). */
  mayDot(delivery: Delivery): boolean;
  /** As MailTransport.secure. */
  secure(clear: Connection, terms: TlsTerms, handlers: ConnectionHandlers): Connection;
  /** Told what sessions say while somebody follows them. */
  readonly tap: SessionTap;
  /** As Passwords.read. */
  password(file: string): PasswordFound;
}

/** A session as its events show it. */
export interface SessionView {
  readonly capabilities: Capabilities;
  /** Undefined in clear. */
  readonly tls: SecuredFacts | undefined;
}

export interface SessionEvents {
  /** The peer is known to take an envelope behind a dot as what it is; else it is being tried. */
  readonly bearsFollowers: boolean;
  /** Ready for begin(): after the handshake and after each transaction that nothing follows. */
  onIdle(session: SessionView): void;
  /** A small content goes out with its dot: the delivery whose envelope may stand behind it in that write. */
  onDot(session: SessionView): Delivery | undefined;
  /** The transaction has ended; results in the order of delivery.pending. What was given at its dot runs. */
  onSettled(
    session: SessionView, delivery: Delivery, results: readonly RecipientResult[], dotUnanswered: boolean,
  ): void;
  /**
   * The peer closed a kept connection, or did not answer the dot in front: nothing came of the delivery.
   * `isOdd`: it answered as one that does not bear an envelope behind a dot.
   */
  onStale(session: SessionView, delivery: Delivery, isOdd: boolean): void;
  /** It is given up, as the peer takes its content too slowly; onSettled() follows. */
  onSlow(): void;
  /** In clear because TLS did not come up, it is refused as by somebody who insists on TLS. */
  onTlsWanted(session: SessionView): void;
  /** Our right to the queue was gone before the dot, and nobody was refused: nothing came of it. */
  onNoRight(session: SessionView, delivery: Delivery, why: RecipientResult): void;
  /**
   * Exactly once, last. `why`: the session was never ready, the peer took nothing of its first mail, or wants
   * TLS.
   */
  onClosed(session: SessionView, why: RecipientResult | undefined): void;
}
