/**
 * `register: file`: the map in one file of state_dir, for the gateways of one machine.
 *
 *   FileRegister         the process that keeps the file: its own clients, and the socket if wanted
 *   connectFileRegister  another process of this machine, over the socket
 */
import { join } from 'node:path';
import { SystemClock, startTicker } from '../../platform/node/clock.js';
import type { Ticker } from '../../platform/node/clock.js';
import type { Crc32, EventLog } from '../../platform/ports.js';
import { DEFAULT_CLIENT_OPTIONS } from '../client/register-client.js';
import type { RegisterClientOptions } from '../client/register-client.js';
import { HostLine } from '../core/host-line.js';
import { MapHost } from '../core/map-host.js';
import type { Register } from '../port.js';
import { RunningClient, soon } from '../running/running-client.js';
import { LOCK_LOST, RegisterFile } from './register-file.js';
import type { RegisterFileOptions } from './register-file.js';
import { SocketLine } from './socket-line.js';
import { SocketServer } from './socket-server.js';

const TICK_MS = 100;
const MOVED =
  'the register file counts as lost: all stores are asked what they were told, and the newest is believed';
/** How often it is looked whether the file is still ours, while nothing is written. */
const LOOK_MS = 2_000;

export interface FileRegisterOptions extends RegisterFileOptions {
  /** Other processes of this machine ask this one. */
  readonly isServed: boolean;
}

export interface FileRegisterPorts {
  readonly crc32: Crc32;
  readonly log: EventLog;
}

export function socketOf(stateDir: string): string {
  return join(stateDir, 'register.sock');
}

export class FileRegister {
  readonly #file: RegisterFile;
  readonly #host: MapHost;
  readonly #server: SocketServer | undefined;
  readonly #log: EventLog;
  readonly #path: string;
  readonly #ticker: Ticker;

  private constructor(
    file: RegisterFile,
    host: MapHost,
    server: SocketServer | undefined,
    path: string,
    log: EventLog,
  ) {
    this.#file = file;
    this.#host = host;
    this.#server = server;
    this.#path = path;
    this.#log = log;
    let lookMs = 0;
    this.#ticker = startTicker(new SystemClock(), TICK_MS, (nowMs) => {
      host.tick(nowMs);
      if (nowMs < lookMs || host.stopped !== '') return;
      lookMs = nowMs + LOOK_MS;
      if (!file.isOurs) {
        log.error('register', `the register is given up: ${LOCK_LOST}`, { file: path });
        host.stop(LOCK_LOST);
      }
    });
  }

  /** Rejects with a RegisterFileError, or the system's error when the socket can't be made. */
  static async open(options: FileRegisterOptions, { crc32, log }: FileRegisterPorts): Promise<FileRegister> {
    const file = await RegisterFile.open(options, crc32);
    if (file.movedWhy !== '') {
      log.warn('register', MOVED, { folder: options.stateDir, why: file.movedWhy });
    }
    const host = new MapHost(file.map, {
      clock: new SystemClock(),
      soon,
      keep: (map, done) => {
        file.keep(map, done);
      },
    });
    try {
      const server = options.isServed
        ? await SocketServer.listen(socketOf(options.stateDir), host, log)
        : undefined;
      return new FileRegister(file, host, server, join(options.stateDir, 'register'), log);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** A client in this process. */
  client(options: RegisterClientOptions = DEFAULT_CLIENT_OPTIONS): Register {
    return new RunningClient(options, new HostLine(this.#host, this.#path, soon), this.#log);
  }

  /** Ends with the last state on disk. Close the clients before. */
  async close(): Promise<void> {
    this.#ticker.stop();
    this.#server?.close();
    this.#host.stop('the register is closed');
    await this.#file.close();
  }
}

/** A client of a register that another process of this machine keeps. */
export function connectFileRegister(
  stateDir: string,
  log: EventLog,
  options: RegisterClientOptions = DEFAULT_CLIENT_OPTIONS,
): Register {
  return new RunningClient(options, new SocketLine(socketOf(stateDir)), log);
}
