/**
 * Connections of strangers take turns when what they send costs too much: all that is read from them in one
 * turn of the loop takes TURN_MS, and one read more of each that was ready then. A client that sends lines
 * of a few octets, or TLS records of one, would else be read up to 32 times before the loop goes on, and so
 * would all the others: seconds, without a lease or a heartbeat between them. What brings no data at all, as
 * KeyUpdates of TLS, is not seen here (docs/decisions/0054).
 *
 *   read ─ TURN_MS are not over ─► read on
 *        └ over ─► rests, in line ─ next turn: as many of the line as take TURN_MS by what they took ─┐
 *     ▲                                                                                               │
 *     └───────────────────────────────────────────────────────────────────────────────────────────────┘
 *
 * Time runs from the first read of a turn, whatever else the loop does then: a turn is as long for those who
 * wait, whoever has made it so.
 */
const TURN_MS = 20;

export interface ReadingConnection {
  /** It rests no more. */
  goOn(): void;
}

interface Resting {
  readonly connection: ReadingConnection;
  /** Of its reads since it began to rest: of TLS, records that were there already still come. */
  tookMs: number;
}

export class ReadTurns {
  readonly #nowMs: () => number;
  /** Of the first read of this turn. */
  #beganMs = 0;
  #lastMs = 0;
  #isInTurn = false;
  readonly #resting = new Map<ReadingConnection, Resting>();
  readonly #endTurn = (): void => {
    this.#isInTurn = false;
    let plannedMs = 0;
    for (const { connection, tookMs } of this.#resting.values()) {
      if (plannedMs > 0 && plannedMs + tookMs > TURN_MS) break;
      plannedMs += tookMs;
      this.#resting.delete(connection);
      connection.goOn();
    }
    if (this.#resting.size > 0) setImmediate(this.#goOnLater);
  };
  /** Those who went on are read before this, and have a turn of their own then. */
  readonly #goOnLater = (): void => { if (!this.#isInTurn) this.#endTurn(); };

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** A read of it is over. True: the connection is not to be read before goOn(). */
  onRead(connection: ReadingConnection): boolean {
    const nowMs = this.#nowMs();
    if (!this.#isInTurn) {
      this.#isInTurn = true;
      this.#beganMs = nowMs;
      this.#lastMs = nowMs;
      setImmediate(this.#endTurn);
    }
    const tookMs = nowMs - this.#lastMs;
    this.#lastMs = nowMs;
    const resting = this.#resting.get(connection);
    if (resting !== undefined) resting.tookMs += tookMs;
    else if (nowMs - this.#beganMs < TURN_MS) return false;
    else this.#resting.set(connection, { connection, tookMs });
    return true;
  }

  /** It is over, or another's: goOn() is not called. */
  forget(connection: ReadingConnection): void {
    this.#resting.delete(connection);
  }
}
