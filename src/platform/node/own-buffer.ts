/**
 * Reads accepted sockets into one buffer of ours. Node has that (`onread`) for sockets that it connects; for those
 * that a server accepts it allocates 64 KiB a read, and the collector marks the whole heap again each time 64 MiB of
 * them have passed: at full load a third of what a store's processor did.
 *
 *   accepted, paused ── its handle ──► net.Socket with `onread` ── close ──► accepted is destroyed, too: the server
 *                                                                            counts it until then (maxConnections)
 *
 * `handle` is how net.Server itself makes its sockets, though not a documented option: where there is none the
 * socket is used as it came, only dearer. A test looks whether this Node still has it.
 */
import net from 'node:net';

/** Bytes given to `received` are those of `buffer`, valid during the call. The server must accept with pauseOnConnect. */
export function readIntoOwnBuffer(accepted: net.Socket, buffer: Uint8Array, received: (bytes: Uint8Array) => void): net.Socket {
  const handle: unknown = Reflect.get(accepted, '_handle');
  if (typeof handle !== 'object' || handle === null) {
    // Then the bytes come by 'data'.
    accepted.resume();
    return accepted;
  }
  const onread = {
    buffer,
    callback: (bytes: number): boolean => {
      received(buffer.subarray(0, bytes));
      return true;
    },
  };
  Reflect.set(accepted, '_handle', null);
  const options = { handle, onread, allowHalfOpen: false };
  const socket = new net.Socket(options);
  socket.once('close', () => { accepted.destroy(); });
  return socket;
}
