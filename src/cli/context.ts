/**
 * What the verbs get from outside: where to write, the environment, how to run a role. src/bin fills it with
 * the real things; no verb touches process.
 */
import type { KeysInFile } from '../config/changes.js';
import type { Path } from '../config/keys/key.js';
import type { GatewayConfig, StoreConfig } from '../config/types.js';
import type { Https } from '../platform/https.js';
import type { LookUpHost } from '../platform/resolver.js';

/** A started role, until it is told to stop. */
export interface RunningRole {
  /** One line for the terminal: what it is and where it listens. */
  readonly summary: string;
  /** Stops in good order, within the role's own bound. */
  stop(): Promise<void>;
}

/** What a role runs by, and the way to the same file as it is later (docs/RELOAD.md). */
export interface RoleFile<C> {
  readonly config: C;
  readonly keys: KeysInFile;
  /** Throws a CliError with all that is wrong with it, one line each. */
  readonly again: () => FileReadAgain<C>;
}

export type GatewayFile = RoleFile<GatewayConfig>;
export type StoreFile = RoleFile<StoreConfig>;

export interface FileReadAgain<C> extends RoleFile<C> {
  /** FILE:LINE of a key. It keeps the whole document in memory, so it is for a moment only. */
  readonly place: (path: Path) => string;
}

export interface Roles {
  gateway(file: GatewayFile): Promise<RunningRole>;
  store(file: StoreFile): Promise<RunningRole>;
}

/** A file that is none: what comes by stdin. On the command line it may be written as "-". */
export const STDIN_FILE = '/dev/stdin';

export interface Terminal {
  /** A line without its line end. */
  print(line: string): void;
  /** As it is. */
  write(what: string | Uint8Array): void;
  /** Resolves when a reader who is slower than we are has taken enough of what was written. */
  drained(): Promise<void>;
  error(line: string): void;
  /** Lines may be coloured. */
  readonly isTty: boolean;
  /** A terminal obeys what is written, so that nothing of strangers may be written as it is. */
  readonly isScreen: boolean;
  readonly errorIsTty: boolean;
  /** An operator sits there who can be asked. */
  readonly canAsk: boolean;
  /** What is typed after the question, without its line end; '' when the input ends. */
  ask(question: string): Promise<string>;
  readonly columns: number;
  /** Lines on the screen. */
  readonly rows: number;
}

/** What asks a process to read its files again, or to open its log anew. */
export type PassedSignal = 'SIGHUP' | 'SIGUSR2';

export interface CliContext {
  readonly roles: Roles;
  readonly terminal: Terminal;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  /** For what strangers' servers say. */
  readonly https: Https;
  /** For next hops that a configuration names. */
  readonly lookUpHost: LookUpHost;
  /** The file that `node` runs as this program; `up` starts its processes with it. */
  readonly entry: string;
  /** Resolves at the first SIGINT or SIGTERM, or when the `up` that started us is gone. */
  untilStopped(): Promise<void>;
  /** Calls back at every further signal: somebody is impatient. */
  onSecondSignal(callback: () => void): void;
  readonly stopSignal: AbortSignal;
  /** Calls back at each of those; at once for a SIGHUP that has come already. */
  onPassedSignal(callback: (signal: PassedSignal) => void): void;
}

/** A mistake of the operator's or a fault of the world: shown as one line. */
export class CliError extends Error {
  override readonly name: string = 'CliError';
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The command itself is not understood, or its arguments do not go together: exit code 2. */
export class UsageError extends CliError {
  override readonly name: string = 'UsageError';

  constructor(message: string) {
    super(message, 2);
  }
}

/** One line for anything that can go wrong while a role starts. */
export function startErrorText(role: string, error: unknown): string {
  if (error instanceof CliError) return error.message;
  const { code, address, port, message } =
    error as NodeJS.ErrnoException & { address?: string; port?: number };
  const where = port === undefined ? '' : ` ${address ?? ''}:${String(port)}`;
  if (code === 'EADDRINUSE') {
    return `${role}: port${where} is in use; stop what listens there, or change the configuration`;
  }
  if (code === 'EADDRNOTAVAIL') {
    return `${role}: address${where} is not one of this machine; change the configuration`;
  }
  if (code === 'EACCES' && port !== undefined) {
    return `${role}: no permission to listen on${where}; use a port above 1023`;
  }
  return `${role}: could not start: ${message.split('\n', 1)[0] ?? message}`;
}
