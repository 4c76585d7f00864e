/**
 * Serves a map to other processes of this machine over a unix socket in state_dir: an upper process keeps the
 * file, and its gateways ask it (`workers`, several gateways of one `up`). Who may open the socket is who may
 * read state_dir. What is said there is core/wire.ts; the other end is socket-line.ts.
 */
import { rmSync } from 'node:fs';
import net from 'node:net';
import type { EventLog } from '../../platform/ports.js';
import type { MapHost } from '../core/map-host.js';
import { BrokenRule } from '../../base/json-shape.js';
import { LINE_BYTES_MAX, decodeRequest, encodeHello, encodeReply, helloRule } from '../core/wire.js';
import type { Answer, Reply, Request } from '../core/wire.js';
import { LinesOfText } from './lines-of-text.js';

/** Workers and gateways of one machine, twice over. */
const CONNECTIONS_MAX = 256;
const WATCHES_MAX = 64;
/** A client that does not read its answers is cut off. */
const UNREAD_BYTES_MAX = 64 * 1024 * 1024;
/** sun_path of Linux has 108 bytes, the last one zero. */
const SOCKET_PATH_BYTES_MAX = 107;

export class SocketServer {
  readonly #server: net.Server;
  readonly #connections = new Set<ServedConnection>();
  readonly #file: string;

  private constructor(server: net.Server, file: string) {
    this.#server = server;
    this.#file = file;
  }

  /**
   * Whoever has the file's lock may take the socket of the process before. Rejects with the system's error.
   */
  static async listen(file: string, host: MapHost, log: EventLog): Promise<SocketServer> {
    const bytes = Buffer.byteLength(file);
    if (bytes > SOCKET_PATH_BYTES_MAX) {
      throw new Error(
        `the register's socket ${file} has a name of ${String(bytes)} bytes, the system takes ${
          String(SOCKET_PATH_BYTES_MAX)
        }: choose a shorter state_dir`,
      );
    }
    rmSync(file, { force: true });
    const server = net.createServer();
    const served = new SocketServer(server, file);
    server.maxConnections = CONNECTIONS_MAX;
    server.on('connection', (socket) => {
      const connection = new ServedConnection(socket, host, log, () => {
        served.#connections.delete(connection);
      });
      served.#connections.add(connection);
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ path: file }, () => {
        server.off('error', reject);
        resolve();
      });
    });
    server.on('error', (error) => {
      log.error('register', 'the socket of the register met an error', { file, why: error.message });
    });
    return served;
  }

  close(): void {
    this.#server.close();
    for (const connection of [...this.#connections]) connection.close('');
    rmSync(this.#file, { force: true });
  }
}

class ServedConnection {
  readonly #socket: net.Socket;
  readonly #host: MapHost;
  readonly #log: EventLog;
  readonly #watches = new Map<number, { close(): void; }>();
  #isGreeted = false;

  constructor(socket: net.Socket, host: MapHost, log: EventLog, onClose: () => void) {
    this.#socket = socket;
    this.#host = host;
    this.#log = log;
    const lines = new LinesOfText(LINE_BYTES_MAX, (line) => this.#onLine(line));
    socket.on('data', (chunk: Buffer) => {
      if (!lines.push(chunk) && !socket.destroyed) this.close('line too long');
    });
    // Told by 'close', which always follows.
    socket.on('error', () => {});
    socket.on('close', () => {
      for (const watch of this.#watches.values()) watch.close();
      this.#watches.clear();
      onClose();
    });
    const stopping = host.onStop(() => {
      this.close('');
    });
    socket.on('close', () => {
      stopping.close();
    });
    this.#write(encodeHello());
  }

  /** `rule` is what its client broke; '' for nothing. */
  close(rule: string): void {
    if (rule !== '') this.#log.warn('register', 'a client of the register is cut off', { rule });
    this.#socket.destroy();
  }

  #onLine(line: string): boolean {
    if (!this.#isGreeted) {
      const rule = helloRule(line);
      this.#isGreeted = rule === '';
      if (rule !== '') this.close(rule);
      return this.#isGreeted;
    }
    const request = decodeRequest(line);
    if (request instanceof BrokenRule) {
      this.close(request.rule);
      return false;
    }
    this.#onRequest(request);
    return !this.#socket.destroyed;
  }

  #onRequest(request: Request): void {
    const { id } = request;
    const answer = (given: Answer): void => {
      this.#send({ id, answer: given });
    };
    switch (request.call) {
      case 'transact':
        this.#host.transact(request.writes, answer);
        break;
      case 'range':
        this.#host.range(request.ranges, answer);
        break;
      case 'grant':
        this.#host.grant(request.session, request.ttlMs, answer);
        break;
      case 'renew':
        this.#host.renew(request.session, answer);
        break;
      case 'revoke':
        this.#host.revoke(request.session, answer);
        break;
      case 'watch':
        if (this.#watches.size >= WATCHES_MAX || this.#watches.has(id)) this.close('too many watches');
        else {this.#watches.set(
            id,
            this.#host.watch(request.prefixes, request.after, {
              onChanges: (changes) => {
                this.#send({ id, changes });
              },
              onBroken: (broken) => {
                this.#watches.delete(id);
                this.#send({ id, broken });
              },
            }),
          );}
        break;
      case 'unwatch':
        this.#watches.get(id)?.close();
        this.#watches.delete(id);
        break;
    }
  }

  #send(reply: Reply): void {
    this.#write(encodeReply(reply));
  }

  #write(text: string): void {
    if (this.#socket.destroyed) return;
    this.#socket.write(`${text}\n`);
    if (this.#socket.writableLength > UNREAD_BYTES_MAX) this.close('its answers are not read');
  }
}
