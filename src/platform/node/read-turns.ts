/**
 * Connections of strangers take turns when what they send costs too much: all that is read from them in one
 * turn of the loop takes TURN_MS, and one read more of each that was ready then. A client that sends lines
 * of a few octets, or TLS records of one, would else be read up to 32 times before the loop goes on, and so
 * would all the others: seconds, without a lease or a heartbeat between them. Who holds what was read until
 * it has time (tls-wire.ts) asks before; others are asked to stop behind a read.
 *
 *   read ─ TURN_MS are not over ─► read on
 *        └ over ─► rests, in line ─ next turn: as many of the line as take TURN_MS, or took so long ─┐
 *     ▲                                                                                              │
 *     └──────────────────────────────────────────────────────────────────────────────────────────────┘
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
  /** Of the read after which it rests. */
  tookMs: number;
}

export class ReadTurns {
  readonly #nowMs: () => number;
  /** Of the first read of this turn. */
  #beganMs = 0;
  #lastMs = 0;
  #isInTurn = false;
  #isEndAwaited = false;
  readonly #resting = new Map<ReadingConnection, Resting>();
  readonly #endTurn = (): void => {
    this.#isInTurn = false;
    this.#isEndAwaited = false;
    let plannedMs = 0;
    // Those who rest again meanwhile stand behind all of these.
    for (const { connection, tookMs } of [...this.#resting.values()]) {
      if (plannedMs > 0 && plannedMs + tookMs > TURN_MS) break;
      if (this.#isOver()) break;
      // Another one's turn may have ended it.
      if (!this.#resting.delete(connection)) continue;
      plannedMs += tookMs;
      connection.goOn();
    }
    // Those who went on are read before that.
    if (this.#resting.size > 0) this.#awaitEnd();
  };

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** False: it rests, what it has read is for its turn. */
  mayRead(connection: ReadingConnection): boolean {
    const nowMs = this.#nowMs();
    this.#begin(nowMs);
    // What it takes now is charged to nobody else.
    this.#lastMs = nowMs;
    if (nowMs - this.#beganMs < TURN_MS) return true;
    this.rest(connection);
    return false;
  }

  /** It goes on in a later turn. */
  rest(connection: ReadingConnection): void {
    this.#resting.set(connection, { connection, tookMs: 0 });
    this.#awaitEnd();
  }

  /** A read of it is over. True: the connection is not to be read before goOn(). */
  onRead(connection: ReadingConnection): boolean {
    const nowMs = this.#nowMs();
    this.#begin(nowMs);
    const tookMs = nowMs - this.#lastMs;
    this.#lastMs = nowMs;
    if (nowMs - this.#beganMs < TURN_MS) return false;
    this.#resting.set(connection, { connection, tookMs });
    return true;
  }

  /** It is over, or another's: goOn() is not called. */
  forget(connection: ReadingConnection): void {
    this.#resting.delete(connection);
  }

  #begin(nowMs: number): void {
    if (this.#isInTurn) return;
    this.#isInTurn = true;
    this.#beganMs = nowMs;
    this.#lastMs = nowMs;
    this.#awaitEnd();
  }

  #isOver(): boolean {
    return this.#isInTurn && this.#nowMs() - this.#beganMs >= TURN_MS;
  }

  #awaitEnd(): void {
    if (this.#isEndAwaited) return;
    this.#isEndAwaited = true;
    setImmediate(this.#endTurn);
  }
}

/**
 * All strangers of this process: clients, and within TLS next hops, servers of policies and reports. What a
 * next hop says in clear is short, or it is closed.
 */
export const STRANGERS = new ReadTurns();
