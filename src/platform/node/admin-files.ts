/**
 * The files of an admin port: tokens, the certificate with its key, and the CA of others. They are looked at
 * once a second; what can't be used never replaces what can, and the log says so once.
 */
import type { Server } from 'node:https';
import { readPem } from './certificates.js';
import { FollowedFile } from './changing-files.js';
import { readTokens } from './admin-tokens.js';
import type { Tokens } from './admin-tokens.js';
import { readServerTls } from './server-tls.js';
import type { EventLog } from '../ports.js';

export interface AdminFileNames {
  readonly tokensFile?: string | undefined;
  readonly tls?: {
    readonly certFile: string;
    readonly keyFile: string;
    /** Of the others of the group. */
    readonly caFile?: string | undefined;
  } | undefined;
}

interface Material {
  readonly own: ReturnType<typeof readServerTls>;
  /** PEM of who has signed the certificates of the others; undefined: a CA of the system. */
  readonly ca: string | undefined;
}

const LOOK_MS = 1000;

export class AdminFiles {
  readonly #tokens: FollowedFile<Tokens> | undefined;
  readonly #tls: FollowedFile<Material> | undefined;
  readonly #log: EventLog;
  readonly #timer: NodeJS.Timeout | undefined;
  #secured: readonly Server[] = [];

  /** Throws an Error that names a file that can't be used. */
  constructor({ tokensFile, tls }: AdminFileNames, log: EventLog) {
    this.#log = log;
    this.#tokens = tokensFile === undefined ? undefined
      : new FollowedFile([tokensFile], () => readTokens(tokensFile));
    this.#tls = tls === undefined ? undefined
      : new FollowedFile([tls.certFile, tls.keyFile, tls.caFile], () => ({
        own: readServerTls({ ...tls, clientCaFile: undefined }),
        ca: tls.caFile === undefined ? undefined : readPem('ca', tls.caFile),
      }));
    if (this.#tokens === undefined && this.#tls === undefined) return;
    this.#timer = setInterval(() => { this.look(); }, LOOK_MS).unref();
  }

  /** Undefined: none are asked for. */
  get tokens(): Tokens | undefined {
    return this.#tokens?.current;
  }

  /** Undefined: in clear. */
  get tls(): Material | undefined {
    return this.#tls?.current;
  }

  /** A server that is to have the newest certificate. */
  keep(server: Server): void {
    this.#secured = [...this.#secured, server];
  }

  /** Whether the files have changed; by itself once a second. */
  look(): void {
    if (this.#tokens?.look() === true) {
      const { why } = this.#tokens;
      if (why === '') this.#log.info('auth', 'tokens of the admin HTTP were read anew');
      else this.#log.error('auth', 'new tokens of the admin HTTP can\'t be used, the old ones stay', { why });
    }
    if (this.#tls?.look() !== true) return;
    const { current, why } = this.#tls;
    if (why === '') {
      for (const server of this.#secured) server.setSecureContext(current.own);
      this.#log.info('tls', 'the certificate of the admin HTTP was read anew');
    } else {
      const text = 'a new certificate of the admin HTTP can\'t be used, the old one stays';
      this.#log.error('tls', text, { why });
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
