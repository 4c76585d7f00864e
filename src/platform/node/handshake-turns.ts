/**
 * TLS handshakes with strangers take turns: in one turn of the loop one of them is read from. OpenSSL
 * verifies the chain that the other side shows within that read, whoever it is from, and a chain of a hundred
 * KiB made for it takes three quarters of a second; twenty at once would take fifteen, without a lease or a
 * heartbeat between them.
 *
 *   add ─ alone ─► read from as it comes
 *       └ others ─► not read from ─ its turn ─► read from for TURN_MS, or until it is over ─► the next one's
 *
 * No bound on how many are under way: who goes silent in the middle keeps nobody from beginning, and takes
 * TURN_MS of each round. One that ends hands its turn on at once.
 *
 * Reading is stopped and started at the handle, as Node itself does; no call of a socket does it in all of
 * its states. Where a Node has no such handle, nobody waits; a test looks whether this one has.
 */
import type net from 'node:net';
import type tls from 'node:tls';

const TURN_MS = 1;

/** What Node keeps in a socket. */
interface Handle {
  reading: boolean;
  readonly readStart: () => number;
  readonly readStop: () => number;
}

export class HandshakeTurns {
  /** The next one first; the one whose turn it is stands last. */
  readonly #line = new Set<net.Socket>();
  #current: net.Socket | undefined;
  #immediate: NodeJS.Immediate | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** In the call in which its handshake begins, and after all that makes Node read; until it is over. */
  add(socket: tls.TLSSocket): void {
    this.begin(socket);
    const over = (): void => { this.end(socket); };
    socket.once('secureConnect', over);
    socket.once('close', over);
  }

  /** As add(), of one that does not tell when it is over: its owner calls end(). */
  begin(socket: net.Socket): void {
    this.#line.add(socket);
    // Node starts to read from it at the end of this call of ours; before the loop looks, it waits.
    process.nextTick(() => {
      if (this.#line.has(socket) && socket !== this.#current) setReading(socket, false);
    });
    this.#goOnSoon();
  }

  /** From now on it is read from as any. */
  end(socket: net.Socket): void {
    if (!this.#line.delete(socket)) return;
    setReading(socket, true);
    if (this.#current !== socket) return;
    this.#current = undefined;
    // Its time was this one's, not of whoever follows.
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#goOnSoon();
  }

  /** Never within a read: what is started there could be read from in this turn. */
  #goOnSoon(): void {
    this.#immediate ??= setImmediate(() => {
      this.#immediate = undefined;
      if (this.#current === undefined) this.#next();
      else this.#await();
    });
  }

  #await(): void {
    if (this.#line.size < 2) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#next();
    }, TURN_MS);
  }

  #next(): void {
    const [next] = this.#line;
    if (next === undefined) return;
    if (next !== this.#current) {
      if (this.#current !== undefined) setReading(this.#current, false);
      this.#line.delete(next);
      this.#line.add(next);
      this.#current = next;
      setReading(next, true);
    }
    this.#await();
  }
}

/** False: it has no handle that could. */
export function setReading(socket: object, isOn: boolean): boolean {
  const handle = '_handle' in socket ? socket._handle : undefined;
  if (!isHandle(handle)) return false;
  if (handle.reading === isOn) return true;
  handle.reading = isOn;
  if (isOn) handle.readStart();
  else handle.readStop();
  return true;
}

function isHandle(handle: unknown): handle is Handle {
  return typeof handle === 'object' && handle !== null && 'reading' in handle
    && 'readStart' in handle && 'readStop' in handle;
}
