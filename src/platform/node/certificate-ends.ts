/**
 * How long the certificates of this process are good, and whether that for mail is for the name of this host:
 * looked at when it starts, and every minute after that, for the files may be renewed at any time, and are in
 * force a second later: all that are read together, or none of them, and then the end of those before stays.
 * One that ends within two weeks, or has ended, is told of once a day; one for another name once, for clients
 * may know the service by that. Off the path of mail. Owns the ends that metrics show.
 */
import { errorText } from '../../base/error-text.js';
import type { EventLog } from '../ports.js';
import { certificateFacts, checkPair, readPem, whyNotFor } from './certificates.js';
import { readServerTls } from './server-tls.js';

/** A handful of small files: no work worth a stamp. */
const LOOK_MS = 60_000;
const DAY_MS = 24 * 3_600_000;
/** Short enough for those that are renewed by themselves every 60 days, some 30 before their end. */
const SOON_MS = 14 * DAY_MS;

/** For what, "smtp", "links", "register" or "admin", and where. */
export interface CertificateFiles {
  readonly use: string;
  readonly certFile: string;
  readonly keyFile: string;
  /** Read with them; undefined: none is. */
  readonly caFile: string | undefined;
  /** Who it should be for; undefined: nobody looks. */
  readonly hostName?: string | undefined;
}

type Pair = Pick<CertificateFiles, 'certFile' | 'keyFile'>;
type FileKey = 'certFile' | 'keyFile' | 'caFile';
type TlsSection = Pair & { readonly caFile?: string | undefined } | undefined;

/** Of a process: of its listeners for mail, of its links, of its admin port, and what etcd asks it for. */
export interface TlsSections {
  readonly smtp?: Pair & Pick<CertificateFiles, 'hostName'> & {
    readonly clientCaFile: string | undefined;
  } | undefined;
  readonly links?: TlsSection;
  readonly admin?: TlsSection;
  /** A file, a socket, and an etcd that asks for none have no certificate of ours. */
  readonly register?: Partial<Readonly<Record<FileKey, string | undefined>>> | undefined;
}

export function certificateFiles({ smtp, links, admin, register }: TlsSections): readonly CertificateFiles[] {
  const ofSmtp = smtp && { ...smtp, caFile: smtp.clientCaFile };
  const uses = [['smtp', ofSmtp], ['links', links], ['admin', admin], ['register', register]] as const;
  return uses.flatMap(([use, { certFile, keyFile, caFile } = {}]) => {
    if (certFile === undefined || keyFile === undefined) return [];
    return [{ use, certFile, keyFile, caFile, hostName: use === 'smtp' ? smtp?.hostName : undefined }];
  });
}

/** '' while it is good for two weeks and more; else what is to be said of it. */
export function endingText(pem: string, nowMs: number): string {
  const { expires, beginsMs, endsMs } = certificateFacts(pem);
  if (nowMs >= endsMs) return `the certificate has expired: ${expires}; renew it`;
  if (nowMs < beginsMs) return `the certificate is not valid before ${new Date(beginsMs).toISOString()}`;
  if (endsMs - nowMs > SOON_MS) return '';
  const days = Math.floor((endsMs - nowMs) / DAY_MS);
  return `the certificate expires in ${String(days)} days, ${expires}: renew it`;
}

/** For the life of the process. */
export function watchCertificates(sections: TlsSections, log: EventLog): CertificateEnds {
  const certificates = new CertificateEnds(certificateFiles(sections), log);
  const look = (): void => { certificates.look(Date.now()); };
  look();
  setInterval(look, LOOK_MS).unref();
  return certificates;
}

export class CertificateEnds {
  #files: readonly CertificateFiles[];
  readonly #log: EventLog;
  readonly #ends = new Map<string, number>();
  /** By use: the certificate whose name was looked at. */
  readonly #named = new Map<string, string>();
  /** By use. */
  readonly #tellAgainMs = new Map<string, number>();

  constructor(files: readonly CertificateFiles[], log: EventLog) {
    this.#files = files;
    this.#log = log;
  }

  /** Unix time in milliseconds, by use. */
  get ends(): ReadonlyMap<string, number> {
    return this.#ends;
  }

  /** Others than before, from now on. */
  lookAt(files: readonly CertificateFiles[], nowMs: number): void {
    this.#files = files;
    this.#tellAgainMs.clear();
    this.#named.clear();
    for (const use of this.#ends.keys()) {
      if (!files.some((each) => each.use === use)) this.#ends.delete(use);
    }
    this.look(nowMs);
  }

  look(nowMs: number): void {
    for (const files of this.#files) {
      let cert: string;
      try {
        cert = certificateOf(files);
      } catch (error) {
        // What was read before stays in force, and with it its end.
        this.#tell(files, errorText(error), nowMs);
        continue;
      }
      this.#ends.set(files.use, certificateFacts(cert).endsMs);
      this.#tell(files, endingText(cert, nowMs), nowMs);
      this.#lookAtName(files, cert);
    }
  }

  /** Once a day while it is so. `why`: '' when it is not. */
  #tell({ use, certFile: file }: CertificateFiles, why: string, nowMs: number): void {
    if (why === '') this.#tellAgainMs.delete(use);
    else if (nowMs >= (this.#tellAgainMs.get(use) ?? 0)) {
      this.#tellAgainMs.set(use, nowMs + DAY_MS);
      this.#log.warn('tls', 'a certificate is to be renewed', { use, file, why });
    }
  }

  /** Told of once: of each that is in force, and of all again with the files of a new configuration. */
  #lookAtName({ use, hostName, certFile: file }: CertificateFiles, cert: string): void {
    if (hostName === undefined || this.#named.get(use) === cert) return;
    this.#named.set(use, cert);
    const why = whyNotFor(hostName, cert);
    if (why === '') return;
    this.#log.warn('tls', 'a certificate is for another name', { use, file, why: `it is ${why}` });
  }
}

/** As whoever uses them reads them: throws where he would go on with those before. */
function certificateOf({ use, certFile, keyFile, caFile }: CertificateFiles): string {
  if (use === 'smtp' || use === 'admin') {
    return readServerTls({ certFile, keyFile, clientCaFile: caFile }).cert;
  }
  const cert = readPem('cert', certFile);
  checkPair({ cert, key: readPem('key', keyFile) }, certFile, keyFile);
  if (caFile !== undefined) readPem('ca', caFile);
  return cert;
}
