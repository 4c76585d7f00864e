/**
 * Reads an accepted socket into a buffer of ours. Node has that (`onread`) for sockets that it connects; for
 * those that a server accepts it allocates 64 KiB a read and takes each through its streams, and the
 * collector marks the whole heap again each time 64 MiB of them have passed: at full load a third of what a
 * store's processor did.
 *
 *   accepted ── buffer and callback set as `onread` would ──► bytes come by `received`, never by 'data'
 *
 * Everything else about the socket stays: pause() and resume(), 'end', TLS on top of it. The two fields and
 * the call of the handle are Node's own, not documented ones: where one is missing the socket is left as it
 * came, only dearer. A test looks whether this Node still has them.
 */
import net from 'node:net';

const BUFFER = fieldOfSockets('kBuffer');
const CALLBACK = fieldOfSockets('kBufferCb');

type Received = (bytes: number) => boolean;

/**
 * What Node keeps in a socket; by plain access, for Reflect costs more than all the rest, once a connection.
 */
interface WithHandle {
  readonly _handle: { readonly useUserBuffer: (buffer: Uint8Array) => void };
  [field: symbol]: Uint8Array | Received;
}

/**
 * Each read calls `received`: so many bytes lie at the start of `buffer`, until the next read; false stops
 * reading, until resume(). To be called in the turn of the accept, before anything was read. False: bytes
 * come by 'data'.
 */
export function readIntoOwnBuffer(accepted: net.Socket, buffer: Uint8Array, received: Received): boolean {
  if (BUFFER === undefined || CALLBACK === undefined || !hasHandle(accepted)) return false;
  accepted[BUFFER] = buffer;
  accepted[CALLBACK] = received;
  accepted._handle.useUserBuffer(buffer);
  return true;
}

function hasHandle(socket: object): socket is WithHandle {
  if (!('_handle' in socket)) return false;
  const handle = socket._handle;
  return typeof handle === 'object' && handle !== null && 'useUserBuffer' in handle
    && typeof handle.useUserBuffer === 'function';
}

function fieldOfSockets(name: string): symbol | undefined {
  return Object.getOwnPropertySymbols(new net.Socket()).find((field) => field.description === name);
}
