/**
 * Ports for the processes of a test. They lie below the range from which the kernel takes ports for outgoing
 * connections (32768 and up on Linux): a process that was killed gets its port again when it is restarted,
 * whatever else connected meanwhile.
 *
 * Each process that asks has a stretch of the range to itself: it listens on the first port of the stretch as
 * long as it lives. So two test files at a time never give out the same port between the moment when it was
 * found free and the moment when somebody listens there. Within a stretch ports are given in turn: one comes
 * again only when all the others have been given.
 */
import { createServer, type Server } from 'node:net';

const FIRST_PORT = 12_000;
const LAST_PORT = 31_999;
const STRETCH = 200;
const STRETCHES = Math.floor((LAST_PORT - FIRST_PORT + 1) / STRETCH);
const HOST = '127.0.0.1';

/** The guard of a stretch, and the ports behind it in turn. */
class Stretch {
  readonly #first: number;
  #next = 1;

  private constructor(guard: Server, first: number) {
    guard.unref();
    this.#first = first;
  }

  /** The first stretch that nobody else has, from a random one on. */
  static async claim(): Promise<Stretch> {
    const start = Math.floor(Math.random() * STRETCHES);
    for (let tries = 0; tries < STRETCHES; tries++) {
      const first = FIRST_PORT + ((start + tries) % STRETCHES) * STRETCH;
      const guard = await listenOn(first);
      if (guard !== undefined) return new Stretch(guard, first);
    }
    throw new Error(`every stretch of ${STRETCH} ports from ${FIRST_PORT} to ${LAST_PORT} is taken`);
  }

  /** The first of `count` ports in a row; the row does not go over the end of the stretch. */
  row(count: number): number {
    if (this.#next + count > STRETCH) this.#next = 1;
    const first = this.#first + this.#next;
    this.#next += count;
    return first;
  }
}

let own: Promise<Stretch> | undefined;

/** Undefined when the port is taken. */
function listenOn(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(port, HOST, () => resolve(server));
  });
}

async function isFree(port: number): Promise<boolean> {
  const server = await listenOn(port);
  if (server === undefined) return false;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return true;
}

/** The first of `count` ports in a row, all free a moment ago. */
export async function freeRow(count: number): Promise<number> {
  own ??= Stretch.claim();
  const stretch = await own;
  for (let tries = 0; tries < STRETCH; tries++) {
    const first = stretch.row(count);
    const free = await Promise.all(Array.from({ length: count }, (_none, index) => isFree(first + index)));
    if (!free.includes(false)) return first;
  }
  throw new Error(`${count} free ports in a row were not found among the ${STRETCH} of this process`);
}

/** Ports that were free a moment ago, no two the same. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freeRow(1));
  return ports;
}
