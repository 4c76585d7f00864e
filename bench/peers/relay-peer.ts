/**
 * A mail server beside ours: what the bench needs of it.
 */
export interface RelayPeer {
  readonly port: number;
  /** False: it refuses an envelope that follows a final dot at once. */
  readonly nextBehindDot?: boolean;
  /** CPU time of all its processes so far. */
  usedMicros(): number;
  stop(): Promise<void>;
}

/** How a peer is set up; one line of the report. */
export interface PeerSetup {
  readonly peer: string;
  /** What to install when it is not here. */
  readonly needs: string;
  isInstalled(): boolean;
  start(nextHopPort: number): Promise<RelayPeer>;
}
