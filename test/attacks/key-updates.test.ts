/**
 * Clients that send KeyUpdates of TLS and nothing else: OpenSSL takes and answers them without any code of
 * ours. Others are served between, all the time.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { connect as tlsConnect } from 'node:tls';

import { StreamServer } from '../../src/platform/node/server-socket.js';
import { ServerTls } from '../../src/platform/node/server-tls.js';
import type { ServerConnection, ServerHandlers } from '../../src/platform/transport.js';
import { selfSigned } from '../dialog/self-signed.js';
import { KEY_UPDATE_TLS, clientSecret, keyUpdates } from './key-updates.js';

const FLOODERS = 4;
const EACH = 3_000;
/** One, where all of it is one turn. */
const SERVED_AT_LEAST = 3;
const files = selfSigned();
const needsTls = { timeout: 120_000, skip: files === undefined ? 'openssl is missing' : false };

/** TLS from the first octet, then each octet is sent back; `Q` is told of. */
function echo(connection: ServerConnection, onQuit: () => void): ServerHandlers {
  let isTls = false;
  const nothing = (): void => undefined;
  return {
    onOpen: nothing, onDrain: nothing, onSecure: nothing, onClose: nothing,
    onEnd: () => { connection.end(); },
    onData: (bytes) => {
      const copy = Uint8Array.from(bytes);
      if (!isTls) {
        isTls = true;
        connection.secure(copy);
      } else if (copy[0] === 0x51) onQuit();
      else connection.write([copy]);
    },
  };
}

/** What is sent over it from now on is made elsewhere. */
async function flooder(port: number): Promise<{ readonly socket: Socket; readonly records: Buffer }> {
  const socket = connect(port, '127.0.0.1');
  const tls = tlsConnect({ socket, ...KEY_UPDATE_TLS });
  let secret: Buffer | undefined;
  tls.on('keylog', (line: Buffer) => { secret ??= clientSecret(line.toString('latin1')); });
  await once(tls, 'secureConnect');
  // The end of its handshake leaves after this is told.
  await new Promise((resolve) => { setImmediate(resolve); });
  assert.ok(secret !== undefined);
  // Answers are not for it.
  tls.pause();
  return { socket, records: keyUpdates(secret, EACH, 'Q') };
}

test('others are served while clients send KeyUpdates', needsTls, async (t) => {
  assert.ok(files !== undefined);
  const nothing = (): void => undefined;
  const tls = new ServerTls({ ...files, clientCaFile: undefined }, { onHandshake: nothing, onRenewed: nothing, onProblem: nothing });
  let quits = 0;
  const server = new StreamServer({ connectionsMax: 100, backlog: 100, tls }, (connection) => echo(connection, () => { quits++; }));
  const port = await server.listen('127.0.0.1', 0);
  const honest = tlsConnect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  await once(honest, 'secureConnect');
  const flooders = await Promise.all(Array.from({ length: FLOODERS }, () => flooder(port)));
  t.after(() => {
    for (const { socket } of flooders) socket.destroy();
    honest.destroy();
    server.close();
    tls.close();
  });
  for (const { socket, records } of flooders) socket.write(records);
  let served = 0;
  while (quits < FLOODERS) {
    honest.write('x');
    await once(honest, 'data');
    served++;
  }
  assert.ok(served >= SERVED_AT_LEAST, `${String(served)} answers while ${String(FLOODERS * EACH)} KeyUpdates were taken`);
});
