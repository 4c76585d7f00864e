/**
 * Ports for the processes of a test. They lie below the range from which the kernel takes ports for outgoing
 * connections (32768 and up on Linux): a process that was killed gets its port again when it is restarted,
 * whatever else connected meanwhile.
 */
import { createServer, type Server } from 'node:net';

const FIRST_PORT = 12_000;
const LAST_PORT = 31_999;
const TRIES_MAX = 200;
const HOST = '127.0.0.1';

/** Listens on a random port of the range; undefined when that one is taken. */
function tryOne(port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT + 1))): Promise<{ server: Server; port: number } | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(port, HOST, () => resolve({ server, port }));
  });
}

/** The first of `count` ports in a row, none of them in `taken`. */
export async function freeRow(count: number, taken: readonly number[]): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const [first = 0] = await freePorts(1);
    const row = Array.from({ length: count }, (_none, index) => first + index);
    if (row.some((port) => taken.includes(port))) continue;
    const held = await Promise.all(row.map((port) => tryOne(port)));
    await Promise.all(held.map((one) => new Promise<void>((resolve) => (one === undefined ? resolve() : one.server.close(() => resolve())))));
    if (held.every((one) => one !== undefined)) return first;
  }
  throw new Error(`${count} free ports in a row were not found from ${FIRST_PORT} to ${LAST_PORT}`);
}

/** Ports that were free a moment ago: all are held at once, so that they differ. */
export async function freePorts(count: number): Promise<number[]> {
  const held: { server: Server; port: number }[] = [];
  for (let tries = 0; held.length < count && tries < TRIES_MAX + count; tries++) {
    const one = await tryOne();
    if (one !== undefined) held.push(one);
  }
  await Promise.all(held.map(({ server }) => new Promise<void>((resolve) => server.close(() => resolve()))));
  if (held.length < count) throw new Error(`only ${held.length} of ${count} free ports were found from ${FIRST_PORT} to ${LAST_PORT}`);
  return held.map(({ port }) => port);
}
