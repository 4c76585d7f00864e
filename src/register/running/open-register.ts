/**
 * The register of this process, as its configuration says. The file's own process serves it to others of its
 * machine where it is told to; they connect to its socket; etcd is asked by each process itself.
 */
import { errorText } from '../../base/error-text.js';
import { checkPair, readPem } from '../../platform/node/certificates.js';
import { FollowedFile } from '../../platform/node/changing-files.js';
import type { Crc32, EventLog } from '../../platform/ports.js';
import { DEFAULT_CLIENT_OPTIONS } from '../client/register-client.js';
import type { EtcdLineOptions } from '../etcd/etcd-line.js';
import type { RegisterMember } from '../etcd/etcd-members.js';
import type { EtcdTls } from '../etcd/etcd-sockets.js';
import { FileRegister, connectFileRegister } from '../file/file-register.js';
import type { Register } from '../port.js';

/** This process keeps the file. */
export interface FileRegisterChoice {
  readonly kind: 'file';
  /** Folder of the file, and of its socket. */
  readonly stateDir: string;
  /** Other processes of this machine ask this one. */
  readonly isServed: boolean;
}

/** Another process of this machine keeps the file. */
export interface SocketRegisterChoice {
  readonly kind: 'socket';
  readonly stateDir: string;
}

export interface EtcdRegisterChoice {
  readonly kind: 'etcd';
  readonly endpoints: readonly string[];
  readonly cluster: string;
  /** '' for none. */
  readonly user: string;
  readonly password: string;
  /** PEM files; undefined: the authorities that Node trusts, and no certificate of our own. */
  readonly caFile: string | undefined;
  readonly certFile: string | undefined;
  readonly keyFile: string | undefined;
  /** What etcd was started with (--max-txn-ops). */
  readonly operationsMax: number;
}

export type RegisterChoice = FileRegisterChoice | SocketRegisterChoice | EtcdRegisterChoice;

export interface OpenRegisterPorts {
  readonly log: EventLog;
  readonly crc32: Crc32;
}

export interface OpenedRegister {
  readonly register: Register;
  /** Asks each that keeps it; nobody where that is a file. */
  members(): Promise<readonly RegisterMember[]>;
  close(): Promise<void>;
}

/** Rejects with a text that says what to do. Where others keep it, it comes up by itself. */
export async function openRegister(
  choice: RegisterChoice, { log, crc32 }: OpenRegisterPorts,
): Promise<OpenedRegister> {
  if (choice.kind === 'file') {
    const { stateDir, isServed } = choice;
    const file = await FileRegister.open({ stateDir, isServed }, { crc32, log });
    const register = file.client();
    return {
      register,
      members: nobody,
      close: async () => {
        register.close();
        await file.close();
      },
    };
  }
  if (choice.kind === 'socket') return ofOthers(connectFileRegister(choice.stateDir, log), nobody);
  // Loaded where it is asked for: it brings a third of all code.
  const connect = (await import('../etcd/etcd-register.js')).connectEtcdRegister;
  const ask = (await import('../etcd/etcd-members.js')).askMembers;
  const line = lineOptions(choice, log);
  const client = { ...DEFAULT_CLIENT_OPTIONS, operationsMax: choice.operationsMax };
  return ofOthers(connect(line, log, client), () => ask(line));
}

function ofOthers(register: Register, members: OpenedRegister['members']): OpenedRegister {
  return {
    register,
    members,
    close: () => {
      register.close();
      return Promise.resolve();
    },
  };
}

function nobody(): Promise<readonly RegisterMember[]> {
  return Promise.resolve([]);
}

/** Its `tls` is read anew when the files were renewed: etcd lets nobody in by a certificate that is over. */
function lineOptions(choice: EtcdRegisterChoice, log: EventLog): EtcdLineOptions {
  const { endpoints, cluster, user, password, caFile, certFile, keyFile } = choice;
  const followed = new FollowedFile([caFile, certFile, keyFile], () => readKeys(choice));
  return {
    endpoints,
    cluster,
    login: user === '' ? undefined : { user, password },
    get tls(): EtcdTls {
      if (followed.look()) tellRenewal(followed.why, log);
      return followed.current;
    },
  };
}

function tellRenewal(why: string, log: EventLog): void {
  if (why === '') log.info('tls', 'the certificate for the register was read anew');
  else log.error('tls', 'a new certificate for the register can\'t be used, the old one stays', { why });
}

/** Throws an Error that names the key of the configuration, and the file. */
function readKeys({ caFile, certFile, keyFile }: EtcdRegisterChoice): EtcdTls {
  const ca = caFile === undefined ? undefined : read('ca', caFile);
  if (certFile === undefined || keyFile === undefined) return { ca, cert: undefined, key: undefined };
  const pair = { cert: read('cert', certFile), key: read('key', keyFile) };
  checkPair(pair, certFile, keyFile);
  return { ca, ...pair };
}

function read(kind: 'ca' | 'cert' | 'key', file: string): string {
  try {
    return readPem(kind, file);
  } catch (error) {
    throw new Error(`register.${kind}: ${errorText(error)}`);
  }
}
